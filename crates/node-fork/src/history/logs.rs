//! Searching the logs of ancestors.
//!
//! An endpoint says which blocks have logs that match. Which logs these are follows from the receipts, which are verified,
//! and must be as many as it listed. Nothing shows that it has not omitted all logs of a block.

use super::searched::Listed;
use super::{History, raw};
use crate::contents::Kind;
use crate::error::{ForkError, Needed, storage};
use node_core::backend::{BackendError, LogFilter, LogSearch};
use node_core::block::{BlockLogs, LogPosition};
use node_core::context::Context;
use node_types::wire::{Data, Quantity64};
use node_types::{BlockNumber, Bytes, H256, keccak256};
use node_upstream::UpstreamError;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::atomic::Ordering;

/// Number of blocks of which logs are requested at once at first. Many providers accept no more.
pub(super) const FIRST_SPAN: u64 = 10_000;

/// Maximum number of blocks of which logs are requested at once.
const MAX_SPAN: u64 = 100_000;

/// Maximum number of searches with the same filter that are kept for a fork without an upstream.
const MAX_CLAIMS: usize = 1_000;

/// A log in the response to a search. Everything else is read from the receipts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FoundLog {
    block_number: Quantity64,
}

impl History {
    /// Returns the logs of an ancestor.
    pub(crate) fn logs(&self, number: BlockNumber) -> Result<BlockLogs, BackendError> {
        let hash = self.hash(number)?;
        let (header, body, receipts) = (self.header(hash)?, self.body(hash)?, self.receipts(hash)?);
        match (header, body, receipts) {
            (Some(header), Some(body), Some(receipts)) => Ok(BlockLogs::of(&header, &body, &receipts)),
            _ => Err(self.missing(Needed::Block(hash))),
        }
    }

    /// Returns the positions of logs of ancestors that match, like
    /// [`log_candidates`](node_core::backend::View::log_candidates). `search` must end before the fork.
    pub(crate) fn log_positions(
        &self,
        context: &Context,
        search: LogSearch<'_>,
    ) -> Result<Vec<LogPosition>, BackendError> {
        let mut positions = Vec::new();
        let mut from = search.from.block;
        while from <= search.to && positions.len() < search.limit {
            context.check()?;
            let (end, listed) = self.blocks_with_logs(context, search.filter, from, search.to)?;
            let blocks: Vec<_> = listed.keys().copied().collect();
            let mut blocks = &blocks[..];
            while !blocks.is_empty() && positions.len() < search.limit {
                context.check()?;
                let wanted = first_with(&listed, blocks, search.limit - positions.len());
                let (some, later) = blocks.split_at(self.prefetch(wanted)?);
                blocks = later;
                for block in some {
                    let logs = self.logs(*block)?;
                    let matching = (0..).zip(logs.iter()).filter(|(_, found)| search.filter.matches_ref(&found.log));
                    let all: Vec<_> = matching.map(|(log_index, _)| LogPosition { block: *block, log_index }).collect();
                    self.compare(search, *block, listed[block], all.len())?;
                    positions.extend(all.into_iter().filter(|position| *position >= search.from));
                }
            }
            from = end + 1;
        }
        positions.truncate(search.limit);
        Ok(positions)
    }

    /// Compares the number of logs that match in a block with that which an endpoint listed.
    fn compare(
        &self,
        search: LogSearch<'_>,
        block: BlockNumber,
        listed: Option<u64>,
        found: usize,
    ) -> Result<(), BackendError> {
        let expected = listed.unwrap_or(found as u64);
        if expected == found as u64 && found > 0 {
            return Ok(());
        }
        // Nothing that was said about this filter is believed any more.
        self.searched.forget(filter_key(search.filter));
        self.base.contents().add(vec![(Kind::ClaimedLogs, self.searches_key(search.filter), Bytes::new())]);
        let needed = Needed::Logs { from: search.from.block, to: search.to };
        let reason = format!("logs of block {block} that match: listed {expected}, found {found}");
        Err(ForkError::Malformed { needed, reason }.into())
    }

    /// Returns the blocks between `from` and `to` that have matching logs, up to the returned last block, which is
    /// earlier than `to` if the upstream does not accept all of the range.
    fn blocks_with_logs(
        &self,
        context: &Context,
        filter: &LogFilter,
        from: BlockNumber,
        to: BlockNumber,
    ) -> Result<(BlockNumber, Listed), BackendError> {
        let filter_key = filter_key(filter);
        if let Some(known) = self.searched.get(filter_key, from, to) {
            return Ok(known);
        }
        let mut span = self.span.load(Ordering::Relaxed);
        loop {
            context.check()?;
            let end = to.min(from.saturating_add(span - 1));
            let needed = || Needed::Logs { from, to: end };
            if self.base.upstream().is_none() {
                return self
                    .claimed_blocks(filter, from, to)?
                    .ok_or_else(|| ForkError::Offline { needed: needed() }.into());
            }
            let params = raw(params(filter, from, end))?;
            let asked = self.base.ask_within(context, 1, needed, |upstream, limit| {
                let read = |result: &RawValue| listed(result, from, end).map(Some);
                match upstream.forward_checked(limit, "eth_getLogs", &params, read) {
                    // A provider may say in any words that it wants a shorter range.
                    Err(UpstreamError::Refused { .. } | UpstreamError::TooLarge { .. }) if end > from => Ok(None),
                    asked => asked.map(Some),
                }
            });
            let Some(blocks) = asked? else {
                span = (end - from + 1).div_ceil(2);
                self.span.store(span, Ordering::Relaxed);
                continue;
            };
            // Ranges may be longer where there are fewer logs, but most are not to be refused.
            if end - from + 1 == span {
                self.span.store((span + span.div_ceil(4)).min(MAX_SPAN), Ordering::Relaxed);
            }
            self.keep_claim(filter, from, end, blocks.keys().copied())?;
            self.searched.insert(filter_key, from..=end, blocks.clone());
            return Ok((end, blocks));
        }
    }

