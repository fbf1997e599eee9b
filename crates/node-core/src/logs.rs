//! Searching logs.

use crate::backend::{BackendError, LogFilter, LogSearch, View};
use crate::block::{BlockLogs, BlockRef, LogPosition, LogRef};
use crate::context::Context;
use node_types::buffer::BufferFull;
use node_types::consensus::Log;
use node_types::{Address, BlockNumber, H256};
use std::ops::ControlFlow;

/// Maximum number of candidates requested at once; the context is checked in between.
const CHUNK: usize = 2048;

/// Maximum number of blocks that are read at once. A page may end at the first of them.
const BLOCKS: usize = 32;

/// Number of blocks that are read first: they may have many bytes of logs.
const FIRST_BLOCKS: usize = 8;

/// Number of bytes of logs in the blocks that are read at once, from which on fewer blocks are read.
const BLOCK_BYTES: usize = 4 << 20;

/// A log with its position on the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLog<L = Log> {
    /// The block that contains it.
    pub block: BlockRef,
    /// Timestamp of the block, in Unix seconds.
    pub timestamp: u64,
    /// Whether this is the pending block.
    pub pending: bool,
    /// Index among all logs of the block, from 0.
    pub log_index: u64,
    /// Index of its transaction in the block, from 0.
    pub transaction_index: usize,
    pub transaction_hash: H256,
    pub log: L,
}

impl FoundLog<LogRef<'_>> {
    /// Copies the log.
    pub fn to_found_log(&self) -> FoundLog {
        let Self { block, timestamp, pending, log_index, transaction_index, transaction_hash, ref log } = *self;
        FoundLog { block, timestamp, pending, log_index, transaction_index, transaction_hash, log: log.to_log() }
    }
}

/// The room for logs on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    /// Maximum number of logs, or of other entries.
    pub entries: usize,
    /// Bytes of the logs' data after which a page ends. The last log may exceed them.
    pub bytes: usize,
}

impl PageSize {
    /// Bytes of data after which a [bounded](Self::bounded) page ends.
    pub(crate) const BYTES: usize = 4 << 20;

    /// Returns the size of a page that can be sent as one response, of at most `entries`.
    pub fn bounded(entries: usize) -> Self {
        Self { entries, bytes: Self::BYTES }
    }

    /// Returns the size of a page that only the number of entries limits.
    pub fn of_entries(entries: usize) -> Self {
        Self { entries, bytes: usize::MAX }
    }

    /// Returns whether another log fits.
    pub(crate) fn has_room(self) -> bool {
        self.entries > 0 && self.bytes > 0
    }

    /// Takes the room for a log with this data. Returns `false` if there is none.
    pub(crate) fn take(&mut self, data: &[u8]) -> bool {
        let fits = self.has_room();
        if fits {
            self.entries -= 1;
            self.bytes = self.bytes.saturating_sub(data.len());
        }
        fits
    }
}

/// Where a page of logs ends although more follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEnd {
    /// Position of the next matching log.
    pub next: LogPosition,
    /// Why whoever receives the logs did not take the next one; `None` if the [size](PageSize) of the page is reached.
    pub full: Option<BufferFull>,
}

/// The result of a scan for logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogScan {
    /// Matching logs in chain order.
    pub logs: Vec<FoundLog>,
    /// Position of the next matching log, or `None` if there are no more.
    pub next: Option<LogPosition>,
}

impl LogFilter {
    /// Returns whether `log` matches this filter.
    pub fn matches(&self, log: &Log) -> bool {
        self.matches_parts(&log.address, log.topics.iter().map(|topic| &topic.0))
    }

    /// Returns whether a log in the memory of its block matches this filter.
    pub fn matches_ref(&self, log: &LogRef<'_>) -> bool {
        self.matches_parts(&log.address, log.topics.iter())
    }

    fn matches_parts<'a>(&self, address: &Address, topics: impl ExactSizeIterator<Item = &'a [u8; 32]>) -> bool {
        let has = |words: &[H256], topic: &[u8; 32]| words.is_empty() || words.iter().any(|word| word.0 == *topic);
        (self.addresses.is_empty() || self.addresses.contains(address))
            && self.topics.len() <= topics.len()
            && self.topics.iter().zip(topics).all(|(words, topic)| has(words, topic))
    }
}

