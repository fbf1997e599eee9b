//! The accounts that a run uses, before and after it: prestateTracer.

use super::budget::Budget;
use super::json::{self, Data, Hex};
use super::recorder::{Recorder, StepEnd};
use crate::machine::context::EvmContext;
use crate::state::StateDb;
use crate::trace::tracer::Finished;
use node_core::executor::{ExecutionError, TraceError};
use node_types::buffer::JsonBuffer;
use revm::bytecode::{Bytecode, opcode};
use revm::context_interface::either::Either;
use revm::database_interface::Database;
use revm::interpreter::interpreter_types::{InputsTr, Jumps};
use revm::interpreter::{InstructionResult, Interpreter};
use revm::primitives::{Address, B256, Bytes, KECCAK_EMPTY, TxKind, U256, keccak256};
use revm::state::{AccountInfo, EvmState};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The options of prestateTracer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PrestateOptions {
    pub(super) diff_mode: bool,
    pub(super) disable_code: bool,
    pub(super) disable_storage: bool,
    pub(super) include_empty: bool,
}

/// Estimated size in bytes of an account in a trace, without its code and storage.
const ACCOUNT_BYTES: usize = 256;

/// Maximum length in bytes of init code that is hashed to find out the address of its contract: a longer one can only
/// exist where EIP-3860 is not in force.
const MAX_INIT_CODE: usize = 1 << 20;

/// Estimated size in bytes of a storage slot in a trace.
const SLOT_BYTES: usize = 128;

/// Records which accounts and slots a run uses.
#[derive(Debug, Default)]
pub(super) struct Prestate {
    options: PrestateOptions,
    used: BTreeMap<Address, BTreeSet<U256>>,
    /// What the current instruction uses.
    current: Option<Use>,
}

#[derive(Clone, Copy, Debug)]
enum Use {
    Account(Address),
    /// An account and, if that is a delegation (EIP-7702), the account whose code it executes.
    Callee(Address),
    Slot(Address, U256),
}

impl Prestate {
    pub(super) fn new(options: PrestateOptions) -> Self {
        Self { options, ..Self::default() }
    }

    fn use_account(&mut self, address: Address) {
        self.used.entry(address).or_default();
    }

    /// Adds the accounts that a transaction uses besides those that its code uses.
    fn use_transaction(&mut self, run: &Finished<'_, '_>) {
        let transaction = run.transaction;
        let to = match transaction.kind {
            TxKind::Call(to) => to,
            TxKind::Create => transaction.caller.create(nonce_before(run)),
        };
        let authorities = transaction.authorization_list.iter().filter_map(|item| match item {
            Either::Left(signed) => signed.recover_authority().ok(),
            Either::Right(recovered) => recovered.authority(),
        });
        let accounts: Vec<_> = [transaction.caller, to, run.block.beneficiary].into_iter().chain(authorities).collect();
        accounts.into_iter().for_each(|address| self.use_account(address));
    }
}

/// Returns the sender's nonce before the run. That of a call is not set in it.
fn nonce_before(run: &Finished<'_, '_>) -> u64 {
    let sender = run.outcome.state.get(&run.transaction.caller);
    sender.map_or(run.transaction.nonce, |sender| sender.original_info().nonce)
}

