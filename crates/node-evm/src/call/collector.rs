//! Collection of the accounts and slots that a run touches, for its access list (EIP-2930).

use crate::machine::context::EvmContext;
use revm::Inspector;
use revm::bytecode::opcode;
use revm::context::JournalTr;
use revm::context_interface::transaction::{AccessList, AccessListItem, AuthorizationTr};
use revm::interpreter::interpreter_types::{InputsTr, Jumps};
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter};
use revm::primitives::map::HashSet;
use revm::primitives::{Address, B256, TxKind, U256};
use std::collections::{BTreeMap, BTreeSet};

/// Collects the accounts and slots that a run touches.
///
/// Sender, recipient, precompiles and authorities (EIP-7702), which are always warm, are left out unless one of their
/// slots is touched. Slots of the initial list stay in the result, even if the run does not touch them.
pub(crate) struct Collector {
    warm: HashSet<Address>,
    touched: BTreeMap<Address, BTreeSet<B256>>,
}

impl Collector {
    /// Starts from `list`.
    pub(crate) fn new(list: &AccessList) -> Self {
        let mut touched = BTreeMap::<Address, BTreeSet<B256>>::new();
        for item in list.iter() {
            touched.entry(item.address).or_default().extend(&item.storage_keys);
        }
        Self { warm: HashSet::default(), touched }
    }

    /// Returns what was touched, in ascending order.
    pub(crate) fn into_list(self) -> AccessList {
        let item = |(address, slots): (Address, BTreeSet<B256>)| AccessListItem {
            address,
            storage_keys: slots.into_iter().collect(),
        };
        AccessList(self.touched.into_iter().map(item).collect())
    }

    fn touch(&mut self, address: Address) {
        if !self.warm.contains(&address) {
            self.touched.entry(address).or_default();
        }
    }

    /// Records which accounts are warm when the outermost frame starts, before the sender's nonce increases.
    fn start(&mut self, context: &EvmContext<'_>) {
        let journal = &context.journaled_state;
        if journal.depth() > 0 {
            return;
        }
        let sender = context.tx.caller;
        let recipient = match context.tx.kind {
            TxKind::Call(to) => to,
            TxKind::Create => {
                let nonce = journal.inner.state.get(&sender).map_or(0, |account| account.info.nonce);
                sender.create(nonce)
            }
        };
        let chain_id = U256::from(context.cfg.chain_id);
        let delegations = context.tx.authorization_list.iter().filter(|delegation| {
            (delegation.chain_id().is_zero() || delegation.chain_id() == chain_id) && delegation.nonce() != u64::MAX
        });
        let authorities = delegations.filter_map(AuthorizationTr::authority);
        let precompiles = journal.precompile_addresses().iter().copied();
        self.warm = [sender, recipient].into_iter().chain(precompiles).chain(authorities).collect();
        // Slots stay: a call may touch them only without this list, and the search for the list would not end.
        self.touched.retain(|address, slots| !slots.is_empty() || !self.warm.contains(address));
    }
}

impl<'a> Inspector<EvmContext<'a>> for Collector {
    fn step(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext<'a>) {
        let word = |depth| interpreter.stack.peek(depth).ok().map(|word| B256::from(word.to_be_bytes()));
        let touched = match interpreter.bytecode.opcode() {
            opcode::SLOAD | opcode::SSTORE => {
                if let Some(slot) = word(0) {
                    self.touched.entry(interpreter.input.target_address()).or_default().insert(slot);
                }
                None
            }
            opcode::BALANCE
            | opcode::EXTCODECOPY
            | opcode::EXTCODEHASH
            | opcode::EXTCODESIZE
            | opcode::SELFDESTRUCT => word(0),
            opcode::CALL | opcode::CALLCODE | opcode::DELEGATECALL | opcode::STATICCALL => word(1),
            _ => None,
        };
        if let Some(word) = touched {
            self.touch(Address::from_word(word));
        }
    }

    fn call(&mut self, context: &mut EvmContext<'a>, _: &mut CallInputs) -> Option<CallOutcome> {
        self.start(context);
        None
    }

    fn create(&mut self, context: &mut EvmContext<'a>, _: &mut CreateInputs) -> Option<CreateOutcome> {
        self.start(context);
        None
    }
}
