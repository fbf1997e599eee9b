//! Opening the chain on which a command operates.

use super::publish;
use crate::error::CommandError;
use crate::files;
use crate::options::data_dir::{DataDir, default_folder};
use crate::options::{
    self, CacheOptions, CreationOptions, ExistingChain, ReadableChain, ServedStore, StorageOptions, Target,
};
use crate::server::notify::{self, LongStart};
use node_chain::genesis::{ContinueError, Continued, ForkChange, LargeGenesis};
use node_chain::{Genesis, dev_genesis};
use node_core::backend::{BackendError, BaseState, StateBackend, View};
use node_core::context::Context;
use node_core::protocol::ChainSpec;
use node_dev::fork::Fork;
use node_evm::EvmExecutor;
use node_fork::{Checked, ContentsStats};
use node_store::files::{DiskFolder, Folder, MemoryFolder};
use node_store::{Options, SharedOptions, Store, StoreError, StoreReader, SyncPolicy};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Time between two looks whether a shared store has a chain.
const WAIT: Duration = Duration::from_millis(500);

/// Reads a genesis file. Returns the built-in development genesis if `path` is `None`.
pub(crate) fn read_genesis(path: Option<&Path>, context: &Context) -> Result<Genesis, CommandError> {
    let Some(path) = path else { return Ok(dev_genesis()) };
    notify::starting(format_args!("reading {}", path.display()));
    let json = files::read(path, context)?;
    Genesis::parse(&json).map_err(|source| CommandError::Genesis { path: path.to_owned(), source })
}

/// Size of a genesis file in bytes at which its accounts are sorted in temporary files instead of in memory, and are
/// not recorded again beside the genesis state. The record is part of every manifest.
const LARGE_GENESIS: u64 = 1 << 20;

/// The genesis of a chain.
pub(crate) struct Start {
    /// The genesis. If it is large, it does not include the accounts.
    pub(crate) genesis: Genesis,
    large: Option<LargeGenesis>,
}

impl From<Genesis> for Start {
    fn from(genesis: Genesis) -> Self {
        Self { genesis, large: None }
    }
}

/// A file that is read during the start.
struct Watched<R> {
    file: R,
    start: LongStart,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.start.progress();
        self.file.read(buffer)
    }
}

impl Start {
    /// Reads a genesis file of any size. Returns the built-in development genesis if `path` is `None`.
    fn read(path: Option<&Path>, context: &Context) -> Result<Self, CommandError> {
        let Some(path) = path else { return Ok(dev_genesis().into()) };
        let (file, length) = files::open(path, context)?;
        if length < LARGE_GENESIS {
            return read_genesis(Some(path), context).map(Self::from);
        }
        let status = format!("sorting the accounts of {}", path.display());
        tracing::info!(bytes = length, "{status}");
        let file = Watched { file, start: LongStart::begin(status) };
        let large = LargeGenesis::read(file, context, tempfile::tempfile).map_err(|source| match context.check() {
            Ok(()) => CommandError::Genesis { path: path.to_owned(), source },
            Err(_) => CommandError::Interrupted,
        })?;
        Ok(Self { genesis: large.genesis().clone(), large: Some(large) })
    }

    /// Opens the chain in `folder`, or creates it there. Fails if `context` is cancelled.
    fn open(&self, folder: Arc<dyn Folder>, context: &Context, options: Options) -> Result<Store, BackendError> {
        let block = self.genesis.block();
        match &self.large {
            None => Store::open_in(folder, block, options),
            Some(large) => {
                let status = "writing the accounts of the genesis file";
                let mut start = None;
                let state = large.state().map(|part| {
                    context.check()?;
                    start.get_or_insert_with(|| LongStart::begin(status.to_owned())).progress();
                    part.map_err(|error| BackendError::Storage(error.into()))
                });
                Store::open_large_in(folder, block, state, options)
            }
        }
    }
}

