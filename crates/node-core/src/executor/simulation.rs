//! The port to the execution of simulated blocks.

use crate::block::RecoveredTransaction;
use crate::executor::{BlockOutcome, CallFailure, ExecutionError, StateOverrides};
use node_types::consensus::{Log, Withdrawal};
use node_types::{Address, Bytes, U256};

/// The rules by which a simulated block differs from a block of the chain.
///
/// In all simulated blocks, senders may have code and need not sign, and the transaction gas cap (EIP-7825) does not
/// apply.
#[derive(Clone, Copy, Debug)]
pub struct SimulationRules<'a> {
    /// Overrides of the parent's state.
    pub overrides: &'a StateOverrides,
    /// Override of the blob base fee in wei per blob gas.
    pub blob_base_fee: Option<U256>,
    /// Whether to check nonces, and the fees even of transactions with a gas price of zero.
    pub validate: bool,
    /// Whether to add logs for transfers of ether.
    pub trace_transfers: bool,
}

/// A simulated block while it is executed.
///
/// # Errors
/// All methods fail as those of [`BlockExecution`](crate::executor::BlockExecution).
#[expect(clippy::missing_errors_doc, reason = "stated once for all methods")]
pub trait SimulatedExecution {
    /// Returns the nonce of the next transaction of `sender`.
    fn nonce(&mut self, sender: Address) -> Result<u64, ExecutionError>;

    /// Executes the next transaction. If it is refused, nothing changes.
    fn transact(&mut self, transaction: &RecoveredTransaction) -> Result<SimulatedCallOutcome, ExecutionError>;

    /// Finishes the block as [`BlockExecution::finish`](crate::executor::BlockExecution::finish) does. Receipts leave
    /// out the logs of transfers of ether.
    fn finish(self: Box<Self>, withdrawals: Option<&[Withdrawal]>) -> Result<BlockOutcome, ExecutionError>;
}

/// The outcome of a transaction in a simulated block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedCallOutcome {
    /// Return data. Empty if the transaction failed.
    pub output: Bytes,
    /// Logs with their indices in the block, including those of transfers of ether. Reverted logs also use up an index.
    pub logs: Vec<(u64, Log)>,
    /// Gas used, after refunds.
    pub gas_used: u64,
    /// Gas used, before refunds.
    pub max_used_gas: u64,
    /// Why the transaction failed. `None` if it succeeded.
    pub failure: Option<CallFailure>,
}
