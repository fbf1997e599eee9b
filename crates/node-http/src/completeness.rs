//! Whether the chain is the one that the operator expects.

use crate::config::LifecycleOptions;
use node_core::backend::{BackendError, View};
use parking_lot::RwLock;
use std::sync::Arc;

/// Why the chain lacks blocks that it should have. As long as there is a reason, `/ready` returns 503 with it and the
/// metric `ethnode_chain_incomplete` is 1; requests are served. Clones share the reason.
#[derive(Clone, Debug, Default)]
pub struct Incomplete(Arc<RwLock<Option<String>>>);

impl Incomplete {
    /// Sets the reason, for example that a chain file is damaged.
    pub fn set(&self, reason: String) {
        *self.0.write() = Some(reason);
    }

    pub(crate) fn reason(&self) -> Option<String> {
        self.0.read().clone()
    }
}

impl LifecycleOptions {
    /// Returns what the chain lacks of what the operator expects, or `None` if it lacks nothing.
    pub(crate) fn missing(&self, view: &dyn View) -> Result<Option<String>, BackendError> {
        let head = view.head();
        if let Some(least) = self.min_head.filter(|least| head.number < *least) {
            return Ok(Some(format!("the head is block {}, expected at least {least} (`min-head`)", head.number)));
        }
        let Some(hash) = self.expect_head else { return Ok(None) };
        let header = view.header(hash.into())?;
        let is_canonical = match &header {
            // Side blocks have headers as well.
            Some(header) => view.canonical_hash(header.header.number)? == Some(hash),
            None => false,
        };
        Ok((!is_canonical).then(|| format!("the chain up to block {head} lacks block {hash:#x} (`expect-head`)")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_core::backend::suite::Random;
    use node_core::backend::{MemoryBackend, StateBackend};
    use node_types::H256;

    #[test]
    fn the_expected_head_may_be_an_ancestor_but_not_a_side_block() {
        let mut random = Random(1);
        let main = random.chain(6);
        let mut other = main.up_to(3);
        random.extend(&mut other, 1);
        let backend = MemoryBackend::new(main.blocks()[0].clone()).unwrap();
        main.above(0).into_iter().for_each(|block| backend.append(block).unwrap());
        let side = other.head().clone();
        backend.keep_side_block(side.clone()).unwrap();
        let view = backend.view().unwrap();
        let missing = |min_head, expect_head| {
            LifecycleOptions { min_head, expect_head, ..Default::default() }.missing(&*view).unwrap()
        };
        let hash = |number: usize| main.blocks()[number].header.hash;
        for (min_head, expect_head) in [(None, None), (Some(0), Some(hash(0))), (Some(6), Some(hash(6)))] {
            assert_eq!(missing(min_head, expect_head), None);
        }
        let reason = missing(Some(7), None).unwrap();
        assert!(reason.contains("block 6") && reason.contains("at least 7"), "{reason}");
        for unknown in [side.header.hash, H256::repeat_byte(7)] {
            let reason = missing(Some(6), Some(unknown)).unwrap();
            assert!(reason.contains(&format!("{unknown:#x}")), "{reason}");
        }
    }
}
