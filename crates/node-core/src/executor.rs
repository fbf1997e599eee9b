//! The port to whatever runs code.

use crate::backend::{BackendError, View};
use crate::block::RecoveredTransaction;
use crate::caches::CacheUse;
use crate::context::{Context, Interrupted};
use crate::forks::Fork;
use crate::overrides::OverrideError;
use crate::simulation::{SimulatedExecution, SimulationRules};
use crate::state::StateChanges;
use crate::trace::{AccessListOutcome, Trace, TraceError, Tracing};
use node_types::consensus::{Header, Receipt, Request, Withdrawal};
use node_types::{Address, Bytes, H256, U256};

pub use crate::call::Call;
pub use crate::overrides::{AccountOverride, BlockOverrides, StateOverrides, StorageOverride};

/// Runs code over a view of the chain.
pub trait Executor: Send + Sync {
    /// Starts the block `header` on top of the state as of its parent, with the system calls that come first.
    ///
    /// Read from `header`: number, parent hash, timestamp, beneficiary, gas limit, difficulty, mix hash, base fee,
    /// excess blob gas and parent beacon block root. The parent is the canonical block of `view` one below.
    fn begin_block<'a>(
        &'a self,
        context: &'a Context,
        view: &'a dyn View,
        header: &'a Header,
    ) -> Result<Box<dyn BlockExecution + 'a>, ExecutionError>;

    /// Starts a block that is only imagined: as [`begin_block`](Self::begin_block), by what `rules` change,
    /// and over the parent's state with its overrides.
    fn begin_simulated<'a>(
        &'a self,
        context: &'a Context,
        view: &'a dyn View,
        header: &'a Header,
        rules: &SimulationRules<'_>,
    ) -> Result<Box<dyn SimulatedExecution + 'a>, ExecutionError>;

    /// Runs a call in the environment of `header`, over the state as of that block. The overrides of the call count in
    /// both.
    fn call(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
    ) -> Result<CallOutcome, ExecutionError>;

    /// The least gas limit, within 1.5%, with which `call` succeeds in the environment of `header`, over the state
    /// as of that block. Never below what execution needs. At most the block's gas limit, the context's gas budget, the
    /// cap of EIP-7825 where it is in force, and what the sender can pay for.
    fn estimate(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
    ) -> Result<EstimateOutcome, ExecutionError>;

    /// Runs a call as [`call`](Self::call) does, and answers what `tracing` asks for. A call that fails has a trace too.
    fn trace_call(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
        tracing: &Tracing,
    ) -> Result<Trace, TraceError>;

    /// The access list that a call needs, found by running it again with what it touched until it touches nothing else.
    fn access_list(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
    ) -> Result<AccessListOutcome, ExecutionError>;

    /// The contracts that the rules of `fork` bring with them.
    fn contracts(&self, fork: Fork) -> Contracts;

    /// The caches it has. Must not wait for work that is going on.
    fn caches(&self) -> Vec<CacheUse> {
        Vec::new()
    }
}

/// The contracts that rules bring with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contracts {
    /// Those that are no code, by their addresses.
    pub precompiles: Vec<NamedContract>,
    /// Those that blocks call, by their names.
    pub system: Vec<NamedContract>,
}

/// A contract with the name that EIP-7910 gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedContract {
    /// Name.
    pub name: &'static str,
    /// Address.
    pub address: Address,
}

/// A block while it is executed.
pub trait BlockExecution {
    /// Executes the next transaction. One that is refused leaves no trace, and another may follow.
    fn transact(&mut self, transaction: &RecoveredTransaction) -> Result<&Receipt, ExecutionError>;

    /// Executes the next transaction as [`transact`](Self::transact) does, and answers what `tracing` asks for. A trace that
    /// names the block has the hash of the canonical one.
    fn trace(&mut self, transaction: &RecoveredTransaction, tracing: &Tracing) -> Result<Trace, TraceError>;

    /// Ends the block where it is: runs a call on what it has come to, and answers what `tracing` asks for.
    fn trace_call(self: Box<Self>, call: &Call, tracing: &Tracing) -> Result<Trace, TraceError>;

    /// Gas used so far.
    fn gas_used(&self) -> u64;

    /// Blob gas used so far.
    fn blob_gas_used(&self) -> u64;

    /// Ends the block: rewards, withdrawals, and the system calls that come last.
    fn finish(
        self: Box<Self>,
        ommers: &[Header],
        withdrawals: Option<&[Withdrawal]>,
    ) -> Result<BlockOutcome, ExecutionError>;
}

/// What the execution of a block gave.
#[derive(Clone, Debug)]
pub struct BlockOutcome {
    /// A receipt for each transaction.
    pub receipts: Vec<Receipt>,
    /// Gas used by all transactions.
    pub gas_used: u64,
    /// Blob gas used by all transactions.
    pub blob_gas_used: u64,
    /// Execution requests, since Prague; lists that are empty are left out.
    pub requests: Option<Vec<Request>>,
    /// What changed in the parent's state.
    pub changes: StateChanges,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It returned. A creation returns the code that it would deploy.
    Returned {
        /// What it returned.
        output: Bytes,
        /// Gas used.
        gas_used: u64,
    },
    /// It did not.
    Failed(CallFailure),
}

/// How an estimate ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EstimateOutcome {
    /// With this gas limit the call succeeds.
    Gas(u64),
    /// It fails even at the highest limit.
    Failed(CallFailure),
}

