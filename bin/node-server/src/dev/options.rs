//! The options of `dev`.

use super::fork::ForkArguments;
use super::rules::RuleOptions;
use super::state_file;
use super::terminal::{Terminal, Traces};
use crate::logging::{self, LogFormat};
use crate::options::data_dir::DataDir;
use crate::options::{
    CacheOptions, CreationOptions, OperationOptions, PublishArguments, RestoreArguments, ServerOptions,
};
use clap::{ArgAction, Args, ValueEnum};
use node_core::pool::TransactionOrder;
use node_core::producer::Mining;
use node_dev::{AccountOptions, DEFAULT_DERIVATION_PATH, DEFAULT_MNEMONIC, DevGenesis, Hardfork, check_chain_id};
use node_types::Address;
use std::num::ParseIntError;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// The default of `--client-version`.
const CLIENT_VERSION: &str = concat!("anvil/ethnode/v", env!("CARGO_PKG_VERSION"));

/// Maximum time between two blocks in seconds: a year.
const MAX_BLOCK_TIME: f64 = 31_536_000.0;

/// Options of `dev`.
#[derive(Args, Debug)]
pub(crate) struct DevOptions {
    #[command(flatten)]
    pub(crate) accounts: AccountArguments,
    #[command(flatten)]
    pub(crate) chain: ChainArguments,
    #[command(flatten)]
    pub(crate) fork: ForkArguments,
    #[command(flatten)]
    pub(crate) rules: RuleOptions,
    #[command(flatten)]
    pub(crate) mining: MiningOptions,
    #[command(flatten)]
    pub(crate) storage: DevStorageOptions,
    #[command(flatten)]
    pub(crate) publish: PublishArguments,
    #[command(flatten)]
    pub(crate) restore: RestoreArguments,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
    /// Allow the operations that control the chain on non-loopback addresses: everyone who can reach the server can
    /// change the chain
    #[arg(long, help_heading = "Access", conflicts_with_all = ["no_control", "control_listen"])]
    pub(crate) force_control: bool,
    /// Whether the output is anvil's.
    #[arg(skip)]
    pub(crate) is_anvil: bool,
}

/// The accounts to derive and fund.
#[derive(Args, Debug)]
#[command(next_help_heading = "Accounts")]
pub(crate) struct AccountArguments {
    /// Number of accounts
    #[arg(short, long, value_name = "COUNT", default_value_t = AccountOptions::default().count)]
    accounts: u32,
    /// Balance of each account in ether
    #[arg(long, value_name = "ETHER", default_value_t = DevGenesis::default().balance, value_parser = ether)]
    pub(super) balance: u64,
    /// BIP-39 mnemonic that keys are derived from, 12 to 24 English words
    #[arg(short, long, value_name = "WORDS", default_value = DEFAULT_MNEMONIC, hide_env_values = true)]
    mnemonic: String,
    /// Derivation path of the keys; the account index is appended
    #[arg(long, value_name = "PATH", default_value = DEFAULT_DERIVATION_PATH)]
    derivation_path: String,
    /// Accept unsigned transactions from every account
    #[arg(long, alias = "auto-unlock")]
    pub(crate) auto_impersonate: bool,
}

