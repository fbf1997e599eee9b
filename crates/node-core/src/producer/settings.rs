//! The settings for the blocks that a producer seals.

use super::ProducerError;
use crate::assembly::{NextHeader, next_header_at};
use crate::block::SealedHeader;
use crate::clock::Clock;
use crate::protocol::ChainSpec;
use crate::protocol::gas::BLOCK_GAS_LIMITS;
use node_types::consensus::Header;
use node_types::{Address, H256};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Determines the header of the next block from the rules, the system clock plus an offset, and values chosen by
/// requests.
pub(crate) struct BlockSettings {
    spec: Arc<ChainSpec>,
    clock: Arc<dyn Clock>,
    /// Beneficiary unless a request chooses another.
    coinbase: Address,
    /// Whether the chain's clock continues from the head when the chain is reset.
    continues: AtomicBool,
    chosen: Mutex<Choices>,
}

/// The values chosen by requests.
#[derive(Clone, Copy, Debug, Default)]
struct Choices {
    /// How far the chain's clock is ahead of the system clock, in milliseconds.
    offset: i64,
    /// Beneficiary of all further blocks; `None` for the configured one.
    coinbase: Option<Address>,
    /// Gas limit of all further blocks; `None` for that of the parent.
    gas_limit: Option<u64>,
    /// Seconds between blocks; `None` to follow the clock.
    interval: Option<u64>,
    /// Values for the next block only.
    next: OneBlock,
}

/// Values chosen for the next block only. `None` leaves a value to the rules and the clock.
#[derive(Clone, Copy, Debug, Default)]
struct OneBlock {
    /// Timestamp in Unix seconds.
    timestamp: Option<u64>,
    /// Lowest timestamp, if the time was set back to before the parent.
    least_timestamp: Option<u64>,
    /// Base fee in wei per gas.
    base_fee: Option<u64>,
    /// Value of PREVRANDAO.
    prev_randao: Option<H256>,
}

impl Choices {
    /// Returns the timestamp of the block after `parent`, given the current time `now`; both in Unix seconds.
    fn timestamp(&self, spec: &ChainSpec, parent: &SealedHeader, now: u64) -> u64 {
        let by_interval = self.interval.map(|interval| parent.header.timestamp.saturating_add(interval));
        let by_interval = by_interval.filter(|_| self.next.least_timestamp.is_none());
        self.next.timestamp.or(by_interval).unwrap_or(now).max(self.least_timestamp(spec, parent))
    }

    /// Returns the lowest timestamp of the block after `parent`.
    fn least_timestamp(&self, spec: &ChainSpec, parent: &SealedHeader) -> u64 {
        self.next.least_timestamp.unwrap_or_else(|| spec.least_timestamp(parent.header.timestamp))
    }

    /// Fails if the block after `parent` cannot have this timestamp.
    fn check_timestamp(&self, spec: &ChainSpec, parent: &SealedHeader, timestamp: u64) -> Result<(), ProducerError> {
        let least = self.least_timestamp(spec, parent);
        if timestamp < least {
            return Err(ProducerError::TimestampTooLow { timestamp, least });
        }
        if timestamp > ProducerError::LAST_TIMESTAMP {
            return Err(ProducerError::TimestampTooHigh { timestamp });
        }
        Ok(())
    }
}

impl BlockSettings {
    pub(crate) fn new(spec: Arc<ChainSpec>, clock: Arc<dyn Clock>, coinbase: Address) -> Self {
        Self { spec, clock, coinbase, continues: AtomicBool::default(), chosen: Mutex::default() }
    }

    /// Returns the chain's time in Unix seconds.
    pub(super) fn now(&self) -> u64 {
        self.now_with(self.chosen.lock().offset)
    }

    fn now_with(&self, offset: i64) -> u64 {
        chain_time(self.system_time(), offset)
    }

    /// Returns the time of the system in milliseconds.
    pub(super) fn system_time(&self) -> u64 {
        self.clock.now_millis()
    }

    /// Sets the timestamp of the next block, from which the chain's clock continues.
    pub(super) fn set_timestamp(&self, parent: &SealedHeader, timestamp: u64) -> Result<(), ProducerError> {
        self.chosen.lock().check_timestamp(&self.spec, parent, timestamp)?;
        self.chosen.lock().next.timestamp = Some(timestamp);
        Ok(())
    }

    /// Fails if the next block cannot have this timestamp.
    pub(super) fn check_timestamp(&self, parent: &SealedHeader, timestamp: u64) -> Result<(), ProducerError> {
        self.chosen.lock().check_timestamp(&self.spec, parent, timestamp)
    }

