//! Transactions and their receipts.

use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use crate::wire::{Block32, BlockNumberParam, Hex, Loose, Object, Receipt, Transaction, TransactionRequest};
use node_core::block::RecoveredTransaction;
use node_core::node::FoundTransaction;
use node_types::consensus::PooledTransaction;
use node_types::wire::{AddressData, BytesData, Data};
use node_types::{BlockId, H256};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Default time to wait for a receipt (EIP-7966).
const DEFAULT_WAIT: Duration = Duration::from_secs(2);

/// Time between checks whether a transaction is mined.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Maximum number of requests that wait for a receipt at a time, because each blocks a thread for calls. Further
/// requests do not wait.
const MAX_WAITING: usize = 2;

/// Code of the error for a transaction that is in the pool but was not mined in time (EIP-7966).
const NOT_MINED_YET: i64 = 4;

pub(super) fn methods(waiting: &Waiting) -> Vec<Method> {
    vec![
        Method::new(
            "eth_getTransactionByHash",
            &["hash"],
            "A transaction, mined or in the pool; null if it is unknown.",
            |scope, (hash,): (Block32,)| {
                let found = scope.node.get_transaction(scope.context, hash.0)?;
                Ok(found.as_ref().map(Transaction::of))
            },
        )
        .or_by_writer(),
        Method::new(
            "eth_getTransactionBySenderAndNonce",
            &["sender", "nonce"],
            "The transaction of a sender with a nonce, mined or in the pool; null if there is none.",
            |scope, (sender, nonce): (AddressData, Loose<u64>)| {
                let found = scope.node.get_transaction_of(scope.context, sender.0, nonce.0)?;
                Ok(found.as_ref().map(Transaction::of))
            },
        )
        .or_by_writer(),
        Method::new(
            "eth_getTransactionByBlockHashAndIndex",
            &["hash", "index"],
            "The transaction at a position of a block; null if there is none.",
            |scope, (hash, index): (Block32, Hex<u64>)| at(scope, BlockId::Hash(hash.0), index),
        ),
        Method::new(
            "eth_getTransactionByBlockNumberAndIndex",
            &["block", "index"],
            "The transaction at a position of a canonical block; null if there is none.",
            |scope, (tag, index): (BlockNumberParam, Hex<u64>)| at(scope, tag.0.into(), index),
        ),
        Method::new(
            "eth_getRawTransactionByHash",
            &["hash"],
            "The encoded transaction, mined or in the pool; empty if it is unknown.",
            raw_transaction,
        )
        .or_by_writer(),
        Method::new(
            "eth_getRawTransactionByBlockHashAndIndex",
            &["hash", "index"],
            "The encoded transaction at a position of a block; empty if there is none.",
            |scope, (hash, index): (Block32, Hex<u64>)| raw_at(scope, BlockId::Hash(hash.0), index),
        ),
        Method::new(
            "eth_getRawTransactionByBlockNumberAndIndex",
            &["block", "index"],
            "The encoded transaction at a position of a canonical block; empty if there is none.",
            |scope, (tag, index): (BlockNumberParam, Hex<u64>)| raw_at(scope, tag.0.into(), index),
        ),
        Method::new(
            "eth_fillTransaction",
            &["transaction"],
            "Fills in the missing fields of a transaction and returns it unsigned.",
            fill,
        )
        .code(),
        Method::new(
            "eth_getTransactionReceipt",
            &["hash"],
            "The receipt of a mined transaction; null if it is not mined.",
            |scope, (hash,): (Block32,)| receipt(scope, hash.0),
        ),
        Method::new(
            "eth_sendRawTransaction",
            &["transaction"],
            "Adds a signed transaction to the pool and returns its hash.",
            |scope, (data,): (BytesData,)| Ok(Data(scope.node.send_transaction(scope.context, data.0)?)),
        )
        .sending()
        .changing(),
        Method::new(
            "eth_sendRawTransactionSync",
            &["transaction", "timeoutMs?"],
            "Adds a signed transaction to the pool and returns its receipt once it is mined (EIP-7966).",
            {
                let waiting = waiting.clone();
                move |scope: Scope<'_>, (data, wait): (BytesData, Option<Hex<u64>>)| {
                    let hash = scope.node.send_transaction(scope.context, data.0)?;
                    wait_for_receipt(scope, &waiting, hash, wait)
                }
            },
        )
        .sending()
        .changing()
        // It runs with the calls, because it must not delay reads and other transactions.
        .code(),
    ]
}

