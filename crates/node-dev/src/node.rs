//! A development chain that runs in this process.

use crate::{AccountOptions, Accounts, AccountsError, DevGenesis, DevGenesisError};
use node_chain::Genesis;
use node_core::backend::{BackendError, MemoryBackend, StateBackend};
use node_core::clock::{Clock, ManualClock};
use node_core::filters::FilterLimits;
use node_core::node::{Finality, Limits, Node, NodeParts};
use node_core::pool::{PoolLimits, TransactionOrder};
use node_core::producer::{Mining, Production};
use node_evm::{EvmExecutor, KzgVerifier, Secp256k1Recovery};
use node_store::{Options, Store};
use node_types::Address;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

/// A development chain that runs in this process, on its own: as many as are wanted run side by side.
///
/// It is used as the [`Node`] that it is. Blocks are made as soon as a transaction comes, and when
/// [`Node::mine`] is called; its time is that of a [`ManualClock`], which stands at the time of the newest block, so that
/// the same calls make the same blocks every time. It ends when it is dropped.
///
/// ```
/// use node_core::context::Context;
/// use node_dev::DevNode;
/// use node_types::consensus::{DynamicFeeTransaction, TransactionBody};
/// use node_types::BlockId;
///
/// let chain = DevNode::spawn()?;
/// let [alice, bob] = [&chain.accounts()[0], &chain.accounts()[1]];
/// let hash = chain.send(alice.sign(TransactionBody::DynamicFee(DynamicFeeTransaction {
///     chain_id: chain.spec().chain_id,
///     max_fee_per_gas: 2_000_000_000.into(),
///     max_priority_fee_per_gas: 1.into(),
///     gas_limit: 21_000,
///     to: Some(bob.address()),
///     value: 7.into(),
///     ..Default::default()
/// })))?;
///
/// let context = Context::unbounded();
/// let receipt = chain.get_transaction_receipt(&context, hash)?.transaction_receipt.ok_or("not mined")?;
/// assert_eq!(receipt.block_number.map(|number| number.0), Some(1));
/// let before = chain.get_balance(&context, bob.address(), BlockId::number(0))?.balance.0;
/// let after = chain.get_balance(&context, bob.address(), BlockId::latest())?.balance.0;
/// assert_eq!(after - before, 7.into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DevNode {
    node: Arc<Node>,
    store: Option<Arc<Store>>,
    accounts: Accounts,
    genesis: Genesis,
    clock: Option<Arc<ManualClock>>,
}

/// How a development chain is to be. The default is what [`DevNode::spawn`] runs.
#[derive(Clone)]
pub struct DevNodeBuilder {
    accounts: AccountOptions,
    genesis: FirstBlock,
    folder: Option<(PathBuf, Options)>,
    production: Production,
    clock: Option<Arc<dyn Clock>>,
    limits: Limits,
    pool_limits: PoolLimits,
    filter_limits: FilterLimits,
    code_cache_bytes: u64,
    client_version: String,
}

/// Where the chain begins.
#[derive(Clone)]
enum FirstBlock {
    Development(DevGenesis),
    Given(Box<Genesis>),
}