/// Returns the genesis of the chain to open: that of the file; without a file, the one recorded in the folder;
/// without a record, the built-in development genesis.
pub(crate) fn start(
    file: Option<&Path>,
    storage: &StorageOptions,
    creation: &CreationOptions,
    context: &Context,
) -> Result<Start, CommandError> {
    // Before a large genesis is read.
    if let Some(DataDir::Folder(folder)) = &storage.data_dir {
        creation.check(Some(folder))?;
    }
    match (file, &storage.data_dir) {
        (None, Some(DataDir::Folder(folder))) => {
            Ok(recorded_genesis(folder, &storage.caches)?.unwrap_or_else(dev_genesis).into())
        }
        (file, Some(DataDir::Folder(folder))) if Store::exists(folder) => {
            // A folder that is in use is refused at once, not after a large file was read.
            DiskFolder::open(folder).map_err(|error| CommandError::store(folder, StoreError::from(error).into()))?;
            Start::read(file, context)
        }
        (file, _) => Start::read(file, context),
    }
}

/// Returns the genesis that is recorded in a folder, or `None` if there is no chain, or one with a large genesis.
pub(crate) fn recorded_genesis(folder: &Path, caches: &CacheOptions) -> Result<Option<Genesis>, CommandError> {
    if !Store::exists(folder) {
        return Ok(None);
    }
    let failed = |error| CommandError::store(folder, error);
    // The log remains as it is, in case the chain will be published.
    let options = Options { publish: true, ..store_options(caches) };
    let store = Store::open_existing(folder, options).map_err(failed)?;
    log_removed(&store, folder);
    genesis_of(&store).map_err(failed)
}

/// Returns the genesis that is recorded in `store`, or `None` if it is large.
pub(crate) fn genesis_of(store: &Store) -> Result<Option<Genesis>, BackendError> {
    let Some(file) = store.genesis_file() else { return Ok(None) };
    let genesis = Genesis::parse(&file).map_err(ContinueError::Record);
    genesis.map(Some).map_err(|error| BackendError::Storage(error.into()))
}

/// Continues the chain of a folder under the rules of `genesis`, and records the genesis there. Logs the forks that
/// are scheduled differently than before, which are all after the head.
fn continue_with(store: &Store, genesis: &Genesis) -> Result<(), BackendError> {
    let view = store.view()?;
    let Continued { is_new, changes } = compare(&*view, store.genesis_file().as_deref(), genesis)?;
    if !changes.is_empty() {
        check_side_blocks(store, &*view, &changes)?;
    }
    if is_new {
        store.record_genesis_file(&genesis.to_json())?;
    }
    for change in changes {
        tracing::warn!("the fork schedule changes after the head: {change}");
    }
    Ok(())
}

/// Checks that the chain of `view`, whose genesis file is `recorded`, can continue under the rules of `genesis`.
fn compare(view: &dyn View, recorded: Option<&[u8]>, genesis: &Genesis) -> Result<Continued, BackendError> {
    let expected = genesis.block().header.hash;
    let found = view.canonical_hash(0)?.ok_or(BackendError::UnknownBlock(0))?;
    if found != expected {
        return Err(StoreError::OtherGenesis { found, expected }.into());
    }
    let head = view.head();
    let header = view.header(head.hash.into())?.ok_or(BackendError::UnknownBlock(head.number))?;
    genesis.continue_from(recorded, &header).map_err(|error| BackendError::Storage(error.into()))
}

/// Refuses changes of the schedule that concern side blocks: they would not be executed again if they became canonical.
fn check_side_blocks(store: &Store, view: &dyn View, changes: &[ForkChange]) -> Result<(), BackendError> {
    for block in store.side_blocks() {
        let header = view.header(block.hash.into())?.ok_or(BackendError::UnknownBlock(block.number))?;
        if let Some(change) = changes.iter().find(|change| change.concerns(&header)) {
            let (number, time) = (block.number, header.header.timestamp);
            let refused = ContinueError::SideBlock { number, time, change: Box::new(change.clone()) };
            return Err(BackendError::Storage(refused.into()));
        }
    }
    Ok(())
}

/// Returns the data folder of the chain with this genesis, which has a chain or may get one; `None` for a chain in
/// memory.
pub(crate) fn folder(
    options: &StorageOptions,
    creation: &CreationOptions,
    genesis: &Genesis,
) -> Result<Option<PathBuf>, CommandError> {
    let folder = match &options.data_dir {
        Some(DataDir::Memory) => None,
        Some(DataDir::Folder(path)) => Some(path.clone()),
        None => Some(default_folder(genesis.block().header.hash)?),
    };
    creation.check(folder.as_deref())?;
    Ok(folder)
}

