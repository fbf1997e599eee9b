//! Reads of one account.

use super::{Field, Node, NodeError};
use crate::backend::{BackendError, NotRead};
use crate::context::Context;
use crate::state::AccountState;
use node_types::consensus::Account;
use node_types::{Address, BlockId, Bytes, H256, KECCAK_EMPTY, U256};

pub(super) fn get_storage_at(
    node: &Node,
    context: &Context,
    address: Address,
    slot: H256,
    block: BlockId,
) -> Result<U256, NodeError> {
    let snapshot = node.snapshot_for(context, block)?;
    let at = snapshot.state(block, Field::BlockNumber)?;
    Ok(snapshot.view.state(at)?.storage(address, slot)?)
}

pub(super) fn get_balance(node: &Node, context: &Context, address: Address, block: BlockId) -> Result<U256, NodeError> {
    Ok(node.account(context, address, block)?.balance)
}

pub(super) fn get_code(node: &Node, context: &Context, address: Address, block: BlockId) -> Result<Bytes, NodeError> {
    let snapshot = node.snapshot_for(context, block)?;
    let at = snapshot.state(block, Field::BlockNumber)?;
    let state = snapshot.view.state(at)?;
    match state.account(address)? {
        Some(account) if account.has_code() => Ok(state.code_of_account(account.code_hash)?),
        _ => Ok(Bytes::new()),
    }
}

pub(super) fn get_code_by_hash(
    node: &Node,
    context: &Context,
    hash: H256,
    block: BlockId,
) -> Result<Option<Bytes>, NodeError> {
    let snapshot = node.snapshot_for(context, block)?;
    let at = snapshot.state(block, Field::BlockNumber)?;
    if hash == KECCAK_EMPTY {
        return Ok(Some(Bytes::new()));
    }
    match snapshot.view.state(at)?.code(hash)? {
        // Whether an account has it that was not read is not known.
        None if snapshot.view.is_partial() => {
            Err(BackendError::Upstream(Box::new(NotRead { what: "the code", hash })).into())
        }
        code => Ok(code),
    }
}

pub(super) fn get_transaction_count(
    node: &Node,
    context: &Context,
    address: Address,
    block: BlockId,
) -> Result<u64, NodeError> {
    let (mined, in_pool) = match block {
        pending if pending.is_pending() => (BlockId::latest(), node.pool.nonce(address)),
        mined => (mined, None),
    };
    let nonce = node.account(context, address, mined)?.nonce;
    Ok(nonce.max(in_pool.unwrap_or(0)))
}

pub(super) fn get_account(
    node: &Node,
    context: &Context,
    address: Address,
    block: BlockId,
) -> Result<Account, NodeError> {
    if block.is_pending() {
        return Err(NodeError::invalid(Field::BlockNumber, "the pending block has no storage roots"));
    }
    let snapshot = node.snapshot_for(context, block)?;
    let at = snapshot.state(block, Field::BlockNumber)?;
    Ok(snapshot.view.state(at)?.proof(address, &[])?.account.unwrap_or_default())
}

impl Node {
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
