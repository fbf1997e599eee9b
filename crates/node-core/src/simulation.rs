//! The port to whatever runs blocks that are only imagined.

use crate::block::RecoveredTransaction;
use crate::executor::{BlockOutcome, CallFailure, ExecutionError};
use crate::overrides::StateOverrides;
use node_types::consensus::{Log, Withdrawal};
use node_types::{Address, Bytes, U256};

/// In what a block that is only imagined differs from one of the chain.
///
/// Senders may have code and need not sign, and the cap of EIP-7825 does not count.
#[derive(Clone, Copy, Debug)]
pub struct SimulationRules<'a> {
    /// Accounts to change before anything runs.
    pub overrides: &'a StateOverrides,
    /// The blob base fee, where it does not follow from the header.
    pub blob_base_fee: Option<U256>,
    /// Whether nonces count, and fees also where a transaction offers none.
    pub validate: bool,
    /// Whether transfers of ether are told as logs.
    pub trace_transfers: bool,
}

/// A block that is only imagined, while it is executed.
pub trait SimulatedExecution {
    /// The nonce that the next transaction of `sender` has.
    fn nonce(&mut self, sender: Address) -> Result<u64, ExecutionError>;

    /// Executes the next transaction. One that is refused leaves no trace.
    fn transact(&mut self, transaction: &RecoveredTransaction) -> Result<SimulatedCall, ExecutionError>;

    /// Ends the block, as [`BlockExecution::finish`](crate::executor::BlockExecution::finish) does. Transfers that were
    /// told as logs are in no receipt.
    fn finish(self: Box<Self>, withdrawals: Option<&[Withdrawal]>) -> Result<BlockOutcome, ExecutionError>;
}

/// How a transaction of an imagined block ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedCall {
    /// What it returned; nothing if it failed.
    pub output: Bytes,
    /// Its logs, with those that tell transfers of ether, each with its number in the block. Logs that were reverted are
    /// counted too.
    pub logs: Vec<(u64, Log)>,
    /// Gas used after refunds.
    pub gas_used: u64,
    /// Gas used at the highest point.
    pub max_used_gas: u64,
    /// Why it failed, if it did.
    pub failure: Option<CallFailure>,
}
