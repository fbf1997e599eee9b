//! Production of blocks from the pool.
//!
//! The producer also implements the controls of development chains: editing the state, setting the clock, reverting
//! to snapshots and replacing blocks. In all cases each header commits to the state after its block.

mod dump;
mod edit;
mod error;
mod fork;
mod mining;
mod reorganize;
mod replay;
mod reset;
mod settings;
mod snapshot;

pub use dump::{LoadedBlock, WholeAccount, WholeAccounts, WholeChain};
pub use error::ProducerError;
pub use fork::{Beginning, ForkBlock, ForkControl, ForkInfo, ForkUse, InvalidForkBlock, Replace};
pub use mining::Mining;
pub use replay::{Replay, ReplayDifference};
pub(crate) use settings::BlockSettings;

use crate::assembly::{Assembled, NextHeader, assemble, next_header};
use crate::backend::{BackendError, LayeredView, StateBackend, StateCache, View};
use crate::block::{BlockRef, SealedHeader};
use crate::collecting::postponing;
use crate::context::Context;
use crate::crypto::random_bytes;
use crate::edits::{EditableBackend, Edits};
use crate::executor::{BlockExecution, ExecutionError, Executor};
use crate::packing::{Packed, Packer};
use crate::pool::{self, DropReason, Effects, Pool, TransactionOrder};
use crate::protocol::gas::is_gas_limit_step;
use crate::protocol::{ChainSpec, Fork, fees};
use crate::sources::Sources;
use crate::waiting::without_waiting;
use mining::Miner;
use node_types::consensus::{Header, Withdrawal};
use node_types::{Address, H256};
use parking_lot::{Mutex, MutexGuard, RwLock};
use snapshot::Snapshots;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Maximum number of further blocks that a request produces after its transaction was mined, while other transactions
/// are pending.
const MAX_FURTHER_BLOCKS: usize = 16;

/// Maximum number of attempts at a change of a fork that lack something of the other chain. Afterwards, the chain is locked
/// while that is fetched.
const MAX_ATTEMPTS: usize = 32;

/// Maximum number of accounts that are impersonated individually.
const MAX_IMPERSONATED: usize = 65_536;

/// How a node produces blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Production {
    /// When blocks are produced.
    pub mining: Mining,
    /// The order of transactions in a block.
    pub order: TransactionOrder,
    /// Beneficiary of blocks; `None` to use that of the genesis block.
    pub coinbase: Option<Address>,
}

/// The dependencies of a producer.
pub(crate) struct ProducerParts {
    pub(crate) backend: Arc<EditableBackend>,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) spec: Arc<ChainSpec>,
}

/// Whether a block on top of the head can be valid.
#[derive(Default)]
struct Outlook {
    /// Why none can, as the last attempt to assemble one showed.
    obstacle: Option<String>,
    /// Whether that attempt was made with the current state.
    is_current: bool,
}

/// Produces blocks. All methods may be called from any thread.
pub struct Producer {
    parts: ProducerParts,
    settings: Arc<BlockSettings>,
    /// Held while the chain changes, so that changes do not interleave.
    sealing: Mutex<()>,
    /// A cache of the parts of the state that recent blocks read.
    cache: Arc<StateCache>,
    snapshots: Mutex<Snapshots>,
    /// How a fork begins; without effect for other chains.
    beginning: Mutex<Beginning>,
    impersonated: RwLock<BTreeSet<Address>>,
    /// Whether all accounts are impersonated.
    impersonates_all: AtomicBool,
    /// Held while a transaction of an impersonated sender gets its nonce and enters the pool.
    sending: Mutex<()>,
    miner: Miner,
    /// Number of requests that wait for what a change lacks.
    waiting: AtomicUsize,
    outlook: Mutex<Outlook>,
    /// A random identifier that changes when the chain is opened or reset.
    instance: Mutex<H256>,
}

