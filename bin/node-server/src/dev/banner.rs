//! The text that is printed when a development chain starts.

use super::access::Access;
use super::summary::{Summary, key};
use node_core::producer::ForkInfo;
use node_dev::{Checksummed, DEFAULT_MNEMONIC};
use node_types::U256;
use std::fmt;

/// Accounts with their keys, the chain, who may use it, and a first request.
pub(super) struct Banner<'a> {
    pub(super) summary: &'a Summary,
    pub(super) access: &'a Access,
}

impl fmt::Display for Banner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { summary, access } = self;
        writeln!(f, concat!("ethnode ", env!("CARGO_PKG_VERSION"), ", development chain\n"))?;
        let is_public = summary.mnemonic == DEFAULT_MNEMONIC;
        for (index, (account, balance)) in summary.accounts.iter().enumerate() {
            let (address, balance) = (Checksummed(account.address()), Ether(*balance));
            if is_public {
                writeln!(f, "({index}) {address}  {}  {balance}", key(account))?;
            } else {
                writeln!(f, "({index}) {address}  {balance}")?;
            }
        }
        if summary.accounts.is_empty() {
            writeln!(f, "The genesis funds no account of the mnemonic.")?;
        } else if is_public {
            writeln!(f, "\nThese keys are public: never send anything of value to these accounts on another chain.")?;
        } else {
            writeln!(
                f,
                "\nTheir keys are not shown, because output ends up in logs: --config-out writes them to a file."
            )?;
        }
        writeln!(f)?;
        let mnemonic = if is_public { &summary.mnemonic } else { "that of --mnemonic" };
        writeln!(f, "mnemonic         {mnemonic}")?;
        writeln!(f, "derivation path  {}", summary.derivation_path)?;
        writeln!(f, "chain id         {}", summary.chain_id)?;
        match &summary.fork {
            Some(ForkInfo { endpoints, chain_id, is_chain_id_given, block, is_verified, .. }) => {
                let endpoints =
                    if endpoints.is_empty() { "nowhere (--offline)".to_owned() } else { endpoints.join(", ") };
                let by = if *is_chain_id_given { " (--fork-chain-id)" } else { "" };
                writeln!(f, "fork             of chain {chain_id}{by}, block {} ({:#x})", block.number, block.hash)?;
                let proven = if *is_verified { "proven by this block" } else { "NOT VERIFIED (--fork-trust)" };
                writeln!(f, "                 read from {endpoints}; what is read is {proven}")?;
            }
            None => writeln!(f, "genesis          {:#x}", summary.genesis_hash)?,
        }
        if !summary.relaxations.is_empty() {
            writeln!(
                f,
                "rules            not the protocol's, so other clients reject the chain: {}",
                summary.relaxations
            )?;
        }
        match &summary.folder {
            Some(folder) => writeln!(f, "data folder      {}", folder.display())?,
            None => writeln!(f, "data folder      none (the chain is in memory and lost when the server stops)")?,
        }
        write!(f, "{access}")?;
        writeln!(f, "\ncurl -s {}/getBlockByNumber/latest/\n", summary.url)
    }
}

/// The text that anvil prints before it listens, which programs that start it read. In contrast to [`Banner`], it shows
/// the keys of any mnemonic.
pub(super) struct AnvilBanner<'a>(pub(super) &'a Summary);

impl fmt::Display for AnvilBanner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = self.0;
        let section = |f: &mut fmt::Formatter<'_>, name: &str| writeln!(f, "\n{name}\n==================\n");
        writeln!(f, concat!("ethnode ", env!("CARGO_PKG_VERSION"), ", with the rules of anvil"))?;
        section(f, "Available Accounts")?;
        for (index, (account, balance)) in summary.accounts.iter().enumerate() {
            let (whole, wei) = balance.div_mod(U256::exp10(18));
            writeln!(f, "({index}) {} ({whole}.{:0>18} ETH)", Checksummed(account.address()), wei.to_string())?;
        }
        section(f, "Private Keys")?;
        for (index, (account, _)) in summary.accounts.iter().enumerate() {
            writeln!(f, "({index}) {}", key(account))?;
        }
        writeln!(f, "\nWallet\n==================")?;
        writeln!(f, "Mnemonic:          {}\nDerivation path:   {}\n", summary.mnemonic, summary.derivation_path)?;
        if let Some(ForkInfo { endpoints, chain_id, block, is_verified, .. }) = &summary.fork {
            writeln!(f, "\nFork\n==================")?;
            writeln!(f, "Endpoint:       {}", endpoints.join(", "))?;
            writeln!(f, "Block number:   {}", block.number)?;
            writeln!(f, "Block hash:     {:?}", block.hash)?;
            writeln!(f, "Chain ID:       {chain_id}")?;
            if !is_verified {
                writeln!(f, "Verified:       no")?;
            }
        }
        let values = [
            ("Chain ID", summary.chain_id),
            ("Base Fee", summary.base_fee),
            ("Gas Limit", summary.gas_limit),
            ("Genesis Timestamp", summary.genesis_timestamp),
            ("Genesis Number", summary.fork.as_ref().map_or(0, |fork| fork.block.number)),
        ];
        for (name, value) in values {
            section(f, name)?;
            writeln!(f, "{value}")?;
        }
        writeln!(f)
    }
}

/// Wei as ether, without trailing zeros.
pub(super) struct Ether(pub(super) U256);

impl fmt::Display for Ether {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, wei) = self.0.div_mod(U256::exp10(18));
        let wei = wei.to_string();
        let fraction = format!("{wei:0>18}");
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{whole} ether"),
            digits => write!(f, "{whole}.{digits} ether"),
        }
    }
}
