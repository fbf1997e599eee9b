//! getLogs, whole or by pages.

use super::limits::too_many;
use super::resolve::Snapshot;
use super::{Limits, Node, NodeError, assemble};
use crate::backend::{BackendError, LogFilter};
use crate::block::LogPosition;
use crate::context::Context;
use crate::logs::{FoundLog, LogScan, scan};
use node_types::wire::{AddressFilter, ErrorDetail, GetLogsInput, GetLogsOutput, TopicFilter};
use node_types::{BlockId, BlockNumber, BlockNumberOrTag, H256, keccak256};
use rlp::RlpStream;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The EVM's highest LOG instruction writes four topics.
const MAX_TOPICS: usize = 4;

/// A part of the logs that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The logs.
    pub output: GetLogsOutput,
    /// Where the next page begins; none if this is the last.
    pub next: Option<LogCursor>,
}

/// Where a page of logs begins. It holds for one filter, and as long as the block where it points is canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogCursor {
    /// The first log of the page.
    position: LogPosition,
    /// Hash of its block, the last one scanned.
    block: H256,
    /// Digest of the request.
    request: H256,
}

impl Node {
    /// All logs that match; an error if they are more than one answer may hold.
    pub fn get_logs(&self, context: &Context, input: GetLogsInput) -> Result<GetLogsOutput, NodeError> {
        let (snapshot, range, found) = self.find_logs(context, &input, None)?;
        match found.next {
            None => Ok(answer(&snapshot, found.logs)),
            Some(next) => Err(NodeError::TooManyLogs {
                limit: self.limits.logs,
                to_block: next.block.checked_sub(1).filter(|last| range.contains(last)),
                location: if input.block_hash.is_none() { "body.ToBlock" } else { "body.BlockHash" },
            }),
        }
    }

    /// The first logs that match, or those from `cursor` on, as many as one answer may hold. A page may end inside a
    /// block. A cursor of another request is refused.
    pub fn get_logs_page(
        &self,
        context: &Context,
        input: GetLogsInput,
        cursor: Option<LogCursor>,
    ) -> Result<LogPage, NodeError> {
        let (snapshot, _, found) = self.find_logs(context, &input, cursor)?;
        let next = match found.next {
            None => None,
            Some(position) => Some(LogCursor {
                position,
                block: snapshot
                    .view
                    .canonical_hash(position.block)?
                    .ok_or(BackendError::UnknownBlock(position.block))?,
                request: digest(&input),
            }),
        };
        Ok(LogPage { output: answer(&snapshot, found.logs), next })
    }

    fn find_logs(
        &self,
        context: &Context,
        input: &GetLogsInput,
        cursor: Option<LogCursor>,
    ) -> Result<(Snapshot, RangeInclusive<BlockNumber>, LogScan), NodeError> {
        let mut faults = Vec::new();
        let filter = log_filter(&input.address, &input.topics, &self.limits, "body", &mut faults);
        let with_pending = [input.from_block, input.to_block].contains(&Some(BlockNumberOrTag::Pending));
        let argument = if with_pending { BlockId::pending() } else { BlockId::latest() };
        let snapshot = self.snapshot_for(context, argument)?;
        let range = block_range(&snapshot, input, &mut faults)?;
        if let Some(cursor) = cursor
            && cursor.request != digest(input)
        {
            faults.push(ErrorDetail::new("query.cursor", "the cursor belongs to another request"));
        }
        if !faults.is_empty() {
            return Err(NodeError::Invalid(faults));
        }
        check_span(&range, self.limits.block_range, if input.to_block.is_some() { "body.ToBlock" } else { "body" })?;
        let mut from = LogPosition { block: *range.start(), log_index: 0 };
        if let Some(cursor) = cursor {
            if snapshot.view.canonical_hash(cursor.position.block)? != Some(cursor.block) {
                let block = BlockId::Hash(cursor.block);
                return Err(NodeError::BlockNotFound { block, location: "query.cursor" });
            }
            from = from.max(cursor.position);
        }
        let found = scan(&*snapshot.view, context, &filter, from, *range.end(), self.limits.logs)?;
        Ok((snapshot, range, found))
    }
}

