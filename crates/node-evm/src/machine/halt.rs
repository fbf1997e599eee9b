//! Why code halted, in geth's words: the only table of them, for calls, estimates, access lists, simulations and tracers.

use revm::bytecode::opcode::{self, OpCode};
use revm::interpreter::interpreter_types::{Jumps, LegacyBytecode};
use revm::interpreter::{InstructionResult, Interpreter};
use std::borrow::Cow;

/// The text for a call that ran out of gas, without details.
pub(crate) const OUT_OF_GAS: &str = "out of gas";

/// The text for a precompile that failed.
pub(crate) const PRECOMPILE_FAILED: &str = "precompiled failed";

/// The text for code that reverted.
pub(crate) const REVERTED: &str = "execution reverted";

/// The last instruction of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastInstruction {
    opcode: u8,
    /// Number of items on the stack before it.
    stack: usize,
}

impl LastInstruction {
    /// Returns the instruction that the interpreter executes next.
    pub(crate) fn next(interpreter: &Interpreter) -> Self {
        Self { opcode: interpreter.bytecode.opcode(), stack: interpreter.stack.len() }
    }

    /// Returns the instruction that ended a frame. The number of items is right if it lacked some.
    pub(crate) fn of_ended(interpreter: &Interpreter) -> Option<Self> {
        // The interpreter points to the next instruction.
        let at = interpreter.bytecode.pc().checked_sub(1)?;
        let opcode = *interpreter.bytecode.bytecode_slice().get(at)?;
        Some(Self { opcode, stack: interpreter.stack.len() })
    }

    /// Returns geth's name of the opcode.
    pub(crate) fn name(self) -> Cow<'static, str> {
        opcode_name(self.opcode)
    }
}

/// Returns geth's name of an opcode.
pub(crate) fn opcode_name(opcode: u8) -> Cow<'static, str> {
    match OpCode::new(opcode) {
        Some(known) => known.as_str().into(),
        None => format!("opcode {opcode:#x} not defined").into(),
    }
}

/// Returns geth's text for the result of a frame that did not succeed.
pub(crate) fn text(result: InstructionResult, last: Option<LastInstruction>) -> Cow<'static, str> {
    use InstructionResult as Is;
    match result {
        Is::Revert => REVERTED.into(),
        // RETURN itself costs no gas, and for memory the result is another one.
        Is::OutOfGas if last.is_some_and(|last| last.opcode == opcode::RETURN) => {
            "contract creation code storage out of gas".into()
        }
        Is::OutOfGas | Is::MemoryOOG | Is::MemoryLimitOOG | Is::PrecompileOOG => OUT_OF_GAS.into(),
        Is::ReentrancySentryOOG => "out of gas: not enough gas for reentrancy sentry".into(),
        Is::InvalidOperandOOG => "gas uint64 overflow".into(),
        Is::OpcodeNotFound | Is::NotActivated | Is::InvalidFEOpcode => match last {
            Some(last) => format!("invalid opcode: {}", last.name()).into(),
            None => "invalid opcode".into(),
        },
        Is::InvalidJump => "invalid jump destination".into(),
        Is::StackUnderflow | Is::StackOverflow => stack(result, last),
        Is::OutOfOffset => "return data out of bounds".into(),
        Is::StateChangeDuringStaticCall | Is::CallNotAllowedInsideStatic => "write protection".into(),
        Is::CallTooDeep => "max call depth exceeded".into(),
        Is::OutOfFunds | Is::OverflowPayment => "insufficient balance for transfer".into(),
        Is::CreateCollision => "contract address collision".into(),
        Is::NonceOverflow => "nonce uint64 overflow".into(),
        Is::CreateContractSizeLimit => "max code size exceeded".into(),
        Is::CreateInitCodeSizeLimit => "max initcode size exceeded".into(),
        Is::CreateContractStartingWithEF => "invalid code: must not begin with 0xef".into(),
        Is::PrecompileError => PRECOMPILE_FAILED.into(),
        // Results of rules that are not in force, and of code that did not halt.
        other => format!("{other:?}").into(),
    }
}

/// Returns the text for a stack with too few or too many items. revm reports both as too many for DUP and SWAP.
fn stack(result: InstructionResult, last: Option<LastInstruction>) -> Cow<'static, str> {
    let required = last.and_then(|last| OpCode::new(last.opcode)).map_or(0, |opcode| usize::from(opcode.inputs()));
    match last {
        Some(last) if last.stack < required => format!("stack underflow ({} <=> {required})", last.stack).into(),
        _ if result == InstructionResult::StackUnderflow => "stack underflow".into(),
        _ => "stack limit reached 1024 (1023)".into(),
    }
}
