//! Events: what filters report, told as it happens.
//!
//! A stream is a subscription whose cursor goes with each event as its id. Nothing of it is kept here, so that a client may
//! go on anywhere, at any time.

use super::logs::log_filter;
use super::resolve::Snapshot;
use super::{Node, NodeError, assemble};
use crate::block::{BlockHashOrNumber, BlockRef};
use crate::context::Context;
use crate::filters::{
    ChainPosition, ChangedLog, ChangesError, Cursor, FilterChanges, FilterCriteria, LogCriteria, Subscription,
};
use node_types::wire::{ChainEventId, Data, ErrorDetail, Event, EventData, EventId, EventsInput, LastEvent};
use node_types::{BlockId, BlockNumberOrTag};

/// Events of which some were told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventStream {
    subscription: Subscription,
    /// The id that the client has.
    told: Option<EventId>,
}

impl Node {
    /// Begins to tell what happens: behind the last event of the client, at a block, or from now on.
    pub fn events(&self, context: &Context, input: EventsInput) -> Result<EventStream, NodeError> {
        context.check()?;
        let snapshot = self.snapshot(context)?;
        let (criteria, cursor, resumed) = match input {
            EventsInput::Logs { address, topics, from_block, after } => {
                let mut faults = Vec::new();
                let filter = log_filter(&address, &topics, &self.limits, "query", &mut faults);
                if !faults.is_empty() {
                    return Err(NodeError::Invalid(faults));
                }
                let start = start(&snapshot, from_block, after)?;
                let criteria = LogCriteria { filter, from: 0, to: None };
                (FilterCriteria::Logs(criteria), Cursor::Chain(start), after.is_some())
            }
            EventsInput::Blocks { from_block, after } => {
                let resumed = after.is_some();
                let after = after.map(|LastEvent { id, location }| LastEvent {
                    id: ChainEventId { block: id.0, log_index: None },
                    location,
                });
                (FilterCriteria::Blocks, Cursor::Chain(start(&snapshot, from_block, after)?), resumed)
            }
            EventsInput::PendingTransactions { after } => {
                let next = match after {
                    Some(last) => last.id.0.saturating_add(1),
                    None => self.pool.arrivals(u64::MAX, 0).next,
                };
                (FilterCriteria::PendingTransactions, Cursor::Arrival(next), after.is_some())
            }
        };
        let told = if resumed { id_of(cursor) } else { None };
        Ok(EventStream { subscription: Subscription { criteria, cursor }, told })
    }

    /// The next events, about `page` of them at most, and the stream behind them. None when nothing has happened.
    ///
    /// The last event names the place that was reached, with nothing else where nothing that is wanted happened on the way
    /// there.
    pub fn next_events(
        &self,
        context: &Context,
        mut stream: EventStream,
        page: usize,
    ) -> Result<(Vec<Event>, EventStream), NodeError> {
        let view = self.backend.view()?;
        let next = stream.subscription.next(context, &*view, &self.pool, page);
        let (changes, cursor) = next.map_err(failed)?;
        context.check()?;
        let mut events: Vec<_> = match changes {
            FilterChanges::Logs(logs) => logs.into_iter().map(log_event).collect(),
            FilterChanges::Blocks(blocks) => blocks.into_iter().map(block_event).collect(),
            FilterChanges::Transactions(arrivals) => (arrivals.into_iter())
                .map(|arrival| Event {
                    id: Some(EventId::Arrival(arrival.number)),
                    data: Some(EventData::Transaction(Data(arrival.hash))),
                })
                .collect(),
        };
        let told = events.last().map_or(stream.told, |last| last.id);
        stream.subscription.cursor = cursor;
        stream.told = id_of(cursor);
        if stream.told != told {
            events.push(Event { id: stream.told, data: None });
        }
        Ok((events, stream))
    }
}

/// Where a stream of the chain begins.
fn start(
    snapshot: &Snapshot,
    from_block: Option<BlockNumberOrTag>,
    after: Option<LastEvent<ChainEventId>>,
) -> Result<ChainPosition, NodeError> {
    let view = &*snapshot.view;
    if let Some(LastEvent { id: ChainEventId { block, log_index }, location }) = after {
        let header = view.header(BlockHashOrNumber::Hash(block))?;
        let header = header.ok_or(NodeError::BlockNotFound { block: BlockId::Hash(block), location })?;
        return Ok(ChainPosition { block: header.block_ref(), log_index });
    }
    let head = view.head();
    let Some(tag) = from_block else { return Ok(ChainPosition::end_of(head)) };
    let first = if tag == BlockNumberOrTag::Pending { head.number.saturating_add(1) } else { snapshot.height(tag) };
    // Genesis has no logs, and nothing is before it.
    let number = first.saturating_sub(1);
    match view.canonical_hash(number)? {
        Some(hash) => Ok(ChainPosition::end_of(BlockRef { number, hash })),
        None => {
            let message = format!("beyond the block after the head, which is block {}", head.number);
            Err(NodeError::Invalid(vec![ErrorDetail::new("query.FromBlock", message).with_value(&tag)]))
        }
    }
}

