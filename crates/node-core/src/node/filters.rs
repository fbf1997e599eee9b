//! Filters that are polled for changes.

use super::fault::{Fault, Field};
use super::logs::{BlockRange, filter_faults};
use super::resolve::RequestView;
use super::{Node, NodeError};
use crate::backend::LogFilter;
use crate::block::LogRef;
use crate::context::Context;
use crate::filters::{FilterCriteria, FilterId, LogCriteria};
use crate::logs::{FoundLog, PageEnd};
use node_types::buffer::BufferFull;
use node_types::{BlockNumber, BlockNumberOrTag};
use std::ops::ControlFlow;

pub(super) fn new_filter(
    node: &Node,
    context: &Context,
    filter: LogFilter,
    range: BlockRange,
) -> Result<FilterId, NodeError> {
    context.check()?;
    let mut faults = filter_faults(&filter, &node.limits);
    let snapshot = node.snapshot(context)?;
    let (from, to) = resolve(&snapshot, &range, &mut faults);
    if !faults.is_empty() {
        return Err(NodeError::Invalid(faults));
    }
    let open_below = !matches!(range.from, Some(BlockNumberOrTag::Number(_)));
    let filter = node.filters.keep(context, filter)?;
    Ok(node.filters.install(context, FilterCriteria::Logs(LogCriteria { filter, from, open_below, to }))?)
}

/// Returns the error of the range of a filter, for requests that have other faults as well.
pub(super) fn check_range(node: &Node, context: &Context, range: &BlockRange) -> Result<(), NodeError> {
    let mut faults = Vec::new();
    resolve(&node.snapshot(context)?, range, &mut faults);
    if faults.is_empty() { Ok(()) } else { Err(NodeError::Invalid(faults)) }
}

/// Returns the first and the last block of a range, which may be above the head. If this adds faults, they must not be
/// used.
fn resolve(snapshot: &RequestView, range: &BlockRange, faults: &mut Vec<Fault>) -> (BlockNumber, Option<BlockNumber>) {
    let from = match range.from {
        None => snapshot.latest(),
        Some(BlockNumberOrTag::Pending) => snapshot.latest() + 1,
        Some(tag) => snapshot.height(tag),
    };
    let to = match range.to {
        None | Some(BlockNumberOrTag::Latest | BlockNumberOrTag::Pending) => None,
        Some(tag) => Some(snapshot.height(tag)),
    };
    if let Some(to) = to
        && from > to
    {
        faults.push(range.reversed(from, to));
    }
    (from, to)
}

pub(super) fn get_filter_logs(node: &Node, context: &Context, id: FilterId) -> Result<Vec<FoundLog>, NodeError> {
    let mut logs = Vec::new();
    node.visit_filter_logs(context, id, |found| {
        logs.push(found.to_found_log());
        ControlFlow::Continue(())
    })?;
    Ok(logs)
}