/// Logs which chain was opened.
pub(crate) fn log_chain(
    folder: Option<&Path>,
    genesis: &Genesis,
    backend: &dyn StateBackend,
) -> Result<(), CommandError> {
    let place = folder.map_or_else(
        || "the chain is kept in memory and lost when the server stops".to_owned(),
        |path| format!("data folder {}", path.display()),
    );
    log_chain_at(&place, genesis, backend)
}

/// Logs which chain was opened, and where it is.
pub(crate) fn log_chain_at(place: &str, genesis: &Genesis, backend: &dyn StateBackend) -> Result<(), CommandError> {
    let (chain_id, view) = (genesis.spec.chain_id, backend.view()?);
    // The backend has the hash; computing it again would require the root of the whole genesis state.
    let (head, first) = (view.head(), view.canonical_hash(0)?.ok_or(BackendError::UnknownBlock(0))?);
    let (genesis, number, hash) = (format!("{first:#x}"), head.number, format!("{:#x}", head.hash));
    tracing::info!(chain_id, genesis, head = number, head_hash = hash, "{place}");
    Ok(())
}

/// Opens the chain in `folder`, or creates it there; without a folder, starts a chain in memory. This is the only place
/// that chooses a backend. Publishes the chain to `target`, if that is given.
pub(crate) fn store(
    folder: Option<&Path>,
    start: &Start,
    caches: &CacheOptions,
    sync: SyncPolicy,
    target: Option<&Target>,
    context: &Context,
) -> Result<Arc<Store>, CommandError> {
    let store = match folder {
        Some(path) => create_store(path, start, caches, sync, target, context)?,
        None if target.is_some() => return Err(CommandError::NoFolder { needed_by: "--publish" }),
        None => {
            let options = Options { cache_bytes: caches.cache_bytes(), ..Options::in_memory() };
            start.open(Arc::new(MemoryFolder::default()), context, options)?
        }
    };
    Ok(Arc::new(store))
}

/// Opens the chain in a folder, or creates it there. Publishes it to `target`, if that is given.
pub(crate) fn create_store(
    path: &Path,
    start: &Start,
    caches: &CacheOptions,
    sync: SyncPolicy,
    target: Option<&Target>,
    context: &Context,
) -> Result<Store, CommandError> {
    target.map_or(Ok(()), |target| options::check_apart(&target.url, path))?;
    let options = match sync {
        SyncPolicy::Always => Options { cache_bytes: caches.cache_bytes(), ..Options::default() },
        SyncPolicy::OnDemand => store_options(caches),
    };
    let options = Options { publish: target.is_some(), ..options };
    let open = || {
        Store::check_usable(path)?;
        let folder = DiskFolder::open(path).map_err(StoreError::from)?;
        let store = start.open(Arc::new(folder), context, options)?;
        continue_with(&store, &start.genesis)?;
        Ok(store)
    };
    let store = open().map_err(|error| CommandError::store(path, error))?;
    log_removed(&store, path);
    if let Some(target) = target {
        publish::publish(&store, path, target, context)?;
    }
    Ok(store)
}

/// Logs how many changes the store has removed when it was opened, because they had been refused.
fn log_removed(store: &Store, path: &Path) {
    let removed = store.removed_refused();
    if removed > 0 {
        tracing::warn!(
            removed,
            "changes were removed from {} that were refused because another server had become the writer",
            path.display()
        );
    }
}

/// Opens the chain in a folder for reading, while another process may write it. Returns it with its genesis: that of
/// `file`, of the folder, or the built-in one.
pub(crate) fn reader(
    file: Option<&Path>,
    storage: &StorageOptions,
    context: &Context,
) -> Result<(Arc<StoreReader>, Genesis), CommandError> {
    let given = file.map(|file| Start::read(Some(file), context)).transpose()?.map(|start| start.genesis);
    let path = match &storage.data_dir {
        Some(DataDir::Memory) => return Err(CommandError::InMemory { needed_by: "--read-only" }),
        Some(DataDir::Folder(path)) => path.clone(),
        None => default_folder(given.clone().unwrap_or_else(dev_genesis).block().header.hash)?,
    };
    let options = Options { cache_bytes: storage.caches.cache_bytes(), ..Options::default() };
    let open = || {
        let reader = StoreReader::open(&path, options)?;
        let genesis = genesis_of_reader(&reader, given)?;
        Ok((Arc::new(reader), genesis))
    };
    open().map_err(|error| CommandError::store(&path, error))
}

