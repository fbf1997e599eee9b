//! Extensions of the EVM by callers: precompiles, settings, inspectors and tracers.

use crate::convert::{ToEvm, ToNode};
use crate::machine::context::EvmContext;
use crate::precompile::Precompiles;
use crate::precompile::cache::{CachedPrecompiles, PrecompileResults};
use crate::state::DatabaseError;
use crate::trace::tracer::TracerMap;
use node_types::{Address, Bytes, H256, U256};
use revm::Inspector;
use revm::context::{CfgEnv, JournalTr};
use revm::primitives::U256 as EvmU256;
use revm::primitives::hardfork::SpecId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A custom precompiled contract, available to every kind of call. Implemented for closures.
///
/// Its result must depend only on the call and the state, because other nodes execute the same blocks again. It must
/// not panic: a panic ends the operation, and the transaction that causes it remains in the pool.
pub trait Precompile: Send + Sync {
    /// Runs a call of the contract.
    fn run(&self, call: PrecompileCall<'_, '_>) -> PrecompileOutcome;
}

impl<F: Fn(PrecompileCall<'_, '_>) -> PrecompileOutcome + Send + Sync> Precompile for F {
    fn run(&self, call: PrecompileCall<'_, '_>) -> PrecompileOutcome {
        self(call)
    }
}

/// The input and the environment of a call to a [`Precompile`].
#[non_exhaustive]
pub struct PrecompileCall<'c, 'a> {
    pub input: &'c [u8],
    /// Gas that may be used.
    pub gas_limit: u64,
    pub caller: Address,
    /// The account whose storage and balance the call operates on: that of the precompile, or with DELEGATECALL and
    /// CALLCODE that of the caller.
    pub address: Address,
    /// Value of the call in wei.
    pub value: U256,
    /// Whether the call must not change the state. The precompile has to respect this.
    pub is_static: bool,
    /// revm's context, with block, transaction and state. revm requires that an account is loaded before its storage
    /// is used; [`slot`](Self::slot) and [`set_slot`](Self::set_slot) do that.
    ///
    /// A precompile has to charge for its reads and writes itself, in the gas that it reports as used. Its changes
    /// are reverted if it does not return successfully.
    pub context: &'c mut EvmContext<'a>,
}

impl PrecompileCall<'_, '_> {
    /// Returns a storage slot of an account; zero if it was never written.
    ///
    /// # Errors
    /// If the state cannot be read; return the error as [`PrecompileOutcome::NoState`].
    pub fn slot(&mut self, account: Address, slot: H256) -> Result<U256, DatabaseError> {
        let journal = &mut self.context.journaled_state;
        journal.load_account(account.to_evm())?;
        Ok(journal.sload(account.to_evm(), EvmU256::from_be_bytes(slot.0))?.data.to_node())
    }

    /// Writes a storage slot of an account. A call that [is static](Self::is_static) must not do this.
    ///
    /// An account without nonce, balance and code is deleted with its storage at the end of a transaction (EIP-161).
    /// If a precompile stores state, give its account one of these, in the genesis, or with `Node::set_nonce` on a
    /// development chain.
    ///
    /// # Errors
    /// If the state cannot be read; return the error as [`PrecompileOutcome::NoState`].
    pub fn set_slot(&mut self, account: Address, slot: H256, value: U256) -> Result<(), DatabaseError> {
        let journal = &mut self.context.journaled_state;
        journal.load_account(account.to_evm())?;
        journal.sstore(account.to_evm(), EvmU256::from_be_bytes(slot.0), value.to_evm()).map(drop)
    }
}

/// The result of a call of a [`Precompile`]. Using more gas than the limit is the same as [`OutOfGas`](Self::OutOfGas).
#[derive(Debug)]
#[non_exhaustive]
pub enum PrecompileOutcome {
    Returned {
        gas_used: u64,
        /// The returned data.
        output: Bytes,
    },
    /// It reverted. The rest of the gas is returned.
    Reverted {
        gas_used: u64,
        /// The returned data.
        output: Bytes,
    },
    /// The gas does not suffice. All of it is used.
    OutOfGas,
    /// It failed for the given reason. All gas is used.
    Failed(String),
    /// It could not read the state. The whole operation fails with this error, instead of only the call.
    NoState(DatabaseError),
}

/// An inspector for this crate's EVM: any type that implements revm's [`Inspector`] for every lifetime of the
/// context. See [`EvmExecutor::inspect_call`](crate::EvmExecutor::inspect_call).
pub trait EvmInspector: for<'a> Inspector<EvmContext<'a>> {}

impl<T: for<'a> Inspector<EvmContext<'a>>> EvmInspector for T {}

/// Precompiles by their addresses.
pub(crate) type PrecompileMap = BTreeMap<Address, Arc<dyn Precompile>>;

type Configure = dyn Fn(&mut CfgEnv) + Send + Sync;

/// The extensions of the EVM beyond Ethereum's rules.
#[derive(Clone, Default)]
pub(crate) struct Extensions {
    /// Custom precompiles, which take precedence over Ethereum's.
    pub(crate) precompiles: Arc<PrecompileMap>,
    /// Results of Ethereum's precompiles.
    pub(crate) results: Arc<PrecompileResults>,
    pub(crate) configure: Option<Arc<Configure>>,
    pub(crate) tracers: TracerMap,
}

impl Extensions {
    /// Returns the precompiles of a fork.
    pub(crate) fn precompiles(&self, spec: SpecId) -> Precompiles {
        Precompiles::new(CachedPrecompiles::new(spec, Arc::clone(&self.results)), self.precompiles.clone())
    }

    /// Applies the caller's changes to the settings of a fork.
    pub(crate) fn configured(&self, mut cfg: CfgEnv) -> CfgEnv {
        if let Some(configure) = &self.configure {
            configure(&mut cfg);
        }
        cfg
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<_> = self.precompiles.keys().collect();
        let tracers: Vec<_> = self.tracers.keys().collect();
        f.debug_struct("Extensions").field("precompiles", &addresses).field("tracers", &tracers).finish_non_exhaustive()
    }
}
