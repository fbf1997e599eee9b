//! How far a filter has reported, and what comes next.

use super::{ChangedLog, FilterChanges, FilterCriteria, FilterError, LogCriteria};
use crate::backend::{BackendError, View};
use crate::block::{BlockId, BlockRef, Body, LogPosition};
use crate::context::Context;
use crate::logs::{self, FoundLog};
use crate::pool::Pool;
use node_types::BlockNumber;
use node_types::consensus::Receipt;

/// What a filter reports, and up to where it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilterState {
    pub(super) criteria: FilterCriteria,
    pub(super) cursor: Cursor,
}

/// Up to where a filter has reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cursor {
    /// Up to and including this block, which need not be canonical any more.
    Block(BlockRef),
    /// Up to but excluding this number of arrival in the pool.
    Arrival(u64),
}

impl FilterState {
    /// What there is to report between the cursor and the head of `view`, and where the cursor is then. One answer
    /// holds about `page` entries.
    pub(super) fn changes(
        &self,
        context: &Context,
        view: &dyn View,
        pool: &Pool,
        page: usize,
    ) -> Result<(FilterChanges, Cursor), FilterError> {
        match self.cursor {
            Cursor::Arrival(since) => {
                let arrivals = pool.arrivals(since);
                Ok((FilterChanges::Hashes(arrivals.hashes), Cursor::Arrival(arrivals.next)))
            }
            Cursor::Block(cursor) => {
                let path = Path::from(context, view, cursor)?;
                match &self.criteria {
                    FilterCriteria::Logs(criteria) => log_changes(context, view, criteria, &path, page),
                    FilterCriteria::Blocks | FilterCriteria::PendingTransactions => {
                        block_changes(context, view, &path, page)
                    }
                }
            }
        }
    }
}

/// The way from a cursor to the head.
struct Path {
    cursor: BlockRef,
    /// Blocks from the cursor down that left the chain, oldest first.
    removed: Vec<BlockRef>,
    /// The newest block that is an ancestor of both, or the cursor itself.
    ancestor: BlockRef,
}

impl Path {
    fn from(context: &Context, view: &dyn View, cursor: BlockRef) -> Result<Self, FilterError> {
        let mut removed = Vec::new();
        let mut block = cursor;
        while view.canonical_hash(block.number)? != Some(block.hash) {
            context.check().map_err(BackendError::from)?;
            removed.push(block);
            let header = view.header(BlockId::Hash(block.hash))?.ok_or(FilterError::CursorForgotten(cursor))?;
            let number = block.number.checked_sub(1).ok_or(FilterError::CursorForgotten(cursor))?;
            block = BlockRef { number, hash: header.header.parent_hash };
        }
        removed.reverse();
        Ok(Self { cursor, removed, ancestor: block })
    }
}

fn block_changes(
    context: &Context,
    view: &dyn View,
    path: &Path,
    page: usize,
) -> Result<(FilterChanges, Cursor), FilterError> {
    let mut reached = path.ancestor;
    let mut hashes = Vec::new();
    for number in (path.ancestor.number + 1..=view.head().number).take(page) {
        context.check().map_err(BackendError::from)?;
        reached = canonical(view, number)?;
        hashes.push(reached.hash);
    }
    Ok((FilterChanges::Hashes(hashes), Cursor::Block(reached)))
}

fn log_changes(
    context: &Context,
    view: &dyn View,
    criteria: &LogCriteria,
    path: &Path,
    page: usize,
) -> Result<(FilterChanges, Cursor), FilterError> {
    let head = view.head();
    let (removed, reached) = removed_logs(context, view, criteria, path, page)?;
    let page = page.saturating_sub(removed.len());
    let mut changes: Vec<_> = removed.into_iter().map(|found| ChangedLog { found, removed: true }).collect();
    if reached != path.ancestor || (page == 0 && reached != head) {
        return Ok((FilterChanges::Logs(changes), Cursor::Block(reached)));
    }

    let first = criteria.from.max(path.ancestor.number + 1);
    let last = criteria.to.unwrap_or(BlockNumber::MAX).min(head.number);
    let (added, reached) = new_logs(context, view, criteria, first, last, page)?;
    changes.extend(added.into_iter().map(|found| ChangedLog { found, removed: false }));
    let reached = match reached {
        Some(number) => canonical(view, number)?,
        None => head,
    };
    Ok((FilterChanges::Logs(changes), Cursor::Block(reached)))
}

