//! revm, set up for one block.

use crate::collision::GuardedEvm;
use crate::convert::{ToEvm, ToNode};
use crate::database::{DatabaseError, StateDb};
use crate::inspection::Inspection;
use crate::interrupt::{self, Watch};
use crate::log_book::{self, LogBook, LogEntry};
use crate::precompiles::Precompiles;
use crate::{eip1283, spec};
use node_core::backend::BackendError;
use node_core::context::Context;
use node_core::executor::ExecutionError;
use node_core::forks::Fork;
use node_types::{Address, Bytes};
use revm::context::result::{EVMError, ExecutionResult};
use revm::context::{BlockEnv, CfgEnv, Evm, FrameStack, Journal, JournalTr, LocalContext, TxEnv};
use revm::handler::instructions::EthInstructions;
use revm::handler::{EvmTr, Handler, MainnetHandler};
use revm::inspector::InspectorHandler;
use revm::primitives::TxKind;
use revm::state::EvmState;

/// What code sees of the world around it.
pub(crate) type EvmContext<'a> =
    revm::Context<BlockEnv, TxEnv, CfgEnv, StateDb<'a>, Journal<StateDb<'a>>, Watch<'a>, LocalContext>;

/// Why a transaction did not run to its end.
pub(crate) type Fault = EVMError<DatabaseError>;

/// Who calls system contracts.
const SYSTEM_ADDRESS: Address = {
    let mut address = [0xff; 20];
    address[19] = 0xfe;
    node_types::H160(address)
};

/// Gas of a call of a system contract.
const SYSTEM_CALL_GAS: u64 = 30_000_000;

/// The machine with the rules and the environment of one block, over one state.
pub(crate) struct Machine<'a> {
    evm: GuardedEvm<'a>,
}

impl<'a> Machine<'a> {
    /// A machine over `db` that stops when `context` says so.
    pub(crate) fn new(fork: Fork, cfg: CfgEnv, block: BlockEnv, db: StateDb<'a>, context: &'a Context) -> Self {
        let spec = spec::spec_id(fork);
        let mut journaled_state = Journal::new(db);
        journaled_state.set_spec_id(spec);
        let mut instruction = EthInstructions::new_mainnet_with_spec(spec);
        interrupt::watch(&mut instruction);
        if fork == Fork::Constantinople {
            eip1283::install(&mut instruction);
        }
        let ctx = EvmContext {
            block,
            tx: TxEnv::default(),
            cfg,
            journaled_state,
            chain: Watch::new(context),
            local: LocalContext::default(),
            error: Ok(()),
        };
        // Frames are made when they are entered: most runs need one or two of the stacks, 32 KiB each.
        let frame_stack = FrameStack::new();
        let evm = Evm {
            ctx,
            inspector: Inspection::default(),
            instruction,
            precompiles: Precompiles::new(spec),
            frame_stack,
        };
        Self { evm: GuardedEvm(evm) }
    }

