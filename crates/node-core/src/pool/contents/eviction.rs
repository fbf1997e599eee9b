//! Eviction of transactions when the pool is full.

use super::{Contents, DropReason, PoolError, PoolLimits, PoolTransaction, SenderQueue};
use crate::state::AccountState;
use node_types::{Address, H256, U256};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The order of eviction, first to last.
///
/// Only the last transaction of a sender can be evicted, so eviction creates no nonce gaps. It is ranked by its
/// floor, the lowest tip up to it; an expensive transaction therefore does not protect cheap ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EvictionKey {
    rank: Rank,
    /// The lowest effective tip of this transaction and those before it; `None` if one of them does not pay the base
    /// fee.
    floor: Option<U256>,
    /// Among equals, the newest is evicted.
    arrival: Reverse<u64>,
    sender: Address,
}

/// Protection from eviction, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Queued,
    /// It, or a transaction before it, does not pay the base fee, so the next block cannot include it.
    Underpriced,
    /// Its sender has more transactions than the guaranteed number.
    Crowding,
    /// It is among its sender's guaranteed transactions.
    Guaranteed,
}

impl Rank {
    fn new(pending: bool, floor: Option<U256>, guaranteed: bool) -> Self {
        match floor {
            _ if !pending => Self::Queued,
            None => Self::Underpriced,
            Some(_) if !guaranteed => Self::Crowding,
            Some(_) => Self::Guaranteed,
        }
    }
}

impl Contents {
    /// Returns the transactions to evict so that `newcomer` fits, or an error if it would itself be evicted.
    pub(in crate::pool) fn make_room(
        &self,
        limits: &PoolLimits,
        newcomer: &PoolTransaction,
        account: &AccountState,
    ) -> Result<Vec<H256>, PoolError> {
        let sender = newcomer.sender();
        let replaced = self.at(sender, newcomer.nonce());
        let (more, freed) = replaced.map_or((1, 0), |old| (0, old.size));
        let (length, bytes) = (self.len() + more, self.bytes - freed + newcomer.size);
        let pending = self.would_be_pending(sender, account, newcomer.nonce());
        let tip = newcomer.body().effective_tip(self.next.base_fee);
        let floor = self.sender(sender).map_or(tip, |queue| queue.floor_at(newcomer.nonce(), tip));

        let mut victims = Vec::new();
        let (mut length, mut bytes) = (length, bytes);
        if !pending && replaced.is_none() && self.queued >= limits.queued {
            let full = PoolError::QueueFull { queued: self.queued, limit: limits.queued };
            let victim = self.most_queued(newcomer, floor).ok_or(full)?;
            (length, bytes) = (length - 1, bytes - victim.size);
            victims.push(victim.hash());
        }
        if length <= limits.transactions && bytes <= limits.bytes {
            return Ok(victims);
        }
        let full = PoolError::PoolFull { transactions: self.len(), bytes: self.bytes };
        let rank = Rank::new(pending, floor, self.count_of(sender) + more <= self.guaranteed);
        for (key, victim) in self.evictable(newcomer) {
            if (key.rank, key.floor) >= (rank, floor) {
                break;
            }
            if !victims.contains(&victim.hash()) {
                (length, bytes) = (length - 1, bytes - victim.size);
                victims.push(victim.hash());
            }
            if length <= limits.transactions && bytes <= limits.bytes {
                return Ok(victims);
            }
        }
        Err(full)
    }

