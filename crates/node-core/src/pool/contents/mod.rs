//! The transactions of the pool, with consistent indexes.

mod eviction;

use super::memory::{ArrivalLog, DroppedReasons};
use super::sender_queue::SenderQueue;
use super::{DropReason, NextBlockRules, PoolError, PoolLimits, PoolSize, PoolTransaction, record};
use crate::backend::RecordWrite;
use crate::state::AccountState;
use eviction::{EvictionKey, eviction_keys};
use node_types::{Address, H256, U256};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The transactions of the pool with their indexes.
///
/// Invariants: `by_hash` and the queues in `senders` contain the same transactions; no queue is empty; `eviction`
/// contains the [key](eviction_keys) of the last transaction of each sender; `bytes`, `queued` and `authorities` are
/// sums over all transactions.
pub(super) struct Contents {
    /// Hash of the head against which everything was checked; `None` if a full check is due.
    pub(super) head: Option<H256>,
    /// The rules against which everything was checked.
    pub(super) next: NextBlockRules,
    /// Increases with every change.
    pub(super) version: u64,
    pub(super) dropped: DroppedReasons,
    pub(super) arrivals: ArrivalLog,
    /// When the limits were last enforced, in milliseconds since the Unix epoch.
    pub(super) enforced: u64,
    guaranteed: usize,
    by_hash: HashMap<H256, Arc<PoolTransaction>>,
    senders: HashMap<Address, SenderQueue>,
    eviction: BTreeSet<EvictionKey>,
    authorities: HashMap<Address, usize>,
    bytes: usize,
    queued: usize,
    /// Transactions whose records must still follow from this memory: the chain, the limits or the time changed them,
    /// which a restart finds again. The next write includes them.
    unrecorded: BTreeSet<H256>,
}

impl Contents {
    pub(super) fn new(head: H256, next: NextBlockRules, limits: &PoolLimits, now: u64) -> Self {
        Self {
            head: Some(head),
            next,
            version: 0,
            dropped: DroppedReasons::default(),
            arrivals: ArrivalLog::starting_at(now),
            enforced: now,
            guaranteed: limits.guaranteed_per_account,
            by_hash: HashMap::new(),
            senders: HashMap::new(),
            eviction: BTreeSet::new(),
            authorities: HashMap::new(),
            bytes: 0,
            queued: 0,
            unrecorded: BTreeSet::new(),
        }
    }

    /// Remembers that the records of these transactions must be written.
    pub(super) fn must_record(&mut self, hashes: impl IntoIterator<Item = H256>) {
        self.unrecorded.extend(hashes);
    }

    /// Returns the writes of records that are due.
    pub(super) fn unrecorded(&self) -> Vec<RecordWrite> {
        let write = |hash: &H256| self.get(*hash).map_or_else(|| record::delete(*hash), |kept| record::put(kept));
        self.unrecorded.iter().map(write).collect()
    }

    /// Called when the records that are due were written.
    pub(super) fn recorded(&mut self) {
        self.unrecorded.clear();
    }

    /// Returns whether everything was checked against `head` and the rules `next`.
    pub(super) fn is_at(&self, head: H256, next: &NextBlockRules) -> bool {
        self.head == Some(head) && self.next == *next
    }

    pub(super) fn len(&self) -> usize {
        self.by_hash.len()
    }

    pub(super) fn size(&self) -> PoolSize {
        PoolSize { pending: self.len() - self.queued, queued: self.queued, bytes: self.bytes }
    }

    pub(super) fn get(&self, hash: H256) -> Option<&Arc<PoolTransaction>> {
        self.by_hash.get(&hash)
    }

    pub(super) fn transactions(&self) -> impl Iterator<Item = &Arc<PoolTransaction>> {
        self.by_hash.values()
    }

    pub(super) fn senders(&self) -> impl Iterator<Item = (Address, &SenderQueue)> {
        self.senders.iter().map(|(sender, queue)| (*sender, queue))
    }

    pub(super) fn sender(&self, sender: Address) -> Option<&SenderQueue> {
        self.senders.get(&sender)
    }

    pub(super) fn at(&self, sender: Address, nonce: u64) -> Option<&Arc<PoolTransaction>> {
        self.sender(sender)?.get(nonce)
    }

    pub(super) fn count_of(&self, sender: Address) -> usize {
        self.sender(sender).map_or(0, SenderQueue::len)
    }

    pub(super) fn pending_count_of(&self, sender: Address) -> usize {
        self.sender(sender).map_or(0, SenderQueue::pending_len)
    }

    pub(super) fn queued_count_of(&self, sender: Address) -> usize {
        self.sender(sender).map_or(0, SenderQueue::queued_len)
    }

    /// Returns whether a transaction in the pool has an authorization signed by `address`.
    pub(super) fn is_authority(&self, address: Address) -> bool {
        self.authorities.contains_key(&address)
    }

    /// Returns the cost in wei of the pending transactions of `sender`, except the one with `nonce`.
    pub(super) fn pending_cost_without(&self, sender: Address, nonce: u64) -> U256 {
        let Some(queue) = self.sender(sender) else { return U256::zero() };
        let replaced = if nonce < queue.pending_end() { queue.get(nonce) } else { None };
        queue.pending_cost().saturating_sub(replaced.map_or(U256::zero(), |old| old.cost()))
    }

    /// Returns whether a transaction with this nonce would follow the pending transactions of `sender`, or the nonce
    /// of `account`, without a gap.
    pub(super) fn would_be_pending(&self, sender: Address, account: &AccountState, nonce: u64) -> bool {
        nonce <= self.sender(sender).map_or(account.nonce, SenderQueue::pending_end)
    }

