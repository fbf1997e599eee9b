//! Event streams, which report the same changes as filters, as they happen.
//!
//! The node stores nothing for a stream. The cursor of a stream is the id of its last event, so a client can resume
//! it at any position and time.

use super::fault::Field;
use super::logs::filter_faults;
use super::resolve::RequestView;
use super::{Node, NodeError};
use crate::backend::LogFilter;
use crate::block::BlockRef;
use crate::context::Context;
use crate::filters::{
    ChainPosition, ChangedLog, ChangesError, Cursor, FilterChanges, FilterCriteria, LogCriteria, Subscription,
};
use crate::logs::PageSize;
use node_types::{BlockNumberOrTag, ChainEventId, EventId, H256};

/// The events that a stream reports, and where it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventQuery {
    /// Logs that join or leave the canonical chain.
    Logs {
        /// Addresses and topics of the logs.
        filter: LogFilter,
        start: EventStart,
    },
    /// Blocks that join the canonical chain.
    Blocks { start: EventStart },
    /// Transactions that enter the pool.
    PendingTransactions {
        /// Starts after the transaction with this arrival number; `None` for transactions from now on.
        after: Option<u64>,
    },
}

/// Where a stream of chain events starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStart {
    /// After the current head.
    Now,
    Block(BlockNumberOrTag),
    /// After an event that the client has received.
    After(ChainEventId),
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Identifies the position after the event; `None` if a stream cannot resume there.
    pub id: Option<EventId>,
    /// The change that is reported; `None` if only the position has moved.
    pub data: Option<EventData>,
}

/// The change that an event reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "most events are logs, and few exist at a time")]
pub enum EventData {
    /// A log joined or left the canonical chain.
    Log(ChangedLog),
    /// A block joined the canonical chain.
    Block(BlockRef),
    /// A transaction with this hash entered the pool.
    Transaction(H256),
}

/// A stream of events at some position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventStream {
    subscription: Subscription,
    /// The last id that the client has received.
    last_id: Option<EventId>,
    /// The genesis block, if it must be reported first; this cannot be expressed by an id, because no position
    /// precedes it.
    genesis: Option<BlockRef>,
}

pub(super) fn events(node: &Node, context: &Context, query: &EventQuery) -> Result<EventStream, NodeError> {
    context.check()?;
    let snapshot = node.snapshot(context)?;
    let (criteria, cursor, resumed) = match query {
        EventQuery::Logs { filter, start: from } => {
            let faults = filter_faults(filter, &node.limits);
            if !faults.is_empty() {
                return Err(NodeError::Invalid(faults));
            }
            let filter = node.filters.keep(context, filter.clone())?;
            let criteria = LogCriteria { filter, from: 0, open_below: false, to: None };
            (FilterCriteria::Logs(criteria), Cursor::Chain(start(&snapshot, from)?), from.resumes())
        }
        EventQuery::Blocks { start: from } => {
            (FilterCriteria::Blocks, Cursor::Chain(start(&snapshot, from)?), from.resumes())
        }
        EventQuery::PendingTransactions { after } => {
            node.check_has_pool()?;
            let next = node.pool.arrivals(u64::MAX, 0).next;
            // Another node has assigned the number if it is higher than all here.
            let resumed = after.and_then(|last| last.checked_add(1)).filter(|after| *after <= next);
            (FilterCriteria::PendingTransactions, Cursor::Arrival(resumed.unwrap_or(next)), resumed.is_some())
        }
    };
    let last_id = if resumed { id_of(cursor) } else { None };
    let genesis = match query {
        EventQuery::Blocks { start: EventStart::Block(tag) } if *tag != BlockNumberOrTag::Pending => {
            let is_first = snapshot.height(*tag) == 0;
            is_first.then(|| snapshot.view.canonical_hash(0)).transpose()?.flatten()
        }
        _ => None,
    };
    let genesis = genesis.map(|hash| BlockRef { number: 0, hash });
    Ok(EventStream { subscription: Subscription { criteria, cursor }, last_id, genesis })
}

pub(super) fn restart_events(node: &Node, context: &Context, stream: &EventStream) -> Result<EventStream, NodeError> {
    context.check()?;
    let cursor = match stream.subscription.cursor {
        Cursor::Chain(_) => Cursor::Chain(ChainPosition::end_of(node.snapshot(context)?.view.head())),
        Cursor::Arrival(_) => Cursor::Arrival(node.pool.arrivals(u64::MAX, 0).next),
    };
    let criteria = stream.subscription.criteria.clone();
    Ok(EventStream { subscription: Subscription { criteria, cursor }, last_id: None, genesis: None })
}

