//! The state as of a block of another chain.

mod access;
mod claimed;
mod decoded;
mod fetch;
mod gone;
mod resolve;
mod search;

use crate::contents::{Contents, Kind};
use crate::error::{ForkError, storage};
use crate::options::ForkOptions;
use decoded::Decoded;
use gone::Gone;
use node_core::backend::{BackendError, BaseRead, BaseState};
use node_core::collecting::record;
use node_core::context::Context;
use node_core::executor::Call;
use node_core::trie::{Found, MalformedNode, find};
use node_store::files::Folder;
use node_types::consensus::{Account, EMPTY_ROOT};
use node_types::trie::NibblePath;
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use node_upstream::{HashedHeader, Upstream, UpstreamError};
use parking_lot::{Mutex, RwLock};
use resolve::Unresolved;
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The state as of a block of another chain: what was fetched of it, and the upstream that has the rest.
///
/// Reads return what is known, or fetch it together with its proof from the state root of the block. What
/// [`collecting`](node_core::collecting) collects is fetched at once. Without an upstream, reads of what was never fetched
/// fail. Clones are the same state. With [`ForkOptions::trusts`], accounts and slots come without proofs.
///
/// # Examples
/// ```no_run
/// use node_core::backend::{BaseRead, BaseState};
/// use node_core::context::Context;
/// use node_fork::{Base, ForkOptions};
/// use node_store::files::MemoryFolder;
/// use node_types::BlockId;
/// use node_upstream::{Upstream, UpstreamOptions};
/// use std::sync::Arc;
///
/// let upstream = Upstream::new(&["https://rpc.example.org"], UpstreamOptions::default())?;
/// // Compare its hash with one from another source.
/// let block = upstream.header(&Context::unbounded(), BlockId::finalized())?;
/// let folder = Arc::new(MemoryFolder::default());
/// let base = Base::open(folder, Some(upstream), block, ForkOptions::default())?;
/// let address = "0xf39Fd6e51aad88F6F4ce6aB8827279cfffFb92266".parse()?;
/// println!("{:?}", base.account(address)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Base(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Arc<Source>,
    block: HashedHeader,
    decoded: Option<Decoded>,
}

/// What the states as of all blocks have in common.
#[derive(Debug)]
struct Source {
    contents: Arc<Contents>,
    /// `None` if the fork is offline.
    connection: RwLock<Option<Connection>>,
    options: ForkOptions,
    /// How often in a row the upstream did not say what a call reads.
    unlisted: AtomicU32,
    /// Accounts with code that were read, by the hashes of their codes.
    owners: Mutex<HashMap<H256, Address>>,
    /// Hashes of codes that collected work has read and that are not known.
    wanted_codes: Mutex<HashSet<H256>>,
    /// Nodes to which no key was found. Nobody else searches for them that long.
    unresolved: Mutex<HashMap<H256, Unresolved>>,
    /// Hashes that upstreams are asked for to find out whether they read this fork, and whether it was asked for them.
    probes: Mutex<HashMap<H256, bool>>,
}

/// An upstream, and whether it has the state that the fork begins with.
#[derive(Clone, Debug)]
struct Connection {
    upstream: Upstream,
    gone: Arc<Gone>,
}

impl Connection {
    fn new(upstream: Upstream) -> Self {
        Self { upstream, gone: Arc::default() }
    }
}

impl Base {
    /// Opens the state as of `block`, whose hash the caller trusts, with the [`Contents`] in a folder. Nothing is
    /// fetched yet.
    ///
    /// # Errors
    /// If the contents cannot be opened.
    pub fn open(
        folder: Arc<dyn Folder>,
        upstream: Option<Upstream>,
        block: HashedHeader,
        options: ForkOptions,
    ) -> io::Result<Self> {
        let contents = Arc::new(Contents::open(folder, &options)?);
        Ok(Self::new(contents, upstream, block, options))
    }

    /// Creates the state as of `block` over contents that are already open, which other forks may use as well.
    pub fn new(contents: Arc<Contents>, upstream: Option<Upstream>, block: HashedHeader, options: ForkOptions) -> Self {
        let decoded = Some(Decoded::new(options.state_bytes));
        let source = Arc::new(Source {
            contents,
            connection: RwLock::new(upstream.map(Connection::new)),
            options,
            unlisted: AtomicU32::default(),
            owners: Mutex::default(),
            wanted_codes: Mutex::default(),
            unresolved: Mutex::default(),
            probes: Mutex::default(),
        });
        Self(Arc::new(Inner { source, block, decoded }))
    }

    /// Returns the state as of another block, whose hash the caller trusts, with the same contents and upstream.
    #[must_use]
    pub fn at(&self, block: HashedHeader) -> Self {
        Self(Arc::new(Inner { source: Arc::clone(&self.0.source), block, decoded: None }))
    }

    /// Returns the block.
    pub fn block(&self) -> &HashedHeader {
        &self.0.block
    }

    /// Returns what was fetched.
    pub fn contents(&self) -> &Arc<Contents> {
        &self.0.source.contents
    }

