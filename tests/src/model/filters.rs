//! Filters as the model sees them, with their positions.

use super::chain::{Block, Model};
use node_core::backend::LogFilter;
use node_core::filters::FilterId;
use node_core::logs::FoundLog;
use node_types::consensus::Log;
use node_types::{BlockNumber, H256};
use std::ops::RangeInclusive;

/// A filter.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// Number of filters created before it.
    pub(super) number: u64,
    /// What it reports.
    pub(super) kind: Kind,
    /// How far it has reported.
    pub(super) cursor: Cursor,
}

/// What a filter reports.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Logs in a range of blocks.
    Logs(LogFilter, RangeInclusive<BlockNumber>),
    /// New blocks.
    Blocks,
    /// New transactions of the pool.
    Pending,
}

/// How far a filter has reported.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cursor {
    /// Up to this block.
    Block(H256),
    /// Up to the arrival before this one.
    Arrival(u64),
}

/// A log with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    block: H256,
    number: BlockNumber,
    log_index: u64,
    transaction: H256,
    transaction_index: u64,
    log: Log,
    removed: bool,
}

/// The changes that a filter must report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// Logs.
    Logs(Vec<Place>),
    /// Hashes of blocks or transactions.
    Hashes(Vec<H256>),
}

impl Place {
    /// The position of a log that the node found.
    pub(super) fn of(found: &FoundLog, removed: bool) -> Self {
        Self {
            block: found.block.hash,
            number: found.block.number,
            log_index: found.log_index,
            transaction: found.transaction_hash,
            transaction_index: found.transaction_index as u64,
            log: found.log.clone(),
            removed,
        }
    }
}

impl Model {
    /// The logs of a range of canonical blocks that match a filter.
    pub(super) fn logs(&self, filter: &LogFilter, range: RangeInclusive<BlockNumber>) -> Vec<Place> {
        let end = self.head_number().min(*range.end());
        (*range.start()..=end).flat_map(|number| logs_of(self.block(number), filter, false)).collect()
    }

    /// The changes since the last poll. Advances the filter.
    pub(super) fn poll(&mut self, id: FilterId) -> Changes {
        let mut filter = self.filters[&id].clone();
        let changes = match filter.cursor {
            Cursor::Arrival(since) => {
                filter.cursor = Cursor::Arrival(self.pool.next_arrival());
                let arrivals = self.pool.arrivals.iter().filter(|(number, _)| *number >= since);
                Changes::Hashes(arrivals.map(|(_, hash)| *hash).collect())
            }
            Cursor::Block(cursor) => {
                filter.cursor = Cursor::Block(self.head().header.hash);
                let mut removed = Vec::new();
                let mut block = self.blocks[&cursor].clone();
                while self.canonical.get(block.number() as usize) != Some(&block.header.hash) {
                    removed.push(block.clone());
                    block = self.blocks[&block.header.header.parent_hash].clone();
                }
                let new = block.number() + 1..=self.head_number();
                match &filter.kind {
                    Kind::Logs(criteria, range) => {
                        let gone = removed.iter().rev().filter(|block| range.contains(&block.number()));
                        let mut logs: Vec<_> = gone.flat_map(|block| logs_of(block, criteria, true)).collect();
                        let (first, last) = ((*range.start()).max(*new.start()), *range.end().min(new.end()));
                        logs.extend(self.logs(criteria, first..=last));
                        Changes::Logs(logs)
                    }
                    _ => Changes::Hashes(new.map(|number| self.canonical[number as usize]).collect()),
                }
            }
        };
        self.filters.insert(id.to_owned(), filter);
        changes
    }
}

fn logs_of(block: &Block, filter: &LogFilter, removed: bool) -> Vec<Place> {
    let asked_for = |log: &Log| {
        let address = filter.addresses.is_empty() || filter.addresses.contains(&log.address);
        let topics = filter.topics.iter().enumerate();
        address
            && topics
                .map(|(index, words)| (log.topics.get(index), words))
                .all(|(topic, words)| topic.is_some_and(|topic| words.is_empty() || words.contains(topic)))
    };
    let logs = block.logs.iter().zip(0..).filter(|((_, log), _)| asked_for(log));
    let place = |((transaction_index, log), log_index): (&(usize, Log), u64)| Place {
        block: block.header.hash,
        number: block.number(),
        log_index,
        transaction: block.transactions[*transaction_index].hash,
        transaction_index: *transaction_index as u64,
        log: log.clone(),
        removed,
    };
    logs.map(place).collect()
}
