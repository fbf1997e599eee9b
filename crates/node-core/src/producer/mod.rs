//! A chain that grows: blocks are made of what the pool holds.
//!
//! The producer also does what nobody may do on a public chain: it edits states, moves time, goes back to snapshots and
//! replaces blocks. Whatever it does, each header commits to the state after its block.

mod dump;
mod edit;
mod error;
mod mining;
mod reorganize;
mod reset;
mod settings;
mod snapshot;

pub use dump::WholeAccount;
pub use error::ProducerError;
pub use mining::Mining;

use crate::assembly::{NextHeader, assemble, next_header};
use crate::backend::{BackendError, EditableBackend, Edits, StateBackend};
use crate::block::{BlockRef, SealedHeader};
use crate::clock::Clock;
use crate::context::Context;
use crate::executor::{BlockExecution, Executor};
use crate::fees;
use crate::forks::{ChainSpec, Fork};
use crate::gas::is_gas_limit_step;
use crate::pool::{Pool, TransactionOrder};
use mining::Miner;
use node_types::consensus::{Header, Withdrawal};
use node_types::{Address, H256, keccak256};
use parking_lot::{Mutex, MutexGuard, RwLock};
use settings::BlockSettings;
use snapshot::Snapshots;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use uuid::Uuid;

/// Blocks that whoever sent a transaction makes after the one that holds it, as long as transactions wait.
const MAX_FURTHER_BLOCKS: usize = 16;

/// How blocks are produced.
#[derive(Clone, Copy, Debug, Default)]
pub struct Production {
    /// When.
    pub mining: Mining,
    /// Which transactions come first.
    pub order: TransactionOrder,
    /// Who gets the tips; none for the beneficiary of the genesis block.
    pub coinbase: Option<Address>,
}

/// What a producer works with.
pub(crate) struct ProducerParts {
    pub(crate) backend: Arc<EditableBackend>,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) spec: Arc<ChainSpec>,
}

/// Makes blocks. All methods may be called from any thread.
pub struct Producer {
    parts: ProducerParts,
    settings: Arc<BlockSettings>,
    /// Held while the chain changes: what is done to it is one step after the other.
    sealing: Mutex<()>,
    snapshots: Mutex<Snapshots>,
    impersonated: RwLock<BTreeSet<Address>>,
    /// Whether all accounts are.
    impersonates_all: AtomicBool,
    /// Held while a transaction of an impersonated sender gets its nonce and comes to the pool.
    sending: Mutex<()>,
    miner: Miner,
    /// Another one each time that the chain is opened or begins anew.
    instance: Mutex<H256>,
}

/// The settings of a producer that is yet to be made: the pool needs them first.
pub(crate) struct Draft {
    settings: Arc<BlockSettings>,
    mining: Mining,
}

impl Draft {
    pub(crate) fn new(production: Production, spec: Arc<ChainSpec>, clock: Arc<dyn Clock>) -> Self {
        let settings = Arc::new(BlockSettings::new(spec, clock, production.coinbase));
        Self { settings, mining: production.mining }
    }

    pub(crate) fn next_header(&self) -> Arc<dyn NextHeader> {
        self.settings.clone()
    }

    /// Opens the snapshots that the backend's records hold, and begins to produce.
    pub(crate) fn finish(self, parts: ProducerParts) -> Result<Arc<Producer>, BackendError> {
        let snapshots = Mutex::new(Snapshots::open(&*parts.backend)?);
        let producer = Arc::new(Producer {
            parts,
            settings: self.settings,
            sealing: Mutex::default(),
            snapshots,
            impersonated: RwLock::default(),
            impersonates_all: AtomicBool::default(),
            sending: Mutex::default(),
            miner: Miner::default(),
            instance: Mutex::new(new_instance()),
        });
        producer.set_mining(self.mining);
        Ok(producer)
    }
}

impl Producer {
    /// Most blocks that one request may make.
    pub const MAX_BLOCKS: u64 = 10_000;

