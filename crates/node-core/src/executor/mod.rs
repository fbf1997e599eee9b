//! The port to the interpreter.

mod call;
mod overrides;
mod property;
mod simulation;
mod trace;

pub use call::Call;
pub use overrides::{AccountOverride, BlockOverrides, OverrideError, StateOverrides, StorageOverride};
pub use property::Property;
pub use simulation::{SimulatedCallOutcome, SimulatedExecution, SimulationRules};
pub use trace::{AccessListOutcome, TraceError, TracerJson, Tracing, WriteTrace};

use crate::backend::{BackendError, CacheUse, View};
use crate::block::RecoveredTransaction;
use crate::context::{Context, Interrupted};
use crate::crypto::{BlobVerifier, SenderRecovery};
use crate::protocol::Fork;
use crate::state::StateChanges;
use node_types::buffer::JsonBuffer;
use node_types::consensus::{Header, Receipt, Request, Withdrawal};
use node_types::{Address, Bytes, H256, U256};

/// Everything that a node needs to execute and check transactions. Implemented for all types that implement these
/// three traits.
pub trait Execution: Executor + SenderRecovery + BlobVerifier {}

impl<T: Executor + SenderRecovery + BlobVerifier> Execution for T {}

/// Executes code over a view of the chain.
///
/// # Errors
/// All methods fail if the call or the block breaks a rule, if the context is interrupted, or if the view cannot be
/// read.
#[expect(clippy::missing_errors_doc, reason = "stated once for all methods")]
pub trait Executor: Send + Sync {
    /// Starts a block on the state of its parent, and executes the system calls at its start.
    ///
    /// It uses these fields of `header`: number, parent hash, timestamp, beneficiary, gas limit, difficulty, mix
    /// hash, base fee, excess blob gas and parent beacon block root. The parent is the canonical block of `view` with
    /// the preceding number.
    fn begin_block<'a>(
        &'a self,
        context: &'a Context,
        view: &'a dyn View,
        header: &'a Header,
    ) -> Result<Box<dyn BlockExecution + 'a>, ExecutionError>;

    /// Starts a simulated block: like [`begin_block`](Self::begin_block), but under modified `rules`, and on the
    /// parent's state with the overrides in `rules`.
    fn begin_simulated<'a>(
        &'a self,
        context: &'a Context,
        view: &'a dyn View,
        header: &'a Header,
        rules: &SimulationRules<'_>,
    ) -> Result<Box<dyn SimulatedExecution + 'a>, ExecutionError>;

    /// Executes a call in the environment of `header` and on the state as of that block, both with the overrides of the
    /// call.
    fn call(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
    ) -> Result<CallOutcome, ExecutionError>;

    /// Returns the lowest gas limit with which `call` succeeds in the environment of `header` and on the state as of
    /// that block. The result may be up to 1.5% too high, but never too low. It does not exceed the block's gas
    /// limit, the context's gas budget, the cap of EIP-7825 if active, or the gas that the sender can pay for.
    fn estimate(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
    ) -> Result<EstimateOutcome, ExecutionError>;

    /// Executes a call as [`call`](Self::call) does, and appends the trace that `tracing` requests to `out`. Failed calls
    /// also have a trace. On an error, `out` may contain a part of the trace.
    fn trace_call(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
        tracing: &Tracing,
        out: &mut JsonBuffer,
    ) -> Result<(), TraceError>;

    /// Returns the access list of a call. The call is repeated with the list found so far until the list no longer
    /// grows.
    fn access_list(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
    ) -> Result<AccessListOutcome, ExecutionError>;

    /// Returns the precompiled and system contracts under `fork`.
    fn contracts(&self, fork: Fork) -> Contracts;

    /// Returns the statistics of each of its caches; empty if it has none. Must not wait for other work.
    fn caches(&self) -> Vec<CacheUse>;
}

/// The contracts that are part of a fork's rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contracts {
    /// Precompiled contracts in order of address.
    pub precompiles: Vec<NamedContract>,
    /// System contracts in order of name.
    pub system: Vec<NamedContract>,
}

/// A contract with its name in EIP-7910.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedContract {
    pub name: &'static str,
    pub address: Address,
}

/// A block during its execution.
///
/// # Errors
/// All methods fail if the transaction or the block breaks a rule, if the context is interrupted, or if the view
/// cannot be read.
#[expect(clippy::missing_errors_doc, reason = "stated once for all methods")]
pub trait BlockExecution {
    /// Executes the next transaction. If it is refused, nothing changes, and another transaction may follow.
    fn transact(&mut self, transaction: &RecoveredTransaction) -> Result<&Receipt, ExecutionError>;

