//! Paths of nibbles.

use std::fmt;

/// A path from the root: up to 64 nibbles, packed; what follows them in the bytes is zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Path {
    length: u8,
    bytes: [u8; 32],
}

impl Path {
    /// The path of the root.
    pub(crate) const ROOT: Self = Self { length: 0, bytes: [0; 32] };

    /// The path to the leaf of `key`.
    pub(crate) fn of_key(key: [u8; 32]) -> Self {
        Self { length: 64, bytes: key }
    }

    /// The first `length` nibbles of this path, which has at least as many.
    pub(crate) fn prefix(&self, length: usize) -> Self {
        let mut path = Self { length: length as u8, bytes: [0; 32] };
        let whole = length / 2;
        path.bytes[..whole].copy_from_slice(&self.bytes[..whole]);
        if length % 2 == 1 {
            path.bytes[whole] = self.bytes[whole] & 0xf0;
        }
        path
    }

    /// This path, which has less than 64 nibbles, with another behind it.
    pub(crate) fn child(mut self, nibble: u8) -> Self {
        let byte = usize::from(self.length / 2);
        self.bytes[byte] |= if self.length.is_multiple_of(2) { nibble << 4 } else { nibble };
        self.length += 1;
        self
    }

    /// The number of nibbles.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// The nibble at `index`, which is below 64.
    pub(crate) fn nibble(&self, index: usize) -> u8 {
        let byte = self.bytes[index / 2];
        if index.is_multiple_of(2) { byte >> 4 } else { byte & 0x0f }
    }

    /// How many nibbles this path and `other` have in common from the start.
    pub(crate) fn common(&self, other: &Self) -> usize {
        let shorter = self.len().min(other.len());
        let Some(byte) = self.bytes.iter().zip(&other.bytes).position(|(a, b)| a != b) else { return shorter };
        let high = usize::from(self.bytes[byte] >> 4 == other.bytes[byte] >> 4);
        shorter.min(2 * byte + high)
    }

    /// The nibbles in whole bytes.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.bytes[..self.len().div_ceil(2)]
    }

    /// The bytes that hold the nibbles from `start` on; where `start` is odd, the first also holds the one before.
    pub(crate) fn packed_from(&self, start: usize) -> &[u8] {
        &self.packed()[start / 2..]
    }

    /// The path of `length` nibbles that begins as this one and goes on with `tail`, which is what
    /// [`Self::packed_from`] gives for the length of this path. None if the tail has another length or other nibbles.
    pub(crate) fn continued(&self, length: usize, tail: &[u8]) -> Option<Self> {
        let start = self.len() / 2;
        if length < self.len() || length > 64 || start + tail.len() != length.div_ceil(2) {
            return None;
        }
        let mut path = Self { length: length as u8, bytes: self.bytes };
        path.bytes[start..start + tail.len()].copy_from_slice(tail);
        (path.prefix(self.len()) == *self && path.prefix(length) == path).then_some(path)
    }

    /// The nibbles from `start` on in compact encoding (Yellow Paper, appendix C).
    pub(crate) fn compact_from(&self, start: usize, leaf: bool, out: &mut Vec<u8>) {
        let flag = if leaf { 0x20 } else { 0 };
        let mut index = start;
        if (self.len() - start) % 2 == 1 {
            out.push(flag | 0x10 | self.nibble(start));
            index += 1;
        } else {
            out.push(flag);
        }
        while index < self.len() {
            out.push(self.nibble(index) << 4 | self.nibble(index + 1));
            index += 2;
        }
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.len()).try_for_each(|index| write!(f, "{:x}", self.nibble(index)))
    }
}
