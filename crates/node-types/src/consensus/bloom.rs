//! The 2,048-bit bloom filter over a block's log addresses and topics (Yellow Paper, section 4.3.1).

use super::Log;
use crate::{H256, keccak256, keccak256_all};
use std::{fmt, iter};

/// A bloom filter of logs: every address and topic sets three of its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bloom(pub [u8; 256]);

impl Bloom {
    /// The empty filter.
    pub const ZERO: Self = Self([0; 256]);

    /// Adds one address or topic.
    pub fn accrue(&mut self, item: &[u8]) {
        self.accrue_hash(keccak256(item));
    }

    fn accrue_hash(&mut self, hash: H256) {
        for (byte, mask) in bits(hash) {
            self.0[byte] |= mask;
        }
    }

    /// Adds everything in `other`.
    pub fn accrue_bloom(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine |= theirs;
        }
    }
}

impl Default for Bloom {
    fn default() -> Self {
        Self::ZERO
    }
}

/// The filter of all addresses and topics of the logs.
impl<'a> FromIterator<&'a Log> for Bloom {
    fn from_iter<I: IntoIterator<Item = &'a Log>>(logs: I) -> Self {
        let items_of = |log: &'a Log| iter::once(log.address.as_bytes()).chain(log.topics.iter().map(H256::as_bytes));
        let items: Vec<&[u8]> = logs.into_iter().flat_map(items_of).collect();
        let mut bloom = Self::ZERO;
        keccak256_all(&items).into_iter().for_each(|hash| bloom.accrue_hash(hash));
        bloom
    }
}

/// The filter of everything in the filters.
impl<'a> FromIterator<&'a Self> for Bloom {
    fn from_iter<I: IntoIterator<Item = &'a Self>>(filters: I) -> Self {
        let mut bloom = Self::ZERO;
        filters.into_iter().for_each(|filter| bloom.accrue_bloom(filter));
        bloom
    }
}

impl fmt::Debug for Bloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&const_hex::encode_prefixed(self.0))
    }
}

/// Returns the byte indices and masks of the three bits that an item with this hash sets.
fn bits(hash: H256) -> impl Iterator<Item = (usize, u8)> {
    (0..3).map(move |pair| {
        let bit = usize::from(u16::from_be_bytes([hash[2 * pair], hash[2 * pair + 1]]) & 0x7ff);
        (255 - bit / 8, 1 << (bit % 8))
    })
}
