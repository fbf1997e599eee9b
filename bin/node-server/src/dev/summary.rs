//! A description of the development chain, as JSON for tools.

use crate::error::CommandError;
use crate::files::{self, Access};
use node_chain::Genesis;
use node_core::producer::ForkInfo;
use node_core::protocol::Relaxations;
use node_dev::{Accounts, Checksummed, DevAccount};
use node_types::{H256, U256};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A description of a development chain and its accounts.
pub(super) struct Summary {
    /// The accounts that the genesis funds, with their balances in wei.
    pub(super) accounts: Vec<(DevAccount, U256)>,
    pub(super) mnemonic: String,
    pub(super) derivation_path: String,
    pub(super) chain_id: u64,
    pub(super) genesis_hash: H256,
    pub(super) genesis_timestamp: u64,
    pub(super) gas_limit: u64,
    pub(super) base_fee: u64,
    /// The rules in which the chain differs from the protocol.
    pub(super) relaxations: Relaxations,
    /// The chain that this one continues, if there is one.
    pub(super) fork: Option<ForkInfo>,
    gas_price: U256,
    /// `None` if the chain is in memory.
    pub(super) folder: Option<PathBuf>,
    /// Base URL of the server, without a trailing slash.
    pub(super) url: String,
}

impl Summary {
    /// `balance` is that of all accounts in ether; `None` for those that the genesis gives them. `gas_price` is the current
    /// suggestion in wei; `url` is the base URL of the server.
    pub(super) fn new(
        accounts: &Accounts,
        genesis: &Genesis,
        balance: Option<u64>,
        fork: Option<ForkInfo>,
        gas_price: U256,
        folder: Option<&Path>,
        url: String,
    ) -> Self {
        // A genesis file may fund only some accounts of the mnemonic, or none.
        let balance = balance.map(|ether| U256::from(ether) * U256::exp10(18));
        let in_genesis = |account: &DevAccount| Some(genesis.alloc.get(&account.address())?.balance);
        let funded = |account: &DevAccount| Some((account.clone(), balance.or_else(|| in_genesis(account))?));
        Self {
            accounts: accounts.iter().filter_map(funded).collect(),
            mnemonic: accounts.mnemonic(),
            derivation_path: accounts.derivation_path(),
            chain_id: genesis.spec.chain_id,
            genesis_hash: genesis.block().header.hash,
            genesis_timestamp: genesis.header.timestamp,
            gas_limit: genesis.header.gas_limit,
            base_fee: genesis.header.base_fee_per_gas.unwrap_or_default(),
            fork,
            gas_price,
            relaxations: genesis.spec.relaxations,
            folder: folder.map(Path::to_owned),
            url,
        }
    }

    /// Writes the file of `--config-out`, with the properties that anvil writes and some additional ones.
    pub(super) fn write(&self, path: &Path) -> Result<(), CommandError> {
        let unwritable = |source| CommandError::Write { path: path.to_owned(), source };
        let write = |file: &mut dyn Write| writeln!(file, "{:#}", self.json()).map_err(unwritable);
        // It contains keys.
        files::replace(path, Access::Private, write).map(drop)
    }

    fn json(&self) -> Value {
        let addresses = self.accounts.iter().map(|(account, _)| Checksummed(account.address()).to_string());
        let keys = self.accounts.iter().map(|(account, _)| key(account));
        let mut json = json!({
            "available_accounts": addresses.collect::<Vec<_>>(),
            "private_keys": keys.collect::<Vec<_>>(),
            "wallet": {"mnemonic": self.mnemonic, "derivation_path": self.derivation_path},
            "base_fee": self.base_fee.to_string(),
            "gas_limit": self.gas_limit.to_string(),
            "gas_price": self.gas_price.to_string(),
            "genesis_timestamp": self.genesis_timestamp.to_string(),
            "chain_id": self.chain_id.to_string(),
            "genesis_hash": format!("{:#x}", self.genesis_hash),
            "url": self.url,
        });
        if let Some(fork) = &self.fork {
            json["endpoint"] = json!(fork.endpoints.first());
            json["block_number"] = json!(fork.block.number);
            json["block_hash"] = json!(format!("{:#x}", fork.block.hash));
        }
        json
    }
}

/// Returns the private key of an account in hex.
pub(super) fn key(account: &DevAccount) -> String {
    const_hex::encode_prefixed(account.secret().to_bytes())
}
