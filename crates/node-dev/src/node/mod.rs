//! In-process development chains.

#[cfg(feature = "store")]
use crate::fork::{FORK_CALL_TIMEOUT, Fork, ForkPoint, ForkSource, OpenForkError};
use crate::genesis::check_extendable;
use crate::{AccountOptions, Accounts, AccountsError, DevGenesis, DevGenesisError};
use node_chain::Genesis;
#[cfg(feature = "store")]
use node_chain::dev_genesis;
use node_core::backend::{BackendError, MemoryBackend, StateBackend};
use node_core::block::ExecutedBlock;
use node_core::clock::{Clock, ManualClock};
#[cfg(feature = "store")]
use node_core::context::Context;
use node_core::executor::Execution;
use node_core::filters::FilterLimits;
use node_core::node::{Finality, Limits, Node};
use node_core::pool::{PoolLimits, TransactionOrder};
#[cfg(feature = "store")]
use node_core::producer::{Beginning, ProducerError};
use node_core::producer::{Mining, Production};
#[cfg(feature = "store")]
use node_core::protocol::{ChainSpec, Fork as Hardfork};
use node_evm::EvmExecutor;
#[cfg(feature = "store")]
use node_evm::{CONSOLIDATION_REQUESTS_ADDRESS, WITHDRAWAL_REQUESTS_ADDRESS};
#[cfg(feature = "store")]
use node_store::{Options, Store};
use node_types::{Address, H256};
#[cfg(feature = "store")]
use node_types::{BlockNumber, Bytes, U256};
#[cfg(feature = "store")]
use std::collections::BTreeMap;
use std::ops::Deref;
#[cfg(feature = "store")]
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A development chain in this process. Any number of them can run side by side. A chain stops when its `DevNode` and
/// everything that holds its node have been dropped: clones of [`node`](Self::node), and providers.
///
/// It dereferences to its [`Node`]. By default a block is sealed for each transaction, and when [`Node::mine`] is
/// called. Time comes from a [`ManualClock`] that starts at the timestamp of the newest block, so the same calls
/// always produce the same blocks.
///
/// # Examples
/// ```
/// use node_core::context::Context;
/// use node_dev::DevNode;
/// use node_types::consensus::{DynamicFeeTransaction, TransactionBody};
/// use node_types::BlockId;
///
/// let chain = DevNode::spawn()?;
/// let [alice, bob] = [&chain.accounts()[0], &chain.accounts()[1]];
/// let context = Context::unbounded();
/// let transfer = alice.sign(TransactionBody::DynamicFee(DynamicFeeTransaction {
///     chain_id: chain.spec().chain_id,
///     max_fee_per_gas: 2_000_000_000.into(),
///     max_priority_fee_per_gas: 1.into(),
///     gas_limit: 21_000,
///     to: Some(bob.address()),
///     value: 7.into(),
///     ..Default::default()
/// }));
/// let hash = chain.send_transaction(&context, transfer)?;
///
/// let found = chain.get_receipt(&context, hash)?.ok_or("not mined")?;
/// assert_eq!(found.receipts.block.header.header.number, 1);
/// let before = chain.get_balance(&context, bob.address(), BlockId::number(0))?;
/// let after = chain.get_balance(&context, bob.address(), BlockId::latest())?;
/// assert_eq!(after - before, 7.into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DevNode {
    node: Arc<Node>,
    accounts: Accounts,
    genesis: Genesis,
    clock: Option<Arc<ManualClock>>,
}

/// Configures a development chain. The default is what [`DevNode::spawn`] runs.
#[derive(Clone)]
pub struct DevNodeBuilder {
    accounts: AccountOptions,
    genesis: FirstBlock,
    backend: Backend,
    production: Production,
    clock: Option<Arc<dyn Clock>>,
    limits: Limits,
    pool_limits: PoolLimits,
    filter_limits: FilterLimits,
    code_cache_bytes: u64,
    executor: Arc<MakeExecutor>,
    client_version: String,
    #[cfg(feature = "store")]
    fork_balance: u64,
}

type MakeExecutor = dyn Fn(EvmExecutor) -> Arc<dyn Execution> + Send + Sync;

/// The first block.
#[derive(Clone)]
enum FirstBlock {
    Development(DevGenesis),
    Given(Box<Genesis>),
    /// One of another chain.
    #[cfg(feature = "store")]
    Fork(Box<ForkSource>),
    #[cfg(feature = "store")]
    OpenedFork(Box<Fork>, bool),
}

/// Where the chain is stored.
#[derive(Clone)]
enum Backend {
    Memory,
    #[cfg(feature = "store")]
    Folder(PathBuf, Options),
    Given(Arc<dyn StateBackend>),
}