fn answer(snapshot: &Snapshot, found: Vec<FoundLog>) -> GetLogsOutput {
    let log = |found: FoundLog| {
        let pending = snapshot.is_pending(found.block.number);
        assemble::log(found, pending, false)
    };
    GetLogsOutput { logs: found.into_iter().map(log).collect() }
}

/// The blocks to look at, both ends included. Where there are faults, the range means nothing.
fn block_range(
    snapshot: &Snapshot,
    input: &GetLogsInput,
    faults: &mut Vec<ErrorDetail>,
) -> Result<RangeInclusive<BlockNumber>, NodeError> {
    if let Some(hash) = input.block_hash {
        for (location, tag) in [("body.FromBlock", input.from_block), ("body.ToBlock", input.to_block)] {
            if let Some(tag) = tag {
                faults.push(ErrorDetail::new(location, "unexpected property beside BlockHash").with_value(&tag));
            }
        }
        if !faults.is_empty() {
            return Ok(0..=0);
        }
        let number = snapshot.canonical(BlockId::Hash(hash.0), "body.BlockHash")?;
        return Ok(number..=number);
    }
    let from = snapshot.height(input.from_block.unwrap_or_default());
    let to_tag = input.to_block.unwrap_or_default();
    let to = snapshot.height(to_tag);
    if snapshot.known_height(to_tag).is_none() {
        let message = format!("beyond the head, which is block {}", snapshot.latest());
        faults.push(ErrorDetail::new("body.ToBlock", message).with_value(&to_tag));
    }
    if from > to {
        faults.push(range_fault("body", (input.from_block, from), (input.to_block, to)));
    }
    Ok(from..=to)
}

/// The fault of a range that ends before it begins, at the end of it that was sent. Ends are what was asked for and the
/// height that it means.
pub(super) fn range_fault(
    parent: &str,
    (from, first): (Option<BlockNumberOrTag>, BlockNumber),
    (to, last): (Option<BlockNumberOrTag>, BlockNumber),
) -> ErrorDetail {
    let message = format!("the range begins with block {first} and ends with block {last}, before that");
    match (from, to) {
        (None, Some(to)) => ErrorDetail::new(format!("{parent}.ToBlock"), message).with_value(&to),
        (Some(from), _) => ErrorDetail::new(format!("{parent}.FromBlock"), message).with_value(&from),
        (None, None) => ErrorDetail::new(parent, message),
    }
}

/// Refuses to look at more than `limit` blocks. `location` says where the request sets the last one.
pub(super) fn check_span(
    range: &RangeInclusive<BlockNumber>,
    limit: u64,
    location: &'static str,
) -> Result<(), NodeError> {
    let blocks = (range.end() - range.start()).saturating_add(1);
    if blocks <= limit {
        return Ok(());
    }
    Err(NodeError::TooManyBlocks { blocks, limit, to_block: range.start() + (limit - 1), location })
}

/// What addresses and topics ask for. Whatever is beyond the limits is added to the faults.
pub(super) fn log_filter(
    addresses: &AddressFilter,
    topics: &[TopicFilter],
    limits: &Limits,
    parent: &str,
    faults: &mut Vec<ErrorDetail>,
) -> LogFilter {
    let mut check = |location: String, what: &str, option: &str, got: usize, limit: usize| {
        if got > limit {
            faults.push(ErrorDetail::new(location, too_many(got, limit, what, option)));
        }
    };
    check(format!("{parent}.Address"), "addresses", "max-addresses", addresses.0.len(), limits.addresses);
    for (index, position) in topics.iter().enumerate().take(MAX_TOPICS) {
        // A query has a parameter for each position.
        let name = if parent == "query" { format!("Topic{index}") } else { format!("Topics[{index}]") };
        check(format!("{parent}.{name}"), "topics", "max-topics", position.0.len(), limits.topics);
    }
    if topics.len() > MAX_TOPICS {
        let message = format!("expected at most {MAX_TOPICS} positions, got {}", topics.len());
        faults.push(ErrorDetail::new(format!("{parent}.Topics"), message));
    }
    LogFilter { addresses: addresses.0.clone(), topics: topics.iter().map(|position| position.0.clone()).collect() }
}

