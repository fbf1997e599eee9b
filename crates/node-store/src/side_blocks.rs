//! Blocks that are not canonical.

use crate::block_bytes::{BlockBytes, decode_block};
use crate::codec::{Malformed, Reader};
use crate::error::StoreError;
use crate::keys::{Key, Table};
use crate::rows::{DELETED, PRESENT, Tables};
use node_core::block::{BlockRef, ExecutedBlock};
use node_types::{BlockNumber, H256};
use rpds::HashTrieMapSync;

/// All side blocks. Only those that are not in runs are in memory. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SideBlocks {
    recent: HashTrieMapSync<H256, ExecutedBlock>,
    in_runs: HashTrieMapSync<H256, BlockNumber>,
    /// The numbers of the side blocks in runs that are canonical again, or in `recent`.
    obsolete: HashTrieMapSync<H256, BlockNumber>,
}

impl SideBlocks {
    /// Finds the side blocks in runs.
    pub(crate) fn read(tables: &Tables) -> Result<Self, StoreError> {
        let mut in_runs = HashTrieMapSync::new_sync();
        let mut scan = tables.scan(Table::SideBlocks)?;
        while let Some((key, value)) = scan.next()? {
            if value.first() == Some(&PRESENT) {
                let BlockRef { number, hash } = reference(key).ok_or(Malformed("the key of a side block"))?;
                in_runs.insert_mut(hash, number);
            }
        }
        Ok(Self { recent: HashTrieMapSync::new_sync(), in_runs, obsolete: HashTrieMapSync::new_sync() })
    }

    /// Returns a side block, or `None` if there is none with this hash. `tables` must be those of the same version of
    /// the chain.
    pub(crate) fn get(&self, hash: H256, tables: &Tables) -> Result<Option<ExecutedBlock>, StoreError> {
        if let Some(block) = self.recent.get(&hash) {
            return Ok(Some(block.clone()));
        }
        let Some(number) = self.in_runs.get(&hash) else { return Ok(None) };
        let row = tables.get(&Key::of_side_block(BlockRef { number: *number, hash }))?;
        match row.as_deref().and_then(<[u8]>::split_first) {
            Some((&PRESENT, value)) => Ok(Some(decode_block(&mut Reader::new(value, "a side block"))?)),
            _ => Err(StoreError::Missing { table: Table::SideBlocks.name() }),
        }
    }

    pub(crate) fn insert(&mut self, block: ExecutedBlock) {
        let hash = block.header.hash;
        if !self.in_runs.contains_key(&hash) {
            self.recent.insert_mut(hash, block);
        }
    }

    pub(crate) fn remove(&mut self, block: BlockRef) {
        self.recent.remove_mut(&block.hash);
        if self.in_runs.remove_mut(&block.hash) {
            self.obsolete.insert_mut(block.hash, block.number);
        }
    }

    /// Returns all side blocks, in no particular order.
    pub(crate) fn all(&self) -> Vec<BlockRef> {
        let recent = self.recent.values().map(|block| block.header.block_ref());
        recent.chain(self.in_runs.iter().map(|(hash, number)| BlockRef { number: *number, hash: *hash })).collect()
    }

    /// Returns the number of side blocks that are not in runs.
    pub(crate) fn in_memory(&self) -> usize {
        self.recent.size()
    }

    /// Returns the rows that are not in runs yet: keys, and values with the byte that precedes them.
    pub(crate) fn new_rows(&self) -> impl Iterator<Item = (Key, Vec<u8>)> {
        let obsolete = self.obsolete.iter().filter(|(hash, _)| !self.recent.contains_key(hash));
        let deleted = obsolete.map(|(hash, number)| (BlockRef { number: *number, hash: *hash }, vec![DELETED]));
        let added = self.recent.values().map(|block| {
            let mut value = vec![PRESENT];
            BlockBytes::encode(block).append(block, &mut value);
            (block.header.block_ref(), value)
        });
        deleted.chain(added).map(|(block, value)| (Key::of_side_block(block), value))
    }

    /// Records that the [new rows](Self::new_rows) of `written`, an earlier version of this value, are now in runs.
    pub(crate) fn mark_as_in_runs(&mut self, written: &Self) {
        for hash in written.obsolete.keys() {
            self.obsolete.remove_mut(hash);
        }
        for (hash, block) in written.recent.iter() {
            let BlockRef { number, .. } = block.header.block_ref();
            // It may have become canonical in the meantime.
            let side = self.recent.remove_mut(hash);
            if side { &mut self.in_runs } else { &mut self.obsolete }.insert_mut(*hash, number);
        }
    }
}

/// Returns the block to which the row with this key belongs.
fn reference(key: &[u8]) -> Option<BlockRef> {
    let (number, hash) = key.get(1..)?.split_first_chunk()?;
    (hash.len() == H256::len_bytes())
        .then(|| BlockRef { number: BlockNumber::from_be_bytes(*number), hash: H256::from_slice(hash) })
}
