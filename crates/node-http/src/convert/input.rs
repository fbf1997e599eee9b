//! From the inputs of the interface to domain values. Pure functions.

use node_core::backend::LogFilter;
use node_core::call::Call;
use node_core::node::{BlockRange, LogBlocks, LogQuery, TransactionRequest};
use node_core::overrides::{AccountOverride, StateOverrides, StorageOverride};
use node_types::consensus::Withdrawal;
use node_types::wire::{self, EstimateGasInput, FilterObject, GetLogsInput, TransactionCall, UnsignedTransaction};
use node_types::{Address, U256};

/// Converts the call of `call`.
pub(crate) fn call(transaction: TransactionCall) -> Call {
    let TransactionCall { data, from, gas, gas_price, to, value } = transaction;
    Call {
        from: from.map_or_else(Address::zero, |from| from.0),
        to: to.map(|to| to.0),
        gas: gas.map(|gas| gas.0),
        gas_price: gas_price.map_or_else(U256::zero, |price| price.0),
        value: value.map_or_else(U256::zero, |value| value.0),
        input: data.unwrap_or_default().0,
        ..Call::default()
    }
}

/// Converts the call of `estimateGas` with its overrides.
pub(crate) fn estimate(input: EstimateGasInput) -> Call {
    let overrides: StateOverrides =
        input.overrides().into_iter().map(|(address, account)| (address, account_override(account))).collect();
    Call { overrides, ..call(input.transaction) }
}

/// The decoder rejects an override with both `State` and `StateDiff`.
fn account_override(account: wire::AccountOverride) -> AccountOverride {
    let wire::AccountOverride { balance, code, nonce, state, state_diff } = account;
    AccountOverride {
        balance: balance.map(|balance| balance.0),
        code: code.map(|code| code.0),
        nonce: nonce.map(|nonce| nonce.0),
        storage: match (state, state_diff) {
            (Some(slots), _) => StorageOverride::Replace(slots.0),
            (None, Some(slots)) => StorageOverride::Patch(slots.0),
            (None, None) => StorageOverride::Keep,
        },
        move_precompile_to: None,
    }
}

/// Converts the query of `getLogs`. The decoder rejects `BlockHash` beside a range.
pub(crate) fn log_query(input: GetLogsInput) -> LogQuery {
    let GetLogsInput { address, block_hash, from_block, to_block, topics } = input;
    let range = LogBlocks::Range(BlockRange { from: from_block, to: to_block });
    let topics = topics.into_iter().map(|topic| topic.0).collect();
    LogQuery {
        filter: LogFilter { addresses: address.0, topics },
        blocks: block_hash.map_or(range, |hash| LogBlocks::Hash(hash.0)),
    }
}

/// Converts the filter of `newFilter`.
pub(crate) fn log_filter(object: FilterObject) -> (LogFilter, BlockRange) {
    let FilterObject { address, from_block, to_block, topics } = object;
    let topics = topics.into_iter().map(|topic| topic.0).collect();
    (LogFilter { addresses: address.0, topics }, BlockRange { from: from_block, to: to_block })
}

/// Converts the transaction of `sendTransaction`.
pub(crate) fn transaction_request(transaction: UnsignedTransaction) -> TransactionRequest {
    let UnsignedTransaction { data, from, gas, max_fee_per_gas, max_priority_fee_per_gas, nonce, to, value } =
        transaction;
    TransactionRequest {
        from: from.0,
        to: to.map(|to| to.0),
        gas: gas.map(|gas| gas.0),
        max_fee_per_gas: max_fee_per_gas.map(|fee| fee.0),
        max_priority_fee_per_gas: max_priority_fee_per_gas.map(|fee| fee.0),
        nonce: nonce.map(|nonce| nonce.0),
        value: value.map_or_else(U256::zero, |value| value.0),
        input: data.unwrap_or_default().0,
        ..TransactionRequest::default()
    }
}

/// Converts a withdrawal.
pub(crate) fn withdrawal(withdrawal: wire::Withdrawal) -> Withdrawal {
    Withdrawal {
        index: withdrawal.index,
        validator_index: withdrawal.validator_index,
        address: withdrawal.address.0,
        amount: withdrawal.amount.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::wire::{Data, EstimateGasObject, Quantity, StorageSlots};
    use node_types::{Bytes, H256};

    #[test]
    fn converts_calls() {
        let transaction = TransactionCall {
            data: Some(Data(vec![1, 2].into())),
            from: Some(Data(Address::repeat_byte(1))),
            gas: Some(Quantity(60_000_000)),
            gas_price: Some(Quantity(7.into())),
            to: Some(Data(Address::repeat_byte(2))),
            value: Some(Quantity(8.into())),
        };
        let call = call(transaction);
        assert_eq!((call.from, call.to), (Address::repeat_byte(1), Some(Address::repeat_byte(2))));
        assert_eq!((call.gas, call.gas_price, call.value), (Some(60_000_000), 7.into(), 8.into()));
        assert_eq!(call.input, Bytes::from(vec![1, 2]));
    }

    #[test]
    fn converts_overrides() {
        let slots = || Some(StorageSlots([(H256::repeat_byte(1), 2.into())].into()));
        let account = wire::AccountOverride {
            balance: Some(Quantity(3.into())),
            code: Some(Data(vec![4].into())),
            nonce: Some(Quantity(5)),
            state: None,
            state_diff: slots(),
        };
        let patch = StorageOverride::Patch(slots().unwrap().0);
        let replace = StorageOverride::Replace(slots().unwrap().0);
        let whole = AccountOverride {
            balance: Some(3.into()),
            code: Some(vec![4].into()),
            nonce: Some(5),
            storage: patch,
            move_precompile_to: None,
        };
        let of_sender = AccountOverride { code: None, storage: StorageOverride::Keep, ..whole.clone() };
        let of_receiver = AccountOverride { balance: None, nonce: None, ..whole.clone() };
        let flat = EstimateGasObject::Flat(account.clone());
        let map = EstimateGasObject::Accounts(
            [(Address::repeat_byte(9), wire::AccountOverride { state: slots(), state_diff: None, ..account })].into(),
        );
        let cases = [
            (None, 1, 2, vec![]),
            (Some(map), 1, 2, vec![(9, AccountOverride { storage: replace, ..whole.clone() })]),
            (Some(flat.clone()), 1, 2, vec![(1, of_sender), (2, of_receiver)]),
            (Some(flat), 1, 1, vec![(1, whole)]),
        ];
        for (object, from, to, expected) in cases {
            let transaction = TransactionCall {
                from: Some(Data(Address::repeat_byte(from))),
                to: Some(Data(Address::repeat_byte(to))),
                ..TransactionCall::default()
            };
            let input = EstimateGasInput { object, transaction };
            let expected: StateOverrides =
                expected.into_iter().map(|(account, change)| (Address::repeat_byte(account), change)).collect();
            assert_eq!(estimate(input.clone()).overrides, expected, "{input:?}");
        }
    }
}
