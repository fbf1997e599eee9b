//! The options of `dev`.

use crate::data_dir::DataDir;
use crate::options::server::ServerOptions;
use crate::options::storage::CacheOptions;
use crate::values;
use clap::{Args, ValueEnum};
use node_core::pool::TransactionOrder;
use node_core::producer::Mining;
use node_dev::{AccountOptions, DEFAULT_DERIVATION_PATH, DEFAULT_MNEMONIC, DevGenesis, Hardfork};
use node_types::Address;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest time between two blocks: a year.
const MAX_BLOCK_TIME: f64 = 31_536_000.0;

/// Settings of `dev`.
#[derive(Args, Debug)]
pub(crate) struct DevOptions {
    #[command(flatten)]
    pub(crate) accounts: AccountArguments,
    #[command(flatten)]
    pub(crate) chain: ChainArguments,
    #[command(flatten)]
    pub(crate) mining: MiningOptions,
    #[command(flatten)]
    pub(crate) storage: DevStorageOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// Serve the operations that control the chain on any address: whoever reaches it can change everything
    #[arg(long, env = "NODE_FORCE_CONTROL", help_heading = "HTTP")]
    pub(crate) force_control: bool,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
}

/// Which accounts.
#[derive(Args, Debug)]
#[command(next_help_heading = "Accounts")]
pub(crate) struct AccountArguments {
    /// How many accounts
    #[arg(long, env = "NODE_ACCOUNTS", value_name = "COUNT", default_value_t = AccountOptions::default().count)]
    accounts: u32,
    /// Balance of each in ether
    #[arg(long, env = "NODE_BALANCE", value_name = "ETHER", default_value_t = DevGenesis::default().balance, value_parser = values::ether)]
    balance: u64,
    /// Words that the keys come from: 12 to 24 of the English list of BIP-39
    #[arg(long, env = "NODE_MNEMONIC", value_name = "WORDS", default_value = DEFAULT_MNEMONIC, hide_env_values = true)]
    mnemonic: String,
    /// Derivation path of the keys; the number of the account is appended
    #[arg(long, env = "NODE_DERIVATION_PATH", value_name = "PATH", default_value = DEFAULT_DERIVATION_PATH)]
    derivation_path: String,
}

/// Which chain.
#[derive(Args, Debug)]
#[command(next_help_heading = "Chain")]
pub(crate) struct ChainArguments {
    /// Genesis file in geth's JSON format, used as it is; accounts are those of the mnemonic that it names
    #[arg(
        long, env = "NODE_GENESIS", value_name = "FILE",
        conflicts_with_all = [
            "accounts", "balance", "chain_id", "gas_limit", "base_fee", "hardfork", "timestamp", "coinbase",
        ]
    )]
    pub(crate) genesis: Option<PathBuf>,
    /// Chain id
    #[arg(long, env = "NODE_CHAIN_ID", value_name = "ID", default_value_t = DevGenesis::default().chain_id)]
    chain_id: u64,
    /// Gas limit of each block
    #[arg(long, env = "NODE_GAS_LIMIT", value_name = "GAS", default_value_t = DevGenesis::default().gas_limit)]
    gas_limit: u64,
    /// Base fee of the first block in wei [default: 1 gwei, since London]
    #[arg(long, env = "NODE_BASE_FEE", value_name = "WEI")]
    base_fee: Option<u64>,
    /// Rules of all blocks: the name of a fork, frontier to osaka, or bpo1, bpo2, latest
    #[arg(long, env = "NODE_HARDFORK", value_name = "NAME", default_value_t)]
    hardfork: Hardfork,
    /// Time of the first block in Unix seconds, from which the time of the chain goes on [default: the first block is of the
    /// beginning of 2025, and the others have the time of the machine]
    #[arg(long, env = "NODE_TIMESTAMP", value_name = "SECONDS")]
    pub(crate) timestamp: Option<u64>,
    /// Address that gets the fees
    #[arg(long, env = "NODE_COINBASE", value_name = "ADDRESS", default_value_t = HexAddress(DevGenesis::default().coinbase))]
    coinbase: HexAddress,
}

