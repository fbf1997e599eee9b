//! Accounts with keys, and impersonated accounts.

use super::named;
use crate::error::RpcError;
use crate::method::Method;
use crate::methods::transactions::{Waiting, wait_for_receipt};
use crate::scope::Scope;
use crate::typed_data::TypedData;
use crate::wire::{Hex, Object, TransactionRequest};
use node_core::node::NewTransaction;
use node_types::consensus::Signature;
use node_types::wire::{AddressData, BytesData, Data, HashData};
use node_types::{Address, Bytes};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn methods(waiting: &Waiting) -> Vec<Method> {
    let everywhere = ["eth_accounts", "eth_requestAccounts"].map(|name| {
        let about = "The accounts whose keys the node has; empty except on development chains.";
        Method::new(name, &[], about, |scope, ()| Ok(accounts(scope))).by_writer()
    });
    let mut methods = Vec::from(everywhere);
    methods.extend(signing());
    let waiting = waiting.clone();
    let sync = Method::new(
        "eth_sendTransactionSync",
        &["transaction", "timeoutMs?"],
        "As eth_sendTransaction, but returns the receipt once the transaction is mined.",
        move |scope, (Object(request), wait): (Object<TransactionRequest>, Option<Hex<u64>>)| {
            let hash = send(scope, NewTransaction::Request(request.read(0)?))?;
            wait_for_receipt(scope, &waiting, hash.0, wait)
        },
    );
    // Like eth_sendRawTransactionSync, it must not delay reads and other transactions.
    methods.push(sync.controlling().code());
    methods.extend(impersonation());
    methods
}

fn accounts(scope: Scope<'_>) -> Vec<AddressData> {
    let own = scope.node.accounts();
    let known: BTreeSet<_> = own.iter().copied().collect();
    let impersonated = scope.node.producer().map(|producer| producer.impersonated()).unwrap_or_default();
    let others = impersonated.into_iter().filter(|address| !known.contains(address));
    own.iter().copied().chain(others).map(Data).collect()
}

fn signing() -> Vec<Method> {
    [
        named(
            &["eth_sendTransaction"],
            &["transaction"],
            "Completes a transaction, signs it, and adds it to the pool; returns its hash.",
            |scope, (Object(request),): (Object<TransactionRequest>,)| {
                send(scope, NewTransaction::Request(request.read(0)?))
            },
        ),
        named(
            &["eth_sendUnsignedTransaction"],
            &["transaction"],
            "Adds an unsigned transaction of any sender to the pool; returns its hash.",
            |scope, (Object(request),): (Object<TransactionRequest>,)| {
                send(scope, NewTransaction::Unsigned(request.read(0)?))
            },
        ),
        named(
            &["eth_signTransaction"],
            &["transaction"],
            "Completes a transaction and signs it; returns it encoded.",
            |scope, (Object(transaction),): (Object<TransactionRequest>,)| {
                let signed = scope.node.sign_transaction(scope.context, transaction.read(0)?)?;
                Ok(Data(Bytes::from(signed.encode())))
            },
        ),
        named(
            &["eth_sign"],
            &["address", "message"],
            "Signs a personal message (EIP-191).",
            |scope, (address, message): (AddressData, BytesData)| sign(scope, address.0, &message),
        ),
        named(
            &["personal_sign"],
            &["message", "address"],
            "Signs a personal message (EIP-191).",
            |scope, (message, address): (BytesData, AddressData)| sign(scope, address.0, &message),
        ),
        named(
            &["eth_signTypedData_v4", "eth_signTypedData", "eth_signTypedData_v3"],
            &["address", "data"],
            "Signs structured data (EIP-712).",
            |scope, (address, data): (AddressData, Value)| {
                let hash = TypedData::read(data).and_then(TypedData::signing_hash);
                let hash = hash.map_err(|error| RpcError::argument(1, error))?;
                Ok(encoded(&scope.node.sign_hash(address.0, hash)?))
            },
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn impersonation() -> Vec<Method> {
    [
        named(
            &["anvil_impersonateAccount", "hardhat_impersonateAccount"],
            &["address"],
            "Starts impersonating an account: anyone may send transactions from it.",
            |scope, (address,): (AddressData,)| {
                scope.control()?.impersonate(address.0, true)?;
                Ok(())
            },
        ),
        named(
            &["anvil_stopImpersonatingAccount", "hardhat_stopImpersonatingAccount"],
            &["address"],
            "Stops impersonating an account.",
            |scope, (address,): (AddressData,)| {
                scope.control()?.impersonate(address.0, false)?;
                Ok(())
            },
        ),
        named(
            &["anvil_autoImpersonateAccount", "hardhat_autoImpersonateAccount"],
            &["enabled"],
            "Starts or stops impersonating all accounts.",
            |scope, (enabled,): (bool,)| {
                scope.control()?.impersonate_all(enabled);
                Ok(())
            },
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn send(scope: Scope<'_>, transaction: NewTransaction) -> Result<HashData, RpcError> {
    Ok(Data(scope.node.send_transaction(scope.context, transaction)?))
}

fn sign(scope: Scope<'_>, address: Address, message: &[u8]) -> Result<BytesData, RpcError> {
    Ok(encoded(&scope.node.sign_message(address, message)?))
}

/// Encodes a signature as r, s, and the parity as 27 or 28.
fn encoded(signature: &Signature) -> BytesData {
    let mut bytes = Vec::with_capacity(65);
    bytes.extend(signature.r.to_big_endian());
    bytes.extend(signature.s.to_big_endian());
    bytes.push(27 + u8::from(signature.y_parity));
    Data(bytes.into())
}
