//! Searches for logs, with or without paging.

use super::fault::{Fault, Field};
use super::resolve::RequestView;
use super::{Limit, Limits, Node, NodeError};
use crate::backend::{BackendError, LogFilter};
use crate::block::{LogPosition, LogRef};
use crate::context::Context;
use crate::logs::{self, FoundLog, PageEnd, PageSize};
use node_types::buffer::BufferFull;
use node_types::{BlockId, BlockNumber, BlockNumberOrTag, H256, keccak256};
use rlp::RlpStream;
use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};
use std::str::FromStr;

/// Maximum number of topics of a log: LOG4 writes four.
const MAX_TOPICS: usize = 4;

/// The logs and the blocks that a query selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Addresses and topics of the logs.
    pub filter: LogFilter,
    pub blocks: LogBlocks,
    /// What is done about a range that is not completely below the head.
    pub above_head: AboveHead,
}

/// What a search does about blocks above the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AboveHead {
    /// It fails.
    #[default]
    Refuse,
    /// It fails, except for the range from the block after the head to the latest: a client that polls for new logs
    /// requests it when there is no new block, and finds nothing.
    Poll,
    /// It finds nothing in them.
    Skip,
}

/// Blocks to search for logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogBlocks {
    Hash(H256),
    /// Consecutive canonical blocks. If an end of the range is `None`, it is the latest block.
    Range(BlockRange),
}

impl Default for LogBlocks {
    fn default() -> Self {
        Self::Range(BlockRange::default())
    }
}

/// A range of blocks with both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockRange {
    /// First block.
    pub from: Option<BlockNumberOrTag>,
    /// Last block.
    pub to: Option<BlockNumberOrTag>,
}

impl BlockRange {
    /// Returns the fault of a range that ends before it starts, in an end that the request specified. `first` and
    /// `last` are the resolved ends.
    pub(super) fn reversed(&self, first: BlockNumber, last: BlockNumber) -> Fault {
        let field = match (self.from, self.to) {
            (None, Some(_)) => Field::ToBlock,
            (Some(_), _) => Field::FromBlock,
            (None, None) => Field::Request,
        };
        // If the request does not specify the first block, the message explains which one is used.
        let latest = if self.from.is_none() { " (the latest, the default)" } else { "" };
        Fault::new(
            field,
            format!("invalid block range params: the first block, {first}{latest}, is after the last block, {last}"),
        )
    }
}

/// One page of the logs that match a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    pub logs: Vec<FoundLog>,
    /// Start of the next page, or `None` if this is the last page.
    pub next: Option<LogCursor>,
}

/// Start of a page of logs. It is valid only for the query that it was returned for, and only as long as its block is
/// canonical, or, for the pending block, as long as it has the same logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogCursor {
    /// The first log of the page.
    position: LogPosition,
    /// What identifies the logs of its block, as of [`identity`].
    block: H256,
    query: H256,
}

/// The cursor was returned for another query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cursor belongs to another request")]
pub struct ForeignCursor;

impl LogCursor {
    /// Checks that the cursor was returned for `query`.
    ///
    /// # Errors
    /// If it was returned for another one.
    pub fn check(&self, query: &LogQuery) -> Result<(), ForeignCursor> {
        if self.query == digest(query) { Ok(()) } else { Err(ForeignCursor) }
    }
}

pub(super) fn get_logs(node: &Node, context: &Context, query: &LogQuery) -> Result<Vec<FoundLog>, NodeError> {
    let mut logs = Vec::new();
    node.visit_logs(context, query, |found| {
        logs.push(found.to_found_log());
        ControlFlow::Continue(())
    })?;
    Ok(logs)
}

