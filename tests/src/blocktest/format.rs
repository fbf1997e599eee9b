//! The JSON format of block tests. Properties that the runner does not need are ignored.

use super::hex::{Data, Number};
use node_chain::genesis::GenesisAccount;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A test case.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockTest {
    /// The network: which rules are active when.
    pub(super) network: String,
    /// Details of the rules, in newer tests.
    #[serde(default)]
    pub(super) config: Config,
    /// The accounts at genesis.
    pub(super) pre: BTreeMap<Number, Account>,
    #[serde(rename = "genesisRLP")]
    pub(super) genesis_rlp: Data,
    pub(super) genesis_block_header: HeaderHash,
    /// Valid and invalid blocks in order of import.
    pub(super) blocks: Vec<Block>,
    /// Hash of the head after all blocks.
    pub(super) lastblockhash: Number,
    /// All accounts at the head; or
    pub(super) post_state: Option<BTreeMap<Number, Account>>,
    /// the state root at the head.
    pub(super) post_state_hash: Option<Number>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Config {
    #[serde(alias = "chainId")]
    pub(super) chainid: Option<Number>,
    /// Blob parameters by fork name.
    #[serde(default)]
    pub(super) blob_schedule: BTreeMap<String, BlobParams>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlobParams {
    pub(super) target: Number,
    pub(super) max: Number,
    pub(super) base_fee_update_fraction: Number,
}

#[derive(Debug, Deserialize)]
pub(super) struct HeaderHash {
    pub(super) hash: Number,
}

/// A block to import.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Block {
    pub(super) rlp: Data,
    /// The expected reasons of refusal, separated by `|`; `None` for a valid block.
    #[serde(alias = "expectExceptionALL")]
    pub(super) expect_exception: Option<String>,
    /// The decoded header, present only for valid blocks.
    pub(super) block_header: Option<HeaderHash>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Account {
    balance: Number,
    nonce: Number,
    code: Data,
    #[serde(default)]
    storage: BTreeMap<Number, Number>,
}

impl Account {
    /// The account in the format of a genesis.
    pub(super) fn to_genesis(&self) -> Result<GenesisAccount, String> {
        Ok(GenesisAccount {
            balance: self.balance.0,
            nonce: self.nonce.0.try_into().map_err(|_| format!("nonce {} exceeds 64 bits", self.nonce.0))?,
            code: self.code.0.clone(),
            storage: self.storage.iter().map(|(slot, value)| (slot.word(), value.0)).collect(),
        })
    }
}
