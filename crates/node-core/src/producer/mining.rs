//! When blocks are produced.

use super::{Producer, ProducerError, log_failure};
use crate::backend::BackendError;
use crate::executor::ExecutionError;
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// When blocks are produced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mining {
    /// As soon as a transaction is pending. The request that sends it waits for the block.
    #[default]
    Instant,
    /// At this interval, even if empty. Zero is the same as [`Manual`](Self::Manual).
    Interval(Duration),
    /// Both for pending transactions and at this interval. Zero is the same as [`Instant`](Self::Instant).
    Mixed(Duration),
    /// Only on request.
    Manual,
}

impl Mining {
    /// Returns whether transactions are mined as soon as they arrive.
    pub fn is_instant(self) -> bool {
        matches!(self, Self::Instant | Self::Mixed(_))
    }

    /// Returns the same with an interval that is not zero, if it has one.
    fn without_zero(self) -> Self {
        match self {
            Self::Interval(Duration::ZERO) => Self::Manual,
            Self::Mixed(Duration::ZERO) => Self::Instant,
            other => other,
        }
    }

    /// Returns the interval between blocks, or `None` if there is none.
    pub fn interval(self) -> Option<Duration> {
        match self {
            Self::Interval(interval) | Self::Mixed(interval) => Some(interval),
            Self::Instant | Self::Manual => None,
        }
    }
}

/// Controls the thread that produces blocks at intervals, if there is one.
#[derive(Default)]
pub(super) struct Miner(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    mining: Mining,
    running: bool,
    ended: bool,
}

impl Miner {
    pub(super) fn mining(&self) -> Mining {
        self.0.state.lock().mining
    }
}

impl Drop for Miner {
    fn drop(&mut self) {
        self.0.state.lock().ended = true;
        self.0.changed.notify_all();
    }
}

impl Producer {
    /// When blocks are produced.
    pub fn mining(&self) -> Mining {
        self.miner.mining()
    }

    /// Turns instant mining on or off. Turning it on stops mining at intervals.
    ///
    /// # Errors
    /// As [`set_mining`](Self::set_mining).
    pub fn set_automine(self: &Arc<Self>, automine: bool) -> Result<(), ProducerError> {
        let mining = match (self.mining(), automine) {
            (_, true) => Mining::Instant,
            (Mining::Instant, false) => Mining::Manual,
            (Mining::Mixed(interval), false) => Mining::Interval(interval),
            (other, false) => other,
        };
        self.set_mining(mining)
    }

    /// Produces blocks only at this interval, or only on request if it is zero.
    ///
    /// # Errors
    /// As [`set_mining`](Self::set_mining).
    pub fn set_interval_mining(self: &Arc<Self>, interval: Duration) -> Result<(), ProducerError> {
        self.set_mining(Mining::Interval(interval))
    }

    /// Sets when blocks are produced. If that is at once, mines the pending transactions, unless no block can be valid.
    ///
    /// # Errors
    /// If a block cannot be stored, or the thread that produces blocks cannot be started. The setting is then as
    /// before.
    pub fn set_mining(self: &Arc<Self>, mining: Mining) -> Result<(), ProducerError> {
        let before = self.switch_mining(mining)?;
        if !self.mining().is_instant() {
            return Ok(());
        }
        match self.mine_waiting(None) {
            Err(error) if !matches!(error, ProducerError::Execution(ExecutionError::SystemContract { .. })) => {
                self.switch_mining(before)?;
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Sets when blocks are produced from now on. Returns the previous setting.
    pub(super) fn switch_mining(self: &Arc<Self>, mining: Mining) -> Result<Mining, BackendError> {
        let mining = mining.without_zero();
        let before = {
            let mut state = self.miner.0.state.lock();
            if mining.interval().is_some() && !state.running {
                let (shared, producer) = (self.miner.0.clone(), Arc::downgrade(self));
                let thread = thread::Builder::new().name("block-producer".to_owned());
                thread.spawn(move || shared.run(&producer)).map_err(BackendError::NoThread)?;
                state.running = true;
            }
            self.parts.pool.require_base_fee(mining == Mining::Instant);
            std::mem::replace(&mut state.mining, mining)
        };
        self.miner.0.changed.notify_all();
        Ok(before)
    }
}

impl Shared {
    /// Produces blocks at intervals until the producer is dropped.
    fn run(&self, producer: &Weak<Producer>) {
        let mut state = self.state.lock();
        let mut begun = (state.mining, Instant::now());
        while !state.ended {
            if state.mining != begun.0 {
                begun = (state.mining, Instant::now());
            }
            let due = begun.0.interval().and_then(|interval| begun.1.checked_add(interval));
            match due {
                None => self.changed.wait(&mut state),
                Some(due) if due > Instant::now() => drop(self.changed.wait_until(&mut state, due)),
                Some(due) => {
                    begun.1 = due.max(Instant::now() - begun.0.interval().unwrap_or_default());
                    drop(state);
                    let Some(producer) = producer.upgrade() else { return };
                    // A precompile of the user may panic. The next block may not run it.
                    match catch_unwind(AssertUnwindSafe(|| producer.mine(1, None, Vec::new()))) {
                        Ok(Ok(_)) => {}
                        Ok(Err(error)) => log_failure(&error),
                        Err(_) => tracing::error!("cannot seal a block: the executor panicked"),
                    }
                    drop(producer);
                    state = self.state.lock();
                }
            }
        }
    }
}