pub(super) fn visit_logs(
    node: &Node,
    context: &Context,
    query: &LogQuery,
    visit: impl FnMut(FoundLog<LogRef<'_>>) -> ControlFlow<BufferFull>,
) -> Result<(), NodeError> {
    let size = PageSize::of_entries(node.limits.logs);
    match node.find_logs(context, query, None, size, visit)? {
        (.., None) => Ok(()),
        (_, range, Some(PageEnd { next, full })) => {
            let to_block = next.block.checked_sub(1).filter(|last| range.contains(last));
            let field = query.blocks.field();
            Err(match full {
                Some(full) => NodeError::LogsTooLarge { full, to_block, field },
                None => NodeError::TooManyLogs { limit: node.limits.logs, to_block, field },
            })
        }
    }
}

impl LogBlocks {
    /// Returns the field that determines the last block.
    fn field(&self) -> Field {
        match self {
            Self::Hash(_) => Field::BlockHash,
            Self::Range(_) => Field::ToBlock,
        }
    }
}

pub(super) fn get_logs_page(
    node: &Node,
    context: &Context,
    query: &LogQuery,
    cursor: Option<LogCursor>,
) -> Result<LogPage, NodeError> {
    let mut logs = Vec::new();
    let next = node.visit_logs_page(context, query, cursor, |found| {
        logs.push(found.to_found_log());
        ControlFlow::Continue(())
    })?;
    Ok(LogPage { logs, next })
}

pub(super) fn visit_logs_page(
    node: &Node,
    context: &Context,
    query: &LogQuery,
    cursor: Option<LogCursor>,
    visit: impl FnMut(FoundLog<LogRef<'_>>) -> ControlFlow<BufferFull>,
) -> Result<Option<LogCursor>, NodeError> {
    let size = PageSize::bounded(node.limits.logs.max(1));
    let (snapshot, _, end) = node.find_logs(context, query, cursor, size, visit)?;
    let Some(PageEnd { next: position, full }) = end else { return Ok(None) };
    if let Some(full) = full {
        return Err(NodeError::LogsTooLarge { full, to_block: None, field: query.blocks.field() });
    }
    let block = identity(&snapshot, position.block)?.ok_or(BackendError::UnknownBlock(position.block))?;
    Ok(Some(LogCursor { position, block, query: digest(query) }))
}

impl Node {
    /// Returns a snapshot that includes the pending block if it is an end of `range`.
    fn snapshot_of_range(&self, context: &Context, range: &BlockRange) -> Result<RequestView, NodeError> {
        let with_pending = [range.from, range.to].contains(&Some(BlockNumberOrTag::Pending));
        self.snapshot_for(context, if with_pending { BlockId::pending() } else { BlockId::latest() })
    }

    fn find_logs(
        &self,
        context: &Context,
        query: &LogQuery,
        cursor: Option<LogCursor>,
        page: PageSize,
        mut visit: impl FnMut(FoundLog<LogRef<'_>>) -> ControlFlow<BufferFull>,
    ) -> Result<(RequestView, RangeInclusive<BlockNumber>, Option<PageEnd>), NodeError> {
        let mut faults = filter_faults(&query.filter, &self.limits);
        let snapshot = match &query.blocks {
            LogBlocks::Range(range) => self.snapshot_of_range(context, range)?,
            LogBlocks::Hash(_) => self.snapshot(context)?,
        };
        let range = match query.blocks {
            LogBlocks::Hash(hash) => {
                let number = snapshot.canonical(hash.into(), Field::BlockHash)?;
                ResolvedRange { blocks: number..=number, faults: Vec::new(), is_above_head: false }
            }
            LogBlocks::Range(range) => resolve_range(&snapshot, &range, query.above_head),
        };
        if let Some(Err(error)) = cursor.map(|cursor| cursor.check(query)) {
            faults.push(Fault::new(Field::Cursor, error.to_string()));
        }
        let range = range.checked(faults, &snapshot)?;
        if range.is_empty() {
            return Ok((snapshot, range, None));
        }
        check_span(&range, self.limits.block_range)?;
        let mut from = LogPosition { block: *range.start(), log_index: 0 };
        if let Some(cursor) = cursor {
            if identity(&snapshot, cursor.position.block)? != Some(cursor.block) {
                return Err(NodeError::BlockNotFound { block: cursor.block.into(), field: Field::Cursor });
            }
            from = from.max(cursor.position);
        }
        let end = logs::visit(&*snapshot.view, context, &query.filter, from, *range.end(), page, |found| {
            visit(FoundLog { pending: snapshot.is_pending(found.block.number), ..found })
        })?;
        Ok((snapshot, range, end))
    }
}

/// Returns what identifies the logs of a block: its hash, or, as the hash of the pending block changes with the time,
/// the roots of its transactions and receipts. Returns `None` if the block is above the head.
fn identity(snapshot: &RequestView, number: BlockNumber) -> Result<Option<H256>, BackendError> {
    if !snapshot.is_pending(number) {
        return snapshot.view.canonical_hash(number);
    }
    let header = snapshot.view.header(number.into())?;
    Ok(header.map(|sealed| {
        let header = &sealed.header;
        keccak256(
            [header.parent_hash, header.transactions_root, header.receipts_root].map(|hash| hash.0).as_flattened(),
        )
    }))
}

/// Returns the error of a range that would be searched, for requests that have other faults as well.
pub(super) fn check_range(
    node: &Node,
    context: &Context,
    range: &BlockRange,
    above_head: AboveHead,
) -> Result<(), NodeError> {
    let snapshot = node.snapshot_of_range(context, range)?;
    let range = resolve_range(&snapshot, range, above_head).checked(Vec::new(), &snapshot)?;
    if range.is_empty() { Ok(()) } else { check_span(&range, node.limits.block_range) }
}

/// The blocks of a range.
struct ResolvedRange {
    /// May be empty. If there are faults, they must not be used.
    blocks: RangeInclusive<BlockNumber>,
    faults: Vec<Fault>,
    /// Whether one of the faults is that the range is above the head.
    is_above_head: bool,
}

impl ResolvedRange {
    /// Returns the blocks, or the error of a request that has these faults and `others`.
    fn checked(self, mut others: Vec<Fault>, snapshot: &RequestView) -> Result<RangeInclusive<BlockNumber>, NodeError> {
        let Self { blocks, faults, is_above_head } = self;
        if is_above_head && others.is_empty() {
            return Err(NodeError::RangeAboveHead { head: snapshot.latest(), faults });
        }
        others.extend(faults);
        if others.is_empty() { Ok(blocks) } else { Err(NodeError::Invalid(others)) }
    }
}

/// Resolves the ends of a range.
fn resolve_range(snapshot: &RequestView, range: &BlockRange, above_head: AboveHead) -> ResolvedRange {
    let (from, to) = (range.from.unwrap_or_default(), range.to.unwrap_or_default());
    let (first, mut last) = (snapshot.height(from), snapshot.height(to));
    let latest = snapshot.latest();
    // The end rises with the head. Until then, the range is above the head, rather than reversed.
    let is_future =
        first > latest && first > last && !matches!(to, BlockNumberOrTag::Number(_) | BlockNumberOrTag::Earliest);
    let polls = to == BlockNumberOrTag::Latest && first == latest + 1;
    let above = match above_head {
        AboveHead::Skip => None,
        AboveHead::Poll if is_future => (!polls).then_some(Field::FromBlock),
        AboveHead::Refuse | AboveHead::Poll => snapshot.known_height(to).is_none().then_some(Field::ToBlock),
    };
    let message = || NodeError::RangeAboveHead { head: latest, faults: Vec::new() }.to_string();
    let mut faults: Vec<_> = above.map(|field| Fault::new(field, message())).into_iter().collect();
    if first > last && (above_head == AboveHead::Refuse || !is_future) {
        faults.push(range.reversed(first, last));
    }
    if above_head == AboveHead::Skip && to != BlockNumberOrTag::Pending {
        last = last.min(latest);
    }
    ResolvedRange { blocks: first..=last, faults, is_above_head: above.is_some() }
}

fn check_span(range: &RangeInclusive<BlockNumber>, limit: u64) -> Result<(), NodeError> {
    let blocks = (range.end() - range.start()).saturating_add(1);
    if blocks <= limit {
        return Ok(());
    }
    let to_block = range.start() + limit.saturating_sub(1);
    Err(NodeError::TooManyBlocks { blocks, limit, to_block, field: Field::ToBlock })
}

/// Returns a fault for each limit that a filter exceeds.
pub(super) fn filter_faults(filter: &LogFilter, limits: &Limits) -> Vec<Fault> {
    let mut faults = Vec::new();
    let addresses = filter.addresses.len();
    if addresses > limits.addresses {
        faults.push(Fault::too_many(Field::Address, addresses, limits.addresses, "addresses", Limit::Addresses));
    }
    for (position, words) in filter.topics.iter().map(Vec::len).enumerate().take(MAX_TOPICS) {
        if words > limits.topics {
            faults.push(Fault::too_many(Field::Topic(position), words, limits.topics, "topics", Limit::Topics));
        }
    }
    if filter.topics.len() > MAX_TOPICS {
        let message =
            format!("exceed max topics: expected at most {MAX_TOPICS} positions, got {}", filter.topics.len());
        faults.push(Fault::new(Field::Topics, message));
    }
    faults
}

/// Returns the Keccak-256 of the RLP list of all fields, which binds a cursor to its query.
fn digest(query: &LogQuery) -> H256 {
    let tag = |tag: Option<BlockNumberOrTag>| tag.map(|tag| tag.to_string()).unwrap_or_default();
    let mut stream = RlpStream::new();
    stream.begin_unbounded_list();
    stream.append_list(&query.filter.addresses);
    match query.blocks {
        LogBlocks::Hash(hash) => drop(stream.append(&hash)),
        LogBlocks::Range(BlockRange { from, to }) => drop(stream.append(&tag(from)).append(&tag(to))),
    }
    for words in &query.filter.topics {
        stream.append_list(words);
    }
    stream.finalize_unbounded_list();
    keccak256(stream.out())
}

/// Bytes of a cursor: block number, log index, block hash, digest of the query.
const CURSOR_BYTES: usize = 8 + 8 + 32 + 32;

impl fmt::Display for LogCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogPosition { block, log_index } = self.position;
        write!(f, "{block:016x}{log_index:016x}{:x}{:x}", self.block, self.query)
    }
}

/// The text is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of this node")]
pub struct InvalidCursor;

impl FromStr for LogCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let part = |range: std::ops::Range<usize>| text.get(range).ok_or(InvalidCursor);
        if text.len() != 2 * CURSOR_BYTES || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(InvalidCursor);
        }
        let number = |range| u64::from_str_radix(part(range)?, 16).map_err(|_| InvalidCursor);
        let hash = |range| part(range)?.parse::<H256>().map_err(|_| InvalidCursor);
        Ok(Self {
            position: LogPosition { block: number(0..16)?, log_index: number(16..32)? },
            block: hash(32..96)?,
            query: hash(96..160)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::node::Finality;
    use crate::node::testing::World;
    use crate::state::StateChanges;
    use crate::test_chain::{address, child, log, transaction, word};
    use proptest::prelude::*;

    /// Three blocks with two, none and three logs.
    fn world(limit: usize) -> World {
        let limits = Limits { logs: limit, addresses: 2, topics: 2, ..Limits::default() };
        let world = World::with(Finality::Head, limits);
        world.push(vec![(transaction(1, 0, 1), vec![log(1, &[5])]), (transaction(2, 0, 1), vec![log(2, &[6])])]);
        world.grow(1);
        world.push(vec![(transaction(1, 1, 1), vec![log(1, &[5]), log(1, &[6]), log(2, &[5])])]);
        world
    }

    fn range(from: u64, to: u64) -> LogQuery {
        bounds(Some(from.into()), Some(to.into()))
    }

    fn bounds(from: Option<BlockNumberOrTag>, to: Option<BlockNumberOrTag>) -> LogQuery {
        LogQuery { blocks: LogBlocks::Range(BlockRange { from, to }), ..LogQuery::default() }
    }

    fn filter(addresses: &[u8], topics: &[&[u64]]) -> LogFilter {
        LogFilter {
            addresses: addresses.iter().copied().map(address).collect(),
            topics: topics.iter().map(|words| words.iter().copied().map(word).collect()).collect(),
        }
    }

    #[test]
    fn limits_of_zero_refuse_ranges_and_serve_pages_of_one_log() {
        let limits = Limits { logs: 0, block_range: 0, ..Limits::default() };
        let world = World::with(Finality::Head, limits);
        let refused = world.node.get_logs(&Context::unbounded(), &range(0, 0));
        assert!(
            matches!(refused, Err(NodeError::TooManyBlocks { blocks: 1, limit: 0, to_block: 0, .. })),
            "{refused:?}"
        );
        let world = self::world(0);
        assert!(matches!(
            world.node.get_logs(&Context::unbounded(), &range(1, 3)),
            Err(NodeError::TooManyLogs { limit: 0, .. })
        ));
        let page = world.node.get_logs_page(&Context::unbounded(), &range(1, 3), None).unwrap();
        assert_eq!(places(&page.logs), [(1, 0)]);
        assert!(page.next.is_some());
    }

    /// Block and index of each log.
    fn places(logs: &[FoundLog]) -> Vec<(u64, u64)> {
        logs.iter().map(|log| (log.block.number, log.log_index)).collect()
    }

    #[test]
    fn searches_ranges_with_filters() {
        let world = world(100);
        let view = world.backend.view().unwrap();
        let of_block = |number: u64| {
            let hash = view.canonical_hash(number).unwrap().unwrap();
            LogQuery { blocks: LogBlocks::Hash(hash), ..LogQuery::default() }
        };
        let from_one = bounds(Some(1.into()), None);
        let cases: Vec<(LogQuery, &[(u64, u64)])> = vec![
            (LogQuery::default(), &[(3, 0), (3, 1), (3, 2)]),
            (from_one.clone(), &[(1, 0), (1, 1), (3, 0), (3, 1), (3, 2)]),
            (range(0, 1), &[(1, 0), (1, 1)]),
            (range(2, 2), &[]),
            (of_block(1), &[(1, 0), (1, 1)]),
            (of_block(2), &[]),
            (LogQuery { filter: filter(&[2], &[]), ..from_one.clone() }, &[(1, 1), (3, 2)]),
            (LogQuery { filter: filter(&[], &[&[5]]), ..from_one.clone() }, &[(1, 0), (3, 0), (3, 2)]),
            (LogQuery { filter: filter(&[], &[&[], &[]]), ..from_one }, &[]),
        ];
        for (query, expected) in cases {
            let logs = world.node.get_logs(&Context::unbounded(), &query).unwrap();
            assert_eq!(places(&logs), expected, "{query:?}");
        }
    }

    #[test]
    fn ranges_above_the_head() {
        use AboveHead::{Poll, Refuse, Skip};
        use BlockNumberOrTag::{Earliest, Finalized, Latest, Number, Pending, Safe};
        let world = world(100);
        // The number of logs, or the field of the error and whether it is only that the range is above the head.
        type Expected = Result<usize, (Field, bool)>;
        let (from, to) = (Field::FromBlock, Field::ToBlock);
        let cases: [(_, _, [Expected; 3]); 15] = [
            (Some(Number(4)), None, [Err((from, false)), Ok(0), Ok(0)]),
            (Some(Number(4)), Some(Latest), [Err((from, false)), Ok(0), Ok(0)]),
            (Some(Number(5)), None, [Err((from, false)), Err((from, true)), Ok(0)]),
            (Some(Pending), None, [Err((from, false)), Ok(0), Ok(0)]),
            (Some(Pending), Some(Pending), [Ok(0), Ok(0), Ok(0)]),
            (Some(Pending), Some(Safe), [Err((from, false)), Err((from, true)), Ok(0)]),
            (Some(Number(4)), Some(Safe), [Err((from, false)), Err((from, true)), Ok(0)]),
            (Some(Number(5)), Some(Finalized), [Err((from, false)), Err((from, true)), Ok(0)]),
            (Some(Number(5)), Some(Pending), [Err((from, false)), Err((from, true)), Ok(0)]),
            (Some(Number(5)), Some(Number(4)), [Err((to, true)), Err((to, true)), Err((from, false))]),
            (Some(Number(3)), Some(Number(4)), [Err((to, true)), Err((to, true)), Ok(3)]),
            (Some(Number(4)), Some(Number(5)), [Err((to, true)), Err((to, true)), Ok(0)]),
            (Some(Number(u64::MAX)), Some(Number(u64::MAX)), [Err((to, true)), Err((to, true)), Ok(0)]),
            (Some(Number(9)), Some(Number(2)), [Err((from, false)); 3]),
            (Some(Number(9)), Some(Earliest), [Err((from, false)); 3]),
        ];
        for (first, last, expected) in cases {
            for (above_head, expected) in [Refuse, Poll, Skip].into_iter().zip(expected) {
                let query = LogQuery { above_head, ..bounds(first, last) };
                let got = match world.node.get_logs(&Context::unbounded(), &query) {
                    Ok(logs) => Ok(logs.len()),
                    Err(NodeError::Invalid(faults)) => Err((faults[0].field, false)),
                    Err(NodeError::RangeAboveHead { head: 3, faults }) => Err((faults[0].field, true)),
                    Err(error) => panic!("{query:?}: {error:?}"),
                };
                assert_eq!(got, expected, "{query:?}");
                let range = BlockRange { from: first, to: last };
                let checked = world.node.check_log_range(&Context::unbounded(), &range, above_head);
                assert_eq!(checked.is_ok(), expected.is_ok(), "{query:?}: {checked:?}");
            }
        }
    }

    #[test]
    fn reports_every_fault() {
        use BlockNumberOrTag::{Earliest, Latest, Number, Pending};
        let world = world(100);
        let cases = [
            (range(2, 1), vec![Field::FromBlock]),
            (range(0, 4), vec![Field::ToBlock]),
            (range(6, 5), vec![Field::ToBlock, Field::FromBlock]),
            (bounds(None, Some(Number(1))), vec![Field::ToBlock]),
            (bounds(Some(Number(4)), None), vec![Field::FromBlock]),
            (bounds(Some(Pending), None), vec![Field::FromBlock]),
            (bounds(Some(Latest), Some(Earliest)), vec![Field::FromBlock]),
            (
                LogQuery { filter: filter(&[1; 3], &[&[], &[1; 3]]), ..range(2, 1) },
                vec![Field::Address, Field::Topic(1), Field::FromBlock],
            ),
            (LogQuery { filter: filter(&[1; 3], &[]), ..range(3, 4) }, vec![Field::Address, Field::ToBlock]),
            (LogQuery { filter: filter(&[], &[&[][..]; 5]), ..range(1, 2) }, vec![Field::Topics]),
        ];
        for (query, expected) in cases {
            let error = world.node.get_logs(&Context::unbounded(), &query).unwrap_err();
            let fields: Vec<Field> = match error {
                NodeError::Invalid(faults) => faults.iter().map(|fault| fault.field).collect(),
                NodeError::RangeAboveHead { head: 3, faults } => faults.iter().map(|fault| fault.field).collect(),
                error => panic!("{query:?}: {error:?}"),
            };
            assert_eq!(fields, expected, "{query:?}");
        }
    }

    #[test]
    fn rejects_an_unknown_block_hash() {
        let query = LogQuery { blocks: LogBlocks::Hash(word(1)), ..LogQuery::default() };
        assert!(matches!(
            world(100).node.get_logs(&Context::unbounded(), &query),
            Err(NodeError::BlockNotFound { field: Field::BlockHash, .. })
        ));
    }

    #[test]
    fn suggests_a_range_that_fits() {
        // Limit, first block, the last block of a range that fits.
        let cases = [(1, 1, None), (1, 2, Some(2)), (2, 0, Some(2)), (2, 3, None), (4, 1, Some(2))];
        for (limit, from, expected) in cases {
            let world = world(limit);
            match world.node.get_logs(&Context::unbounded(), &range(from, 3)) {
                Err(NodeError::TooManyLogs { limit: got, to_block, field: Field::ToBlock }) => {
                    assert_eq!((got, to_block), (limit, expected), "limit {limit} from {from}");
                }
                other => panic!("limit {limit} from {from}: {other:?}"),
            }
            if let Some(to) = expected {
                world.node.get_logs(&Context::unbounded(), &range(from, to)).unwrap();
            }
        }
    }

    #[test]
    fn pages_hold_all_logs() {
        for limit in 1..=6 {
            let world = world(limit);
            let mut found = Vec::new();
            let mut cursor = None;
            loop {
                let page = world.node.get_logs_page(&Context::unbounded(), &range(1, 3), cursor).unwrap();
                assert!(page.logs.len() <= limit, "limit {limit}");
                found.extend(places(&page.logs));
                let Some(next) = page.next else { break };
                // Clients send the text back.
                cursor = Some(next.to_string().parse().unwrap());
                assert_eq!(cursor, Some(next));
            }
            assert_eq!(found, [(1, 0), (1, 1), (3, 0), (3, 1), (3, 2)], "limit {limit}");
        }
    }

    #[test]
    fn a_cursor_is_bound_to_its_query_and_its_branch() {
        let world = world(3);
        let page = world.node.get_logs_page(&Context::unbounded(), &range(1, 3), None).unwrap();
        let cursor = page.next.unwrap();

        let other = LogQuery { filter: filter(&[], &[&[5]]), ..range(1, 3) };
        let refused = world.node.get_logs_page(&Context::unbounded(), &other, Some(cursor));
        assert!(matches!(refused, Err(NodeError::Invalid(_))), "{refused:?}");

        let view = world.backend.view().unwrap();
        world.backend.switch(2, vec![child(&*view, 2, 1, Vec::new(), StateChanges::default())]).unwrap();
        let refused = world.node.get_logs_page(&Context::unbounded(), &range(1, 3), Some(cursor));
        assert!(matches!(refused, Err(NodeError::BlockNotFound { field: Field::Cursor, .. })), "{refused:?}");
    }

    #[test]
    fn rejects_other_texts_as_cursors() {
        let cursor = LogCursor { position: LogPosition { block: 1, log_index: 2 }, block: word(3), query: word(4) };
        let text = cursor.to_string();
        assert_eq!(text.parse(), Ok(cursor));
        let wrong = [
            String::new(),
            "0x".into(),
            text[1..].into(),
            format!("{text}0"),
            text.replacen('0', "g", 1),
            text.replacen('0', "+", 1),
            "é".repeat(CURSOR_BYTES),
        ];
        for text in wrong {
            assert_eq!(text.parse::<LogCursor>(), Err(InvalidCursor), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_cursor_or_refused(text in prop_oneof![".{0,200}", "[0-9a-fA-F]{160}", "[0-9a-f+ é]{150,165}"]) {
            match text.parse::<LogCursor>() {
                Ok(cursor) => prop_assert_eq!(cursor.to_string(), text.to_ascii_lowercase()),
                Err(InvalidCursor) => {
                    prop_assert!(text.len() != 2 * CURSOR_BYTES || !text.bytes().all(|digit| digit.is_ascii_hexdigit()));
                }
            }
        }
    }
}