impl Backend {
    /// Opens a chain that begins with `first`.
    fn open(self, first: ExecutedBlock) -> Result<Arc<dyn StateBackend>, BackendError> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryBackend::new(first)?),
            #[cfg(feature = "store")]
            Self::Folder(path, options) => Arc::new(Store::open(&path, first, options)?),
            Self::Given(backend) => backend,
        })
    }

    /// Opens the chain of a fork, without the chain that it continues.
    #[cfg(feature = "store")]
    fn open_fork(self, fork: &Fork) -> Result<Arc<dyn StateBackend>, BackendError> {
        let (first, base) = (fork.first.clone(), Arc::new(fork.base.clone()));
        Ok(match self {
            Self::Memory => Arc::new(Store::fork_in_memory(first, base, Options::in_memory())?),
            Self::Folder(path, options) => Arc::new(Store::open_fork(&path, first, base, options)?),
            Self::Given(backend) => backend,
        })
    }

    /// Returns the data folder; `None` if the chain has none, or another one than this builder knows.
    #[cfg(feature = "store")]
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(path, _) => Some(path),
            Self::Memory | Self::Given(_) => None,
        }
    }
}

impl Default for DevNodeBuilder {
    fn default() -> Self {
        Self {
            accounts: AccountOptions::default(),
            genesis: FirstBlock::Development(DevGenesis::default()),
            backend: Backend::Memory,
            production: Production::default(),
            clock: None,
            limits: Limits::default(),
            pool_limits: PoolLimits { minimum_tip: 0, ..PoolLimits::default() },
            filter_limits: FilterLimits::default(),
            code_cache_bytes: EvmExecutor::CODE_CACHE_BYTES,
            executor: Arc::new(|executor| Arc::new(executor)),
            client_version: concat!("anvil/node-dev/v", env!("CARGO_PKG_VERSION")).to_owned(),
            #[cfg(feature = "store")]
            fork_balance: DevGenesis::default().balance,
        }
    }
}

impl DevNode {
    /// Starts a chain in memory with ten funded accounts.
    ///
    /// # Errors
    /// Only if the operating system fails; the caller cannot cause an error.
    pub fn spawn() -> Result<Self, DevNodeError> {
        Self::builder().spawn()
    }

    /// Returns a builder with the defaults of [`spawn`](Self::spawn).
    pub fn builder() -> DevNodeBuilder {
        DevNodeBuilder::default()
    }

    /// Returns the node, to serve or share it.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Returns the accounts derived from the mnemonic. They are funded unless a [`genesis`](DevNodeBuilder::genesis)
    /// was given.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Returns the genesis of the chain.
    pub fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// Returns the chain's manual clock, or `None` if another one was set with [`clock`](DevNodeBuilder::clock).
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
    /// Sets how accounts are derived. Default: ten accounts of [`DEFAULT_MNEMONIC`](crate::DEFAULT_MNEMONIC).
    #[must_use]
    pub fn accounts(mut self, accounts: AccountOptions) -> Self {
        self.accounts = accounts;
        self
    }

    /// Sets the options of a generated genesis, which funds the accounts.
    #[must_use]
    pub fn dev_genesis(mut self, genesis: DevGenesis) -> Self {
        self.genesis = FirstBlock::Development(genesis);
        self
    }

    /// Uses this genesis instead of a generated one.
    #[must_use]
    pub fn genesis(mut self, genesis: Genesis) -> Self {
        self.genesis = FirstBlock::Given(Box::new(genesis));
        self
    }

    /// Continues the chain of the server at `url`, after its newest block or the one that [`at`](Self::at) names. The
    /// state as of that block is read from there when it is needed, and verified: see [`fork`](crate::fork). The accounts
    /// have their balances from then on.
    ///
    /// # Examples
    /// ```no_run
    /// use node_dev::DevNode;
    /// use node_types::BlockId;
    ///
    /// let chain = DevNode::builder().fork("http://127.0.0.1:8545").at(BlockId::finalized()).spawn()?;
    /// # Ok::<(), node_dev::DevNodeError>(())
    /// ```
    #[cfg(feature = "store")]
    #[must_use]
    pub fn fork(self, url: impl Into<String>) -> Self {
        let source = ForkSource { urls: vec![url.into()], ..self.fork_source() };
        self.fork_of(source)
    }

