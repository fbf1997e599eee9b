//! Checking everything that is kept.

use super::{Contents, Key, Kind, Place, is_right, read_frame};
use crate::history::{check_block, check_receipts};
use node_types::consensus::Header;
use node_types::{Bytes, H256};
use std::io;

/// What a check found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Number of entries that are as they were when they were added.
    pub entries: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Number of entries that are damaged. They are fetched again when they are needed.
    pub damaged: u64,
}

impl Contents {
    /// Reads everything, and compares checksums, the hashes of trie nodes, code and headers, and the roots of blocks and
    /// receipts. What is damaged is not known any more.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn check(&self) -> io::Result<Checked> {
        let mut places: Vec<(Key, Place)> = self.index.read().iter().map(|(key, place)| (*key, *place)).collect();
        places.sort_unstable_by_key(|(_, place)| place.offset);
        let mut checked = Checked::default();
        for (key, place) in places {
            let Some(kind) = key.kind() else { continue };
            let frame = read_frame(&*self.file, self.salt, kind, place.offset, place.length)?;
            let is_whole = match &frame {
                Some((found, content)) => Key::of(kind, *found) == key && self.is_proven(kind, *found, content)?,
                None => false,
            };
            if is_whole {
                checked.entries += 1;
                checked.bytes += u64::from(place.length);
            } else {
                checked.damaged += 1;
                self.cache.remove(&key);
                self.forget(key, place);
            }
        }
        Ok(checked)
    }

    /// Returns whether a content follows from its key. Claims do not.
    fn is_proven(&self, kind: Kind, key: H256, content: &[u8]) -> io::Result<bool> {
        Ok(match kind {
            Kind::Block => check_block(key, content),
            Kind::Receipts => match self.get(Kind::Header, key)?.as_deref().map(rlp::decode::<Header>) {
                Some(Ok(header)) => check_receipts(&header, content),
                // Nothing contradicts the checksum.
                _ => true,
            },
            _ => is_right(kind, key, &Bytes::from(content)),
        })
    }
}
