//! The node agrees with the model after every step of short random runs. The program `model` does long runs.

use crate::model::{Options, Summary, run};

fn check(options: Options) -> Summary {
    println!("{options:?}");
    let summary = run(options, |_| ());
    println!("{summary}");
    assert!(summary.accepted > options.steps / 10 && summary.refused > 0 && summary.mined > 0, "{summary}");
    summary
}

#[test]
fn in_memory_with_edits() {
    let summary = check(Options { steps: 1_500, seed: 1, in_folder: false, edits: true });
    assert!(
        summary.edits > 0 && summary.restarts > 0 && summary.reorganizations > 0 && summary.reported > 0,
        "{summary}"
    );
}

#[test]
fn in_a_folder_with_edits() {
    check(Options { steps: 700, seed: 2, in_folder: true, edits: true });
}

#[test]
fn imports_a_chain_without_edits_again() {
    check(Options { steps: 700, seed: 3, in_folder: false, edits: false });
}

#[test]
fn with_a_random_seed() {
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
    check(Options { steps: 500, seed, in_folder: false, edits: true });
}
