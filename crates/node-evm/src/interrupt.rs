//! Ends code that runs for too long.
//!
//! revm has no deadline of its own. Every loop and every recursion passes a jump, a call or a creation, so that it is
//! enough to watch the clock there; all other instructions run as fast as without.

use crate::machine::EvmContext;
use node_core::context::Context;
use revm::bytecode::opcode;
use revm::context_interface::context::ContextError;
use revm::handler::instructions::EthInstructions;
use revm::interpreter::instructions::{contract, control};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{Instruction, InstructionContext, InstructionExecResult, InstructionResult};

/// How many watched instructions run between two looks at the clock; a few microseconds.
const STRIDE: u32 = 1024;

/// Counts watched instructions and looks at the clock from time to time.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    context: &'a Context,
    count: u32,
}

impl<'a> Watch<'a> {
    /// Watches over `context`.
    pub(crate) fn new(context: &'a Context) -> Self {
        Self { context, count: 0 }
    }
}

type Ictx<'i, 'a> = InstructionContext<'i, EvmContext<'a>, EthInterpreter>;

/// Has the clock watched by the instructions that every loop and every recursion needs. Their gas stays as it is.
pub(crate) fn watch<'a>(instructions: &mut EthInstructions<EthInterpreter, EvmContext<'a>>) {
    let table = instructions.instruction_table_mut();
    table[usize::from(opcode::JUMP)] = Instruction::new(jump);
    table[usize::from(opcode::JUMPI)] = Instruction::new(jumpi);
    table[usize::from(opcode::CALL)] = Instruction::new(call::<{ opcode::CALL }>);
    table[usize::from(opcode::CALLCODE)] = Instruction::new(call::<{ opcode::CALLCODE }>);
    table[usize::from(opcode::DELEGATECALL)] = Instruction::new(call::<{ opcode::DELEGATECALL }>);
    table[usize::from(opcode::STATICCALL)] = Instruction::new(call::<{ opcode::STATICCALL }>);
    table[usize::from(opcode::CREATE)] = Instruction::new(create::<false>);
    table[usize::from(opcode::CREATE2)] = Instruction::new(create::<true>);
}

fn jump(context: Ictx<'_, '_>) -> InstructionExecResult {
    tick(context.host)?;
    control::jump(context)
}

fn jumpi(context: Ictx<'_, '_>) -> InstructionExecResult {
    tick(context.host)?;
    control::jumpi(context)
}

fn call<const KIND: u8>(context: Ictx<'_, '_>) -> InstructionExecResult {
    tick(context.host)?;
    contract::call::<KIND, _, _>(context)
}

fn create<const IS_CREATE2: bool>(context: Ictx<'_, '_>) -> InstructionExecResult {
    tick(context.host)?;
    contract::create::<IS_CREATE2, _, _>(context)
}

/// Counts, and ends the run with the interruption as its error when the context says so.
fn tick(host: &mut EvmContext<'_>) -> InstructionExecResult {
    host.chain.count = host.chain.count.wrapping_add(1);
    if !host.chain.count.is_multiple_of(STRIDE) {
        return Ok(());
    }
    host.chain.context.check().map_err(|interrupted| {
        host.error = Err(ContextError::Db(interrupted.into()));
        InstructionResult::FatalExternalError
    })
}
