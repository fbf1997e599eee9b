//! The commands and their options. Those of servers can also be set by environment variables, and all by a file: see
//! [`crate::settings`].

use crate::backup::BackupOptions;
use crate::dev::DevOptions;
use crate::export::ExportOptions;
use crate::health::HealthOptions;
use crate::import::ImportOptions;
use crate::options::chain::InspectOptions;
use crate::prune::PruneOptions;
use crate::run::RunOptions;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use node_http::BasePath;
use std::path::PathBuf;

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
    Run(Box<RunOptions>),
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
    use node_store::Options;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_libraries() {
        let Command::Run(options) = CommandLine::parse_from(["node-server", "run"]).command else { panic!() };
        assert_eq!(options.server.limits.limits(), Limits::default());
        assert_eq!(options.server.limits.filter_limits(), FilterLimits::default());
        assert_eq!(options.server.limits.pool_limits(), PoolLimits::default());
        let caches = &options.storage.caches;
        assert_eq!(caches.cache_bytes() + caches.code_cache_bytes() as usize, Options::default().cache_bytes);
        assert_eq!(format!("{:?}", options.server.http_config().unwrap()), format!("{:?}", HttpConfig::default()));
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
