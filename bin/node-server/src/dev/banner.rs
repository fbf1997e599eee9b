//! The text that is printed when a development chain starts.

use super::summary::{Summary, key};
use node_dev::{Checksummed, DEFAULT_MNEMONIC};
use node_types::U256;
use std::fmt;

/// Accounts with their keys, the chain, and a first request.
pub(super) struct Banner<'a>(pub(super) &'a Summary);

impl fmt::Display for Banner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = self.0;
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
        writeln!(f, "genesis          {:#x}", summary.genesis_hash)?;
        match &summary.folder {
            Some(folder) => writeln!(f, "data folder      {}", folder.display())?,
            None => writeln!(f, "data folder      none (the chain is in memory and lost when the server stops)")?,
        }
        writeln!(f, "\ncurl -s {}/getBlockByNumber/latest/\n", summary.url)
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
