//! Balances and allowances of tokens (ERC-20) that are set by hand, where the node makes its chain itself.

use super::{Node, NodeError};
use crate::call::Call;
use crate::context::Context;
use crate::overrides::{AccountOverride, StorageOverride};
use node_types::wire::BlockArgument;
use node_types::{Address, Bytes, H256, U256};

/// Of so many slots that a token reads is tried whether they decide what it answers.
const MAX_SLOTS: usize = 64;

/// Selector of `balanceOf(address)`.
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];

/// Selector of `allowance(address,address)`.
const ALLOWANCE: [u8; 4] = [0xdd, 0x62, 0xed, 0x3e];

impl Node {
    /// Makes a token say that `owner` has `amount` of it.
    ///
    /// What is set is the storage slot that decides it, which is searched among those that the token reads. Tokens that
    /// work a balance out of more than one slot, or keep it packed with others, have none.
    pub fn set_token_balance(
        &self,
        context: &Context,
        token: Address,
        owner: Address,
        amount: U256,
    ) -> Result<(), NodeError> {
        self.set_answer(context, token, question(BALANCE_OF, &[owner]), amount)
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
        self.set_answer(context, token, question(ALLOWANCE, &[owner, spender]), amount)
    }

    /// Sets the storage slot that decides what `contract` answers to `input`.
    fn set_answer(&self, context: &Context, contract: Address, input: Bytes, answer: U256) -> Result<(), NodeError> {
        let producer = self.controlled()?;
        let call = Call { to: Some(contract), input, ..Call::default() };
        let is_told = |call: &Call| match self.run_call(context, call, BlockArgument::Latest) {
            Ok(output) => Ok(output[..] == answer.to_big_endian()),
            // Another slot than that, without which the contract does not answer.
            Err(NodeError::ExecutionReverted { .. } | NodeError::ExecutionFailed { .. }) => Ok(false),
            Err(error) => Err(error),
        };
        // Any slot would seem to decide what is so already.
        if is_told(&call)? {
            return Ok(());
        }
        let read = self.create_access_list(context, BlockArgument::Latest, &call)?.access_list;
        let slots = read.iter().flat_map(|item| item.storage_keys.iter().map(|slot| (item.address, *slot)));
        for (address, slot) in slots.take(MAX_SLOTS) {
            context.check()?;
            if is_told(&with_slot(&call, address, slot, answer))? {
                return producer.set_storage(address, slot, answer).map_err(NodeError::from);
            }
        }
        Err(NodeError::ExecutionFailed { reason: format!("no storage slot alone decides what {contract:#x} answers") })
    }
}

/// The call data of a question about accounts.
fn question(selector: [u8; 4], accounts: &[Address]) -> Bytes {
    let words = accounts.iter().flat_map(|account| H256::from(*account).0);
    selector.into_iter().chain(words).collect::<Vec<_>>().into()
}

/// `call` where a slot holds `value`.
fn with_slot(call: &Call, address: Address, slot: H256, value: U256) -> Call {
    let storage = StorageOverride::Patch([(slot, value)].into());
    let overrides = [(address, AccountOverride { storage, ..AccountOverride::default() })].into();
    Call { overrides, ..call.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_chain::address;

    #[test]
    fn questions_are_encoded() {
        let selector = |signature: &[u8]| node_types::keccak256(signature).0[..4].to_vec();
        assert_eq!(selector(b"balanceOf(address)"), BALANCE_OF);
        assert_eq!(selector(b"allowance(address,address)"), ALLOWANCE);
        let asked = question(ALLOWANCE, &[address(1), address(2)]);
        assert_eq!((asked.len(), &asked[..4], &asked[16..36]), (68, &ALLOWANCE[..], address(1).as_bytes()));
    }
}
