//! Comparisons of the node with the model.

use super::pool::Status;
use super::state::{Account, State};
use super::transaction::Sent;
use super::{Run, word};
use crate::oracle;
use node_core::backend::{BackendError, View};
use node_core::context::Context;
use node_core::node::TransactionStatus;
use node_core::pool::PoolStatus;
use node_types::{Address, BlockId, BlockNumber, H256, U256, keccak256};
use std::rc::Rc;

impl Run {
    /// What a step may have affected: the head, accounts, and the status of transactions.
    pub(super) fn compare(&mut self) {
        let view = self.world.view();
        let head = self.model.head_number();
        assert_eq!(view.head().number, head, "number of the head");
        assert_eq!(view.head().hash, self.model.head().header.hash, "hash of the head");
        let accounts = self.generator.accounts.iter().map(|account| account.address());
        let others = self.generator.others.iter().copied().chain([self.generator.contract]);
        for address in accounts.chain(others) {
            compare_account(&*view, address, self.model.state.get(address), head, false);
        }
        let address = self.random.pick(self.generator.accounts).address();
        let account = self.model.state.account(address);
        let next = account.nonce + self.model.pool.pending(address, &account).len() as u64;
        let (node, context) = (self.world.node(), Context::unbounded());
        let count = node.get_transaction_count(&context, address, BlockId::pending()).expect("a nonce");
        assert_eq!(count, next, "next nonce of {address:#x}");
        self.compare_pool();
        let newest = self.sent.iter().rev().take(3).cloned();
        let any: Vec<Rc<Sent>> =
            (0..3).filter(|_| !self.sent.is_empty()).map(|_| self.random.pick(&self.sent).clone()).collect();
        for sent in newest.chain(any) {
            self.compare_status(&sent);
        }
    }

    fn compare_pool(&self) {
        let content = self.world.node().pool().content();
        let (mut pending, mut queued) = (Vec::new(), Vec::new());
        for sender in self.model.pool.senders() {
            let account = self.model.state.account(sender);
            pending.extend(self.model.pool.pending(sender, &account).iter().map(|waiting| waiting.sent.hash));
            queued.extend(self.model.pool.queued(sender, &account).iter().map(|waiting| waiting.sent.hash));
        }
        let hashes = |part: std::collections::BTreeMap<_, Vec<std::sync::Arc<node_core::pool::PoolTransaction>>>| {
            part.into_values().flatten().map(|transaction| transaction.hash()).collect::<Vec<H256>>()
        };
        assert_eq!(hashes(content.pending), pending, "pending transactions");
        assert_eq!(hashes(content.queued), queued, "queued transactions");
    }

    fn compare_status(&self, sent: &Sent) {
        let expected = self.model.status(sent);
        let node = self.world.node();
        let actual = node.get_transaction_status(&Context::unbounded(), sent.hash).expect("a status");
        let dropped_before = self.model.pool.dropped_before.get(&sent.hash);
        let expected = match (expected, dropped_before) {
            (Status::Unknown, Some(reason)) if matches!(actual, TransactionStatus::Pool(PoolStatus::Dropped(_))) => {
                Status::Dropped(reason.clone())
            }
            (expected, _) => expected,
        };
        let status = match expected {
            Status::Mined => TransactionStatus::Mined,
            Status::Pending => TransactionStatus::Pool(PoolStatus::Pending),
            Status::Queued => TransactionStatus::Pool(PoolStatus::Queued),
            Status::Dropped(reason) => TransactionStatus::Pool(PoolStatus::Dropped(reason)),
            Status::Unknown => TransactionStatus::Pool(PoolStatus::Unknown),
        };
        let hash = sent.hash;
        assert_eq!(actual, status, "status of {hash:#x}");
        let position = self.world.view().transaction_position(hash).expect("readable");
        let position = position.map(|position| (position.block, position.index));
        assert_eq!(position, self.model.positions.get(&hash).copied(), "position of {hash:#x}");
    }

