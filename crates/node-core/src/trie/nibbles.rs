//! Paths of half bytes, and their compact encoding (Yellow Paper, appendix C).

use std::ops::Deref;

/// A path: a sequence of values from 0 to 15.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nibbles(Box<[u8]>);

impl Nibbles {
    /// The halves of each byte of `key`, the higher one first.
    pub(super) fn unpack(key: &[u8]) -> Self {
        Self(key.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]).collect())
    }

    /// `self` behind `prefix`.
    pub(super) fn behind(&self, prefix: &[u8]) -> Self {
        Self([prefix, &self.0].concat().into())
    }

    /// The compact encoding: a nibble that holds the kind of node and whether the length is odd, then the path, filled
    /// up at the front to whole bytes.
    pub(super) fn compact(&self, leaf: bool) -> Vec<u8> {
        let flag = if leaf { 0x20 } else { 0 };
        let (first, pairs) = match self.0.len() % 2 {
            0 => (flag, &self.0[..]),
            _ => (flag | 0x10 | self.0[0], &self.0[1..]),
        };
        let mut compact = Vec::with_capacity(1 + pairs.len() / 2);
        compact.push(first);
        compact.extend(pairs.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]));
        compact
    }

    /// The path and whether it is that of a leaf; none if `compact` is not what [`Self::compact`] gives.
    pub(super) fn from_compact(compact: &[u8]) -> Option<(Self, bool)> {
        let (first, pairs) = compact.split_first()?;
        let pairs = Self::unpack(pairs);
        let path = match first & 0xd0 {
            0 if first & 0x0f == 0 => pairs,
            0x10 => pairs.behind(&[first & 0x0f]),
            _ => return None,
        };
        Some((path, first & 0x20 != 0))
    }
}

impl Deref for Nibbles {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Nibbles {
    fn from(nibbles: &[u8]) -> Self {
        debug_assert!(nibbles.iter().all(|nibble| *nibble < 16));
        Self(nibbles.into())
    }
}

/// How many nibbles `a` and `b` have in common from the start.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (path, leaf, compact) in cases {
            let path = Nibbles::from(path);
            assert_eq!(path.compact(leaf), compact, "{path:?}");
            assert_eq!(Nibbles::from_compact(compact), Some((path, leaf)), "{compact:x?}");
        }
    }

    #[test]
    fn other_encodings_are_refused() {
        for compact in [&[][..], &[0x01], &[0x2f, 0x12], &[0x40], &[0x80, 0x12], &[0xff]] {
            assert_eq!(Nibbles::from_compact(compact), None, "{compact:x?}");
        }
    }
}
