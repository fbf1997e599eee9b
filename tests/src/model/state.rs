//! Accounts as the model sees them, and the effects of transactions.

use super::code::{self, Behaviour};
use super::transaction::Sent;
use crate::oracle::{self, WholeAccount};
use node_types::consensus::{Header, Log, TransactionBody};
use node_types::{Address, Bytes, H160, H256, U256, keccak256};
use rpds::RedBlackTreeMap;

/// Stores beacon block roots (EIP-4788), in two rings of `RING` slots.
const BEACON_ROOTS: Address = H160([
    0x00, 0x0f, 0x3d, 0xf6, 0xd7, 0x32, 0x80, 0x7e, 0xf1, 0x31, 0x9f, 0xb7, 0xb8, 0xbb, 0x85, 0x22, 0xd0, 0xbe, 0xac,
    0x02,
]);
/// Stores block hashes (EIP-2935), in a ring of `RING` slots.
const BLOCK_HASHES: Address = H160([
    0x00, 0x00, 0xf9, 0x08, 0x27, 0xf1, 0xc5, 0x3a, 0x10, 0xcb, 0x7a, 0x02, 0x33, 0x5b, 0x17, 0x53, 0x20, 0x00, 0x29,
    0x35,
]);
const RING: u64 = 8_191;

/// Gas of one blob (EIP-4844).
pub(super) const GAS_PER_BLOB: u64 = 131_072;

/// With less gas left than this after the intrinsic gas, SSTORE fails (EIP-2200).
const LEAST_GAS: u64 = 2_000;

/// An account. Empty accounts do not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    /// Nonce.
    pub(super) nonce: u64,
    /// Balance in wei.
    pub(super) balance: U256,
    /// Code.
    pub(super) code: Bytes,
    /// Non-zero slots.
    pub(super) storage: RedBlackTreeMap<H256, U256>,
}

impl Account {
    /// Whether it counts as non-existent (EIP-161).
    pub(super) fn is_empty(&self) -> bool {
        self.nonce == 0 && self.balance.is_zero() && self.code.is_empty()
    }

    /// Sets a slot.
    pub(super) fn set_slot(&mut self, slot: H256, value: U256) {
        if value.is_zero() {
            self.storage.remove_mut(&slot);
        } else {
            self.storage.insert_mut(slot, value);
        }
    }

    /// The account in the oracle's format.
    pub(super) fn whole(&self) -> WholeAccount {
        WholeAccount {
            nonce: self.nonce,
            balance: self.balance,
            code: self.code.clone(),
            storage: self.storage.iter().map(|(slot, value)| (*slot, *value)).collect(),
        }
    }
}

/// All accounts. Clones share data.
#[derive(Clone, Debug, Default)]
pub(super) struct State(RedBlackTreeMap<Address, Account>);

/// The result of a transaction.
pub(super) struct Outcome {
    /// Whether its outermost call succeeded.
    pub(super) success: bool,
    /// Its logs.
    pub(super) logs: Vec<Log>,
    /// The gas used, if the model knows it.
    pub(super) gas: Option<u64>,
}

impl State {
    /// Returns an account, empty if it does not exist.
    pub(super) fn account(&self, address: Address) -> Account {
        self.0.get(&address).cloned().unwrap_or_default()
    }

    /// Returns an account, or `None` if it does not exist.
    pub(super) fn get(&self, address: Address) -> Option<&Account> {
        self.0.get(&address)
    }

    /// All accounts.
    pub(super) fn accounts(&self) -> impl Iterator<Item = (Address, &Account)> {
        self.0.iter().map(|(address, account)| (*address, account))
    }

    /// Changes an account, and removes it if it is empty afterwards.
    pub(super) fn change(&mut self, address: Address, change: impl FnOnce(&mut Account)) {
        let mut account = self.account(address);
        change(&mut account);
        if account.is_empty() {
            self.0.remove_mut(&address);
        } else {
            self.0.insert_mut(address, account);
        }
    }

    /// The state root, computed by the oracle.
    pub(super) fn root(&self) -> H256 {
        oracle::state_root(self.accounts().map(|(address, account)| (address, account.whole())))
    }

    /// The system calls before the first transaction of a block.
    pub(super) fn begin_block(&mut self, header: &Header) {
        let word = |number: u64| H256(U256::from(number).to_big_endian());
        self.change(BEACON_ROOTS, |account| {
            account.set_slot(word(header.timestamp % RING), header.timestamp.into());
        });
        self.change(BLOCK_HASHES, |account| {
            account.set_slot(word((header.number - 1) % RING), U256::from_big_endian(header.parent_hash.as_bytes()));
        });
    }

    fn behaviour(&self, address: Address) -> Behaviour {
        code::behaviour(&self.account(address).code)
    }

