//! A short run of each fuzz target.

use node_tests::fuzz;

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