/// Returns the encoded transaction.
pub(super) fn raw_transaction(scope: Scope<'_>, (hash,): (Block32,)) -> Result<BytesData, RpcError> {
    let found = scope.node.get_transaction(scope.context, hash.0)?;
    Ok(encoded(found))
}

fn raw_at(scope: Scope<'_>, block: BlockId, index: Hex<u64>) -> Result<BytesData, RpcError> {
    Ok(encoded(scope.node.get_transaction_at(scope.context, block, index.0)?))
}

fn encoded(found: Option<FoundTransaction>) -> BytesData {
    Data(found.map(|found| found.recovered().transaction.encode().into()).unwrap_or_default())
}

/// The result of eth_fillTransaction.
#[derive(Serialize)]
struct Unsigned {
    raw: BytesData,
    tx: Transaction,
}

fn fill(scope: Scope<'_>, (Object(transaction),): (Object<TransactionRequest>,)) -> Result<Unsigned, RpcError> {
    let request = transaction.of_anyone().read(0)?;
    let body = scope.node.fill_transaction(scope.context, &request)?;
    let recovered = RecoveredTransaction::unsigned(request.from, body);
    let tx = Transaction::waiting(&recovered);
    let pooled = PooledTransaction { transaction: recovered.transaction, sidecar: request.sidecar };
    Ok(Unsigned { raw: Data(pooled.encode().into()), tx })
}

fn at(scope: Scope<'_>, block: BlockId, index: Hex<u64>) -> Result<Option<Transaction>, RpcError> {
    let found = scope.node.get_transaction_at(scope.context, block, index.0)?;
    Ok(found.as_ref().map(Transaction::of))
}

fn receipt(scope: Scope<'_>, hash: H256) -> Result<Option<Receipt>, RpcError> {
    let found = scope.node.get_receipt(scope.context, hash)?;
    Ok(found.and_then(|found| Receipt::of_transaction(scope.node.spec(), &found)))
}

/// Returns the receipt of a transaction once it is mined (EIP-7966).
pub(super) fn wait_for_receipt(
    scope: Scope<'_>,
    waiting: &Waiting,
    hash: H256,
    wait: Option<Hex<u64>>,
) -> Result<Receipt, RpcError> {
    let permit = Permit::take(&waiting.0);
    let wait = match permit {
        Some(_) => wait.map_or(DEFAULT_WAIT, |millis| Duration::from_millis(millis.0)),
        None => Duration::ZERO,
    };
    let end = Instant::now().checked_add(wait);
    loop {
        scope.context.release_view();
        if let Some(receipt) = receipt(scope, hash)? {
            return Ok(receipt);
        }
        if scope.context.check().is_err() || end.is_some_and(|end| Instant::now() >= end) {
            let mut error = RpcError::new(NOT_MINED_YET, "the transaction was added to the pool and not mined in time");
            error.data = Some(Data(hash.as_bytes().to_vec().into()));
            return Err(error);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// The number of requests that wait for receipts. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting(Arc<AtomicUsize>);

/// A permit to wait for a receipt.
struct Permit<'a>(&'a AtomicUsize);

impl<'a> Permit<'a> {
    /// Returns a permit, or `None` if too many requests are waiting.
    fn take(waiting: &'a AtomicUsize) -> Option<Self> {
        let taken = |count: usize| (count < MAX_WAITING).then_some(count + 1);
        waiting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken).ok().map(|_| Self(waiting))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
