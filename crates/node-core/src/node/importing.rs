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

impl Node {
    /// Reports that the chain is being imported, and refuses transactions, until [`end_import`](Self::end_import) is
    /// called. Transactions are refused because a later block of the import may contain them, and because the pool's
    /// checks depend on the head.
    ///
    /// # Errors
    /// [`NodeError::Backend`].
    pub fn begin_import(&self) -> Result<(), NodeError> {
        let starting_block = self.backend.view()?.head().number;
        *self.importing.lock() = Some(Importing { starting_block, highest_block: None });
        Ok(())
    }

    /// Sets the highest block of the running import, once it is known.
    pub fn set_highest_block(&self, number: BlockNumber) {
        if let Some(importing) = &mut *self.importing.lock() {
            importing.highest_block = Some(number);
        }
    }

    /// Ends the import: accepts transactions again.
    pub fn end_import(&self) {
        *self.importing.lock() = None;
    }

    /// Returns the progress of an import, or `None` if the chain is not being imported.
    ///
    /// # Errors
    /// [`NodeError::Backend`].
    pub fn import_progress(&self, context: &Context) -> Result<Option<ImportProgress>, NodeError> {
        let Some(Importing { starting_block, highest_block }) = *self.importing.lock() else { return Ok(None) };
        let current_block = self.block_number(context)?;
        let highest_block = highest_block.map_or(current_block, |highest| highest.max(current_block));
        Ok(Some(ImportProgress { starting_block, current_block, highest_block }))
    }

    /// Refuses a transaction while the chain is being imported.
    pub(super) fn check_imported(&self) -> Result<(), NodeError> {
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
