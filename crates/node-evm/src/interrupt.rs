//! Ends code that runs for too long.
//!
//! revm has no deadline of its own. Every loop and every recursion passes a jump, a call or a creation, so that it is
//! enough to watch the clock there, and where one instruction can work for milliseconds: at calls, which may be of a dear
//! precompile, and at what hashes or copies memory. All other instructions run as fast as without. Code without any of
//! these is bounded by its length: a body of 5 MiB holds instructions for some ten milliseconds.

use crate::log_book::LogBook;
use crate::machine::EvmContext;
use node_core::context::Context;
use revm::bytecode::opcode;
use revm::context_interface::context::ContextError;
use revm::handler::instructions::EthInstructions;
use revm::interpreter::instructions::{contract, control, host, memory, system};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{Instruction, InstructionContext, InstructionExecResult, InstructionResult};

/// How many jumps run between two looks at the clock; a few microseconds.
const STRIDE: u32 = 1024;

/// Counts jumps and looks at the clock from time to time.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    context: &'a Context,
    count: u32,
    /// What is noted of logs, in simulations. It is here because this is what revm carries along for us.
    pub(crate) logs: Option<LogBook>,
}

impl<'a> Watch<'a> {
    /// Watches over `context`.
    pub(crate) fn new(context: &'a Context) -> Self {
        Self { context, count: 0, logs: None }
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
    table[usize::from(opcode::KECCAK256)] = Instruction::new(keccak256);
    table[usize::from(opcode::CALLDATACOPY)] = Instruction::new(calldatacopy);
    table[usize::from(opcode::CODECOPY)] = Instruction::new(codecopy);
    table[usize::from(opcode::EXTCODECOPY)] = Instruction::new(extcodecopy);
    table[usize::from(opcode::RETURNDATACOPY)] = Instruction::new(returndatacopy);
    table[usize::from(opcode::MCOPY)] = Instruction::new(mcopy);
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
    look(context.host)?;
    contract::call::<KIND, _, _>(context)
}

fn create<const IS_CREATE2: bool>(context: Ictx<'_, '_>) -> InstructionExecResult {
    look(context.host)?;
    contract::create::<IS_CREATE2, _, _>(context)
}

/// Instructions that look at the clock, and then do what revm's of the same name do.
macro_rules! looking {
    ($($module:ident::$instruction:ident),+) => {$(
        fn $instruction(context: Ictx<'_, '_>) -> InstructionExecResult {
            look(context.host)?;
            $module::$instruction(context)
        }
    )+};
}

looking!(
    system::keccak256,
    system::calldatacopy,
    system::codecopy,
    host::extcodecopy,
    system::returndatacopy,
    memory::mcopy
);

/// Looks at the clock at every [`STRIDE`]th call.
fn tick(host: &mut EvmContext<'_>) -> InstructionExecResult {
    host.chain.count = host.chain.count.wrapping_add(1);
    if host.chain.count.is_multiple_of(STRIDE) { look(host) } else { Ok(()) }
}

/// Ends the run with the interruption as its error when the context says so.
fn look(host: &mut EvmContext<'_>) -> InstructionExecResult {
    host.chain.context.check().map_err(|interrupted| {
        host.error = Err(ContextError::Db(interrupted.into()));
        InstructionResult::FatalExternalError
    })
}