    /// Returns the upstream, or `None` if the fork is offline.
    pub fn upstream(&self) -> Option<Upstream> {
        self.connection().map(|connection| connection.upstream)
    }

    fn connection(&self) -> Option<Connection> {
        self.0.source.connection.read().clone()
    }

    /// Fetches from `upstream` from now on, also as of other blocks.
    pub fn set_upstream(&self, upstream: Upstream) {
        *self.0.source.connection.write() = Some(Connection::new(upstream));
        // This one may list keys, and what calls read.
        self.0.source.unresolved.lock().clear();
        self.0.source.unlisted.store(0, Ordering::Relaxed);
    }

    /// Returns whether an upstream reads this fork, as the fork itself does, and forks of it: whoever would read from it waited
    /// for itself. The upstream is asked for a block with a random hash, and must not have asked the fork for it.
    ///
    /// # Errors
    /// If the upstream does not respond.
    pub fn is_read_by(&self, context: &Context, upstream: &Upstream) -> Result<bool, UpstreamError> {
        let mut probe = H256::zero();
        if getrandom::fill(&mut probe.0).is_err() {
            return Ok(false);
        }
        let probes = &self.0.source.probes;
        probes.lock().insert(probe, false);
        let found = upstream.header(context, probe.into());
        let was_asked = probes.lock().remove(&probe).unwrap_or_default();
        match found {
            // No server has this block.
            Ok(_)
            | Err(UpstreamError::NotFound { .. } | UpstreamError::Refused { .. } | UpstreamError::Wrong { .. }) => {
                Ok(was_asked)
            }
            Err(_) if was_asked => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a hash is one that [`is_read_by`](Self::is_read_by) asks for, and records that the fork was asked.
    pub(crate) fn is_probe(&self, hash: H256) -> bool {
        self.0.source.probes.lock().get_mut(&hash).map(|asked| *asked = true).is_some()
    }

    /// Returns the limits.
    pub fn options(&self) -> &ForkOptions {
        &self.0.source.options
    }

    /// Returns an account if the known nodes show whether it exists.
    pub(crate) fn known_account(&self, address: Address) -> Result<Option<Option<Account>>, BackendError> {
        if let Some(account) = self.0.decoded.as_ref().and_then(|decoded| decoded.account(address)) {
            return Ok(Some(account));
        }
        if self.trusts() {
            let account = self.claimed_account(address)?;
            account.iter().for_each(|account| self.keep_account(address, *account));
            return Ok(account);
        }
        let account = match self.find(self.root(), keccak256(address))? {
            Found::Unknown { .. } => return Ok(None),
            Found::Absent => None,
            Found::Value(value) => {
                self.name(address, None);
                Some(rlp::decode::<Account>(&value).map_err(storage)?)
            }
        };
        self.keep_account(address, account);
        Ok(Some(account))
    }

    /// Returns a slot of an account with this storage if the known nodes show it.
    pub(crate) fn known_slot(
        &self,
        address: Address,
        storage_root: H256,
        slot: H256,
    ) -> Result<Option<U256>, BackendError> {
        if storage_root == EMPTY_ROOT {
            return Ok(Some(U256::zero()));
        }
        if let Some(value) = self.0.decoded.as_ref().and_then(|decoded| decoded.slot(address, slot)) {
            return Ok(Some(value));
        }
        if self.trusts() {
            let value = self.claimed_slot(address, slot)?;
            value.iter().for_each(|value| self.keep_slot(address, slot, *value));
            return Ok(value);
        }
        let value = match self.find(storage_root, keccak256(slot))? {
            Found::Unknown { .. } => return Ok(None),
            Found::Absent => U256::zero(),
            Found::Value(value) => {
                self.name(address, Some(slot));
                rlp::decode::<U256>(&value).map_err(storage)?
            }
        };
        self.keep_slot(address, slot, value);
        Ok(Some(value))
    }

    fn known_storage(&self, address: Address, slot: H256) -> Result<Option<U256>, BackendError> {
        match self.known_account(address)? {
            None => Ok(None),
            Some(account) => self.known_slot(address, account.unwrap_or_default().storage_root, slot),
        }
    }

    /// Records that an account, or a slot of it, was read that exists as of this block.
    fn name(&self, address: Address, slot: Option<H256>) {
        if self.is_own() {
            self.contents().add_name(address, slot);
        }
    }

    /// Returns whether this is the state that a fork begins with, not that of another block.
    fn is_own(&self) -> bool {
        self.0.decoded.is_some()
    }

    /// Calls `visit` with the accounts and slots that were read, are known and are not empty, until it breaks.
    pub(crate) fn read_names(
        &self,
        visit: &mut dyn FnMut(Address, Option<H256>) -> ControlFlow<()>,
    ) -> Result<(), BackendError> {
        if !self.contents().has_all_names() {
            return Err(ForkError::Unnamed.into());
        }
        for name in self.contents().names() {
            let (address, slot) = name.map_err(storage)?;
            // Another fork may have read it, as of another block.
            let Some(Some(account)) = self.known_account(address)? else { continue };
            let is_known = match slot {
                Some(slot) => {
                    self.known_slot(address, account.storage_root, slot)?.is_some_and(|value| !value.is_zero())
                }
                None => true,
            };
            if is_known && visit(address, slot).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn keep_account(&self, address: Address, account: Option<Account>) {
        if let Some(hash) = account.map(|account| account.code_hash).filter(|hash| *hash != KECCAK_EMPTY) {
            self.0.source.owners.lock().insert(hash, address);
        }
        if let Some(decoded) = &self.0.decoded {
            decoded.keep_account(address, account);
        }
    }

    fn keep_slot(&self, address: Address, slot: H256, value: U256) {
        if let Some(decoded) = &self.0.decoded {
            decoded.keep_slot(address, slot, value);
        }
    }

    /// Finds a key among the known nodes.
    fn find(&self, root: H256, key: H256) -> Result<Found, BackendError> {
        self.visit_path(root, key, |_| ())
    }

    /// Finds a key among the known nodes, and calls `visit` with each node on the path to it.
    pub(crate) fn visit_path(
        &self,
        root: H256,
        key: H256,
        mut visit: impl FnMut(&Bytes),
    ) -> Result<Found, BackendError> {
        let found = find(root, key, |hash| {
            let node = self.contents().get(Kind::Node, hash).map_err(WalkError::Io)?;
            node.iter().for_each(&mut visit);
            Ok(node)
        });
        found.map_err(|error| match error {
            WalkError::Io(error) => storage(error),
            WalkError::Malformed(error) => storage(error),
        })
    }

    /// Returns whether reads may go on without something that is not known; see [`record`].
    fn collects(&self, address: Address, slot: Option<H256>) -> bool {
        record(self.root(), || Arc::new(self.clone()), address, slot)
    }
}

/// Why a walk over known nodes ended.
enum WalkError {
    Io(io::Error),
    Malformed(MalformedNode),
}

impl From<MalformedNode> for WalkError {
    fn from(error: MalformedNode) -> Self {
        Self::Malformed(error)
    }
}

impl BaseState for Base {
    fn root(&self) -> H256 {
        self.0.block.header().state_root
    }

    fn account(&self, address: Address) -> Result<Option<Account>, BackendError> {
        if let Some(account) = self.known_account(address)? {
            return Ok(account);
        }
        if self.collects(address, None) {
            return Ok(None);
        }
        let fetched = self.fetch_unknown(&[BaseRead { address, slots: Vec::new() }])?;
        match fetched.first() {
            Some(proof) => Ok(proof.account),
            // Somebody else has just fetched it.
            None => self.known_account(address)?.ok_or_else(|| self.lost(address, None)),
        }
    }

    fn storage(&self, address: Address, slot: H256) -> Result<U256, BackendError> {
        if let Some(value) = self.known_storage(address, slot)? {
            return Ok(value);
        }
        if self.collects(address, Some(slot)) {
            return Ok(U256::zero());
        }
        let fetched = self.fetch_unknown(&[BaseRead { address, slots: vec![slot] }])?;
        let proven = fetched.first().and_then(|proof| proof.storage.iter().find(|proof| proof.slot == slot));
        match proven {
            Some(proof) => Ok(proof.value),
            None => self.known_storage(address, slot)?.ok_or_else(|| self.lost(address, Some(slot))),
        }
    }

    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError> {
        if let Some(code) = self.contents().get(Kind::Code, hash).map_err(storage)? {
            return Ok(Some(code));
        }
        let Some(address) = self.0.source.owners.lock().get(&hash).copied() else { return Ok(None) };
        if self.collects(address, None) {
            self.0.source.wanted_codes.lock().insert(hash);
            return Ok(Some(Bytes::new()));
        }
        self.fetch_code(address, hash).map(Some)
    }

    fn is_proven(&self) -> bool {
        !self.trusts()
    }

    fn note_read(&self, address: Address, slot: Option<H256>) -> Result<(), BackendError> {
        // If it is known, this is where its name and the hash of its code are recorded.
        match slot {
            Some(slot) => self.known_storage(address, slot).map(drop),
            None => self.known_account(address).map(drop),
        }
    }

    fn fetch(&self, reads: &[BaseRead]) -> Result<(), BackendError> {
        self.fetch_unknown(reads).map(drop)
    }

    fn node(&self, hash: H256) -> Result<Option<Bytes>, BackendError> {
        // Claims need not fit to what another fork has proven.
        if self.trusts() {
            return Ok(None);
        }
        self.contents().get(Kind::Node, hash).map_err(storage)
    }

    fn reads_of(&self, call: &Call) -> Vec<BaseRead> {
        self.ask_reads_of(call)
    }

    fn resolve(&self, account: Option<Address>, position: &NibblePath, hash: H256) -> Result<Bytes, BackendError> {
        self.resolve_node(account, position, hash)
    }
}
