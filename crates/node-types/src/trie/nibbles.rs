//! Paths of nibbles, and their compact encoding (Yellow Paper, appendix C).

use crate::H256;
use std::fmt;
use std::ops::Deref;

/// A path from the root of a trie: up to 64 nibbles, packed two to a byte, the higher half first.
///
/// Paths have no order; to order paths of equal length, compare the results of [`Self::packed`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NibblePath {
    length: u8,
    /// Zero after the last nibble; therefore equal paths have equal bytes.
    bytes: [u8; 32],
}

impl NibblePath {
    /// The maximum number of nibbles of a path, which is that of a 32-byte key.
    pub const MAX_LEN: usize = 64;

    /// The empty path, that of the root.
    pub const ROOT: Self = Self { length: 0, bytes: [0; 32] };

    /// Returns the path of `key`.
    ///
    /// # Panics
    /// If `key` is longer than 32 bytes. Keys of Ethereum's tries are hashes or RLP-encoded indices.
    pub fn of_key(key: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes[..key.len()].copy_from_slice(key);
        Self { length: 2 * key.len() as u8, bytes }
    }

    /// Returns the first `length` nibbles of this path, which must have at least that many.
    pub fn prefix(&self, length: usize) -> Self {
        let mut path = Self { length: length as u8, bytes: [0; 32] };
        let whole = length / 2;
        path.bytes[..whole].copy_from_slice(&self.bytes[..whole]);
        if length % 2 == 1 {
            path.bytes[whole] = self.bytes[whole] & 0xf0;
        }
        path
    }

    /// Returns this path, which must have fewer than 64 nibbles, followed by `nibble`.
    pub fn child(mut self, nibble: u8) -> Self {
        let byte = usize::from(self.length / 2);
        self.bytes[byte] |= if self.length.is_multiple_of(2) { nibble << 4 } else { nibble };
        self.length += 1;
        self
    }

    /// Returns the number of nibbles.
    pub fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// Returns whether this is the path of the root.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the nibble at `index`, which must be below 64.
    pub fn nibble(&self, index: usize) -> u8 {
        let byte = self.bytes[index / 2];
        if index.is_multiple_of(2) { byte >> 4 } else { byte & 0x0f }
    }

    /// Returns the number of nibbles in the longest common prefix of this path and `other`.
    pub fn common(&self, other: &Self) -> usize {
        let shorter = self.len().min(other.len());
        let words = self.bytes.as_chunks::<8>().0.iter().zip(other.bytes.as_chunks::<8>().0);
        let differences = words.map(|(a, b)| u64::from_be_bytes(*a) ^ u64::from_be_bytes(*b));
        match differences.enumerate().find(|(_, difference)| *difference != 0) {
            Some((index, difference)) => shorter.min(16 * index + difference.leading_zeros() as usize / 4),
            None => shorter,
        }
    }

    /// Returns whether this path begins with all of `prefix`.
    pub fn starts_with(&self, prefix: &Self) -> bool {
        self.common(prefix) == prefix.len()
    }

    /// Returns the nibbles packed into bytes, two to a byte. If their number is odd, the last half byte is zero.
    pub fn packed(&self) -> &[u8] {
        &self.bytes[..self.len().div_ceil(2)]
    }

    /// Returns the bytes of [`Self::packed`] that contain the nibbles from `start` on. If `start` is odd, the first
    /// byte also contains the nibble before it.
    pub fn packed_from(&self, start: usize) -> &[u8] {
        &self.packed()[start / 2..]
    }

    /// Returns the path of `length` nibbles that consists of this path and the nibbles in `tail`, which has the form
    /// that [`Self::packed_from`] returns for a start at the length of this path. Returns `None` if `tail` has the
    /// wrong length or contradicts this path.
    pub fn join_packed(&self, length: usize, tail: &[u8]) -> Option<Self> {
        let start = self.len() / 2;
        if length < self.len() || length > Self::MAX_LEN || start + tail.len() != length.div_ceil(2) {
            return None;
        }
        let mut path = Self { length: length as u8, bytes: self.bytes };
        path.bytes[start..start + tail.len()].copy_from_slice(tail);
        (path.prefix(self.len()) == *self && path.prefix(length) == path).then_some(path)
    }

