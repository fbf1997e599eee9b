//! Simulations of blocks.

use super::call::{BlockOverrides, CallArguments, StateOverrides};
use super::{Block, Hex, Log};
use crate::error::RpcError;
use crate::options::with_option;
use node_core::block::SealedHeader;
use node_core::executor::{CallFailure, OverrideError, SimulatedCallOutcome, TransactionError};
use node_core::node::{self, FoundBlock, Limit, SimulateError};
use node_types::wire::{BytesData, Data};
use node_types::{H256, consensus};
use serde::{Deserialize, Serialize};

/// Code of a call that failed for a reason other than a revert.
const VM_ERROR: i64 = -32015;

/// The parameter of eth_simulateV1.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Simulation {
    block_state_calls: Vec<BlockStateCalls>,
    trace_transfers: Option<bool>,
    validation: Option<bool>,
    return_full_transactions: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockStateCalls {
    block_overrides: Option<BlockOverrides>,
    state_overrides: Option<StateOverrides>,
    calls: Option<Vec<CallArguments>>,
}

/// A simulated block with the results of its calls.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SimulatedBlock {
    #[serde(flatten)]
    block: Block,
    calls: Vec<CallResult>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult {
    return_data: BytesData,
    logs: Vec<Log>,
    gas_used: Hex<u64>,
    max_used_gas: Hex<u64>,
    status: Hex<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

impl Simulation {
    /// Returns whether blocks are returned with full transactions.
    pub(crate) fn whole(&self) -> bool {
        self.return_full_transactions.unwrap_or(false)
    }

    /// Converts the simulation, which must be for the chain `chain_id`.
    pub(crate) fn read(self, chain_id: u64) -> Result<node::Simulation, RpcError> {
        if self.block_state_calls.is_empty() {
            return Err(RpcError::new(RpcError::INVALID_PARAMS, "empty input"));
        }
        let block = |block: BlockStateCalls| {
            let calls = block.calls.unwrap_or_default().into_iter().map(|call| call.read(chain_id));
            Ok(node::BlockStateCalls {
                block_overrides: block.block_overrides.unwrap_or_default().read(),
                state_overrides: block.state_overrides.unwrap_or_default().read()?,
                calls: calls.collect::<Result<_, RpcError>>()?,
            })
        };
        Ok(node::Simulation {
            blocks: self.block_state_calls.into_iter().map(block).collect::<Result<_, RpcError>>()?,
            trace_transfers: self.trace_transfers.unwrap_or(false),
            validation: self.validation.unwrap_or(false),
        })
    }
}

impl SimulatedBlock {
    /// Converts a block; with full transactions if `whole`.
    pub(crate) fn of(simulated: node::SimulatedBlock, whole: bool) -> Self {
        let node::SimulatedBlock { block, calls } = simulated;
        let hashes = block.body.transactions.iter().map(|transaction| transaction.hash);
        let calls = (hashes.zip(calls).enumerate())
            .map(|(index, (hash, call))| CallResult::of(&block.header, index, hash, call))
            .collect();
        let found = FoundBlock { header: block.header.clone(), body: block.body.clone(), pending: false };
        Self { block: Block::of(&found, whole), calls }
    }
}

impl CallResult {
    /// Converts the result of the call at `index`.
    fn of(header: &SealedHeader, index: usize, transaction: H256, call: SimulatedCallOutcome) -> Self {
        let placed = |(log_index, log): (u64, consensus::Log)| Log {
            address: Data(log.address),
            topics: log.topics.into_iter().map(Data).collect(),
            data: Data(log.data),
            block_number: Some(Hex(header.header.number)),
            transaction_hash: Some(Data(transaction)),
            transaction_index: Some(Hex(index as u64)),
            block_hash: Some(Data(header.hash)),
            block_timestamp: Some(Hex(header.header.timestamp)),
            log_index: Some(Hex(log_index)),
            removed: false,
        };
        Self {
            return_data: Data(call.output),
            logs: call.logs.into_iter().map(placed).collect(),
            gas_used: Hex(call.gas_used),
            max_used_gas: Hex(call.max_used_gas),
            status: Hex(call.failure.is_none().into()),
            error: call.failure.map(failure),
        }
    }
}

fn failure(failure: CallFailure) -> RpcError {
    match failure {
        CallFailure::Reverted { reason, output } => RpcError::reverted(reason.as_deref(), &output),
        CallFailure::Halted { reason, .. } => RpcError::new(VM_ERROR, reason),
        CallFailure::GasCap { cap } => {
            let message = format!("out of gas: {cap} gas are left of what all calls together may use");
            RpcError::new(VM_ERROR, with_option(message, Some(Limit::GasCap)))
        }
    }
}

impl From<SimulateError> for RpcError {
    fn from(error: SimulateError) -> Self {
        let limit = matches!(error, SimulateError::GasUsedUp { .. }).then_some(Limit::GasCap);
        let message = with_option(&error, limit);
        let code = match error {
            SimulateError::GasUsedUp { .. } => -38013,
            SimulateError::NumberOrder { .. } => -38020,
            SimulateError::TimeOrder { .. } => -38021,
            SimulateError::TooManyBlocks | SimulateError::TooMuchOutput => -38026,
            SimulateError::Override(OverrideError::MovedToItself(_)) => -38022,
            SimulateError::Override(_) => Self::SERVER,
            SimulateError::Refused { reason, .. } => refusal(&reason),
            SimulateError::Node(error) => return error.into(),
        };
        Self::new(code, message)
    }
}

/// Returns the code of an invalid transaction.
fn refusal(error: &TransactionError) -> i64 {
    match error {
        TransactionError::NonceTooLow { .. } => -38010,
        TransactionError::NonceTooHigh { .. } => -38011,
        TransactionError::FeeCapTooLow { .. } => -38012,
        TransactionError::IntrinsicGas { .. } | TransactionError::FloorGas { .. } => -38013,
        TransactionError::InsufficientFunds { .. } | TransactionError::FeesBeyond128Bits => -38014,
        TransactionError::BlockGasExceeded { .. } => -38015,
        TransactionError::SenderHasCode(_) => -38024,
        TransactionError::InitCodeTooLong { .. } => -38025,
        TransactionError::NonceOverflow => RpcError::INTERNAL,
        _ => RpcError::INVALID_PARAMS,
    }
}
