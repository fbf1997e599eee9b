//! The logs of a simulation: numbered, and with transfers of ether among them.
//!
//! A transfer is told as a log of an ERC-20 token at an address that nobody has. It stands among the logs of the run, so
//! that a revert takes it back with the others, and in the right place. The number of a log counts all logs of the block,
//! also those that were taken back, as geth counts them.

use crate::machine::EvmContext;
use revm::bytecode::opcode;
use revm::context::JournalTr;
use revm::handler::instructions::EthInstructions;
use revm::interpreter::instructions::host;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_types::InputsTr;
use revm::interpreter::{
    CallScheme, CallValue, FrameInput, Instruction, InstructionContext, InstructionExecResult, InstructionResult,
};
use revm::primitives::{Address, B256, Log, LogData, U256};

/// Who tells transfers (ERC-7528 names ether by this address).
const TELLER: Address = Address::repeat_byte(0xee);

/// Keccak of `Transfer(address,address,uint256)`.
const TRANSFER_EVENT: B256 = B256::new([
    0xdd, 0xf2, 0x52, 0xad, 0x1b, 0xe2, 0xc8, 0x9b, 0x69, 0xc2, 0xb0, 0x68, 0xfc, 0x37, 0x8d, 0xaa, 0x95, 0x2b, 0xa7,
    0xf1, 0x63, 0xc4, 0xa1, 0x16, 0x28, 0xf5, 0x5a, 0x4d, 0xf5, 0x23, 0xb3, 0xef,
]);

/// What is known of the logs of a run beside what they say.
#[derive(Debug)]
pub(crate) struct LogBook {
    /// Whether transfers of ether are told as logs.
    tells_transfers: bool,
    /// Logs of the block so far.
    count: u64,
    /// An entry for each log that the run still has, and perhaps some for logs that were taken back.
    entries: Vec<LogEntry>,
}

/// What is known of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    /// Its number in the block.
    pub(crate) index: u64,
    /// Whether it tells a transfer, and no code wrote it.
    pub(crate) told: bool,
}

impl LogBook {
    /// The book of a block.
    pub(crate) fn new(tells_transfers: bool) -> Self {
        Self { tells_transfers, count: 0, entries: Vec::new() }
    }

    /// Begins the next run of the block.
    pub(crate) fn begin_run(&mut self) {
        self.entries.clear();
    }

    /// The entries of a run that ended with `count` logs.
    pub(crate) fn entries(&self, count: usize) -> &[LogEntry] {
        &self.entries[..count.min(self.entries.len())]
    }

    /// Takes note of the last of the `logs` that the run has now. Entries behind it are of logs that were taken back.
    fn note(&mut self, logs: usize, told: bool) {
        self.entries.truncate(logs.saturating_sub(1));
        self.entries.push(LogEntry { index: self.count, told });
        self.count += 1;
    }
}

/// What a frame transfers when it is entered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    from: Address,
    /// None for a contract that is only created.
    to: Option<Address>,
    value: U256,
}

impl Transfer {
    /// What the frame `input` transfers, if that is to be told. CALLCODE names a value but moves none.
    pub(crate) fn of(ctx: &EvmContext<'_>, input: &FrameInput) -> Option<Self> {
        ctx.chain.logs.as_ref().filter(|book| book.tells_transfers)?;
        let transfer = match input {
            FrameInput::Call(call) if call.scheme != CallScheme::CallCode => match call.value {
                CallValue::Transfer(value) => Self { from: call.caller, to: Some(call.target_address), value },
                CallValue::Apparent(_) => return None,
            },
            FrameInput::Create(create) => Self { from: create.caller(), to: None, value: create.value() },
            _ => return None,
        };
        (!transfer.value.is_zero()).then_some(transfer)
    }

    /// Tells it, once it is done; `created` is the contract that the frame creates.
    pub(crate) fn tell(&self, ctx: &mut EvmContext<'_>, created: Option<Address>) {
        if let Some(to) = self.to.or(created) {
            tell(ctx, self.from, to, self.value);
        }
    }
}

fn tell(ctx: &mut EvmContext<'_>, from: Address, to: Address, value: U256) {
    let topics = vec![TRANSFER_EVENT, from.into_word(), to.into_word()];
    let data = LogData::new_unchecked(topics, value.to_be_bytes::<32>().into());
    ctx.journaled_state.log(Log { address: TELLER, data });
    note(ctx, true);
}

fn note(ctx: &mut EvmContext<'_>, told: bool) {
    let logs = ctx.journaled_state.logs().len();
    if let Some(book) = &mut ctx.chain.logs {
        book.note(logs, told);
    }
}

/// Has the instructions that write logs, or transfer ether, note it. Their gas stays as it is.
pub(crate) fn install<'a>(instructions: &mut EthInstructions<EthInterpreter, EvmContext<'a>>) {
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
    note(host, false);
    Ok(())
}

fn selfdestruct(context: InstructionContext<'_, EvmContext<'_>, EthInterpreter>) -> InstructionExecResult {
    let InstructionContext { interpreter, host } = context;
    let from = interpreter.input.target_address();
    let to = interpreter.stack.data().last().map(|word| Address::from_word(B256::from(*word)));
    // Who runs is loaded.
    let value = host.journaled_state.inner.state.get(&from).map_or(U256::ZERO, |account| account.info.balance);
    let result = host::selfdestruct(InstructionContext { interpreter: &mut *interpreter, host: &mut *host });
    let told = host.chain.logs.as_ref().is_some_and(|book| book.tells_transfers);
    if let (Err(InstructionResult::SelfDestruct), Some(to), true) = (&result, to, told)
        && !value.is_zero()
    {
        tell(host, from, to, value);
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

    #[test]
    fn logs_that_were_taken_back_are_counted_and_not_there() {
        let mut book = LogBook::new(true);
        book.note(1, true);
        book.note(2, false);
        // The second was taken back, and another takes its place.
        book.note(2, false);
        let entry = |index, told| LogEntry { index, told };
        assert_eq!(book.entries(2), [entry(0, true), entry(2, false)]);
        assert_eq!(book.entries(1), [entry(0, true)]);
        assert_eq!(book.entries(0), []);
        book.begin_run();
        book.note(1, false);
        assert_eq!(book.entries(1), [entry(3, false)]);
    }
}
