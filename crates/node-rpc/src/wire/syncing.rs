//! The result of eth_syncing.

use super::hex::Hex;
use node_core::node::ImportProgress;
use serde::Serialize;

/// The progress of an import, or false.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Syncing {
    /// The chain is being imported.
    #[serde(rename_all = "camelCase")]
    Importing { starting_block: Hex<u64>, current_block: Hex<u64>, highest_block: Hex<u64> },
    /// The chain is not being imported; always false.
    Not(bool),
}

impl From<Option<ImportProgress>> for Syncing {
    fn from(progress: Option<ImportProgress>) -> Self {
        match progress {
            Some(ImportProgress { starting_block, current_block, highest_block, .. }) => Self::Importing {
                starting_block: Hex(starting_block),
                current_block: Hex(current_block),
                highest_block: Hex(highest_block),
            },
            None => Self::Not(false),
        }
    }
}
