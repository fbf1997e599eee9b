//! The gas that a failed instruction would have cost, as geth computes it before it executes one.

use super::struct_logs::stored;
use crate::machine::context::EvmContext;
use revm::bytecode::opcode;
use revm::context::Cfg;
use revm::context_interface::cfg::GasParams;
use revm::context_interface::context::SStoreResult;
use revm::interpreter::instructions::gas_table_spec;
use revm::interpreter::interpreter_types::{InputsTr, Jumps};
use revm::interpreter::{InstructionResult, Interpreter, num_words};
use revm::primitives::hardfork::SpecId;
use revm::primitives::{Address, U256};
use revm::state::Account;

/// Gas of CREATE and CREATE2 besides memory and init code (Yellow Paper, appendix G).
const CREATE_GAS: u64 = 32_000;

/// What the cost of an instruction depends on, before it is executed.
#[derive(Debug)]
pub(super) struct Operation {
    opcode: u8,
    /// The gas that is left.
    gas: u64,
    /// The topmost items of the stack, the topmost first.
    items: Vec<U256>,
    /// Size of the memory in bytes.
    memory: usize,
    /// Whether the account or slot that it uses is cold (EIP-2929).
    is_cold: bool,
    /// Whether the account that it calls or pays does not exist or is empty.
    is_empty: bool,
    /// The values of a slot that is stored.
    slot: SStoreResult,
}

impl Operation {
    /// Returns the operation that the interpreter executes next.
    pub(super) fn next(interpreter: &Interpreter, context: &mut EvmContext<'_>) -> Self {
        let opcode = interpreter.bytecode.opcode();
        let items: Vec<_> = interpreter.stack.data().iter().rev().take(7).copied().collect();
        let mut operation = Self {
            opcode,
            gas: interpreter.gas.remaining(),
            memory: interpreter.memory.len(),
            is_cold: false,
            is_empty: false,
            slot: SStoreResult::default(),
            items,
        };
        let contract = interpreter.input.target_address();
        let address = |position: usize| operation.items.get(position).map(|word| Address::from_word((*word).into()));
        let used = match opcode {
            opcode::BALANCE
            | opcode::EXTCODESIZE
            | opcode::EXTCODECOPY
            | opcode::EXTCODEHASH
            | opcode::SELFDESTRUCT => address(0),
            opcode::CALL | opcode::CALLCODE | opcode::DELEGATECALL | opcode::STATICCALL => address(1),
            _ => None,
        };
        if let Some(address) = used {
            operation.is_cold = is_cold(context, address);
            operation.is_empty = is_empty(context, address);
        }
        if matches!(opcode, opcode::SLOAD | opcode::SSTORE) {
            operation.use_slot(context, contract);
        }
        operation
    }

    fn use_slot(&mut self, context: &mut EvmContext<'_>, contract: Address) {
        let slot = self.item(0);
        let journal = &context.journaled_state.inner;
        let kept = journal.state.get(&contract).and_then(|account| account.storage.get(&slot));
        let is_listed = journal.warm_addresses.is_storage_warm(&contract, &slot);
        self.is_cold = !is_listed && kept.is_none_or(|kept| kept.is_cold_transaction_id(journal.transaction_id));
        let original = kept.map(|kept| kept.original_value);
        let present_value = stored(context, contract, slot).unwrap_or_default();
        let original_value = original.unwrap_or(present_value);
        self.slot = SStoreResult { original_value, present_value, new_value: self.item(1) };
    }

    /// Returns an item of the stack, or zero if it is missing.
    fn item(&self, position: usize) -> U256 {
        self.items.get(position).copied().unwrap_or_default()
    }

    /// Returns an item as a length.
    fn length(&self, position: usize) -> usize {
        self.item(position).saturating_to()
    }

    /// Returns the gas that it would have cost. Its result was `result`.
    pub(super) fn cost(&self, result: InstructionResult, context: &EvmContext<'_>) -> u64 {
        use InstructionResult as Is;
        let spec = *context.cfg.spec();
        let fixed = match self.opcode {
            opcode::CREATE | opcode::CREATE2 => CREATE_GAS,
            // geth computes all of their costs together.
            opcode::LOG0..=opcode::LOG4 | opcode::EXP => 0,
            opcode::SLOAD if spec.is_enabled_in(SpecId::BERLIN) => 0,
            _ => self.table(spec),
        };
        match result {
            Is::OpcodeNotFound | Is::NotActivated | Is::InvalidFEOpcode => 0,
            // geth finds these out before it computes the rest.
            Is::StackUnderflow
            | Is::StackOverflow
            | Is::InvalidOperandOOG
            | Is::ReentrancySentryOOG
            | Is::CreateInitCodeSizeLimit => fixed,
            _ if self.gas < fixed => fixed,
            _ => fixed.checked_add(self.dynamic(context.cfg.gas_params(), spec, self.gas - fixed)).unwrap_or(fixed),
        }
    }

    /// Returns what revm charges for the opcode alone.
    fn table(&self, spec: SpecId) -> u64 {
        gas_table_spec(spec)[usize::from(self.opcode)].into()
    }

