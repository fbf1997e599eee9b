//! The tests that every backend must pass.
//!
//! They generate chains together with a simple model of their states, store the chains in a new backend, and compare
//! all reads with the model. One line in a test runs all of them:
//!
//! ```no_run
//! # use node_core::backend::{MemoryBackend, suite};
//! suite::run(&|genesis| Box::new(MemoryBackend::new(genesis).expect("a valid genesis")));
//! ```

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod chain;
mod check;
mod layering;
mod random;
mod reading;
mod scanning;
mod sentence;
mod writing;

pub use chain::{Content, ModelAccount, ModelState, SENDER, TestChain, TestTransaction};
pub use check::check_view;
pub use random::Random;

use super::StateBackend;
use crate::block::ExecutedBlock;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Opens a new backend whose chain consists of the given genesis block.
pub type Open<'a> = &'a dyn Fn(ExecutedBlock) -> Box<dyn StateBackend>;

/// A test, which panics if the backend fails it.
pub type Case = fn(Open<'_>);

/// All tests with their names.
pub const CASES: &[(&str, Case)] = &[
    ("genesis", reading::genesis),
    ("every state at every height", reading::every_state_at_every_height),
    ("recreated accounts have new storage", reading::recreated_accounts_have_new_storage),
    ("proofs verify at every height", reading::proofs_verify_at_every_height),
    ("blocks above the head are unknown", reading::blocks_above_the_head_are_unknown),
    ("a block with a wrong state root changes nothing", writing::a_wrong_state_root_changes_nothing),
    ("blocks with another parent are rejected", writing::rejects_blocks_with_another_parent),
    ("switching", writing::switching),
    ("switching to an empty branch", writing::switching_to_an_empty_branch),
    ("switching restores deleted accounts", writing::switching_restores_deleted_accounts),
    ("a switch that fails changes nothing", writing::a_switch_that_fails_changes_nothing),
    ("side blocks", writing::side_blocks),
    ("forks equal switched chains", layering::forks_equal_switched_chains),
    ("old side blocks are kept", writing::old_side_blocks_are_kept),
    ("views do not change", writing::views_do_not_change),
    ("listeners receive changes in order", writing::listeners_receive_changes_in_order),
    ("records", writing::records),
    ("records change with the chain", writing::records_change_with_the_chain),
    ("log candidates are complete", scanning::log_candidates_are_complete),
    ("log scans can be interrupted", scanning::log_scans_can_be_interrupted),
    ("fee rows", scanning::fee_rows),
    ("layers equal appended blocks", layering::layers_equal_appended_blocks),
    ("layers hide the base's own blocks", layering::layers_hide_the_blocks_of_the_base),
    ("layers fill, free and clear storage", layering::layers_fill_free_and_clear_storage),
    ("layers must follow the ancestor", layering::layers_must_follow_the_ancestor),
];

/// Runs all tests, and prints the name of each.
///
/// # Panics
/// If the backend fails any test, after all tests were run. The message has a sentence for each failed test: what was
/// requested, what the test expected, and what the backend returned.
pub fn run(open: Open<'_>) {
    let mut failures = Vec::new();
    for (name, case) in CASES {
        println!("backend: {name}");
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| case(open))) {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("the test panicked");
            failures.push(format!("\n* {name}: {text}"));
        }
    }
    let (failed, all) = (failures.len(), CASES.len());
    assert!(failures.is_empty(), "the backend fails {failed} of the {all} tests:{}", failures.concat());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_every_failed_test_in_a_sentence() {
        let broken: Open<'_> = &|_| panic!("the database is locked");
        let panic = catch_unwind(AssertUnwindSafe(|| run(broken))).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        let count = CASES.len();
        assert!(text.starts_with(&format!("the backend fails {count} of the {count} tests:\n* genesis")), "{text}");
        assert!(text.contains("\n* records: the database is locked"), "{text}");
    }
}
