//! revm, configured for one block.

pub(crate) mod collision;
pub(crate) mod context;
pub(crate) mod eip1283;
pub(crate) mod halt;
pub(crate) mod interrupt;
pub(crate) mod refusal;
pub(crate) mod spec;
pub(crate) mod transaction;

use crate::block::log_book::{LogBook, LogEntry};
use crate::block::simulated_logs;
use crate::convert::{ToEvm, ToNode};
use crate::extension::Extensions;
use crate::machine::collision::GuardedEvm;
use crate::machine::context::{EvmContext, RunState};
use crate::precompile::Precompiles;
use crate::state::code_cache::CodeCache;
use crate::state::{DatabaseError, StateDb};
use crate::trace::inspection::Inspection;
use node_core::backend::{BackendError, View};
use node_core::context::Context;
use node_core::executor::{CallFailure, ExecutionError};
use node_core::protocol::{ChainSpec, Fork};
use node_types::{Address, Bytes};
use revm::context::result::{EVMError, ExecutionResult, HaltReason};
use revm::context::{BlockEnv, CfgEnv, Evm, FrameStack, Journal, JournalTr, LocalContext, TxEnv};
use revm::handler::instructions::EthInstructions;
use revm::handler::{EvmTr, Handler, MainnetHandler};
use revm::inspector::InspectorHandler;
use revm::primitives::TxKind;
use revm::state::EvmState;
use std::borrow::Cow;

/// Why a transaction could not be executed.
pub(crate) type EvmFault = EVMError<DatabaseError>;

/// The caller of system contracts (EIP-4788).
const SYSTEM_ADDRESS: Address = {
    let mut address = [0xff; 20];
    address[19] = 0xfe;
    node_types::H160(address)
};

/// Gas limit of a call to a system contract (EIP-4788).
const SYSTEM_CALL_GAS: u64 = 30_000_000;

/// The EVM with the rules and the environment of one block, on one state.
pub(crate) struct Machine<'a> {
    evm: GuardedEvm<'a>,
}

impl<'a> Machine<'a> {
    /// Creates a machine on `db` whose runs `context` can interrupt.
    pub(crate) fn new(
        fork: Fork,
        cfg: CfgEnv,
        block: BlockEnv,
        db: StateDb<'a>,
        context: &'a Context,
        precompiles: Precompiles,
    ) -> Self {
        let spec = spec::spec_id(fork);
        let mut journaled_state = Journal::new(db);
        journaled_state.set_spec_id(spec);
        let mut instruction = EthInstructions::new_mainnet_with_spec(spec);
        interrupt::install(&mut instruction);
        if fork == Fork::Constantinople {
            eip1283::install(&mut instruction);
        }
        let ctx = EvmContext {
            block,
            tx: TxEnv::default(),
            cfg,
            journaled_state,
            chain: RunState::new(context),
            local: LocalContext::default(),
            error: Ok(()),
        };
        // Frames are allocated when they start: each has a stack of 32 KiB, and most runs need one or two.
        let frame_stack = FrameStack::new();
        let evm = Evm { ctx, inspector: Inspection::default(), instruction, precompiles, frame_stack };
        Self { evm: GuardedEvm(evm) }
    }