    /// Returns what an endpoint once claimed: like [`blocks_with_logs`](Self::blocks_with_logs), or `None` if none was
    /// asked about these blocks.
    fn claimed_blocks(
        &self,
        filter: &LogFilter,
        from: BlockNumber,
        to: BlockNumber,
    ) -> Result<Option<(BlockNumber, Listed)>, BackendError> {
        let mut longest = None;
        for start in self.numbers(self.searches_key(filter))?.into_iter().filter(|start| *start <= from) {
            let claim = self.numbers(self.search_key(filter, start))?;
            let Some((end, blocks)) = claim.split_first().filter(|(end, _)| **end >= from) else { continue };
            let end = to.min(*end);
            if longest.as_ref().is_none_or(|(longest, _)| *longest < end) {
                let blocks = blocks.iter().filter(|number| (from..=end).contains(*number));
                longest = Some((end, blocks.map(|number| (*number, None)).collect()));
            }
        }
        Ok(longest)
    }

    /// Keeps what an endpoint claimed, unless a claim about more blocks from the same one on is known.
    fn keep_claim(
        &self,
        filter: &LogFilter,
        from: BlockNumber,
        end: BlockNumber,
        blocks: impl Iterator<Item = BlockNumber>,
    ) -> Result<(), BackendError> {
        let (key, searches_key) = (self.search_key(filter, from), self.searches_key(filter));
        if self.numbers(key)?.first().is_some_and(|known| *known > end) {
            return Ok(());
        }
        let mut contents = vec![(key, [end].into_iter().chain(blocks).collect())];
        let mut starts = self.numbers(searches_key)?;
        if !starts.contains(&from) {
            starts.truncate(MAX_CLAIMS - 1);
            starts.insert(0, from);
            contents.push((searches_key, starts));
        }
        let content = |(key, numbers): (H256, Vec<u64>)| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
            (Kind::ClaimedLogs, key, bytes.into())
        };
        self.base.contents().add(contents.into_iter().map(content).collect());
        Ok(())
    }

    /// Returns the numbers that were kept under a key, or no numbers if the key is not known.
    fn numbers(&self, key: H256) -> Result<Vec<u64>, BackendError> {
        let bytes = self.base.contents().get(Kind::ClaimedLogs, key).map_err(storage)?.unwrap_or_default();
        Ok(bytes.as_chunks().0.iter().map(|number| u64::from_be_bytes(*number)).collect())
    }

    /// Returns the key of what an endpoint claimed about a search from a block on.
    fn search_key(&self, filter: &LogFilter, from: BlockNumber) -> H256 {
        keccak256([&self.first.hash.0[..], params(filter, from, from).as_bytes()].concat())
    }

    /// Returns the key of the blocks where such searches begin.
    fn searches_key(&self, filter: &LogFilter) -> H256 {
        keccak256([&self.first.hash.0[..], params(filter, 1, 0).as_bytes()].concat())
    }
}

/// Returns the first of `blocks` that have `count` logs together, as was listed: as long as nothing is listed about a block, it
/// is taken to have one.
fn first_with<'a>(listed: &Listed, blocks: &'a [BlockNumber], count: usize) -> &'a [BlockNumber] {
    let mut logs = 0usize;
    let enough = blocks.iter().position(|block| {
        let of_block = listed.get(block).copied().flatten().unwrap_or(1);
        logs = logs.saturating_add(usize::try_from(of_block).unwrap_or(usize::MAX));
        logs >= count
    });
    &blocks[..enough.map_or(blocks.len(), |index| index + 1)]
}

/// Returns what identifies a filter.
fn filter_key(filter: &LogFilter) -> H256 {
    keccak256(params(filter, 0, 0))
}

/// Reads the response to a search from the block `from` to `end`.
fn listed(result: &RawValue, from: BlockNumber, end: BlockNumber) -> Result<Listed, String> {
    let logs: Vec<FoundLog> = serde_json::from_str(result.get()).map_err(|error| error.to_string())?;
    let mut blocks = Listed::new();
    for FoundLog { block_number } in logs {
        if !(from..=end).contains(&block_number) {
            return Err(format!("a log of block {}, in a search from {from} to {end}", *block_number));
        }
        *blocks.entry(*block_number).or_default().get_or_insert_default() += 1;
    }
    Ok(blocks)
}

/// Returns the parameters of eth_getLogs.
fn params(filter: &LogFilter, from: BlockNumber, to: BlockNumber) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(","));
    let mut object = format!("{{\"fromBlock\":\"{from:#x}\",\"toBlock\":\"{to:#x}\"");
    if !filter.addresses.is_empty() {
        let addresses = filter.addresses.iter().map(|address| format!("\"{}\"", Data(*address))).collect();
        object += &format!(",\"address\":{}", list(addresses));
    }
    if !filter.topics.is_empty() {
        let topics = filter.topics.iter().map(|words| match words.is_empty() {
            true => "null".to_owned(),
            false => list(words.iter().map(|word| format!("\"{}\"", Data(*word))).collect()),
        });
        object += &format!(",\"topics\":{}", list(topics.collect()));
    }
    format!("[{object}}}]")
}