    /// Has the next receipts made with zero as state root (before Byzantium), which takes long to compute, for work that needs
    /// only what transactions do.
    fn omit_state_roots(&mut self) {}

    /// Executes the next transaction as [`transact`](Self::transact) does, and appends the trace that `tracing`
    /// requests to `out`. If the trace contains the block's hash, it is that of the canonical block with this number.
    /// On an error, `out` may contain a part of the trace.
    fn trace(
        &mut self,
        transaction: &RecoveredTransaction,
        tracing: &Tracing,
        out: &mut JsonBuffer,
    ) -> Result<(), TraceError>;

    /// Ends the block early: executes a call on its current state, and appends the trace that `tracing` requests to
    /// `out`. On an error, `out` may contain a part of the trace.
    fn trace_call(self: Box<Self>, call: &Call, tracing: &Tracing, out: &mut JsonBuffer) -> Result<(), TraceError>;

    /// Returns the gas used so far.
    fn gas_used(&self) -> u64;

    /// Returns the blob gas used so far.
    fn blob_gas_used(&self) -> u64;

    /// Ends the block: applies rewards and withdrawals, and executes the system calls at its end.
    fn finish(
        self: Box<Self>,
        ommers: &[Header],
        withdrawals: Option<&[Withdrawal]>,
    ) -> Result<BlockOutcome, ExecutionError>;
}

/// The results of executing a block.
#[derive(Clone, Debug)]
pub struct BlockOutcome {
    /// One receipt for each transaction.
    pub receipts: Vec<Receipt>,
    /// Gas used by all transactions.
    pub gas_used: u64,
    /// Blob gas used by all transactions.
    pub blob_gas_used: u64,
    /// Execution requests without empty ones; `None` before Prague.
    pub requests: Option<Vec<Request>>,
    /// Changes to the parent's state.
    pub changes: StateChanges,
}

/// The result of executing a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It succeeded. A creation returns the code that it would deploy.
    Returned {
        /// The returned data.
        output: Bytes,
        gas_used: u64,
    },
    Failed(CallFailure),
}

/// The result of a gas estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EstimateOutcome {
    /// The call succeeds with this gas limit.
    Gas(u64),
    /// It fails even with the highest limit.
    Failed(CallFailure),
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFailure {
    Reverted {
        /// The decoded reason, if the output is an `Error(string)` or `Panic(uint256)`.
        reason: Option<String>,
        /// The returned data.
        output: Bytes,
    },
    /// It halted, because it ran out of gas or executed an invalid operation.
    Halted {
        /// A short description.
        reason: String,
        /// Whether it ran out of gas.
        out_of_gas: bool,
    },
    /// The highest gas limit that the caps allow is not enough.
    GasCap {
        /// That limit.
        cap: u64,
    },
}