    /// Sets the block that a [fork](Self::fork) begins with.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn at(self, point: impl Into<ForkPoint>) -> Self {
        let source = ForkSource { point: Some(point.into()), ..self.fork_source() };
        self.fork_of(source)
    }

    #[cfg(feature = "store")]
    fn fork_source(&self) -> ForkSource {
        match &self.genesis {
            FirstBlock::Fork(source) => (**source).clone(),
            _ => ForkSource::default(),
        }
    }

    /// Continues another chain, with all options; see [`fork`](Self::fork).
    #[cfg(feature = "store")]
    #[must_use]
    pub fn fork_of(mut self, source: ForkSource) -> Self {
        self.genesis = FirstBlock::Fork(Box::new(source));
        self.limits.call_timeout = FORK_CALL_TIMEOUT;
        self
    }

    /// Continues another chain after a block that was already read. `store` has the chain, which begins with that block.
    /// `is_durable` is whether it is in a folder, and so cannot begin with another block later.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn opened_fork(mut self, fork: Fork, store: Arc<dyn StateBackend>, is_durable: bool) -> Self {
        self.genesis = FirstBlock::OpenedFork(Box::new(fork), is_durable);
        self.backend = Backend::Given(store);
        self
    }

    /// Sets the balance in ether of the accounts of a [fork](Self::fork). Default: 10,000.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn fork_balance(mut self, ether: u64) -> Self {
        self.fork_balance = ether;
        self
    }

    /// Stores the chain in a folder, or continues the chain that is already there. Default: in memory.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn data_dir(mut self, path: impl Into<PathBuf>, options: Options) -> Self {
        self.backend = Backend::Folder(path.into(), options);
        self
    }

    /// Stores the chain in `backend`, whose first block must be that of the [`genesis`](Self::genesis). Only one node
    /// may change a backend. Default: in memory.
    #[must_use]
    pub fn backend(mut self, backend: Arc<dyn StateBackend>) -> Self {
        self.backend = Backend::Given(backend);
        self
    }

    /// Sets when blocks are sealed. Default: [`Mining::Instant`].
    #[must_use]
    pub fn mining(mut self, mining: Mining) -> Self {
        self.production.mining = mining;
        self
    }

    /// Sets the order of transactions in a block. Default: [`TransactionOrder::Fees`].
    #[must_use]
    pub fn order(mut self, order: TransactionOrder) -> Self {
        self.production.order = order;
        self
    }

    /// Sets the beneficiary of blocks. Default: that of the genesis block.
    #[must_use]
    pub fn coinbase(mut self, coinbase: Address) -> Self {
        self.production.coinbase = Some(coinbase);
        self
    }

    /// Sets the clock. Default: a [`ManualClock`].
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the limits of single requests. Default: [`Limits::default`], where a [fork](Self::fork) has a longer
    /// `call_timeout`, [`FORK_CALL_TIMEOUT`](crate::fork::FORK_CALL_TIMEOUT), unless this is called after it.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the limits of the transaction pool. Default: [`PoolLimits::default`], without a minimum tip.
    #[must_use]
    pub fn pool_limits(mut self, limits: PoolLimits) -> Self {
        self.pool_limits = limits;
        self
    }

    /// Sets the number and lifetime of filters. Default: [`FilterLimits::default`].
    #[must_use]
    pub fn filter_limits(mut self, limits: FilterLimits) -> Self {
        self.filter_limits = limits;
        self
    }

    /// Sets the size of the cache of analyzed code, in bytes. Default: 64 MiB.
    #[must_use]
    pub fn code_cache_bytes(mut self, bytes: u64) -> Self {
        self.code_cache_bytes = bytes;
        self
    }

    /// Executes blocks and calls with the executor that `make` returns. `make` receives the chain's default executor,
    /// to which it can add precompiles, tracers or settings; it may also return a different one.
    ///
    /// # Examples
    /// ```
    /// use node_dev::DevNode;
    ///
    /// let chain = DevNode::builder()
    ///     .executor(|evm| evm.with_configuration(|settings| settings.limit_contract_code_size = Some(100_000)))
    ///     .spawn()?;
    /// # Ok::<(), node_dev::DevNodeError>(())
    /// ```
    #[must_use]
    pub fn executor<E: Execution + 'static>(mut self, make: impl Fn(EvmExecutor) -> E + Send + Sync + 'static) -> Self {
        self.executor = Arc::new(move |executor| Arc::new(make(executor)));
        self
    }

    /// Sets the name and version that clientVersion returns. The default begins with `anvil`, by which clients such
    /// as Hardhat's network helpers recognize that the chain can be controlled.
    #[must_use]
    pub fn client_version(mut self, version: impl Into<String>) -> Self {
        self.client_version = version.into();
        self
    }

    /// Starts the chain.
    ///
    /// # Errors
    /// [`DevNodeError`] if an option is invalid or the backend cannot be used.
    pub fn spawn(self) -> Result<DevNode, DevNodeError> {
        let accounts = Accounts::derive(&self.accounts)?;
        let begin = |genesis: Genesis| (genesis.block(), genesis);
        #[cfg(feature = "store")]
        let mut fork = None;
        let (accounts, (first, genesis)) = match self.genesis {
            FirstBlock::Development(genesis) => {
                let genesis = genesis.build(accounts.addresses())?;
                (accounts, begin(genesis))
            }
            FirstBlock::Given(genesis) => {
                check_extendable(genesis.header.gas_limit, genesis.header.timestamp)?;
                (accounts.funded_first(&genesis), begin(*genesis))
            }
            #[cfg(feature = "store")]
            FirstBlock::Fork(source) => {
                let read = accounts.addresses().chain(self.production.coinbase);
                let source = ForkSource { accounts: read.collect(), ..*source };
                let opened = Fork::open(self.backend.folder(), &source, &Context::unbounded())?;
                let beginning = (opened.first.clone(), opened.genesis());
                fork = Some((opened, self.backend.folder().is_some()));
                (accounts, beginning)
            }
            #[cfg(feature = "store")]
            FirstBlock::OpenedFork(opened, is_durable) => {
                let beginning = (opened.first.clone(), opened.genesis());
                fork = Some((*opened, is_durable));
                (accounts, beginning)
            }
        };
        let expected = first.header.hash;
        #[cfg(feature = "store")]
        let (backend, control) = match fork {
            Some((fork, is_durable)) => {
                let replay = fork.replay.clone();
                let (backend, control) = fork.clone().backend(self.backend.open_fork(&fork)?, is_durable)?;
                (backend as Arc<dyn StateBackend>, Some((control, replay)))
            }
            None => (self.backend.open(first)?, None),
        };
        #[cfg(not(feature = "store"))]
        let backend = self.backend.open(first)?;
        let view = backend.view()?;
        let found = view.canonical_hash(view.first())?.ok_or(BackendError::UnknownBlock(view.first()))?;
        if found != expected {
            return Err(DevNodeError::OtherGenesis { found, expected });
        }
        // A chain that is reopened continues from the time of its head.
        let head = view.header(view.head().hash.into())?.map_or(0, |head| head.header.timestamp);
        drop(view);
        let manual = Arc::new(ManualClock::at(head.saturating_mul(1_000)));
        let (clock, manual) = match self.clock {
            Some(clock) => (clock, None),
            None => (manual.clone() as Arc<dyn Clock>, Some(manual)),
        };
        let spec = Arc::new(genesis.spec.clone());
        let executor = (self.executor)(EvmExecutor::with_code_cache(spec.clone(), self.code_cache_bytes));
        let builder = Node::builder(backend, executor, spec)
            .wallet(Arc::new(accounts.clone()))
            .clock(clock)
            .production(self.production)
            .finality(Finality::DEVELOPMENT)
            .limits(self.limits)
            .pool_limits(self.pool_limits)
            .filter_limits(self.filter_limits)
            .client_version(self.client_version);
        #[cfg(feature = "store")]
        let (builder, replay) = match control {
            Some((control, replay)) => (builder.fork(control), replay),
            None => (builder, None),
        };
        let node = builder.open()?;
        #[cfg(feature = "store")]
        if node.fork().is_some()
            && let Some(producer) = node.producer()
        {
            let balance = U256::from(self.fork_balance) * U256::exp10(18);
            let contracts = needed_contracts(&genesis.spec);
            let accounts = accounts.addresses().collect();
            producer.begin(Beginning { replay, accounts, balance, contracts })?;
        }
        Ok(DevNode { node: Arc::new(node), accounts, genesis, clock: manual })
    }
}

