//! What the blocks that are produced are to be like.

use super::ProducerError;
use crate::assembly::{NextHeader, next_header};
use crate::block::SealedHeader;
use crate::clock::Clock;
use crate::forks::ChainSpec;
use node_types::Address;
use node_types::consensus::Header;
use parking_lot::Mutex;
use std::sync::Arc;

/// Says what the next block is: the rules, the clock with an offset, and what somebody wished for it.
pub(super) struct BlockSettings {
    spec: Arc<ChainSpec>,
    clock: Arc<dyn Clock>,
    /// Who gets the tips; none for the beneficiary of the parent.
    coinbase: Option<Address>,
    wishes: Mutex<Wishes>,
}

/// What somebody wished.
#[derive(Clone, Copy, Debug, Default)]
struct Wishes {
    /// How far the time of the chain is ahead of the clock, in milliseconds.
    offset: i64,
    /// Timestamp of the next block in Unix seconds.
    timestamp: Option<u64>,
    /// Base fee of the next block in wei per gas.
    base_fee: Option<u64>,
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
        self.wishes.lock().timestamp = Some(timestamp);
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
        self.wishes.lock().base_fee = Some(base_fee);
    }

    /// Takes note that a block was sealed: wishes for the next one are fulfilled.
    pub(super) fn sealed(&self, header: &Header) {
        let now = self.clock.now_millis();
        let mut wishes = self.wishes.lock();
        if wishes.timestamp.take().is_some() {
            let ahead = i128::from(header.timestamp) * 1_000 - i128::from(now);
            wishes.offset = i64::try_from(ahead).unwrap_or(wishes.offset);
        }
        wishes.base_fee = None;
    }

    /// How far the time of the chain is ahead of the clock, in milliseconds.
    pub(super) fn offset(&self) -> i64 {
        self.wishes.lock().offset
    }

    /// Sets the time of the chain back to when it was `offset` ahead, and forgets all wishes.
    pub(super) fn set_back(&self, offset: i64) {
        *self.wishes.lock() = Wishes { offset, ..Wishes::default() };
    }

    /// The header of the block after `parent` without what was wished for the next one, whatever its base fee is by the
    /// rules.
    pub(super) fn unwished(&self, parent: &SealedHeader) -> Header {
        let header = next_header(&self.spec, parent, self.now());
        Header { beneficiary: self.coinbase.unwrap_or(header.beneficiary), ..header }
    }
}

impl NextHeader for BlockSettings {
    fn after(&self, parent: &SealedHeader) -> Header {
        let Wishes { offset, timestamp, base_fee } = *self.wishes.lock();
        let header = next_header(&self.spec, parent, timestamp.unwrap_or_else(|| self.now_with(offset)));
        let by_rules = header.base_fee_per_gas;
        Header {
            beneficiary: self.coinbase.unwrap_or(header.beneficiary),
            base_fee_per_gas: by_rules.map(|by_rules| base_fee.unwrap_or(by_rules)),
            ..header
        }
    }
}