    /// Returns the compact encoding of the nibbles from `start` on: a nibble with the kind of node (`leaf`, or else
    /// an extension) and the parity of the length, padding to a whole byte, and the nibbles.
    pub fn compact_from(&self, start: usize, leaf: bool) -> CompactPath {
        let flag = if leaf { 0x20 } else { 0 };
        let odd = (self.len() - start) % 2;
        let mut bytes = [0; CompactPath::MAX_LEN];
        bytes[0] = if odd == 1 { flag | 0x10 | self.nibble(start) } else { flag };
        let start = start + odd;
        let length = 1 + (self.len() - start) / 2;
        if start.is_multiple_of(2) {
            // As for every leaf of a secure trie.
            bytes[1..length].copy_from_slice(&self.bytes[start / 2..self.len() / 2]);
        } else {
            for (byte, index) in bytes[1..length].iter_mut().zip((start..).step_by(2)) {
                *byte = self.nibble(index) << 4 | self.nibble(index + 1);
            }
        }
        CompactPath { length: length as u8, bytes }
    }

    /// Returns this path followed by the nibbles of a compact encoding, and whether the encoding is that of a leaf.
    /// Returns `None` if `compact` is not a valid encoding, or if the path would have more than 64 nibbles.
    pub fn join_compact(&self, compact: &[u8]) -> Option<(Self, bool)> {
        let (first, pairs) = compact.split_first()?;
        let odd = match first & 0xd0 {
            0 if first & 0x0f == 0 => false,
            0x10 => true,
            _ => return None,
        };
        if self.len() + usize::from(odd) + 2 * pairs.len() > Self::MAX_LEN {
            return None;
        }
        let start = if odd { self.child(first & 0x0f) } else { *self };
        let path = pairs.iter().fold(start, |path, pair| path.child(pair >> 4).child(pair & 0x0f));
        Some((path, first & 0x20 != 0))
    }
}

/// The compact encoding of a path or of its end.
#[derive(Clone, Copy, Debug)]
pub struct CompactPath {
    length: u8,
    bytes: [u8; Self::MAX_LEN],
}

impl CompactPath {
    /// The maximum number of bytes, that of a path of 64 nibbles.
    pub const MAX_LEN: usize = 1 + NibblePath::MAX_LEN / 2;
}

impl Deref for CompactPath {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl From<H256> for NibblePath {
    fn from(key: H256) -> Self {
        Self { length: Self::MAX_LEN as u8, bytes: key.0 }
    }
}

impl fmt::Debug for NibblePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.len()).try_for_each(|index| write!(f, "{:x}", self.nibble(index)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(nibbles: &[u8]) -> NibblePath {
        nibbles.iter().fold(NibblePath::ROOT, |path, nibble| path.child(*nibble))
    }

    #[test]
    fn compact_encoding_round_trips() {
        let cases: [(&[u8], bool, &[u8]); 6] = [
            (&[], false, &[0x00]),
            (&[], true, &[0x20]),
            (&[1, 2, 3, 4, 5], false, &[0x11, 0x23, 0x45]),
            (&[0, 1, 2, 3, 4, 5], false, &[0x00, 0x01, 0x23, 0x45]),
            (&[0, 15, 1, 12, 11, 8], true, &[0x20, 0x0f, 0x1c, 0xb8]),
            (&[15, 1, 12, 11, 8], true, &[0x3f, 0x1c, 0xb8]),
        ];
        for (nibbles, leaf, compact) in cases {
            for start in [&[][..], &[7], &[7, 8]] {
                let whole = path(&[start, nibbles].concat());
                assert_eq!(*whole.compact_from(start.len(), leaf), *compact, "{whole:?} from {}", start.len());
                assert_eq!(path(start).join_compact(compact), Some((whole, leaf)), "{start:x?} and {compact:x?}");
            }
        }
    }

    #[test]
    fn rejects_invalid_compact_encodings() {
        for compact in [&[][..], &[0x01], &[0x2f, 0x12], &[0x40], &[0x80, 0x12], &[0xff]] {
            assert_eq!(NibblePath::ROOT.join_compact(compact), None, "{compact:x?}");
        }
        assert_eq!(NibblePath::of_key(&[0; 32]).join_compact(&[0x31]), None, "65 nibbles");
    }
}