/// When blocks are made, and of what.
#[derive(Args, Clone, Debug, PartialEq)]
#[command(next_help_heading = "Mining")]
pub(crate) struct MiningOptions {
    /// Make a block each so many seconds, fractions allowed, instead of one as soon as a transaction waits
    #[arg(long, env = "NODE_BLOCK_TIME", value_name = "SECONDS", value_parser = block_time)]
    pub(crate) block_time: Option<Duration>,
    /// Make blocks on request alone
    #[arg(long, env = "NODE_NO_MINING", conflicts_with_all = ["block_time", "mixed_mining"])]
    pub(crate) no_mining: bool,
    /// Make a block as soon as a transaction waits, and one each --block-time besides
    #[arg(long, env = "NODE_MIXED_MINING", requires = "block_time")]
    pub(crate) mixed_mining: bool,
    /// Which of the waiting transactions come first
    #[arg(long, env = "NODE_ORDER", value_name = "ORDER", default_value = "fees")]
    pub(crate) order: Order,
}

/// An order of transactions. Those of one sender always come by nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// The highest tip first
    Fees,
    /// As they arrived
    Fifo,
}

/// Where the chain is kept.
#[derive(Args, Debug)]
#[command(next_help_heading = "Storage")]
pub(crate) struct DevStorageOptions {
    /// Folder that keeps chain, pool and filters over restarts [default: :memory:]
    #[arg(long, env = "NODE_DATA_DIR", value_name = "DIR", value_parser = DataDir::parser())]
    pub(crate) data_dir: Option<DataDir>,
    #[command(flatten)]
    pub(crate) caches: CacheOptions,
}

/// What to tell.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Write nothing but errors, and the address with --port 0
    #[arg(long, env = "NODE_SILENT")]
    pub(crate) silent: bool,
    /// Write accounts, keys and settings to a file as JSON, once the server listens
    #[arg(long, env = "NODE_CONFIG_OUT", value_name = "FILE")]
    pub(crate) config_out: Option<PathBuf>,
}

impl MiningOptions {
    /// When blocks are made.
    pub(crate) fn mining(&self) -> Mining {
        match self.block_time {
            _ if self.no_mining => Mining::Manual,
            None => Mining::Instant,
            Some(interval) if self.mixed_mining => Mining::Mixed(interval),
            Some(interval) => Mining::Interval(interval),
        }
    }
}

impl From<Order> for TransactionOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Fees => Self::Fees,
            Order::Fifo => Self::Fifo,
        }
    }
}

impl DevOptions {
    /// The folder that keeps the chain; none if it is to be in memory.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.storage.data_dir {
            Some(DataDir::Folder(path)) => Some(path),
            Some(DataDir::Memory) | None => None,
        }
    }

    /// What to log.
    pub(crate) fn log(&self) -> &str {
        if self.output.silent { "error" } else { &self.server.logs.log }
    }

    /// Which accounts to derive.
    pub(crate) fn accounts(&self) -> AccountOptions {
        let AccountArguments { accounts, mnemonic, derivation_path, .. } = &self.accounts;
        AccountOptions { count: *accounts, mnemonic: mnemonic.clone(), derivation_path: derivation_path.clone() }
    }

    /// Where the chain begins if no file says so.
    pub(crate) fn genesis(&self) -> DevGenesis {
        let ChainArguments { chain_id, gas_limit, base_fee, hardfork, timestamp, coinbase, .. } = self.chain;
        DevGenesis {
            chain_id,
            balance: self.accounts.balance,
            gas_limit,
            base_fee,
            hardfork,
            timestamp,
            coinbase: coinbase.0,
        }
    }
}

/// An address that is shown in full, as defaults in the help are.
#[derive(Clone, Copy, Debug)]
struct HexAddress(Address);

impl std::fmt::Display for HexAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl std::str::FromStr for HexAddress {
    type Err = <Address as std::str::FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Seconds, a millisecond at least.
fn block_time(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if !(0.001..=MAX_BLOCK_TIME).contains(&seconds) {
        return Err(format!("expected 0.001 to {MAX_BLOCK_TIME} seconds"));
    }
    // Whole milliseconds are all that anybody means.
    Ok(Duration::from_millis((seconds * 1_000.0).round() as u64))
}