/// Returns the contracts without which no block is valid under the rules of a fork. Development chains of other programs do
/// not have them, and neither do the states of networks before the upgrade that brought them.
#[cfg(feature = "store")]
fn needed_contracts(spec: &ChainSpec) -> BTreeMap<Address, Bytes> {
    if spec.fork_at(BlockNumber::MAX, u64::MAX, true) < Hardfork::Prague {
        return BTreeMap::new();
    }
    let is_needed = |address: &Address| [WITHDRAWAL_REQUESTS_ADDRESS, CONSOLIDATION_REQUESTS_ADDRESS].contains(address);
    let contracts = dev_genesis().alloc.into_iter().filter(|(address, _)| is_needed(address));
    contracts.map(|(address, account)| (address, account.code)).collect()
}

/// Why a development chain could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevNodeError {
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    #[error(transparent)]
    Genesis(#[from] DevGenesisError),
    #[cfg(feature = "store")]
    #[error(transparent)]
    Fork(#[from] OpenForkError),
    #[cfg(feature = "store")]
    #[error("the fork could not begin")]
    Beginning(#[from] ProducerError),
    #[error("the backend holds a chain with the genesis block {found:#x}, expected {expected:#x}")]
    OtherGenesis { found: H256, expected: H256 },
    #[error(transparent)]
    Backend(#[from] BackendError),
}

#[cfg(test)]
mod tests;