/// Tells requests apart: the keccak of the RLP list of all fields.
fn digest(input: &GetLogsInput) -> H256 {
    let tag = |tag: Option<BlockNumberOrTag>| tag.map(|tag| tag.to_string()).unwrap_or_default();
    let mut stream = RlpStream::new_list(4 + input.topics.len());
    stream.append_list(&input.address.0);
    stream.append(&input.block_hash.map(|hash| hash.0).unwrap_or_default());
    stream.append(&tag(input.from_block)).append(&tag(input.to_block));
    for position in &input.topics {
        stream.append_list(&position.0);
    }
    keccak256(stream.out())
}

/// Lengths of the parts of a cursor's text: block number, log index, block hash, digest of the request; in bytes.
const CURSOR_BYTES: usize = 8 + 8 + 32 + 32;

impl fmt::Display for LogCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogPosition { block, log_index } = self.position;
        write!(f, "{block:016x}{log_index:016x}{:x}{:x}", self.block, self.request)
    }
}

/// The text is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor that this node made")]
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
            request: hash(96..160)?,
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
    use node_types::wire::Data;
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

    fn range(from: u64, to: u64) -> GetLogsInput {
        GetLogsInput { from_block: Some(from.into()), to_block: Some(to.into()), ..GetLogsInput::default() }
    }

    /// Block and index of each log.
    fn places(output: &GetLogsOutput) -> Vec<(u64, u64)> {
        output.logs.iter().map(|log| (log.block_number.unwrap().0, log.log_index.unwrap().0)).collect()
    }

    #[test]
    fn ranges_and_filters() {
        let world = world(100);
        let view = world.backend.view().unwrap();
        let of_block = |number: u64| GetLogsInput {
            block_hash: Some(Data(view.canonical_hash(number).unwrap().unwrap())),
            ..GetLogsInput::default()
        };
        let from_one = GetLogsInput { from_block: Some(1.into()), ..GetLogsInput::default() };
        let cases: Vec<(GetLogsInput, &[(u64, u64)])> = vec![
            (GetLogsInput::default(), &[(3, 0), (3, 1), (3, 2)]),
            (from_one.clone(), &[(1, 0), (1, 1), (3, 0), (3, 1), (3, 2)]),
            (range(0, 1), &[(1, 0), (1, 1)]),
            (range(2, 2), &[]),
            (of_block(1), &[(1, 0), (1, 1)]),
            (of_block(2), &[]),
            (GetLogsInput { address: AddressFilter(vec![address(2)]), ..from_one.clone() }, &[(1, 1), (3, 2)]),
            (GetLogsInput { topics: vec![TopicFilter(vec![word(5)])], ..from_one.clone() }, &[(1, 0), (3, 0), (3, 2)]),
            (GetLogsInput { topics: vec![TopicFilter::default(); 2], ..from_one }, &[]),
        ];
        for (input, expected) in cases {
            let output = world.node.get_logs(&Context::unbounded(), input.clone()).unwrap();
            assert_eq!(places(&output), expected, "{input:?}");
        }
    }

    #[test]
    fn every_fault_is_told() {
        let world = world(100);
        let hash = Some(Data(H256::zero()));
        let tag = |tag| Some(tag);
        let cases = [
            (range(2, 1), vec!["body.FromBlock"]),
            (range(0, 4), vec!["body.ToBlock"]),
            (range(6, 5), vec!["body.ToBlock", "body.FromBlock"]),
            (
                GetLogsInput { to_block: tag(BlockNumberOrTag::Number(1)), ..GetLogsInput::default() },
                vec!["body.ToBlock"],
            ),
            (
                GetLogsInput { from_block: tag(BlockNumberOrTag::Number(4)), ..GetLogsInput::default() },
                vec!["body.FromBlock"],
            ),
            (GetLogsInput { block_hash: hash, ..range(1, 2) }, vec!["body.FromBlock", "body.ToBlock"]),
            (
                GetLogsInput { block_hash: hash, to_block: tag(BlockNumberOrTag::Latest), ..GetLogsInput::default() },
                vec!["body.ToBlock"],
            ),
            (
                GetLogsInput {
                    address: AddressFilter(vec![address(1); 3]),
                    topics: vec![TopicFilter::default(), TopicFilter(vec![word(1); 3])],
                    ..range(2, 1)
                },
                vec!["body.Address", "body.Topics[1]", "body.FromBlock"],
            ),
            (GetLogsInput { topics: vec![TopicFilter::default(); 5], ..range(1, 2) }, vec!["body.Topics"]),
        ];
        for (input, expected) in cases {
            let error = world.node.get_logs(&Context::unbounded(), input.clone()).unwrap_err();
            assert!(matches!(error, NodeError::Invalid(_)), "{input:?}: {error:?}");
            let locations: Vec<_> = error.details().into_iter().map(|detail| detail.location).collect();
            assert_eq!(locations, expected, "{input:?}");
        }
    }

    #[test]
    fn the_value_of_a_fault_was_sent() {
        let world = world(100);
        let bounds = |from_block, to_block| GetLogsInput { from_block, to_block, ..GetLogsInput::default() };
        let cases = [
            (bounds(None, Some(BlockNumberOrTag::Number(1))), "\"1\""),
            (bounds(Some(BlockNumberOrTag::Pending), None), "\"pending\""),
            (bounds(Some(BlockNumberOrTag::Latest), Some(BlockNumberOrTag::Earliest)), "\"latest\""),
        ];
        for (input, expected) in cases {
            let error = world.node.get_logs(&Context::unbounded(), input.clone()).unwrap_err();
            let values: Vec<_> = error.details().into_iter().filter_map(|detail| detail.value).collect();
            let values: Vec<_> = values.iter().map(|value| value.0.get()).collect();
            assert_eq!(values, [expected], "{input:?}");
        }
    }

    #[test]
    fn an_unknown_block_hash_is_not_found() {
        let input = GetLogsInput { block_hash: Some(Data(word(1))), ..GetLogsInput::default() };
        assert!(matches!(
            world(100).node.get_logs(&Context::unbounded(), input),
            Err(NodeError::BlockNotFound { location: "body.BlockHash", .. })
        ));
    }

    #[test]
    fn an_answer_too_large_names_a_range_that_fits() {
        // Limit, first block, what would fit.
        let cases = [(1, 1, None), (1, 2, Some(2)), (2, 0, Some(2)), (2, 3, None), (4, 1, Some(2))];
        for (limit, from, expected) in cases {
            let world = world(limit);
            match world.node.get_logs(&Context::unbounded(), range(from, 3)) {
                Err(NodeError::TooManyLogs { limit: told, to_block, location: "body.ToBlock" }) => {
                    assert_eq!((told, to_block), (limit, expected), "limit {limit} from {from}");
                }
                other => panic!("limit {limit} from {from}: {other:?}"),
            }
            if let Some(to) = expected {
                world.node.get_logs(&Context::unbounded(), range(from, to)).unwrap();
            }
        }
    }

    #[test]
    fn pages_lead_through_all_logs() {
        for limit in 1..=6 {
            let world = world(limit);
            let mut found = Vec::new();
            let mut cursor = None;
            loop {
                let page = world.node.get_logs_page(&Context::unbounded(), range(1, 3), cursor).unwrap();
                assert!(page.output.logs.len() <= limit, "limit {limit}");
                found.extend(places(&page.output));
                let Some(next) = page.next else { break };
                // What a client sends back is the text.
                cursor = Some(next.to_string().parse().unwrap());
                assert_eq!(cursor, Some(next));
            }
            assert_eq!(found, [(1, 0), (1, 1), (3, 0), (3, 1), (3, 2)], "limit {limit}");
        }
    }

    #[test]
    fn a_cursor_is_bound_to_its_request_and_its_branch() {
        let world = world(3);
        let page = world.node.get_logs_page(&Context::unbounded(), range(1, 3), None).unwrap();
        let cursor = page.next.unwrap();

        let other = GetLogsInput { topics: vec![TopicFilter(vec![word(5)])], ..range(1, 3) };
        let refused = world.node.get_logs_page(&Context::unbounded(), other, Some(cursor));
        assert!(matches!(refused, Err(NodeError::Invalid(_))), "{refused:?}");

        let view = world.backend.view().unwrap();
        world.backend.switch(2, vec![child(&*view, 2, 1, Vec::new(), StateChanges::default())]).unwrap();
        let refused = world.node.get_logs_page(&Context::unbounded(), range(1, 3), Some(cursor));
        assert!(matches!(refused, Err(NodeError::BlockNotFound { location: "query.cursor", .. })), "{refused:?}");
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        let cursor = LogCursor { position: LogPosition { block: 1, log_index: 2 }, block: word(3), request: word(4) };
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
