//! Instructions that interrupt a run when its time limit is reached.
//!
//! revm has no deadlines. Every loop and every recursion contains a jump, a call or a creation, so it suffices to
//! check the time there, and at instructions that can take milliseconds by themselves: calls, which may run an
//! expensive precompile, and instructions that hash or copy memory. Jumps, and instructions that take a microsecond,
//! are counted, and the time is checked once in many. All other instructions run at full speed. Code without any of
//! these is bounded by its length: the instructions in a request body of 5 MiB run for about ten milliseconds.

use crate::machine::context::{EvmContext, Instructions, MANY_BYTES, check_quick};
use node_core::context::Interrupted;
use revm::bytecode::opcode;
use revm::context_interface::context::ContextError;
use revm::interpreter::instructions::{arithmetic, contract, control, host, memory, system};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{Instruction, InstructionContext, InstructionExecResult, InstructionResult};

type Ictx<'i, 'a> = InstructionContext<'i, EvmContext<'a>, EthInterpreter>;

/// Replaces the instructions at which the time is checked. Their gas does not change.
pub(crate) fn install(instructions: &mut Instructions<'_>) {
    let table = instructions.instruction_table_mut();
    table[usize::from(opcode::JUMP)] = Instruction::new(jump);
    table[usize::from(opcode::JUMPI)] = Instruction::new(jumpi);
    table[usize::from(opcode::EXP)] = Instruction::new(exp);
    table[usize::from(opcode::BALANCE)] = Instruction::new(balance);
    table[usize::from(opcode::EXTCODESIZE)] = Instruction::new(extcodesize);
    table[usize::from(opcode::EXTCODEHASH)] = Instruction::new(extcodehash);
    table[usize::from(opcode::BLOCKHASH)] = Instruction::new(blockhash);
    table[usize::from(opcode::SLOAD)] = Instruction::new(sload);
    table[usize::from(opcode::SSTORE)] = Instruction::new(sstore);
    table[usize::from(opcode::LOG0)] = Instruction::new(log::<0>);
    table[usize::from(opcode::LOG1)] = Instruction::new(log::<1>);
    table[usize::from(opcode::LOG2)] = Instruction::new(log::<2>);
    table[usize::from(opcode::LOG3)] = Instruction::new(log::<3>);
    table[usize::from(opcode::LOG4)] = Instruction::new(log::<4>);
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

fn call<const KIND: u8>(context: Ictx<'_, '_>) -> InstructionExecResult {
    check(context.host)?;
    require_items(&context, if matches!(KIND, opcode::CALL | opcode::CALLCODE) { 7 } else { 6 })?;
    contract::call::<KIND, _, _>(context)
}

fn create<const IS_CREATE2: bool>(context: Ictx<'_, '_>) -> InstructionExecResult {
    check(context.host)?;
    require_items(&context, if IS_CREATE2 { 4 } else { 3 })?;
    contract::create::<IS_CREATE2, _, _>(context)
}

fn log<const N: usize>(context: Ictx<'_, '_>) -> InstructionExecResult {
    count(context.host)?;
    require_items(&context, N + 2)?;
    host::log::<N, _>(context)
}

/// Fails unless the stack has `count` items. revm's instruction would take some of them before it fails, and the number
/// of items is part of the error.
fn require_items(context: &Ictx<'_, '_>, count: usize) -> InstructionExecResult {
    if context.interpreter.stack.len() < count { Err(InstructionResult::StackUnderflow) } else { Ok(()) }
}

fn keccak256(context: Ictx<'_, '_>) -> InstructionExecResult {
    check(context.host)?;
    let length = context.interpreter.stack.peek(1).unwrap_or_default();
    interrupt_unless(check_quick(length.saturating_to::<usize>() <= MANY_BYTES), context.host)?;
    system::keccak256(context)
}

/// Defines instructions that check the time, or count, and then run revm's instruction of the same name.
macro_rules! guarded {
    ($guard:ident: $($module:ident::$instruction:ident),+) => {$(
        fn $instruction(context: Ictx<'_, '_>) -> InstructionExecResult {
            $guard(context.host)?;
            $module::$instruction(context)
        }
    )+};
}

guarded!(
    check: system::calldatacopy,
    system::codecopy,
    host::extcodecopy,
    system::returndatacopy,
    memory::mcopy
);

guarded!(
    count: control::jump,
    control::jumpi,
    arithmetic::exp,
    host::balance,
    host::extcodesize,
    host::extcodehash,
    host::blockhash,
    host::sload,
    host::sstore
);

fn count(host: &mut EvmContext<'_>) -> InstructionExecResult {
    if host.chain.count() { check(host) } else { Ok(()) }
}

/// Ends the run with an error if the context is interrupted.
fn check(host: &mut EvmContext<'_>) -> InstructionExecResult {
    interrupt_unless(host.chain.check(), host)
}

fn interrupt_unless(checked: Result<(), Interrupted>, host: &mut EvmContext<'_>) -> InstructionExecResult {
    checked.map_err(|interrupted| {
        host.error = Err(ContextError::Db(interrupted.into()));
        InstructionResult::FatalExternalError
    })
}