    /// Advances the chain's clock by `seconds`, or from the timestamp of `head` if that is ahead of the clock, as it
    /// is when blocks are mined faster than one per second, unless the time was set back. Returns by how many seconds the chain's clock is then
    /// ahead of the system clock.
    pub(super) fn increase_time(&self, head: &SealedHeader, seconds: u64) -> Result<i64, ProducerError> {
        let mut chosen = self.chosen.lock();
        chosen.offset = self.increased(&chosen, head, seconds)?;
        Ok(chosen.offset / 1_000)
    }

    /// Fails if the chain's clock cannot be advanced by `seconds`.
    pub(super) fn check_increase(&self, head: &SealedHeader, seconds: u64) -> Result<(), ProducerError> {
        self.increased(&self.chosen.lock(), head, seconds).map(drop)
    }

    /// Returns the offset of the chain's clock, in milliseconds, after it was advanced by `seconds`.
    fn increased(&self, chosen: &Choices, head: &SealedHeader, seconds: u64) -> Result<i64, ProducerError> {
        let now = self.clock.now_millis();
        let from_head = i128::from(head.header.timestamp) * 1_000 - i128::from(now);
        let least = if chosen.next.least_timestamp.is_some() { i128::MIN } else { from_head };
        let offset = least.max(chosen.offset.into()) + i128::from(seconds) * 1_000;
        let offset = i64::try_from(offset).ok();
        let offset = offset.filter(|offset| self.now_with(*offset) <= ProducerError::LAST_TIMESTAMP);
        offset.ok_or(ProducerError::TooFarAhead { seconds })
    }

    /// Sets the chain's time to `timestamp`.
    pub(super) fn continue_from(&self, timestamp: u64) {
        let ahead = i128::from(timestamp) * 1_000 - i128::from(self.clock.now_millis());
        let mut chosen = self.chosen.lock();
        chosen.offset = i64::try_from(ahead).unwrap_or(chosen.offset);
    }

    /// Sets the chain's time to the timestamp of `head` if that is ahead of it.
    pub(super) fn continue_after(&self, head: &SealedHeader) {
        if head.header.timestamp > self.now() {
            self.continue_from(head.header.timestamp);
        }
    }

    /// Sets the chain's time to `timestamp`. If that is before `head`, the next block is as well, on chains that allow
    /// it. Other chains refuse it.
    pub(super) fn set_time(&self, head: &SealedHeader, timestamp: u64) -> Result<(), ProducerError> {
        let head = head.header.timestamp;
        let is_before = timestamp < head;
        if is_before && !self.spec.relaxations.equal_timestamps {
            return Err(ProducerError::TimeBeforeHead { timestamp, head });
        }
        self.continue_from(timestamp);
        self.chosen.lock().next.least_timestamp = is_before.then_some(timestamp);
        Ok(())
    }

    /// Sets the chain's time to the timestamp of `head`, and to that of the genesis block when the chain is reset.
    pub(super) fn continue_time(&self, head: &SealedHeader) {
        self.continues.store(true, Ordering::Relaxed);
        self.continue_from(head.header.timestamp);
    }

    /// Sets the base fee of the next block.
    pub(super) fn set_base_fee(&self, base_fee: u64) {
        self.chosen.lock().next.base_fee = Some(base_fee);
    }

    /// Called when a block was sealed. Discards the values chosen for it; if its timestamp was one of them, or
    /// `chosen_time` is set, the chain's clock continues from there.
    pub(super) fn sealed(&self, header: &Header, chosen_time: bool) {
        let now = self.clock.now_millis();
        let mut chosen = self.chosen.lock();
        if chosen_time || chosen.next.timestamp.is_some() {
            let ahead = i128::from(header.timestamp) * 1_000 - i128::from(now);
            chosen.offset = i64::try_from(ahead).unwrap_or(chosen.offset);
        }
        chosen.next = OneBlock::default();
    }

    /// Returns how far the chain's time is ahead of the clock, in milliseconds.
    pub(super) fn offset(&self) -> i64 {
        self.chosen.lock().offset
    }

    /// Sets how far the chain's time is ahead of the clock, in milliseconds, and discards the values chosen for the
    /// next block.
    pub(super) fn revert_offset(&self, offset: i64) {
        let mut chosen = self.chosen.lock();
        (chosen.offset, chosen.next) = (offset, OneBlock::default());
    }

