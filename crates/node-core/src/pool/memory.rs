//! What the pool remembers of transactions that came and went. All of it is bounded.

use super::{Arrival, Arrivals, DropReason};
use node_types::H256;
use node_types::consensus::BlobSidecar;
use std::collections::{HashMap, VecDeque};

/// Reasons of the transactions dropped last.
#[derive(Default)]
pub(super) struct DroppedReasons {
    reasons: HashMap<H256, (u64, DropReason)>,
    order: VecDeque<(u64, H256)>,
    next: u64,
}

impl DroppedReasons {
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

    /// Forgets a transaction that came back.
    pub(super) fn forget(&mut self, hash: H256) {
        self.reasons.remove(&hash);
    }

    pub(super) fn get(&self, hash: H256) -> Option<&DropReason> {
        self.reasons.get(&hash).map(|(_, reason)| reason)
    }
}

/// Hashes of the transactions that came last, with ascending numbers.
pub(super) struct ArrivalLog {
    arrivals: VecDeque<Arrival>,
    next: u64,
}

impl ArrivalLog {
    const CAPACITY: usize = 65_536;

    /// Counts from the time in microseconds, so that numbers go on ascending after a restart, even if nothing is left
    /// of those from before.
    pub(super) fn starting_at(now_millis: u64) -> Self {
        Self { arrivals: VecDeque::new(), next: now_millis.saturating_mul(1_000) }
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Continues with `number`, unless the numbers are beyond it already.
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

    /// Forgets all but the transactions that answer true. Numbers go on as they would have.
    pub(super) fn retain(&mut self, kept: impl Fn(H256) -> bool) {
        self.arrivals.retain(|arrival| kept(arrival.hash));
    }

    /// The first `limit` at or after number `since`.
    pub(super) fn since(&self, since: u64, limit: usize) -> Arrivals {
        let start = self.arrivals.partition_point(|arrival| arrival.number < since);
        let end = start.saturating_add(limit).min(self.arrivals.len());
        let next = self.arrivals.get(end).map_or(self.next, |arrival| arrival.number);
        Arrivals { transactions: self.arrivals.range(start..end).copied().collect(), next }
    }
}

/// Blobs of the transactions mined last, for the case that their block leaves the chain: blocks do not hold them.
#[derive(Default)]
pub(super) struct MinedBlobs(VecDeque<(H256, BlobSidecar)>);

impl MinedBlobs {
    /// About 50 MB with six blobs each.
    const CAPACITY: usize = 64;

    pub(super) fn insert(&mut self, hash: H256, sidecar: BlobSidecar) {
        self.0.push_back((hash, sidecar));
        if self.0.len() > Self::CAPACITY {
            self.0.pop_front();
        }
    }

    pub(super) fn get(&self, hash: H256) -> Option<&BlobSidecar> {
        self.0.iter().find(|(mined, _)| *mined == hash).map(|(_, sidecar)| sidecar)
    }

    pub(super) fn take(&mut self, hash: H256) -> Option<BlobSidecar> {
        let position = self.0.iter().position(|(mined, _)| *mined == hash)?;
        self.0.remove(position).map(|(_, sidecar)| sidecar)
    }
}
