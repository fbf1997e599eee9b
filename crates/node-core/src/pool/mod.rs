//! The transaction pool.
//!
//! Transactions of an account are *pending* if their nonces continue from the account's nonce without a gap and its
//! balance covers all of them together. The others are *queued*: they wait for an earlier nonce or for balance.

mod admit;
mod best;
mod contents;
mod follow;
mod limits;
mod memory;
mod next_block_rules;
mod record;
mod rejection;
mod sender_queue;
mod stateful;
mod stateless;
mod status;
#[cfg(test)]
mod tests;
mod transaction;

pub use best::{BestTransactions, Filled, TransactionOrder};
pub use limits::{PoolLimits, PoolSize};
pub use next_block_rules::NextBlockRules;
pub use rejection::{AddError, PoolError, Rejection};
pub(crate) use stateful::delegates;
pub use status::{Arrival, Arrivals, DropReason, PoolContent, PoolStatus};
pub use transaction::PoolTransaction;

use crate::assembly::NextHeader;
use crate::backend::{BackendError, HeadChange, HeadListener, RecordKind, RecordWrite, StateBackend};
use crate::clock::Clock;
use crate::crypto::{BlobVerifier, SenderRecovery};
use crate::listeners::Listeners;
use crate::protocol::{ChainSpec, blobs, fees};
use crate::sources::Sources;
use contents::Contents;
use memory::MinedBlobs;
use node_types::consensus::{BlobSidecar, Header};
use node_types::{Address, Bytes, H256, U256};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Milliseconds between two searches for expired transactions while the head does not move.
const EXPIRY_INTERVAL: u64 = 60_000;

/// The dependencies of a pool.
#[derive(Clone)]
pub struct PoolParts {
    /// The chain's rules.
    pub spec: Arc<ChainSpec>,
    /// The order of transactions in a block.
    pub order: TransactionOrder,
    /// Determines the header of the next block.
    pub next_header: Arc<dyn NextHeader>,
    /// Stores the chain and, as durable records, the pool's transactions.
    pub backend: Arc<dyn StateBackend>,
    /// Recovers senders.
    pub recovery: Arc<dyn SenderRecovery>,
    /// Verifies blobs.
    pub blobs: Arc<dyn BlobVerifier>,
    /// The clock, for expiry.
    pub clock: Arc<dyn Clock>,
}

/// Is notified of transactions that enter the pool, pending or queued: newly sent ones, and those from blocks that
/// left the chain.
pub trait PoolListener: Send + Sync {
    /// Called for each transaction, without holding a lock of the pool. The transaction may already have left the
    /// pool, and may not be durable yet. Must not send transactions or change the chain.
    ///
    /// Called on the thread that sent the transaction, or that changed the head; in the latter case from within the
    /// backend's call to its own listeners.
    fn transaction_added(&self, hash: H256);
}

/// What a change of the chain means for transactions, apart from what follows from the new state.
#[derive(Default)]
pub(crate) struct Effects {
    /// Of the transactions in removed blocks, those that may return to the pool, and why the others may not. `None` if
    /// all may return.
    pub(crate) returning: Option<(HashSet<H256>, DropReason)>,
    /// Transactions that leave the pool, and why. The write that changes the chain deletes their records.
    pub(crate) dropped: Vec<(H256, DropReason)>,
}

impl Effects {
    /// Returns the writes that delete the records of the dropped transactions.
    pub(crate) fn deletions(&self) -> Vec<RecordWrite> {
        deletions(self.dropped.iter().map(|(hash, _)| *hash))
    }
}

/// The transaction pool. All methods may be called from any thread.
///
/// Signatures and blobs are checked without holding a lock. While records are written, only other changes of the pool
/// wait.
pub struct Pool {
    parts: PoolParts,
    limits: PoolLimits,
    /// Held for the whole duration of a change: check, durable record, contents. Not needed for reading.
    changing: Mutex<MinedBlobs>,
    contents: RwLock<Contents>,
    listeners: Listeners<dyn PoolListener>,
    /// Whether transactions must pay the base fee of the next block.
    requires_base_fee: AtomicBool,
    /// While a request changes the chain, what that means for transactions; otherwise `None`.
    effects: Mutex<Option<Effects>>,
}

