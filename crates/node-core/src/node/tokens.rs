//! Balances and allowances of tokens (ERC-20) that are set by hand, where the node makes its chain itself.

use super::{Node, NodeError};
use crate::call::Call;
use crate::context::Context;
use crate::overrides::{AccountOverride, StorageOverride};
use node_types::consensus::AccessListItem;
use node_types::wire::{Data, GetStorageAtInput, StorageKey};
use node_types::{Address, BlockId, Bytes, H256, U256, keccak256};
use std::collections::BTreeSet;

/// Selector of `balanceOf(address)`.
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];

/// Selector of `allowance(address,address)`.
const ALLOWANCE: [u8; 4] = [0xdd, 0x62, 0xed, 0x3e];

impl Node {
    /// Makes a token say that `owner` has `amount` of it.
    ///
    /// What is set is the storage slot that decides it, which is searched among those that the token reads for this owner
    /// alone. Where it holds more in its upper bits, these stay. Tokens that work a balance out in another way have none.
    pub fn set_token_balance(
        &self,
        context: &Context,
        token: Address,
        owner: Address,
        amount: U256,
    ) -> Result<(), NodeError> {
        self.set_answer(context, token, questions(BALANCE_OF, &[owner]), amount)
    }

    /// Makes a token say that `spender` may spend `amount` of what `owner` has, as
    /// [`set_token_balance`](Self::set_token_balance) does.
    pub fn set_token_allowance(
        &self,
        context: &Context,
        token: Address,
        owner: Address,
        spender: Address,
        amount: U256,
    ) -> Result<(), NodeError> {
        self.set_answer(context, token, questions(ALLOWANCE, &[owner, spender]), amount)
    }

    /// Sets the storage slot that decides what `contract` answers to `asked`, and to nothing that `others` ask too.
    fn set_answer(
        &self,
        context: &Context,
        contract: Address,
        [asked, others]: [Bytes; 2],
        wanted: U256,
    ) -> Result<(), NodeError> {
        let producer = self.controlled()?;
        let call = Call { to: Some(contract), input: asked, ..Call::default() };
        let number = |output: &[u8]| (output.len() == 32).then(|| U256::from_big_endian(output));
        let answer = number(&self.run_call(context, &call, BlockId::latest())?);
        let answer = answer.ok_or_else(|| failed(format!("{contract:#x} does not answer a number, as tokens do")))?;
        if answer == wanted {
            return Ok(());
        }
        let told = |slot: &Slot, value: U256| match self.run_call(context, &with(&call, slot, value), BlockId::latest())
        {
            Ok(output) => Ok(number(&output)),
            // Without this slot as it is the contract does not answer.
            Err(NodeError::ExecutionReverted { .. } | NodeError::ExecutionFailed { .. }) => Ok(None),
            Err(error) => Err(error),
        };
        let of_all = self.slots_read(context, &Call { input: others, ..call.clone() })?;
        for slot in self.slots_read(context, &call)?.difference(&of_all) {
            context.check()?;
            // Which bits are answered: all, or the lowest ones, where the others mean something else and stay.
            let Some(bits) = told(slot, U256::MAX)? else { continue };
            let are_lowest = bits & bits.overflowing_add(U256::one()).0 == U256::zero();
            if !are_lowest || wanted & !bits != U256::zero() {
                continue;
            }
            let (address, key) = *slot;
            let input = GetStorageAtInput { address: Data(address), position: StorageKey(key), ..Default::default() };
            let value = self.get_storage_at(context, input)?.value.0 & !bits | wanted;
            if told(slot, value)? == Some(wanted) {
                return producer.set_storage(address, key, value).map_err(NodeError::from);
            }
        }
        Err(failed(format!("no storage slot alone decides what {contract:#x} answers")))
    }

    /// The storage slots that a call reads.
    fn slots_read(&self, context: &Context, call: &Call) -> Result<BTreeSet<Slot>, NodeError> {
        let read = self.create_access_list(context, BlockId::latest(), call)?.access_list;
        let slots = |item: AccessListItem| item.storage_keys.into_iter().map(move |key| (item.address, key));
        Ok(read.into_iter().flat_map(slots).collect())
    }
}

/// A storage slot of an account.
type Slot = (Address, H256);

fn failed(reason: String) -> NodeError {
    NodeError::ExecutionFailed { reason }
}

/// The call data of a question about accounts.
fn question(selector: [u8; 4], accounts: &[Address]) -> Bytes {
    let words = accounts.iter().flat_map(|account| H256::from(*account).0);
    selector.into_iter().chain(words).collect::<Vec<_>>().into()
}

/// The call data of a question about accounts, and of the same about others.
fn questions(selector: [u8; 4], accounts: &[Address]) -> [Bytes; 2] {
    let others: Vec<_> = accounts.iter().map(|account| Address::from(keccak256(account.as_bytes()))).collect();
    [question(selector, accounts), question(selector, &others)]
}

/// `call` where a slot holds `value`.
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
    fn questions_are_encoded() {
        let selector = |signature: &[u8]| keccak256(signature).0[..4].to_vec();
        assert_eq!(selector(b"balanceOf(address)"), BALANCE_OF);
        assert_eq!(selector(b"allowance(address,address)"), ALLOWANCE);
        let asked = question(ALLOWANCE, &[address(1), address(2)]);
        assert_eq!((asked.len(), &asked[..4], &asked[16..36]), (68, &ALLOWANCE[..], address(1).as_bytes()));
    }
}
