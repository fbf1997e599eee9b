//! Mining of blocks, and their contents.

use super::named;
use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use crate::wire::{Block, Loose};
use node_core::block::BlockRef;
use node_types::BlockId;
use node_types::wire::{AddressData, HashData};
use serde::{Deserialize, Serialize, Serializer};
use std::time::Duration;

/// Multiples of this are milliseconds in `evm_setIntervalMining`, and other numbers seconds, except with the rules of
/// anvil. Clients of Hardhat send milliseconds with this method, and clients of anvil seconds; this tells apart those
/// that tests use.
const HARDHAT_STEP: u64 = 500;

/// A time above this is in milliseconds, as `Date.now()` returns it: in seconds it would be after the year 5000.
const LAST_SECONDS: u64 = 100_000_000_000;

/// The parameter of evm_mine: a timestamp, or an object.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a timestamp, or an object with timestamp and blocks")]
enum MineOptions {
    Timestamp(Loose<u64>),
    Options { timestamp: Option<Loose<u64>>, blocks: Option<Loose<u64>> },
}

/// A time in seconds: an integer if it is one.
struct Seconds(Duration);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.subsec_nanos() == 0 {
            serializer.serialize_u64(self.0.as_secs())
        } else {
            serializer.serialize_f64(self.0.as_secs_f64())
        }
    }
}

/// The parameter of miner_start, which is ignored.
type Threads = (Option<Loose<u64>>,);

pub(super) fn methods() -> Vec<Method> {
    let mut methods = making();
    methods.extend(time());
    methods.extend(contents());
    methods
}

