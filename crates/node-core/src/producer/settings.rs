//! What the blocks that are produced are to be like.

use super::ProducerError;
use crate::assembly::{NextHeader, next_header};
use crate::block::SealedHeader;
use crate::clock::Clock;
use crate::forks::ChainSpec;
use crate::gas::BLOCK_GAS_LIMITS;
use node_types::consensus::Header;
use node_types::{Address, H256};
use parking_lot::Mutex;
use std::sync::Arc;

/// Says what the next block is: the rules, the clock with an offset, and what somebody wished for it.
pub(super) struct BlockSettings {
    spec: Arc<ChainSpec>,
    clock: Arc<dyn Clock>,
    /// Who gets the tips before anyone wishes otherwise; none for the beneficiary of the parent.
    coinbase: Option<Address>,
    wishes: Mutex<Wishes>,
}

/// What somebody wished.
#[derive(Clone, Copy, Debug, Default)]
struct Wishes {
    /// How far the time of the chain is ahead of the clock, in milliseconds.
    offset: i64,
    /// Who gets the tips from now on.
    coinbase: Option<Address>,
    /// Gas limit of all blocks from now on; none for that of the parent.
    gas_limit: Option<u64>,
    /// Seconds from each block to the next; none for what the clock says.
    interval: Option<u64>,
    /// For the next block alone.
    next: NextBlock,
}

/// What somebody wished for the next block.
#[derive(Clone, Copy, Debug, Default)]
struct NextBlock {
    /// Timestamp in Unix seconds.
    timestamp: Option<u64>,
    /// Base fee in wei per gas.
    base_fee: Option<u64>,
    /// What PREVRANDAO answers.
    prev_randao: Option<H256>,
}

impl Wishes {
    /// The timestamp of the block after `parent` in Unix seconds, if `now` is the time.
    fn timestamp(&self, parent: &SealedHeader, now: u64) -> u64 {
        let by_interval = self.interval.map(|interval| parent.header.timestamp.saturating_add(interval));
        self.next.timestamp.or(by_interval).unwrap_or(now)
    }
}

impl BlockSettings {
    pub(super) fn new(spec: Arc<ChainSpec>, clock: Arc<dyn Clock>, coinbase: Option<Address>) -> Self {
        Self { spec, clock, coinbase, wishes: Mutex::default() }
    }

    /// The time of the chain in Unix seconds.
    pub(super) fn now(&self) -> u64 {
        self.now_with(self.wishes.lock().offset)
    }

    fn now_with(&self, offset: i64) -> u64 {
        self.clock.now_millis().saturating_add_signed(offset) / 1_000
    }

    /// Lets the next block have a timestamp, from which time goes on.
    pub(super) fn set_timestamp(&self, parent: &SealedHeader, timestamp: u64) -> Result<(), ProducerError> {
        let least = parent.header.timestamp.saturating_add(1);
        if timestamp < least {
            return Err(ProducerError::TimestampTooLow { timestamp, least });
        }
        if timestamp > ProducerError::LAST_TIMESTAMP {
            return Err(ProducerError::TimestampTooHigh { timestamp });
        }
        self.wishes.lock().next.timestamp = Some(timestamp);
        Ok(())
    }

