//! Transfers of ether, told as logs of an ERC-20 token at an address that nobody has.
//!
//! They stand among the logs of the run, so that a revert takes them back with the others, and in the right place. What
//! sets them apart from logs that code wrote is a fifth topic, which no instruction can give.

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

/// Who tells them (ERC-7528 names ether by this address).
const TELLER: Address = Address::repeat_byte(0xee);

/// Keccak of `Transfer(address,address,uint256)`.
const TRANSFER_EVENT: B256 = B256::new([
    0xdd, 0xf2, 0x52, 0xad, 0x1b, 0xe2, 0xc8, 0x9b, 0x69, 0xc2, 0xb0, 0x68, 0xfc, 0x37, 0x8d, 0xaa, 0x95, 0x2b, 0xa7,
    0xf1, 0x63, 0xc4, 0xa1, 0x16, 0x28, 0xf5, 0x5a, 0x4d, 0xf5, 0x23, 0xb3, 0xef,
]);

/// How many topics a log that code wrote has at most.
const MAX_TOPICS: usize = 4;

/// How many topics of a log that tells a transfer are shown: the event, who gives, who gets.
const SHOWN_TOPICS: usize = 3;

/// What a frame transfers when it is entered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    from: Address,
    /// None for a contract that is only created.
    to: Option<Address>,
    value: U256,
}

impl Transfer {
    /// What the frame `input` transfers; none if nothing. CALLCODE names a value but moves none.
    pub(crate) fn of(input: &FrameInput) -> Option<Self> {
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
            ctx.journaled_state.log(log(self.from, to, self.value));
        }
    }
}

/// Whether a log tells a transfer.
pub(crate) fn is_told(log: &Log) -> bool {
    log.data.topics().len() > MAX_TOPICS
}

/// A log without what sets it apart.
pub(crate) fn as_shown(log: &Log) -> Log {
    let count = if is_told(log) { SHOWN_TOPICS } else { MAX_TOPICS };
    let topics = log.data.topics().iter().take(count).copied().collect();
    Log { address: log.address, data: LogData::new_unchecked(topics, log.data.data.clone()) }
}

fn log(from: Address, to: Address, value: U256) -> Log {
    let topics = vec![TRANSFER_EVENT, from.into_word(), to.into_word(), B256::ZERO, B256::ZERO];
    Log { address: TELLER, data: LogData::new_unchecked(topics, value.to_be_bytes::<32>().into()) }
}

/// Has SELFDESTRUCT tell what it transfers. Its gas stays as it is.
pub(crate) fn install<'a>(instructions: &mut EthInstructions<EthInterpreter, EvmContext<'a>>) {
    instructions.instruction_table_mut()[usize::from(opcode::SELFDESTRUCT)] = Instruction::new(selfdestruct);
}

fn selfdestruct(context: InstructionContext<'_, EvmContext<'_>, EthInterpreter>) -> InstructionExecResult {
    let InstructionContext { interpreter, host } = context;
    let from = interpreter.input.target_address();
    let to = interpreter.stack.data().last().map(|word| Address::from_word(B256::from(*word)));
    // Who runs is loaded.
    let value = host.journaled_state.inner.state.get(&from).map_or(U256::ZERO, |account| account.info.balance);
    let result = host::selfdestruct(InstructionContext { interpreter: &mut *interpreter, host: &mut *host });
    if let (Err(InstructionResult::SelfDestruct), Some(to)) = (&result, to)
        && !value.is_zero()
    {
        host.journaled_state.log(log(from, to, value));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topic_is_the_hash_of_the_event() {
        let hash = node_types::keccak256("Transfer(address,address,uint256)");
        assert_eq!(TRANSFER_EVENT.0, hash.0);
    }

    #[test]
    fn what_is_shown_is_an_event_with_three_topics() {
        let [from, to] = [Address::repeat_byte(1), Address::repeat_byte(2)];
        let told = log(from, to, U256::from(3));
        assert!(is_told(&told));
        let shown = as_shown(&told);
        assert_eq!(shown.data.topics(), [TRANSFER_EVENT, from.into_word(), to.into_word()]);
        assert!(!is_told(&shown));
        let four = Log { address: from, data: LogData::new_unchecked(vec![B256::ZERO; 4], Default::default()) };
        assert!(!is_told(&four));
        assert_eq!(as_shown(&four), four);
    }
}