/// The logs of removed blocks from the cursor down, about `page` of them, oldest first, with the newest block that they
/// do not cover: the ancestor once there is nothing left.
///
/// Pages go down the removed branch, so that the cursor remains a block up to which everything is reported.
fn removed_logs(
    context: &Context,
    view: &dyn View,
    criteria: &LogCriteria,
    path: &Path,
    page: usize,
) -> Result<(Vec<FoundLog>, BlockRef), FilterError> {
    // These blocks may have been above the head of today.
    let range = criteria.from..=criteria.to.unwrap_or(BlockNumber::MAX);
    let mut blocks = Vec::new();
    let mut count = 0;
    let mut reached = path.ancestor;
    for block in path.removed.iter().rev().filter(|block| range.contains(&block.number)) {
        context.check().map_err(BackendError::from)?;
        let body = view.body(BlockId::Hash(block.hash))?.ok_or(FilterError::CursorForgotten(path.cursor))?;
        let receipts = view.receipts(BlockId::Hash(block.hash))?.ok_or(FilterError::CursorForgotten(path.cursor))?;
        let found = logs_of(*block, &body, &receipts).filter(|found| criteria.filter.matches(&found.log));
        let logs: Vec<_> = found.collect();
        if count > 0 && count + logs.len() > page {
            reached = *block;
            break;
        }
        count += logs.len();
        blocks.push(logs);
    }
    Ok((blocks.into_iter().rev().flatten().collect(), reached))
}

/// The logs of the blocks from `first` to `last`, about `page` of them, with the last block that they cover if that is
/// not `last`.
fn new_logs(
    context: &Context,
    view: &dyn View,
    criteria: &LogCriteria,
    first: BlockNumber,
    last: BlockNumber,
    page: usize,
) -> Result<(Vec<FoundLog>, Option<BlockNumber>), FilterError> {
    if first > last {
        return Ok((Vec::new(), None));
    }
    let from = |block| LogPosition { block, log_index: 0 };
    let mut scan = logs::scan(view, context, &criteria.filter, from(first), last, page)?;
    let Some(next) = scan.next else { return Ok((scan.logs, None)) };
    // The cursor names blocks, so that the block in which the page ends is left to the next poll as a whole...
    scan.logs.retain(|found| found.block.number < next.block);
    if !scan.logs.is_empty() {
        return Ok((scan.logs, Some(next.block - 1)));
    }
    // ... unless it alone is longer than a page.
    let whole = logs::scan(view, context, &criteria.filter, from(next.block), next.block, usize::MAX)?;
    Ok((whole.logs, Some(next.block)))
}

/// Every log of a block, which need not be canonical.
fn logs_of<'a>(block: BlockRef, body: &'a Body, receipts: &'a [Receipt]) -> impl Iterator<Item = FoundLog> + 'a {
    let transactions = body.transactions.iter().zip(receipts).enumerate();
    let logs = transactions
        .flat_map(|(index, (transaction, receipt))| receipt.logs.iter().map(move |log| (index, transaction.hash, log)));
    logs.zip(0..).map(move |((transaction_index, transaction_hash, log), log_index)| FoundLog {
        block,
        log_index,
        transaction_index,
        transaction_hash,
        log: log.clone(),
    })
}

fn canonical(view: &dyn View, number: BlockNumber) -> Result<BlockRef, BackendError> {
    let hash = view.canonical_hash(number)?.ok_or(BackendError::UnknownBlock(number))?;
    Ok(BlockRef { number, hash })
}
