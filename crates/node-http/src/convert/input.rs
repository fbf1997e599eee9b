//! Pure functions that convert inputs of the interface to domain values.

use node_core::backend::LogFilter;
use node_core::executor::{AccountOverride, Call, StateOverrides, StorageOverride};
use node_core::node::{AboveHead, BlockRange, FeeHistory, Limit, LogBlocks, LogQuery, Node, TransactionRequest};
use node_core::producer::{Producer, ProducerError};
use node_types::consensus::{AccessListItem, Authorization, Withdrawal};
use node_types::wire::{
    self, CallInput, FilterObject, GetLogsInput, HashData, ListLimit, Quantity256, RequestLimits, UnsignedTransaction,
};
use node_types::{H256, U256};

/// The size of prices that an executor must support.
const PRICE_BITS: usize = 128;

/// Returns the limits that the decoder of a request checks.
pub(crate) fn limits(node: &Node) -> RequestLimits {
    let limits = node.limits();
    let list = |most, limit: Limit| ListLimit { most, option: limit.has_option().then(|| limit.name()) };
    RequestLimits {
        addresses: list(limits.addresses, Limit::Addresses),
        topics: list(limits.topics, Limit::Topics),
        storage_keys: list(limits.storage_keys, Limit::StorageKeys),
        percentiles: list(limits.percentiles, Limit::Percentiles),
        fee_history_blocks: FeeHistory::MAX_BLOCKS,
        mined_blocks: Producer::MAX_BLOCKS,
        last_timestamp: ProducerError::LAST_TIMESTAMP,
        price_bits: PRICE_BITS,
    }
}

/// Converts the call of `call` and `estimateGas` with its overrides. The decoder has already rejected a gas price
/// together with fee caps.
pub(crate) fn call(input: CallInput) -> Call {
    let overrides: StateOverrides =
        input.overrides().into_iter().map(|(address, account)| (address, account_override(account))).collect();
    let transaction = input.transaction;
    let number = |number: Option<Quantity256>| number.unwrap_or_default().0;
    let tip = transaction.max_priority_fee_per_gas;
    let has_caps = tip.is_some() || transaction.max_fee_per_gas.is_some();
    let authorizations = transaction.authorization_list.unwrap_or_default();
    Call {
        from: transaction.from.unwrap_or_default().0,
        to: transaction.to.map(|to| to.0),
        gas: transaction.gas.map(|gas| gas.0),
        gas_price: number(transaction.gas_price.or(transaction.max_fee_per_gas)),
        max_priority_fee_per_gas: has_caps.then(|| number(tip)),
        value: number(transaction.value),
        input: transaction.data.unwrap_or_default().0,
        nonce: transaction.nonce.map(|nonce| nonce.0),
        access_list: transaction.access_list.unwrap_or_default().into_iter().map(access_list_item).collect(),
        max_fee_per_blob_gas: number(transaction.max_fee_per_blob_gas),
        blob_versioned_hashes: hashes(transaction.blob_versioned_hashes.unwrap_or_default()),
        authorization_list: authorizations.into_iter().map(authorization).collect(),
        overrides,
        ..Call::default()
    }
}

fn hashes(hashes: Vec<HashData>) -> Vec<H256> {
    hashes.into_iter().map(|hash| hash.0).collect()
}

fn access_list_item(item: wire::AccessListItem) -> AccessListItem {
    AccessListItem { address: item.address.0, storage_keys: hashes(item.storage_keys) }
}

fn authorization(authorization: wire::Authorization) -> Authorization {
    Authorization {
        chain_id: authorization.chain_id.0,
        address: authorization.address.0,
        nonce: authorization.nonce.0,
        // Any parity other than 0 and 1 is invalid.
        y_parity: u8::try_from(authorization.v.0).unwrap_or(u8::MAX),
        r: authorization.r.0,
        s: authorization.s.0,
    }
}

/// Converts an override. The decoder has already rejected overrides with both `State` and `StateDiff`.
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

/// What getLogs does about a range above the head.
pub(crate) const ABOVE_HEAD: AboveHead = AboveHead::Poll;

