//! Reproducible random chains.

use super::chain::{Content, ModelState, TestChain, TestTransaction};
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::consensus::Log;
use node_types::{Address, BlockNumber, Bytes, H256, KECCAK_EMPTY, U256, keccak256};

/// A pseudo-random number generator (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }

    /// Returns true with probability `1 / times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns one of a few addresses.
    pub fn address(&mut self) -> Address {
        Self::addresses()[self.below(7) as usize]
    }

    /// Returns all addresses of random chains, and one that no block touches.
    pub fn addresses() -> [Address; 8] {
        [0, 1, 2, 3, 4, 5, 6, 7].map(|index| Address::from_low_u64_be(0xadd0 + index))
    }

    /// Returns one of a few slots.
    pub fn slot(&mut self) -> H256 {
        Self::slots()[self.below(5) as usize]
    }

    /// Returns all slots of random chains, and one that no block touches.
    pub fn slots() -> [H256; 6] {
        [0, 1, 2, 3, 4, 5].map(H256::from_low_u64_be)
    }

    /// Returns one of a few topics.
    pub fn topic(&mut self) -> H256 {
        H256::repeat_byte(0x70 + self.below(4) as u8)
    }

    /// Returns a chain of `length` blocks after genesis.
    pub fn chain(&mut self, length: u64) -> TestChain {
        let genesis = self.content(&ModelState::new());
        let mut chain = TestChain::new(genesis);
        self.extend(&mut chain, length);
        chain
    }

    /// Adds `length` blocks with random content to `chain`.
    pub fn extend(&mut self, chain: &mut TestChain, length: u64) {
        for _ in 0..length {
            let content = self.content(chain.state(chain.head().header.header.number));
            chain.push(content);
        }
    }

    /// Returns a branch that replaces up to `depth - 1` blocks of `chain` by a few others, with its last common block.
    pub fn branch(&mut self, chain: &TestChain, depth: u64) -> (BlockNumber, TestChain) {
        let ancestor = chain.head().header.header.number.saturating_sub(self.below(depth));
        let mut branch = chain.up_to(ancestor);
        let length = 1 + self.below(4);
        self.extend(&mut branch, length);
        (ancestor, branch)
    }

    /// Returns a block that changes parts of `state`.
    pub fn content(&mut self, state: &ModelState) -> Content {
        let mut changes = StateChanges::default();
        for _ in 0..self.below(4) {
            let address = self.address();
            let change = self.change(state, address, &mut changes);
            changes.accounts.insert(address, change);
        }
        let base_fee = if self.once_in(4) { None } else { Some(self.below(20)) };
        let transactions = (0..self.below(4)).map(|_| self.transaction(base_fee.unwrap_or(0))).collect();
        Content { changes, transactions, base_fee, salt: self.below(1 << 16) }
    }

    fn change(&mut self, state: &ModelState, address: Address, changes: &mut StateChanges) -> AccountChange {
        if self.once_in(5) {
            return AccountChange { account: None, storage_cleared: self.once_in(2), ..AccountChange::default() };
        }
        let old = state.get(&address).map(|model| model.account).unwrap_or_default();
        let mut account = AccountState { nonce: old.nonce + 1, balance: self.below(1 << 40).into(), ..old };
        if self.once_in(6) {
            // Before EIP-161 an account can exist although it is empty.
            account = AccountState::default();
        } else if self.once_in(3) {
            let code = Bytes::from(vec![self.below(256) as u8; 3]);
            account.code_hash = keccak256(&code);
            changes.code.insert(account.code_hash, code);
        } else if self.once_in(5) {
            account.code_hash = KECCAK_EMPTY;
        }
        let storage = (0..self.below(5)).map(|_| (self.slot(), self.word())).collect();
        AccountChange { account: Some(account), storage_cleared: self.once_in(5), storage }
    }

    fn word(&mut self) -> U256 {
        match self.below(3) {
            0 => U256::zero(),
            1 => self.below(256).into(),
            _ => U256::MAX - self.below(256),
        }
    }

    fn transaction(&mut self, base_fee: u64) -> TestTransaction {
        TestTransaction {
            tip_cap: self.below(10),
            fee_cap: base_fee + self.below(20),
            gas_used: 21_000 + self.below(1000),
            logs: (0..self.below(3)).map(|_| self.log()).collect(),
        }
    }

    fn log(&mut self) -> Log {
        let topics = (0..self.below(5)).map(|_| self.topic()).collect();
        Log { address: self.address(), topics, data: Bytes::from_static(b"data") }
    }
}