/// The genesis and the rules of the chain.
#[derive(Args, Debug)]
#[command(next_help_heading = "Chain")]
pub(crate) struct ChainArguments {
    /// Genesis file in geth's JSON format; the mnemonic's accounts that it funds come first, and the others have no
    /// ether. For a fork, only its rules are used
    #[arg(
        long, value_name = "FILE", visible_alias = "init",
        conflicts_with_all = [
            "accounts", "balance", "gas_limit", "base_fee", "hardfork", "timestamp", "coinbase",
        ]
    )]
    pub(crate) genesis: Option<PathBuf>,
    /// Chain id [default: 31337, or that of the genesis file, or of the chain that is continued]
    #[arg(long, value_name = "ID", value_parser = chain_id)]
    pub(super) chain_id: Option<u64>,
    /// Gas limit of each block [default: 30000000, or that of the chain that is continued]
    #[arg(long, value_name = "GAS")]
    pub(super) gas_limit: Option<u64>,
    /// Base fee of the genesis block in wei, or of the next block of a fork [default: 1 gwei from London on]
    #[arg(long, value_name = "WEI", alias = "block-base-fee-per-gas")]
    pub(super) base_fee: Option<u64>,
    /// Newest fork of the chain by name, such as london or bpo1; latest for the newest known [default: latest, or those of
    /// the network that is continued]
    #[arg(long, value_name = "NAME")]
    pub(super) hardfork: Option<Hardfork>,
    /// Timestamp of the genesis block in Unix seconds; the chain's clock continues from it [default: the start of the
    /// program, or that of the folder, with the system clock for later blocks]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timestamp: Option<u64>,
    /// Deploy only the CREATE2 deployer, without Multicall3, Permit2, CreateX, EntryPoint 0.6 to 0.9, the registry of
    /// ERC-1820, and the factories of EIP-2470 and Safe
    #[arg(long)]
    pub(super) bare: bool,
    /// Address that receives the fees
    #[arg(long, value_name = "ADDRESS", default_value_t = HexAddress(DevGenesis::default().coinbase))]
    pub(super) coinbase: HexAddress,
}

/// When blocks are produced, and in which order they include transactions.
#[derive(Args, Clone, Debug, PartialEq)]
#[command(next_help_heading = "Mining")]
pub(crate) struct MiningOptions {
    /// Produce a block at this interval, fractions allowed, instead of one for each transaction
    #[arg(short, long, alias = "blockTime", value_name = "SECONDS", value_parser = block_time)]
    pub(crate) block_time: Option<Duration>,
    /// Produce blocks only on request
    #[arg(long, alias = "no-mine", conflicts_with_all = ["block_time", "mixed_mining"])]
    pub(crate) no_mining: bool,
    /// Produce a block for each transaction and also one at each --block-time interval
    #[arg(long, requires = "block_time")]
    pub(crate) mixed_mining: bool,
    /// Order of transactions in a block
    #[arg(long, value_name = "ORDER", default_value = "fees", ignore_case = true)]
    pub(crate) order: Order,
}

/// An order of transactions. Those of one sender are always ordered by nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// By tip, highest first
    Fees,
    /// By time of arrival
    Fifo,
}

/// Where the chain is stored.
#[derive(Args, Debug)]
#[command(next_help_heading = "Storage")]
pub(crate) struct DevStorageOptions {
    /// Folder that stores chain, pool and filters [default: :memory:]
    #[arg(long, value_name = "DIR", value_parser = DataDir::parser())]
    pub(crate) data_dir: Option<DataDir>,
    #[command(flatten)]
    pub(crate) creation: CreationOptions,
    #[command(flatten)]
    pub(crate) state_files: StateFileOptions,
    #[command(flatten)]
    pub(crate) caches: CacheOptions,
}

/// Files with all accounts and blocks, in anvil's format.
#[derive(Args, Debug)]
pub(crate) struct StateFileOptions {
    /// Load accounts and blocks from a dump into a new chain; from state.json if it is a folder
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    load_state: Option<PathBuf>,
    /// Dump the accounts and blocks on exit; to state.json if it is a folder
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    dump_state: Option<PathBuf>,
    /// Load a dump into a new chain, if the file exists, and dump the chain on exit
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Also dump the chain at this interval
    #[arg(short, long, value_name = "SECONDS", value_parser = block_time)]
    pub(crate) state_interval: Option<Duration>,
}

impl StateFileOptions {
    /// Returns the file to load; `None` if there is none.
    pub(crate) fn to_load(&self) -> Option<&Path> {
        let if_present = || self.state.as_deref().filter(|path| state_file::in_folder(path).exists());
        self.load_state.as_deref().or_else(if_present)
    }

    /// Returns the file to dump to; `None` if there is none.
    pub(crate) fn to_dump(&self) -> Option<&Path> {
        self.dump_state.as_deref().or(self.state.as_deref())
    }
}