/// Why a call did not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// It reverted.
    Reverted {
        /// The decoded `Error(string)` or `Panic(uint256)`.
        reason: Option<String>,
        /// What it returned.
        output: Bytes,
    },
    /// It ran out of gas, or did what is not allowed.
    Halted {
        /// In a few words.
        reason: String,
    },
    /// The highest gas limit that the caps allow is not enough.
    GasCap {
        /// That limit.
        cap: u64,
    },
}

/// Why code was not run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// The transaction or call breaks a rule.
    #[error(transparent)]
    Refused(#[from] TransactionError),
    /// A system contract is missing or failed (EIP-7002, EIP-7251, EIP-6110), so that no block is valid.
    #[error("system contract {address:#x}: {reason}")]
    SystemContract {
        /// The contract.
        address: Address,
        /// What happened.
        reason: String,
    },
    /// An override asks for what cannot be.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// The backend did not answer.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The request ended before the work was done.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Which rule a transaction breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// Type not known to the fork in force.
    #[error("transactions of type {0} are not supported yet")]
    TypeNotSupported(u8),
    /// Another chain's.
    #[error("chain id {got}, expected {expected}")]
    ChainId {
        /// In the transaction.
        got: u64,
        /// This chain's.
        expected: u64,
    },
    /// Bound to a chain before EIP-155 is in force.
    #[error("replay protection for chain {chain_id} before EIP-155 is in force")]
    ReplayProtectionTooEarly {
        /// In the transaction.
        chain_id: u64,
    },
    /// The signature names nobody, or s is too high.
    #[error("invalid signature: {0}")]
    Signature(#[source] crate::crypto::SignatureError),
    /// Already used.
    #[error("nonce {got} is too low, the account's is {expected}")]
    NonceTooLow {
        /// In the transaction.
        got: u64,
        /// The account's.
        expected: u64,
    },
    /// Not yet usable.
    #[error("nonce {got} is too high, the account's is {expected}")]
    NonceTooHigh {
        /// In the transaction.
        got: u64,
        /// The account's.
        expected: u64,
    },
    /// The nonce cannot grow any more (EIP-2681).
    #[error("nonce 2^64 - 1 cannot be used")]
    NonceOverflow,
    /// The sender has code (EIP-3607).
    #[error("sender {0:#x} has code")]
    SenderHasCode(Address),
    /// The balance does not cover gas, blob gas and value at their highest price.
    #[error("balance {balance} wei, {required} wei required")]
    InsufficientFunds {
        /// The sender's.
        balance: U256,
        /// For everything; the highest number where the true one does not fit.
        required: U256,
    },
    /// Fees that no executor adds up, though a balance that was set by hand covers them.
    #[error("fees of 2^128 wei and more are not supported")]
    FeesBeyond128Bits,
    /// Fee cap below the base fee.
    #[error("fee cap {cap} is below the base fee {base_fee}")]
    FeeCapTooLow {
        /// In the transaction.
        cap: U256,
        /// The block's.
        base_fee: u64,
    },
    /// Tip cap above the fee cap.
    #[error("tip cap {tip} is above the fee cap {cap}")]
    TipAboveFeeCap {
        /// Tip cap.
        tip: U256,
        /// Fee cap.
        cap: U256,
    },
    /// Gas limit below what the transaction costs before any code runs.
    #[error("gas limit {limit} is below the intrinsic gas {required}")]
    IntrinsicGas {
        /// In the transaction.
        limit: u64,
        /// At least.
        required: u64,
    },
    /// Gas limit below the floor of the call data (EIP-7623).
    #[error("gas limit {limit} is below the floor of the call data {required}")]
    FloorGas {
        /// In the transaction.
        limit: u64,
        /// At least.
        required: u64,
    },
    /// Gas limit above what is left in the block.
    #[error("gas limit {limit} is above the {available} left in the block")]
    BlockGasExceeded {
        /// In the transaction.
        limit: u64,
        /// Left.
        available: u64,
    },
    /// Gas limit above the cap (EIP-7825).
    #[error("gas limit {limit} is above the cap {cap}")]
    GasLimitCap {
        /// In the transaction.
        limit: u64,
        /// 2^24.
        cap: u64,
    },
    /// Creation code too long (EIP-3860).
    #[error("creation code has {length} bytes, at most {limit} are allowed")]
    InitCodeTooLong {
        /// In the transaction.
        length: usize,
        /// Allowed.
        limit: usize,
    },
    /// A blob transaction without blobs.
    #[error("a blob transaction needs at least one blob")]
    NoBlobs,
    /// Too many blobs in one transaction or block.
    #[error("{count} blobs, at most {limit} are allowed")]
    TooManyBlobs {
        /// With this transaction.
        count: u64,
        /// Allowed.
        limit: u64,
    },
    /// A versioned hash of an unknown version.
    #[error("versioned hash {0:#x} has an unknown version")]
    BlobVersion(H256),
    /// Blob fee cap below the blob base fee.
    #[error("blob fee cap {cap} is below the blob base fee {base_fee}")]
    BlobFeeCapTooLow {
        /// In the transaction.
        cap: U256,
        /// The block's.
        base_fee: U256,
    },
    /// A set-code transaction without authorizations (EIP-7702).
    #[error("a set-code transaction needs at least one authorization")]
    NoAuthorizations,
    /// A transaction of this type with no receiver.
    #[error("transactions with blobs or authorizations create no contracts")]
    CannotCreate,
    /// Another rule.
    #[error("{0}")]
    Other(String),
}
