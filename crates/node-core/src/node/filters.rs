//! Filters that are polled for changes.

use super::logs::{log_filter, range_fault};
use super::{Node, NodeError, assemble};
use crate::context::Context;
use crate::filters::{FilterChanges, FilterCriteria, FilterError, FilterId, LogCriteria};
use node_types::wire::{
    Data, ErrorDetail, FilterChanges as WireChanges, FilterIdOutput, GetFilterChangesOutput, GetFilterLogsOutput,
    NewFilterInput, UninstallFilterOutput,
};
use node_types::{BlockId, BlockNumberOrTag};

impl Node {
    /// Makes a filter that reports logs from now on. Its range may lie ahead of the head; without a first block it begins
    /// with the genesis block, and `latest`, `pending` or no last block leave it open.
    pub fn new_filter(&self, context: &Context, input: NewFilterInput) -> Result<FilterIdOutput, NodeError> {
        context.check()?;
        let object = input.filter_object;
        let mut faults = Vec::new();
        let filter = log_filter(&object.address, &object.topics, &self.limits, "body.FilterObject", &mut faults);
        let snapshot = self.snapshot(context)?;
        let from = match object.from_block {
            None => 0,
            Some(BlockNumberOrTag::Pending) => snapshot.latest() + 1,
            Some(tag) => snapshot.height(tag),
        };
        let to = match object.to_block {
            None | Some(BlockNumberOrTag::Latest | BlockNumberOrTag::Pending) => None,
            Some(tag) => Some(snapshot.height(tag)),
        };
        if let Some(to) = to
            && from > to
        {
            faults.push(range_fault("body.FilterObject", (object.from_block, from), (object.to_block, to)));
        }
        if !faults.is_empty() {
            return Err(NodeError::Invalid(faults));
        }
        self.install(FilterCriteria::Logs(LogCriteria { filter, from, to }))
    }

    /// Makes a filter that reports the hashes of new blocks.
    pub fn new_block_filter(&self, context: &Context) -> Result<FilterIdOutput, NodeError> {
        context.check()?;
        self.install(FilterCriteria::Blocks)
    }

    /// Makes a filter that reports the hashes of transactions that come into the pool.
    pub fn new_pending_transaction_filter(&self, context: &Context) -> Result<FilterIdOutput, NodeError> {
        context.check()?;
        self.install(FilterCriteria::PendingTransactions)
    }

    /// What happened since the last successful poll.
    pub fn get_filter_changes(&self, context: &Context, id: &str) -> Result<GetFilterChangesOutput, NodeError> {
        let changes = self.filters.changes(context, filter_id(id)?).map_err(|error| refused(error, id))?;
        let result = match changes {
            FilterChanges::Logs(logs) => WireChanges::Logs(
                logs.into_iter().map(|changed| assemble::log(changed.found, false, changed.removed)).collect(),
            ),
            FilterChanges::Blocks(blocks) => {
                WireChanges::Hashes(blocks.into_iter().map(|block| Data(block.hash)).collect())
            }
            FilterChanges::Transactions(arrivals) => {
                WireChanges::Hashes(arrivals.into_iter().map(|arrival| Data(arrival.hash)).collect())
            }
        };
        Ok(GetFilterChangesOutput { result })
    }

    /// All logs in the range of a log filter.
    pub fn get_filter_logs(&self, context: &Context, id: &str) -> Result<GetFilterLogsOutput, NodeError> {
        let limit = self.limits.logs;
        let scan = self.filters.logs(context, filter_id(id)?, limit).map_err(|error| refused(error, id))?;
        if scan.next.is_some() {
            return Err(NodeError::TooManyFilterLogs { limit });
        }
        Ok(GetFilterLogsOutput {
            logs: scan.logs.into_iter().map(|found| assemble::log(found, false, false)).collect(),
        })
    }

    /// Ends a filter. Answers whether there was one.
    pub fn uninstall_filter(&self, context: &Context, id: &str) -> Result<UninstallFilterOutput, NodeError> {
        context.check()?;
        let result = match id.parse() {
            Ok(parsed) => self.filters.uninstall(parsed).map_err(|error| refused(error, id))?,
            Err(_) => false,
        };
        Ok(UninstallFilterOutput { result })
    }

    fn install(&self, criteria: FilterCriteria) -> Result<FilterIdOutput, NodeError> {
        let id = self.filters.install(criteria).map_err(|error| refused(error, ""))?;
        Ok(FilterIdOutput { filter_id: id.to_string() })
    }
}

/// A text that names no filter is treated as the name of one that is not there.
fn filter_id(id: &str) -> Result<FilterId, NodeError> {
    id.parse().map_err(|_| NodeError::FilterNotFound { id: id.into() })
}

