//! The log index: for each term, the ids of the logs that have it, in chunks of ascending ids.
//!
//! A chunk is a row whose key ends with its last id. The value contains the difference between each id and the
//! previous one, starting from the last. A block writes one chunk per term; in runs, chunks of the same term are
//! joined.

use crate::codec::{Malformed, Reader, put_varint};
use crate::error::StoreError;
use crate::keys::{Key, LogId, MAX_LOGS, Term};
use crate::rows::{Rows, Value};
use node_core::backend::{BackendError, LogFilter};
use node_core::context::Context;
use node_types::consensus::Receipt;
use node_types::{BlockNumber, H256};
use quick_cache::DefaultHashBuilder;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

/// Maximum number of ids in a chunk of a run.
pub(crate) const CHUNK: usize = 256;

/// Maximum number of pairs of address and first topic that are looked up one by one.
const MAX_PAIRS: usize = 64;

/// Number of steps of a search after which the context is checked again.
const CHECKED: usize = 64;

/// Terms with the logs that have them, ascending.
pub(crate) type Terms = HashMap<Key, Vec<LogId>, DefaultHashBuilder>;

/// Returns the terms of a block's logs, each with the logs that have it, or `None` if the block has more logs than
/// there are ids.
pub(crate) fn terms_of(block: BlockNumber, receipts: &[Receipt]) -> Option<Terms> {
    let mut terms = Terms::default();
    let first = LogId::first_of(block);
    for (index, log) in (0..).zip(receipts.iter().flat_map(|receipt| &receipt.logs)) {
        if index >= MAX_LOGS {
            return None;
        }
        let mut add = |term| terms.entry(Key::of_term(term)).or_default().push(LogId(first.0 + index));
        add(Term::Any);
        add(Term::Address(log.address));
        if let Some(topic) = log.topics.first() {
            add(Term::AddressTopic(log.address, *topic));
        }
        (0..4).zip(&log.topics).for_each(|(position, topic)| add(Term::Topic(position, *topic)));
    }
    Some(terms)
}

/// Encodes ascending `ids` as a chunk. The last id is not included, because it is in the key.
pub(crate) fn encode(ids: &[LogId]) -> Vec<u8> {
    let mut out = Vec::with_capacity(ids.len() * 4);
    ids.windows(2).rev().for_each(|pair| put_varint(&mut out, pair[1].0 - pair[0].0));
    out
}

/// Decodes the chunk whose last id is `last`.
pub(crate) fn decode(last: u64, value: &[u8]) -> Result<Vec<LogId>, Malformed> {
    let mut reader = Reader::new(value, "a row of postings");
    let mut ids = vec![LogId(last)];
    let mut first = last;
    while !reader.is_empty() {
        first = first.checked_sub(reader.varint()?).ok_or(reader.malformed())?;
        ids.push(LogId(first));
    }
    ids.reverse();
    Ok(ids)
}

/// Joins ascending chunks of one term into larger ones.
pub(crate) fn join(chunks: &[(u64, Value)]) -> Result<Vec<(LogId, Vec<u8>)>, Malformed> {
    let mut ids = Vec::new();
    for (last, value) in chunks {
        ids.extend(decode(*last, value)?);
    }
    Ok(ids.chunks(CHUNK).filter_map(|ids| Some((*ids.last()?, encode(ids)))).collect())
}

/// Returns the logs from `from` up to and including block `to` that may match `filter`, ascending, at most `limit`.
///
/// Each part of the filter corresponds to an ordered list of logs. The lists are searched in turn, each from the
/// position that the previous search reached, so the number of reads is determined by the shortest list.
pub(crate) fn candidates(
    rows: &Rows,
    context: &Context,
    filter: &LogFilter,
    from: LogId,
    to: BlockNumber,
    limit: usize,
) -> Result<Vec<LogId>, BackendError> {
    // A log has at most four topics.
    if filter.topics.len() > 4 {
        return Ok(Vec::new());
    }
    let mut parts = Vec::new();
    for terms in parts_of(filter) {
        context.check()?;
        parts.push(Union::open(rows, context, &terms, from)?);
    }
    let mut found = Vec::new();
    let mut wanted = from;
    'next: for step in 0usize.. {
        if found.len() == limit {
            break;
        }
        if step.is_multiple_of(CHECKED) {
            context.check()?;
        }
        let first = wanted;
        for part in &mut parts {
            match part.seek(rows, wanted)? {
                Some(id) if id.position().block <= to => wanted = id,
                _ => break 'next,
            }
        }
        // Either all parts contain the log that the first one reached, or one of them is ahead of the others.
        if wanted == first || parts.len() == 1 || parts.iter().all(|part| part.current() == Some(wanted)) {
            found.push(wanted);
            wanted = LogId(wanted.0 + 1);
        }
    }
    Ok(found)
}