pub(super) fn next_events(
    node: &Node,
    context: &Context,
    mut stream: EventStream,
    page: PageSize,
) -> Result<(Vec<Event>, EventStream), NodeError> {
    let view = node.backend.view()?;
    let (changes, cursor) = stream.subscription.next(context, &*view, &node.pool, page)?;
    context.check()?;
    let mut events: Vec<_> = match changes {
        FilterChanges::Logs(logs) => logs.into_iter().map(log_event).collect(),
        FilterChanges::Blocks(blocks) => stream.genesis.take().into_iter().chain(blocks).map(block_event).collect(),
        FilterChanges::Transactions(arrivals) => (arrivals.into_iter())
            .map(|arrival| Event {
                id: Some(EventId::Arrival(arrival.number)),
                data: Some(EventData::Transaction(arrival.hash)),
            })
            .collect(),
    };
    let last_id = events.last().map_or(stream.last_id, |last| last.id);
    stream.subscription.cursor = cursor;
    stream.last_id = id_of(cursor);
    if stream.last_id != last_id {
        events.push(Event { id: stream.last_id, data: None });
    }
    Ok((events, stream))
}

impl EventStart {
    fn resumes(&self) -> bool {
        matches!(self, Self::After(_))
    }
}

fn start(snapshot: &RequestView, start: &EventStart) -> Result<ChainPosition, NodeError> {
    let view = &*snapshot.view;
    let head = view.head();
    let tag = match *start {
        EventStart::Now => return Ok(ChainPosition::end_of(head)),
        EventStart::After(ChainEventId { block, log_index }) => {
            let unknown = || NodeError::BlockNotFound { block: block.into(), field: Field::LastEventId };
            let header = view.header(block.into())?.ok_or_else(unknown)?;
            return Ok(ChainPosition { block: header.block_ref(), log_index });
        }
        EventStart::Block(tag) => tag,
    };
    let first = if tag == BlockNumberOrTag::Pending { head.number.saturating_add(1) } else { snapshot.height(tag) };
    // The genesis block has no logs, and no parent after which to start.
    let number = first.saturating_sub(1);
    match view.canonical_hash(number)? {
        Some(hash) => Ok(ChainPosition::end_of(BlockRef { number, hash })),
        None => {
            let message = format!("beyond the block after the head, which is block {}", head.number);
            Err(NodeError::invalid(Field::FromBlock, message))
        }
    }
}

fn log_event(change: ChangedLog) -> Event {
    Event { id: change.reached.map(|position| id_of_position(&position)), data: Some(EventData::Log(change)) }
}

fn block_event(block: BlockRef) -> Event {
    Event { id: Some(id_of_position(&ChainPosition::end_of(block))), data: Some(EventData::Block(block)) }
}

fn id_of_position(position: &ChainPosition) -> EventId {
    EventId::Chain(ChainEventId { block: position.block.hash, log_index: position.log_index })
}

/// Returns the id of a position, or `None` before the first arrival.
fn id_of(cursor: Cursor) -> Option<EventId> {
    match cursor {
        Cursor::Chain(position) => Some(id_of_position(&position)),
        Cursor::Arrival(next) => next.checked_sub(1).map(EventId::Arrival),
    }
}