    /// Iterates over the transactions in order of eviction in favour of `newcomer`, without those of the
    /// same sender that it depends on.
    fn evictable<'a>(
        &'a self,
        newcomer: &'a PoolTransaction,
    ) -> impl Iterator<Item = (EvictionKey, &'a Arc<PoolTransaction>)> {
        // `eviction` has the last transaction of each sender. When one is returned, the one before it is added to
        // `uncovered`.
        let mut lasts = self.eviction.iter().copied().peekable();
        let mut uncovered = BTreeMap::new();
        std::iter::from_fn(move || {
            loop {
                let next_uncovered = uncovered.first_key_value().map(|(key, _)| *key);
                let from_lasts = lasts.next_if(|last| next_uncovered.is_none_or(|uncovered| *last < uncovered));
                let (key, transaction, mut before) = match from_lasts {
                    Some(last) => {
                        let mut keys = eviction_keys(last.sender, self.sender(last.sender)?, self.guaranteed);
                        let (key, transaction) = keys.next()?;
                        (key, transaction, keys)
                    }
                    None => {
                        let (key, (transaction, before)) = uncovered.pop_first()?;
                        (key, transaction, before)
                    }
                };
                if key.sender == newcomer.sender() && transaction.nonce() <= newcomer.nonce() {
                    continue;
                }
                if let Some((key, transaction)) = before.next() {
                    uncovered.insert(key, (transaction, before));
                }
                return Some((key, transaction));
            }
        })
    }

    /// Returns the last queued transaction of the sender with the most queued ones; among equals, the one with the
    /// lowest floor. Returns `None` if that is `newcomer` itself.
    fn most_queued(&self, newcomer: &PoolTransaction, floor: Option<U256>) -> Option<&Arc<PoolTransaction>> {
        let mine = (self.queued_count_of(newcomer.sender()) + 1, Reverse(floor));
        let (worst, victim) = self
            .queued_tails()
            .filter(|(_, tail)| tail.sender() != newcomer.sender() || tail.nonce() > newcomer.nonce())
            .max_by_key(|(worst, tail)| (*worst, tail.arrival))?;
        (worst > mine).then_some(victim)
    }

    /// Iterates over the last transaction of each sender with queued ones, with their number and the transaction's
    /// floor.
    fn queued_tails(&self) -> impl Iterator<Item = ((usize, Reverse<Option<U256>>), &Arc<PoolTransaction>)> {
        self.eviction.iter().take_while(|key| key.rank == Rank::Queued).filter_map(|key| {
            let queue = self.sender(key.sender)?;
            Some(((queue.queued_len(), Reverse(key.floor)), queue.tail_first().next()?.0))
        })
    }

    /// Drops expired transactions and those beyond the limits. Their records are due to be deleted.
    pub(in crate::pool) fn enforce(&mut self, limits: &PoolLimits, now: u64) {
        self.enforced = now;
        let mut victims = Vec::new();
        let lifetime = u64::try_from(limits.queued_lifetime.as_millis()).unwrap_or(u64::MAX);
        for (_, queue) in self.senders().filter(|(_, queue)| queue.queued_len() > 0) {
            let waited = now.saturating_sub(queue.touched());
            let queued = queue.queued().map(|transaction| transaction.hash());
            if waited > lifetime {
                victims.extend(queued.map(|hash| (hash, DropReason::Expired { waited: waited / 1_000 })));
            } else {
                victims.extend(queued.skip(limits.queued_per_account).map(|hash| (hash, DropReason::AccountLimit)));
            }
        }
        for (hash, reason) in &victims {
            self.remove(*hash, reason.clone());
        }
        let mut hashes: Vec<_> = victims.into_iter().map(|(hash, _)| hash).collect();
        while self.queued > limits.queued
            && let Some(hash) =
                self.queued_tails().max_by_key(|(worst, tail)| (*worst, tail.arrival)).map(|(_, tail)| tail.hash())
        {
            self.remove(hash, DropReason::Evicted);
            hashes.push(hash);
        }
        while (self.len() > limits.transactions || self.bytes > limits.bytes)
            && let Some(hash) = self.last_in_order()
        {
            self.remove(hash, DropReason::Evicted);
            hashes.push(hash);
        }
        self.must_record(hashes);
    }

    /// Returns the transaction that is evicted first.
    fn last_in_order(&self) -> Option<H256> {
        let key = self.eviction.first()?;
        Some(self.sender(key.sender)?.tail_first().next()?.0.hash())
    }
}

/// Iterates over the eviction keys of a sender's transactions, last transaction first, each as if the later ones had
/// already been evicted.
pub(super) fn eviction_keys(
    sender: Address,
    queue: &SenderQueue,
    guaranteed: usize,
) -> impl Iterator<Item = (EvictionKey, &Arc<PoolTransaction>)> {
    let length = queue.len();
    queue.tail_first().enumerate().map(move |(after, (transaction, floor))| {
        let rank = Rank::new(transaction.nonce() < queue.pending_end(), floor, length - after <= guaranteed);
        (EvictionKey { rank, floor, arrival: Reverse(transaction.arrival), sender }, transaction)
    })
}
