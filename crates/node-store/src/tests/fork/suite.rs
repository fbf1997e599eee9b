//! The suite for all backends, on chains whose genesis state is a base.

use super::TestBase;
use crate::tests::small;
use crate::{Store, SyncPolicy};
use node_core::backend::StateBackend;
use node_core::backend::suite::{CASES, Content, TestChain};
use node_core::block::ExecutedBlock;
use std::sync::Arc;

#[test]
fn passes_the_suite() {
    // The changes of the first block are not kept.
    for (name, case) in CASES.iter().filter(|(name, _)| *name != "genesis") {
        for blocks_in_memory in [1, 7] {
            println!("{name}, with {blocks_in_memory} blocks in memory");
            case(&|genesis: ExecutedBlock| -> Box<dyn StateBackend> {
                let changes = (*genesis.changes).clone();
                let state = TestChain::new(Content { changes, ..Content::default() });
                let base = TestBase::new(state.state(0), genesis.changes.code.clone());
                let first = ExecutedBlock { changes: Arc::default(), ..genesis };
                let options = small(blocks_in_memory, SyncPolicy::Always);
                Box::new(Store::fork_in_memory(first, Arc::new(base), options).unwrap())
            });
        }
    }
}
