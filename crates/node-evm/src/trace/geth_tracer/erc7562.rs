//! What the validation rules of ERC-7562 restrict, for bundlers of ERC-4337: erc7562Tracer.

use super::budget::Budget;
use super::calls::{CallOptions, CallTree};
use super::json::{self, Data, Hex};
use super::recorder::{Entry, Exit, Recorder};
use super::struct_logs::stored;
use crate::machine::context::EvmContext;
use crate::trace::tracer::Finished;
use node_core::executor::TraceError;
use node_types::buffer::JsonBuffer;
use revm::bytecode::opcode;
use revm::database_interface::Database;
use revm::interpreter::interpreter_types::{InputsTr, Jumps};
use revm::interpreter::{InstructionResult, Interpreter};
use revm::primitives::{Address, B256, KECCAK_EMPTY, Log, U256};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The options of erc7562Tracer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Erc7562Options {
    /// The opcodes that are not counted, as hex strings; by default those that no rule restricts.
    ignored_opcodes: Option<BTreeSet<String>>,
    with_log: bool,
}

/// Records the tree of calls with the operations that the rules restrict.
pub(super) struct Erc7562 {
    tree: CallTree,
    ignored: BTreeSet<u8>,
    /// What was hashed.
    preimages: BTreeSet<Data>,
    /// The opcode before, and the topmost item of the stack before it.
    previous: Option<(u8, Option<U256>)>,
}

/// The operations of a frame.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Operations {
    accessed_slots: Slots,
    /// The accounts of which code was read.
    ext_code_access_info: Vec<Hex<Address>>,
    /// The opcodes and how often they were executed.
    used_opcodes: BTreeMap<Hex<u8>, u64>,
    contract_size: BTreeMap<Hex<Address>, ContractSize>,
    out_of_gas: bool,
    /// What the whole transaction hashed, in the outermost frame.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    keccak: BTreeSet<Data>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Slots {
    /// The values that were read before anything was written.
    reads: BTreeMap<Hex<B256>, [Hex<B256>; 1]>,
    writes: BTreeMap<Hex<B256>, u64>,
    transient_reads: BTreeMap<Hex<B256>, u64>,
    transient_writes: BTreeMap<Hex<B256>, u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ContractSize {
    contract_size: usize,
    opcode: u8,
}

/// Estimated size in bytes of the record of one operation.
const OPERATION_BYTES: usize = 128;

impl Erc7562 {
    /// Creates the tracer, or returns an error message if an option is invalid.
    pub(super) fn new(options: &Erc7562Options) -> Result<Self, String> {
        let parse = |text: &String| {
            let digits = text.strip_prefix("0x").and_then(|digits| u8::from_str_radix(digits, 16).ok());
            digits.ok_or_else(|| format!("ignored opcode {text:?} is not a byte as a hex string"))
        };
        let ignored = options.ignored_opcodes.as_ref().map(|ignored| ignored.iter().map(parse).collect());
        Ok(Self {
            tree: CallTree::new(CallOptions { with_log: options.with_log, only_top_call: false }),
            ignored: ignored.unwrap_or_else(|| Ok(unrestricted()))?,
            preimages: BTreeSet::new(),
            previous: None,
        })
    }

    /// Records what was hashed, as far as it is in memory; the rest is zero.
    fn hash(&mut self, interpreter: &Interpreter, budget: &mut Budget) {
        let item = |depth| interpreter.stack.peek(depth).ok().and_then(|item| usize::try_from(item).ok());
        let Some((offset, length)) = item(0).zip(item(1)) else { return };
        let memory = interpreter.memory.context_memory();
        let existing = memory.get(offset..).unwrap_or_default();
        let existing = &existing[..existing.len().min(length)];
        if length - existing.len() > MAX_PADDING || !budget.spend(OPERATION_BYTES + length) {
            return;
        }
        let mut data = existing.to_vec();
        data.resize(length, 0);
        self.preimages.insert(Data(data.into()));
    }
}

/// Maximum number of zero bytes in a preimage after what is in memory. Same value as in geth.
const MAX_PADDING: usize = 1 << 20;

/// Returns the opcodes that no rule restricts.
fn unrestricted() -> BTreeSet<u8> {
    let others = [
        opcode::POP,
        opcode::ADD,
        opcode::SUB,
        opcode::MUL,
        opcode::DIV,
        opcode::EQ,
        opcode::LT,
        opcode::GT,
        opcode::SLT,
        opcode::SGT,
        opcode::SHL,
        opcode::SHR,
        opcode::AND,
        opcode::OR,
        opcode::NOT,
        opcode::ISZERO,
    ];
    (opcode::PUSH0..=opcode::SWAP16).chain(others).collect()
}

fn reads_code(opcode: u8) -> bool {
    matches!(opcode, opcode::EXTCODEHASH | opcode::EXTCODESIZE | opcode::EXTCODECOPY)
}

fn calls(opcode: u8) -> bool {
    matches!(opcode, opcode::CALL | opcode::CALLCODE | opcode::DELEGATECALL | opcode::STATICCALL)
}