    /// Sets the account of `sender`. Removes the transactions that can no longer be mined, and returns them with the
    /// reason.
    pub(super) fn set_account(
        &mut self,
        sender: Address,
        account: AccountState,
        now: u64,
    ) -> Vec<(Arc<PoolTransaction>, PoolError)> {
        let base_fee = self.next.base_fee;
        let removed = self.change_sender(sender, |queue| queue.set_account(account, base_fee, now));
        for (transaction, _) in &removed {
            self.forget(transaction);
        }
        removed
    }

    /// Adds a transaction whose sender's account is `account`, replacing any with the same nonce.
    pub(super) fn insert(&mut self, transaction: Arc<PoolTransaction>, account: AccountState, now: u64) {
        let base_fee = self.next.base_fee;
        let is_new = self.sender(transaction.sender()).is_none();
        let replaced = self.change_sender(transaction.sender(), |queue| {
            if is_new {
                queue.set_account(account, base_fee, now);
            }
            queue.insert(Arc::clone(&transaction), base_fee, now)
        });
        if let Some(replaced) = replaced {
            self.forget(&replaced);
            self.dropped.insert(replaced.hash(), DropReason::Replaced { by: transaction.hash() });
        }
        self.bytes += transaction.size;
        for authority in &transaction.authorities {
            *self.authorities.entry(*authority).or_default() += 1;
        }
        self.dropped.forget(transaction.hash());
        self.arrivals.push(transaction.arrival, transaction.hash());
        self.by_hash.insert(transaction.hash(), transaction);
        self.version += 1;
    }

    /// Removes a transaction and remembers why.
    pub(super) fn remove(&mut self, hash: H256, reason: DropReason) -> Option<Arc<PoolTransaction>> {
        let transaction = Arc::clone(self.by_hash.get(&hash)?);
        let base_fee = self.next.base_fee;
        self.change_sender(transaction.sender(), |queue| queue.remove(transaction.nonce(), base_fee));
        self.forget(&transaction);
        self.dropped.insert(hash, reason);
        Some(transaction)
    }

    /// Removes the arrivals of transactions that are not in the pool.
    pub(super) fn forget_absent_arrivals(&mut self) {
        self.arrivals.retain(|hash| self.by_hash.contains_key(&hash));
    }

    pub(super) fn set_next(&mut self, head: H256, next: NextBlockRules) {
        let refresh = next.base_fee != self.next.base_fee;
        (self.head, self.next) = (Some(head), next);
        self.version += 1;
        if refresh {
            for sender in self.senders.keys().copied().collect::<Vec<_>>() {
                self.change_sender(sender, |queue| queue.refresh_floors(0, next.base_fee));
            }
        }
    }

    /// Removes a transaction that is no longer in a queue from the other indexes.
    fn forget(&mut self, transaction: &PoolTransaction) {
        self.by_hash.remove(&transaction.hash());
        self.bytes -= transaction.size;
        for authority in &transaction.authorities {
            if let Some(count) = self.authorities.get_mut(authority) {
                *count -= 1;
                if *count == 0 {
                    self.authorities.remove(authority);
                }
            }
        }
        self.version += 1;
    }

    /// Changes the queue of one sender, creating or removing it as needed, and updates the sums and the eviction order.
    fn change_sender<R>(&mut self, sender: Address, change: impl FnOnce(&mut SenderQueue) -> R) -> R {
        let queue = self.senders.entry(sender).or_default();
        if let Some((key, _)) = eviction_keys(sender, queue, self.guaranteed).next() {
            self.eviction.remove(&key);
        }
        self.queued -= queue.queued_len();
        let result = change(queue);
        self.queued += queue.queued_len();
        if let Some((key, _)) = eviction_keys(sender, queue, self.guaranteed).next() {
            self.eviction.insert(key);
        }
        if queue.is_empty() {
            self.senders.remove(&sender);
        }
        result
    }

    /// Checks the invariants.
    #[cfg(test)]
    pub(super) fn assert_consistent(&self, limits: &PoolLimits) {
        let mut expected = (BTreeSet::new(), 0, 0, 0, HashMap::<Address, usize>::new());
        for (sender, queue) in self.senders() {
            assert!(!queue.is_empty(), "empty queue of {sender:#x}");
            queue.assert_consistent(self.next.base_fee);
            expected.0.extend(eviction_keys(sender, queue, self.guaranteed).next().map(|(key, _)| key));
            for transaction in queue.pending().chain(queue.queued()) {
                assert_eq!(self.by_hash.get(&transaction.hash()), Some(transaction));
                assert_eq!(transaction.sender(), sender);
                expected.1 += 1;
                expected.2 += transaction.size;
                transaction.authorities.iter().for_each(|authority| *expected.4.entry(*authority).or_default() += 1);
            }
            expected.3 += queue.queued_len();
            assert!(queue.queued_len() <= limits.queued_per_account, "queued of {sender:#x}");
        }
        assert_eq!(self.eviction, expected.0, "eviction order");
        assert_eq!(self.len(), expected.1, "transactions");
        assert_eq!(self.bytes, expected.2, "bytes");
        assert_eq!(self.queued, expected.3, "queued");
        assert_eq!(self.authorities, expected.4, "authorities");
        assert!(self.len() <= limits.transactions && self.bytes <= limits.bytes && self.queued <= limits.queued);
    }
}
