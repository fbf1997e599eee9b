//! The path from a position in the chain to the head, via their common ancestor.

use super::{ChainPosition, ChangedLog, ChangesError, LogCriteria};
use crate::backend::{BackendError, View};
use crate::block::{BlockHashOrNumber, BlockRef, Body, LogPosition, SealedHeader};
use crate::context::Context;
use crate::logs::{self, FoundLog};
use node_types::BlockNumber;
use node_types::consensus::Receipt;

/// The path from a position to the head.
struct Path {
    start: ChainPosition,
    /// Blocks up to the start that have left the chain, oldest first.
    removed: Vec<BlockRef>,
    /// The end of the newest common block, or the start itself.
    common: ChainPosition,
}

impl Path {
    fn from(context: &Context, view: &dyn View, start: ChainPosition) -> Result<Self, ChangesError> {
        let forgotten = || ChangesError::CursorForgotten(start.block);
        let mut removed = Vec::new();
        let mut block = start.block;
        while view.canonical_hash(block.number)? != Some(block.hash) {
            context.check().map_err(BackendError::from)?;
            removed.push(block);
            let header = view.header(BlockHashOrNumber::Hash(block.hash))?.ok_or_else(forgotten)?;
            let number = block.number.checked_sub(1).ok_or_else(forgotten)?;
            block = BlockRef { number, hash: header.header.parent_hash };
        }
        let common = if removed.is_empty() { start } else { ChainPosition::end_of(block) };
        removed.reverse();
        Ok(Self { start, removed, common })
    }
}

/// Returns the next `page` blocks after `start`, and the position after them.
pub(super) fn block_changes(
    context: &Context,
    view: &dyn View,
    start: ChainPosition,
    page: usize,
) -> Result<(Vec<BlockRef>, ChainPosition), ChangesError> {
    let path = Path::from(context, view, start)?;
    let ancestor = path.common.block;
    let mut blocks = Vec::new();
    for number in (ancestor.number + 1..=view.head().number).take(page) {
        context.check().map_err(BackendError::from)?;
        let hash = view.canonical_hash(number)?.ok_or(BackendError::UnknownBlock(number))?;
        blocks.push(BlockRef { number, hash });
    }
    let reached = blocks.last().copied().unwrap_or(ancestor);
    Ok((blocks, ChainPosition::end_of(reached)))
}

/// Returns the next `page` logs removed from or added to the chain since `start`, and the position after them.
pub(super) fn log_changes(
    context: &Context,
    view: &dyn View,
    criteria: &LogCriteria,
    start: ChainPosition,
    page: usize,
) -> Result<(Vec<ChangedLog>, ChainPosition), ChangesError> {
    let path = Path::from(context, view, start)?;
    let (removed, reached) = removed_logs(context, view, criteria, &path, page)?;
    let page = page - removed.len();
    let mut changes: Vec<_> =
        removed.into_iter().map(|found| ChangedLog { found, removed: true, reached: None }).collect();
    if let Some(last) = changes.last_mut() {
        last.reached = Some(reached);
    }
    if page == 0 {
        return Ok((changes, reached));
    }

    let head = view.head();
    let first = reached.next_log().max(LogPosition { block: criteria.first_changed(), log_index: 0 });
    let last = criteria.to.unwrap_or(BlockNumber::MAX).min(head.number);
    let scan = logs::scan(view, context, &criteria.filter, first, last, page)?;
    let reached = match (scan.next, scan.logs.last()) {
        (Some(_), Some(last)) => after(last),
        _ => ChainPosition::end_of(head),
    };
    changes.extend(scan.logs.into_iter().map(|found| {
        let reached = Some(after(&found));
        ChangedLog { found, removed: false, reached }
    }));
    Ok((changes, reached))
}

/// Returns the last `page` reported logs of removed blocks, oldest first, and the position after their removal is
/// reported.
///
/// Pages go down the removed branch, so a position always describes everything that was reported.
fn removed_logs(
    context: &Context,
    view: &dyn View,
    criteria: &LogCriteria,
    path: &Path,
    page: usize,
) -> Result<(Vec<FoundLog>, ChainPosition), ChangesError> {
    let forgotten = || ChangesError::CursorForgotten(path.start.block);
    // These blocks may be above the current head.
    let range = criteria.first_changed()..=criteria.to.unwrap_or(BlockNumber::MAX);
    let mut newest_first = Vec::new();
    for block in path.removed.iter().rev().filter(|block| range.contains(&block.number)) {
        context.check().map_err(BackendError::from)?;
        let header = view.header(BlockHashOrNumber::Hash(block.hash))?.ok_or_else(forgotten)?;
        let body = view.body(BlockHashOrNumber::Hash(block.hash))?.ok_or_else(forgotten)?;
        let receipts = view.receipts(BlockHashOrNumber::Hash(block.hash))?.ok_or_else(forgotten)?;
        let was_told = |found: &FoundLog| *block != path.start.block || path.start.covers(found.log_index);
        let wanted = |found: &FoundLog| was_told(found) && criteria.filter.matches(&found.log);
        let logs: Vec<_> = logs_of(&header, &body, &receipts).filter(wanted).collect();
        for found in logs.into_iter().rev() {
            if newest_first.len() == page {
                newest_first.reverse();
                return Ok((newest_first, after(&found)));
            }
            newest_first.push(found);
        }
    }
    newest_first.reverse();
    Ok((newest_first, path.common))
}

/// Returns the position right after a log.
fn after(found: &FoundLog) -> ChainPosition {
    ChainPosition { block: found.block, log_index: Some(found.log_index) }
}

/// Returns every log of a block, canonical or not.
fn logs_of<'a>(
    header: &SealedHeader,
    body: &'a Body,
    receipts: &'a [Receipt],
) -> impl Iterator<Item = FoundLog> + use<'a> {
    let (block, timestamp) = (header.block_ref(), header.header.timestamp);
    let transactions = body.transactions.iter().zip(receipts).enumerate();
    let logs = transactions
        .flat_map(|(index, (transaction, receipt))| receipt.logs.iter().map(move |log| (index, transaction.hash, log)));
    logs.zip(0..).map(move |((transaction_index, transaction_hash, log), log_index)| FoundLog {
        block,
        timestamp,
        pending: false,
        log_index,
        transaction_index,
        transaction_hash,
        log: log.clone(),
    })
}
