//! Blocks of a run: sorted entries, each with a key and a value.
//!
//! An entry has the number of bytes that its key shares with the previous key, the number of its other bytes, the
//! length of its value (varints), these other bytes, and the value. Every sixteenth entry has its whole key. The
//! block ends with the offsets of those entries and their number, which are used to find a key by binary search.

use crate::codec::put_varint;
use crate::files::damage;
use std::cmp::Ordering;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Every entry whose index is a multiple of this stores its whole key.
const RESTART: usize = 16;

/// Collects ascending entries.
#[derive(Default)]
pub(super) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    last: Vec<u8>,
    entries: usize,
}

impl BlockBuilder {
    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Returns whether there are at least two entries.
    pub(super) fn has_many(&self) -> bool {
        self.entries > 1
    }

    /// Returns the length of the block in bytes, without the offsets.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the last key.
    pub(super) fn last(&self) -> &[u8] {
        &self.last
    }

    /// Adds an entry. Its key must be above all others.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        debug_assert!(self.is_empty() || *self.last < *key, "{:02x?} after {:02x?}", key, self.last);
        let shared = if self.entries.is_multiple_of(RESTART) {
            self.restarts.push(self.bytes.len() as u32);
            0
        } else {
            key.iter().zip(&self.last).take_while(|(a, b)| a == b).count()
        };
        for number in [shared, key.len() - shared, value.len()] {
            put_varint(&mut self.bytes, number as u64);
        }
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        self.entries += 1;
    }

    /// Returns the encoded block, and starts an empty one, for which [`Self::last`] still returns the same key.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        for number in self.restarts.iter().copied().chain([self.restarts.len() as u32]) {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        self.restarts.clear();
        self.entries = 0;
        bytes
    }
}

/// An encoded block.
#[derive(Clone)]
pub(super) struct Block {
    bytes: Arc<[u8]>,
    /// Offset at which the offsets of the entries with whole keys start.
    restarts: usize,
}

impl Block {
    pub(super) fn new(bytes: Arc<[u8]>) -> io::Result<Self> {
        let start = |(rest, count): (&[u8], &[u8; 4])| {
            let count = usize::try_from(u32::from_be_bytes(*count)).ok()?;
            rest.len().checked_sub(count.checked_mul(4)?).filter(|_| count > 0)
        };
        let restarts = bytes.split_last_chunk().and_then(start).ok_or_else(malformed)?;
        Ok(Self { bytes, restarts })
    }

    /// Returns the first entry whose key is at or above `key`, or `None` if there is none.
    pub(super) fn seek(&self, key: &[u8]) -> io::Result<Option<Entry>> {
        let offsets = self.bytes[self.restarts..].as_chunks().0;
        let (mut low, mut high) = (0, offsets.len() - 1);
        // The first entry at `low` is before `key`, or `low` is 0; that at `high` is not.
        while high - low > 1 {
            let middle = (low + high) / 2;
            match self.whole_key(offsets[middle])?.cmp(key) {
                Ordering::Less => low = middle,
                Ordering::Equal | Ordering::Greater => high = middle,
            }
        }
        let mut entry = Entry { block: self.clone(), next: self.offset(offsets[low])?, key: Vec::new(), value: 0..0 };
        loop {
            if !entry.advance()? {
                return Ok(None);
            }
            if *entry.key >= *key {
                return Ok(Some(entry));
            }
        }
    }

    fn offset(&self, bytes: [u8; 4]) -> io::Result<usize> {
        let offset = usize::try_from(u32::from_be_bytes(bytes)).ok();
        offset.filter(|offset| *offset < self.restarts).ok_or_else(malformed)
    }

    fn whole_key(&self, offset: [u8; 4]) -> io::Result<&[u8]> {
        let mut at = self.offset(offset)?;
        let bytes = &self.bytes[..self.restarts];
        let mut number = || read_varint(bytes, &mut at);
        let (shared, length, _value) = (number()?, number()?, number()?);
        let key = at.checked_add(length).and_then(|end| bytes.get(at..end));
        key.filter(|_| shared == 0).ok_or_else(malformed)
    }
}

/// A position in a block.
pub(super) struct Entry {
    block: Block,
    next: usize,
    key: Vec<u8>,
    value: Range<usize>,
}

impl Entry {
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.block.bytes[self.value.clone()]
    }

    /// Moves to the next entry. Returns whether there is one.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        let bytes = &self.block.bytes[..self.block.restarts];
        if self.next == bytes.len() {
            return Ok(false);
        }
        let mut at = self.next;
        let mut number = || read_varint(bytes, &mut at);
        let (shared, length, value) = (number()?, number()?, number()?);
        let end = at.checked_add(length).ok_or_else(malformed)?;
        let value = end..end.checked_add(value).ok_or_else(malformed)?;
        let rest = bytes.get(at..end).filter(|_| value.end <= bytes.len()).ok_or_else(malformed)?;
        // With a descending key, a scan of a malformed run might never end.
        if self.key.get(shared..).is_none_or(|replaced| rest < replaced) {
            return Err(malformed());
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(rest);
        self.next = value.end;
        self.value = value;
        Ok(true)
    }
}

/// Reads a varint at `at`, and moves `at` past it.
fn read_varint(bytes: &[u8], at: &mut usize) -> io::Result<usize> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(*at).ok_or_else(malformed)?;
        *at += 1;
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(malformed())
}

#[cold]
fn malformed() -> io::Error {
    damage("a block of rows is malformed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn descending_keys_are_malformed() {
        let block = |keys: [u8; 2]| {
            let entries = keys.map(|key| [0, 1, 0, key]).concat();
            Block::new([entries, vec![0, 0, 0, 0, 0, 0, 0, 1]].concat().into()).unwrap()
        };
        assert!(block([1, 2]).seek(&[2]).unwrap().is_some());
        assert!(block([2, 1]).seek(&[3]).is_err());
    }

    proptest! {
        #[test]
        fn finds_what_a_map_finds(
            rows in proptest::collection::btree_map(proptest::collection::vec(0u8..4, 0..6), any::<Vec<u8>>(), 1..200),
            wanted in proptest::collection::vec(proptest::collection::vec(0u8..5, 0..6), 20),
        ) {
            let rows: BTreeMap<Vec<u8>, Vec<u8>> = rows;
            let mut builder = BlockBuilder::default();
            rows.iter().for_each(|(key, value)| builder.add(key, value));
            let block = Block::new(builder.finish().into()).unwrap();
            for from in wanted.iter().chain(rows.keys()) {
                let mut expected = rows.range(from.clone()..);
                let mut entry = block.seek(from).unwrap();
                while let Some(found) = &mut entry {
                    prop_assert_eq!(expected.next(), Some((&found.key().to_vec(), &found.value().to_vec())));
                    if !found.advance().unwrap() {
                        entry = None;
                    }
                }
                prop_assert_eq!(expected.next(), None);
            }
        }

        #[test]
        fn never_panics_on_other_bytes(bytes: Vec<u8>, key: Vec<u8>) {
            if let Ok(block) = Block::new(bytes.into()) && let Ok(Some(mut entry)) = block.seek(&key) {
                while entry.advance().unwrap_or(false) {}
            }
        }
    }
}
