//! Reads of one account.

use super::{Field, Node, NodeError};
use crate::context::Context;
use crate::state::AccountState;
use node_types::consensus::Account;
use node_types::{Address, BlockId, Bytes, H256, KECCAK_EMPTY, U256};

impl Node {
    /// Returns the value of a storage slot as of a block; zero if it was never set.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] or [`NodeError::StatePruned`].
    pub fn get_storage_at(
        &self,
        context: &Context,
        address: Address,
        slot: H256,
        block: BlockId,
    ) -> Result<U256, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let at = snapshot.state(block, Field::BlockNumber)?;
        Ok(snapshot.view.state(at)?.storage(address, slot)?)
    }

    /// Returns the balance of an account in wei, as of a block.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] or [`NodeError::StatePruned`].
    pub fn get_balance(&self, context: &Context, address: Address, block: BlockId) -> Result<U256, NodeError> {
        Ok(self.account(context, address, block)?.balance)
    }

    /// Returns the code of an account as of a block; empty if it has none.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] or [`NodeError::StatePruned`].
    pub fn get_code(&self, context: &Context, address: Address, block: BlockId) -> Result<Bytes, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let at = snapshot.state(block, Field::BlockNumber)?;
        let state = snapshot.view.state(at)?;
        match state.account(address)? {
            Some(account) if account.has_code() => Ok(state.code(account.code_hash)?.unwrap_or_default()),
            _ => Ok(Bytes::new()),
        }
    }

    /// Returns code by its hash, or `None` if it was never deployed up to a block.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] or [`NodeError::StatePruned`].
    pub fn get_code_by_hash(&self, context: &Context, hash: H256, block: BlockId) -> Result<Option<Bytes>, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let at = snapshot.state(block, Field::BlockNumber)?;
        if hash == KECCAK_EMPTY {
            return Ok(Some(Bytes::new()));
        }
        Ok(snapshot.view.state(at)?.code(hash)?)
    }

    /// Returns the nonce of an account as of a block. For `pending`, this counts all executable transactions in the
    /// pool, including those that do not fit into the pending block.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] or [`NodeError::StatePruned`].
    pub fn get_transaction_count(&self, context: &Context, address: Address, block: BlockId) -> Result<u64, NodeError> {
        let (mined, in_pool) = match block {
            pending if pending.is_pending() => (BlockId::latest(), self.pool.nonce(address)),
            mined => (mined, None),
        };
        let nonce = self.account(context, address, mined)?.nonce;
        Ok(nonce.max(in_pool.unwrap_or(0)))
    }

    /// Returns an account with its storage root, as of a block; the empty account if it does not exist.
    ///
    /// # Errors
    /// [`NodeError::Invalid`] if the block is `pending`, which has no storage roots.
    pub fn get_account(&self, context: &Context, address: Address, block: BlockId) -> Result<Account, NodeError> {
        if block.is_pending() {
            return Err(NodeError::invalid(Field::BlockNumber, "the pending block has no storage roots"));
        }
        let snapshot = self.snapshot_for(context, block)?;
        let at = snapshot.state(block, Field::BlockNumber)?;
        Ok(snapshot.view.state(at)?.proof(address, &[])?.account.unwrap_or_default())
    }

    /// Returns an account; the empty account if it does not exist.
    fn account(&self, context: &Context, address: Address, block: BlockId) -> Result<AccountState, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let at = snapshot.state(block, Field::BlockNumber)?;
        Ok(snapshot.view.state(at)?.account(address)?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::World;
    use crate::state::{AccountChange, StateChanges};
    use crate::test_chain::{account, address, word};
    use node_types::consensus::EMPTY_ROOT;
    use node_types::keccak256;

    #[test]
    fn reads_at_any_block() {
        let world = World::new();
        let code = Bytes::from_static(&[0x60, 0x00]);
        world.change(account(1, 3, 100, &[(1, 7)]));
        let contract = AccountState { nonce: 1, balance: 90.into(), code_hash: keccak256(&code) };
        let change = AccountChange { account: Some(contract), ..AccountChange::default() };
        world.change(StateChanges {
            accounts: [(address(1), change)].into(),
            code: [(contract.code_hash, code.clone())].into(),
        });
        let (node, context) = (&world.node, Context::unbounded());
        // Block; nonce, balance, slot 1, code.
        let cases = [
            (BlockId::earliest(), 0, 0, 0, Bytes::new()),
            (BlockId::number(1), 3, 100, 7, Bytes::new()),
            (BlockId::latest(), 1, 90, 7, code.clone()),
            (BlockId::pending(), 1, 90, 7, code.clone()),
        ];
        for (block, nonce, balance, slot, code) in cases {
            let value = node.get_storage_at(&context, address(1), word(1), block).unwrap();
            assert_eq!(value, slot.into(), "{block}");
            assert_eq!(node.get_code(&context, address(1), block).unwrap(), code, "{block}");
            assert_eq!(node.get_balance(&context, address(1), block).unwrap(), balance.into(), "{block}");
            assert_eq!(node.get_transaction_count(&context, address(1), block).unwrap(), nonce, "{block}");
            match node.get_account(&context, address(1), block) {
                Ok(account) => {
                    assert_eq!((account.nonce, account.balance), (nonce, balance.into()), "{block}");
                    assert_eq!(account.code_hash, keccak256(&code), "{block}");
                    assert_eq!(account.storage_root == EMPTY_ROOT, slot == 0, "{block}");
                }
                Err(NodeError::Invalid(_)) => assert_eq!(block, BlockId::pending()),
                Err(error) => panic!("{block}: {error:?}"),
            }
        }
    }
}
