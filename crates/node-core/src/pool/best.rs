//! The order in which transactions enter a block.

use super::PoolTransaction;
use crate::assembly::MAX_BLOCK_SIZE;
use crate::block::RecoveredTransaction;
use crate::executor::{BlockExecution, ExecutionError};
use crate::protocol::gas::TRANSACTION_GAS;
use node_types::{H256, U256};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::sync::Arc;

/// Number of bytes of a block reserved for everything except its transactions.
const OTHER_BYTES: u64 = 64 << 10;

/// The order of transactions in a block. Those of one sender always stay in nonce order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransactionOrder {
    /// Highest effective tip first; equal tips in order of arrival.
    #[default]
    Fees,
    /// In order of arrival.
    Fifo,
}

/// Pending transactions in the order in which they enter a block.
///
/// If a transaction does not pay the base fee or the blob base fee, it and the later ones of its sender are skipped.
/// This is a snapshot: later changes to the pool do not affect it.
pub struct BestTransactions {
    order: TransactionOrder,
    base_fee: Option<u64>,
    blob_base_fee: Option<U256>,
    heads: BinaryHeap<Candidate>,
    last: Option<VecDeque<Arc<PoolTransaction>>>,
    excluded: HashSet<H256>,
}

/// What filled a block.
#[derive(Default)]
pub struct Filled {
    pub transactions: Vec<RecoveredTransaction>,
    /// Transactions with which the block would be invalid, and why.
    pub faulty: Vec<(H256, String)>,
}

/// The next transaction of one sender, with those that follow it.
struct Candidate {
    /// Effective tip in wei per gas; zero when the order is by arrival.
    tip: U256,
    next: Arc<PoolTransaction>,
    rest: VecDeque<Arc<PoolTransaction>>,
}

impl BestTransactions {
    /// Orders `runs`, each of which consists of the pending transactions of one sender.
    pub(super) fn new(
        order: TransactionOrder,
        base_fee: Option<u64>,
        blob_base_fee: Option<U256>,
        runs: impl Iterator<Item = VecDeque<Arc<PoolTransaction>>>,
    ) -> Self {
        let mut best =
            Self { order, base_fee, blob_base_fee, heads: BinaryHeap::new(), last: None, excluded: HashSet::new() };
        runs.for_each(|run| best.push(run));
        best
    }

    /// Skips the transactions `excluded`, and the later ones of their senders.
    pub(crate) fn without(self, excluded: HashSet<H256>) -> Self {
        Self { excluded, ..self }
    }

    /// Returns whether no transactions are left.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty() && self.last.is_none()
    }

    /// Executes transactions in a block until `gas_limit` is reached. A transaction that the block refuses, or that
    /// would make it too long, is skipped together with the later ones of its sender.
    ///
    /// # Errors
    /// If the block cannot be executed. A refused transaction is not an error.
    pub fn fill(mut self, execution: &mut dyn BlockExecution, gas_limit: u64) -> Result<Filled, ExecutionError> {
        let mut filled = Filled::default();
        let mut room = MAX_BLOCK_SIZE - OTHER_BYTES;
        while execution.gas_used().saturating_add(TRANSACTION_GAS) <= gas_limit
            && let Some(next) = self.next()
        {
            if self.excluded.contains(&next.hash()) {
                self.skip_sender();
                continue;
            }
            // A typed transaction is an RLP string in the body, whose header has up to four bytes.
            let length = next.recovered.transaction.encode().len() as u64 + 4;
            if length > room {
                self.skip_sender();
                continue;
            }
            match execution.transact(&next.recovered) {
                Ok(_) => {
                    room -= length;
                    filled.transactions.push(next.recovered.clone());
                }
                Err(ExecutionError::Refused(refusal)) => {
                    tracing::debug!(hash = ?next.hash(), %refusal, "left out of a block");
                    self.skip_sender();
                }
                Err(error @ ExecutionError::SystemContract { .. }) => {
                    filled.faulty.push((next.hash(), error.to_string()));
                    self.skip_sender();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Skips the remaining transactions of the sender whose transaction was returned last, because the block did not
    /// include it.
    pub fn skip_sender(&mut self) {
        self.last = None;
    }

    /// Adds a sender with its next transaction, if that transaction pays enough.
    fn push(&mut self, mut rest: VecDeque<Arc<PoolTransaction>>) {
        let Some(next) = rest.pop_front() else { return };
        let Some(tip) = next.body().effective_tip(self.base_fee) else { return };
        if let (Some(cap), Some(base_fee)) = (next.blob_fee_cap(), self.blob_base_fee)
            && cap < base_fee
        {
            return;
        }
        let tip = match self.order {
            TransactionOrder::Fees => tip,
            TransactionOrder::Fifo => U256::zero(),
        };
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
