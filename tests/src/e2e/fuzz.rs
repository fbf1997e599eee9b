//! A short run of each fuzz target.

use crate::fuzz::{self, CORPORA, Runner};
use std::collections::BTreeSet;
use std::fs;

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

#[test]
fn no_target_fails_on_the_inputs_of_its_corpus() {
    let mut unknown: BTreeSet<_> = fs::read_dir(CORPORA).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    for target in fuzz::targets() {
        assert!(unknown.remove(target.corpus_file().file_name().unwrap()), "{} has no corpus", target.name);
        let mut runner = Runner::new(&target);
        let inputs = target.corpus().unwrap();
        assert!(!inputs.is_empty(), "{}", target.name);
        for input in inputs {
            let outcome = runner.attempt(&input);
            assert!(outcome.is_ok(), "{}: {outcome:?}", target.name);
        }
    }
    assert!(unknown.is_empty(), "{unknown:?} are not named after targets");
}

#[test]
fn a_corpus_is_packed_as_it_was_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let target = &fuzz::targets()[0];
    target.unpack(folder.path()).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), target.corpus().unwrap().len());
    let packed = fuzz::pack(folder.path()).unwrap();
    assert!(packed == fs::read_to_string(target.corpus_file()).unwrap(), "{} has changed", target.name);
}