/// Returns the first page of the logs that match `filter`, from `from` to the end of block `to`, both inclusive.
///
/// # Errors
/// [`BackendError::Interrupted`] if the context is, and failures of the backend.
pub fn scan(
    view: &dyn View,
    context: &Context,
    filter: &LogFilter,
    from: LogPosition,
    to: BlockNumber,
    page: PageSize,
) -> Result<LogScan, BackendError> {
    let mut logs = Vec::new();
    let end = visit(view, context, filter, from, to, page, |found| {
        logs.push(found.to_found_log());
        ControlFlow::Continue(())
    })?;
    Ok(LogScan { logs, next: end.map(|end| end.next) })
}

/// Passes the logs of a page to `visit`, in chain order, where [`scan`] returns copies of them. The page ends at the log
/// that `visit` does not take. Returns where it ends, or `None` if there are no more logs.
///
/// # Errors
/// Those of [`scan`]. If an error is returned, `visit` may already have been called with some of the logs.
pub fn visit(
    view: &dyn View,
    context: &Context,
    filter: &LogFilter,
    mut from: LogPosition,
    to: BlockNumber,
    mut page: PageSize,
    mut visit: impl FnMut(FoundLog<LogRef<'_>>) -> ControlFlow<BufferFull>,
) -> Result<Option<PageEnd>, BackendError> {
    let mut blocks_at_once = FIRST_BLOCKS;
    while from.block <= to {
        context.check()?;
        // One more than still fits, to determine whether more logs match.
        let wanted = page.entries.saturating_add(1).min(CHUNK);
        let candidates = view.log_candidates(context, LogSearch { filter, from, to, limit: wanted })?;
        let by_block: Vec<_> = candidates.chunk_by(|a, b| a.block == b.block).collect();
        let mut rest = &by_block[..];
        while !rest.is_empty() {
            context.check()?;
            let (by_block, later) = rest.split_at(rest.len().min(blocks_at_once));
            rest = later;
            let numbers: Vec<_> = by_block.iter().map(|positions| positions[0].block).collect();
            let blocks = view.logs(&numbers)?;
            let bytes: usize = blocks.iter().map(BlockLogs::size).sum();
            blocks_at_once =
                if bytes > BLOCK_BYTES { (by_block.len() / 2).max(1) } else { (2 * blocks_at_once).min(BLOCKS) };
            for (positions, block) in by_block.iter().zip(blocks) {
                for position in *positions {
                    let log = usize::try_from(position.log_index).ok().and_then(|index| block.get(index));
                    let Some(found) = log.filter(|found| filter.matches_ref(&found.log)) else { continue };
                    if !page.take(found.log.data) {
                        return Ok(Some(PageEnd { next: *position, full: None }));
                    }
                    let visited = visit(FoundLog {
                        block: BlockRef { number: position.block, hash: block.hash },
                        timestamp: block.timestamp,
                        pending: false,
                        log_index: position.log_index,
                        transaction_index: found.transaction_index,
                        transaction_hash: found.transaction_hash,
                        log: found.log,
                    });
                    if let ControlFlow::Break(full) = visited {
                        return Ok(Some(PageEnd { next: *position, full: Some(full) }));
                    }
                }
            }
        }
        match candidates.last() {
            Some(last) if candidates.len() == wanted => {
                from = LogPosition { block: last.block, log_index: last.log_index + 1 };
            }
            _ => break,
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::state::StateChanges;
    use crate::test_chain::{address, backend, log, push, transaction, word};
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn matches() {
        // Contract and topics of the log, contracts and topics of the filter, expected match.
        type Case = (u8, &'static [u64], &'static [u8], &'static [&'static [u64]], bool);
        let cases: &[Case] = &[
            (1, &[], &[], &[], true),
            (1, &[5], &[], &[], true),
            (1, &[5], &[1], &[], true),
            (1, &[5], &[2], &[], false),
            (1, &[5], &[2, 1], &[], true),
            (1, &[5], &[], &[&[5]], true),
            (1, &[5], &[], &[&[6]], false),
            (1, &[5], &[], &[&[6, 5]], true),
            (1, &[5, 6], &[], &[&[5]], true),
            (1, &[5, 6], &[], &[&[], &[6]], true),
            (1, &[5, 6], &[], &[&[6], &[]], false),
            // A filter with more positions than the log has topics never matches, not even with wildcards.
            (1, &[], &[], &[&[]], false),
            (1, &[5], &[], &[&[5], &[]], false),
            (1, &[5, 6, 7], &[], &[&[], &[], &[], &[]], false),
            (1, &[5, 6, 7, 8], &[], &[&[], &[], &[], &[]], true),
        ];
        for (contract, topics, addresses, positions, expected) in cases {
            let filter = filter(addresses, positions.iter().copied());
            assert_eq!(filter.matches(&log(*contract, topics)), *expected, "log of {contract} {topics:?}, {filter:?}");
        }
    }

    fn filter<'a>(addresses: &[u8], positions: impl IntoIterator<Item = &'a [u64]>) -> LogFilter {
        LogFilter {
            addresses: addresses.iter().copied().map(address).collect(),
            topics: positions.into_iter().map(|words| words.iter().copied().map(word).collect()).collect(),
        }
    }

    /// A log as contract and topics; a block as the logs of each transaction.
    type LogSketch = (u8, Vec<u64>);

    fn blocks() -> impl Strategy<Value = Vec<Vec<Vec<LogSketch>>>> {
        let sketch = (0..3u8, vec(0..3u64, 0..4));
        vec(vec(vec(sketch, 0..4), 0..3), 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A scan finds, page by page, the same logs as a look at every log.
        #[test]
        fn a_scan_finds_all_matching_logs(
            blocks in blocks(),
            addresses in vec(0..3u8, 0..3),
            positions in vec(vec(0..3u64, 0..3), 0..4),
            limit in 1..5usize,
        ) {
            let backend = backend();
            let filter = filter(&addresses, positions.iter().map(Vec::as_slice));
            let mut expected = Vec::new();
            for (number, block) in (1..).zip(&blocks) {
                let mut transactions = Vec::new();
                let mut log_index = 0;
                for (transaction_index, sketches) in block.iter().enumerate() {
                    let transaction = transaction(transaction_index as u8, number, 1);
                    let logs: Vec<_> = sketches.iter().map(|(contract, topics)| log(*contract, topics)).collect();
                    for (log, (contract, topics)) in logs.iter().zip(sketches) {
                        let topics_match = positions.iter().enumerate().all(|(index, words)| {
                            topics.get(index).is_some_and(|topic| words.is_empty() || words.contains(topic))
                        });
                        if topics_match && (addresses.is_empty() || addresses.contains(contract)) {
                            expected.push((number, log_index, transaction_index, transaction.hash, log.clone()));
                        }
                        log_index += 1;
                    }
                    transactions.push((transaction, logs));
                }
                push(&*backend, transactions, StateChanges::default());
            }

            let view = backend.view().unwrap();
            let mut found = Vec::new();
            let mut next = Some(LogPosition { block: 0, log_index: 0 });
            while let Some(from) = next {
                let size = PageSize::of_entries(limit);
                let page = scan(&*view, &Context::unbounded(), &filter, from, view.head().number, size).unwrap();
                prop_assert!(page.logs.len() == limit || page.next.is_none(), "a page of {} logs", page.logs.len());
                for log in &page.logs {
                    prop_assert_eq!(view.canonical_hash(log.block.number).unwrap(), Some(log.block.hash));
                }
                found.extend(page.logs.into_iter().map(|found| {
                    (found.block.number, found.log_index, found.transaction_index, found.transaction_hash, found.log)
                }));
                next = page.next;
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_cancelled_scan_ends() {
        let context = Context::unbounded();
        context.cancel();
        let view = backend().view().unwrap();
        let size = PageSize::of_entries(10);
        let found = scan(&*view, &context, &LogFilter::default(), LogPosition { block: 0, log_index: 0 }, 0, size);
        assert!(matches!(found, Err(BackendError::Interrupted(_))), "{found:?}");
    }
}
