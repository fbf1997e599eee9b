//! The inputs that all checks share.

use super::difference::{RowFault, Stop};
use crate::chain::ChainVersion;
use crate::error::StoreError;
use crate::keys::{Key, Table};
use crate::rows::{Tables, Value};
use crate::state::ChangedParts;
use crate::trie::Decoder;
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

    /// Returns whether the chain continues the state of another one.
    pub(super) fn has_base(&self) -> bool {
        self.chain.rows.base.is_some()
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

impl Base<'_> {
    /// Like [`expect`](Self::expect), for a row of the state of block `block`, which changed these parts. Returns whether
    /// the values are equal: of a branch, the children or only the reference may be stored, depending on what of the base
    /// was known.
    pub(super) fn expect_of_state(
        &self,
        block: BlockNumber,
        key: &Key,
        value: &[u8],
        changed: &ChangedParts,
    ) -> Result<bool, Stop> {
        if self.has_base()
            && key.table() == Table::Trie
            && let Some((position, node)) = changed.node_of(key)
            && let Some(found) = self.tables().exactly(&key.versioned(block))?
            && *found != *value
            && let Ok(Some(found)) = Decoder::new(position).read(&found)
            && found.node.is_same_branch(node)
        {
            return Ok(false);
        }
        self.expect(block, key, block, value).map(|()| true)
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
