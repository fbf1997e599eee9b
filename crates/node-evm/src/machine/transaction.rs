//! Conversion of transactions and calls to revm's form.

use crate::convert::{ToEvm, saturating_price};
use crate::recovery::Secp256k1Recovery;
use node_core::block::RecoveredTransaction;
use node_core::crypto::SenderRecovery;
use node_core::executor::Call;
use node_core::protocol::Fork;
use node_types::consensus::{AccessListItem, Authorization, TransactionBody, TransactionType};
use revm::context::TxEnv;
use revm::context_interface::either::Either;
use revm::context_interface::transaction as evm;
use revm::primitives::TxKind;

/// Converts a transaction. Prices above 128 bits saturate. This is safe, because fee caps that high have already been
/// refused, and a tip that high exceeds its fee cap.
pub(crate) fn to_evm(transaction: &RecoveredTransaction) -> TxEnv {
    let body = &transaction.transaction.body;
    let max_fee_per_blob_gas = match body {
        TransactionBody::Blob(body) => saturating_price(body.max_fee_per_blob_gas),
        _ => 0,
    };
    let gas_priority_fee = match body {
        TransactionBody::Legacy(_) | TransactionBody::AccessList(_) => None,
        _ => Some(saturating_price(body.max_priority_fee_per_gas())),
    };
    TxEnv {
        tx_type: body.transaction_type() as u8,
        caller: transaction.sender.to_evm(),
        gas_limit: body.gas_limit(),
        gas_price: saturating_price(body.max_fee_per_gas()),
        kind: body.to().map_or(TxKind::Create, |to| TxKind::Call(to.to_evm())),
        value: body.value().to_evm(),
        data: body.input().to_evm(),
        nonce: body.nonce(),
        chain_id: body.chain_id(),
        access_list: access_list(body.access_list()),
        gas_priority_fee,
        blob_hashes: body.blob_versioned_hashes().iter().map(ToEvm::to_evm).collect(),
        max_fee_per_blob_gas,
        authorization_list: authorizations(body.authorization_list()),
    }
}

/// Converts a call under the rules of `fork`. The result has no gas limit and no nonce.
pub(crate) fn of_call(call: &Call, fork: Fork, chain_id: u64) -> TxEnv {
    let tx_type = call.transaction_type(fork);
    let has_caps = !matches!(tx_type, TransactionType::Legacy | TransactionType::AccessList);
    TxEnv {
        tx_type: tx_type as u8,
        caller: call.from.to_evm(),
        gas_price: saturating_price(call.gas_price),
        gas_priority_fee: has_caps.then(|| saturating_price(call.tip_cap())),
        kind: call.to.map_or(TxKind::Create, |to| TxKind::Call(to.to_evm())),
        value: call.value.to_evm(),
        data: call.input.to_evm(),
        // revm requires a chain id for all types but legacy.
        chain_id: Some(chain_id),
        access_list: access_list(&call.access_list),
        blob_hashes: call.blob_versioned_hashes.iter().map(ToEvm::to_evm).collect(),
        max_fee_per_blob_gas: saturating_price(call.max_fee_per_blob_gas),
        authorization_list: authorizations(&call.authorization_list),
        ..TxEnv::default()
    }
}

fn authorizations(list: &[Authorization]) -> Vec<Either<evm::SignedAuthorization, evm::RecoveredAuthorization>> {
    list.iter().map(|item| Either::Right(authorization(item))).collect()
}

fn access_list(items: &[AccessListItem]) -> evm::AccessList {
    let item = |item: &AccessListItem| evm::AccessListItem {
        address: item.address.to_evm(),
        storage_keys: item.storage_keys.iter().map(ToEvm::to_evm).collect(),
    };
    evm::AccessList(items.iter().map(item).collect())
}

/// Converts an authorization and recovers its authority. revm skips it if the signature is invalid (EIP-7702).
fn authorization(item: &Authorization) -> evm::RecoveredAuthorization {
    let authority = match Secp256k1Recovery.authority(item) {
        Ok(authority) => evm::RecoveredAuthority::Valid(authority.to_evm()),
        Err(_) => evm::RecoveredAuthority::Invalid,
    };
    evm::RecoveredAuthorization::new_unchecked(
        evm::Authorization { chain_id: item.chain_id.to_evm(), address: item.address.to_evm(), nonce: item.nonce },
        authority,
    )
}
