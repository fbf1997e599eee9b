//! Bounded histories of transactions that entered and left the pool.

use super::{Arrival, Arrivals, DropReason};
use node_types::H256;
use node_types::consensus::BlobSidecar;
use std::collections::{HashMap, VecDeque};

/// The reasons for the most recently dropped transactions.
#[derive(Default)]
pub(super) struct DroppedReasons {
    reasons: HashMap<H256, (u64, DropReason)>,
    order: VecDeque<(u64, H256)>,
    next: u64,
}

impl DroppedReasons {
    /// About as many transactions as the pool holds by default.
    const CAPACITY: usize = 16_384;

    pub(super) fn insert(&mut self, hash: H256, reason: DropReason) {
        self.reasons.insert(hash, (self.next, reason));
        self.order.push_back((self.next, hash));
        self.next += 1;
        if self.order.len() > Self::CAPACITY
            && let Some((number, hash)) = self.order.pop_front()
            && self.reasons.get(&hash).is_some_and(|(newest, _)| *newest == number)
        {
            self.reasons.remove(&hash);
        }
    }

    /// Removes the reason of a transaction that entered the pool again.
    pub(super) fn forget(&mut self, hash: H256) {
        self.reasons.remove(&hash);
    }

    pub(super) fn get(&self, hash: H256) -> Option<&DropReason> {
        self.reasons.get(&hash).map(|(_, reason)| reason)
    }
}

/// Hashes of the most recent arrivals, with ascending numbers.
pub(super) struct ArrivalLog {
    arrivals: VecDeque<Arrival>,
    next: u64,
}

impl ArrivalLog {
    /// A filter that is not polled during this many arrivals loses the oldest ones. They take 3 MB.
    const CAPACITY: usize = 65_536;

    /// Starts numbering at the current time in microseconds, so that numbers ascend across restarts even if no
    /// earlier arrivals are left.
    pub(super) fn starting_at(now_millis: u64) -> Self {
        Self { arrivals: VecDeque::new(), next: now_millis.saturating_mul(1_000) }
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Continues with `number`, unless the next number is already higher.
    pub(super) fn continue_from(&mut self, number: u64) {
        self.next = self.next.max(number);
    }

    pub(super) fn push(&mut self, number: u64, hash: H256) {
        self.arrivals.push_back(Arrival { number, hash });
        self.next = self.next.max(number.saturating_add(1));
        if self.arrivals.len() > Self::CAPACITY {
            self.arrivals.pop_front();
        }
    }

    /// Keeps only the transactions for which `kept` returns true. Does not affect the next number.
    pub(super) fn retain(&mut self, kept: impl Fn(H256) -> bool) {
        self.arrivals.retain(|arrival| kept(arrival.hash));
    }

    /// Returns the first `limit` arrivals with number `since` or higher.
    pub(super) fn since(&self, since: u64, limit: usize) -> Arrivals {
        let start = self.arrivals.partition_point(|arrival| arrival.number < since);
        let end = start.saturating_add(limit).min(self.arrivals.len());
        let next = self.arrivals.get(end).map_or(self.next, |arrival| arrival.number);
        Arrivals { transactions: self.arrivals.range(start..end).copied().collect(), next }
    }
}

/// Blobs of the most recently mined transactions. Blocks do not contain blobs, but they are needed if a block leaves
/// the chain.
#[derive(Default)]
pub(super) struct MinedBlobs(VecDeque<(H256, BlobSidecar)>);

impl MinedBlobs {
    /// About 50 MB at six blobs each.
    const CAPACITY: usize = 64;

    pub(super) fn insert(&mut self, hash: H256, sidecar: BlobSidecar) {
        // A transaction that was reverted may have been sent and mined again.
        self.take(hash);
        self.0.push_back((hash, sidecar));
        if self.0.len() > Self::CAPACITY {
            self.0.pop_front();
        }
    }

    pub(super) fn get(&self, hash: H256) -> Option<&BlobSidecar> {
        self.0.iter().find(|(mined, _)| *mined == hash).map(|(_, sidecar)| sidecar)
    }

    pub(super) fn sidecars(&self) -> impl Iterator<Item = &BlobSidecar> {
        self.0.iter().map(|(_, sidecar)| sidecar)
    }

    pub(super) fn take(&mut self, hash: H256) -> Option<BlobSidecar> {
        let position = self.0.iter().position(|(mined, _)| *mined == hash)?;
        self.0.remove(position).map(|(_, sidecar)| sidecar)
    }
}
