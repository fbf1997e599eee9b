//! Searching logs by scanning blocks.

use super::LogSearch;
use crate::block::{LogPosition, SealedHeader};
use node_types::consensus::{Bloom, Receipt};

/// The logs found so far by a scan of blocks in ascending order.
pub(super) struct Candidates<'a> {
    search: LogSearch<'a>,
    /// For each part of the filter, the bloom bits of the items, of which a log must have at least one.
    wanted: Vec<Vec<BloomBits>>,
    found: Vec<LogPosition>,
}

/// Bytes of a bloom filter, each with a mask of bits in it.
type BloomBits = Vec<(usize, u8)>;

impl<'a> Candidates<'a> {
    /// Starts a scan.
    pub(super) fn new(search: LogSearch<'a>) -> Self {
        let filter = search.filter;
        let addresses = filter.addresses.iter().map(|address| bits(address.as_bytes())).collect();
        let topics = filter.topics.iter().map(|words| words.iter().map(|word| bits(word.as_bytes())).collect());
        let wanted = [addresses].into_iter().chain(topics).filter(|items: &Vec<BloomBits>| !items.is_empty()).collect();
        Self { search, wanted, found: Vec::new() }
    }

    /// Continues a scan that has already found `found`.
    pub(super) fn with_found(self, found: Vec<LogPosition>) -> Self {
        Self { found, ..self }
    }

    /// Returns whether the limit is reached.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= self.search.limit
    }

    /// Scans the block of `header`, unless its bloom filter rules out a match.
    pub(super) fn scan(&mut self, header: &SealedHeader, receipts: &[Receipt]) {
        if !self.may_match(&header.header.logs_bloom) {
            return;
        }
        let number = header.header.number;
        let logs = receipts.iter().flat_map(|receipt| &receipt.logs);
        let positions = (0..)
            .zip(logs)
            .filter(|(_, log)| self.search.filter.matches(log))
            .map(|(log_index, _)| LogPosition { block: number, log_index })
            .filter(|position| *position >= self.search.from)
            .take(self.search.limit - self.found.len().min(self.search.limit));
        self.found.extend(positions);
    }

    /// Returns the positions found, in chain order.
    pub(super) fn into_found(self) -> Vec<LogPosition> {
        self.found
    }

    fn may_match(&self, bloom: &Bloom) -> bool {
        let holds = |item: &BloomBits| item.iter().all(|(byte, mask)| bloom.0[*byte] & mask == *mask);
        self.wanted.iter().all(|items| items.iter().any(holds))
    }
}

/// Returns the bits that `item` sets in a bloom filter.
fn bits(item: &[u8]) -> BloomBits {
    let mut bloom = Bloom::ZERO;
    bloom.accrue(item);
    bloom.0.into_iter().enumerate().filter(|(_, mask)| *mask != 0).collect()
}
