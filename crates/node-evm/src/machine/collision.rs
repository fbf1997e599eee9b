//! The rule that existing storage prevents the creation of a contract (EIP-7610, in force from genesis).
//!
//! revm refuses to create a contract at an address that has code or a nonce. Before EIP-161 a contract could end up
//! with storage but neither of these. Such accounts still exist, and creations at their addresses fail as well.

use crate::block::simulated_logs::Transfer;
use crate::machine::context::{EvmContext, Instructions};
use crate::machine::halt::LastInstruction;
use crate::precompile::Precompiles;
use crate::state::DatabaseError;
use crate::trace::inspection::Inspection;
use revm::context::{ContextTr, Evm, FrameStack, JournalTr};
use revm::context_interface::journaled_state::account::JournaledAccountTr;
use revm::handler::evm::{ContextDbError, FrameInitResult};
use revm::handler::{EthFrame, EvmTr, FrameInitOrResult, FrameResult, FrameTr, ItemOrResult};
use revm::inspector::InspectorEvmTr;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_action::FrameInit;
use revm::interpreter::{CreateInputs, CreateOutcome, FrameInput, Gas, InstructionResult, InterpreterResult};
use revm::primitives::constants::CALL_STACK_LIMIT;
use revm::primitives::{Address, Bytes};

/// revm's EVM with three additions: creations check for storage, simulations log transfers of ether, and the instruction
/// at which a frame failed is kept.
pub(crate) struct GuardedEvm<'a>(pub(crate) RevmEvm<'a>);

type RevmEvm<'a> = Evm<EvmContext<'a>, Inspection<'a>, Instructions<'a>, Precompiles, EthFrame<EthInterpreter>>;

impl<'a> EvmTr for GuardedEvm<'a> {
    type Context = EvmContext<'a>;
    type Instructions = Instructions<'a>;
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
            Some(transfer) => self.frame_init_with_transfer(frame, &transfer),
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
        let frame = self.0.frame_stack.get();
        self.0.ctx.chain.failed_at = match result.instruction_result().is_ok() || !frame.is_finished() {
            true => None,
            false => LastInstruction::of_ended(&frame.interpreter),
        };
        self.0.frame_return_result(result)
    }
}

impl<'a> InspectorEvmTr for GuardedEvm<'a> {
    type Inspector = Inspection<'a>;

    fn all_inspector(
        &self,
    ) -> (&Self::Context, &Self::Instructions, &Self::Precompiles, &FrameStack<Self::Frame>, &Inspection<'a>) {
        self.0.all_inspector()
    }

    fn all_mut_inspector(
        &mut self,
    ) -> (
        &mut Self::Context,
        &mut Self::Instructions,
        &mut Self::Precompiles,
        &mut FrameStack<Self::Frame>,
        &mut Inspection<'a>,
    ) {
        self.0.all_mut_inspector()
    }
}

impl<'a> GuardedEvm<'a> {
    /// Starts a frame and logs its transfer. The log is added after the frame's checkpoint, so it is reverted with
    /// the frame.
    fn frame_init_with_transfer(
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
                transfer.log(&mut self.0.ctx, created);
                Ok(ItemOrResult::Item(self.0.frame_stack.get()))
            }
            Ok(result) => {
                if result.instruction_result().is_ok() {
                    let created = match &result {
                        FrameResult::Create(outcome) => outcome.address,
                        FrameResult::Call(_) => None,
                    };
                    transfer.log(&mut self.0.ctx, created);
                }
                Ok(ItemOrResult::Result(result))
            }
        }
    }
}

/// Returns the address of the new contract if it has storage but neither code nor a nonce. Returns `None` otherwise,
/// or if the creation fails before the address is accessed: an address that is not accessed must stay cold
/// (EIP-2929).
fn occupied_address(ctx: &mut EvmContext<'_>, inputs: &CreateInputs) -> Result<Option<Address>, DatabaseError> {
    let journal = ctx.journal_mut();
    // The creator is warm, because it is executing or has sent the transaction.
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
    // The database does not include the slots that this transaction has written so far, but this does not matter: the
    // transaction stored only in accounts whose code it ran. Such an account has code or a nonce, or was created
    // before EIP-161, in which case no other creation has the same address.
    Ok(journal.database.has_storage(address)?.then_some(address))
}

/// Fails as if the address had code: the creator's nonce increases, the address is warm and all gas is used.
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