fn refused(error: FilterError, id: &str) -> NodeError {
    let message = error.to_string();
    match error {
        FilterError::NotFound(id) => NodeError::FilterNotFound { id: id.to_string() },
        FilterError::NotALogFilter(_) => {
            NodeError::Invalid(vec![ErrorDetail::new("path.FilterId", message).with_value(&id)])
        }
        FilterError::TooMany(limit) => NodeError::TooManyFilters { limit },
        FilterError::CursorForgotten(block) => {
            NodeError::BlockNotFound { block: BlockId::Hash(block.hash), location: "path.FilterId" }
        }
        FilterError::Backend(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::World;
    use crate::node::{Finality, Limits};
    use crate::state::StateChanges;
    use crate::test_chain::{account, child, log, transaction};
    use node_types::wire::{FilterObject, Log, NewFilterInput};

    fn context() -> Context {
        Context::unbounded()
    }

    fn install(
        world: &World,
        from_block: Option<BlockNumberOrTag>,
        to_block: Option<BlockNumberOrTag>,
    ) -> Result<String, NodeError> {
        let filter_object = FilterObject { from_block, to_block, ..FilterObject::default() };
        Ok(world.node.new_filter(&context(), NewFilterInput { filter_object })?.filter_id)
    }

    fn push_log(world: &World, nonce: u64) {
        world.push(vec![(transaction(1, nonce, 1), vec![log(1, &[nonce])])]);
    }

    fn places(logs: &[Log]) -> Vec<(u64, bool)> {
        logs.iter().map(|log| (log.block_number.unwrap().0, log.removed)).collect()
    }

    fn changed_logs(world: &World, id: &str) -> Vec<(u64, bool)> {
        match world.node.get_filter_changes(&context(), id).unwrap().result {
            WireChanges::Logs(logs) => places(&logs),
            WireChanges::Hashes(hashes) => panic!("{hashes:?}"),
        }
    }

    fn changed_hashes(world: &World, id: &str) -> Vec<node_types::H256> {
        match world.node.get_filter_changes(&context(), id).unwrap().result {
            WireChanges::Hashes(hashes) => hashes.into_iter().map(|hash| hash.0).collect(),
            WireChanges::Logs(logs) => panic!("{logs:?}"),
        }
    }

    #[test]
    fn ranges() {
        let number = |number: u64| Some(BlockNumberOrTag::Number(number));
        // First and last block; the blocks of the logs that the filter has, if it can be made at all. Blocks 1 to 3
        // stand when it is made, 4 and 5 come later.
        let cases: [(_, _, Option<&[u64]>); 10] = [
            (None, None, Some(&[1, 2, 3, 4, 5])),
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
                let error = made.unwrap_err();
                assert_eq!(error.details()[0].location, "body.FilterObject.FromBlock", "{from:?} to {to:?}");
                continue;
            };
            let id = made.unwrap();
            (3..5).for_each(|nonce| push_log(&world, nonce));
            let logs = world.node.get_filter_logs(&context(), &id).unwrap().logs;
            let expected: Vec<_> = expected.iter().map(|block| (*block, false)).collect();
            assert_eq!(places(&logs), expected, "{from:?} to {to:?}");
        }
    }

    #[test]
    fn changes_follow_the_last_poll_over_reorganizations() {
        let world = World::new();
        push_log(&world, 0);
        let id = install(&world, None, None).unwrap();
        assert_eq!(changed_logs(&world, &id), []);
        push_log(&world, 1);
        assert_eq!(changed_logs(&world, &id), [(2, false)]);
        assert_eq!(changed_logs(&world, &id), []);
        let view = world.node.backend().view().unwrap();
        let sibling = child(&*view, 1, 1, vec![(transaction(2, 0, 1), vec![log(2, &[])])], StateChanges::default());
        world.node.backend().switch(1, vec![sibling]).unwrap();
        assert_eq!(changed_logs(&world, &id), [(2, true), (2, false)]);
    }

    #[test]
    fn blocks_and_pending_transactions() {
        let world = World::new();
        world.change(account(1, 0, u64::MAX, &[]));
        let blocks = world.node.new_block_filter(&context()).unwrap().filter_id;
        let transactions = world.node.new_pending_transaction_filter(&context()).unwrap().filter_id;
        let sent = transaction(1, 0, 5);
        world.send(&sent);
        let block = world.push(Vec::new());
        assert_eq!(changed_hashes(&world, &blocks), [block.header.hash]);
        assert_eq!(changed_hashes(&world, &transactions), [sent.hash]);
        for id in [&blocks, &transactions] {
            assert_eq!(changed_hashes(&world, id), []);
            let refused = world.node.get_filter_logs(&context(), id);
            assert!(matches!(refused, Err(NodeError::Invalid(_))), "{refused:?}");
        }
    }

    #[test]
    fn filters_end() {
        let world = World::new();
        let id = install(&world, None, None).unwrap();
        assert!(world.node.uninstall_filter(&context(), &id).unwrap().result);
        for gone in [id.as_str(), "0x", "é", "0x00000000000000000000000000000000"] {
            assert!(!world.node.uninstall_filter(&context(), gone).unwrap().result, "{gone}");
            let changes = world.node.get_filter_changes(&context(), gone);
            assert!(matches!(changes, Err(NodeError::FilterNotFound { .. })), "{gone}: {changes:?}");
            let logs = world.node.get_filter_logs(&context(), gone);
            assert!(matches!(logs, Err(NodeError::FilterNotFound { .. })), "{gone}: {logs:?}");
        }
    }

    #[test]
    fn an_answer_too_large_is_refused_with_what_helps() {
        for limit in [1, 2] {
            let world = World::with(Finality::Head, Limits { logs: limit, ..Limits::default() });
            let id = install(&world, None, None).unwrap();
            (0..3).for_each(|nonce| push_log(&world, nonce));
            let error = world.node.get_filter_logs(&context(), &id).unwrap_err();
            assert!(matches!(error, NodeError::TooManyFilterLogs { limit: told } if told == limit), "{error:?}");
            let details = error.details();
            assert_eq!(details[0].location, "path.FilterId");
            assert!(details[0].message.contains("getLogs for fewer blocks"), "{details:?}");
        }
    }
}
