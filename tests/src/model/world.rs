//! The node that is compared with the model.

use super::pool::QUEUED_PER_ACCOUNT;
use node_chain::Genesis;
use node_core::backend::{StateBackend, View};
use node_core::clock::ManualClock;
use node_core::filters::FilterLimits;
use node_core::node::{Finality, Limits, Node};
use node_core::pool::{PoolLimits, TransactionOrder};
use node_core::producer::{Mining, Production};
use node_evm::EvmExecutor;
use node_store::{Options, Store};
use node_types::Address;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fs, io};
use tempfile::TempDir;

/// Maximum number of filters: few, so that the limit is reached.
pub(super) const MAX_FILTERS: usize = 24;

/// A node in this process, and what survives its restarts.
pub struct World {
    /// The genesis.
    pub genesis: Genesis,
    /// The clock.
    pub clock: Arc<ManualClock>,
    /// Order of transactions in a block.
    pub order: TransactionOrder,
    /// Beneficiary of the blocks.
    pub coinbase: Address,
    medium: Medium,
    node: Option<Node>,
}

/// Where the chain is stored.
enum Medium {
    Memory(Arc<Store>),
    Folder(TempDir),
}

/// Small limits and caches, so that much is written to runs and read back.
fn small(options: Options) -> Options {
    Options { cache_bytes: 8 << 20, commit_rows: 2_000, blocks_in_memory: 8, ..options }
}

impl World {
    /// Creates a new chain, in memory or in a folder.
    pub fn new(genesis: Genesis, clock: u64, in_folder: bool, order: TransactionOrder, coinbase: Address) -> Self {
        let medium = if in_folder {
            Medium::Folder(tempfile::tempdir().expect("a folder"))
        } else {
            Medium::Memory(Arc::new(
                Store::in_memory(genesis.block(), small(Options::in_memory())).expect("a genesis block"),
            ))
        };
        Self { genesis, clock: Arc::new(ManualClock::at(clock)), order, coinbase, medium, node: None }
    }

    /// The node.
    ///
    /// # Panics
    /// If it is not open.
    pub fn node(&self) -> &Node {
        self.node.as_ref().expect("it is open")
    }

    /// The current view, including edits.
    pub fn view(&self) -> Arc<dyn View> {
        self.node().backend().view().expect("a view")
    }

    /// Ends the node like a crash: data in memory is not written.
    pub fn crash(&mut self) {
        if let Medium::Folder(folder) = &mut self.medium {
            let copy = loop {
                if let Some(copy) = copy_at_rest(folder.path()).expect("a copy") {
                    break copy;
                }
            };
            self.node = None;
            *folder = copy;
        }
    }

    /// Opens the node, or reopens it.
    pub fn open(&mut self, mining: Mining) {
        self.node = None;
        let backend: Arc<dyn StateBackend> = match &self.medium {
            Medium::Memory(backend) => backend.clone(),
            Medium::Folder(folder) => Arc::new(
                Store::open(folder.path(), self.genesis.block(), small(Options::default())).expect("the folder opens"),
            ),
        };
        let spec = Arc::new(self.genesis.spec.clone());
        let production = Production { mining, order: self.order, coinbase: Some(self.coinbase) };
        let node = Node::builder(backend, Arc::new(EvmExecutor::new(spec.clone())), spec)
            .clock(self.clock.clone())
            .production(production)
            .finality(Finality::DEVELOPMENT)
            .limits(Limits { logs: usize::MAX >> 1, ..Limits::default() })
            .pool_limits(PoolLimits { queued_per_account: QUEUED_PER_ACCOUNT, ..PoolLimits::default() })
            .filter_limits(FilterLimits {
                ttl: Duration::from_secs(1 << 30),
                page: 1 << 30,
                count: MAX_FILTERS,
                ..Default::default()
            })
            .open();
        self.node = Some(node.expect("the node opens"));
    }
}

/// Copies the folder. Returns `None` if a file changed meanwhile: the store merges in the background, and a mix of
/// files from before and after cannot result from a crash.
fn copy_at_rest(folder: &Path) -> io::Result<Option<TempDir>> {
    let before = files(folder)?;
    let copy = tempfile::tempdir()?;
    for name in before.keys() {
        match fs::copy(folder.join(name), copy.path().join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
    }
    Ok((files(folder)? == before).then_some(copy))
}

/// Returns the inode, the size in bytes and the time of the last change of each file, by name.
fn files(folder: &Path) -> io::Result<BTreeMap<OsString, (u64, u64, SystemTime)>> {
    let mut files = BTreeMap::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        match file.metadata() {
            Ok(metadata) => files.insert(file.file_name(), (metadata.ino(), metadata.len(), metadata.modified()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
    }
    Ok(files)
}
