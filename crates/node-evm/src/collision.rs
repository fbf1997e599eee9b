//! Storage stands in the way of a creation (EIP-7610, in force from the first block on).
//!
//! revm refuses to create a contract where there is code or a nonce. Before EIP-161 a contract could be left with
//! neither and have storage all the same; such accounts are still there, and a creation over them fails likewise.

use crate::database::DatabaseError;
use crate::inspection::Inspection;
use crate::log_book::Transfer;
use crate::machine::EvmContext;
use crate::precompiles::Precompiles;
use revm::context::{ContextTr, Evm, FrameStack, JournalTr};
use revm::context_interface::journaled_state::account::JournaledAccountTr;
use revm::handler::evm::{ContextDbError, FrameInitResult};
use revm::handler::instructions::EthInstructions;
use revm::handler::{EthFrame, EvmTr, FrameInitOrResult, FrameResult, FrameTr, ItemOrResult};
use revm::inspector::InspectorEvmTr;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_action::FrameInit;
use revm::interpreter::{CreateInputs, CreateOutcome, FrameInput, Gas, InstructionResult, InterpreterResult};
use revm::primitives::constants::CALL_STACK_LIMIT;
use revm::primitives::{Address, Bytes};

/// The machine of revm, which looks for storage before it creates a contract.
pub(crate) struct GuardedEvm<'a>(pub(crate) RevmEvm<'a>);

/// The machine of revm over our own state.
type RevmEvm<'a> = Evm<
    EvmContext<'a>,
    Inspection,
    EthInstructions<EthInterpreter, EvmContext<'a>>,
    Precompiles,
    EthFrame<EthInterpreter>,
>;

impl<'a> EvmTr for GuardedEvm<'a> {
    type Context = EvmContext<'a>;
    type Instructions = EthInstructions<EthInterpreter, EvmContext<'a>>;
    type Precompiles = Precompiles;
    type Frame = EthFrame<EthInterpreter>;

    fn all(&self) -> (&Self::Context, &Self::Instructions, &Self::Precompiles, &FrameStack<Self::Frame>) {
        self.0.all()
    }

    fn all_mut(
        &mut self,
    ) -> (&mut Self::Context, &mut Self::Instructions, &mut Self::Precompiles, &mut FrameStack<Self::Frame>) {
        self.0.all_mut()
    }

    fn frame_init(
        &mut self,
        frame: FrameInit,
    ) -> Result<FrameInitResult<'_, Self::Frame>, ContextDbError<Self::Context>> {
        if let FrameInput::Create(inputs) = &frame.frame_input
            && frame.depth <= CALL_STACK_LIMIT as usize
            && let Some(address) = occupied_address(&mut self.0.ctx, inputs)?
        {
            return Ok(ItemOrResult::Result(collide(&mut self.0.ctx, inputs, address)?));
        }
        match Transfer::of(&self.0.ctx, &frame.frame_input) {
            Some(transfer) => self.frame_init_told(frame, &transfer),
            None => self.0.frame_init(frame),
        }
    }

    fn frame_run(&mut self) -> Result<FrameInitOrResult<Self::Frame>, ContextDbError<Self::Context>> {
        self.0.frame_run()
    }

    fn frame_return_result(
        &mut self,
        result: <Self::Frame as FrameTr>::FrameResult,
    ) -> Result<Option<<Self::Frame as FrameTr>::FrameResult>, ContextDbError<Self::Context>> {
        self.0.frame_return_result(result)
    }
}

/// Only runs that are inspected come here.
impl InspectorEvmTr for GuardedEvm<'_> {
    type Inspector = Inspection;

    fn all_inspector(
        &self,
    ) -> (&Self::Context, &Self::Instructions, &Self::Precompiles, &FrameStack<Self::Frame>, &Inspection) {
        self.0.all_inspector()
    }

    fn all_mut_inspector(
        &mut self,
    ) -> (
        &mut Self::Context,
        &mut Self::Instructions,
        &mut Self::Precompiles,
        &mut FrameStack<Self::Frame>,
        &mut Inspection,
    ) {
        self.0.all_mut_inspector()
    }
}

impl<'a> GuardedEvm<'a> {
    /// Enters a frame and tells what it transfers. The log comes behind the frame's checkpoint, so that it goes with it.
    fn frame_init_told(
        &mut self,
        frame: FrameInit,
        transfer: &Transfer,
    ) -> Result<FrameInitResult<'_, EthFrame<EthInterpreter>>, ContextDbError<EvmContext<'a>>> {
        let ended = match self.0.frame_init(frame)? {
            ItemOrResult::Item(frame) => Err(frame.data.created_address()),
            ItemOrResult::Result(result) => Ok(result),
        };
        match ended {
            Err(created) => {
                transfer.tell(&mut self.0.ctx, created);
                Ok(ItemOrResult::Item(self.0.frame_stack.get()))
            }
            Ok(result) => {
                if result.instruction_result().is_ok() {
                    let created = match &result {
                        FrameResult::Create(outcome) => outcome.address,
                        FrameResult::Call(_) => None,
                    };
                    transfer.tell(&mut self.0.ctx, created);
                }
                Ok(ItemOrResult::Result(result))
            }
        }
    }
}

/// Where the contract is to be, if there is storage but neither code nor a nonce. None also where the creation fails
/// before the address matters: what is not looked at must stay cold (EIP-2929).
fn occupied_address(ctx: &mut EvmContext<'_>, inputs: &CreateInputs) -> Result<Option<Address>, DatabaseError> {
    let journal = ctx.journal_mut();
    // The creator runs, or has sent the transaction, and is warm.
    let creator = &journal.load_account(inputs.caller())?.data.info;
    if creator.balance < inputs.value() || creator.nonce == u64::MAX {
        return Ok(None);
    }
    let address = inputs.created_address(creator.nonce);
    let account = match journal.inner.state.get(&address) {
        Some(account) => Some(&account.info),
        None => journal.database.account(address)?,
    };
    if account.is_none_or(|account| account.nonce != 0 || !account.is_empty_code_hash()) {
        return Ok(None);
    }
    // What this transaction has stored so far is not there yet, and need not be: it stored where it ran code, and that
    // has code, or a nonce, or is a creation from before EIP-161, of whose address there is never another.
    Ok(journal.database.has_storage(address)?.then_some(address))
}

/// Fails like a creation where there is code: the nonce is used up, the address is warm, all gas is gone.
fn collide(ctx: &mut EvmContext<'_>, inputs: &CreateInputs, address: Address) -> Result<FrameResult, DatabaseError> {
    let journal = ctx.journal_mut();
    journal.load_account_mut(inputs.caller())?.bump_nonce();
    journal.load_account(address)?;
    Ok(FrameResult::Create(CreateOutcome {
        result: InterpreterResult {
            result: InstructionResult::CreateCollision,
            gas: Gas::new_with_regular_gas_and_reservoir(inputs.gas_limit(), inputs.reservoir()),
            output: Bytes::new(),
        },
        address: None,
        charged_create_state_gas: inputs.charged_create_state_gas(),
    }))
}