pub(super) fn visit_filter_logs(
    node: &Node,
    context: &Context,
    id: FilterId,
    visit: impl FnMut(FoundLog<LogRef<'_>>) -> ControlFlow<BufferFull>,
) -> Result<(), NodeError> {
    let limit = node.limits.logs;
    match node.filters.visit_logs(context, id, limit, visit)? {
        None => Ok(()),
        Some(PageEnd { full: None, .. }) => Err(NodeError::TooManyFilterLogs { limit }),
        Some(PageEnd { full: Some(full), .. }) => {
            Err(NodeError::LogsTooLarge { full, to_block: None, field: Field::FilterId })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::FilterChanges;
    use crate::node::testing::World;
    use crate::node::{Finality, Limits};
    use crate::state::StateChanges;
    use crate::test_chain::{account, child, log, transaction};
    use node_types::H256;

    fn context() -> Context {
        Context::unbounded()
    }

    fn install(
        world: &World,
        from: Option<BlockNumberOrTag>,
        to: Option<BlockNumberOrTag>,
    ) -> Result<FilterId, NodeError> {
        world.node.new_filter(&context(), LogFilter::default(), BlockRange { from, to })
    }

    fn push_log(world: &World, nonce: u64) {
        world.push(vec![(transaction(1, nonce, 1), vec![log(1, &[nonce])])]);
    }

    /// Block of each changed log, and whether the log was removed.
    fn changed_logs(world: &World, id: FilterId) -> Vec<(u64, bool)> {
        match world.node.get_filter_changes(&context(), id).unwrap() {
            FilterChanges::Logs(logs) => logs.iter().map(|log| (log.found.block.number, log.removed)).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn changed_hashes(world: &World, id: FilterId) -> Vec<H256> {
        match world.node.get_filter_changes(&context(), id).unwrap() {
            FilterChanges::Blocks(blocks) => blocks.into_iter().map(|block| block.hash).collect(),
            FilterChanges::Transactions(arrivals) => arrivals.into_iter().map(|arrival| arrival.hash).collect(),
            FilterChanges::Logs(logs) => panic!("{logs:?}"),
        }
    }

    #[test]
    fn reports_logs_of_its_range() {
        let number = |number: u64| Some(BlockNumberOrTag::Number(number));
        // First and last block; the blocks of the filter's logs, or `None` if it is rejected. Blocks 1 to 3 exist when
        // the filter is installed, 4 and 5 are added later.
        let cases: [(_, _, Option<&[u64]>); 10] = [
            (None, None, Some(&[3, 4, 5])),
            (number(2), number(4), Some(&[2, 3, 4])),
            (number(2), Some(BlockNumberOrTag::Latest), Some(&[2, 3, 4, 5])),
            (Some(BlockNumberOrTag::Latest), None, Some(&[3, 4, 5])),
            (Some(BlockNumberOrTag::Pending), Some(BlockNumberOrTag::Pending), Some(&[4, 5])),
            (Some(BlockNumberOrTag::Earliest), number(1), Some(&[1])),
            (number(9), number(10), Some(&[])),
            (number(2), Some(BlockNumberOrTag::Finalized), Some(&[2, 3])),
            (number(3), number(2), None),
            (Some(BlockNumberOrTag::Latest), number(2), None),
        ];
        for (from, to, expected) in cases {
            let world = World::new();
            (0..3).for_each(|nonce| push_log(&world, nonce));
            let made = install(&world, from, to);
            let Some(expected) = expected else {
                let NodeError::Invalid(faults) = made.unwrap_err() else { panic!("{from:?} to {to:?}") };
                assert_eq!(faults[0].field, Field::FromBlock, "{from:?} to {to:?}");
                continue;
            };
            let id = made.unwrap();
            (3..5).for_each(|nonce| push_log(&world, nonce));
            let logs = world.node.get_filter_logs(&context(), id).unwrap();
            let blocks: Vec<_> = logs.iter().map(|log| log.block.number).collect();
            assert_eq!(blocks, expected, "{from:?} to {to:?}");
        }
    }

    #[test]
    fn changes_follow_the_last_poll_over_reorganizations() {
        let world = World::new();
        push_log(&world, 0);
        let id = install(&world, None, None).unwrap();
        assert_eq!(changed_logs(&world, id), []);
        push_log(&world, 1);
        assert_eq!(changed_logs(&world, id), [(2, false)]);
        assert_eq!(changed_logs(&world, id), []);
        let view = world.node.backend().view().unwrap();
        let sibling = child(&*view, 1, 1, vec![(transaction(2, 0, 1), vec![log(2, &[])])], StateChanges::default());
        world.node.backend().switch(1, vec![sibling]).unwrap();
        assert_eq!(changed_logs(&world, id), [(2, true), (2, false)]);
    }

    #[test]
    fn changes_below_the_head_at_installation_are_reported() {
        let world = World::new();
        (0..3).for_each(|nonce| push_log(&world, nonce));
        let tags = [None, Some(BlockNumberOrTag::Latest), Some(BlockNumberOrTag::Pending)];
        let open = tags.map(|from| install(&world, from, None).unwrap());
        let bounded = install(&world, Some(BlockNumberOrTag::Number(3)), None).unwrap();
        let view = world.node.backend().view().unwrap();
        let sibling = child(&*view, 1, 1, vec![(transaction(2, 0, 1), vec![log(2, &[])])], StateChanges::default());
        world.node.backend().switch(1, vec![sibling]).unwrap();
        push_log(&world, 1);
        for id in open {
            assert_eq!(changed_logs(&world, id), [(2, true), (3, true), (2, false), (3, false)]);
        }
        assert_eq!(changed_logs(&world, bounded), [(3, true), (3, false)]);
    }

    #[test]
    fn reports_blocks_and_pending_transactions() {
        let world = World::new();
        world.change(account(1, 0, u64::MAX, &[]));
        let blocks = world.node.new_block_filter(&context()).unwrap();
        let transactions = world.node.new_pending_transaction_filter(&context()).unwrap();
        let sent = transaction(1, 0, 5);
        world.send(&sent);
        let block = world.push(Vec::new());
        assert_eq!(changed_hashes(&world, blocks), [block.header.hash]);
        assert_eq!(changed_hashes(&world, transactions), [sent.hash]);
        for id in [blocks, transactions] {
            assert_eq!(changed_hashes(&world, id), []);
            let refused = world.node.get_filter_logs(&context(), id);
            assert!(matches!(refused, Err(NodeError::Invalid(_))), "{refused:?}");
        }
    }

    #[test]
    fn an_uninstalled_filter_is_not_found() {
        let world = World::new();
        let id = install(&world, None, None).unwrap();
        assert!(world.node.uninstall_filter(&context(), id).unwrap());
        assert!(!world.node.uninstall_filter(&context(), id).unwrap());
        let changes = world.node.get_filter_changes(&context(), id);
        assert!(matches!(changes, Err(NodeError::FilterNotFound)), "{changes:?}");
        let logs = world.node.get_filter_logs(&context(), id);
        assert!(matches!(logs, Err(NodeError::FilterNotFound)), "{logs:?}");
    }

    #[test]
    fn limits_the_number_of_logs() {
        for limit in [1, 2] {
            let world = World::with(Finality::Head, Limits { logs: limit, ..Limits::default() });
            let id = install(&world, None, None).unwrap();
            (0..3).for_each(|nonce| push_log(&world, nonce));
            let error = world.node.get_filter_logs(&context(), id).unwrap_err();
            assert!(matches!(error, NodeError::TooManyFilterLogs { limit: got } if got == limit), "{error:?}");
        }
    }
}