impl Producer {
    /// Restores the snapshots from the backend's records, and starts to produce blocks. Refuses a genesis block that no
    /// block can follow, unless edits made it so: others can repair it.
    pub(crate) fn open(
        parts: ProducerParts,
        settings: Arc<BlockSettings>,
        mining: Mining,
    ) -> Result<Arc<Self>, BackendError> {
        let snapshots = Mutex::new(Snapshots::open(&*parts.backend)?);
        let producer = Arc::new(Self {
            parts,
            settings,
            sealing: Mutex::default(),
            cache: Arc::default(),
            snapshots,
            beginning: Mutex::default(),
            impersonated: RwLock::default(),
            impersonates_all: AtomicBool::default(),
            sending: Mutex::default(),
            miner: Miner::default(),
            waiting: AtomicUsize::default(),
            outlook: Mutex::default(),
            instance: Mutex::new(new_instance()),
        });
        producer.check_start()?;
        producer.switch_mining(mining)?;
        producer.transactions_changed();
        Ok(producer)
    }

    /// Maximum number of blocks that one request may produce. A larger number is a mistake.
    pub const MAX_BLOCKS: u64 = 1 << 32;

    /// How many times as long as other requests one that mines may take. Tests of governance contracts mine 50,000
    /// blocks to make time pass.
    pub const MINING_TIMEOUTS: u32 = 120;

    /// Produces `count` blocks and returns them. The first one includes `withdrawals`. With an `interval`, each later
    /// one is that many seconds after the previous one; otherwise timestamps follow the clock.
    ///
    /// # Errors
    /// [`ProducerError::TooManyBlocks`], [`ProducerError::IntervalTooLong`], [`ProducerError::NoWithdrawals`], and
    /// failures of the execution and the backend.
    pub fn mine(
        &self,
        count: u64,
        interval: Option<u64>,
        withdrawals: Vec<Withdrawal>,
    ) -> Result<Vec<BlockRef>, ProducerError> {
        self.mine_in(&Context::unbounded(), count, interval, withdrawals)
    }

    /// Like [`mine`](Self::mine), but stops when `context` is cancelled, or after [`MINING_TIMEOUTS`] times its
    /// timeout. Blocks that were produced until then remain in the chain.
    ///
    /// [`MINING_TIMEOUTS`]: Self::MINING_TIMEOUTS
    ///
    /// # Errors
    /// As [`mine`](Self::mine), and [`BackendError::Interrupted`].
    pub fn mine_in(
        &self,
        context: &Context,
        count: u64,
        interval: Option<u64>,
        withdrawals: Vec<Withdrawal>,
    ) -> Result<Vec<BlockRef>, ProducerError> {
        self.mine_blocks(context, count, None, interval, withdrawals)
    }

    /// Like [`mine_in`](Self::mine_in), but the first block has this `timestamp`, in Unix seconds, from which the
    /// chain's clock continues. If that block is not produced, the time is as before.
    ///
    /// # Errors
    /// As [`mine_in`](Self::mine_in), [`ProducerError::TimestampTooLow`] and [`ProducerError::TimestampTooHigh`].
    pub fn mine_at(&self, context: &Context, count: u64, timestamp: u64) -> Result<Vec<BlockRef>, ProducerError> {
        self.mine_blocks(context, count, Some(timestamp), None, Vec::new())
    }

    fn mine_blocks(
        &self,
        context: &Context,
        count: u64,
        timestamp: Option<u64>,
        interval: Option<u64>,
        withdrawals: Vec<Withdrawal>,
    ) -> Result<Vec<BlockRef>, ProducerError> {
        if count > Self::MAX_BLOCKS {
            return Err(ProducerError::TooManyBlocks { blocks: count, limit: Self::MAX_BLOCKS });
        }
        if let Some(interval) = interval
            && self.last_timestamp(count, interval)? > ProducerError::LAST_TIMESTAMP
        {
            return Err(ProducerError::IntervalTooLong { blocks: count, interval });
        }
        let context = context.with_timeouts(Self::MINING_TIMEOUTS);
        let mut blocks = Vec::new();
        let outcome = (0..count).try_for_each(|mined| {
            let withdrawals = if mined == 0 { withdrawals.as_slice() } else { &[] };
            let now = self.settings.system_time();
            // Locked for each block separately, so that other requests can run in between.
            let seal = || {
                let timestamp = match interval {
                    _ if mined == 0 => timestamp,
                    Some(interval) => {
                        let head = self.head()?.header.timestamp;
                        Some(head.saturating_add(interval).max(self.parts.spec.least_timestamp(head)))
                    }
                    None => None,
                };
                self.seal(withdrawals, true, timestamp, now)
            };
            let sealed = context.run(|| self.change(&context, seal))?;
            if let Some(header) = sealed.as_ref().filter(|_| count == 1) {
                log_sealed(header);
            }
            blocks.extend(sealed.map(|header| header.block_ref()));
            Ok(())
        });
        if let (true, Some(head)) = (count > 1, blocks.last()) {
            tracing::info!(blocks = blocks.len(), head = head.number, hash = ?head.hash, "sealed");
        }
        outcome.inspect_err(|_| self.transactions_changed()).map(|()| blocks)
    }