    /// Makes `count` blocks, one after the other, and answers them. Those after the first are `interval` seconds later
    /// each than the one before, or as the clock has it. The first one has `withdrawals`.
    pub fn mine(
        &self,
        count: u64,
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
        let mut withdrawals = Some(withdrawals);
        let mut blocks = Vec::new();
        for mined in 0..count {
            // Others get their turn between two blocks.
            let _sealing = self.sealing.lock();
            if let Some(interval) = interval.filter(|_| mined > 0) {
                let head = self.head()?;
                self.settings.set_timestamp(&head, head.header.timestamp.saturating_add(interval.max(1)))?;
            }
            blocks.extend(self.seal(withdrawals.take().unwrap_or_default(), true)?);
        }
        Ok(blocks)
    }

    /// About when the last of `count` blocks would be, if they were `interval` seconds apart.
    fn last_timestamp(&self, count: u64, interval: u64) -> Result<u64, ProducerError> {
        let next = self.settings.after(&*self.head()?).timestamp;
        Ok(next.saturating_add(count.saturating_mul(interval.max(1))))
    }

    /// Makes blocks until no transaction of the pool that could be in one is left. When `awaited` waits no more, only so many
    /// further ones: what others send meanwhile they see to themselves.
    pub fn mine_waiting(&self, awaited: Option<H256>) -> Result<(), ProducerError> {
        let mut further = MAX_FURTHER_BLOCKS;
        // Those who wait for the lock find most often that their transactions are mined when they have it.
        while further > 0 && self.seal_waiting()?.is_some() {
            if awaited.is_some_and(|hash| self.parts.pool.get(hash).is_none()) {
                further -= 1;
            }
        }
        Ok(())
    }

    /// Takes note that a transaction came to the pool, or, without one, that some may have become executable there.
    pub(crate) fn transactions_changed(&self, awaited: Option<H256>) {
        if self.miner.mining().is_instant()
            && let Err(error) = self.mine_waiting(awaited)
        {
            tracing::error!(%error, "no block could be made of what waits in the pool");
        }
    }

    fn seal_waiting(&self) -> Result<Option<BlockRef>, ProducerError> {
        let _sealing = self.sealing.lock();
        self.seal(Vec::new(), false)
    }

    /// Seals one block on top of the head, unless it would be empty and must not be.
    fn seal(&self, withdrawals: Vec<Withdrawal>, even_empty: bool) -> Result<Option<BlockRef>, ProducerError> {
        let ProducerParts { backend, executor, pool, spec } = &self.parts;
        let parent = self.head()?;
        let header = self.settings.after(&parent);
        if spec.fork(&header) < Fork::Shanghai && !withdrawals.is_empty() {
            return Err(ProducerError::NoWithdrawals);
        }
        let best = pool.best_for(&header);
        if best.is_empty() && !even_empty {
            return Ok(None);
        }
        let base_fee = header.base_fee_per_gas != fees::next_base_fee(spec, &parent.header);
        let limit_by_rules = next_header(spec, &parent, header.timestamp).gas_limit;
        let far = !is_gas_limit_step(limit_by_rules, header.gas_limit) && header.gas_limit != limit_by_rules;
        let (view, gas_limit) = (backend.view()?, header.gas_limit);
        let fill = |execution: &mut dyn BlockExecution| best.fill(execution, gas_limit);
        let block = assemble(&Context::unbounded(), &**executor, &*view, header, withdrawals, fill)?.block;
        // Views hold what lies below them; the backend works faster when it is the only one to.
        drop(view);
        if block.body.transactions.is_empty() && !even_empty {
            return Ok(None);
        }
        let unsigned = block.body.transactions.iter().any(|transaction| transaction.is_impersonating());
        let header = block.header.clone();
        backend.append_edited(block, Edits { base_fee, unsigned, gas_limit: far, ..Edits::default() })?;
        self.settings.sealed(&header.header);
        tracing::info!(block = header.header.number, hash = ?header.hash, gas = header.header.gas_used, "sealed");
        Ok(Some(header.block_ref()))
    }

    fn head(&self) -> Result<Arc<SealedHeader>, BackendError> {
        let view = self.parts.backend.view()?;
        let head = view.head();
        view.header(head.hash.into())?.ok_or(BackendError::UnknownBlock(head.number))
    }

    /// Lets the next block have this timestamp, in Unix seconds. Time goes on from there.
    pub fn set_next_timestamp(&self, timestamp: u64) -> Result<(), ProducerError> {
        let _sealing = self.sealing.lock();
        self.settings.set_timestamp(&*self.head()?, timestamp)
    }

