//! Chains that continue the state of another one, compared with that one.

mod base;
mod fetching;
mod opening;
mod random;
mod rootless;
mod suite;

pub(crate) use base::TestBase;

use node_core::backend::suite::TestChain;
use node_core::block::ExecutedBlock;
use node_types::{BlockNumber, Bytes, H256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns the state of `chain` as of block `first` as a base, and that block as the first one of a chain.
pub(crate) fn fork_at(chain: &TestChain, first: BlockNumber) -> (TestBase, ExecutedBlock) {
    let upto = &chain.blocks()[..=first as usize];
    let codes: BTreeMap<H256, Bytes> = upto.iter().flat_map(|block| block.changes.code.clone()).collect();
    let block = ExecutedBlock { changes: Arc::default(), ..upto[first as usize].clone() };
    (TestBase::new(chain.state(first), codes), block)
}