    /// Executes a valid transaction that uses `gas_used` gas.
    pub(super) fn run(&mut self, sent: &Sent, header: &Header, blob_base_fee: u128, gas_used: u64) -> Outcome {
        let body = &sent.transaction.body;
        let base_fee = header.base_fee_per_gas.expect("since London");
        let tip = body.effective_tip(Some(base_fee)).expect("it pays the base fee");
        let blob_gas = GAS_PER_BLOB * body.blob_versioned_hashes().len() as u64;
        let fee = (tip + base_fee) * gas_used + U256::from(blob_gas) * U256::from(blob_base_fee);
        let nonce = body.nonce();
        self.change(sent.sender, |account| {
            account.nonce = nonce + 1;
            account.balance -= fee;
        });
        self.delegate(sent);
        let outcome = match body.to() {
            Some(to) => self.call(sent, to),
            None => self.create(sent, nonce),
        };
        self.change(header.beneficiary, |account| account.balance += tip * gas_used);
        outcome
    }

    /// Sets the delegations of a transaction of type 4 (EIP-7702).
    fn delegate(&mut self, sent: &Sent) {
        let TransactionBody::SetCode(body) = &sent.transaction.body else { return };
        for (authorization, authority) in body.authorization_list.iter().zip(&sent.signers) {
            let account = self.account(*authority);
            let chain_fits = authorization.chain_id.is_zero() || authorization.chain_id == body.chain_id.into();
            let has_own_code = !matches!(code::behaviour(&account.code), Behaviour::Nothing | Behaviour::Delegate(_));
            if chain_fits && !has_own_code && account.nonce == authorization.nonce {
                self.change(*authority, |account| {
                    account.nonce += 1;
                    account.code = code::delegation(authorization.address);
                });
            }
        }
    }

    fn transfer(&mut self, from: Address, to: Address, value: U256) {
        self.change(from, |account| account.balance -= value);
        self.change(to, |account| account.balance += value);
    }

    fn call(&mut self, sent: &Sent, to: Address) -> Outcome {
        let body = &sent.transaction.body;
        let scarce = is_scarce(sent);
        let behaviour = match self.behaviour(to) {
            // Delegations are not followed more than once: code of a delegated account that delegates itself fails.
            Behaviour::Delegate(to) => match self.behaviour(to) {
                Behaviour::Delegate(_) => Behaviour::Fail,
                behaviour => behaviour,
            },
            behaviour => behaviour,
        };
        let (slot, value, fail) = code::arguments(body.input());
        match behaviour {
            Behaviour::Nothing => {
                self.transfer(sent.sender, to, body.value());
                let gas = sent.intrinsic_gas().max(sent.floor_gas());
                Outcome { success: true, logs: Vec::new(), gas: body.authorization_list().is_empty().then_some(gas) }
            }
            Behaviour::Store if !scarce && !fail => {
                self.transfer(sent.sender, to, body.value());
                self.change(to, |account| account.set_slot(slot, value));
                let word = H256(value.to_big_endian());
                let log = Log { address: to, topics: vec![code::EVENT, slot, word], data: word.as_bytes().into() };
                Outcome { success: true, logs: vec![log], gas: None }
            }
            Behaviour::Store if scarce && !fail => {
                let gas = body.authorization_list().is_empty().then_some(body.gas_limit());
                Outcome { success: false, logs: Vec::new(), gas }
            }
            _ => Outcome { success: false, logs: Vec::new(), gas: None },
        }
    }

    fn create(&mut self, sent: &Sent, nonce: u64) -> Outcome {
        let body = &sent.transaction.body;
        let created = created(sent.sender, nonce);
        // The address may be in use, because nonces can be lowered (EIP-684, EIP-7610).
        let there = self.account(created);
        let is_taken = there.nonce > 0 || !there.code.is_empty() || !there.storage.is_empty();
        let success = *body.input() == code::creation() && !is_scarce(sent) && !is_taken;
        if success {
            self.transfer(sent.sender, created, body.value());
            self.change(created, |account| {
                account.nonce = 1;
                account.code = code::STORE[..].into();
                account.set_slot(H256::zero(), U256::one());
            });
        }
        Outcome { success, logs: Vec::new(), gas: None }
    }
}

fn is_scarce(sent: &Sent) -> bool {
    sent.body().gas_limit() - sent.intrinsic_gas() < LEAST_GAS
}

/// The address of the contract that `sender` creates (Yellow Paper, section 7).
pub(super) fn created(sender: Address, nonce: u64) -> Address {
    let mut stream = rlp::RlpStream::new_list(2);
    stream.append(&sender).append(&nonce);
    Address::from_slice(&keccak256(stream.out())[12..])
}