impl Recorder for Prestate {
    fn step(&mut self, interpreter: &Interpreter, context: &mut EvmContext<'_>, budget: &mut Budget) {
        let contract = interpreter.input.target_address();
        let item = |depth| interpreter.stack.peek(depth).ok();
        let address = |depth| item(depth).map(|word| Address::from_word(word.into()));
        self.current = match interpreter.bytecode.opcode() {
            opcode::SLOAD | opcode::SSTORE => item(0).map(|slot| Use::Slot(contract, slot)),
            opcode::EXTCODECOPY
            | opcode::EXTCODEHASH
            | opcode::EXTCODESIZE
            | opcode::BALANCE
            | opcode::SELFDESTRUCT => address(0).map(Use::Account),
            opcode::CALL | opcode::CALLCODE | opcode::DELEGATECALL | opcode::STATICCALL => address(1).map(Use::Callee),
            opcode::CREATE => {
                let creator = context.journaled_state.inner.state.get(&contract);
                Some(Use::Account(contract.create(creator.map_or(0, |creator| creator.info.nonce))))
            }
            opcode::CREATE2 => created2(interpreter, contract).map(Use::Account),
            _ => None,
        };
        let is_new = match self.current {
            None => false,
            Some(Use::Account(address) | Use::Callee(address)) => !self.used.contains_key(&address),
            Some(Use::Slot(address, slot)) => self.used.get(&address).is_none_or(|slots| !slots.contains(&slot)),
        };
        if is_new {
            budget.spend(ACCOUNT_BYTES);
        }
    }

    fn step_end(&mut self, _: &Interpreter, context: &mut EvmContext<'_>, end: &StepEnd) {
        // An instruction that fails for lack of gas or of items uses nothing.
        let Some(used) =
            self.current.take().filter(|_| end.failure.as_ref().is_none_or(|failure| is_executed(failure.result)))
        else {
            return;
        };
        match used {
            Use::Account(address) => self.use_account(address),
            Use::Callee(address) => {
                self.use_account(address);
                let account = context.journaled_state.inner.state.get(&address);
                let code = account.and_then(|account| account.info.code.as_ref());
                if let Some(target) = code.and_then(Bytecode::eip7702_address) {
                    self.use_account(target);
                }
            }
            Use::Slot(address, slot) => {
                self.used.entry(address).or_default().insert(slot);
            }
        }
    }

    fn finish(
        &mut self,
        run: &mut Finished<'_, '_>,
        budget: &mut Budget,
        out: &mut JsonBuffer,
    ) -> Result<(), TraceError> {
        self.use_transaction(run);
        let options = self.options;
        let mut pre = BTreeMap::new();
        for (address, slots) in std::mem::take(&mut self.used) {
            let account = Before::read(run.state, address, &slots)?;
            if !budget.spend(ACCOUNT_BYTES + account.code.len() + SLOT_BYTES * slots.len()) {
                return Err(TraceError::TooLarge);
            }
            pre.insert(address, account);
        }
        if options.diff_mode {
            return json::write(out, &Diff::new(&pre, &run.outcome.state, options));
        }
        let shown = pre.iter().filter(|(_, account)| options.include_empty || !account.is_empty());
        let shown: Accounts = shown.map(|(address, account)| (Hex(*address), account.shown(options))).collect();
        json::write(out, &shown)
    }
}

/// Returns whether geth executes an instruction that has this result, rather than refusing it before.
fn is_executed(result: InstructionResult) -> bool {
    !matches!(
        result,
        InstructionResult::OutOfGas
            | InstructionResult::MemoryOOG
            | InstructionResult::MemoryLimitOOG
            | InstructionResult::InvalidOperandOOG
            | InstructionResult::ReentrancySentryOOG
            | InstructionResult::StackUnderflow
            | InstructionResult::StackOverflow
            | InstructionResult::NotActivated
            | InstructionResult::CreateInitCodeSizeLimit
    )
}

/// Returns the address of the contract that CREATE2 creates, or `None` if the instruction cannot succeed.
fn created2(interpreter: &Interpreter, creator: Address) -> Option<Address> {
    let item = |depth| interpreter.stack.peek(depth).ok();
    let (offset, length, salt) = (item(1)?, item(2)?, item(3)?);
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_INIT_CODE)?;
    // Memory that does not exist yet is zero.
    let mut code = vec![0; length];
    if length > 0 {
        let memory = interpreter.memory.context_memory();
        let from = usize::try_from(offset).ok()?;
        let existing = memory.get(from..).unwrap_or_default();
        let existing = &existing[..existing.len().min(length)];
        code[..existing.len()].copy_from_slice(existing);
    }
    Some(creator.create2(B256::from(salt), keccak256(&code)))
}