    /// Lets the time of the chain jump ahead, and answers by how many seconds it is ahead of the clock then.
    pub(super) fn increase_time(&self, seconds: u64) -> Result<i64, ProducerError> {
        let mut wishes = self.wishes.lock();
        let offset = i64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(1_000));
        let offset = offset.and_then(|more| wishes.offset.checked_add(more));
        match offset.filter(|offset| self.now_with(*offset) <= ProducerError::LAST_TIMESTAMP) {
            Some(offset) => {
                wishes.offset = offset;
                Ok(offset / 1_000)
            }
            None => Err(ProducerError::TooFarAhead { seconds }),
        }
    }

    /// Lets the time be `timestamp` now.
    pub(super) fn continue_from(&self, timestamp: u64) {
        let ahead = i128::from(timestamp) * 1_000 - i128::from(self.clock.now_millis());
        let mut wishes = self.wishes.lock();
        wishes.offset = i64::try_from(ahead).unwrap_or(wishes.offset);
    }

    /// Lets the next block have a base fee.
    pub(super) fn set_base_fee(&self, base_fee: u64) {
        self.wishes.lock().next.base_fee = Some(base_fee);
    }

    /// Takes note that a block was sealed: wishes for the next one are fulfilled.
    pub(super) fn sealed(&self, header: &Header) {
        let now = self.clock.now_millis();
        let mut wishes = self.wishes.lock();
        if wishes.next.timestamp.is_some() {
            let ahead = i128::from(header.timestamp) * 1_000 - i128::from(now);
            wishes.offset = i64::try_from(ahead).unwrap_or(wishes.offset);
        }
        wishes.next = NextBlock::default();
    }

    /// How far the time of the chain is ahead of the clock, in milliseconds.
    pub(super) fn offset(&self) -> i64 {
        self.wishes.lock().offset
    }

    /// Sets the time of the chain back to when it was `offset` ahead, and forgets what was wished for the next block.
    pub(super) fn set_back(&self, offset: i64) {
        let mut wishes = self.wishes.lock();
        (wishes.offset, wishes.next) = (offset, NextBlock::default());
    }

    /// Forgets all wishes, and goes by the clock.
    pub(super) fn reset(&self) {
        *self.wishes.lock() = Wishes::default();
    }

    /// Lets the tips go to `coinbase` from now on.
    pub(super) fn set_coinbase(&self, coinbase: Address) {
        self.wishes.lock().coinbase = Some(coinbase);
    }

    /// Lets PREVRANDAO answer `value` in the next block.
    pub(super) fn set_prev_randao(&self, value: H256) {
        self.wishes.lock().next.prev_randao = Some(value);
    }

    /// Lets all blocks from now on have this gas limit.
    pub(super) fn set_gas_limit(&self, gas_limit: u64) -> Result<(), ProducerError> {
        if !BLOCK_GAS_LIMITS.contains(&gas_limit) {
            return Err(ProducerError::GasLimitRange { gas_limit });
        }
        self.wishes.lock().gas_limit = Some(gas_limit);
        Ok(())
    }

    /// Lets blocks be `seconds` apart whatever the clock says, or go by the clock again. Answers what held before.
    pub(super) fn set_interval(&self, seconds: Option<u64>) -> Result<Option<u64>, ProducerError> {
        if let Some(seconds) = seconds.filter(|seconds| *seconds > ProducerError::LAST_TIMESTAMP) {
            return Err(ProducerError::TooFarAhead { seconds });
        }
        Ok(std::mem::replace(&mut self.wishes.lock().interval, seconds))
    }

    /// The header of the block after `parent` without what was wished for the next one, whatever its base fee is by the
    /// rules.
    pub(super) fn unwished(&self, parent: &SealedHeader) -> Header {
        let header = next_header(&self.spec, parent, self.now());
        Header { beneficiary: self.beneficiary(&header), ..header }
    }

    fn beneficiary(&self, header: &Header) -> Address {
        self.wishes.lock().coinbase.or(self.coinbase).unwrap_or(header.beneficiary)
    }
}

impl NextHeader for BlockSettings {
    fn after(&self, parent: &SealedHeader) -> Header {
        let wishes = *self.wishes.lock();
        let header = next_header(&self.spec, parent, wishes.timestamp(parent, self.now_with(wishes.offset)));
        let merged = header.difficulty.is_zero();
        Header {
            beneficiary: self.beneficiary(&header),
            gas_limit: wishes.gas_limit.unwrap_or(header.gas_limit),
            base_fee_per_gas: header.base_fee_per_gas.map(|by_rules| wishes.next.base_fee.unwrap_or(by_rules)),
            // Before the merge it is part of a seal, of which there is none.
            mix_hash: wishes.next.prev_randao.filter(|_| merged).unwrap_or(header.mix_hash),
            ..header
        }
    }
}
