//! The names of accounts and slots that were read. Trie nodes only have the hashes of them.

use super::{Contents, Key, Kind, Place};
use node_types::{Address, Bytes, H256, keccak256};
use std::io;
use std::sync::atomic::Ordering;

/// Returns the content that records that an account, or a slot of it, was read.
pub(crate) fn name(address: Address, slot: Option<H256>) -> (Kind, H256, Bytes) {
    let content = [address.as_bytes(), slot.as_ref().map_or(&[][..], H256::as_bytes)].concat();
    (Kind::Name, keccak256(&content), content.into())
}

impl Contents {
    /// Records that an account, or a slot of it, was read.
    pub(crate) fn add_name(&self, address: Address, slot: Option<H256>) {
        let name = name(address, slot);
        if !self.has(Kind::Name, name.1) {
            self.add(vec![name]);
        }
    }

    /// Returns whether the names of everything that was read are known, unless an earlier process could not keep one.
    pub(crate) fn has_all_names(&self) -> bool {
        !self.lacks_some.load(Ordering::Relaxed)
    }

    /// Returns the names of all accounts and slots that were read, in the order in which they were read first. What is damaged
    /// is left out: it will be read again.
    pub(crate) fn names(&self) -> impl Iterator<Item = io::Result<(Address, Option<H256>)>> + '_ {
        let index = self.index.read();
        let names = index.iter().filter(|(key, _)| key.kind() == Some(Kind::Name));
        let mut names: Vec<(Key, Place)> = names.map(|(key, place)| (*key, *place)).collect();
        drop(index);
        names.sort_unstable_by_key(|(_, place)| place.offset);
        names.into_iter().filter_map(|(key, place)| {
            let content = self.read(key, Kind::Name, place).transpose()?;
            content.map(|content| parse(&content)).transpose()
        })
    }
}

fn parse(content: &[u8]) -> Option<(Address, Option<H256>)> {
    let (address, slot) = content.split_first_chunk::<20>()?;
    Some((Address::from(*address), <[u8; 32]>::try_from(slot).ok().map(H256)))
}