fn making() -> Vec<Method> {
    [
        named(
            &["evm_mine"],
            &["options?"],
            "Mines blocks, the first at a timestamp if one is given.",
            |scope, (options,): (Option<MineOptions>,)| mine_at(scope, options).map(|_| "0x0"),
        ),
        named(
            &["anvil_mine_detailed", "evm_mine_detailed"],
            &["options?"],
            "Mines blocks and returns them with their transactions.",
            |scope, (options,): (Option<MineOptions>,)| {
                let blocks = mine_at(scope, options)?;
                scope.context.release_view();
                let block = |block: BlockRef| {
                    let found = scope.node.get_block(scope.context, BlockId::Hash(block.hash))?;
                    Ok(found.map(|found| Block::of(&found, true)))
                };
                blocks.into_iter().map(block).collect::<Result<Vec<_>, RpcError>>()
            },
        ),
        named(
            &["anvil_mine", "hardhat_mine"],
            &["blocks?", "interval?"],
            "Mines a number of blocks, a number of seconds apart.",
            |scope, (blocks, interval): (Option<Loose<u64>>, Option<Loose<u64>>)| {
                let blocks = blocks.map_or(1, |blocks| blocks.0);
                // Some clients send zero for no interval.
                let interval = interval.map(|interval| interval.0).filter(|interval| *interval > 0);
                scope.node.mine(scope.context, blocks, interval, Vec::new())?;
                Ok(())
            },
        ),
        named(
            &["anvil_getAutomine", "hardhat_getAutomine", "eth_mining"],
            &[],
            "Whether transactions are mined instantly.",
            |scope, ()| Ok(scope.control()?.mining().is_instant()),
        ),
        named(
            &["evm_setAutomine", "anvil_setAutomine"],
            &["automine"],
            "Turns instant mining on or off.",
            |scope, (automine,): (bool,)| {
                scope.control()?.set_automine(automine).map_err(RpcError::from)
            },
        ),
        named(&["miner_start"], &["threads?"], "Turns instant mining on, as in Ganache.", |scope, (_,): Threads| {
            scope.control()?.set_automine(true)?;
            Ok(true)
        }),
        named(&["miner_stop"], &[], "Turns instant mining off, as in Ganache.", |scope, ()| {
            scope.control()?.set_automine(false)?;
            Ok(true)
        }),
        named(
            &["anvil_getIntervalMining"],
            &[],
            "The interval of mining in seconds, with a fraction if it has one; null without one.",
            |scope, ()| Ok(scope.control()?.mining().interval().map(Seconds)),
        ),
        named(
            &["anvil_setIntervalMining"],
            &["seconds"],
            "Mines a block every given number of seconds; zero turns mining off.",
            |scope, (seconds,): (Loose<u64>,)| {
                scope.control()?.set_interval_mining(Duration::from_secs(seconds.0)).map_err(RpcError::from)
            },
        ),
        named(
            &["evm_setIntervalMining"],
            &["interval"],
            "Mines a block at an interval in seconds, as in anvil, unless it is a multiple of 500, which is in milliseconds, as in \
             Hardhat, except with the rules of anvil; zero turns mining off.",
            |scope, (interval,): (Loose<u64>,)| {
                let producer = scope.control()?;
                let is_hardhat = !scope.intervals_in_seconds && interval.0.is_multiple_of(HARDHAT_STEP);
                let unit = if is_hardhat { Duration::from_millis } else { Duration::from_secs };
                producer.set_interval_mining(unit(interval.0)).map_err(RpcError::from)
            },
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn mine_at(scope: Scope<'_>, options: Option<MineOptions>) -> Result<Vec<BlockRef>, RpcError> {
    let (timestamp, blocks) = match options {
        None => (None, None),
        Some(MineOptions::Timestamp(timestamp)) => (Some(timestamp), None),
        Some(MineOptions::Options { timestamp, blocks }) => (timestamp, blocks),
    };
    let producer = scope.control()?;
    let blocks = blocks.map_or(1, |blocks| blocks.0);
    let mined = match timestamp {
        Some(timestamp) => producer.mine_at(scope.context, blocks, timestamp.0),
        None => producer.mine_in(scope.context, blocks, None, Vec::new()),
    };
    mined.map_err(RpcError::from)
}

fn time() -> Vec<Method> {
    [
        named(
            &["evm_increaseTime", "anvil_increaseTime"],
            &["seconds"],
            "Moves the time ahead; returns by how many seconds it is ahead of the clock.",
            |scope, (seconds,): (Loose<u64>,)| scope.control()?.increase_time(seconds.0).map_err(RpcError::from),
        ),
        named(
            &["evm_setTime", "anvil_setTime"],
            &["timestamp"],
            "Sets the time, in seconds, or in milliseconds above 10^11; returns by how many seconds it changed.",
            |scope, (Loose(time),): (Loose<u64>,)| {
                let timestamp = if time > LAST_SECONDS { time / 1_000 } else { time };
                scope.control()?.set_time(timestamp).map_err(RpcError::from)
            },
        ),
        named(
            &["evm_setNextBlockTimestamp", "anvil_setNextBlockTimestamp"],
            &["timestamp"],
            "Sets the timestamp of the next block, from which the time continues.",
            |scope, (timestamp,): (Loose<u64>,)| {
                scope.control()?.set_next_timestamp(timestamp.0).map_err(RpcError::from)
            },
        ),
        named(
            &["anvil_setBlockTimestampInterval"],
            &["seconds"],
            "Sets the number of seconds between the timestamps of blocks.",
            |scope, (seconds,): (Loose<u64>,)| {
                scope.control()?.set_block_interval(Some(seconds.0)).map(drop).map_err(RpcError::from)
            },
        ),
        named(
            &["anvil_removeBlockTimestampInterval"],
            &[],
            "Removes the interval between timestamps; returns whether there was one.",
            |scope, ()| Ok(scope.control()?.set_block_interval(None)?.is_some()),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn contents() -> Vec<Method> {
    [
        named(
            &["anvil_setNextBlockBaseFeePerGas", "hardhat_setNextBlockBaseFeePerGas"],
            &["baseFee"],
            "Sets the base fee of the next block.",
            |scope, (base_fee,): (Loose<u64>,)| scope.control()?.set_next_base_fee(base_fee.0).map_err(RpcError::from),
        ),
        named(
            &["evm_setBlockGasLimit", "anvil_setBlockGasLimit"],
            &["gasLimit"],
            "Sets the gas limit of all blocks from now on.",
            |scope, (gas_limit,): (Loose<u64>,)| {
                scope.control()?.set_gas_limit(gas_limit.0).map_err(RpcError::from).map(|()| true)
            },
        ),
        named(
            &["anvil_setCoinbase", "hardhat_setCoinbase"],
            &["address"],
            "Sets the fee recipient of all blocks from now on.",
            |scope, (address,): (AddressData,)| {
                scope.control()?.set_coinbase(address.0);
                Ok(())
            },
        ),
        named(
            &["anvil_setPrevRandao", "hardhat_setPrevRandao"],
            &["value"],
            "Sets PREVRANDAO of the next block.",
            |scope, (value,): (HashData,)| {
                scope.control()?.set_prev_randao(value.0).map_err(RpcError::from).map(|()| true)
            },
        ),
        named(
            &["anvil_setMinGasPrice", "hardhat_setMinGasPrice"],
            &["gasPrice"],
            "Not supported: the base fee and a tip of zero are the minimum.",
            |_, (_price,): (Loose<node_types::U256>,)| -> Result<(), RpcError> {
                let reason = "not supported when EIP-1559 is active; set the base fee of the next block instead";
                Err(RpcError::new(RpcError::INVALID_PARAMS, reason))
            },
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
