//! Accounts, storage and proofs.

use crate::error::RpcError;
use crate::method::Method;
use crate::options::with_option;
use crate::parameters::nth;
use crate::scope::Scope;
use crate::wire::{BlockParam, Hex, Proof, Slot};
use node_core::cost::Cost;
use node_core::node::Limit;
use node_types::wire::{AddressData, BytesData, Data, HashData, Word};
use node_types::{H256, U256};
use serde::Serialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "eth_getBalance",
            &["address", "block?"],
            "The balance of an account in wei.",
            |scope, (address, block): (AddressData, BlockParam)| balance(scope, address, block),
        ),
        Method::new(
            "eth_getTransactionCount",
            &["address", "block?"],
            "The nonce of an account; `pending` includes the transactions of the pool.",
            |scope, (address, block): (AddressData, BlockParam)| nonce(scope, address, block),
        ),
        Method::new(
            "eth_getCode",
            &["address", "block?"],
            "The code of an account.",
            |scope, (address, block): (AddressData, BlockParam)| code(scope, address, block),
        ),
        Method::new(
            "eth_getAccountInfo",
            &["address", "block?"],
            "Balance, nonce and code of an account.",
            |scope, (address, block): (AddressData, BlockParam)| {
                Ok(AccountInfo {
                    balance: balance(scope, address, block)?,
                    nonce: nonce(scope, address, block)?,
                    code: code(scope, address, block)?,
                })
            },
        ),
        Method::new(
            "eth_getAccount",
            &["address", "block?"],
            "An account with its storage root and code hash.",
            |scope, (address, block): (AddressData, BlockParam)| {
                let found = scope.node.get_account(scope.context, address.0, block.0)?;
                Ok(Account {
                    balance: Hex(found.balance),
                    code_hash: Data(found.code_hash),
                    nonce: Hex(found.nonce),
                    storage_root: Data(found.storage_root),
                })
            },
        )
        .costing(|node, _| Cost::of_proof(node.proves_quickly(), 0)),
        Method::new(
            "eth_getStorageAt",
            &["address", "slot", "block?"],
            "The value of a storage slot.",
            |scope, (address, slot, block): (AddressData, Slot, BlockParam)| storage(scope, address, slot.key, block),
        ),
        Method::new(
            "eth_getStorageValues",
            &["slots", "block?"],
            "The values of several storage slots by account.",
            storage_values,
        )
        .long(),
        Method::new(
            "eth_getProof",
            &["address", "slots", "block?"],
            "An account and storage slots with their Merkle proofs (EIP-1186).",
            |scope, (address, slots, block): (AddressData, Vec<Slot>, BlockParam)| {
                let keys: Vec<_> = slots.iter().map(|slot| slot.key).collect();
                let proof = scope.node.get_proof(scope.context, address.0, &keys, block.0)?;
                Ok(Proof::new(address.0, proof, &slots))
            },
        )
        .costing(|node, parameters| Cost::of_proof(node.proves_quickly(), number_of_slots(parameters))),
    ]
}

/// Returns the number of slots in the parameters of eth_getProof, or `usize::MAX` if they are invalid.
fn number_of_slots(parameters: &str) -> usize {
    nth(parameters, 1).map_or(usize::MAX, |slots: Vec<IgnoredAny>| slots.len())
}

/// The result of eth_getAccountInfo.
#[derive(Serialize)]
struct AccountInfo {
    balance: Hex<U256>,
    nonce: Hex<u64>,
    code: BytesData,
}

/// The result of eth_getAccount.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Account {
    balance: Hex<U256>,
    code_hash: HashData,
    nonce: Hex<u64>,
    storage_root: HashData,
}

fn balance(scope: Scope<'_>, address: AddressData, block: BlockParam) -> Result<Hex<U256>, RpcError> {
    Ok(Hex(scope.node.get_balance(scope.context, address.0, block.0)?))
}

fn nonce(scope: Scope<'_>, address: AddressData, block: BlockParam) -> Result<Hex<u64>, RpcError> {
    Ok(Hex(scope.node.get_transaction_count(scope.context, address.0, block.0)?))
}

fn code(scope: Scope<'_>, address: AddressData, block: BlockParam) -> Result<BytesData, RpcError> {
    Ok(Data(scope.node.get_code(scope.context, address.0, block.0)?))
}

fn storage(scope: Scope<'_>, address: AddressData, key: H256, block: BlockParam) -> Result<Word, RpcError> {
    Ok(Word(scope.node.get_storage_at(scope.context, address.0, key, block.0)?))
}

fn storage_values(
    scope: Scope<'_>,
    (slots, block): (BTreeMap<AddressData, Vec<Slot>>, BlockParam),
) -> Result<BTreeMap<AddressData, Vec<Word>>, RpcError> {
    let count: usize = slots.values().map(Vec::len).sum();
    let limit = scope.node.limits().storage_keys;
    if count == 0 {
        return Err(RpcError::new(RpcError::INVALID_PARAMS, "empty request"));
    }
    if count > limit {
        let message =
            with_option(format!("too many slots: {count}, at most {limit} are allowed"), Some(Limit::StorageKeys));
        return Err(RpcError::new(RpcError::LIMIT, message));
    }
    let values = |(address, slots): (AddressData, Vec<Slot>)| {
        let values = slots.into_iter().map(|slot| storage(scope, address, slot.key, block));
        Ok((address, values.collect::<Result<_, _>>()?))
    };
    slots.into_iter().map(values).collect()
}
