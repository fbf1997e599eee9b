//! Generated chains with a model of their states.

use crate::block::{Body, ExecutedBlock, RecoveredTransaction, SealedHeader};
use crate::state::{AccountState, StateChanges};
use crate::trie::{Trie, ordered_root};
use node_types::consensus::{
    Account, Block, DynamicFeeTransaction, EMPTY_OMMERS_HASH, Header, Log, Receipt, ReceiptOutcome, Signature,
    Transaction, TransactionBody, TransactionType,
};
use node_types::{Address, BlockNumber, H256, U256, keccak256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A chain from genesis on, with the model's state as of each block. Roots, blooms and gas are valid, but nothing was
/// executed and the signatures are invalid.
#[derive(Clone)]
pub struct TestChain {
    blocks: Vec<ExecutedBlock>,
    states: Vec<ModelState>,
}

/// All existing accounts with their storage, by address.
pub type ModelState = BTreeMap<Address, ModelAccount>;

/// An account with its storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelAccount {
    pub account: AccountState,
    /// The nonzero slots.
    pub storage: BTreeMap<H256, U256>,
}

/// The contents of a block that a test chooses.
#[derive(Clone, Debug, Default)]
pub struct Content {
    pub changes: StateChanges,
    pub transactions: Vec<TestTransaction>,
    /// Base fee in wei per gas.
    pub base_fee: Option<u64>,
    /// Distinguishes blocks that are otherwise equal.
    pub salt: u64,
}

/// The parts of a transaction that a test chooses.
#[derive(Clone, Debug, Default)]
pub struct TestTransaction {
    /// Tip cap in wei per gas.
    pub tip_cap: u64,
    /// Fee cap in wei per gas.
    pub fee_cap: u64,
    pub gas_used: u64,
    pub logs: Vec<Log>,
}

impl TestChain {
    /// Creates a chain with only a genesis block.
    pub fn new(content: Content) -> Self {
        let mut chain = Self { blocks: Vec::new(), states: Vec::new() };
        chain.push(content);
        chain
    }

    /// Adds a block, and returns it.
    pub fn push(&mut self, content: Content) -> ExecutedBlock {
        let mut state = self.states.last().cloned().unwrap_or_default();
        change(&mut state, &content.changes);
        let block = block(self.blocks.last(), root(&state), content);
        self.blocks.push(block.clone());
        self.states.push(state);
        block
    }

    /// Returns the chain up to and including block `number`.
    pub fn up_to(&self, number: BlockNumber) -> Self {
        let count = number as usize + 1;
        Self { blocks: self.blocks[..count].to_vec(), states: self.states[..count].to_vec() }
    }

    /// Returns all blocks from genesis on.
    pub fn blocks(&self) -> &[ExecutedBlock] {
        &self.blocks
    }

    /// Returns the blocks above `number`.
    pub fn above(&self, number: BlockNumber) -> Vec<ExecutedBlock> {
        self.blocks[number as usize + 1..].to_vec()
    }

    /// Returns the newest block.
    pub fn head(&self) -> &ExecutedBlock {
        self.blocks.last().unwrap()
    }

    /// Returns the state as of block `number`.
    pub fn state(&self, number: BlockNumber) -> &ModelState {
        &self.states[number as usize]
    }
}

fn change(state: &mut ModelState, changes: &StateChanges) {
    for (address, change) in &changes.accounts {
        let Some(account) = change.account else {
            state.remove(address);
            continue;
        };
        let model = state.entry(*address).or_default();
        model.account = account;
        if change.storage_cleared {
            model.storage.clear();
        }
        model.storage.extend(&change.storage);
        model.storage.retain(|_, value| !value.is_zero());
    }
}

fn root(state: &ModelState) -> H256 {
    let leaf = |(address, model): (&Address, &ModelAccount)| {
        (keccak256(address), rlp::encode(&model.with_storage_root()).to_vec())
    };
    state.iter().map(leaf).collect::<Trie>().root()
}

impl ModelAccount {
    /// Returns the account in the form that the state trie stores.
    pub fn with_storage_root(&self) -> Account {
        let slots = self.storage.iter().map(|(slot, value)| (keccak256(slot), rlp::encode(value).to_vec()));
        Account {
            nonce: self.account.nonce,
            balance: self.account.balance,
            storage_root: slots.collect::<Trie>().root(),
            code_hash: self.account.code_hash,
        }
    }
}

fn block(parent: Option<&ExecutedBlock>, state_root: H256, content: Content) -> ExecutedBlock {
    let number = parent.map_or(0, |parent| parent.header.header.number + 1);
    let mut gas_used = 0;
    let mut receipts = Vec::new();
    let mut transactions = Vec::new();
    for (index, chosen) in content.transactions.iter().enumerate() {
        gas_used += chosen.gas_used;
        receipts.push(Receipt {
            transaction_type: TransactionType::DynamicFee,
            outcome: ReceiptOutcome::Success(true),
            cumulative_gas_used: gas_used,
            logs_bloom: chosen.logs.iter().collect(),
            logs: chosen.logs.clone(),
        });
        transactions.push(transaction(chosen, (number << 32) + (content.salt << 16) + index as u64));
    }
    let header = Header {
        parent_hash: parent.map(|parent| parent.header.hash).unwrap_or_default(),
        ommers_hash: EMPTY_OMMERS_HASH,
        state_root,
        transactions_root: ordered_root(&encoded(&transactions, |recovered| recovered.transaction.encode())),
        receipts_root: ordered_root(&encoded(&receipts, Receipt::encode)),
        logs_bloom: receipts.iter().map(|receipt| &receipt.logs_bloom).collect(),
        number,
        gas_limit: 30_000_000,
        gas_used,
        timestamp: 12 * number,
        extra_data: content.salt.to_be_bytes().to_vec().into(),
        base_fee_per_gas: content.base_fee,
        ..Header::default()
    };
    let block = Block {
        header,
        transactions: transactions.iter().map(|recovered| recovered.transaction.clone()).collect(),
        ..Block::default()
    };
    let sealed = SealedHeader {
        hash: block.hash(),
        size: block.encoded_len() as u64,
        header: block.header,
        total_difficulty: U256::zero(),
    };
    ExecutedBlock {
        header: Arc::new(sealed),
        body: Arc::new(Body { transactions, ..Body::default() }),
        receipts: Arc::new(receipts),
        changes: Arc::new(content.changes),
    }
}

fn encoded<T>(items: &[T], encode: impl Fn(&T) -> Vec<u8>) -> Vec<Vec<u8>> {
    items.iter().map(encode).collect()
}

/// The sender of all transactions.
pub const SENDER: Address = Address::repeat_byte(0x5e);

/// Returns a transaction. Transactions with different nonces have different hashes.
fn transaction(chosen: &TestTransaction, nonce: u64) -> RecoveredTransaction {
    let body = TransactionBody::DynamicFee(DynamicFeeTransaction {
        chain_id: 1,
        nonce,
        max_priority_fee_per_gas: chosen.tip_cap.into(),
        max_fee_per_gas: chosen.fee_cap.into(),
        gas_limit: chosen.gas_used,
        ..DynamicFeeTransaction::default()
    });
    let signature = Signature { r: U256::one(), s: U256::one(), y_parity: false };
    let transaction = Transaction { body, signature };
    RecoveredTransaction { hash: transaction.hash(), transaction, sender: SENDER }
}