    /// Estimates the timestamp of the last of `count` blocks that are `interval` seconds apart.
    fn last_timestamp(&self, count: u64, interval: u64) -> Result<u64, ProducerError> {
        let next = self.settings.after(&*self.head()?).timestamp;
        Ok(next.saturating_add(count.saturating_mul(interval.max(1))))
    }

    /// Produces blocks until no pending transaction can be included. Once `awaited` has left the pool, at most
    /// `MAX_FURTHER_BLOCKS` more are produced, because other requests mine their own transactions.
    fn mine_waiting(&self, awaited: Option<H256>) -> Result<(), ProducerError> {
        let mut further = MAX_FURTHER_BLOCKS;
        // When a request gets the lock, its transaction has usually been mined.
        while further > 0 && self.seal_waiting()?.is_some() {
            if awaited.is_some_and(|hash| self.parts.pool.get(hash).is_none()) {
                further -= 1;
            }
        }
        Ok(())
    }

    /// Called when transactions may have become pending. A request that is waiting for what the next block needs mines them
    /// afterwards.
    pub(crate) fn transactions_changed(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            return;
        }
        self.mine_at_once(None).unwrap_or_else(|error| log_failure(&error));
    }

    /// Called when a transaction has entered the pool. If it cannot be mined because something of the chain that this one
    /// continues cannot be read, it leaves the pool again, where it would be in the way of all others.
    ///
    /// # Errors
    /// [`BackendError::Upstream`] in that case, and failures to remove it.
    pub(crate) fn transaction_added(&self, hash: H256) -> Result<(), ProducerError> {
        match self.mine_at_once(Some(hash)) {
            Err(error) if error.is_unreadable() && self.withdraw(hash)? => {
                // Those that were left to this request.
                self.transactions_changed();
                Err(error)
            }
            mined => {
                mined.unwrap_or_else(|error| log_failure(&error));
                Ok(())
            }
        }
    }

    /// Removes a transaction from the pool. Returns whether it was there: another request may have mined it.
    fn withdraw(&self, hash: H256) -> Result<bool, BackendError> {
        // A block that is being made could include it.
        self.between_blocks(|| {
            let is_pending = self.parts.pool.get(hash).is_some();
            if is_pending {
                self.parts.pool.remove(hash)?;
            }
            Ok(is_pending)
        })
    }

    /// Mines what is pending, unless that waits for something else.
    fn mine_at_once(&self, awaited: Option<H256>) -> Result<(), ProducerError> {
        if self.miner.mining().is_instant() { self.mine_waiting(awaited) } else { Ok(()) }
    }

    /// Waits until no other request changes the chain, at most as long as the request of this thread may take.
    fn lock(&self) -> Result<MutexGuard<'_, ()>, BackendError> {
        Ok(Context::current().lock(&self.sealing)?)
    }

    /// Runs `change` while the chain is locked. What it lacks of the chain that this one continues is fetched without the lock,
    /// and `change` runs again. It must not have effects that a repetition changes before it has [gathered](gather) everything.
    fn change<T>(
        &self,
        context: &Context,
        mut change: impl FnMut() -> Result<T, ProducerError>,
    ) -> Result<T, ProducerError> {
        for _ in 0..MAX_ATTEMPTS {
            let sealing = context.lock(&self.sealing).map_err(BackendError::from)?;
            let attempt = postponing(&mut change);
            drop(sealing);
            match attempt {
                Ok(changed) => return changed,
                Err(lacking) => {
                    self.waiting.fetch_add(1, Ordering::Relaxed);
                    let fetched = lacking.fetch();
                    self.waiting.fetch_sub(1, Ordering::Relaxed);
                    match fetched {
                        Err(BackendError::Unobtainable(_)) => break,
                        fetched => fetched?,
                    }
                }
            }
        }
        let _sealing = context.lock(&self.sealing).map_err(BackendError::from)?;
        change()
    }

    /// Runs `change` while no block is being produced.
    pub(crate) fn between_blocks<T>(&self, change: impl FnOnce() -> T) -> T {
        let _sealing = self.sealing.lock();
        change()
    }

    /// Checks the transactions of the pool again after a change that is durable already. A failure must not make that
    /// change look refused; the pool is checked again when the head moves or a transaction arrives.
    fn refresh_pool(&self) {
        self.forget_obstacle();
        if let Err(error) = self.parts.pool.refresh() {
            tracing::error!(error = %Sources(&error), "the pool could not follow a change of the chain");
        }
    }

    fn seal_waiting(&self) -> Result<Option<Arc<SealedHeader>>, ProducerError> {
        // A transaction is in the pool already. It is mined even if its client does not wait for that.
        let now = self.settings.system_time();
        let sealed = self.change(&Context::unbounded(), || self.seal(&[], false, None, now))?;
        sealed.as_ref().inspect(|header| log_sealed(header));
        Ok(sealed)
    }

    /// Seals a block on top of the head, at `timestamp` if there is one, otherwise at the chain's time when that of the system
    /// was `system_time`, in milliseconds. Returns `None` if the block would be empty and `even_empty` is not set.
    fn seal(
        &self,
        withdrawals: &[Withdrawal],
        even_empty: bool,
        timestamp: Option<u64>,
        system_time: u64,
    ) -> Result<Option<Arc<SealedHeader>>, ProducerError> {
        let ProducerParts { backend, executor, pool, spec } = &self.parts;
        let parent = self.head()?;
        let header = self.settings.next(&parent, timestamp, system_time)?;
        if spec.fork(&header) < Fork::Shanghai && !withdrawals.is_empty() {
            return Err(ProducerError::NoWithdrawals);
        }
        let mut best = pool.best_for(&header);
        if best.is_empty() && !even_empty {
            return Ok(None);
        }
        let base_fee = header.base_fee_per_gas != fees::next_base_fee(spec, &parent.header);
        let far = has_far_gas_limit(spec, &parent, &header);
        let view = self.cached_view()?;
        let (block, dropped) = loop {
            let context = &Context::unbounded();
            let known_obstacle = self.known_obstacle();
            let packer = Packer { context, executor: &**executor, view: &*view, header: &header, pool, known_obstacle };
            let packed = packer.pack(withdrawals, best);
            self.note_obstacle(packed.as_ref().err());
            let Packed { assembled: Assembled { block, .. }, excluded } = packed?;
            for (hash, reason) in &excluded {
                tracing::warn!(?hash, reason, "a transaction is dropped, because a block with it is invalid");
            }
            let reason = |(hash, reason)| (hash, DropReason::InvalidBlock(reason));
            let dropped: Vec<_> = excluded.into_iter().map(reason).collect();
            if even_empty || dropped.is_empty() || !block.body.transactions.is_empty() {
                break (block, dropped);
            }
            // There is no block whose write could include this. After many of these, others may be left.
            pool.drop_all(dropped)?;
            best = pool.best_for(&header);
        };
        // Views keep their version of the chain alive; the backend is faster when it is the only owner.
        drop(view);
        if block.body.transactions.is_empty() && !even_empty {
            return Ok(None);
        }
        let unsigned = block.body.transactions.iter().any(|transaction| transaction.is_impersonating());
        let (header, changes) = (block.header.clone(), Arc::clone(&block.changes));
        let effects = Effects { returning: None, dropped };
        let mut writes = effects.deletions();
        writes.extend(pool::deletions(block.body.transactions.iter().map(|transaction| transaction.hash)));
        let edits = Edits { base_fee, unsigned, gas_limit: far, ..Edits::default() };
        pool.change_chain(effects, || backend.append_edited(block, edits, &writes))?;
        self.cache.advance(header.hash, &changes);
        self.settings.sealed(&header.header, timestamp.is_some());
        Ok(Some(header))
    }

    /// Refuses a genesis block that no block can follow.
    fn check_start(&self) -> Result<(), BackendError> {
        // A fork is useful even if what its next block needs cannot be read.
        if self.parts.backend.view()?.is_partial() {
            return Ok(());
        }
        let head = self.head()?;
        match self.try_empty_block() {
            Err(ExecutionError::Backend(error)) => Err(error),
            Err(error @ ExecutionError::SystemContract { .. })
                if head.header.number == 0 && !self.parts.backend.has_edits(head.hash) =>
            {
                Err(BackendError::NoFirstBlock(error.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Finds out whether a block on top of the head can be valid.
    fn try_empty_block(&self) -> Result<(), ExecutionError> {
        let (view, header) = (self.cached_view()?, self.settings.after(&*self.head()?));
        let fill = |_: &mut dyn BlockExecution| Ok(Vec::new());
        let assembled = assemble(&Context::unbounded(), &*self.parts.executor, &*view, header, Vec::new(), fill);
        self.note_obstacle(assembled.as_ref().err());
        assembled.map(drop)
    }

    /// Remembers whether an attempt to assemble a block failed because none can be valid, and logs when that begins.
    fn note_obstacle(&self, error: Option<&ExecutionError>) {
        let obstacle = match error {
            None => None,
            Some(error @ ExecutionError::SystemContract { .. }) => Some(error.to_string()),
            // This says nothing about the block.
            Some(_) => return,
        };
        let mut outlook = self.outlook.lock();
        if let Some(reason) = obstacle.as_ref().filter(|_| outlook.obstacle != obstacle) {
            tracing::warn!(reason, "no block can be sealed");
        }
        *outlook = Outlook { obstacle, is_current: true };
    }

    /// Called when the state of the head or the header of the next block has changed, which may have created or removed an
    /// obstacle.
    fn forget_obstacle(&self) {
        self.outlook.lock().is_current = false;
    }

    /// Returns why no block on top of the head can be valid, if that is known.
    pub(crate) fn known_obstacle(&self) -> Option<String> {
        let outlook = self.outlook.lock();
        outlook.obstacle.clone().filter(|_| outlook.is_current)
    }

    /// Returns the current view. The state of its head is read through the cache, unless it has edits.
    fn cached_view(&self) -> Result<Arc<dyn View>, BackendError> {
        let view = self.parts.backend.view()?;
        let BlockRef { number, hash } = view.head();
        if self.parts.backend.has_edits(hash) {
            self.cache.clear();
            return Ok(view);
        }
        Ok(Arc::new(LayeredView::new(view, number, Vec::new())?.with_cache(Arc::clone(&self.cache))))
    }

    fn head(&self) -> Result<Arc<SealedHeader>, BackendError> {
        let view = self.parts.backend.view()?;
        let head = view.head();
        view.header(head.hash.into())?.ok_or(BackendError::UnknownBlock(head.number))
    }

    /// Sets the timestamp of the next block in Unix seconds. The chain's clock continues from there.
    ///
    /// # Errors
    /// [`ProducerError::TimestampTooLow`] and [`ProducerError::TimestampTooHigh`].
    pub fn set_next_timestamp(&self, timestamp: u64) -> Result<(), ProducerError> {
        let _sealing = self.lock()?;
        self.forget_obstacle();
        self.settings.set_timestamp(&*self.head()?, timestamp)
    }

    /// Checks a timestamp as [`set_next_timestamp`](Self::set_next_timestamp) does, without setting it.
    ///
    /// # Errors
    /// Those of [`set_next_timestamp`](Self::set_next_timestamp).
    pub fn check_next_timestamp(&self, timestamp: u64) -> Result<(), ProducerError> {
        self.settings.check_timestamp(&*self.head()?, timestamp)
    }

    /// Sets the chain's clock to the timestamp of its head, from which it continues to run. A [reset](Self::reset) sets
    /// it in the same way.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn continue_time(&self) -> Result<(), ProducerError> {
        let _sealing = self.lock()?;
        self.forget_obstacle();
        self.settings.continue_time(&*self.head()?);
        Ok(())
    }

    /// Advances the chain's clock by `seconds`, at least to the head's timestamp plus `seconds`. Returns by how many
    /// seconds it is then ahead of the system clock.
    ///
    /// # Errors
    /// [`ProducerError::TooFarAhead`].
    pub fn increase_time(&self, seconds: u64) -> Result<i64, ProducerError> {
        let _sealing = self.lock()?;
        self.forget_obstacle();
        self.settings.increase_time(&*self.head()?, seconds)
    }

    /// Checks a number of seconds as [`increase_time`](Self::increase_time) does, without advancing the clock.
    ///
    /// # Errors
    /// Those of [`increase_time`](Self::increase_time).
    pub fn check_increase_of_time(&self, seconds: u64) -> Result<(), ProducerError> {
        self.settings.check_increase(&*self.head()?, seconds)
    }

    /// Sets the base fee of the next block, in wei per gas. Later base fees are computed from it as usual.
    ///
    /// # Errors
    /// [`ProducerError::NoBaseFee`] before London.
    pub fn set_next_base_fee(&self, base_fee: u64) -> Result<(), ProducerError> {
        let _sealing = self.lock()?;
        if self.settings.after(&*self.head()?).base_fee_per_gas.is_none() {
            return Err(ProducerError::NoBaseFee);
        }
        self.settings.set_base_fee(base_fee);
        Ok(())
    }

    /// Sets the chain's clock to `timestamp`, in Unix seconds. Returns by how many seconds that moves it. Only
    /// on chains that allow it ([`Relaxations::equal_timestamps`](crate::protocol::Relaxations::equal_timestamps)) it
    /// may be before the head; the next block is then as well.
    ///
    /// # Errors
    /// [`ProducerError::TimestampTooHigh`], [`ProducerError::TimeBeforeHead`], and failures of the backend.
    pub fn set_time(&self, timestamp: u64) -> Result<i64, ProducerError> {
        if timestamp > ProducerError::LAST_TIMESTAMP {
            return Err(ProducerError::TimestampTooHigh { timestamp });
        }
        let _sealing = self.lock()?;
        let before = self.settings.now();
        self.forget_obstacle();
        self.settings.set_time(&*self.head()?, timestamp)?;
        Ok(timestamp.cast_signed() - before.cast_signed())
    }

    /// Sets the number of seconds between the timestamps of blocks; `None` makes them follow the clock again. Returns
    /// the previous setting.
    ///
    /// # Errors
    /// [`ProducerError::TooFarAhead`], and [`ProducerError::ZeroInterval`] if the chain does not allow equal timestamps.
    pub fn set_block_interval(&self, seconds: Option<u64>) -> Result<Option<u64>, ProducerError> {
        let _sealing = self.lock()?;
        self.forget_obstacle();
        self.settings.set_interval(seconds)
    }

    /// Sets the beneficiary of all blocks from now on.
    pub fn set_coinbase(&self, address: Address) {
        let _sealing = self.sealing.lock();
        self.forget_obstacle();
        self.settings.set_coinbase(address);
    }

    /// Sets the value of PREVRANDAO in the next block.
    ///
    /// # Errors
    /// [`ProducerError::NoPrevRandao`] before the merge.
    pub fn set_prev_randao(&self, value: H256) -> Result<(), ProducerError> {
        let _sealing = self.lock()?;
        if !self.settings.after(&*self.head()?).difficulty.is_zero() {
            return Err(ProducerError::NoPrevRandao);
        }
        self.forget_obstacle();
        self.settings.set_prev_randao(value);
        Ok(())
    }

    /// Sets the gas limit of all blocks from now on.
    ///
    /// # Errors
    /// [`ProducerError::GasLimitRange`], and failures of the backend.
    pub fn set_gas_limit(&self, gas_limit: u64) -> Result<(), ProducerError> {
        {
            let _sealing = self.lock()?;
            self.settings.set_gas_limit(gas_limit)?;
            self.refresh_pool();
        }
        self.transactions_changed();
        Ok(())
    }

    /// Returns the header of the next block, with the fields that are known before execution.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn next_header(&self) -> Result<Header, BackendError> {
        Ok(self.settings.after(&*self.head()?))
    }

    /// Returns a random identifier that changes when the chain is opened or reset.
    pub fn instance(&self) -> H256 {
        *self.instance.lock()
    }

    /// Returns why no block on top of the head can be valid; otherwise `None`. Executes an empty block if the state was
    /// edited or reverted since a block was last assembled, unless the chain is being changed, or a fork would have to read the
    /// other chain.
    pub fn obstacle(&self) -> Option<String> {
        let is_current = self.outlook.lock().is_current;
        let attempt = || match self.parts.backend.view() {
            Ok(view) if view.is_partial() => without_waiting(|| self.try_empty_block()).unwrap_or(Ok(())),
            _ => self.try_empty_block(),
        };
        if !is_current
            && let Some(_sealing) = self.sealing.try_lock()
            && let Err(error) = attempt()
        {
            tracing::debug!(error = %Sources(&error), "no block can follow the state");
        }
        self.known_obstacle()
    }

    /// Returns the order of transactions in a block.
    pub fn order(&self) -> TransactionOrder {
        self.parts.pool.order()
    }

    /// Starts or stops impersonating all accounts. This does not affect accounts that are impersonated individually.
    pub fn impersonate_all(&self, allowed: bool) {
        self.impersonates_all.store(allowed, Ordering::Relaxed);
    }

    /// Returns the accounts that are impersonated individually.
    pub fn impersonated(&self) -> Vec<Address> {
        self.impersonated.read().iter().copied().collect()
    }

    /// Starts or stops impersonating `address`, which means accepting unsigned transactions from it. Returns whether
    /// this changed anything.
    ///
    /// # Errors
    /// [`ProducerError::TooManyImpersonated`].
    pub fn impersonate(&self, address: Address, allowed: bool) -> Result<bool, ProducerError> {
        let mut impersonated = self.impersonated.write();
        if !allowed {
            return Ok(impersonated.remove(&address));
        }
        if impersonated.len() >= MAX_IMPERSONATED && !impersonated.contains(&address) {
            return Err(ProducerError::TooManyImpersonated(MAX_IMPERSONATED));
        }
        Ok(impersonated.insert(address))
    }

    /// Locks the sending of transactions of impersonated accounts.
    pub(crate) fn sending(&self) -> MutexGuard<'_, ()> {
        self.sending.lock()
    }

    /// Returns whether transactions from `address` are accepted without a signature.
    pub fn is_impersonated(&self, address: Address) -> bool {
        self.impersonates_all.load(Ordering::Relaxed) || self.impersonated.read().contains(&address)
    }
}

/// Returns whether the gas limit of the block after `parent` differs from its parent's by more than the rules allow.
fn has_far_gas_limit(spec: &ChainSpec, parent: &SealedHeader, header: &Header) -> bool {
    let by_rules = next_header(spec, parent, header.timestamp).gas_limit;
    header.gas_limit != by_rules && !is_gas_limit_step(by_rules, header.gas_limit)
}

fn log_sealed(SealedHeader { header, hash, .. }: &SealedHeader) {
    tracing::info!(block = header.number, hash = ?hash, gas = header.gas_used, "sealed");
}

/// Logs why no block was sealed. The producer logs an obstacle when it appears.
fn log_failure(error: &ProducerError) {
    if !matches!(error, ProducerError::Execution(ExecutionError::SystemContract { .. })) {
        tracing::error!(error = %Sources(error), "cannot seal a block");
    }
}

fn new_instance() -> H256 {
    H256(random_bytes())
}
