//! Repair of a state that an earlier version damaged when it was killed while pruning.
//!
//! That version could delete the row by which an account or slot was deleted before the older rows of the same key, which
//! were then found in its place. Trie nodes are not affected, so rows without a leaf are such rows.

use super::meta::{CHECKED_FLOOR, META, checked_floor, encode_floor};
use super::prune::Deletion;
use super::{Shared, verify};
use crate::chain::ChainVersion;
use crate::error::StoreError;
use crate::keys::{Key, Table};
use crate::rows::Tables;
use node_core::backend::BackendError;
use node_types::BlockNumber;
use redb::ReadableDatabase;
use std::sync::Arc;

impl Shared {
    /// Compares the earliest state with its header, unless that was done before, and deletes rows of accounts and slots
    /// that are not in its tries. Returns the number of rows that were deleted.
    ///
    /// # Errors
    /// [`StoreError::DamagedState`] if the state differs in any other way.
    pub(super) fn repair_earliest_state(&self) -> Result<u64, BackendError> {
        let mut chain = ChainVersion::clone(&self.current.read());
        let earliest = chain.earliest;
        if self.checked_floor()? >= earliest {
            return Ok(0);
        }
        let mut accounts = Deletion::new(self, Table::Accounts);
        let mut slots = Deletion::new(self, Table::Storage);
        let difference = verify::check_earliest_state(&chain, &mut |key| {
            let deletion = if key.table() == Table::Accounts { &mut accounts } else { &mut slots };
            deletion.add(rows_up_to(&chain.rows.database, key, earliest)?)
        })?;
        let deleted = accounts.finish()? + slots.finish()?;
        if let Some(difference) = difference {
            return Err(StoreError::DamagedState { block: earliest, difference: Box::new(difference) }.into());
        }
        let transaction = self.begin_write()?;
        transaction
            .open_table(META)
            .map_err(StoreError::from)?
            .insert(CHECKED_FLOOR, &*encode_floor(earliest))
            .map_err(StoreError::from)?;
        transaction.commit().map_err(StoreError::from)?;
        chain.rows.database = Arc::new(Tables::open(&self.database().begin_read().map_err(StoreError::from)?)?);
        self.publish(chain);
        Ok(deleted)
    }

    fn checked_floor(&self) -> Result<BlockNumber, StoreError> {
        checked_floor(&self.database().begin_read()?.open_table(META)?)
    }
}

/// Returns the keys of all rows of `key` from blocks up to and including `floor`, the oldest first.
fn rows_up_to(tables: &Tables, key: &Key, floor: BlockNumber) -> Result<Vec<Vec<u8>>, StoreError> {
    let (from, to) = (key.versioned(floor), key.versioned(0));
    let rows = tables.table(key.table()).range::<&[u8]>(&*from..=&*to)?;
    rows.rev().map(|row| Ok(row?.0.value().to_vec())).collect()
}