impl Default for DevNodeBuilder {
    fn default() -> Self {
        Self {
            accounts: AccountOptions::default(),
            genesis: FirstBlock::Development(DevGenesis::default()),
            folder: None,
            production: Production::default(),
            clock: None,
            limits: Limits::default(),
            pool_limits: PoolLimits::default(),
            filter_limits: FilterLimits::default(),
            code_cache_bytes: EvmExecutor::CODE_CACHE_BYTES,
            client_version: concat!("node-dev/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

impl DevNode {
    /// Runs a chain with ten rich accounts in memory.
    ///
    /// # Errors
    /// None that a caller could cause.
    pub fn spawn() -> Result<Self, DevNodeError> {
        Self::builder().spawn()
    }

    /// Chooses how the chain is to be.
    pub fn builder() -> DevNodeBuilder {
        DevNodeBuilder::default()
    }

    /// The node, to serve or to share.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// The folder that keeps the chain, if one does.
    pub fn store(&self) -> Option<&Arc<Store>> {
        self.store.as_ref()
    }

    /// The accounts of the mnemonic. They are rich, unless a genesis of its own was given.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Where the chain begins.
    pub fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// The chain's clock, unless another was given.
    pub fn clock(&self) -> Option<&ManualClock> {
        self.clock.as_deref()
    }
}

impl Deref for DevNode {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl DevNodeBuilder {
    /// Which accounts there are.
    #[must_use]
    pub fn accounts(mut self, accounts: AccountOptions) -> Self {
        self.accounts = accounts;
        self
    }

    /// What the first block is like; the accounts are rich in it.
    #[must_use]
    pub fn dev_genesis(mut self, genesis: DevGenesis) -> Self {
        self.genesis = FirstBlock::Development(genesis);
        self
    }

    /// Begins with this block instead.
    #[must_use]
    pub fn genesis(mut self, genesis: Genesis) -> Self {
        self.genesis = FirstBlock::Given(Box::new(genesis));
        self
    }

    /// Keeps the chain in a folder, and goes on with the one that is there.
    #[must_use]
    pub fn data_dir(mut self, path: impl Into<PathBuf>, options: Options) -> Self {
        self.folder = Some((path.into(), options));
        self
    }

    /// When blocks are made.
    #[must_use]
    pub fn mining(mut self, mining: Mining) -> Self {
        self.production.mining = mining;
        self
    }

    /// Which transactions come first.
    #[must_use]
    pub fn order(mut self, order: TransactionOrder) -> Self {
        self.production.order = order;
        self
    }

    /// Who gets the tips.
    #[must_use]
    pub fn coinbase(mut self, coinbase: Address) -> Self {
        self.production.coinbase = Some(coinbase);
        self
    }

    /// Goes by this clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// What one request may ask for.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How much the pool holds.
    #[must_use]
    pub fn pool_limits(mut self, limits: PoolLimits) -> Self {
        self.pool_limits = limits;
        self
    }

    /// How many filters there may be, and for how long.
    #[must_use]
    pub fn filter_limits(mut self, limits: FilterLimits) -> Self {
        self.filter_limits = limits;
        self
    }

    /// The most bytes that analysed code takes.
    #[must_use]
    pub fn code_cache_bytes(mut self, bytes: u64) -> Self {
        self.code_cache_bytes = bytes;
        self
    }

    /// Name and version, for clientVersion.
    #[must_use]
    pub fn client_version(mut self, version: impl Into<String>) -> Self {
        self.client_version = version.into();
        self
    }

    /// Runs the chain.
    ///
    /// # Errors
    /// When a choice is invalid, or the folder cannot be used.
    pub fn spawn(self) -> Result<DevNode, DevNodeError> {
        let accounts = Accounts::derive(&self.accounts)?;
        let genesis = match self.genesis {
            FirstBlock::Development(genesis) => genesis.build(accounts.addresses())?,
            FirstBlock::Given(genesis) => *genesis,
        };
        let first = genesis.block();
        let store = match self.folder {
            Some((path, options)) => Some(Arc::new(Store::open(&path, first.clone(), options)?)),
            None => None,
        };
        let backend: Arc<dyn StateBackend> = match &store {
            Some(store) => store.clone(),
            None => Arc::new(MemoryBackend::new(first)?),
        };
        // A chain that goes on does so where it stood.
        let view = backend.view()?;
        let head = view.header(view.head().hash.into())?.map_or(0, |head| head.header.timestamp);
        drop(view);
        let manual = Arc::new(ManualClock::at(head.saturating_mul(1_000)));
        let (clock, manual) = match self.clock {
            Some(clock) => (clock, None),
            None => (manual.clone() as Arc<dyn Clock>, Some(manual)),
        };
        let spec = Arc::new(genesis.spec.clone());
        let node = Node::open(NodeParts {
            backend,
            executor: Arc::new(EvmExecutor::with_code_cache(spec.clone(), self.code_cache_bytes)),
            recovery: Arc::new(Secp256k1Recovery),
            blobs: Arc::new(KzgVerifier),
            accounts: Some(Arc::new(accounts.clone())),
            clock,
            spec,
            production: Some(self.production),
            finality: Finality::DEVELOPMENT,
            limits: self.limits,
            pool_limits: self.pool_limits,
            filter_limits: self.filter_limits,
            client_version: self.client_version,
        })?;
        Ok(DevNode { node: Arc::new(node), store, accounts, genesis, clock: manual })
    }
}

/// Why there is no such chain.
#[derive(Debug, thiserror::Error)]
pub enum DevNodeError {
    /// The accounts cannot be derived.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    /// The first block cannot be like this.
    #[error(transparent)]
    Genesis(#[from] DevGenesisError),
    /// The folder cannot be used.
    #[error(transparent)]
    Backend(#[from] BackendError),
}