    pub(crate) fn db(&mut self) -> &mut StateDb<'a> {
        &mut self.evm.ctx().journaled_state.database
    }

    /// Disables the precompile at `address`, if there is one; the account then executes its own code.
    pub(crate) fn replace_precompile(&mut self, address: Address) {
        self.evm.0.precompiles.replace(address.to_evm());
    }

    /// Moves the precompile at `from` to `to`, where it replaces any code.
    pub(crate) fn move_precompile(&mut self, from: Address, to: Address) {
        self.evm.0.precompiles.relocate(from.to_evm(), to.to_evm());
    }

    /// Returns whether there is a precompile at `address`.
    pub(crate) fn is_precompile(&self, address: Address) -> bool {
        self.evm.0.precompiles.is_at(&address.to_evm())
    }

    pub(crate) fn rules(&mut self) -> &mut CfgEnv {
        &mut self.evm.ctx().cfg
    }

    /// Returns the failure of the last run, which halted for `reason`.
    pub(crate) fn halted(&self, reason: HaltReason) -> CallFailure {
        let out_of_gas = matches!(reason, HaltReason::OutOfGas(_));
        CallFailure::Halted { reason: self.halt_text(reason).into_owned(), out_of_gas }
    }

    /// Returns geth's text for the last run, which halted for `reason`.
    pub(crate) fn halt_text(&self, reason: HaltReason) -> Cow<'static, str> {
        let state = &self.evm.ctx_ref().chain;
        halt::text(reason.into(), state.failed_at, state.precompile_failure.clone())
    }

    /// Returns the block's environment, mutably.
    pub(crate) fn block_mut(&mut self) -> &mut BlockEnv {
        &mut self.evm.ctx().block
    }

    /// Enables the numbering of logs and, if `trace_transfers` is set, logs for transfers of ether.
    pub(crate) fn number_logs(&mut self, trace_transfers: bool) {
        simulated_logs::install(&mut self.evm.0.instruction);
        self.evm.ctx().chain.logs = Some(LogBook::new(trace_transfers));
    }

    /// Returns the entries of the `count` logs of the last transaction; empty if logs are not numbered.
    pub(crate) fn log_entries(&self, count: usize) -> &[LogEntry] {
        self.evm.ctx_ref().chain.logs.as_ref().map_or(&[], |book| book.entries(count))
    }

    /// Sets whether senders may have code, which EIP-3607 forbids.
    pub(crate) fn allow_senders_with_code(&mut self, allowed: bool) {
        self.evm.ctx().cfg.disable_eip3607 = allowed;
    }

    /// Returns the block's environment.
    pub(crate) fn block(&self) -> &BlockEnv {
        &self.evm.ctx_ref().block
    }

    /// Runs a transaction and discards its changes.
    pub(crate) fn simulate(&mut self, transaction: TxEnv) -> Result<ExecutionResult, EvmFault> {
        self.run(transaction).0
    }

    /// Runs a transaction with `inspection`. Returns its changes without committing them.
    pub(crate) fn inspect(
        &mut self,
        transaction: TxEnv,
        inspection: &mut Inspection<'a>,
    ) -> (Result<ExecutionResult, EvmFault>, EvmState) {
        std::mem::swap(&mut self.evm.0.inspector, inspection);
        self.evm.ctx().tx = transaction;
        self.evm.ctx().chain.failed_at = None;
        let result = MainnetHandler::default().inspect_run(&mut self.evm);
        std::mem::swap(&mut self.evm.0.inspector, inspection);
        (result, self.evm.ctx().journaled_state.finalize())
    }

    /// Consumes the machine and returns its state.
    pub(crate) fn into_db(self) -> StateDb<'a> {
        self.evm.0.ctx.journaled_state.database
    }

    /// Runs a transaction. Returns its changes without committing them.
    pub(crate) fn run(&mut self, transaction: TxEnv) -> (Result<ExecutionResult, EvmFault>, EvmState) {
        self.evm.ctx().tx = transaction;
        self.evm.ctx().chain.failed_at = None;
        if let Some(book) = &mut self.evm.ctx().chain.logs {
            book.begin_transaction();
        }
        let result = MainnetHandler::default().run(&mut self.evm);
        (result, self.evm.ctx().journaled_state.finalize())
    }

    /// Calls a system contract outside of all transactions and commits the changes.
    pub(crate) fn system_call(&mut self, contract: Address, input: Bytes) -> Result<ExecutionResult, ExecutionError> {
        self.evm.ctx().tx = TxEnv {
            caller: SYSTEM_ADDRESS.to_evm(),
            kind: TxKind::Call(contract.to_evm()),
            data: input.to_evm(),
            gas_limit: SYSTEM_CALL_GAS,
            ..TxEnv::default()
        };
        self.evm.ctx().chain.failed_at = None;
        let result = MainnetHandler::default().run_system_call(&mut self.evm);
        let state = self.evm.ctx().journaled_state.finalize();
        let result = result.map_err(failure)?;
        self.db().commit(state).map_err(|error| failure(error.into()))?;
        Ok(result)
    }

    /// Returns the balance of an account, or zero if it does not exist.
    pub(crate) fn balance(&mut self, address: Address) -> Result<node_types::U256, ExecutionError> {
        let account = self.db().account(address.to_evm())?;
        Ok(account.map(|account| account.balance.to_node()).unwrap_or_default())
    }
}

/// Converts a fault that was not caused by the transaction.
pub(crate) fn failure(fault: EvmFault) -> ExecutionError {
    match fault {
        EVMError::Database(error) => error.into(),
        other => ExecutionError::Internal(Box::new(MachineFault(other.to_string()))),
    }
}

impl From<DatabaseError> for ExecutionError {
    fn from(DatabaseError(error): DatabaseError) -> Self {
        match error {
            BackendError::Interrupted(interrupted) => interrupted.into(),
            error => error.into(),
        }
    }
}

/// An internal error of the interpreter.
#[derive(Debug, thiserror::Error)]
#[error("the interpreter failed: {0}")]
struct MachineFault(String);

/// The chain, the state and the limits of an execution.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    pub(crate) spec: &'a ChainSpec,
    pub(crate) codes: &'a CodeCache,
    pub(crate) extensions: &'a Extensions,
    /// Deadline, cancellation and gas budget.
    pub(crate) context: &'a Context,
    pub(crate) view: &'a dyn View,
}