/// Returns the genesis of the chain of `reader`: the one that was `given`, that of the chain, or the built-in one.
fn genesis_of_reader(reader: &StoreReader, given: Option<Genesis>) -> Result<Genesis, BackendError> {
    let recorded = reader.genesis_file();
    let parse = |file: &Vec<u8>| Genesis::parse(file).map_err(ContinueError::Record);
    let parsed = recorded.as_ref().map(parse).transpose();
    let parsed = parsed.map_err(|error| BackendError::Storage(error.into()))?;
    let genesis = given.or(parsed).unwrap_or_else(dev_genesis);
    compare(&*reader.view()?, recorded.as_deref(), &genesis)?;
    Ok(genesis)
}

/// Opens the chain in a shared store for reading, once there is one. Returns it with its genesis: that of `file`, of the
/// store, or the built-in one.
pub(crate) fn shared_reader(
    store: &ServedStore,
    file: Option<&Path>,
    caches: &CacheOptions,
    context: &Context,
) -> Result<(Arc<StoreReader>, Genesis), CommandError> {
    let given = file.map(|file| Start::read(Some(file), context)).transpose()?.map(|start| start.genesis);
    let objects = options::open_objects(&store.store)?;
    store.cache_dir.as_ref().map_or(Ok(()), |cache| options::check_apart(&store.store, cache))?;
    let folder = |path: &PathBuf| -> Result<(Arc<dyn Folder>, u64), CommandError> {
        let folder =
            DiskFolder::open(path).map_err(|error| CommandError::store(path, StoreError::from(error).into()))?;
        Ok((Arc::new(folder), store.cache_disk_bytes()))
    };
    let options = SharedOptions {
        cache_bytes: caches.cache_bytes(),
        disk: store.cache_dir.as_ref().map(folder).transpose()?,
        max_lag: store.max_lag,
        context: context.clone(),
        ..SharedOptions::default()
    };
    let failed = |error| CommandError::shared_store(&store.store, error);
    let mut waiting = false;
    let open = || {
        let reader = StoreReader::open_shared(Arc::clone(&objects), options.clone())?;
        let genesis = genesis_of_reader(&reader, given.clone())?;
        Ok((Arc::new(reader), genesis))
    };
    loop {
        let error = match publish::outlast_outage(&store.store, context, open) {
            Ok(opened) => return Ok(opened),
            Err(error) => error,
        };
        let BackendError::Storage(source) = &error else { return Err(failed(error)) };
        if !matches!(source.downcast_ref(), Some(StoreError::NoChain)) {
            return Err(failed(error));
        }
        if !std::mem::replace(&mut waiting, true) {
            tracing::info!("there is no chain in {} yet; waiting until one is published", store.store);
        }
        notify::starting(format_args!("waiting for a chain in {}", store.store));
        thread::sleep(WAIT);
        context.check().map_err(|_| CommandError::Interrupted)?;
    }
}

/// Creates the executor. This is the only place that chooses one.
pub(crate) fn evm(spec: &Arc<ChainSpec>, caches: &CacheOptions) -> Arc<EvmExecutor> {
    Arc::new(EvmExecutor::with_code_cache(spec.clone(), caches.code_cache_bytes()))
}

/// If `chain` is in a shared store, checks that it has all runs, so that all missing ones are named.
pub(crate) fn check_runs(chain: &ReadableChain, context: &Context) -> Result<(), CommandError> {
    let Some(url) = &chain.shared.store else { return Ok(()) };
    Store::check_shared_runs(options::open_objects(url)?, context)
        .map_err(|error| CommandError::shared_store(url, error))
}

/// Opens a snapshot of an existing chain for `command`, whose name appears in errors. A server may continue to use
/// the folder.
pub(crate) fn open_snapshot(
    chain: &ReadableChain,
    command: &'static str,
    context: &Context,
) -> Result<Store, CommandError> {
    open_snapshot_with(chain, command, store_options(&chain.existing.storage.caches), context)
}

/// Like [`open_snapshot`], but rows that are only in the log stay in memory until the store is flushed.
pub(crate) fn open_snapshot_of_files(chain: &ReadableChain, command: &'static str) -> Result<Store, CommandError> {
    let options = store_options(&chain.existing.storage.caches);
    let options = Options { commit_rows: usize::MAX, memory_bytes: usize::MAX, ..options };
    open_snapshot_with(chain, command, options, &Context::unbounded())
}