/// An account before the run.
struct Before {
    info: AccountInfo,
    code: Bytes,
    storage: BTreeMap<U256, U256>,
}

impl Before {
    fn read(state: &mut StateDb<'_>, address: Address, slots: &BTreeSet<U256>) -> Result<Self, ExecutionError> {
        let info = state.account(address)?.cloned().unwrap_or_default();
        let code = if info.code_hash == KECCAK_EMPTY || info.code_hash.is_zero() {
            Bytes::new()
        } else {
            state.code_by_hash(info.code_hash)?.original_bytes()
        };
        let mut storage = BTreeMap::new();
        for slot in slots {
            storage.insert(*slot, state.storage(address, *slot)?);
        }
        Ok(Self { info, code, storage })
    }

    fn is_empty(&self) -> bool {
        self.info.nonce == 0 && self.info.balance.is_zero() && self.code.is_empty()
    }

    fn code_hash(&self) -> B256 {
        if self.code.is_empty() { KECCAK_EMPTY } else { self.info.code_hash }
    }

    fn shown(&self, options: PrestateOptions) -> Account {
        let storage = self.storage.iter().filter(|_| !options.disable_storage);
        Account {
            balance: Some(Hex(self.info.balance)),
            nonce: self.info.nonce,
            code: (!options.disable_code && !self.code.is_empty()).then(|| Data(self.code.clone())),
            code_hash: (!self.code.is_empty()).then_some(Hex(self.info.code_hash)),
            storage: storage.map(|(slot, value)| (Hex((*slot).into()), Hex((*value).into()))).collect(),
        }
    }
}

type Accounts = BTreeMap<Hex<Address>, Account>;

/// The JSON of an account. Before the run, it has a balance; after it, only what has changed.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Account {
    #[serde(skip_serializing_if = "Option::is_none")]
    balance: Option<Hex<U256>>,
    #[serde(skip_serializing_if = "json::is_zero")]
    nonce: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Data>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_hash: Option<Hex<B256>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    storage: BTreeMap<Hex<B256>, Hex<B256>>,
}

/// The accounts that a run has changed.
#[derive(Debug, Default, Serialize)]
struct Diff {
    post: Accounts,
    pre: Accounts,
}

impl Diff {
    fn new(before: &BTreeMap<Address, Before>, state: &EvmState, options: PrestateOptions) -> Self {
        let mut diff = Self::default();
        for (address, before) in before {
            let mut pre = before.shown(options);
            let after = state.get(address);
            // A destroyed account has no state afterwards, and all that was read of it was before.
            if after.is_none_or(|after| !after.is_selfdestructed()) {
                let Some(after) = after else { continue };
                let mut post = Account::default();
                let info = &after.info;
                post.balance = (info.balance != before.info.balance).then_some(Hex(info.balance));
                post.nonce = if info.nonce == before.info.nonce { 0 } else { info.nonce };
                let code_hash = if info.code_hash.is_zero() { KECCAK_EMPTY } else { info.code_hash };
                if code_hash != before.code_hash() {
                    post.code_hash = Some(Hex(code_hash));
                    let code = info.code.as_ref().map(Bytecode::original_bytes).unwrap_or_default();
                    post.code = (!options.disable_code).then_some(Data(code));
                }
                pre.storage.clear();
                for (slot, old) in before.storage.iter().filter(|_| !options.disable_storage) {
                    let new = after.storage.get(slot).map_or(*old, |kept| kept.present_value);
                    let slot = Hex((*slot).into());
                    if new != *old && !old.is_zero() {
                        pre.storage.insert(slot, Hex((*old).into()));
                    }
                    if new != *old && !new.is_zero() {
                        post.storage.insert(slot, Hex(new.into()));
                    }
                }
                let has_cleared = !pre.storage.is_empty();
                if post == Account::default() && !has_cleared {
                    continue;
                }
                diff.post.insert(Hex(*address), post);
            }
            if !before.is_empty() {
                diff.pre.insert(Hex(*address), pre);
            }
        }
        diff
    }
}
