//! The commands and their options. Those of servers can also be set by environment variables, and all by a file: see
//! [`crate::settings`].

use crate::config::Config;
use crate::data_dir::DataDir;
use crate::dev::DevOptions;
use crate::health::PlainUrl;
use crate::values;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use node_http::BasePath;
use node_store::Options;
use node_types::BlockNumber;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// An Ethereum execution node that answers over HTTP from every state its chain ever had.
///
/// Without a command it runs `dev`, and takes its options.
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    override_usage = "node-server [dev] [OPTIONS]\n       node-server <COMMAND> [OPTIONS]",
    after_help = "Without a command it is dev: `node-server --port 9000` is `node-server dev --port 9000`."
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// File of settings in TOML, whose keys are the long names of options; the command line and the environment come before it
    #[arg(long, global = true, env = "NODE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a chain to develop against, with rich accounts whose keys everybody knows.
    ///
    /// The accounts come from a mnemonic, and the chain begins with a genesis in which they have balances. It is kept in memory, or
    /// in a folder with --data-dir.
    Dev(Box<DevOptions>),
    /// Import chain files and answer requests about the chain. Produces no blocks.
    ///
    /// The chain begins with the genesis, takes the blocks of the chain files, and then stays as it is. It is kept in a
    /// folder, or in memory with --data-dir :memory:. No blocks are produced and no network is joined; transactions that
    /// are sent wait in the pool, and show in the pending block.
    Run(Box<Config>),
    /// Import chain files into a folder.
    ///
    /// Every block is executed and checked. Blocks that are known are passed over, so that a second run goes on where the
    /// first stopped. A fault in a file ends the import; the blocks before it stay.
    Import(ImportOptions),
    /// Write blocks of a folder's chain to a chain file, as RLP.
    Export(ExportOptions),
    /// Check every row of a folder's chain: hashes, roots, states, proofs' nodes, indexes.
    ///
    /// Ends with status 1 at the first difference, and says where it is.
    Verify(InspectOptions),
    /// Count the rows and bytes of a folder.
    Stats(InspectOptions),
    /// Drop old states from a folder: requests for them answer 404 from then on. Blocks, receipts and logs stay.
    ///
    /// What is dropped cannot be had again but by importing the chain into another folder. The space is used for new
    /// blocks; the file does not become smaller.
    Prune(PruneOptions),
    /// Copy a folder's chain into another folder, also while a server has it open and serves.
    ///
    /// The copy is that of one moment, and complete: blocks, states, pool and filters. It is made beside the wanted place under another
    /// name and moved there at the end, so that what is there is whole.
    Backup(BackupOptions),
    /// Print the settings that a command would have, each with its source, as a file for --config.
    ///
    /// Takes a command and its options: `node-server config run --port 9000`. Without a command it is `dev`.
    Config,
    /// Ask a server whether it is ready to serve. Ends with status 0 if it is.
    Health(HealthOptions),
    /// Print the description of the interface (OpenAPI 3.1), as /openapi.json answers it.
    Openapi(OpenapiOptions),
    /// Print a script that completes commands and options in a shell.
    Completions {
        /// The shell
        shell: Shell,
    },
}

impl Command {
    /// Whether output is for machines.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Dev(_)
            | Self::Run(_)
            | Self::Config
            | Self::Health(_)
            | Self::Openapi(_)
            | Self::Completions { .. } => false,
            Self::Import(options) => options.output.json,
            Self::Export(options) => options.output.json,
            Self::Verify(options) => options.output.json,
            Self::Stats(options) => options.output.json,
            Self::Prune(options) => options.output.json,
            Self::Backup(options) => options.output.json,
        }
    }
}

/// Settings of `openapi`.
#[derive(Args, Debug)]
pub(crate) struct OpenapiOptions {
    /// Print YAML instead of JSON
    #[arg(long)]
    pub(crate) yaml: bool,
    /// Leave out the operations that control a chain, as `run` does
    #[arg(long)]
    pub(crate) without_control: bool,
    /// Path in front of every route
    #[arg(long, env = "NODE_BASE_PATH", value_name = "PATH", default_value = "/")]
    pub(crate) base_path: BasePath,
}

/// Where the chain is kept.
#[derive(Args, Debug)]
#[command(next_help_heading = "Storage")]
pub(crate) struct StorageOptions {
    /// Folder that keeps chain, pool and filters over restarts, or :memory: [default: a folder for each genesis, in the
    /// user's data folder]
    #[arg(long, env = "NODE_DATA_DIR", value_name = "DIR", value_parser = DataDir::parser())]
    pub(crate) data_dir: Option<DataDir>,
    #[command(flatten)]
    pub(crate) caches: CacheOptions,
}

/// How much memory to use.
#[derive(Args, Debug)]
#[command(next_help_heading = "Storage")]
pub(crate) struct CacheOptions {
    /// Most MiB that all caches take in memory together
    #[arg(long, env = "NODE_CACHE_MB", value_name = "MIB", default_value_t = (Options::default().cache_bytes >> 20) as u32)]
    cache_mb: u32,
}

impl CacheOptions {
    /// The most bytes that the caches of the folder take.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.all_cache_bytes() - self.code_cache_bytes() as usize
    }

    /// The most bytes that analysed code takes.
    pub(crate) fn code_cache_bytes(&self) -> u64 {
        self.all_cache_bytes() as u64 / 16
    }

    fn all_cache_bytes(&self) -> usize {
        (self.cache_mb as usize).saturating_mul(1 << 20)
    }
}

/// What to forget.
#[derive(Args, Debug)]
#[command(next_help_heading = "Storage")]
pub(crate) struct PruneBefore {
    /// Drop the states below this block after the import; requests for them answer 404
    #[arg(long, env = "NODE_PRUNE_BEFORE", value_name = "BLOCK")]
    pub(crate) prune_before: Option<BlockNumber>,
}