fn open_snapshot_with(
    chain: &ReadableChain,
    command: &'static str,
    options: Options,
    context: &Context,
) -> Result<Store, CommandError> {
    let ReadableChain { existing, shared } = chain;
    if let Some(url) = &shared.store {
        let store = Store::open_shared_snapshot(options::open_objects(url)?, options, context);
        return continued(store, existing, |error| CommandError::shared_store(url, error));
    }
    let path = existing_folder(existing, command)?;
    let base = || match Fork::known_base(&path) {
        Ok(Some(base)) => Ok(Arc::new(base) as Arc<dyn BaseState>),
        Ok(None) => Err(StoreError::NoChain.into()),
        Err(error) => Err(BackendError::Storage(Box::new(error))),
    };
    let store = match Fork::exists(&path) {
        true => Store::open_fork_snapshot(&path, base, options),
        false => Store::open_snapshot(&path, options),
    };
    continued(store, existing, |error| CommandError::store(&path, error))
}

/// Checks what was fetched of the chain that the one in the folder continues. Returns `None` if it is no fork.
pub(crate) fn check_fetched(chain: &ReadableChain, command: &'static str) -> Result<Option<Checked>, CommandError> {
    let Some(path) = folder_of(chain, command)? else { return Ok(None) };
    let Some(base) = Fork::known_base(&path)? else { return Ok(None) };
    let checked = base.contents().check().map_err(|source| CommandError::Read { path: path.clone(), source })?;
    match checked.damaged {
        0 => Ok(Some(checked)),
        damaged => Err(CommandError::DamagedFork { path, damaged }),
    }
}

/// Returns how much was fetched of the chain that the one in the folder continues. Returns `None` if it is no fork.
pub(crate) fn fetched(chain: &ReadableChain, command: &'static str) -> Result<Option<ContentsStats>, CommandError> {
    let Some(path) = folder_of(chain, command)? else { return Ok(None) };
    Ok(Fork::known_base(&path)?.map(|base| base.contents().stats()))
}

/// Returns an error if a folder has a fork, which only `dev` serves.
pub(crate) fn check_no_fork(folder: Option<&Path>) -> Result<(), CommandError> {
    match folder {
        Some(path) if Fork::exists(path) => Err(CommandError::IsFork { path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// Returns the data folder of a chain; `None` if it is in a shared store.
pub(crate) fn folder_of(chain: &ReadableChain, command: &'static str) -> Result<Option<PathBuf>, CommandError> {
    match chain.shared.store {
        Some(_) => Ok(None),
        None => existing_folder(&chain.existing, command).map(Some),
    }
}

/// Opens the chain in `path` with the options of `chain`.
pub(crate) fn open_folder(path: &Path, chain: &ExistingChain) -> Result<Store, CommandError> {
    let options = store_options(&chain.storage.caches);
    let store = match Fork::known_base(path)? {
        Some(base) => Store::open_existing_fork(path, Arc::new(base), options),
        None => Store::open_existing(path, options),
    };
    continued(store, chain, |error| CommandError::store(path, error))
}

/// Continues the chain under the rules of the genesis file, if one was given, and records it.
fn continued(
    store: Result<Store, BackendError>,
    chain: &ExistingChain,
    failed: impl Fn(BackendError) -> CommandError,
) -> Result<Store, CommandError> {
    let store = store.map_err(&failed)?;
    if let Some(genesis) = &chain.genesis {
        let Start { genesis, .. } = Start::read(Some(genesis), &Context::unbounded())?;
        continue_with(&store, &genesis).map_err(failed)?;
    }
    Ok(store)
}

/// Returns the data folder of an existing chain.
pub(crate) fn existing_folder(chain: &ExistingChain, command: &'static str) -> Result<PathBuf, CommandError> {
    match &chain.storage.data_dir {
        Some(DataDir::Memory) => Err(CommandError::InMemory { needed_by: command }),
        Some(DataDir::Folder(path)) => Ok(path.clone()),
        None => {
            default_folder(Start::read(chain.genesis.as_deref(), &Context::unbounded())?.genesis.block().header.hash)
        }
    }
}

fn store_options(caches: &CacheOptions) -> Options {
    Options { cache_bytes: caches.cache_bytes(), ..Options::for_import() }
}
