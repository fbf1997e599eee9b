//! Serving a chain while it is imported.

use super::{Node, NodeError};
use crate::context::Context;
use node_types::BlockNumber;

/// Progress of an import during which reads are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportProgress {
    /// The head when the import began.
    pub starting_block: BlockNumber,
    /// The head now.
    pub current_block: BlockNumber,
    /// The highest block that the import will reach, as far as that is known, and at least the head.
    pub highest_block: BlockNumber,
}

/// The state of the running import.
pub(super) struct Importing {
    pub(super) starting_block: BlockNumber,
    /// `None` if it is not known yet.
    pub(super) highest_block: Option<BlockNumber>,
}

pub(super) fn begin_import(node: &Node) -> Result<(), NodeError> {
    let starting_block = node.backend.view()?.head().number;
    *node.importing.lock() = Some(Importing { starting_block, highest_block: None });
    Ok(())
}

pub(super) fn set_highest_block(node: &Node, number: BlockNumber) {
    if let Some(importing) = &mut *node.importing.lock() {
        importing.highest_block = Some(number);
    }
}

pub(super) fn end_import(node: &Node) {
    *node.importing.lock() = None;
}

pub(super) fn import_progress(node: &Node, context: &Context) -> Result<Option<ImportProgress>, NodeError> {
    let Some(Importing { starting_block, highest_block }) = *node.importing.lock() else { return Ok(None) };
    let current_block = node.block_number(context)?;
    let highest_block = highest_block.map_or(current_block, |highest| highest.max(current_block));
    Ok(Some(ImportProgress { starting_block, current_block, highest_block }))
}

impl Node {
    /// Refuses what concerns the pool if another process, which has it, writes the chain.
    pub(super) fn check_has_pool(&self) -> Result<(), NodeError> {
        if self.is_read_only { Err(NodeError::ReadOnly) } else { Ok(()) }
    }

    /// Refuses a transaction while the chain is being imported, and if another process writes it.
    pub(super) fn check_accepting(&self) -> Result<(), NodeError> {
        self.check_has_pool()?;
        if self.importing.lock().is_some() { Err(NodeError::Importing) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::World;
    use crate::test_chain::{account, transaction};
    use node_types::Bytes;

    #[test]
    fn transactions_are_refused_until_the_import_has_ended() {
        let world = World::new();
        let context = Context::unbounded();
        world.change(account(1, 0, u64::MAX, &[]));
        let starting_block = world.node.block_number(&context).unwrap();
        let send = || world.node.send_transaction(&context, Bytes::from(transaction(1, 0, 5).transaction.encode()));
        assert_eq!(world.node.import_progress(&context).unwrap(), None);

        world.node.begin_import().unwrap();
        assert!(matches!(send(), Err(NodeError::Importing)));
        world.push(Vec::new());
        let current_block = starting_block + 1;
        let progress = |highest_block| ImportProgress { starting_block, current_block, highest_block };
        assert_eq!(world.node.import_progress(&context).unwrap(), Some(progress(current_block)));
        world.node.set_highest_block(current_block + 5);
        assert_eq!(world.node.import_progress(&context).unwrap(), Some(progress(current_block + 5)));

        world.node.end_import();
        assert_eq!(world.node.import_progress(&context).unwrap(), None);
        assert_eq!(send().unwrap(), transaction(1, 0, 5).hash);
    }
}
