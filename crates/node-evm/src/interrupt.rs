//! Instructions that interrupt a run when its time limit is reached.
//!
//! revm has no deadlines. Every loop and every recursion contains a jump, a call or a creation, so it suffices to
//! check the time there, and at instructions that can take milliseconds by themselves: calls, which may run an
//! expensive precompile, and instructions that hash or copy memory. All other instructions run at full speed. Code
//! without any of these is bounded by its length: the instructions in a request body of 5 MiB run for about ten
//! milliseconds.

use crate::evm_context::{EvmContext, Instructions};
use revm::bytecode::opcode;
use revm::context_interface::context::ContextError;
use revm::interpreter::instructions::{contract, control, host, memory, system};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{Instruction, InstructionContext, InstructionExecResult, InstructionResult};

type Ictx<'i, 'a> = InstructionContext<'i, EvmContext<'a>, EthInterpreter>;

/// Replaces the instructions at which the time is checked. Their gas does not change.
pub(crate) fn install(instructions: &mut Instructions<'_>) {
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
    count_jump(context.host)?;
    control::jump(context)
}

fn jumpi(context: Ictx<'_, '_>) -> InstructionExecResult {
    count_jump(context.host)?;
    control::jumpi(context)
}

fn call<const KIND: u8>(context: Ictx<'_, '_>) -> InstructionExecResult {
    check(context.host)?;
    contract::call::<KIND, _, _>(context)
}

fn create<const IS_CREATE2: bool>(context: Ictx<'_, '_>) -> InstructionExecResult {
    check(context.host)?;
    contract::create::<IS_CREATE2, _, _>(context)
}

/// Defines instructions that check the time and then run revm's instruction of the same name.
macro_rules! checked {
    ($($module:ident::$instruction:ident),+) => {$(
        fn $instruction(context: Ictx<'_, '_>) -> InstructionExecResult {
            check(context.host)?;
            $module::$instruction(context)
        }
    )+};
}

checked!(
    system::keccak256,
    system::calldatacopy,
    system::codecopy,
    host::extcodecopy,
    system::returndatacopy,
    memory::mcopy
);

fn count_jump(host: &mut EvmContext<'_>) -> InstructionExecResult {
    if host.chain.count_jump() { check(host) } else { Ok(()) }
}

/// Ends the run with an error if the context is interrupted.
fn check(host: &mut EvmContext<'_>) -> InstructionExecResult {
    host.chain.check().map_err(|interrupted| {
        host.error = Err(ContextError::Db(interrupted.into()));
        InstructionResult::FatalExternalError
    })
}
