//! Why code halted, in geth's words: the only table of them, for calls, estimates, access lists, simulations and tracers.

use revm::bytecode::opcode::{self, OpCode};
use revm::interpreter::interpreter_types::{Jumps, LegacyBytecode};
use revm::interpreter::{InstructionResult, Interpreter};
use revm::precompile::{PrecompileHalt, PrecompileId};
use std::borrow::Cow;

/// The text for a call that ran out of gas, without details.
pub(crate) const OUT_OF_GAS: &str = "out of gas";

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

    /// Returns the number of items that it needs on the stack.
    fn required_items(self) -> usize {
        OpCode::new(self.opcode).map_or(0, |opcode| usize::from(opcode.inputs()))
    }

    fn lacks_items(self) -> bool {
        self.stack < self.required_items()
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

/// Returns whether a text is about lack of gas in the sense of geth, which does not count code that is too expensive to
/// store among it.
pub(crate) fn is_out_of_gas(text: &str) -> bool {
    text.starts_with(OUT_OF_GAS)
}

/// Returns geth's text for a failure of a precompile. Of the libraries that geth can use for bn254, this is gnark.
pub(crate) fn precompile_text(precompile: &PrecompileId, halt: PrecompileHalt) -> Cow<'static, str> {
    use PrecompileHalt as Is;
    let text = match halt {
        Is::Blake2WrongLength
        | Is::BlobInvalidInputLength
        | Is::KzgInvalidInputLength
        | Is::Bls12381ScalarInputLength
        | Is::Bls12381G1AddInputLength
        | Is::Bls12381G1MsmInputLength
        | Is::Bls12381G2AddInputLength
        | Is::Bls12381G2MsmInputLength
        | Is::Bls12381PairingInputLength
        | Is::Bls12381MapFpToG1InputLength
        | Is::Bls12381MapFp2ToG2InputLength
        | Is::Bls12381G1PaddingLength
        | Is::Bls12381G2PaddingLength => "invalid input length",
        Is::Blake2WrongFinalIndicatorFlag => "invalid final flag",
        Is::ModexpExpOverflow | Is::ModexpBaseOverflow | Is::ModexpModOverflow | Is::ModexpEip7823LimitSize => {
            "one or more of base/exponent/modulus length exceeded 1024 bytes"
        }
        Is::Bn254PairLength => "bad elliptic curve pairing size",
        Is::Bn254FieldPointNotAMember => "invalid fp.Element encoding",
        Is::Bn254AffineGFailedToCreate => "point is not on curve",
        Is::BlobMismatchedVersion => "mismatched versioned hash",
        Is::BlobVerifyKzgProofFailed
        | Is::KzgInvalidG1Point
        | Is::KzgG1PointNotOnCurve
        | Is::KzgG1PointNotInSubgroup => "error verifying kzg proof",
        Is::NonCanonicalFp if matches!(precompile, PrecompileId::KzgPointEvaluation) => "error verifying kzg proof",
        Is::NonCanonicalFp => "invalid fp.Element encoding",
        Is::Bls12381G1NotOnCurve | Is::Bls12381G2NotOnCurve => "invalid point: not on curve",
        Is::Bls12381G1NotInSubgroup => "g1 point is not on correct subgroup",
        Is::Bls12381G2NotInSubgroup => "g2 point is not on correct subgroup",
        Is::Bls12381FpPaddingInvalid => "invalid field element top bytes",
        Is::Bls12381FpPaddingLength => "invalid field element length",
        Is::Secp256k1RecoverFailed => "recovery failed",
        Is::OutOfGas => OUT_OF_GAS,
        Is::Other(text) => return text,
    };
    text.into()
}

/// Returns geth's text for the result of a frame that did not succeed. `last` is its last instruction, and `precompile`
/// the text of the precompile that failed last.
pub(crate) fn text(
    result: InstructionResult,
    last: Option<LastInstruction>,
    precompile: Cow<'static, str>,
) -> Cow<'static, str> {
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
        // geth checks the stack before the rest.
        Is::StateChangeDuringStaticCall if last.is_some_and(LastInstruction::lacks_items) => {
            stack(Is::StackUnderflow, last)
        }
        Is::StateChangeDuringStaticCall | Is::CallNotAllowedInsideStatic => "write protection".into(),
        Is::CallTooDeep => "max call depth exceeded".into(),
        Is::OutOfFunds | Is::OverflowPayment => "insufficient balance for transfer".into(),
        Is::CreateCollision => "contract address collision".into(),
        Is::NonceOverflow => "nonce uint64 overflow".into(),
        Is::CreateContractSizeLimit => "max code size exceeded".into(),
        // For geth it is a part of the gas that an instruction costs.
        Is::CreateInitCodeSizeLimit => "out of gas: max initcode size exceeded".into(),
        Is::CreateContractStartingWithEF => "invalid code: must not begin with 0xef".into(),
        Is::PrecompileError => precompile,
        // Results of rules that are not in force, and of code that did not halt.
        other => format!("{other:?}").into(),
    }
}

/// Returns the text for a stack with too few or too many items. revm reports both as too many for DUP and SWAP.
fn stack(result: InstructionResult, last: Option<LastInstruction>) -> Cow<'static, str> {
    match last {
        Some(last) if last.lacks_items() => {
            format!("stack underflow ({} <=> {})", last.stack, last.required_items()).into()
        }
        _ if result == InstructionResult::StackUnderflow => "stack underflow".into(),
        _ => "stack limit reached 1024 (1023)".into(),
    }
}