/// What to print.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Print only errors, and the address if --port is 0
    #[arg(short = 'q', long, visible_alias = "quiet")]
    pub(crate) silent: bool,
    /// Show each transaction with its console.log lines even if --log is given; -vvv adds the calls of failed
    /// transactions, -vvvv those of all
    #[arg(short, long, alias = "verbosity", action = ArgAction::Count)]
    verbose: u8,
    /// Show the calls of each transaction, as -vvvv does
    #[arg(long, alias = "enable-trace-printing")]
    print_traces: bool,
    /// Do not show lines of console.log
    #[arg(long, alias = "no-console-log")]
    disable_console_log: bool,
    /// Write accounts, keys and settings to a JSON file once the server listens
    #[arg(long, value_name = "FILE")]
    pub(crate) config_out: Option<PathBuf>,
    /// Name and version in web3_clientVersion; clients such as Hardhat's network helpers control only chains whose name
    /// begins with anvil or hardhat
    #[arg(long, value_name = "TEXT", help_heading = "Compatibility with anvil", default_value = CLIENT_VERSION)]
    pub(crate) client_version: String,
}

impl MiningOptions {
    /// When blocks are produced.
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
    /// Returns the folder that stores the chain; `None` for a chain in memory.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.storage.data_dir {
            Some(DataDir::Folder(path)) => Some(path),
            Some(DataDir::Memory) | None => None,
        }
    }

    /// Returns the log lines to write. Events that the terminal shows are not logged, too.
    pub(crate) fn log(&self) -> Targets {
        let log = &self.server.operation.log;
        match self.output.silent {
            true => logging::from_level(LevelFilter::ERROR),
            false if log.is_default() && self.shows_terminal() => logging::from_level(LevelFilter::WARN),
            false => log.targets.clone(),
        }
    }

    /// Returns the terminal that shows transactions; `None` if the log shows them.
    pub(crate) fn terminal(&self) -> Option<Terminal> {
        let traces = match self.output.verbose {
            4.. => Traces::All,
            _ if self.output.print_traces => Traces::All,
            3 => Traces::Failed,
            _ => Traces::None,
        };
        self.shows_terminal().then(|| Terminal::new(traces, !self.output.disable_console_log))
    }

    fn shows_terminal(&self) -> bool {
        let OutputOptions { silent, verbose, print_traces, .. } = self.output;
        let OperationOptions { log, log_format, .. } = &self.server.operation;
        let wanted = verbose > 0 || print_traces || log.is_default();
        wanted && !silent && *log_format == LogFormat::Text
    }

    /// Returns the accounts to derive.
    pub(crate) fn accounts(&self) -> AccountOptions {
        let AccountArguments { accounts, mnemonic, derivation_path, .. } = &self.accounts;
        AccountOptions { count: *accounts, mnemonic: mnemonic.clone(), derivation_path: derivation_path.clone() }
    }

    /// Returns the genesis to use without a genesis file.
    pub(crate) fn genesis(&self) -> DevGenesis {
        let ChainArguments { chain_id, gas_limit, base_fee, hardfork, timestamp, bare, coinbase, .. } = self.chain;
        let default = DevGenesis::default();
        DevGenesis {
            chain_id: chain_id.unwrap_or(default.chain_id),
            balance: self.accounts.balance,
            gas_limit: gas_limit.unwrap_or(default.gas_limit),
            base_fee,
            hardfork: hardfork.unwrap_or(default.hardfork),
            timestamp,
            coinbase: coinbase.0,
            contracts: !bare,
        }
    }
}

/// An address that `Display` prints in full, for the default value in the help.
#[derive(Clone, Copy, Debug)]
pub(super) struct HexAddress(pub(super) Address);

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

/// Parses a chain id.
pub(super) fn chain_id(text: &str) -> Result<u64, String> {
    let id = text.parse().map_err(|error: ParseIntError| error.to_string())?;
    check_chain_id(id).map_err(|error| error.to_string())?;
    Ok(id)
}

/// Parses an amount in ether.
fn ether(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "expected a whole number of ether, such as 10000".to_owned())
}

/// Parses a number of seconds of at least a millisecond.
fn block_time(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if !(0.001..=MAX_BLOCK_TIME).contains(&seconds) {
        return Err(format!("expected 0.001 to {MAX_BLOCK_TIME} seconds"));
    }
    // Rounded to milliseconds.
    Ok(Duration::from_millis((seconds * 1_000.0).round() as u64))
}