fn address(word: U256) -> Address {
    Address::from_word(word.into())
}

/// Returns the length of an account's code, or 0 if the state cannot be read. The instruction then fails as well.
fn code_length(context: &mut EvmContext<'_>, address: Address) -> usize {
    let journal = &mut context.journaled_state;
    let (code, hash) = match journal.inner.state.get(&address) {
        Some(kept) => (kept.info.code.clone(), kept.info.code_hash),
        None => (None, journal.database.account(address).ok().flatten().map_or(KECCAK_EMPTY, |info| info.code_hash)),
    };
    let code = code.or_else(|| journal.database.code_by_hash(hash).ok().filter(|_| hash != KECCAK_EMPTY));
    code.map_or(0, |code| code.original_bytes().len())
}

impl Recorder for Erc7562 {
    fn step(&mut self, interpreter: &Interpreter, context: &mut EvmContext<'_>, budget: &mut Budget) {
        let opcode = interpreter.bytecode.opcode();
        let item = |depth| interpreter.stack.peek(depth).ok();
        if matches!(opcode, opcode::RETURN | opcode::REVERT) {
            self.previous = None;
        }
        let previous = self.previous.replace((opcode, item(0)));
        if opcode == opcode::KECCAK256 {
            self.hash(interpreter, budget);
        }
        let Some(operations) = self.tree.operations() else { return };
        if let Some((before, Some(top))) = previous
            && reads_code(before)
            // Whether an account has code may be asked (OP-051).
            && !(before == opcode::EXTCODESIZE && opcode == opcode::ISZERO)
            && budget.spend(size_of::<Address>())
        {
            operations.ext_code_access_info.push(Hex(address(top)));
        }
        let named = if reads_code(opcode) { item(0) } else { item(1).filter(|_| calls(opcode)) };
        if let Some(address) = named.map(address)
            && !operations.contract_size.contains_key(&Hex(address))
            && budget.spend(OPERATION_BYTES)
        {
            let contract_size = code_length(context, address);
            operations.contract_size.insert(Hex(address), ContractSize { contract_size, opcode });
        }
        // Gas may be asked for to pass it to a call (OP-012).
        if previous.is_some_and(|(before, _)| before == opcode::GAS) && !calls(opcode) {
            *operations.used_opcodes.entry(Hex(opcode::GAS)).or_default() += 1;
        }
        if opcode != opcode::GAS && !self.ignored.contains(&opcode) {
            *operations.used_opcodes.entry(Hex(opcode)).or_default() += 1;
        }
        let Some(slot) = item(0) else { return };
        let slots = &mut operations.accessed_slots;
        let word = Hex(B256::from(slot));
        let counted = match opcode {
            opcode::SLOAD => {
                if !slots.reads.contains_key(&word)
                    && !slots.writes.contains_key(&word)
                    && budget.spend(OPERATION_BYTES)
                {
                    let value = stored(context, interpreter.input.target_address(), slot).unwrap_or_default();
                    slots.reads.insert(word, [Hex(value.into())]);
                }
                return;
            }
            opcode::SSTORE => &mut slots.writes,
            opcode::TLOAD => &mut slots.transient_reads,
            opcode::TSTORE => &mut slots.transient_writes,
            _ => return,
        };
        if counted.contains_key(&word) || budget.spend(OPERATION_BYTES) {
            *counted.entry(word).or_default() += 1;
        }
    }

    fn enter(&mut self, entry: &Entry<'_>, budget: &mut Budget) {
        self.tree.enter(entry, budget);
        if budget.spend(size_of::<Operations>() + OPERATION_BYTES)
            && let Some((frame, _)) = self.tree.innermost()
        {
            frame.operations = Some(Box::default());
        }
    }

    fn exit(&mut self, exit: &Exit<'_>, budget: &mut Budget) {
        let out_of_gas = exit.failure.as_ref().is_some_and(|failure| {
            use InstructionResult as Is;
            matches!(
                failure.result,
                Is::OutOfGas
                    | Is::MemoryOOG
                    | Is::PrecompileOOG
                    | Is::ReentrancySentryOOG
                    | Is::CreateInitCodeSizeLimit
            )
        });
        // As in geth, not of the outermost frame.
        if self.tree.innermost().is_some_and(|(_, depth)| depth > 0)
            && let Some(operations) = self.tree.operations()
        {
            operations.out_of_gas = out_of_gas;
        }
        self.tree.exit(exit, budget);
    }

    fn log(&mut self, log: &Log, budget: &mut Budget) {
        self.tree.log(log, budget);
    }

    fn finish(&mut self, run: &mut Finished<'_, '_>, _: &mut Budget, out: &mut JsonBuffer) -> Result<(), TraceError> {
        let mut frame = self.tree.take_whole(run);
        if let Some(operations) = &mut frame.operations {
            operations.keccak = std::mem::take(&mut self.preimages);
        }
        json::write(out, &frame)
    }
}