    /// Compares everything: all accounts at all blocks, with roots and proofs, all transactions, logs and filters.
    pub(super) fn compare_all(&mut self) {
        self.at.what = "everything is compared";
        let view = self.world.view();
        let head = self.model.head_number();
        let then = self.random.below(head + 1);
        for (number, state) in [(head, self.model.state.clone()), (then, self.model.block(then).state.clone())] {
            if number == head && then == head && self.model.edited {
                continue;
            }
            self.compare_state(&*view, number, &state);
        }
        let committed = [head, then].map(|number| self.model.block(number).clone());
        for block in committed {
            assert_eq!(block.state.root(), block.header.header.state_root, "state root of block {}", block.number());
        }
        let root = self.model.block(then).header.header.state_root;
        let state = self.model.block(then).state.clone();
        for _ in 0..3 {
            let address = self.generator.address(&mut self.random);
            let slots = [word(self.random.below(8)), word(1)];
            let proof = match view.state(then).and_then(|state| state.proof(address, &slots)) {
                Ok(proof) => proof,
                Err(BackendError::Uncommitted(edited)) => {
                    assert!(self.model.edited && edited == head && then == head, "block {edited} was not edited");
                    continue;
                }
                Err(error) => panic!("proof of {address:#x} as of {then}: {error:?}"),
            };
            oracle::check_proof(root, address, state.get(address).map(Account::whole), &proof);
        }
        for index in 0..self.sent.len().min(200) {
            let sent = self.sent[self.sent.len() - 1 - index].clone();
            self.compare_status(&sent);
        }
        let canonical: Vec<_> =
            (0..=head).rev().take(50).map(|number| view.canonical_hash(number).expect("readable")).collect();
        let expected: Vec<_> = self.model.canonical.iter().rev().take(50).map(|hash| Some(*hash)).collect();
        assert_eq!(canonical, expected, "canonical blocks");
        for id in self.model.filters.keys().cloned().collect::<Vec<_>>() {
            if self.random.chance(20) {
                self.poll_one(id);
            }
        }
    }

    /// All accounts as of a block.
    fn compare_state(&self, view: &dyn View, number: BlockNumber, state: &State) {
        for (address, account) in state.accounts() {
            compare_account(view, address, Some(account), number, true);
        }
        let others = self.generator.others.iter().chain([&self.generator.contract]).copied();
        for address in others.chain(self.generator.accounts.iter().map(|account| account.address())) {
            compare_account(view, address, state.get(address), number, true);
        }
    }
}

/// Compares an account as of a block; with `whole`, also code and storage.
fn compare_account(view: &dyn View, address: Address, expected: Option<&Account>, number: BlockNumber, whole: bool) {
    let state = view.state(number).expect("not pruned");
    let actual = state.account(address).expect("readable");
    let fields = actual.map(|account| (account.nonce, account.balance, account.code_hash));
    let expected_fields = expected.map(|account| (account.nonce, account.balance, keccak256(&account.code)));
    assert_eq!(fields, expected_fields, "nonce, balance and code of {address:#x} as of block {number}");
    let Some(expected) = expected else { return };
    let slots: Vec<H256> = if whole { (0..8).map(word).collect() } else { vec![word(0), word(1)] };
    for slot in slots {
        let value = state.storage(address, slot).expect("readable");
        let expected = expected.storage.get(&slot).copied().unwrap_or_default();
        assert_eq!(value, expected, "slot {slot:#x} of {address:#x} as of block {number}");
    }
    if whole {
        for (slot, expected) in expected.storage.iter().take(64) {
            let value: U256 = state.storage(address, *slot).expect("readable");
            assert_eq!(value, *expected, "slot {slot:#x} of {address:#x} as of block {number}");
        }
        if !expected.code.is_empty() {
            let code = state.code(keccak256(&expected.code)).expect("readable");
            assert_eq!(code.as_ref(), Some(&expected.code), "code of {address:#x}");
        }
    }
}