fn log_event(change: ChangedLog) -> Event {
    let id = change.reached.map(|position| id_of_position(&position));
    Event { id, data: Some(EventData::Log(assemble::log(change.found, false, change.removed))) }
}

fn block_event(block: BlockRef) -> Event {
    Event { id: Some(id_of_position(&ChainPosition::end_of(block))), data: Some(EventData::Block(Data(block.hash))) }
}

fn id_of_position(position: &ChainPosition) -> EventId {
    EventId::Chain(ChainEventId { block: position.block.hash, log_index: position.log_index })
}

/// None before the first arrival of all.
fn id_of(cursor: Cursor) -> Option<EventId> {
    match cursor {
        Cursor::Chain(position) => Some(id_of_position(&position)),
        Cursor::Arrival(next) => next.checked_sub(1).map(EventId::Arrival),
    }
}

fn failed(error: ChangesError) -> NodeError {
    match error {
        ChangesError::CursorForgotten(block) => {
            NodeError::BlockNotFound { block: BlockId::Hash(block.hash), location: "query.LastEventId" }
        }
        ChangesError::Backend(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::node::testing::World;
    use crate::node::{Finality, Limits};
    use crate::state::StateChanges;
    use crate::test_chain::{account, address, child, log, transaction};
    use node_types::H256;
    use node_types::wire::{AddressFilter, Quantity, TopicFilter};

    const PAGE: usize = 64;

    fn context() -> Context {
        Context::unbounded()
    }

    fn logs(from_block: Option<BlockNumberOrTag>, after: Option<EventId>) -> EventsInput {
        let after = after.map(|id| match id {
            EventId::Chain(id) => LastEvent { id, location: "query.LastEventId" },
            EventId::Arrival(number) => panic!("{number}"),
        });
        EventsInput::Logs { address: AddressFilter::default(), topics: Vec::new(), from_block, after }
    }

    /// A block with a log for each topic.
    fn push_logs(world: &World, nonce: u64, topics: &[u64]) -> H256 {
        let logs = topics.iter().map(|topic| log(1, &[*topic])).collect();
        world.push(vec![(transaction(1, nonce, 1), logs)]).header.hash
    }

    /// An event as what it shows, and its id.
    type Shown = (String, Option<String>);

    fn show(event: &Event) -> Shown {
        let data = match &event.data {
            None => String::new(),
            Some(EventData::Log(log)) => {
                let sign = if log.removed { "-" } else { "+" };
                format!("{sign}{}:{}", log.block_number.unwrap().0, log.log_index.unwrap().0)
            }
            Some(EventData::Block(hash) | EventData::Transaction(hash)) => hash.to_string(),
        };
        (data, event.id.map(|id| id.to_string()))
    }

    /// All that there is to tell.
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

    fn open(world: &World, input: EventsInput) -> EventStream {
        world.node.events(&context(), input).unwrap()
    }

    fn at(block: H256, log_index: Option<u64>) -> Option<String> {
        Some(ChainEventId { block, log_index }.to_string())
    }

    #[test]
    fn logs_come_with_ids_at_which_a_client_goes_on() {
        let world = World::new();
        let one = push_logs(&world, 0, &[1]);
        let mut stream = open(&world, logs(None, None));
        assert_eq!(drain(&world, &mut stream), [(String::new(), at(one, None))], "where it begins");
        let two = push_logs(&world, 1, &[1, 2]);
        let expected =
            [("+2:0".into(), at(two, Some(0))), ("+2:1".into(), at(two, Some(1))), (String::new(), at(two, None))];
        assert_eq!(drain(&world, &mut stream), expected);
        assert_eq!(drain(&world, &mut stream), []);
        let three = push_logs(&world, 2, &[]);
        assert_eq!(drain(&world, &mut stream), [(String::new(), at(three, None))], "the head moved");

        let first = EventId::Chain(ChainEventId { block: two, log_index: Some(0) });
        let mut resumed = open(&world, logs(None, Some(first)));
        assert_eq!(drain(&world, &mut resumed), [expected[1].clone(), (String::new(), at(three, None))]);
        let mut whole = open(&world, logs(None, stream.told));
        assert_eq!(drain(&world, &mut whole), [], "it knows where it is");
    }

    #[test]
    fn removed_logs_have_no_id_but_the_last() {
        let world = World::new();
        let one = push_logs(&world, 0, &[1]);
        let two = push_logs(&world, 1, &[1, 2, 3]);
        let view = world.backend.view().unwrap();
        let sibling = child(&*view, 1, 1, vec![(transaction(2, 0, 1), vec![log(2, &[])])], StateChanges::default());
        let new = sibling.header.hash;
        world.backend.switch(1, vec![sibling]).unwrap();
        // The second of three logs was the last that the client has.
        let told = EventId::Chain(ChainEventId { block: two, log_index: Some(1) });
        let mut stream = open(&world, logs(None, Some(told)));
        let expected = [
            ("-2:0".into(), None),
            ("-2:1".into(), at(one, None)),
            ("+2:0".into(), at(new, Some(0))),
            (String::new(), at(new, None)),
        ];
        assert_eq!(drain(&world, &mut stream), expected);
    }

    #[test]
    fn long_answers_come_in_pages() {
        let world = World::new();
        push_logs(&world, 0, &vec![1; PAGE + 1]);
        let mut stream = open(&world, logs(Some(BlockNumberOrTag::Earliest), None));
        let (events, next) = world.node.next_events(&context(), stream.clone(), PAGE).unwrap();
        assert_eq!(events.len(), PAGE);
        stream = next;
        let rest = drain(&world, &mut stream);
        assert_eq!(rest.iter().map(|(data, _)| data.as_str()).collect::<Vec<_>>(), [format!("+1:{PAGE}").as_str(), ""]);
    }

    #[test]
    fn places_to_begin() {
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
            match (world.node.events(&context(), logs(Some(tag), None)), expected) {
                (Ok(mut stream), Ok(expected)) => {
                    let told = drain(&world, &mut stream);
                    let data: Vec<_> =
                        told.iter().map(|(data, _)| data.as_str()).filter(|data| !data.is_empty()).collect();
                    assert_eq!(data, expected, "{tag}");
                }
                (Err(error), Err(())) => assert_eq!(error.details()[0].location, "query.FromBlock", "{tag}"),
                (got, expected) => panic!("{tag}: {got:?}, {expected:?}"),
            }
        }
        let unknown = EventId::Chain(ChainEventId { block: H256::repeat_byte(9), log_index: None });
        let refused = world.node.events(&context(), logs(None, Some(unknown)));
        assert!(matches!(refused, Err(NodeError::BlockNotFound { location: "query.LastEventId", .. })), "{refused:?}");
    }

    #[test]
    fn addresses_and_topics_choose_within_limits() {
        let world = World::with(Finality::Head, Limits { addresses: 1, topics: 1, ..Limits::default() });
        let input = |addresses: &[u8], topics: &[&[u64]]| EventsInput::Logs {
            address: addresses.iter().copied().map(address).collect(),
            topics: (topics.iter())
                .map(|words| TopicFilter(words.iter().copied().map(H256::from_low_u64_be).collect()))
                .collect(),
            from_block: Some(BlockNumberOrTag::Earliest),
            after: None,
        };
        push_logs(&world, 0, &[1, 2, 1]);
        let chosen = drain(&world, &mut open(&world, input(&[1], &[&[1]])));
        assert_eq!(chosen.iter().map(|(data, _)| data.as_str()).collect::<Vec<_>>(), ["+1:0", "+1:2", ""]);
        let error = world.node.events(&context(), input(&[1, 2], &[&[], &[1, 2]])).unwrap_err();
        let locations: Vec<_> = error.details().into_iter().map(|detail| detail.location).collect();
        assert_eq!(locations, ["query.Address", "query.Topic1"]);
    }

    #[test]
    fn blocks_and_pending_transactions() {
        let world = World::new();
        world.change(account(1, 0, u64::MAX, &[]));
        let mut blocks = open(&world, EventsInput::Blocks { from_block: None, after: None });
        let mut pending = open(&world, EventsInput::PendingTransactions { after: None });
        drain(&world, &mut blocks);
        drain(&world, &mut pending);
        let hashes: Vec<_> = (0..3)
            .map(|nonce| {
                let sent = transaction(1, nonce, 5);
                world.send(&sent);
                Data(sent.hash).to_string()
            })
            .collect();
        let block = world.push(Vec::new()).header.hash;
        assert_eq!(drain(&world, &mut blocks), [(Data(block).to_string(), at(block, None))]);

        let told = drain(&world, &mut pending);
        assert_eq!(told.iter().map(|(data, _)| data.clone()).collect::<Vec<_>>(), hashes);
        let first = LastEvent { id: Quantity(told[0].1.as_ref().unwrap().parse().unwrap()), location: "" };
        let mut resumed = open(&world, EventsInput::PendingTransactions { after: Some(first) });
        assert_eq!(drain(&world, &mut resumed), told[1..]);
    }
}
