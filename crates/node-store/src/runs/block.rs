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
    pub(super) fn seek(&self, key: &[u8]) -> io::Result<Option<BlockCursor>> {
        let entry = |found: Encoded| {
            let key = [&key[..found.shared], &self.bytes[found.rest]].concat();
            BlockCursor { block: self.clone(), key, value: found.value }
        };
        Ok(self.find(key)?.map(entry))
    }

    /// Returns the value of the first entry whose key is at or above `key`, or `None` if there is none.
    pub(super) fn value_at(&self, key: &[u8]) -> io::Result<Option<&[u8]>> {
        Ok(self.find(key)?.map(|found| &self.bytes[found.value]))
    }

    /// Finds the first entry whose key is at or above `key`. It shares no more bytes with the previous entry than
    /// `key` does.
    fn find(&self, key: &[u8]) -> io::Result<Option<Encoded>> {
        let offsets = self.bytes[self.restarts..].as_chunks().0;
        let (mut low, mut high) = (0, offsets.len() - 1);
        // The first entry at `low` is before `key`, or `low` is 0; that at `high` is not.
        while high - low > 1 {
            let middle = (low + high) / 2;
            let whole = self.entry(self.offset(offsets[middle])?)?;
            if whole.shared > 0 {
                return Err(malformed());
            }
            match self.bytes[whole.rest].cmp(key) {
                Ordering::Less => low = middle,
                Ordering::Equal | Ordering::Greater => high = middle,
            }
        }
        let mut at = self.offset(offsets[low])?;
        // The number of bytes that `key` shares with the entry before `at`, which is below it.
        let mut common = 0;
        while at < self.restarts {
            let entry = self.entry(at)?;
            at = entry.value.end;
            // An entry that shares more than that with the previous one is below `key`, too.
            if entry.shared <= common {
                let (rest, wanted) = (&self.bytes[entry.rest.clone()], &key[entry.shared..]);
                let more = rest.iter().zip(wanted).take_while(|(a, b)| a == b).count();
                if rest[more..] >= wanted[more..] {
                    return Ok(Some(entry));
                }
                if entry.shared < common {
                    // Descending keys. With these, a scan of a malformed run might never end.
                    return Err(malformed());
                }
                common += more;
            }
        }
        Ok(None)
    }

    fn offset(&self, bytes: [u8; 4]) -> io::Result<usize> {
        let offset = usize::try_from(u32::from_be_bytes(bytes)).ok();
        offset.filter(|offset| *offset < self.restarts).ok_or_else(malformed)
    }

    /// Reads the entry at an offset.
    fn entry(&self, mut at: usize) -> io::Result<Encoded> {
        let bytes = &self.bytes[..self.restarts];
        let mut number = || read_varint(bytes, &mut at);
        let (shared, length, value) = (number()?, number()?, number()?);
        let end = at.checked_add(length).ok_or_else(malformed)?;
        let value = end..end.checked_add(value).ok_or_else(malformed)?;
        if value.end > bytes.len() {
            return Err(malformed());
        }
        Ok(Encoded { shared, rest: at..end, value })
    }
}

/// The places of an entry's parts.
struct Encoded {
    /// The number of bytes that its key shares with the previous key.
    shared: usize,
    /// The other bytes of its key.
    rest: Range<usize>,
    value: Range<usize>,
}

/// A position in a block.
pub(super) struct BlockCursor {
    block: Block,
    key: Vec<u8>,
    value: Range<usize>,
}

impl BlockCursor {
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.block.bytes[self.value.clone()]
    }

    /// Returns the first entry of the block whose key is at or above `key`, or `None` if there is none.
    pub(super) fn seek(&self, key: &[u8]) -> io::Result<Option<Self>> {
        self.block.seek(key)
    }

    /// Moves to the next entry. Returns whether there is one.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        if self.value.end == self.block.restarts {
            return Ok(false);
        }
        let next = self.block.entry(self.value.end)?;
        let rest = &self.block.bytes[next.rest];
        // With a descending key, a scan of a malformed run might never end.
        if self.key.get(next.shared..).is_none_or(|replaced| rest < replaced) {
            return Err(malformed());
        }
        self.key.truncate(next.shared);
        self.key.extend_from_slice(rest);
        self.value = next.value;
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
    damage("a block of rows is malformed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn descending_keys_are_malformed() {
        let block = |keys: [[u8; 2]; 2]| {
            let entries = keys.map(|[a, b]| [0, 2, 0, a, b]).concat();
            Block::new([entries, vec![0, 0, 0, 0, 0, 0, 0, 1]].concat().into()).unwrap()
        };
        let second_after_first = |keys| block(keys).seek(&keys[0]).unwrap().unwrap().advance();
        assert!(second_after_first([[1, 1], [2, 1]]).unwrap());
        assert!(second_after_first([[2, 1], [1, 1]]).is_err());
        assert!(block([[2, 1], [3, 1]]).seek(&[2, 2]).unwrap().is_some());
        assert!(block([[2, 1], [1, 1]]).seek(&[2, 2]).is_err());
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
