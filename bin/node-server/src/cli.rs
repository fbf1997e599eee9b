//! The command line. Options can also be set by environment variables and by a file: see [`crate::settings`].

use crate::command::backup::BackupOptions;
use crate::command::export::ExportOptions;
use crate::command::health::HealthOptions;
use crate::command::import::ImportOptions;
use crate::command::prune::PruneOptions;
use crate::command::run::RunOptions;
use crate::command::serve::ServeOptions;
use crate::command::verify::VerifyCommandOptions;
use crate::dev::{AnvilOptions, DevOptions};
use crate::options::InspectOptions;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use node_http::BasePath;
use std::path::PathBuf;

/// Ethnode, an Ethereum execution node that serves every historical state of its chain over HTTP.
///
/// The default command is `dev`.
#[derive(Debug, Parser)]
#[command(
    name = "ethnode",
    version,
    long_version = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("COMMIT"), ")\nfeatures: ", env!("FEATURES")),
    propagate_version = true,
    override_usage = "ethnode [dev] [OPTIONS]\n       ethnode <COMMAND> [OPTIONS]",
    after_help = "The default command is dev: `ethnode --port 9000` is short for `ethnode dev --port 9000`."
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Settings file in TOML, with the long names of options as keys; the command line and the environment take
    /// precedence
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a development chain with funded accounts whose keys are public.
    ///
    /// The accounts are derived from a mnemonic, and the genesis funds them. The chain is stored in memory, or in a
    /// folder with --data-dir.
    Dev(Box<DevOptions>),
    /// Serve a development chain with anvil's options, defaults and output.
    ///
    /// Also the default command if the program is called by the name `anvil`. Everyone who can reach the server may control
    /// the chain, which has the rules of anvil: other clients reject it. Accepts the options of `dev`, too.
    Anvil(Box<AnvilOptions>),
    /// Import chain files and serve the chain, without producing blocks.
    ///
    /// The chain starts at the genesis and consists of the blocks of the chain files. It is stored in a folder, or in
    /// memory with --data-dir :memory:. The node does not produce blocks and does not join a network: transactions that
    /// are sent to it stay in the pool and appear in the pending block.
    Run(Box<RunOptions>),
    /// Serve a chain that another server publishes in a shared store, such as a bucket of S3.
    ///
    /// Any number of servers may do so. They need only permission to read, and have no state besides caches. Blocks become
    /// visible as they are published. Transactions and other changes are refused.
    Serve(Box<ServeOptions>),
    /// Import chain files into a folder.
    ///
    /// Executes and validates every block. Blocks that are already stored are skipped, so an interrupted import
    /// resumes where it stopped. An invalid block ends the import; the blocks before it are kept.
    Import(ImportOptions),
    /// Export blocks from a folder or a shared store to a chain file, as RLP.
    Export(ExportOptions),
    /// Check every row of a folder or a shared store: hashes, roots, states, trie nodes, indexes.
    ///
    /// Uses all cores. Stops at the first difference, reports where it is, and exits with status 1.
    Verify(VerifyCommandOptions),
    /// Show the number of rows and bytes in a folder or a shared store.
    Stats(InspectOptions),
    /// Drop old states from a folder. Requests for them then return 404; blocks, receipts and logs are kept.
    ///
    /// Dropped states can be restored only by importing the chain into another folder. Needs disk space for a second
    /// copy of the remaining states.
    Prune(PruneOptions),
    /// Copy a folder, or the chain in a shared store, to another folder, even while a server uses it.
    ///
    /// The copy is a complete snapshot: blocks, states, pool and filters. It is written next to the destination under a
    /// temporary name and renamed at the end, so the destination is never incomplete.
    Backup(BackupOptions),
    /// Print the settings of a command, each with its source, in the format of --config.
    ///
    /// Accepts a command and its options: `ethnode config run --port 9000`. The default command is `dev`.
    Config,
    /// Check whether a server is ready. Exits with status 0 if it is.
    Health(HealthOptions),
    /// Print the OpenAPI 3.1 document, as served at /openapi.json.
    Openapi(OpenapiOptions),
    /// Write man pages of the program and its commands to a folder.
    Man {
        /// The folder; it must exist
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Print a shell completion script.
    Completions {
        /// The shell
        shell: Shell,
    },
}

impl CommandLine {
    /// Returns the command `dev` with the corresponding options instead of `anvil`.
    pub(crate) fn without_aliases(mut self) -> Self {
        if let Command::Anvil(options) = self.command {
            self.command = Command::Dev(Box::new(options.into_dev()));
        }
        self
    }
}

impl Command {
    /// Returns whether the command writes JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Dev(_)
            | Self::Anvil(_)
            | Self::Run(_)
            | Self::Serve(_)
            | Self::Config
            | Self::Health(_)
            | Self::Openapi(_)
            | Self::Man { .. }
            | Self::Completions { .. } => false,
            Self::Import(options) => options.output.json,
            Self::Export(options) => options.output.json,
            Self::Verify(options) => options.json(),
            Self::Stats(options) => options.output.json,
            Self::Prune(options) => options.output.json,
            Self::Backup(options) => options.output.json,
        }
    }
}

/// Options of `openapi`.
#[derive(Args, Debug)]
pub(crate) struct OpenapiOptions {
    /// Leave out the operations that control the chain, which `run` does not serve
    #[arg(long)]
    pub(crate) without_control: bool,
    /// Path prefix of every route
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub(crate) base_path: BasePath,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{self, Request, UsageError};
    use clap::error::ErrorKind;
    use node_core::filters::FilterLimits;
    use node_core::node::Limits;
    use node_core::pool::PoolLimits;
    use node_http::HttpConfig;
    use node_store::Options;

    #[test]
    fn the_command_line_is_consistent() {
        settings::commands().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_libraries() {
        let Command::Run(options) = CommandLine::parse_from(["ethnode", "run"]).command else { panic!() };
        assert_eq!(options.server.limits(), Limits::default());
        assert_eq!(options.server.filter_limits(), FilterLimits::default());
        assert_eq!(options.server.pool, PoolLimits::default());
        let caches = &options.storage.caches;
        assert_eq!(caches.cache_bytes() + caches.code_cache_bytes() as usize, Options::default().cache_bytes);
        assert_eq!(format!("{:?}", options.server.http_config().unwrap()), format!("{:?}", HttpConfig::default()));
    }

    fn read(arguments: &[&str]) -> Result<Command, UsageError> {
        let arguments = ["ethnode"].iter().chain(arguments).map(std::ffi::OsString::from);
        settings::read(arguments).map(|request| match request {
            Request::Execute(line, _) => line.command,
            Request::Show(text) => panic!("{text}"),
        })
    }

    #[test]
    fn dev_is_the_default_command() {
        for arguments in [&[][..], &["--port", "0", "--accounts", "3"], &["dev", "--port", "0"]] {
            assert!(matches!(read(arguments), Ok(Command::Dev(_))), "{arguments:?}");
        }
        assert!(matches!(read(&["run"]), Ok(Command::Run(_))));
        let error = |arguments| read(arguments).unwrap_err().kind();
        assert_eq!(error(&["--help"]), Some(ErrorKind::DisplayHelp));
        assert_eq!(error(&["-V"]), Some(ErrorKind::DisplayVersion));
        assert_eq!(error(&["config", "--help"]), Some(ErrorKind::DisplayHelp));
        assert_eq!(error(&["produce"]), Some(ErrorKind::InvalidSubcommand));
        assert_eq!(error(&["run", "--accounts", "3"]), Some(ErrorKind::UnknownArgument));
    }
}