/// Returns the parts of a filter as lists of terms. A matching log has at least one term of every part.
fn parts_of(filter: &LogFilter) -> Vec<Vec<Term>> {
    let mut parts = Vec::new();
    let addresses: BTreeSet<_> = filter.addresses.iter().copied().collect();
    let words = |words: &[H256]| words.iter().copied().collect::<BTreeSet<_>>();
    let first = filter.topics.first().map(|topics| words(topics)).unwrap_or_default();
    let joined = !addresses.is_empty() && !first.is_empty() && addresses.len() * first.len() <= MAX_PAIRS;
    if joined {
        let pairs = addresses.iter().flat_map(|address| first.iter().map(|topic| Term::AddressTopic(*address, *topic)));
        parts.push(pairs.collect());
    } else if !addresses.is_empty() {
        parts.push(addresses.into_iter().map(Term::Address).collect());
    }
    for (position, topics) in (0..4u8).zip(&filter.topics).skip(usize::from(joined)) {
        if !topics.is_empty() {
            parts.push(words(topics).into_iter().map(|topic| Term::Topic(position, topic)).collect());
        }
    }
    if parts.is_empty() {
        parts.push(vec![Term::Any]);
    }
    parts
}

/// An ordered list of the logs that have any of several terms.
struct Union {
    cursors: Vec<Cursor>,
    /// Cursors that have not reached their end. The one at the first log is on top.
    heap: BinaryHeap<Reverse<(LogId, usize)>>,
}

impl Union {
    fn open(rows: &Rows, context: &Context, terms: &[Term], from: LogId) -> Result<Self, BackendError> {
        let mut union = Self { cursors: Vec::with_capacity(terms.len()), heap: BinaryHeap::new() };
        for term in terms {
            context.check()?;
            let mut cursor = Cursor::new(*term);
            if let Some(id) = cursor.seek(rows, from)? {
                union.heap.push(Reverse((id, union.cursors.len())));
            }
            union.cursors.push(cursor);
        }
        Ok(union)
    }

    fn current(&self) -> Option<LogId> {
        self.heap.peek().map(|Reverse((id, _))| *id)
    }

    /// Moves to the first log that is not before `wanted`.
    fn seek(&mut self, rows: &Rows, wanted: LogId) -> Result<Option<LogId>, StoreError> {
        while let Some(Reverse((id, index))) = self.heap.peek().copied() {
            if id >= wanted {
                return Ok(Some(id));
            }
            self.heap.pop();
            if let Some(id) = self.cursors[index].seek(rows, wanted)? {
                self.heap.push(Reverse((id, index)));
            }
        }
        Ok(None)
    }
}

/// A position in the list of logs with one term.
struct Cursor {
    key: Key,
    /// The chunk that was read last; `index` is the position in it.
    chunk: Vec<LogId>,
    index: usize,
    /// Whether no run has later chunks.
    runs_ended: bool,
}

impl Cursor {
    fn new(term: Term) -> Self {
        Self { key: Key::of_term(term), chunk: Vec::new(), index: 0, runs_ended: false }
    }

    fn seek(&mut self, rows: &Rows, wanted: LogId) -> Result<Option<LogId>, StoreError> {
        self.index += self.chunk[self.index..].partition_point(|id| *id < wanted);
        if self.index == self.chunk.len() {
            self.chunk = self.next_chunk(rows, wanted)?;
            self.index = self.chunk.partition_point(|id| *id < wanted);
        }
        Ok(self.chunk.get(self.index).copied())
    }

    /// Returns the first chunk that does not end before `wanted`, or an empty one if there is none.
    fn next_chunk(&mut self, rows: &Rows, wanted: LogId) -> Result<Vec<LogId>, StoreError> {
        if !self.runs_ended {
            if let Some(ids) = rows.tables.chunk_from(&self.key, wanted, rows.limit)? {
                return Ok(ids);
            }
            self.runs_ended = true;
        }
        for generation in [&rows.old, &rows.young] {
            if let Some((last, value)) = generation.oldest_from(&self.key, wanted.0) {
                return Ok(decode(last, &value)?);
            }
        }
        Ok(Vec::new())
    }
}
