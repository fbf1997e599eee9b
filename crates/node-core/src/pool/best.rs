//! The order in which a block takes transactions.

use super::PoolTransaction;
use node_types::U256;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Pending transactions, those with the best effective tip first, each sender's in the order of nonces.
///
/// A sender whose next transaction does not pay the base fee or the blob base fee is left out from there on. It is a
/// snapshot: later changes of the pool do not show.
pub struct BestTransactions {
    base_fee: u64,
    blob_base_fee: Option<U256>,
    heads: BinaryHeap<Candidate>,
    last: Option<VecDeque<Arc<PoolTransaction>>>,
}

/// The next transaction of one sender, with those behind it.
struct Candidate {
    tip: U256,
    next: Arc<PoolTransaction>,
    rest: VecDeque<Arc<PoolTransaction>>,
}

impl BestTransactions {
    /// Orders `runs`, which are the pending transactions of one sender each.
    pub(super) fn new(
        base_fee: u64,
        blob_base_fee: Option<U256>,
        runs: impl Iterator<Item = VecDeque<Arc<PoolTransaction>>>,
    ) -> Self {
        let mut best = Self { base_fee, blob_base_fee, heads: BinaryHeap::new(), last: None };
        runs.for_each(|run| best.push(run));
        best
    }

    /// Leaves out what comes behind the last transaction that was answered, for the block did not take that one.
    pub fn skip_sender(&mut self) {
        self.last = None;
    }

    /// Lets a sender take part with its next transaction, if that one pays enough.
    fn push(&mut self, mut rest: VecDeque<Arc<PoolTransaction>>) {
        let Some(next) = rest.pop_front() else { return };
        let Some(tip) = next.body().effective_tip(self.base_fee) else { return };
        if let (Some(cap), Some(base_fee)) = (next.blob_fee_cap(), self.blob_base_fee)
            && cap < base_fee
        {
            return;
        }
        self.heads.push(Candidate { tip, next, rest });
    }
}

impl Iterator for BestTransactions {
    type Item = Arc<PoolTransaction>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(rest) = self.last.take() {
            self.push(rest);
        }
        let Candidate { next, rest, .. } = self.heads.pop()?;
        self.last = Some(rest);
        Some(next)
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |candidate: &Self| (candidate.tip, Reverse(candidate.next.arrival));
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}
