//! Reads of one account.

use super::{Node, NodeError};
use crate::context::Context;
use crate::state::AccountState;
use node_types::consensus::{Account, EMPTY_ROOT};
use node_types::wire::{
    Data, ErrorDetail, GetAccountOutput, GetBalanceOutput, GetCodeOutput, GetStorageAtInput, GetStorageAtOutput,
    Quantity, TransactionCountOutput, Word,
};
use node_types::{Address, BlockId, Bytes};

impl Node {
    /// The value of a storage slot.
    pub fn get_storage_at(&self, context: &Context, input: GetStorageAtInput) -> Result<GetStorageAtOutput, NodeError> {
        let snapshot = self.snapshot_for(context, input.block_number)?;
        let at = snapshot.state(input.block_number, "body.BlockNumber")?;
        let value = snapshot.view.state(at)?.storage(input.address.0, input.position.0)?;
        Ok(GetStorageAtOutput { value: Word(value) })
    }

    /// The balance of an account.
    pub fn get_balance(
        &self,
        context: &Context,
        address: Address,
        block: BlockId,
    ) -> Result<GetBalanceOutput, NodeError> {
        let account = self.account(context, address, block, "query.BlockNumber")?;
        Ok(GetBalanceOutput { balance: Quantity(account.balance) })
    }

    /// The code of an account; empty where there is none.
    pub fn get_code(&self, context: &Context, address: Address, block: BlockId) -> Result<GetCodeOutput, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let at = snapshot.state(block, "query.BlockNumber")?;
        let state = snapshot.view.state(at)?;
        let code = match state.account(address)? {
            Some(account) if account.has_code() => state.code(account.code_hash)?.unwrap_or_default(),
            _ => Bytes::new(),
        };
        Ok(GetCodeOutput { bytecode: Data(code) })
    }

    /// The nonce of an account. At `pending` it counts the pool's pending transactions, also those that no longer fit
    /// into the pending block.
    pub fn get_transaction_count(
        &self,
        context: &Context,
        address: Address,
        block: BlockId,
    ) -> Result<TransactionCountOutput, NodeError> {
        let (mined, in_pool) = match block {
            pending if pending.is_pending() => (BlockId::latest(), self.pool.nonce(address)),
            mined => (mined, None),
        };
        let nonce = self.account(context, address, mined, "path.BlockNumber")?.nonce;
        Ok(TransactionCountOutput { transaction_count: Quantity(nonce.max(in_pool.unwrap_or(0))) })
    }

    /// An account with the root of its storage, which `pending` does not have.
    pub fn get_account(
        &self,
        context: &Context,
        address: Address,
        block: BlockId,
    ) -> Result<GetAccountOutput, NodeError> {
        if block.is_pending() {
            let fault = ErrorDetail::new("path.BlockNumber", "the pending block has no storage roots");
            return Err(NodeError::Invalid(vec![fault.with_value(&block)]));
        }
        let snapshot = self.snapshot_for(context, block)?;
        let at = snapshot.state(block, "path.BlockNumber")?;
        let account = snapshot.view.state(at)?.proof(address, &[])?.account.unwrap_or_else(|| {
            let AccountState { nonce, balance, code_hash } = AccountState::default();
            Account { nonce, balance, code_hash, storage_root: EMPTY_ROOT }
        });
        Ok(GetAccountOutput {
            balance: Quantity(account.balance),
            code_hash: Data(account.code_hash),
            nonce: Quantity(account.nonce),
            storage_root: Data(account.storage_root),
        })
    }

    /// An account; the empty one where it does not exist.
    fn account(
        &self,
        context: &Context,
        address: Address,
        block: BlockId,
        location: &'static str,
    ) -> Result<AccountState, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let at = snapshot.state(block, location)?;
        Ok(snapshot.view.state(at)?.account(address)?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::World;
    use crate::state::{AccountChange, StateChanges};
    use crate::test_chain::{account, address, word};
    use node_types::keccak256;
    use node_types::wire::StorageKey;

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
            let input =
                GetStorageAtInput { address: Data(address(1)), block_number: block, position: StorageKey(word(1)) };
            assert_eq!(node.get_storage_at(&context, input).unwrap().value.0, slot.into(), "{block}");
            assert_eq!(node.get_code(&context, address(1), block).unwrap().bytecode.0, code, "{block}");
            assert_eq!(node.get_balance(&context, address(1), block).unwrap().balance.0, balance.into(), "{block}");
            let count = node.get_transaction_count(&context, address(1), block).unwrap();
            assert_eq!(count.transaction_count.0, nonce, "{block}");
            match node.get_account(&context, address(1), block) {
                Ok(account) => {
                    assert_eq!((account.nonce.0, account.balance.0), (nonce, balance.into()), "{block}");
                    assert_eq!(account.code_hash.0, keccak256(&code), "{block}");
                    assert_eq!(account.storage_root.0 == EMPTY_ROOT, slot == 0, "{block}");
                }
                Err(NodeError::Invalid(_)) => assert_eq!(block, BlockId::pending()),
                Err(error) => panic!("{block}: {error:?}"),
            }
        }
    }
}
