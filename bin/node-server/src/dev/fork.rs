//! A chain that continues that of another server.

use super::DevOptions;
use super::options::chain_id;
use crate::chain::open;
use crate::error::CommandError;
use crate::options::CacheOptions;
use clap::builder::{ArgPredicate, OsStr};
use clap::{Args, Command};
use node_chain::Genesis;
use node_core::context::Context;
use node_core::producer::{Producer, ProducerError};
use node_dev::fork::{FORK_CALL_TIMEOUT, Fork, ForkBlock, ForkPoint, ForkRules, ForkSource};
use node_dev::{Accounts, DevNodeError};
use node_fork::ForkOptions;
use node_store::{Options, Store};
use node_types::H256;
use node_upstream::UpstreamOptions;
use std::path::Path;
use std::sync::Arc;

/// The chain that is continued, and how it is read.
#[derive(Args, Debug)]
#[command(next_help_heading = "Fork of another chain")]
pub(crate) struct ForkArguments {
    /// Continue the chain that this server has, after its newest block or the given one; may be given more than once, for
    /// servers of the same chain. State is read from there when it is needed, and proven
    #[arg(short = 'f', long, alias = "rpc-url", value_name = "URL[@BLOCK]", hide_env_values = true)]
    fork_url: Vec<String>,
    /// Block that the fork begins with: a number, hash or tag, or a negative number that counts from the newest block
    /// [default: latest, or that of the folder]
    #[arg(long, value_name = "BLOCK", allow_hyphen_values = true)]
    fork_block_number: Option<ForkBlock>,
    /// Begin just before this transaction: with the parent of its block, followed by a block with the transactions before it
    #[arg(long, value_name = "HASH", conflicts_with = "fork_block_number")]
    fork_transaction_hash: Option<H256>,
    /// Chain id of the other chain, which is then not asked for
    #[arg(long, value_name = "ID", value_parser = chain_id)]
    fork_chain_id: Option<u64>,
    /// Read the state of the other chain without proofs, if its servers have none: what they say is used, whatever it is
    #[arg(long)]
    fork_trust: bool,
    /// Send no requests: serve what was read before, and refuse the rest
    #[arg(long)]
    offline: bool,
    /// Maximum size of what is kept of the other chain, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 16 << 10)]
    fork_cache_mb: u64,
    /// Accepted: what was read is kept only in the data folder, if there is one
    #[arg(long)]
    no_storage_caching: bool,
    #[command(flatten)]
    upstream: UpstreamOptions,
}

/// Sets the default values that are others for forks, if the command can begin one.
pub(crate) fn with_defaults_of_forks(command: Command) -> Command {
    if !command.get_arguments().any(|argument| argument.get_id() == "fork_url") {
        return command;
    }
    let timeout = OsStr::from(format!("{}s", FORK_CALL_TIMEOUT.as_secs()));
    // `mut_arg` would make it the last option.
    command.mut_args(|argument| match argument.get_id().as_str() {
        "call_timeout" => argument.default_value_if("fork_url", ArgPredicate::IsPresent, timeout.clone()),
        _ => argument,
    })
}

impl ForkArguments {
    /// Returns the chain to continue, or `None` if the chain is no fork: neither is a URL given, nor is a fork in the folder.
    pub(super) fn source(&self, options: &DevOptions, context: &Context) -> Result<Option<ForkSource>, CommandError> {
        let continues = options.folder().is_some_and(Fork::exists);
        if self.fork_url.is_empty() && !continues {
            let begins = self.fork_block_number.is_some() || self.fork_transaction_hash.is_some();
            let given = self.offline || self.fork_trust || begins || self.fork_chain_id.is_some();
            return if given { Err(CommandError::NoForkUrl) } else { Ok(None) };
        }
        let point = self.fork_block_number.map(ForkPoint::At);
        let point = point.or(self.fork_transaction_hash.map(ForkPoint::Before));
        let rules = match (&options.chain.genesis, options.chain.hardfork) {
            (Some(path), _) => {
                let Genesis { spec, .. } = open::read_genesis(Some(path), context)?;
                Some(ForkRules::Spec(Box::new(spec)))
            }
            (None, Some(hardfork)) => Some(ForkRules::Hardfork(hardfork)),
            (None, None) => None,
        };
        let accounts = Accounts::derive(&options.accounts()).map_err(DevNodeError::from)?;
        Ok(Some(ForkSource {
            urls: self.fork_url.clone(),
            offline: self.offline,
            point,
            upstream: self.upstream.clone(),
            limits: ForkOptions {
                contents_bytes: self.fork_cache_mb.saturating_mul(1 << 20),
                trusts: self.fork_trust,
                ..ForkOptions::default()
            },
            accounts: accounts.addresses().chain([options.chain.coinbase.0]).collect(),
            network: self.fork_chain_id,
            chain_id: options.chain.chain_id,
            rules,
            relaxations: options.rules.relaxations(None)?,
        }))
    }
}

/// Opens the fork, and the chain that continues it, in `folder` or in memory.
pub(super) fn open(
    folder: Option<&Path>,
    source: &ForkSource,
    caches: &CacheOptions,
    context: &Context,
) -> Result<(Fork, Arc<Store>), CommandError> {
    if let Some(folder) = folder {
        Store::check_usable(folder).map_err(|error| CommandError::store(folder, error))?;
    }
    let fork = Fork::open(folder, source, context)?;
    let (first, base) = (fork.first.clone(), Arc::new(fork.base.clone()));
    let store = match folder {
        Some(path) => {
            let options = Options { cache_bytes: caches.cache_bytes(), ..Options::default() };
            Store::open_fork(path, first, base, options).map_err(|error| CommandError::store(path, error))?
        }
        None => {
            let options = Options { cache_bytes: caches.cache_bytes(), ..Options::in_memory() };
            Store::fork_in_memory(first, base, options)?
        }
    };
    let block = fork.first.header.block_ref();
    tracing::info!(block = block.number, hash = ?block.hash, other_chain = fork.network, "the chain continues that of another server");
    if fork.base.trusts() {
        tracing::warn!(
            "the state of the other chain is not verified (`fork-trust`): there are no proofs of it, nor of states on top"
        );
    }
    Ok((fork, Arc::new(store)))
}

/// Applies the options for the first block of a new fork, which is given by the other chain, to the next one.
pub(super) fn configure(options: &DevOptions, producer: &Producer) -> Result<(), ProducerError> {
    let chain = &options.chain;
    if let Some(gas_limit) = chain.gas_limit {
        producer.set_gas_limit(gas_limit)?;
    }
    if let Some(base_fee) = chain.base_fee {
        producer.set_next_base_fee(base_fee)?;
    }
    if let Some(timestamp) = chain.timestamp {
        producer.set_time(timestamp)?;
    }
    Ok(())
}
