//! The logs of a block in one allocation.

use crate::block::{Body, SealedHeader};
use node_types::consensus::{Log, Receipt};
use node_types::{Address, Bytes, H256};
use std::sync::Arc;

/// All logs of one block.
///
/// A search reads a few logs of each of many blocks, so most of its time is spent on cache misses of the processor.
/// Therefore the logs are in one allocation, in order, and cloning copies none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLogs {
    pub hash: H256,
    /// Timestamp of the block, in Unix seconds.
    pub timestamp: u64,
    count: usize,
    /// The end of each log in these bytes, then the logs.
    bytes: Arc<[u8]>,
}

/// A log with the transaction that emitted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockLog<'a> {
    /// Index of the transaction in the block, from 0.
    pub transaction_index: usize,
    pub transaction_hash: H256,
    pub log: LogRef<'a>,
}

/// A log in the memory of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRef<'a> {
    /// The contract that emitted it.
    pub address: Address,
    pub topics: &'a [[u8; 32]],
    /// The data that is not indexed.
    pub data: &'a [u8],
}

impl LogRef<'_> {
    /// Copies the log.
    pub fn to_log(&self) -> Log {
        let topics = self.topics.iter().copied().map(H256).collect();
        Log { address: self.address, topics, data: Bytes::from(self.data) }
    }
}

impl BlockLogs {
    /// Collects the logs of a block.
    pub fn of(header: &SealedHeader, body: &Body, receipts: &[Receipt]) -> Self {
        let mut builder = BlockLogsBuilder::default();
        for (transaction_index, (transaction, receipt)) in body.transactions.iter().zip(receipts).enumerate() {
            for log in &receipt.logs {
                let topics = log.topics.iter().map(|topic| &topic.0);
                builder.push(transaction_index, transaction.hash, log.address, topics, &log.data);
            }
        }
        builder.finish(header.hash, header.header.timestamp)
    }

    /// Returns the number of logs.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether the block has no logs.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of bytes in which the logs are stored.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the log with an index among all logs of the block, or `None` if there are fewer.
    pub fn get(&self, index: usize) -> Option<BlockLog<'_>> {
        if index >= self.count {
            return None;
        }
        let (ends, _) = self.bytes.as_chunks::<NUMBER>();
        let end = |index: usize| ends.get(index).map(|end| usize::from_le_bytes(*end));
        let start = match index.checked_sub(1) {
            Some(previous) => end(previous)?,
            None => self.count * NUMBER,
        };
        let log = self.bytes.get(start..end(index)?)?;
        let (transaction_index, log) = log.split_first_chunk()?;
        let (topics, log) = log.split_first_chunk()?;
        let (transaction_hash, log) = log.split_first_chunk()?;
        let (address, log) = log.split_first_chunk()?;
        let (topics, data) = log.split_at_checked(size_of::<H256>() * usize::from_le_bytes(*topics))?;
        Some(BlockLog {
            transaction_index: usize::from_le_bytes(*transaction_index),
            transaction_hash: H256(*transaction_hash),
            log: LogRef { address: Address::from(*address), topics: topics.as_chunks().0, data },
        })
    }

    /// Returns the logs in order.
    pub fn iter(&self) -> impl Iterator<Item = BlockLog<'_>> {
        (0..self.count).filter_map(|index| self.get(index))
    }
}

/// Bytes of a number: an index, a count or an end.
const NUMBER: usize = size_of::<usize>();

/// Collects the logs of a block.
#[derive(Debug, Default)]
pub struct BlockLogsBuilder {
    ends: Vec<usize>,
    logs: Vec<u8>,
}

impl BlockLogsBuilder {
    /// Adds the next log, of the transaction with this index and hash.
    pub fn push<'a>(
        &mut self,
        transaction_index: usize,
        transaction_hash: H256,
        address: Address,
        topics: impl ExactSizeIterator<Item = &'a [u8; 32]>,
        data: &[u8],
    ) {
        self.logs.extend_from_slice(&transaction_index.to_le_bytes());
        self.logs.extend_from_slice(&topics.len().to_le_bytes());
        self.logs.extend_from_slice(&transaction_hash.0);
        self.logs.extend_from_slice(&address.0);
        topics.for_each(|topic| self.logs.extend_from_slice(topic));
        self.logs.extend_from_slice(data);
        self.ends.push(self.logs.len());
    }

    /// Returns the logs of the block with this hash and timestamp.
    pub fn finish(self, hash: H256, timestamp: u64) -> BlockLogs {
        let Self { ends, logs } = self;
        let first = ends.len() * NUMBER;
        let mut bytes = Vec::with_capacity(first + logs.len());
        ends.iter().for_each(|end| bytes.extend_from_slice(&(first + end).to_le_bytes()));
        bytes.extend_from_slice(&logs);
        BlockLogs { hash, timestamp, count: ends.len(), bytes: bytes.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn returns_the_logs_that_were_added(
            logs in vec(
                (any::<usize>(), any::<[u8; 32]>(), any::<[u8; 20]>(), vec(any::<[u8; 32]>(), 0..6), vec(any::<u8>(), 0..99)),
                0..9,
            ),
        ) {
            let mut builder = BlockLogsBuilder::default();
            for (index, hash, address, topics, data) in &logs {
                builder.push(*index, H256(*hash), Address::from(*address), topics.iter(), data);
            }
            let block = builder.finish(H256::repeat_byte(1), 2);
            prop_assert_eq!((block.hash, block.timestamp), (H256::repeat_byte(1), 2));
            prop_assert_eq!((block.len(), block.is_empty()), (logs.len(), logs.is_empty()));
            prop_assert_eq!(block.get(logs.len()), None);
            for (index, log) in logs.iter().enumerate() {
                let (transaction_index, hash, address, topics, data) = log;
                let log = LogRef { address: Address::from(*address), topics, data };
                let expected =
                    BlockLog { transaction_index: *transaction_index, transaction_hash: H256(*hash), log };
                prop_assert_eq!(block.get(index), Some(expected));
            }
            prop_assert_eq!(block.iter().count(), logs.len());
        }
    }
}
