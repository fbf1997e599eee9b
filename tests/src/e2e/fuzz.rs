//! A short run of each fuzz target.

use crate::fuzz::{self, Runner};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn no_target_fails_on_a_thousand_inputs() {
    for target in fuzz::targets() {
        let run = fuzz::run(&target, 1, |inputs| inputs < 1_000, |_| {});
        assert!(run.as_ref().is_ok_and(|tally| tally.accepted > 0), "{}: {run:?}", target.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_inputs() {
    let [first, second] = [7, 7].map(|seed| {
        let mut inputs = Vec::new();
        let target = &fuzz::targets()[0];
        assert!(fuzz::run(target, seed, |inputs| inputs < 100, |input| inputs.push(input.to_vec())).is_ok());
        inputs
    });
    assert_eq!(first, second);
}

/// libFuzzer found these inputs. Together they reach more code than the seeds.
#[test]
fn no_target_fails_on_the_inputs_of_its_corpus() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let targets = fuzz::targets();
    let mut unknown: BTreeSet<_> = entries(&corpora).collect();
    for target in &targets {
        let folder = corpora.join(target.name);
        assert!(unknown.remove(&folder), "{} has no corpus", target.name);
        let mut runner = Runner::new(target);
        for file in entries(&folder) {
            let outcome = runner.attempt(&fs::read(&file).unwrap());
            assert!(outcome.is_ok(), "{}: {outcome:?}", file.display());
        }
    }
    assert!(unknown.is_empty(), "{unknown:?} are not named after targets");
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}
