//! Repeating the first transactions of a block of the chain that a development chain continues.

use super::{Producer, ProducerError, ProducerParts, log_sealed};
use crate::assembly::assemble;
use crate::block::{ExecutedBlock, RecoveredTransaction};
use crate::context::Context;
use crate::edits::Edits;
use crate::executor::{BlockExecution, ExecutionError, TransactionError};
use crate::pool::{self, Effects};
use crate::protocol::fees;
use node_types::H256;
use node_types::consensus::{EMPTY_OMMERS_HASH, EMPTY_ROOT, Header, Receipt, ReceiptOutcome};

/// The first transactions of the block after the one that a fork begins with.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The block of the other chain. Its changes are not used.
    pub block: ExecutedBlock,
    /// The number of its transactions that are repeated; at most all.
    pub count: usize,
}

impl Replay {
    /// Returns the transactions that are repeated.
    pub(super) fn transactions(&self) -> &[RecoveredTransaction] {
        let all = &self.block.body.transactions;
        all.get(..self.count).unwrap_or(all)
    }

    /// Returns the header of the repetition, with the fields that do not depend on execution.
    fn header(&self) -> Header {
        let original = &self.block.header.header;
        Header {
            parent_hash: original.parent_hash,
            ommers_hash: EMPTY_OMMERS_HASH,
            beneficiary: original.beneficiary,
            difficulty: original.difficulty,
            number: original.number,
            gas_limit: original.gas_limit,
            timestamp: original.timestamp,
            mix_hash: original.mix_hash,
            base_fee_per_gas: original.base_fee_per_gas,
            withdrawals_root: original.withdrawals_root.map(|_| EMPTY_ROOT),
            excess_blob_gas: original.excess_blob_gas,
            parent_beacon_block_root: original.parent_beacon_block_root,
            ..Header::default()
        }
    }

    /// Fails if a repeated transaction has another receipt than the original.
    fn check(&self, receipts: &[Receipt]) -> Result<(), ProducerError> {
        let both = receipts.iter().zip(&*self.block.receipts);
        for (transaction, (repeated, original)) in self.transactions().iter().zip(both) {
            if let Some(difference) = ReplayDifference::between(repeated, original) {
                return Err(self.differs(transaction.hash, difference));
            }
        }
        Ok(())
    }

    fn differs(&self, transaction: H256, difference: ReplayDifference) -> ProducerError {
        ProducerError::Replay { transaction, block: self.block.header.header.number, difference }
    }
}

/// How the repetition of a transaction differs from the original.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayDifference {
    #[error("it is refused")]
    Refused(#[source] TransactionError),
    #[error("it {}", if *.succeeds { "failed, and succeeds now" } else { "succeeded, and fails now" })]
    Outcome {
        /// Whether the repetition succeeds.
        succeeds: bool,
    },
    #[error("the block has used {got} gas after it, and had used {expected}")]
    Gas { got: u64, expected: u64 },
    #[error("its logs are others")]
    Logs,
}

impl ReplayDifference {
    fn between(repeated: &Receipt, original: &Receipt) -> Option<Self> {
        let (got, expected) = (repeated.cumulative_gas_used, original.cumulative_gas_used);
        if let (ReceiptOutcome::Success(succeeds), ReceiptOutcome::Success(succeeded)) =
            (&repeated.outcome, &original.outcome)
            && succeeds != succeeded
        {
            return Some(Self::Outcome { succeeds: *succeeds });
        }
        if got != expected {
            return Some(Self::Gas { got, expected });
        }
        (repeated.logs != original.logs).then_some(Self::Logs)
    }
}

impl Producer {
    /// Appends a block that repeats transactions of another chain, which continues from the head as well. It has the
    /// environment of the original, and neither its ommers nor its withdrawals. The chain's clock keeps running.
    ///
    /// # Errors
    /// [`ProducerError::Replay`], and failures of the execution and the backend. Nothing has changed then.
    pub(super) fn repeat(&self, replay: &Replay) -> Result<(), ProducerError> {
        let ProducerParts { backend, executor, pool, spec } = &self.parts;
        let (parent, header) = (self.head()?, replay.header());
        let transactions = replay.transactions();
        let base_fee = header.base_fee_per_gas != fees::next_base_fee(spec, &parent.header);
        let gas_limit = super::has_far_gas_limit(spec, &parent, &header);
        let view = self.cached_view()?;
        let mut current = None;
        let fill = |execution: &mut dyn BlockExecution| {
            for transaction in transactions {
                current = Some(transaction.hash);
                execution.transact(transaction)?;
            }
            Ok(transactions.to_vec())
        };
        let assembled = assemble(&Context::unbounded(), &**executor, &*view, header, Vec::new(), fill);
        drop(view);
        let block = match (assembled, current) {
            (Ok(assembled), _) => assembled.block,
            (Err(ExecutionError::Refused(reason)), Some(hash)) => {
                return Err(replay.differs(hash, ReplayDifference::Refused(reason)));
            }
            (Err(error), _) => return Err(error.into()),
        };
        replay.check(&block.receipts)?;
        let unsigned = transactions.iter().any(RecoveredTransaction::is_impersonating);
        let (header, changes) = (block.header.clone(), block.changes.clone());
        let writes = pool::deletions(transactions.iter().map(|transaction| transaction.hash));
        let edits = Edits { base_fee, unsigned, gas_limit, ..Edits::default() };
        pool.change_chain(Effects::default(), || backend.append_edited(block, edits, &writes))?;
        self.cache.advance(header.hash, &changes);
        log_sealed(&header);
        Ok(())
    }
}
