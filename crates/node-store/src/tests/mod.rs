//! Tests of the whole backend.

mod backup;
mod caches;
mod crashes;
mod damage;
mod fork;
mod healing;
mod large;
mod layout;
mod opening;
mod pruning;
mod publish;
mod queries;
mod random;
mod reader;
mod remote;
mod suite;

pub(crate) use fork::{TestBase, fork_at};

use crate::{Options, SyncPolicy};
use node_core::backend::suite::SENDER;
use node_core::crypto::{SenderRecovery, SignatureError};
use node_types::consensus::Signature;
use node_types::{Address, H256};
use proptest::test_runner::Config;
use std::time::Duration;

/// Runs properties about faults `short` times, or the number of times in the variable FAULT_CASES.
fn cases(short: u32) -> Config {
    let cases = std::env::var("FAULT_CASES").ok().and_then(|cases| cases.parse().ok());
    Config { cases: cases.unwrap_or(short), failure_persistence: None, ..Config::default() }
}

/// Options that move rows to runs after `blocks_in_memory` blocks.
pub(crate) fn small(blocks_in_memory: u64, sync: SyncPolicy) -> Options {
    // Tests that need another attempt after a failure make it themselves, so that a run can be repeated.
    let retry = Duration::from_secs(3_600);
    Options { cache_bytes: 1 << 20, sync, commit_rows: 0, blocks_in_memory, retry, ..Options::default() }
}

/// All transactions of test chains have the same sender.
pub(crate) struct OneSender;

impl SenderRecovery for OneSender {
    fn recover(&self, _: H256, _: &Signature, _: bool) -> Result<Address, SignatureError> {
        Ok(SENDER)
    }
}