    /// Lets the time of the chain be that of its head now, and go on from there with the clock.
    pub fn continue_time(&self) -> Result<(), ProducerError> {
        let _sealing = self.sealing.lock();
        self.settings.continue_from(self.head()?.header.timestamp);
        Ok(())
    }

    /// Lets the time of the chain jump ahead. Answers by how many seconds it is ahead of the clock then.
    pub fn increase_time(&self, seconds: u64) -> Result<i64, ProducerError> {
        self.settings.increase_time(seconds)
    }

    /// Lets the next block have this base fee, in wei per gas. Its successors follow from it by the rules.
    pub fn set_next_base_fee(&self, base_fee: u64) -> Result<(), ProducerError> {
        let _sealing = self.sealing.lock();
        if self.settings.after(&*self.head()?).base_fee_per_gas.is_none() {
            return Err(ProducerError::NoBaseFee);
        }
        self.settings.set_base_fee(base_fee);
        Ok(())
    }

    /// Lets the time of the chain be `timestamp` now, in Unix seconds. Answers by how many seconds that moves it.
    pub fn set_time(&self, timestamp: u64) -> Result<i64, ProducerError> {
        if timestamp > ProducerError::LAST_TIMESTAMP {
            return Err(ProducerError::TimestampTooHigh { timestamp });
        }
        let _sealing = self.sealing.lock();
        let before = self.settings.now();
        self.settings.continue_from(timestamp);
        Ok(timestamp.cast_signed() - before.cast_signed())
    }

    /// Lets all blocks from now on be `seconds` later than their parents, or go by the clock again. Answers the seconds
    /// that held before.
    pub fn set_block_interval(&self, seconds: Option<u64>) -> Result<Option<u64>, ProducerError> {
        let _sealing = self.sealing.lock();
        self.settings.set_interval(seconds)
    }

    /// Lets `address` get the tips from now on.
    pub fn set_coinbase(&self, address: Address) {
        let _sealing = self.sealing.lock();
        self.settings.set_coinbase(address);
    }

    /// Lets PREVRANDAO answer `value` in the next block.
    pub fn set_prev_randao(&self, value: H256) -> Result<(), ProducerError> {
        let _sealing = self.sealing.lock();
        if !self.settings.after(&*self.head()?).difficulty.is_zero() {
            return Err(ProducerError::NoPrevRandao);
        }
        self.settings.set_prev_randao(value);
        Ok(())
    }

    /// Lets all blocks from now on have this gas limit.
    pub fn set_gas_limit(&self, gas_limit: u64) -> Result<(), ProducerError> {
        {
            let _sealing = self.sealing.lock();
            self.settings.set_gas_limit(gas_limit)?;
            self.parts.pool.refresh()?;
        }
        self.transactions_changed(None);
        Ok(())
    }

    /// The header of the next block, as far as it is known before anything runs.
    pub fn next_header(&self) -> Result<Header, BackendError> {
        Ok(self.settings.after(&*self.head()?))
    }

    /// A name of the chain since it was opened or began anew.
    pub fn instance(&self) -> H256 {
        *self.instance.lock()
    }

    /// Which transactions come first.
    pub fn order(&self) -> TransactionOrder {
        self.parts.pool.order()
    }

    /// Lets anyone send transactions in the name of every account, or only of those that were named.
    pub fn impersonate_all(&self, allowed: bool) {
        self.impersonates_all.store(allowed, Ordering::Relaxed);
    }

    /// The accounts in whose names anyone may send, as far as they were named.
    pub fn impersonated(&self) -> Vec<Address> {
        self.impersonated.read().iter().copied().collect()
    }

    /// Lets anyone send transactions in the name of `address`, or not any more. Answers whether that is new.
    pub fn impersonate(&self, address: Address, allowed: bool) -> bool {
        let mut impersonated = self.impersonated.write();
        if allowed { impersonated.insert(address) } else { impersonated.remove(&address) }
    }

    /// Whoever holds it is the only one who sends in the name of others.
    pub(crate) fn sending(&self) -> MutexGuard<'_, ()> {
        self.sending.lock()
    }

    /// Whether anyone may send transactions in the name of `address`.
    pub fn is_impersonated(&self, address: Address) -> bool {
        self.impersonates_all.load(Ordering::Relaxed) || self.impersonated.read().contains(&address)
    }
}

fn new_instance() -> H256 {
    keccak256(Uuid::new_v4().as_bytes())
}
