//! The inputs that all checks share.

use super::difference::{RowFault, Stop};
use crate::chain::ChainVersion;
use crate::error::StoreError;
use crate::keys::Key;
use crate::rows::{Tables, Value};
use node_core::context::Context;
use node_core::crypto::SenderRecovery;
use node_core::edits::Edits;
use node_types::{BlockNumber, H256};
use std::collections::HashMap;

/// The inputs of all checks.
pub(super) struct Base<'a> {
    /// The chain, all of which is in runs.
    pub(super) chain: &'a ChainVersion,
    pub(super) context: &'a Context,
    pub(super) senders: &'a dyn SenderRecovery,
    /// The edits of blocks, by block hash.
    pub(super) edited: HashMap<H256, Edits>,
}

impl Base<'_> {
    pub(super) fn tables(&self) -> &Tables {
        &self.chain.rows.tables
    }

    /// Returns the edits of a block, or `None` if it has none.
    pub(super) fn edits(&self, block: H256) -> Option<&Edits> {
        self.edited.get(&block)
    }

    /// Compares a row with its expected value.
    pub(super) fn expect(&self, block: BlockNumber, key: &Key, version: u64, value: &[u8]) -> Result<(), Stop> {
        let compared = match self.tables().exactly(&key.versioned(version))? {
            Some(found) => RowFault::unless_equal("value", value, &found),
            None => Err(RowFault::Missing),
        };
        compared.map_err(|fault| fault.of(block, key, version))
    }
}

/// Converts an error of reading a row: a row that cannot be decoded is a difference; a row that cannot be read from
/// the disk is a failure.
pub(super) fn blame(error: StoreError, block: BlockNumber, key: &Key) -> Stop {
    match error {
        StoreError::Malformed(_) | StoreError::Consensus(_) | StoreError::Missing { .. } => {
            let reason = match std::error::Error::source(&error) {
                Some(source) => source.to_string(),
                None => error.to_string(),
            };
            RowFault::Malformed { reason }.of(block, key, block)
        }
        error => error.into(),
    }
}

/// Returns the row of a key, with the version `version` if the table has versions, or `None` if it is missing.
pub(super) fn stored(tables: &Tables, key: &Key, version: u64) -> Result<Option<Value>, StoreError> {
    tables.exactly(&key.versioned(version))
}