/// Converts the query of `getLogs`. The decoder has already rejected `BlockHash` together with a range.
pub(crate) fn log_query(input: GetLogsInput) -> LogQuery {
    let GetLogsInput { address, block_hash, from_block, to_block, topics } = input;
    let range = LogBlocks::Range(BlockRange { from: from_block, to: to_block });
    let topics = topics.into_iter().map(|topic| topic.0).collect();
    LogQuery {
        filter: LogFilter { addresses: address.0, topics },
        blocks: block_hash.map_or(range, |hash| LogBlocks::Hash(hash.0)),
        above_head: ABOVE_HEAD,
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
    use node_types::wire::{Data, EstimateGasObject, Quantity, StorageSlots, TransactionCall, Word};
    use node_types::{Address, Bytes};

    #[test]
    fn converts_calls() {
        let convert = |transaction| call(CallInput { transaction, ..CallInput::default() });
        let transaction = TransactionCall {
            data: Some(Data(vec![1, 2].into())),
            from: Some(Data(Address::repeat_byte(1))),
            gas: Some(Quantity(60_000_000)),
            gas_price: Some(Quantity(7.into())),
            to: Some(Data(Address::repeat_byte(2))),
            value: Some(Quantity(8.into())),
            ..TransactionCall::default()
        };
        let plain = convert(transaction.clone());
        assert_eq!((plain.from, plain.to), (Address::repeat_byte(1), Some(Address::repeat_byte(2))));
        assert_eq!((plain.gas, plain.gas_price, plain.value), (Some(60_000_000), 7.into(), 8.into()));
        assert_eq!((plain.input, plain.max_priority_fee_per_gas), (Bytes::from(vec![1, 2]), None));
        let item = wire::AccessListItem {
            address: Data(Address::repeat_byte(3)),
            storage_keys: vec![Data(H256::repeat_byte(4))],
        };
        let signed = wire::Authorization {
            address: Data(Address::repeat_byte(5)),
            chain_id: Quantity(6.into()),
            nonce: Quantity(7),
            r: Word(8.into()),
            s: Word(9.into()),
            v: Quantity(1),
        };
        let typed = convert(TransactionCall {
            access_list: Some(vec![item]),
            authorization_list: Some(vec![signed]),
            blob_versioned_hashes: Some(vec![Data(H256::repeat_byte(10))]),
            gas_price: None,
            max_fee_per_blob_gas: Some(Quantity(11.into())),
            max_fee_per_gas: Some(Quantity(12.into())),
            max_priority_fee_per_gas: Some(Quantity(13.into())),
            nonce: Some(Quantity(14)),
            ..transaction.clone()
        });
        let item = AccessListItem { address: Address::repeat_byte(3), storage_keys: vec![H256::repeat_byte(4)] };
        assert_eq!(typed.access_list, [item]);
        let signed = Authorization {
            chain_id: 6.into(),
            address: Address::repeat_byte(5),
            nonce: 7,
            y_parity: 1,
            r: 8.into(),
            s: 9.into(),
        };
        assert_eq!(typed.authorization_list, [signed]);
        assert_eq!(typed.blob_versioned_hashes, [H256::repeat_byte(10)]);
        let fees = (typed.max_fee_per_blob_gas, typed.gas_price, typed.max_priority_fee_per_gas, typed.nonce);
        assert_eq!(fees, (11.into(), 12.into(), Some(13.into()), Some(14)));
        let tip = Some(Quantity(2.into()));
        let tip = convert(TransactionCall { gas_price: None, max_priority_fee_per_gas: tip, ..transaction });
        assert_eq!((tip.gas_price, tip.max_priority_fee_per_gas), (0.into(), Some(2.into())));
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
            let input = CallInput { object, transaction, ..CallInput::default() };
            let expected: StateOverrides =
                expected.into_iter().map(|(account, change)| (Address::repeat_byte(account), change)).collect();
            assert_eq!(call(input.clone()).overrides, expected, "{input:?}");
        }
    }
}