impl Pool {
    /// Opens the pool with those transactions from the backend's records that are still valid.
    ///
    /// The pool follows the chain only if it is [subscribed](StateBackend::subscribe) to the backend, preferably as a
    /// `Weak`.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn open(parts: PoolParts, limits: PoolLimits) -> Result<Self, BackendError> {
        let view = parts.backend.view()?;
        let now = parts.clock.steady_millis();
        let next = follow::next_block(&parts, view.as_ref())?;
        let contents = Contents::new(view.head().hash, next, &limits, now);
        let contents = RwLock::new(contents);
        let pool = Self {
            parts,
            limits,
            changing: Mutex::default(),
            contents,
            listeners: Listeners::default(),
            requires_base_fee: AtomicBool::new(false),
            effects: Mutex::default(),
        };
        pool.restore(view.as_ref())?;
        Ok(pool)
    }

    /// Makes the transactions of the pool durable. Returns whether the transaction `hash` is durable: `false` if its
    /// record was lost, because a write that included it failed.
    ///
    /// # Errors
    /// Fails if the records cannot be written or read.
    pub fn is_stored(&self, hash: H256) -> Result<bool, BackendError> {
        self.parts.backend.sync_records()?;
        Ok(self.parts.backend.record(RecordKind::PoolTransaction, hash.as_bytes())?.is_some())
    }

    /// Drops a transaction that could not be stored. Transactions that it had replaced or evicted return to the pool.
    /// Returns whether it was in the pool.
    pub(crate) fn refuse(&self, hash: H256) -> Result<bool, BackendError> {
        let mut mined_blobs = self.changing.lock();
        let mut contents = self.contents.write();
        if contents.remove(hash, DropReason::NotStored).is_none() {
            return Ok(false);
        }
        contents.arrivals.retain(|arrived| arrived != hash);
        drop(contents);
        // As long as its record exists, the records of the others have not been restored either.
        if self.parts.backend.record(RecordKind::PoolTransaction, hash.as_bytes())?.is_none() {
            let view = self.parts.backend.view()?;
            self.load_records(view.as_ref())?;
            self.settle(view.as_ref(), &mut mined_blobs, Vec::new())?;
        }
        Ok(true)
    }

    /// Returns the pending transactions in the order in which they enter a block with this header.
    pub fn best_for(&self, header: &Header) -> BestTransactions {
        self.best(header.base_fee_per_gas, fees::blob_base_fee(&self.parts.spec, header))
    }

    /// Returns the pending transactions in the order in which they enter a block with this base fee and blob base fee,
    /// in wei; `None` before London and Cancun.
    pub fn best(&self, base_fee: Option<u64>, blob_base_fee: Option<U256>) -> BestTransactions {
        let contents = self.contents.read();
        let runs = contents.senders().map(|(_, queue)| queue.pending().cloned().collect());
        BestTransactions::new(self.parts.order, base_fee, blob_base_fee, runs)
    }

    /// Returns a transaction of the pool, or `None` if it is not in the pool.
    pub fn get(&self, hash: H256) -> Option<Arc<PoolTransaction>> {
        self.contents.read().get(hash).cloned()
    }

    /// Returns the status of a transaction.
    pub fn status(&self, hash: H256) -> PoolStatus {
        self.find(hash).1
    }

    /// Returns a transaction, if it is in the pool, and its status.
    pub fn find(&self, hash: H256) -> (Option<Arc<PoolTransaction>>, PoolStatus) {
        let contents = self.contents.read();
        let Some(transaction) = contents.get(hash) else {
            let dropped = contents.dropped.get(hash);
            return (None, dropped.map_or(PoolStatus::Unknown, |reason| PoolStatus::Dropped(reason.clone())));
        };
        let pending_end = contents.sender(transaction.sender()).map_or(0, |queue| queue.pending_end());
        let status = if transaction.nonce() < pending_end { PoolStatus::Pending } else { PoolStatus::Queued };
        (Some(Arc::clone(transaction)), status)
    }

    /// Returns all transactions.
    pub fn content(&self) -> PoolContent {
        let contents = self.contents.read();
        let (mut pending, mut queued) = (BTreeMap::new(), BTreeMap::new());
        for (sender, queue) in contents.senders() {
            if queue.pending_len() > 0 {
                pending.insert(sender, queue.pending().cloned().collect());
            }
            if queue.queued_len() > 0 {
                queued.insert(sender, queue.queued().cloned().collect());
            }
        }
        PoolContent { pending, queued }
    }

    /// Returns the current size.
    pub fn size(&self) -> PoolSize {
        self.contents.read().size()
    }

    /// Returns the nonce after the pending transactions of `sender`, or `None` if it has no transaction in the pool.
    pub fn nonce(&self, sender: Address) -> Option<u64> {
        self.contents.read().sender(sender).map(|queue| queue.pending_end())
    }

    /// Returns a number that increases with every change of the pool.
    pub fn version(&self) -> u64 {
        self.contents.read().version
    }

    /// Returns the first `limit` remembered arrivals with number `since` or higher.
    pub fn arrivals(&self, since: u64, limit: usize) -> Arrivals {
        self.contents.read().arrivals.since(since, limit)
    }

    /// Sets whether new transactions must pay the base fee of the next block. The base fee falls only when blocks are
    /// mined, so with instant mining a transaction that does not pay it could wait forever.
    pub(crate) fn require_base_fee(&self, required: bool) {
        self.requires_base_fee.store(required, Ordering::Relaxed);
    }

    /// Returns the transaction of `sender` with `nonce`, or `None` if there is none.
    pub fn at(&self, sender: Address, nonce: u64) -> Option<Arc<PoolTransaction>> {
        self.contents.read().at(sender, nonce).cloned()
    }

    /// Returns the blobs of a transaction with their commitments and proofs. Returns `None` unless it is in the pool,
    /// or among the most recently mined blob transactions.
    pub fn sidecar(&self, hash: H256) -> Option<BlobSidecar> {
        let pooled = self.get(hash).and_then(|transaction| transaction.sidecar.clone());
        pooled.or_else(|| self.changing.lock().get(hash).cloned())
    }

    /// Returns the blob with a versioned hash (EIP-4844). Searches the same transactions as
    /// [`sidecar`](Self::sidecar).
    pub fn blob(&self, versioned_hash: H256) -> Option<Bytes> {
        let pooled = self
            .contents
            .read()
            .transactions()
            .find_map(|transaction| blobs::find(transaction.sidecar.as_ref()?, versioned_hash));
        pooled.or_else(|| self.changing.lock().sidecars().find_map(|sidecar| blobs::find(sidecar, versioned_hash)))
    }

    /// Numbers later arrivals from `number` on, unless the next number is already higher. A cursor from before a
    /// restart may be ahead of the numbers if the system clock was set back in between.
    pub(crate) fn continue_arrivals_from(&self, number: u64) {
        self.contents.write().arrivals.continue_from(number);
    }

    /// Drops a transaction; later ones of its sender become queued. Returns whether it was in the pool.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn remove(&self, hash: H256) -> Result<bool, BackendError> {
        let _changing = self.changing.lock();
        if self.contents.read().get(hash).is_none() {
            return Ok(false);
        }
        self.drop_durably(vec![(hash, DropReason::Requested)])?;
        Ok(true)
    }

    /// Returns the hashes of all transactions.
    pub fn hashes(&self) -> Vec<H256> {
        self.contents.read().transactions().map(|transaction| transaction.hash()).collect()
    }

    /// Drops the transactions for which `is_dropped` returns true. Returns their number.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn drop_where(
        &self,
        reason: DropReason,
        is_dropped: impl Fn(&PoolTransaction) -> bool,
    ) -> Result<usize, BackendError> {
        let _changing = self.changing.lock();
        let dropped: Vec<_> = {
            let contents = self.contents.read();
            let dropped = contents.transactions().filter(|transaction| is_dropped(transaction));
            dropped.map(|transaction| (transaction.hash(), reason.clone())).collect()
        };
        let count = dropped.len();
        if count > 0 {
            self.drop_durably(dropped)?;
        }
        Ok(count)
    }

    /// Drops transactions, each for its reason, in one durable write.
    pub(crate) fn drop_all(&self, dropped: Vec<(H256, DropReason)>) -> Result<(), BackendError> {
        let _changing = self.changing.lock();
        self.drop_durably(dropped)
    }

    /// Deletes the records of transactions, then drops them. `changing` must be locked.
    fn drop_durably(&self, dropped: Vec<(H256, DropReason)>) -> Result<(), BackendError> {
        let mut writes = self.contents.read().unrecorded();
        writes.extend(deletions(dropped.iter().map(|(hash, _)| *hash)));
        self.parts.backend.write_records(&writes)?;
        let mut contents = self.contents.write();
        contents.recorded();
        for (hash, reason) in dropped {
            contents.remove(hash, reason);
        }
        // Later transactions of their senders are queued now.
        contents.enforce(&self.limits, self.parts.clock.steady_millis());
        drop(contents);
        self.write_due(false);
        Ok(())
    }

    /// Runs `change`, which changes the chain and, in the same write, the records as `effects` says. Once it has
    /// succeeded, memory follows. Listeners are not notified of transactions that do not return.
    pub(crate) fn change_chain<T, E>(&self, effects: Effects, change: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        *self.effects.lock() = Some(effects);
        let _end = EndOfChange(self);
        let changed = change()?;
        // If the head moved, they have left already.
        let _changing = self.changing.lock();
        self.drop_affected();
        Ok(changed)
    }

    /// Drops the transactions that leave the pool because of a change of the chain. `changing` must be locked.
    fn drop_affected(&self) {
        let dropped = self.effects.lock().as_mut().map(|effects| std::mem::take(&mut effects.dropped));
        let mut contents = self.contents.write();
        for (hash, reason) in dropped.unwrap_or_default() {
            contents.remove(hash, reason);
        }
    }

    /// Returns the order of transactions in a block.
    pub fn order(&self) -> TransactionOrder {
        self.parts.order
    }

    /// Checks all transactions again after the state has changed without a new head.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn refresh(&self) -> Result<(), BackendError> {
        let mut mined_blobs = self.changing.lock();
        self.contents.write().head = None;
        let view = self.parts.backend.view()?;
        self.settle(view.as_ref(), &mut mined_blobs, Vec::new()).map(drop)
    }

    /// Updates the pool after a change of the head: mined transactions leave the pool, those of removed blocks
    /// return, and all others are checked against the new state.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn on_head_change(&self, change: &HeadChange) -> Result<(), BackendError> {
        let mut mined_blobs = self.changing.lock();
        // First, because one of them may have the nonce of a transaction that returns.
        self.drop_affected();
        let view = self.parts.backend.view()?;
        let returning = self.returning(view.as_ref(), change, &mut mined_blobs)?;
        let returned = self.settle(view.as_ref(), &mut mined_blobs, returning)?;
        drop(mined_blobs);
        self.notify(&returned);
        Ok(())
    }

    /// Calls `listener` for each transaction that enters the pool, until `listener` is dropped.
    pub fn subscribe<L: PoolListener + 'static>(&self, listener: &Arc<L>) {
        self.listeners.add(Arc::<L>::downgrade(listener));
    }

    /// Notifies listeners of new transactions. No lock may be held.
    fn notify(&self, hashes: &[H256]) {
        for hash in hashes {
            self.listeners.each(|listener| listener.transaction_added(*hash));
        }
    }
}

/// Ends the effects of a change of the chain when dropped, even if the change panics.
struct EndOfChange<'a>(&'a Pool);

impl Drop for EndOfChange<'_> {
    fn drop(&mut self) {
        *self.0.effects.lock() = None;
    }
}

/// Returns the writes that delete the records of transactions.
pub(crate) fn deletions(hashes: impl IntoIterator<Item = H256>) -> Vec<RecordWrite> {
    hashes.into_iter().map(record::delete).collect()
}

impl HeadListener for Pool {
    fn head_changed(&self, change: &HeadChange) {
        if let Err(error) = self.on_head_change(change) {
            tracing::error!(error = %Sources(&error), "the pool could not follow a change of the head");
        }
    }
}

/// A backend holds its listeners, and a pool its backend. The weak reference breaks that cycle.
impl HeadListener for Weak<Pool> {
    fn head_changed(&self, change: &HeadChange) {
        if let Some(pool) = self.upgrade() {
            pool.head_changed(change);
        }
    }
}