impl From<ChangesError> for NodeError {
    fn from(error: ChangesError) -> Self {
        match error {
            ChangesError::CursorForgotten(block) => {
                Self::BlockNotFound { block: block.hash.into(), field: Field::LastEventId }
            }
            ChangesError::Backend(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::node::testing::World;
    use crate::node::{Finality, Limits};
    use crate::state::StateChanges;
    use crate::test_chain::{account, address, child, log, transaction, word};

    const PAGE: PageSize = PageSize { entries: 64, bytes: usize::MAX };

    fn context() -> Context {
        Context::unbounded()
    }

    fn logs(start: EventStart) -> EventQuery {
        EventQuery::Logs { filter: LogFilter::default(), start }
    }

    fn after(id: Option<EventId>) -> EventStart {
        match id {
            Some(EventId::Chain(id)) => EventStart::After(id),
            other => panic!("{other:?}"),
        }
    }

    /// Returns a block with a log for each topic.
    fn push_logs(world: &World, nonce: u64, topics: &[u64]) -> H256 {
        let logs = topics.iter().map(|topic| log(1, &[*topic])).collect();
        world.push(vec![(transaction(1, nonce, 1), logs)]).header.hash
    }

    /// The data and the id of an event.
    type Shown = (String, Option<String>);

    fn show(event: &Event) -> Shown {
        let data = match &event.data {
            None => String::new(),
            Some(EventData::Log(log)) => {
                let sign = if log.removed { "-" } else { "+" };
                format!("{sign}{}:{}", log.found.block.number, log.found.log_index)
            }
            Some(EventData::Block(block)) => format!("{:#x}", block.hash),
            Some(EventData::Transaction(hash)) => format!("{hash:#x}"),
        };
        (data, event.id.map(|id| id.to_string()))
    }

    /// Reads all events that there are.
    fn drain(world: &World, stream: &mut EventStream) -> Vec<Shown> {
        let mut all = Vec::new();
        loop {
            let (events, next) = world.node.next_events(&context(), stream.clone(), PAGE).unwrap();
            *stream = next;
            if events.is_empty() {
                return all;
            }
            all.extend(events.iter().map(show));
        }
    }

    fn open(world: &World, query: EventQuery) -> EventStream {
        world.node.events(&context(), &query).unwrap()
    }

    fn at(block: H256, log_index: Option<u64>) -> Option<String> {
        Some(ChainEventId { block, log_index }.to_string())
    }

    #[test]
    fn streams_resume_after_any_log() {
        let world = World::new();
        let one = push_logs(&world, 0, &[1]);
        let mut stream = open(&world, logs(EventStart::Now));
        assert_eq!(drain(&world, &mut stream), [(String::new(), at(one, None))], "where it begins");
        let two = push_logs(&world, 1, &[1, 2]);
        let expected =
            [("+2:0".into(), at(two, Some(0))), ("+2:1".into(), at(two, Some(1))), (String::new(), at(two, None))];
        assert_eq!(drain(&world, &mut stream), expected);
        assert_eq!(drain(&world, &mut stream), []);
        let three = push_logs(&world, 2, &[]);
        assert_eq!(drain(&world, &mut stream), [(String::new(), at(three, None))], "the head moved");

        let first = ChainEventId { block: two, log_index: Some(0) };
        let mut resumed = open(&world, logs(EventStart::After(first)));
        assert_eq!(drain(&world, &mut resumed), [expected[1].clone(), (String::new(), at(three, None))]);
        let mut whole = open(&world, logs(after(stream.last_id)));
        assert_eq!(drain(&world, &mut whole), [], "the stream is at the head");
    }

    #[test]
    fn streams_of_blocks_can_start_with_the_genesis_block() {
        let world = World::new();
        let genesis = world.backend.view().unwrap().head().hash;
        let one = push_logs(&world, 0, &[]);
        let blocks = |tag| EventQuery::Blocks { start: EventStart::Block(tag) };
        let shown = |hash: H256| (format!("{hash:#x}"), at(hash, None));
        for tag in [BlockNumberOrTag::Number(0), BlockNumberOrTag::Earliest] {
            let mut stream = open(&world, blocks(tag));
            assert_eq!(drain(&world, &mut stream), [shown(genesis), shown(one)], "{tag:?}");
            assert_eq!(drain(&world, &mut stream), []);
        }
        assert_eq!(drain(&world, &mut open(&world, blocks(BlockNumberOrTag::Number(1)))), [shown(one)]);
        let resumed =
            EventQuery::Blocks { start: after(Some(EventId::Chain(ChainEventId { block: genesis, log_index: None }))) };
        assert_eq!(drain(&world, &mut open(&world, resumed)), [shown(one)]);
    }

    #[test]
    fn only_the_last_removed_log_has_an_id() {
        let world = World::new();
        let one = push_logs(&world, 0, &[1]);
        let two = push_logs(&world, 1, &[1, 2, 3]);
        let view = world.backend.view().unwrap();
        let sibling = child(&*view, 1, 1, vec![(transaction(2, 0, 1), vec![log(2, &[])])], StateChanges::default());
        let new = sibling.header.hash;
        world.backend.switch(1, vec![sibling]).unwrap();
        // The second of three logs was the last that the client has.
        let last = ChainEventId { block: two, log_index: Some(1) };
        let mut stream = open(&world, logs(EventStart::After(last)));
        let expected = [
            ("-2:0".into(), None),
            ("-2:1".into(), at(one, None)),
            ("+2:0".into(), at(new, Some(0))),
            (String::new(), at(new, None)),
        ];
        assert_eq!(drain(&world, &mut stream), expected);
    }

    #[test]
    fn splits_long_results_into_pages() {
        let world = World::new();
        push_logs(&world, 0, &vec![1; PAGE.entries + 1]);
        let mut stream = open(&world, logs(EventStart::Block(BlockNumberOrTag::Earliest)));
        let (events, next) = world.node.next_events(&context(), stream.clone(), PAGE).unwrap();
        assert_eq!(events.len(), PAGE.entries);
        stream = next;
        let rest = drain(&world, &mut stream);
        assert_eq!(
            rest.iter().map(|(data, _)| data.as_str()).collect::<Vec<_>>(),
            [format!("+1:{}", PAGE.entries).as_str(), ""]
        );
    }

    #[test]
    fn starts_at_any_block() {
        let world = World::new();
        (0..3).for_each(|nonce| assert_ne!(push_logs(&world, nonce, &[1]), H256::zero()));
        let number = BlockNumberOrTag::Number;
        let cases: [(BlockNumberOrTag, Result<&[&str], ()>); 8] = [
            (BlockNumberOrTag::Earliest, Ok(&["+1:0", "+2:0", "+3:0"])),
            (number(0), Ok(&["+1:0", "+2:0", "+3:0"])),
            (number(1), Ok(&["+1:0", "+2:0", "+3:0"])),
            (number(3), Ok(&["+3:0"])),
            (BlockNumberOrTag::Latest, Ok(&["+3:0"])),
            (BlockNumberOrTag::Pending, Ok(&[])),
            (number(4), Ok(&[])),
            (number(5), Err(())),
        ];
        for (tag, expected) in cases {
            match (world.node.events(&context(), &logs(EventStart::Block(tag))), expected) {
                (Ok(mut stream), Ok(expected)) => {
                    let events = drain(&world, &mut stream);
                    let data: Vec<_> =
                        events.iter().map(|(data, _)| data.as_str()).filter(|data| !data.is_empty()).collect();
                    assert_eq!(data, expected, "{tag}");
                }
                (Err(NodeError::Invalid(faults)), Err(())) => assert_eq!(faults[0].field, Field::FromBlock, "{tag}"),
                (got, expected) => panic!("{tag}: {got:?}, {expected:?}"),
            }
        }
        let unknown = ChainEventId { block: H256::repeat_byte(9), log_index: None };
        let refused = world.node.events(&context(), &logs(EventStart::After(unknown)));
        assert!(matches!(refused, Err(NodeError::BlockNotFound { field: Field::LastEventId, .. })), "{refused:?}");
    }

    #[test]
    fn filters_logs_within_limits() {
        let world = World::with(Finality::Head, Limits { addresses: 1, topics: 1, ..Limits::default() });
        let query = |addresses: &[u8], topics: &[&[u64]]| EventQuery::Logs {
            filter: LogFilter {
                addresses: addresses.iter().copied().map(address).collect(),
                topics: topics.iter().map(|words| words.iter().copied().map(word).collect()).collect(),
            },
            start: EventStart::Block(BlockNumberOrTag::Earliest),
        };
        push_logs(&world, 0, &[1, 2, 1]);
        let chosen = drain(&world, &mut open(&world, query(&[1], &[&[1]])));
        assert_eq!(chosen.iter().map(|(data, _)| data.as_str()).collect::<Vec<_>>(), ["+1:0", "+1:2", ""]);
        let error = world.node.events(&context(), &query(&[1, 2], &[&[], &[1, 2]])).unwrap_err();
        let NodeError::Invalid(faults) = error else { panic!("{error:?}") };
        let fields: Vec<_> = faults.iter().map(|fault| fault.field).collect();
        assert_eq!(fields, [Field::Address, Field::Topic(1)]);
    }

    #[test]
    fn streams_blocks_and_pending_transactions() {
        let world = World::new();
        world.change(account(1, 0, u64::MAX, &[]));
        let mut blocks = open(&world, EventQuery::Blocks { start: EventStart::Now });
        let mut pending = open(&world, EventQuery::PendingTransactions { after: None });
        drain(&world, &mut blocks);
        drain(&world, &mut pending);
        let hashes: Vec<_> = (0..3)
            .map(|nonce| {
                let sent = transaction(1, nonce, 5);
                world.send(&sent);
                format!("{:#x}", sent.hash)
            })
            .collect();
        let block = world.push(Vec::new()).header.hash;
        assert_eq!(drain(&world, &mut blocks), [(format!("{block:#x}"), at(block, None))]);

        let events = drain(&world, &mut pending);
        assert_eq!(events.iter().map(|(data, _)| data.clone()).collect::<Vec<_>>(), hashes);
        let first = events[0].1.as_ref().unwrap().parse().unwrap();
        let mut resumed = open(&world, EventQuery::PendingTransactions { after: Some(first) });
        assert_eq!(drain(&world, &mut resumed), events[1..]);
    }
}