    /// Returns the part of the cost that depends on more than the opcode, with `available` gas left for it.
    fn dynamic(&self, gas: &GasParams, spec: SpecId, available: u64) -> u64 {
        let memory = |offset: usize, length: usize| {
            if self.length(length) == 0 {
                return 0;
            }
            let end = self.length(offset).saturating_add(self.length(length));
            let cost = |bytes: usize| gas.memory_cost(num_words(bytes));
            cost(end.max(self.memory)).saturating_sub(cost(self.memory))
        };
        let fixed_memory = |length: usize| {
            let end = self.length(0).saturating_add(length);
            gas.memory_cost(num_words(end.max(self.memory))).saturating_sub(gas.memory_cost(num_words(self.memory)))
        };
        let cold_account =
            if self.is_cold && spec.is_enabled_in(SpecId::BERLIN) { gas.cold_account_additional_cost() } else { 0 };
        match self.opcode {
            opcode::KECCAK256 => memory(0, 1).saturating_add(gas.keccak256_cost(self.length(1))),
            opcode::MLOAD | opcode::MSTORE => fixed_memory(32),
            opcode::MSTORE8 => fixed_memory(1),
            opcode::CALLDATACOPY | opcode::CODECOPY | opcode::RETURNDATACOPY => {
                memory(0, 2).saturating_add(gas.copy_cost(self.length(2)))
            }
            opcode::MCOPY => {
                let (read, written) = (memory(1, 2), memory(0, 2));
                read.max(written).saturating_add(gas.mcopy_cost(self.length(2)))
            }
            opcode::EXTCODECOPY => {
                memory(1, 3).saturating_add(gas.extcodecopy(self.length(3))).saturating_add(cold_account)
            }
            opcode::BALANCE | opcode::EXTCODESIZE | opcode::EXTCODEHASH => cold_account,
            opcode::RETURN | opcode::REVERT => memory(0, 1),
            opcode::LOG0..=opcode::LOG4 => {
                let topics = self.opcode - opcode::LOG0;
                let data = gas.log_cost(topics, self.length(1) as u64);
                memory(0, 1).saturating_add(data).saturating_add(self.table(spec))
            }
            opcode::EXP => gas.exp_cost(self.item(1)) + self.table(spec),
            opcode::SLOAD if spec.is_enabled_in(SpecId::BERLIN) => {
                let cold = if self.is_cold { gas.cold_storage_additional_cost() } else { 0 };
                self.table(spec) + cold
            }
            opcode::SSTORE => {
                let is_istanbul = spec.is_enabled_in(SpecId::ISTANBUL);
                gas.sstore_static_gas().saturating_add(gas.sstore_dynamic_gas(is_istanbul, &self.slot, self.is_cold))
            }
            opcode::CREATE | opcode::CREATE2 => {
                let length = self.length(2);
                let code = if spec.is_enabled_in(SpecId::SHANGHAI) { gas.initcode_cost(length) } else { 0 };
                let hash = if self.opcode == opcode::CREATE2 { gas.keccak256_cost(length) } else { 0 };
                memory(1, 2).saturating_add(code).saturating_add(hash)
            }
            opcode::SELFDESTRUCT => {
                let pays = !spec.is_enabled_in(SpecId::SPURIOUS_DRAGON) || self.is_empty;
                gas.selfdestruct_cost(self.is_empty && pays, self.is_cold && spec.is_enabled_in(SpecId::BERLIN))
            }
            opcode::CALL | opcode::CALLCODE | opcode::DELEGATECALL | opcode::STATICCALL => {
                let has_value = matches!(self.opcode, opcode::CALL | opcode::CALLCODE) && !self.item(2).is_zero();
                let first = if matches!(self.opcode, opcode::CALL | opcode::CALLCODE) { 3 } else { 2 };
                let base = self.call_base(gas, spec, has_value, cold_account);
                let base = base.saturating_add(memory(first, first + 1).max(memory(first + 2, first + 3)));
                base.saturating_add(self.passed(spec, available, base))
            }
            _ => 0,
        }
    }

    /// Returns the cost of a call without memory and the gas that it passes on.
    fn call_base(&self, gas: &GasParams, spec: SpecId, has_value: bool, cold_account: u64) -> u64 {
        let transfer = if has_value { gas.transfer_value_cost() } else { 0 };
        let creation = if self.opcode == opcode::CALL && self.is_empty {
            gas.new_account_cost(spec.is_enabled_in(SpecId::SPURIOUS_DRAGON), has_value)
        } else {
            0
        };
        transfer + creation + cold_account
    }

    /// Returns the gas that a call passes on: what it requests, or all but one 64th of what is left (EIP-150).
    fn passed(&self, spec: SpecId, available: u64, base: u64) -> u64 {
        let requested: u64 = self.item(0).saturating_to();
        match available.checked_sub(base) {
            Some(left) if spec.is_enabled_in(SpecId::TANGERINE) => requested.min(left - left / 64),
            _ => requested,
        }
    }
}

fn is_cold(context: &EvmContext<'_>, address: Address) -> bool {
    let journal = &context.journaled_state.inner;
    let kept = journal.state.get(&address);
    kept.is_none_or(|kept| kept.is_cold_transaction_id(journal.transaction_id))
        && !context.journaled_state.inner.warm_addresses.is_warm(&address)
}

fn is_empty(context: &mut EvmContext<'_>, address: Address) -> bool {
    match context.journaled_state.inner.state.get(&address) {
        Some(kept) => Account::is_empty(kept),
        // If the state cannot be read, the instruction fails as well.
        None => {
            context.journaled_state.database.account(address).is_ok_and(|kept| kept.is_none_or(|kept| kept.is_empty()))
        }
    }
}
