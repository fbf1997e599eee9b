//! The path from a position in the chain to the head, via their common ancestor.
//!
//! Each function takes one step on it. The head is reached when the position after a step is the end of the head.

use super::{ChainPosition, ChangedLog, ChangesError, KeptFilter, LogCriteria};
use crate::backend::{BackendError, View};
use crate::block::{BlockRef, ExecutedBlock, LogPosition};
use crate::context::Context;
use crate::logs::{self, FoundLog, LogScan, PageSize};
use node_types::BlockNumber;

/// Maximum number of removed blocks in one step, so that no step takes long, however many blocks have left the chain.
pub(super) const MAX_REMOVED: usize = 1_024;

/// Number of blocks from which on the index is used to find logs.
const FOLLOWED: BlockNumber = 8;

/// Number of logs that are compared in the time in which one term is looked up in the index.
const LOGS_FOR_TERM: usize = 32;

/// The end of a step down a branch that has left the chain.
struct Descent {
    reached: ChainPosition,
    /// Whether this is a position on the canonical chain.
    is_canonical: bool,
}

impl Descent {
    /// Goes down from `start` to the newest common block, or until `report` stops. `report` receives every removed
    /// block with the position in it, newest first, and returns a position in the block if it cannot report the rest.
    fn from(
        context: &Context,
        view: &dyn View,
        start: ChainPosition,
        mut report: impl FnMut(&ExecutedBlock, ChainPosition) -> Option<ChainPosition>,
    ) -> Result<Self, ChangesError> {
        let forgotten = || ChangesError::CursorForgotten(start.block);
        let mut reached = start;
        for _ in 0..MAX_REMOVED {
            let BlockRef { number, hash } = reached.block;
            if view.canonical_hash(number)? == Some(hash) {
                return Ok(Self { reached, is_canonical: true });
            }
            context.check().map_err(BackendError::from)?;
            let block = view.side_block(hash)?.ok_or_else(forgotten)?;
            if let Some(inside) = report(&block, reached) {
                return Ok(Self { reached: inside, is_canonical: false });
            }
            let number = number.checked_sub(1).ok_or_else(forgotten)?;
            reached = ChainPosition::end_of(BlockRef { number, hash: block.header.header.parent_hash });
        }
        Ok(Self { reached, is_canonical: false })
    }
}

/// Returns the next `page` blocks after `start`, and the position after them.
pub(super) fn block_changes(
    context: &Context,
    view: &dyn View,
    start: ChainPosition,
    page: usize,
) -> Result<(Vec<BlockRef>, ChainPosition), ChangesError> {
    let Descent { reached, is_canonical } = Descent::from(context, view, start, |_, _| None)?;
    if !is_canonical {
        return Ok((Vec::new(), reached));
    }
    let mut blocks = Vec::new();
    for number in (reached.block.number + 1..=view.head().number).take(page) {
        context.check().map_err(BackendError::from)?;
        let hash = view.canonical_hash(number)?.ok_or(BackendError::UnknownBlock(number))?;
        blocks.push(BlockRef { number, hash });
    }
    let reached = blocks.last().copied().unwrap_or(reached.block);
    Ok((blocks, ChainPosition::end_of(reached)))
}

/// Returns the next logs removed from or added to the chain since `start`, at most one page, and the position after
/// them.
///
/// Pages go down the removed branch, so a position always describes everything that was reported.
pub(super) fn log_changes(
    context: &Context,
    view: &dyn View,
    criteria: &LogCriteria,
    start: ChainPosition,
    mut page: PageSize,
) -> Result<(Vec<ChangedLog>, ChainPosition), ChangesError> {
    // Removed blocks may be above the current head.
    let range = criteria.first_changed()..=criteria.to.unwrap_or(BlockNumber::MAX);
    let mut changes = Vec::new();
    let Descent { reached, is_canonical } = Descent::from(context, view, start, |block, position| {
        if !range.contains(&position.block.number) {
            return None;
        }
        let was_reported = |found: &FoundLog| position.covers(found.log_index) && criteria.filter.matches(&found.log);
        let logs: Vec<_> = logs_of(block).filter(was_reported).collect();
        for found in logs.into_iter().rev() {
            if !page.take(&found.log.data) {
                return Some(after(&found));
            }
            changes.push(ChangedLog { found, removed: true, reached: None });
        }
        None
    })?;
    changes.reverse();
    if let Some(last) = changes.last_mut() {
        last.reached = Some(reached);
    }
    if !is_canonical || !page.has_room() {
        return Ok((changes, reached));
    }

    let head = view.head();
    let first = reached.next_log().max(LogPosition { block: *range.start(), log_index: 0 });
    let scan = follow(view, context, &criteria.filter, first, (*range.end()).min(head.number), page)?;
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

/// Returns the same as [`logs::scan`]. If there are few blocks, as for a filter that is polled or a subscription, their
/// logs are compared with the filter: looking up each of its terms in the index takes longer.
fn follow(
    view: &dyn View,
    context: &Context,
    filter: &KeptFilter,
    first: LogPosition,
    last: BlockNumber,
    mut page: PageSize,
) -> Result<LogScan, BackendError> {
    let terms = filter.addresses.len() + filter.topics.iter().map(Vec::len).sum::<usize>();
    let mut logs = Vec::new();
    if last.saturating_sub(first.block) >= FOLLOWED {
        return logs::scan(view, context, filter, first, last, page);
    }
    for number in first.block..=last {
        context.check()?;
        let start = if number == first.block { first.log_index } else { 0 };
        for block in view.logs(&[number])? {
            if block.len() > LOGS_FOR_TERM * (terms + 1) {
                let rest =
                    logs::scan(view, context, filter, LogPosition { block: number, log_index: start }, last, page)?;
                logs.extend(rest.logs);
                return Ok(LogScan { logs, next: rest.next });
            }
            for (log_index, found) in (0..).zip(block.iter()) {
                if log_index < start || !filter.matches_ref(&found.log) {
                    continue;
                }
                if !page.take(found.log.data) {
                    return Ok(LogScan { logs, next: Some(LogPosition { block: number, log_index }) });
                }
                logs.push(FoundLog {
                    block: BlockRef { number, hash: block.hash },
                    timestamp: block.timestamp,
                    pending: false,
                    log_index,
                    transaction_index: found.transaction_index,
                    transaction_hash: found.transaction_hash,
                    log: found.log.to_log(),
                });
            }
        }
    }
    Ok(LogScan { logs, next: None })
}

/// Returns the position right after a log.
fn after(found: &FoundLog) -> ChainPosition {
    ChainPosition { block: found.block, log_index: Some(found.log_index) }
}

/// Returns every log of a block.
fn logs_of(block: &ExecutedBlock) -> impl Iterator<Item = FoundLog> + use<'_> {
    let (reference, timestamp) = (block.header.block_ref(), block.header.header.timestamp);
    let transactions = block.body.transactions.iter().zip(block.receipts.iter()).enumerate();
    let logs = transactions
        .flat_map(|(index, (transaction, receipt))| receipt.logs.iter().map(move |log| (index, transaction.hash, log)));
    logs.zip(0..).map(move |((transaction_index, transaction_hash, log), log_index)| FoundLog {
        block: reference,
        timestamp,
        pending: false,
        log_index,
        transaction_index,
        transaction_hash,
        log: log.clone(),
    })
}