/// Why a call, a transaction or a block could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    #[error(transparent)]
    Refused(#[from] TransactionError),
    /// A system contract is missing or failed (EIP-7002, EIP-7251, EIP-6110), so no block can be valid.
    #[error("system contract {address:#x}: {reason}")]
    SystemContract { address: Address, reason: String },
    #[error(transparent)]
    Override(#[from] OverrideError),
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A rule that a transaction breaks. The text begins with geth's text, by which clients recognize it; the values
/// follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionError {
    #[error("transaction type not supported: type {0} is not part of the active fork")]
    TypeNotSupported(u8),
    #[error("invalid chain id for signer: have {got} want {expected}")]
    ChainId { got: u64, expected: u64 },
    /// It has replay protection, but EIP-155 is not active.
    #[error("replay protection for chain {chain_id} before EIP-155 is in force")]
    ReplayProtectionTooEarly { chain_id: u64 },
    #[error("invalid sender: {0}")]
    Signature(crate::crypto::SignatureError),
    #[error("nonce too low: next nonce {expected}, tx nonce {got}")]
    NonceTooLow { got: u64, expected: u64 },
    #[error("nonce too high: next nonce {expected}, tx nonce {got}")]
    NonceTooHigh { got: u64, expected: u64 },
    /// The nonce cannot be incremented (EIP-2681).
    #[error("nonce has max value: 2^64 - 1 cannot be used")]
    NonceOverflow,
    /// The sender has code (EIP-3607).
    #[error("sender not an eoa: {0:#x} has code")]
    SenderHasCode(Address),
    #[error("insufficient funds for gas * price + value: balance {balance}, tx cost {required}")]
    InsufficientFunds {
        /// The sender's balance in wei.
        balance: U256,
        /// The cost in wei; saturates at the maximum.
        required: U256,
        /// Whether its gas and blobs cost more than the value that it transfers.
        fees_exceed_value: bool,
    },
    /// The fees exceed the range of the executor; only a balance set by an edit could cover them.
    #[error("fees of 2^128 wei and more are not supported")]
    FeesBeyond128Bits,
    #[error("{}", fee_cap_too_low("maxFeePerGas", cap, base_fee))]
    FeeCapTooLow {
        /// [`Property::GasPrice`] or [`Property::MaxFeePerGas`].
        price: Property,
        cap: U256,
        base_fee: u64,
    },
    #[error("{}", tip_above_fee_cap("maxPriorityFeePerGas", tip, "maxFeePerGas", cap))]
    TipAboveFeeCap { tip: U256, cap: U256 },
    #[error("intrinsic gas too low: gas {limit}, minimum needed {required}")]
    IntrinsicGas { limit: u64, required: u64 },
    /// The gas limit is below the floor price of the call data (EIP-7623).
    #[error("insufficient gas for floor data gas cost: gas {limit}, minimum needed {required}")]
    FloorGas { limit: u64, required: u64 },
    #[error("exceeds block gas limit: gas limit reached: gas {limit}, available {available}")]
    BlockGasExceeded { limit: u64, available: u64 },
    /// The gas limit is above the cap of EIP-7825.
    #[error("transaction gas limit too high (cap: {cap}, tx: {limit}): EIP-7825 limits it from Osaka on")]
    GasLimitCap {
        limit: u64,
        /// 2^24.
        cap: u64,
    },
    /// The creation code is too long (EIP-3860).
    #[error("max initcode size exceeded: code size {length}, limit {limit}")]
    InitCodeTooLong { length: usize, limit: usize },
    #[error("blob transaction missing blob hashes")]
    NoBlobs,
    #[error("too many blobs: have {count}, permitted {limit}")]
    TooManyBlobs {
        /// The number of blobs, including those of this transaction.
        count: u64,
        limit: u64,
    },
    #[error("invalid blob hash version: {hash:#x}")]
    BlobVersion { index: usize, hash: H256 },
    #[error("{}", blob_fee_cap_too_low("blobGasFeeCap", cap, base_fee))]
    BlobFeeCapTooLow { cap: U256, base_fee: U256 },
    /// A set-code transaction has no authorizations (EIP-7702).
    #[error("EIP-7702 transaction with empty auth list")]
    NoAuthorizations,
    #[error("transactions with blobs or authorizations cannot create contracts")]
    CannotCreate,
    #[error("{0}")]
    Other(String),
}

impl TransactionError {
    /// Returns the error that `balance` does not cover `required`, which includes the transferred `value`.
    pub fn insufficient_funds(balance: U256, required: U256, value: U256) -> Self {
        let fees_exceed_value = required.saturating_sub(value) > value;
        Self::InsufficientFunds { balance, required, fees_exceed_value }
    }

    /// Returns the text with the properties of the transaction as `name` calls them, where `Display` has geth's names.
    pub fn text(&self, name: impl Fn(Property) -> String) -> String {
        match self {
            Self::FeeCapTooLow { price, cap, base_fee } => fee_cap_too_low(&name(*price), cap, base_fee),
            Self::TipAboveFeeCap { tip, cap } => {
                tip_above_fee_cap(&name(Property::MaxPriorityFeePerGas), tip, &name(Property::MaxFeePerGas), cap)
            }
            Self::BlobFeeCapTooLow { cap, base_fee } => {
                blob_fee_cap_too_low(&name(Property::MaxFeePerBlobGas), cap, base_fee)
            }
            other => other.to_string(),
        }
    }
}

fn fee_cap_too_low(name: &str, cap: &U256, base_fee: &u64) -> String {
    format!("max fee per gas less than block base fee: {name}: {cap}, baseFee: {base_fee}")
}

fn tip_above_fee_cap(tip_name: &str, tip: &U256, cap_name: &str, cap: &U256) -> String {
    format!("max priority fee per gas higher than max fee per gas: {tip_name}: {tip}, {cap_name}: {cap}")
}

fn blob_fee_cap_too_low(name: &str, cap: &U256, base_fee: &U256) -> String {
    format!("max fee per blob gas less than block blob gas fee: {name}: {cap}, blobBaseFee: {base_fee}")
}
