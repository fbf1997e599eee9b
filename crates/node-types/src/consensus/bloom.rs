//! The 2,048-bit bloom filter over a block's log addresses and topics (Yellow Paper, section 4.3.1).

use super::Log;
use crate::keccak256;
use std::fmt;

/// A bloom filter of logs: every address and topic sets three of its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bloom(pub [u8; 256]);

impl Bloom {
    /// The empty filter.
    pub const ZERO: Self = Self([0; 256]);

    /// Adds one address or topic.
    pub fn accrue(&mut self, item: &[u8]) {
        for (byte, mask) in bits(item) {
            self.0[byte] |= mask;
        }
    }

    /// Adds every address and topic of `log`.
    pub fn accrue_log(&mut self, log: &Log) {
        self.accrue(log.address.as_bytes());
        for topic in &log.topics {
            self.accrue(topic.as_bytes());
        }
    }

    /// Adds everything in `other`.
    pub fn accrue_bloom(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine |= theirs;
        }
    }

    /// Returns whether `item` may have been added. Never returns `false` for an item that was added.
    pub fn may_contain(&self, item: &[u8]) -> bool {
        bits(item).all(|(byte, mask)| self.0[byte] & mask != 0)
    }
}

impl Default for Bloom {
    fn default() -> Self {
        Self::ZERO
    }
}

impl<'a> FromIterator<&'a Log> for Bloom {
    fn from_iter<I: IntoIterator<Item = &'a Log>>(logs: I) -> Self {
        let mut bloom = Self::ZERO;
        logs.into_iter().for_each(|log| bloom.accrue_log(log));
        bloom
    }
}

impl fmt::Debug for Bloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&const_hex::encode_prefixed(self.0))
    }
}

/// Returns the byte indices and masks of the three bits that `item` sets.
fn bits(item: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let hash = keccak256(item);
    (0..3).map(move |pair| {
        let bit = usize::from(u16::from_be_bytes([hash[2 * pair], hash[2 * pair + 1]]) & 0x7ff);
        (255 - bit / 8, 1 << (bit % 8))
    })
}
