//! Runs one target of `node_tests::fuzz` under libFuzzer. The environment variable `FUZZ_TARGET` is its name.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use node_tests::fuzz::{self, Mutator, Runner, Target};
use std::cell::RefCell;

thread_local! {
    static RUNNER: RefCell<Runner> = RefCell::new(Runner::new(&target()));
    static MUTATOR: RefCell<Mutator> = RefCell::new(target().mutator(0));
}

/// Returns the target that `FUZZ_TARGET` specifies.
///
/// # Panics
/// If there is no such target.
fn target() -> Target {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let mut targets = fuzz::targets();
    let names: Vec<_> = targets.iter().map(|target| target.name).collect();
    let Some(index) = names.iter().position(|known| *known == name) else {
        panic!("FUZZ_TARGET is {name:?}, but must be one of {}", names.join(", "));
    };
    targets.swap_remove(index)
}

// A panic aborts the process before anything catches it: libfuzzer-sys sets such a hook.
fuzz_target!(|input: &[u8]| {
    if let Err(finding) = RUNNER.with_borrow_mut(|runner| runner.attempt(input)) {
        panic!("{}", finding.fault);
    }
});

// Half of the mutations are libFuzzer's own. The others also change the structure of an input, or start from a valid one.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 2 == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let mutated = MUTATOR.with_borrow_mut(|mutator| mutator.mutate(seed.into(), &data[..size]));
    let length = mutated.len().min(max_size);
    data[..length].copy_from_slice(&mutated[..length]);
    length
});