    /// Discards all chosen values, and sets the chain's time as at the start, when `genesis` was the head.
    pub(super) fn reset(&self, genesis: &SealedHeader) {
        *self.chosen.lock() = Choices::default();
        if self.continues.load(Ordering::Relaxed) {
            self.continue_from(genesis.header.timestamp);
        }
    }

    /// Sets the beneficiary of all blocks from now on.
    pub(super) fn set_coinbase(&self, coinbase: Address) {
        self.chosen.lock().coinbase = Some(coinbase);
    }

    /// Sets the value of PREVRANDAO in the next block.
    pub(super) fn set_prev_randao(&self, value: H256) {
        self.chosen.lock().next.prev_randao = Some(value);
    }

    /// Sets the gas limit of all blocks from now on.
    pub(super) fn set_gas_limit(&self, gas_limit: u64) -> Result<(), ProducerError> {
        if !BLOCK_GAS_LIMITS.contains(&gas_limit) {
            return Err(ProducerError::GasLimitRange { gas_limit });
        }
        self.chosen.lock().gas_limit = Some(gas_limit);
        Ok(())
    }

    /// Sets the number of seconds between the timestamps of blocks; `None` makes them follow the clock again. Returns
    /// the previous setting.
    pub(super) fn set_interval(&self, seconds: Option<u64>) -> Result<Option<u64>, ProducerError> {
        if let Some(seconds) = seconds.filter(|seconds| *seconds > ProducerError::LAST_TIMESTAMP) {
            return Err(ProducerError::TooFarAhead { seconds });
        }
        if seconds == Some(0) && !self.spec.relaxations.equal_timestamps {
            return Err(ProducerError::ZeroInterval);
        }
        Ok(std::mem::replace(&mut self.chosen.lock().interval, seconds))
    }

    /// Returns the header of the block after `parent`, with `timestamp` if there is one instead of the chosen time.
    ///
    /// `system_time` is in milliseconds: an attempt that is repeated makes the same block.
    ///
    /// # Errors
    /// If `timestamp` is out of range, or no valid block can follow, because the chain was started with an extreme gas
    /// limit or timestamp.
    pub(super) fn next(
        &self,
        parent: &SealedHeader,
        timestamp: Option<u64>,
        system_time: u64,
    ) -> Result<Header, ProducerError> {
        let mut chosen = *self.chosen.lock();
        if let Some(timestamp) = timestamp {
            chosen.check_timestamp(&self.spec, parent, timestamp)?;
            chosen.next.timestamp = Some(timestamp);
        }
        self.valid(parent, chosen, system_time)
    }

    /// Like [`next`](Self::next), but ignores the values chosen for the next block only.
    pub(super) fn replacement(&self, parent: &SealedHeader, system_time: u64) -> Result<Header, ProducerError> {
        self.valid(parent, Choices { next: OneBlock::default(), ..*self.chosen.lock() }, system_time)
    }

    fn valid(&self, parent: &SealedHeader, chosen: Choices, system_time: u64) -> Result<Header, ProducerError> {
        let header = self.header(parent, chosen, system_time);
        let Header { gas_limit, timestamp, .. } = header;
        if !BLOCK_GAS_LIMITS.contains(&gas_limit) {
            return Err(ProducerError::GasLimitRange { gas_limit });
        }
        if timestamp > ProducerError::LAST_TIMESTAMP {
            return Err(ProducerError::TimestampTooHigh { timestamp });
        }
        Ok(header)
    }

    fn header(&self, parent: &SealedHeader, chosen: Choices, system_time: u64) -> Header {
        let now = chain_time(system_time, chosen.offset);
        let header = next_header_at(&self.spec, parent, chosen.timestamp(&self.spec, parent, now));
        let merged = header.difficulty.is_zero();
        Header {
            beneficiary: chosen.coinbase.unwrap_or(self.coinbase),
            gas_limit: chosen.gas_limit.unwrap_or(header.gas_limit),
            base_fee_per_gas: header.base_fee_per_gas.map(|regular| chosen.next.base_fee.unwrap_or(regular)),
            // Before the merge the mix hash is part of a proof of work, which produced blocks do not have.
            mix_hash: chosen.next.prev_randao.filter(|_| merged).unwrap_or(header.mix_hash),
            ..header
        }
    }
}

/// Returns the chain's time in seconds, which is `offset` ahead of the system's; both are in milliseconds.
fn chain_time(system_time: u64, offset: i64) -> u64 {
    system_time.saturating_add_signed(offset) / 1_000
}

impl NextHeader for BlockSettings {
    fn after(&self, parent: &SealedHeader) -> Header {
        self.header(parent, *self.chosen.lock(), self.system_time())
    }
}