/// Which chain it is.
#[derive(Args, Debug)]
#[command(next_help_heading = "Chain")]
pub(crate) struct GenesisOptions {
    /// Genesis file in geth's JSON format; without it a built-in development chain, id 31337, with ten rich accounts
    #[arg(long, env = "NODE_GENESIS", value_name = "FILE")]
    pub(crate) genesis: Option<PathBuf>,
}

/// How to tell what is done.
#[derive(Args, Debug)]
pub(crate) struct OutputOptions {
    /// Write JSON to standard output, one object a line: progress, and at last the result or the error
    #[arg(long)]
    pub(crate) json: bool,
}

/// Settings of `import`.
#[derive(Args, Debug)]
pub(crate) struct ImportOptions {
    /// Chain files of RLP blocks
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) genesis: GenesisOptions,
    #[command(flatten)]
    pub(crate) storage: StorageOptions,
    #[command(flatten)]
    pub(crate) prune: PruneBefore,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// A chain that is there.
#[derive(Args, Debug)]
pub(crate) struct ExistingChain {
    /// Genesis file of the chain; with --data-dir it is not needed
    #[arg(long, env = "NODE_GENESIS", value_name = "FILE")]
    pub(crate) genesis: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) storage: StorageOptions,
}

/// Settings of `export`.
#[derive(Args, Debug)]
pub(crate) struct ExportOptions {
    /// Chain file to write; - for standard output
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// First block
    #[arg(long, value_name = "BLOCK", default_value_t = 1)]
    pub(crate) from: BlockNumber,
    /// Last block [default: the head]
    #[arg(long, value_name = "BLOCK")]
    pub(crate) to: Option<BlockNumber>,
    /// Overwrite the file if there is one
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) chain: ExistingChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Settings of `verify` and `stats`.
#[derive(Args, Debug)]
pub(crate) struct InspectOptions {
    #[command(flatten)]
    pub(crate) chain: ExistingChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Settings of `prune`.
#[derive(Args, Debug)]
pub(crate) struct PruneOptions {
    /// Lowest block whose state is kept
    #[arg(long, value_name = "BLOCK")]
    pub(crate) before: BlockNumber,
    #[command(flatten)]
    pub(crate) chain: ExistingChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Settings of `backup`.
#[derive(Args, Debug)]
pub(crate) struct BackupOptions {
    /// Folder to make; one that is there must be empty
    #[arg(value_name = "DEST")]
    pub(crate) dest: PathBuf,
    #[command(flatten)]
    pub(crate) chain: ExistingChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Settings of `health`.
#[derive(Args, Debug)]
pub(crate) struct HealthOptions {
    /// What to ask, without TLS [default: /ready of a server on this machine with the same settings]
    #[arg(value_name = "URL")]
    pub(crate) url: Option<PlainUrl>,
    /// Address that the server listens on, where no URL is given
    #[arg(long, env = "NODE_HOST", default_value = "127.0.0.1", value_parser = values::host)]
    pub(crate) host: IpAddr,
    /// Port of the server, where no URL is given
    #[arg(long, env = "NODE_PORT", default_value_t = 8545)]
    pub(crate) port: u16,
    /// Path in front of every route of the server, where no URL is given
    #[arg(long, env = "NODE_BASE_PATH", value_name = "PATH", default_value = "/")]
    pub(crate) base_path: BasePath,
    /// Time for the answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::time)]
    pub(crate) timeout: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{self, Request, UsageError};
    use clap::CommandFactory;
    use clap::error::ErrorKind;
    use node_core::filters::FilterLimits;
    use node_core::node::Limits;
    use node_core::pool::PoolLimits;
    use node_http::HttpConfig;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_libraries() {
        let Command::Run(config) = CommandLine::parse_from(["node-server", "run"]).command else { panic!() };
        assert_eq!(config.server.limits(), Limits::default());
        assert_eq!(config.server.filter_limits(), FilterLimits::default());
        assert_eq!(config.server.pool_limits(), PoolLimits::default());
        let caches = &config.storage.caches;
        assert_eq!(caches.cache_bytes() + caches.code_cache_bytes() as usize, Options::default().cache_bytes);
        assert_eq!(format!("{:?}", config.server.http().unwrap()), format!("{:?}", HttpConfig::default()));
    }

    fn read(arguments: &[&str]) -> Result<Command, UsageError> {
        let arguments = ["node-server"].iter().chain(arguments).map(std::ffi::OsString::from);
        settings::read(arguments).map(|request| match request {
            Request::Execute(line) => line.command,
            Request::Show(text) => panic!("{text}"),
        })
    }

    #[test]
    fn without_a_command_it_is_dev() {
        for arguments in [&[][..], &["--port", "0", "--accounts", "3"], &["dev", "--port", "0"]] {
            assert!(matches!(read(arguments), Ok(Command::Dev(_))), "{arguments:?}");
        }
        assert!(matches!(read(&["run"]), Ok(Command::Run(_))));
        let error = |arguments| read(arguments).unwrap_err().kind();
        assert_eq!(error(&["--help"]), Some(ErrorKind::DisplayHelp));
        assert_eq!(error(&["-V"]), Some(ErrorKind::DisplayVersion));
        assert_eq!(error(&["config", "--help"]), Some(ErrorKind::DisplayHelp));
        assert_eq!(error(&["serve"]), Some(ErrorKind::InvalidSubcommand));
        assert_eq!(error(&["run", "--accounts", "3"]), Some(ErrorKind::UnknownArgument));
    }
}