    /// The state.
    pub(crate) fn db(&mut self) -> &mut StateDb<'a> {
        &mut self.evm.ctx().journaled_state.database
    }

    /// Lets the account at `address` run its own code, also if it is a precompiled contract.
    pub(crate) fn replace_precompile(&mut self, address: Address) {
        self.evm.0.precompiles.replace(address.to_evm());
    }

    /// Lets the precompiled contract at `from` be found at `to` instead, whatever was there.
    pub(crate) fn move_precompile(&mut self, from: Address, to: Address) {
        self.evm.0.precompiles.relocate(from.to_evm(), to.to_evm());
    }

    /// Whether there is a precompiled contract at `address`.
    pub(crate) fn is_precompile(&self, address: Address) -> bool {
        self.evm.0.precompiles.is_at(&address.to_evm())
    }

    /// The rules.
    pub(crate) fn rules(&mut self) -> &mut CfgEnv {
        &mut self.evm.ctx().cfg
    }

    /// The environment, to be changed.
    pub(crate) fn environment(&mut self) -> &mut BlockEnv {
        &mut self.evm.ctx().block
    }

    /// Has logs noted from now on, and, where asked for, transfers of ether told as logs.
    pub(crate) fn note_logs(&mut self, tell_transfers: bool) {
        log_book::install(&mut self.evm.0.instruction);
        self.evm.ctx().chain.logs = Some(LogBook::new(tell_transfers));
    }

    /// What was noted of the `count` logs of the last run; nothing where logs are not noted.
    pub(crate) fn noted_logs(&self, count: usize) -> &[LogEntry] {
        self.evm.ctx_ref().chain.logs.as_ref().map_or(&[], |book| book.entries(count))
    }

    /// Whether the sender of a transaction may have code (EIP-3607 forbids it).
    pub(crate) fn let_contracts_send(&mut self, allowed: bool) {
        self.evm.ctx().cfg.disable_eip3607 = allowed;
    }

    /// The environment.
    pub(crate) fn block(&self) -> &BlockEnv {
        &self.evm.ctx_ref().block
    }

    /// Runs a transaction and keeps what it did. One that is refused leaves nothing behind.
    pub(crate) fn transact(&mut self, transaction: TxEnv) -> Result<ExecutionResult, Fault> {
        let (result, state) = self.run(transaction);
        let result = result?;
        self.db().commit(state)?;
        Ok(result)
    }

    /// Runs a transaction and forgets what it did.
    pub(crate) fn simulate(&mut self, transaction: TxEnv) -> Result<ExecutionResult, Fault> {
        self.run(transaction).0
    }

    /// Runs a transaction that `inspection` watches, and answers what it did to the state, which is not kept.
    pub(crate) fn inspect(
        &mut self,
        transaction: TxEnv,
        inspection: &mut Inspection,
    ) -> (Result<ExecutionResult, Fault>, EvmState) {
        std::mem::swap(&mut self.evm.0.inspector, inspection);
        self.evm.ctx().tx = transaction;
        let result = MainnetHandler::default().inspect_run(&mut self.evm);
        std::mem::swap(&mut self.evm.0.inspector, inspection);
        (result, self.evm.ctx().journaled_state.finalize())
    }

    /// The state, when nothing is to be run any more.
    pub(crate) fn into_db(self) -> StateDb<'a> {
        self.evm.0.ctx.journaled_state.database
    }

    fn run(&mut self, transaction: TxEnv) -> (Result<ExecutionResult, Fault>, EvmState) {
        self.evm.ctx().tx = transaction;
        if let Some(book) = &mut self.evm.ctx().chain.logs {
            book.begin_run();
        }
        let result = MainnetHandler::default().run(&mut self.evm);
        (result, self.evm.ctx().journaled_state.finalize())
    }

    /// Calls a system contract, outside of all transactions, and keeps what it did.
    pub(crate) fn system_call(&mut self, contract: Address, input: Bytes) -> Result<ExecutionResult, ExecutionError> {
        self.evm.ctx().tx = TxEnv {
            caller: SYSTEM_ADDRESS.to_evm(),
            kind: TxKind::Call(contract.to_evm()),
            data: input.to_evm(),
            gas_limit: SYSTEM_CALL_GAS,
            ..TxEnv::default()
        };
        let result = MainnetHandler::default().run_system_call(&mut self.evm);
        let state = self.evm.ctx().journaled_state.finalize();
        let result = result.map_err(failure)?;
        self.db().commit(state).map_err(|error| failure(error.into()))?;
        Ok(result)
    }

    /// The sender's balance, for the report of a refusal.
    pub(crate) fn balance(&mut self, address: Address) -> Result<node_types::U256, ExecutionError> {
        let account = self.db().account(address.to_evm())?;
        Ok(account.map(|account| account.balance.to_node()).unwrap_or_default())
    }
}

/// A fault that is not the transaction's.
pub(crate) fn failure(fault: Fault) -> ExecutionError {
    match fault {
        EVMError::Database(error) => error.into(),
        other => BackendError::Storage(Box::new(MachineFault(other.to_string()))).into(),
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

/// The interpreter found a defect of its own.
#[derive(Debug, thiserror::Error)]
#[error("the interpreter failed: {0}")]
struct MachineFault(String);
