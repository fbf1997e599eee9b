//! `ethnode dev`: a development chain with accounts whose keys are public.

mod access;
mod anvil;
mod anvil_options;
mod banner;
mod fork;
mod options;
mod rules;
mod state_file;
mod summary;
mod terminal;

#[cfg(test)]
mod tests;

pub(crate) use anvil::{AnvilOptions, insert_command, version};
pub(crate) use anvil_options::instead;
pub(crate) use fork::with_defaults_of_forks;
pub(crate) use options::DevOptions;
pub(crate) use terminal::Terminal;

use crate::chain::open::{self, Start};
use crate::chain::publish;
use crate::error::CommandError;
use crate::options::Target;
use crate::server::{metrics, notify, reachable, reload, write_failure};
use crate::{files, logging};
use access::Access;
use banner::{AnvilBanner, Banner};
use node_chain::Genesis;
use node_core::clock::{Clock, SystemClock};
use node_core::context::Context;
use node_core::pool::PoolLimits;
use node_core::producer::ForkControl;
use node_dev::fork::{Fork, ForkSource};
use node_dev::{AccountOptions, Accounts, DevGenesis, DevNode, DevNodeBuilder, DevNodeError};
use node_http::{AllowedOrigin, Origin, ServeError, Shutdown, check, serve};
use node_rpc::Dump;
use node_store::{Store, SyncPolicy};
use state_file::StateFile;
use std::sync::Arc;
use summary::Summary;

/// Creates the chain, or opens the one in the folder, and serves it until SIGINT or SIGTERM. `terminal` shows
/// transactions and failures.
pub(crate) fn run(options: &DevOptions, terminal: Option<Terminal>) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals_then(notify::stopping)?;
    let mut http = options.server.http_config()?;
    http.access.remote_control = options.force_control;
    http.intervals_in_seconds = options.is_anvil;
    if http.access.cors_origins.is_empty() {
        // For pages under development, and for wallets.
        http.access.cors_origins = [Origin::Loopback, Origin::Extensions].map(AllowedOrigin::from).into();
    }
    // Before the folder is created.
    check(&http)?;
    options.storage.state_files.to_load().map_or(Ok(()), files::check)?;
    reload::register(&http);
    let _metrics = metrics::serve(&options.server, &http)?;
    let folder = options.folder();
    let target = Target::new(&options.publish, Some(&options.restore))?;
    let source = options.fork.source(options, shutdown.context())?;
    if source.is_some() && target.is_some() {
        return Err(CommandError::ForkShared);
    }
    publish::restore(&options.restore, target.as_ref(), folder, shutdown.context())?;
    options.storage.creation.check(folder)?;
    metrics::include_folder(&http, folder);
    let is_new_fork = source.is_some() && !folder.is_some_and(Fork::exists);
    let (builder, store, dump) = match &source {
        Some(source) => continue_other(options, source, shutdown.context())?,
        None => begin(options, target.as_ref(), shutdown.context())?,
    };
    write_failure::watch(&options.server.operation, store.clone())?;
    let chain = builder
        .accounts(options.accounts())
        .mining(options.mining.mining())
        .order(options.mining.order.into())
        .clock(Arc::new(SystemClock))
        .limits(options.server.limits())
        .pool_limits(PoolLimits { minimum_tip: 0, ..options.server.pool })
        .filter_limits(options.server.filter_limits())
        .code_cache_bytes(options.storage.caches.code_cache_bytes())
        .client_version(&*options.output.client_version)
        .spawn()
        .map_err(|error| match (error, folder) {
            (DevNodeError::Backend(error), Some(folder)) => CommandError::store(folder, error),
            (error, _) => error.into(),
        })?;
    let mut dumped = None;
    let state_files = &options.storage.state_files;
    if let Some(producer) = chain.producer() {
        if is_new_fork {
            fork::configure(options, producer)?;
        } else if source.is_none() && options.chain.timestamp.is_some() {
            producer.continue_time()?;
        }
        if let Some(path) = state_files.to_load() {
            // A new fork has edits: the balances of its accounts.
            if is_new_fork || (source.is_none() && producer.is_untouched()?) {
                let read = || state_file::read(path, shutdown.context());
                dump.map_or_else(read, Ok)?.load(producer)?;
            } else {
                tracing::warn!("the folder has a chain; {} is not loaded", path.display());
            }
        }
        producer.impersonate_all(options.accounts.auto_impersonate);
        dumped = state_files.to_dump().map(|path| StateFile::new(producer.clone(), path)).transpose()?;
    }
    let writing = dumped.clone().zip(state_files.state_interval).map(|(file, interval)| file.write_every(interval));
    let writing = writing.transpose().map_err(CommandError::Output)?;
    let following = terminal.map(|terminal| terminal.follow(chain.node().clone()));
    let following = following.transpose().map_err(CommandError::Output)?;
    let gas_price = chain.gas_price(&Context::unbounded())?;
    let access = Access::new(&http);
    let (scheme, base_path, picks_port) = (http.scheme(), http.listen.base_path.clone(), http.listen.port == 0);
    serve(chain.node().clone(), http, shutdown, |address| {
        let url = format!("{scheme}://{}{}", reachable(address), base_path.as_str());
        let fork = chain.fork().map(ForkControl::info);
        let balance = fork.is_some().then_some(options.accounts.balance);
        let summary = Summary::new(chain.accounts(), chain.genesis(), balance, fork, gas_price, folder, url);
        if let Some(path) = &options.output.config_out {
            summary.write(path).map_err(|error| ServeError::Ready(error.into()))?;
        }
        let silent = options.output.silent;
        let banner = match (silent, options.is_anvil) {
            (true, _) => String::new(),
            (_, true) => AnvilBanner(&summary).to_string(),
            (_, false) => Banner { summary: &summary, access: &access }.to_string(),
        };
        let listening = match options.is_anvil {
            true => format!("Listening on {address}"),
            false => format!("listening on {scheme}://{address}{base_path}"),
        };
        // A port chosen by the system is not shown anywhere else.
        if !silent || picks_port {
            logging::announce(&banner, &listening);
        }
        notify::ready(address, scheme == "https");
        Ok(())
    })?;
    drop((following, writing));
    dumped.map_or(Ok(()), |file| file.write())?;
    // First, because a change may be waiting for the shared store.
    store.stop_publishing();
    // Dropping the node may not close the store, because requests that exceeded their deadline may still hold it.
    Ok(store.flush()?)
}

