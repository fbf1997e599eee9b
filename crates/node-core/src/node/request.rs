//! Transactions that the node completes and signs.

use super::{Field, Node, NodeError};
use crate::backend::{LayeredView, View};
use crate::block::RecoveredTransaction;
use crate::context::Context;
use crate::executor::{Call, TransactionError};
use crate::pool::{PoolError, Rejection};
use crate::protocol::fees;
use node_types::consensus::{
    AccessListItem, Authorization, BlobSidecar, PooledTransaction, Signature, Transaction, TransactionBody,
    TransactionType, versioned_hash,
};
use node_types::{Address, Bytes, H256, U256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The fields of a transaction to send. The node fills in fields that are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionRequest {
    /// The type; by default the one that the other fields imply.
    pub transaction_type: Option<TransactionType>,
    /// Id of the chain. Any other than the node's is refused.
    pub chain_id: Option<u64>,
    pub from: Address,
    /// Recipient; `None` to create a contract.
    pub to: Option<Address>,
    /// Gas limit; estimated by default.
    pub gas: Option<u64>,
    /// Gas price in wei per gas, for types 0 and 1.
    pub gas_price: Option<U256>,
    /// Maximum price that the sender pays, in wei per gas.
    pub max_fee_per_gas: Option<U256>,
    /// Maximum tip for the producer, in wei per gas.
    pub max_priority_fee_per_gas: Option<U256>,
    /// Maximum price that the sender pays for blobs, in wei per blob gas.
    pub max_fee_per_blob_gas: Option<U256>,
    /// Nonce; by default the sender's next nonce, counting its transactions in the pool.
    pub nonce: Option<u64>,
    /// Amount to transfer, in wei.
    pub value: U256,
    /// Call data, or creation code.
    pub input: Bytes,
    /// Accounts and storage slots that are warm from the start (EIP-2930).
    pub access_list: Option<Vec<AccessListItem>>,
    /// Versioned hashes of the blobs; by default those of the sidecar.
    pub blob_versioned_hashes: Option<Vec<H256>>,
    /// The blobs with their commitments and proofs.
    pub sidecar: Option<BlobSidecar>,
    /// Delegations to set (EIP-7702).
    pub authorization_list: Option<Vec<Authorization>>,
}

impl TransactionRequest {
    /// Returns the type that the fields imply. `has_base_fee` is whether London is active.
    fn kind(&self, has_base_fee: bool) -> Result<TransactionType, NodeError> {
        let fee_caps = self.max_fee_per_gas.is_some() || self.max_priority_fee_per_gas.is_some();
        if self.gas_price.is_some() && fee_caps {
            return Err(invalid("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified"));
        }
        if fee_caps && !has_base_fee {
            return Err(invalid("fee caps are not valid before London is active"));
        }
        let kind = match self.transaction_type {
            Some(kind) => kind,
            None if self.authorization_list.is_some() => TransactionType::SetCode,
            None if self.blob_versioned_hashes.is_some() || self.sidecar.is_some() => TransactionType::Blob,
            None if self.gas_price.is_none() && has_base_fee => TransactionType::DynamicFee,
            None if self.access_list.is_some() => TransactionType::AccessList,
            None => TransactionType::Legacy,
        };
        let only = |present: bool, allowed: &[TransactionType], name: &str| {
            if present && !allowed.contains(&kind) {
                return Err(invalid(format!("a transaction of type {} has no {name}", kind as u8)));
            }
            Ok(())
        };
        use TransactionType::{AccessList, Blob, DynamicFee, Legacy, SetCode};
        only(self.gas_price.is_some(), &[Legacy, AccessList], "gas price, but fee caps")?;
        only(fee_caps, &[DynamicFee, Blob, SetCode], "fee caps")?;
        only(self.access_list.is_some(), &[AccessList, DynamicFee, Blob, SetCode], "access list")?;
        only(self.max_fee_per_blob_gas.is_some(), &[Blob], "blob fee cap")?;
        only(self.blob_versioned_hashes.is_some() || self.sidecar.is_some(), &[Blob], "blobs")?;
        only(self.authorization_list.is_some(), &[SetCode], "authorizations")?;
        Ok(kind)
    }

    /// Returns the call that the transaction executes, with a gas price of zero.
    fn call(&self) -> Call {
        let Self { from, to, value, input, access_list, authorization_list, .. } = self.clone();
        Call {
            from,
            to,
            value,
            input,
            access_list: access_list.unwrap_or_default(),
            authorization_list: authorization_list.unwrap_or_default(),
            ..Call::default()
        }
    }

    /// Returns the versioned hashes of the blobs.
    fn blob_hashes(&self) -> Result<Vec<H256>, NodeError> {
        let computed: Option<Vec<_>> = self.sidecar.as_ref().map(|sidecar| {
            let (BlobSidecar::V0 { commitments, .. } | BlobSidecar::V1 { commitments, .. }) = sidecar;
            commitments.iter().map(|commitment| versioned_hash(commitment)).collect()
        });
        match (self.blob_versioned_hashes.clone(), computed) {
            (Some(given), Some(computed)) if given != computed => {
                Err(invalid("the versioned hashes are not those of the blobs"))
            }
            (given, computed) => Ok(given.or(computed).unwrap_or_default()),
        }
    }
}

fn invalid(message: impl Into<String>) -> NodeError {
    NodeError::invalid(Field::Transaction, message)
}

fn rejected(reason: TransactionError) -> NodeError {
    NodeError::TransactionRejected(Rejection::from(PoolError::from(reason)))
}

pub(super) fn sign_hash(node: &Node, address: Address, hash: H256) -> Result<Signature, NodeError> {
    let signature = node.wallet.as_ref().and_then(|wallet| wallet.sign(address, hash));
    signature.ok_or(NodeError::UnknownAccount(address))
}

pub(super) fn fill_transaction(
    node: &Node,
    context: &Context,
    request: &TransactionRequest,
) -> Result<TransactionBody, NodeError> {
    let gas_limit = node.request_gas(context, request)?;
    let body = node.complete(context, gas_limit, request)?;
    match impossible(&body) {
        Some(reason) => Err(rejected(reason)),
        None => Ok(body),
    }
}

pub(super) fn sign_transaction(
    node: &Node,
    context: &Context,
    request: TransactionRequest,
) -> Result<PooledTransaction, NodeError> {
    let body = node.fill_transaction(context, &request)?;
    Ok(PooledTransaction { transaction: node.signed(request.from, body)?, sidecar: request.sidecar })
}

pub(super) fn reorganize_with(
    node: &Node,
    context: &Context,
    blocks: u64,
    transactions: Vec<(u64, ReplacementTransaction)>,
) -> Result<(), NodeError> {
    let producer = node.control(context)?;
    let view = node.backend.view()?;
    let ancestor = view.head().number.saturating_sub(blocks);
    let view: Arc<dyn View> = Arc::new(LayeredView::new(view, ancestor, Vec::new())?);
    let on_ancestor = context.reading(view.clone());
    let mut nonces = BTreeMap::new();
    let mut recovered = Vec::new();
    for (block, transaction) in transactions {
        let transaction = match transaction {
            ReplacementTransaction::Signed(transaction) => transaction,
            ReplacementTransaction::Request(mut request) => {
                let current = view.state(ancestor)?.account(request.from)?.unwrap_or_default().nonce;
                let nonce = request.nonce.unwrap_or(*nonces.get(&request.from).unwrap_or(&current));
                let next = nonce.checked_add(1).ok_or_else(|| rejected(TransactionError::NonceOverflow))?;
                nonces.insert(request.from, next);
                request.nonce = Some(nonce);
                let body = node.fill_transaction(&on_ancestor, &request)?;
                node.signed(request.from, body)?
            }
        };
        let sender = node.recovery.sender(&transaction);
        let sender = sender.map_err(|error| rejected(TransactionError::Signature(error)))?;
        recovered.push((block, RecoveredTransaction { hash: transaction.hash(), sender, transaction }));
    }
    drop((view, on_ancestor));
    producer.reorganize_with(context, blocks, recovered)?;
    Ok(())
}

impl Node {
    pub(super) fn signed(&self, sender: Address, body: TransactionBody) -> Result<Transaction, NodeError> {
        let mut transaction = Transaction { body, signature: Signature::default() };
        transaction.signature = self.sign_hash(sender, transaction.signing_hash())?;
        Ok(transaction)
    }

    /// Returns the gas limit of a transaction, or an estimate if it has none.
    pub(super) fn request_gas(&self, context: &Context, request: &TransactionRequest) -> Result<u64, NodeError> {
        if let Some(gas) = request.gas {
            return Ok(gas);
        }
        self.gas_to_send(context, &request.call())
    }

    /// Fills in the missing fields of a transaction except its gas limit.
    pub(super) fn complete(
        &self,
        context: &Context,
        gas_limit: u64,
        request: &TransactionRequest,
    ) -> Result<TransactionBody, NodeError> {
        let expected = self.spec.chain_id;
        if let Some(got) = request.chain_id.filter(|got| *got != expected) {
            return Err(rejected(TransactionError::ChainId { got, expected }));
        }
        let snapshot = self.snapshot(context)?;
        let next = self.next_header.after(&*snapshot.header(snapshot.latest())?);
        let nonce = match request.nonce {
            Some(nonce) => nonce,
            None => self.next_nonce(request.from)?,
        };
        let kind = request.kind(next.base_fee_per_gas.is_some())?;
        let mut call = request.call();
        if matches!(kind, TransactionType::Legacy | TransactionType::AccessList) {
            call.gas_price = match request.gas_price {
                Some(price) => price,
                None => self.gas_price(context)?,
            };
        } else {
            let suggested_tip = self.max_priority_fee_per_gas(context)?;
            let max_fee = request.max_fee_per_gas;
            let tip =
                request.max_priority_fee_per_gas.unwrap_or_else(|| suggested_tip.min(max_fee.unwrap_or(suggested_tip)));
            let base_fee = U256::from(next.base_fee_per_gas.unwrap_or(0));
            call.gas_price = max_fee.unwrap_or_else(|| tip.saturating_add(base_fee * 2));
            call.max_priority_fee_per_gas = Some(tip);
        }
        if kind == TransactionType::Blob {
            let suggested =
                || fees::blob_base_fee(&self.spec, &next).unwrap_or_else(U256::one).saturating_mul(2.into());
            call.max_fee_per_blob_gas = request.max_fee_per_blob_gas.unwrap_or_else(suggested);
            call.blob_versioned_hashes = request.blob_hashes()?;
        }
        call.into_body_of(kind, self.spec.fork(&next), expected, nonce, gas_limit)
            .ok_or_else(|| invalid(format!("a transaction of type {} cannot create a contract", kind as u8)))
    }

    /// Returns the nonce after all transactions of `sender`, mined and in the pool.
    fn next_nonce(&self, sender: Address) -> Result<u64, NodeError> {
        // The pool is read before the view is opened: a transaction that leaves it in between is in the view. The view
        // of the request may be older.
        if let Some(nonce) = self.pool.nonce(sender) {
            return Ok(nonce);
        }
        let view = self.backend.view()?;
        Ok(view.state(view.head().number)?.account(sender)?.unwrap_or_default().nonce)
    }
}

/// Returns why a transaction is invalid in every state, or `None` if it may be valid in some.
fn impossible(body: &TransactionBody) -> Option<TransactionError> {
    let (tip, cap) = (body.max_priority_fee_per_gas(), body.max_fee_per_gas());
    match body {
        _ if tip > cap => Some(TransactionError::TipAboveFeeCap { tip, cap }),
        TransactionBody::Blob(body) if body.blob_versioned_hashes.is_empty() => Some(TransactionError::NoBlobs),
        TransactionBody::SetCode(body) if body.authorization_list.is_empty() => {
            Some(TransactionError::NoAuthorizations)
        }
        _ => None,
    }
}

/// A transaction of a replacement block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplacementTransaction {
    Signed(Transaction),
    /// A transaction that the node completes and signs.
    Request(TransactionRequest),
}
