//! Searching the logs of ancestors.
//!
//! An endpoint says which blocks have logs that match. Which logs these are follows from the receipts, which are verified.
//! Nothing shows that it has not omitted a block.

use super::{History, raw};
use crate::contents::Kind;
use crate::error::{ForkError, Needed, storage};
use node_core::backend::{BackendError, LogFilter, LogSearch};
use node_core::block::{BlockLogs, LogPosition};
use node_core::context::Context;
use node_types::wire::{Data, Quantity64};
use node_types::{BlockNumber, H256, keccak256};
use node_upstream::UpstreamError;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// Number of blocks of which logs are requested at once at first. Many providers accept no more.
pub(super) const FIRST_SPAN: u64 = 10_000;

/// Maximum number of blocks of which logs are requested at once.
const MAX_SPAN: u64 = 100_000;

/// Number of blocks that are read together.
const BLOCKS: usize = 32;

/// A log in the response to a search. Everything else is read from the receipts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FoundLog {
    block_number: Option<Quantity64>,
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
            let (end, blocks) = self.blocks_with_logs(context, search.filter, from, search.to)?;
            let mut blocks = &blocks.into_iter().collect::<Vec<_>>()[..];
            while !blocks.is_empty() && positions.len() < search.limit {
                context.check()?;
                let (some, later) = blocks.split_at(blocks.len().min(BLOCKS));
                blocks = later;
                self.prefetch(some)?;
                for block in some {
                    let logs = self.logs(*block)?;
                    let matching = (0..).zip(logs.iter()).filter(|(_, found)| search.filter.matches_ref(&found.log));
                    let all = matching.map(|(log_index, _)| LogPosition { block: *block, log_index });
                    positions.extend(all.filter(|position| *position >= search.from));
                }
            }
            from = end + 1;
        }
        positions.truncate(search.limit);
        Ok(positions)
    }

    /// Returns the blocks between `from` and `to` that have matching logs, up to the returned last block, which is
    /// earlier than `to` if the upstream does not accept all of the range.
    fn blocks_with_logs(
        &self,
        context: &Context,
        filter: &LogFilter,
        from: BlockNumber,
        to: BlockNumber,
    ) -> Result<(BlockNumber, BTreeSet<BlockNumber>), BackendError> {
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
                match upstream.forward(limit, "eth_getLogs", &params) {
                    // A provider may say in any words that it wants a shorter range.
                    Err(UpstreamError::Refused { .. } | UpstreamError::TooLarge { .. }) if end > from => Ok(None),
                    asked => asked.map(Some),
                }
            });
            let Some(found) = asked? else {
                span = (end - from + 1).div_ceil(2);
                self.span.store(span, Ordering::Relaxed);
                continue;
            };
            let found: Vec<FoundLog> = serde_json::from_str(found.get())
                .map_err(|error| ForkError::Malformed { needed: needed(), reason: error.to_string() })?;
            let numbers = found.into_iter().filter_map(|log| log.block_number.map(|number| *number));
            let blocks: BTreeSet<_> = numbers.filter(|number| (from..=end).contains(number)).collect();
            // Ranges may be longer where there are fewer logs, but most are not to be refused.
            if end - from + 1 == span {
                self.span.store((span + span.div_ceil(4)).min(MAX_SPAN), Ordering::Relaxed);
            }
            self.keep_claim(filter, from, end, &blocks)?;
            return Ok((end, blocks));
        }
    }

    /// Returns what an endpoint claimed about the same search: like [`blocks_with_logs`](Self::blocks_with_logs), or
    /// `None` if none was asked.
    fn claimed_blocks(
        &self,
        filter: &LogFilter,
        from: BlockNumber,
        to: BlockNumber,
    ) -> Result<Option<(BlockNumber, BTreeSet<BlockNumber>)>, BackendError> {
        let claimed = self.base.contents().get(Kind::ClaimedLogs, self.search_key(filter, from)).map_err(storage)?;
        Ok(claimed.and_then(|bytes| {
            let mut numbers = bytes.as_chunks().0.iter().map(|number| u64::from_be_bytes(*number));
            let end = numbers.next()?.min(to);
            Some((end, numbers.filter(|number| *number <= end).collect()))
        }))
    }

    /// Keeps what an endpoint claimed, unless a claim about more blocks is known.
    fn keep_claim(
        &self,
        filter: &LogFilter,
        from: BlockNumber,
        end: BlockNumber,
        blocks: &BTreeSet<BlockNumber>,
    ) -> Result<(), BackendError> {
        let known = self.claimed_blocks(filter, from, BlockNumber::MAX)?;
        if known.is_none_or(|(known, _)| known <= end) {
            let bytes: Vec<u8> = [&end].into_iter().chain(blocks).flat_map(|number| number.to_be_bytes()).collect();
            self.base.contents().add(vec![(Kind::ClaimedLogs, self.search_key(filter, from), bytes.into())]);
        }
        Ok(())
    }

    /// Returns the key of what an endpoint claimed about a search.
    fn search_key(&self, filter: &LogFilter, from: BlockNumber) -> H256 {
        keccak256([&self.first.hash.0[..], params(filter, from, from).as_bytes()].concat())
    }
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