/// A chain that is about to be started, its store, and the state file to load into it.
type Beginning = (DevNodeBuilder, Arc<Store>, Option<Dump>);

/// Creates a chain, or opens the one in the folder.
fn begin(options: &DevOptions, target: Option<&Target>, context: &Context) -> Result<Beginning, CommandError> {
    let (folder, caches) = (options.folder(), &options.storage.caches);
    let recorded = folder.map(|folder| open::recorded_genesis(folder, caches)).transpose()?.flatten();
    // A folder may have newer accounts than the file: after a crash, the dump of the last exit.
    let dump = match (&recorded, options.storage.state_files.to_load()) {
        (None, Some(path)) => Some(state_file::read(path, context)?),
        _ => None,
    };
    let recorded_rules = recorded.as_ref().map(|genesis| genesis.spec.relaxations);
    let mut genesis = match &options.chain.genesis {
        Some(path) => {
            let mut genesis = open::read_genesis(Some(path), context)?;
            genesis.spec.chain_id = options.chain.chain_id.unwrap_or(genesis.spec.chain_id);
            genesis
        }
        None => {
            // Without options for the genesis, the recorded genesis of the folder is used.
            let chosen = DevGenesis { contracts: false, ..options.genesis() };
            let is_default = chosen == DevGenesis::default() && options.accounts() == AccountOptions::default();
            match recorded {
                Some(recorded) if is_default => recorded,
                recorded => {
                    let time = recorded.map(|genesis| genesis.header.timestamp);
                    generated_genesis(options, time.or(dump.as_ref().and_then(|dump| dump.first_timestamp)))?
                }
            }
        }
    };
    let given = genesis.spec.relaxations;
    genesis.spec.relaxations = options.rules.relaxations(recorded_rules)?.union(given);
    let start = Start::from(genesis);
    let store = open::store(folder, &start, caches, SyncPolicy::Always, target, context)?;
    open::log_chain(folder, &start.genesis, &*store)?;
    let builder = DevNode::builder().genesis(start.genesis).backend(store.clone());
    Ok((builder, store, dump))
}

/// Begins a chain that continues another one, or opens the one in the folder.
fn continue_other(options: &DevOptions, source: &ForkSource, context: &Context) -> Result<Beginning, CommandError> {
    let folder = options.folder();
    let (fork, store) = fork::open(folder, source, &options.storage.caches, context)?;
    let builder = DevNode::builder()
        .opened_fork(fork, store.clone(), folder.is_some())
        .fork_balance(options.accounts.balance)
        .coinbase(options.chain.coinbase.0);
    Ok((builder, store, None))
}

/// Builds the genesis that funds the accounts of `options`. Unless they specify its time, that is the current time, or
/// the `time` of a chain that is continued: contracts expect the head to be about as old as the next block.
fn generated_genesis(options: &DevOptions, time: Option<u64>) -> Result<Genesis, DevNodeError> {
    let accounts = Accounts::derive(&options.accounts())?;
    let chosen = options.genesis();
    let timestamp = chosen.timestamp.or(time).or_else(|| Some(SystemClock.now_millis() / 1_000));
    Ok(DevGenesis { timestamp, ..chosen }.build(accounts.addresses())?)
}
