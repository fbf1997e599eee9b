//! Instructions that number the logs of a simulated block and log transfers of ether.
//!
//! A transfer is logged like the transfer of an ERC-20 token, with a reserved address as the emitter. The log is one
//! of the frame's logs, so it is in order with them and reverted with them.

use crate::machine::context::{EvmContext, Instructions};
use revm::bytecode::opcode;
use revm::context::JournalTr;
use revm::interpreter::instructions::host;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_types::InputsTr;
use revm::interpreter::{
    CallScheme, CallValue, FrameInput, Instruction, InstructionContext, InstructionExecResult, InstructionResult,
};
use revm::primitives::{Address, B256, Log, LogData, U256};

/// The address that represents ether and emits the logs of transfers (ERC-7528).
const ETHER_ADDRESS: Address = Address::repeat_byte(0xee);

/// Keccak of `Transfer(address,address,uint256)`.
const TRANSFER_EVENT: B256 = B256::new([
    0xdd, 0xf2, 0x52, 0xad, 0x1b, 0xe2, 0xc8, 0x9b, 0x69, 0xc2, 0xb0, 0x68, 0xfc, 0x37, 0x8d, 0xaa, 0x95, 0x2b, 0xa7,
    0xf1, 0x63, 0xc4, 0xa1, 0x16, 0x28, 0xf5, 0x5a, 0x4d, 0xf5, 0x23, 0xb3, 0xef,
]);

/// The ether that a frame transfers when it starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    from: Address,
    /// `None` for a contract that the frame creates.
    to: Option<Address>,
    value: U256,
}

impl Transfer {
    /// Returns the transfer of the frame `input`, or `None` if there is none or transfers are not logged.
    pub(crate) fn of(ctx: &EvmContext<'_>, input: &FrameInput) -> Option<Self> {
        ctx.chain.logs.as_ref().filter(|book| book.trace_transfers)?;
        let transfer = match input {
            // CALLCODE has a value but transfers it to the caller itself.
            FrameInput::Call(call) if call.scheme != CallScheme::CallCode => match call.value {
                CallValue::Transfer(value) => Self { from: call.caller, to: Some(call.target_address), value },
                CallValue::Apparent(_) => return None,
            },
            FrameInput::Create(create) => Self { from: create.caller(), to: None, value: create.value() },
            _ => return None,
        };
        (!transfer.value.is_zero()).then_some(transfer)
    }

    /// Logs the transfer. `created` is the contract that the frame creates, if any.
    pub(crate) fn log(&self, ctx: &mut EvmContext<'_>, created: Option<Address>) {
        if let Some(to) = self.to.or(created) {
            log_transfer(ctx, self.from, to, self.value);
        }
    }
}

fn log_transfer(ctx: &mut EvmContext<'_>, from: Address, to: Address, value: U256) {
    let topics = vec![TRANSFER_EVENT, from.into_word(), to.into_word()];
    let data = LogData::new_unchecked(topics, value.to_be_bytes::<32>().into());
    ctx.journaled_state.log(Log { address: ETHER_ADDRESS, data });
    add_entry(ctx, true);
}

fn add_entry(ctx: &mut EvmContext<'_>, is_transfer: bool) {
    let logs = ctx.journaled_state.logs().len();
    if let Some(book) = &mut ctx.chain.logs {
        book.add(logs, is_transfer);
    }
}

/// Replaces the instructions that write logs or transfer ether. Their gas does not change.
pub(crate) fn install(instructions: &mut Instructions<'_>) {
    let table = instructions.instruction_table_mut();
    table[usize::from(opcode::LOG0)] = Instruction::new(log::<0>);
    table[usize::from(opcode::LOG1)] = Instruction::new(log::<1>);
    table[usize::from(opcode::LOG2)] = Instruction::new(log::<2>);
    table[usize::from(opcode::LOG3)] = Instruction::new(log::<3>);
    table[usize::from(opcode::LOG4)] = Instruction::new(log::<4>);
    table[usize::from(opcode::SELFDESTRUCT)] = Instruction::new(selfdestruct);
}

fn log<const TOPICS: usize>(context: InstructionContext<'_, EvmContext<'_>, EthInterpreter>) -> InstructionExecResult {
    let InstructionContext { interpreter, host } = context;
    host::log::<TOPICS, _>(InstructionContext { interpreter, host: &mut *host })?;
    add_entry(host, false);
    Ok(())
}

fn selfdestruct(context: InstructionContext<'_, EvmContext<'_>, EthInterpreter>) -> InstructionExecResult {
    let InstructionContext { interpreter, host } = context;
    let from = interpreter.input.target_address();
    let to = interpreter.stack.data().last().map(|word| Address::from_word(B256::from(*word)));
    // The account whose code runs is loaded.
    let value = host.journaled_state.inner.state.get(&from).map_or(U256::ZERO, |account| account.info.balance);
    let result = host::selfdestruct(InstructionContext { interpreter: &mut *interpreter, host: &mut *host });
    let is_logged = host.chain.logs.as_ref().is_some_and(|book| book.trace_transfers);
    if let (Err(InstructionResult::SelfDestruct), Some(to), true) = (&result, to, is_logged)
        && !value.is_zero()
    {
        log_transfer(host, from, to, value);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topic_is_the_hash_of_the_event() {
        assert_eq!(TRANSFER_EVENT.0, node_types::keccak256("Transfer(address,address,uint256)").0);
    }
}
