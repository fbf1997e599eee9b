//! Control of development chains, which the node produces itself, and the balances and allowances of ERC-20 tokens on
//! them.

use super::{Node, NodeError};
use crate::block::BlockRef;
use crate::context::Context;
use crate::executor::{AccountOverride, Call, StorageOverride};
use crate::producer::{ForkBlock, ProducerError};
use node_types::consensus::{AccessListItem, Withdrawal};
use node_types::{Address, BlockId, Bytes, H256, U256, keccak256};
use std::collections::BTreeSet;

/// Selector of `balanceOf(address)`.
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];

/// Selector of `allowance(address,address)`.
const ALLOWANCE: [u8; 4] = [0xdd, 0x62, 0xed, 0x3e];

pub(super) fn mine(
    node: &Node,
    context: &Context,
    blocks: u64,
    interval: Option<u64>,
    withdrawals: Vec<Withdrawal>,
) -> Result<BlockRef, NodeError> {
    let mined = node.control(context)?.mine_in(context, blocks, interval, withdrawals)?;
    match mined.last() {
        Some(head) => Ok(*head),
        None => Ok(node.snapshot(context)?.view.head()),
    }
}

pub(super) fn revert(node: &Node, context: &Context, snapshot: u64) -> Result<bool, NodeError> {
    match node.control(context)?.revert(snapshot) {
        Ok(()) => Ok(true),
        Err(ProducerError::UnknownSnapshot(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn fork_again(
    node: &Node,
    context: &Context,
    url: Option<&str>,
    block: Option<ForkBlock>,
) -> Result<BlockRef, NodeError> {
    let producer = node.control(context)?;
    let fork = node.fork.as_ref().ok_or(ProducerError::NotAFork)?;
    Ok(producer.reset_onto(fork.prepare(context, url, block)?)?)
}

pub(super) fn drop_transaction(node: &Node, context: &Context, hash: H256) -> Result<bool, NodeError> {
    node.control(context)?;
    Ok(node.pool.remove(hash)?)
}

pub(super) fn set_token_balance(
    node: &Node,
    context: &Context,
    token: Address,
    owner: Address,
    amount: U256,
) -> Result<(), NodeError> {
    node.set_output(context, token, call_data_and_others(BALANCE_OF, &[owner]), amount)
}

pub(super) fn set_token_allowance(
    node: &Node,
    context: &Context,
    token: Address,
    owner: Address,
    spender: Address,
    amount: U256,
) -> Result<(), NodeError> {
    node.set_output(context, token, call_data_and_others(ALLOWANCE, &[owner, spender]), amount)
}

impl Node {
    /// Sets the storage slot that determines what `contract` returns for the call data `asked`. Slots that are also
    /// read for the call data `others` are not considered.
    fn set_output(
        &self,
        context: &Context,
        contract: Address,
        [asked, others]: [Bytes; 2],
        wanted: U256,
    ) -> Result<(), NodeError> {
        let producer = self.control(context)?;
        let call = Call { to: Some(contract), input: asked, ..Call::default() };
        let number = |output: &[u8]| (output.len() == 32).then(|| U256::from_big_endian(output));
        let output = number(&self.call(context, &call, BlockId::latest())?);
        let output = output.ok_or_else(|| failed(format!("{contract:#x} does not return a number, as tokens do")))?;
        if output == wanted {
            return Ok(());
        }
        let output_with =
            |slot: &Slot, value: U256| match self.call(context, &with(&call, slot, value), BlockId::latest()) {
                Ok(output) => Ok(number(&output)),
                // With a different value in this slot, the contract fails.
                Err(
                    NodeError::ExecutionReverted { .. } | NodeError::ExecutionFailed { .. } | NodeError::CallRefused(_),
                ) => Ok(None),
                Err(error) => Err(error),
            };
        let of_all = self.slots_read(context, &Call { input: others, ..call.clone() })?;
        for slot in self.slots_read(context, &call)?.difference(&of_all) {
            context.check()?;
            // The returned bits must be the lowest ones; the others contain other data and are kept.
            let Some(bits) = output_with(slot, U256::MAX)? else { continue };
            let are_lowest = bits & bits.overflowing_add(U256::one()).0 == U256::zero();
            if !are_lowest || wanted & !bits != U256::zero() {
                continue;
            }
            let (address, key) = *slot;
            let value = self.get_storage_at(context, address, key, BlockId::latest())? & !bits | wanted;
            if output_with(slot, value)? == Some(wanted) {
                return producer.set_storage(address, key, value).map_err(NodeError::from);
            }
        }
        Err(failed(format!("no single storage slot determines what {contract:#x} returns")))
    }

    /// Returns the storage slots that a call reads.
    fn slots_read(&self, context: &Context, call: &Call) -> Result<BTreeSet<Slot>, NodeError> {
        let read = self.create_access_list(context, call, BlockId::latest())?.access_list;
        let slots = |item: AccessListItem| item.storage_keys.into_iter().map(move |key| (item.address, key));
        Ok(read.into_iter().flat_map(slots).collect())
    }
}

/// A storage slot of an account.
type Slot = (Address, H256);

fn failed(reason: String) -> NodeError {
    NodeError::execution_failed(reason)
}

/// Returns the call data of a method that takes addresses.
fn call_data(selector: [u8; 4], accounts: &[Address]) -> Bytes {
    let words = accounts.iter().flat_map(|account| H256::from(*account).0);
    selector.into_iter().chain(words).collect::<Vec<_>>().into()
}

/// Returns the call data of a method for these addresses, and for unrelated ones.
fn call_data_and_others(selector: [u8; 4], accounts: &[Address]) -> [Bytes; 2] {
    let others: Vec<_> = accounts.iter().map(|account| Address::from(keccak256(account.as_bytes()))).collect();
    [call_data(selector, accounts), call_data(selector, &others)]
}

/// Returns `call` with `value` in a storage slot.
fn with(call: &Call, (address, key): &Slot, value: U256) -> Call {
    let storage = StorageOverride::Patch([(*key, value)].into());
    let overrides = [(*address, AccountOverride { storage, ..AccountOverride::default() })].into();
    Call { overrides, ..call.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_chain::address;

    #[test]
    fn encodes_call_data() {
        let selector = |signature: &[u8]| keccak256(signature).0[..4].to_vec();
        assert_eq!(selector(b"balanceOf(address)"), BALANCE_OF);
        assert_eq!(selector(b"allowance(address,address)"), ALLOWANCE);
        let asked = call_data(ALLOWANCE, &[address(1), address(2)]);
        assert_eq!((asked.len(), &asked[..4], &asked[16..36]), (68, &ALLOWANCE[..], address(1).as_bytes()));
    }
}
