//! Blocks for tests, with consistent headers and transactions that emit logs.

use crate::backend::{MemoryBackend, StateBackend, View};
use crate::block::{Body, ExecutedBlock, RecoveredTransaction, SealedHeader};
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::consensus::{
    Bloom, DynamicFeeTransaction, EMPTY_ROOT, Header, Log, Receipt, ReceiptOutcome, Signature, Transaction,
    TransactionBody, TransactionType,
};
use node_types::{Address, Bytes, H256, U256};
use std::sync::Arc;

/// Base fee of every block, in wei per gas.
pub(crate) const BASE_FEE: u64 = 1_000;

/// Gas used by every transaction.
pub(crate) const GAS: u64 = 21_000;

/// Gas limit of every block.
pub(crate) const GAS_LIMIT: u64 = 30_000_000;

/// Seconds between blocks.
pub(crate) const BLOCK_TIME: u64 = 12;

/// Returns a chain in memory with only a genesis block without accounts.
pub(crate) fn backend() -> Arc<MemoryBackend> {
    let header =
        Header { gas_limit: GAS_LIMIT, base_fee_per_gas: Some(BASE_FEE), state_root: EMPTY_ROOT, ..Header::default() };
    let genesis = ExecutedBlock {
        header: Arc::new(seal(header, U256::zero())),
        body: Arc::default(),
        receipts: Arc::default(),
        changes: Arc::default(),
    };
    Arc::new(MemoryBackend::new(genesis).unwrap())
}

/// Returns the address 0x…0n.
pub(crate) fn address(n: u8) -> Address {
    Address::from_low_u64_be(n.into())
}

/// Returns the word 0x…0n.
pub(crate) fn word(n: u64) -> H256 {
    H256::from_low_u64_be(n)
}

/// Returns a log of contract `address(contract)` with the topics `word(topics)`.
pub(crate) fn log(contract: u8, topics: &[u64]) -> Log {
    Log {
        address: address(contract),
        topics: topics.iter().copied().map(word).collect(),
        data: Bytes::from_static(b"data"),
    }
}

/// Returns a transaction of `address(sender)` to `address(0xff)` with a tip of `tip` wei per gas.
pub(crate) fn transaction(sender: u8, nonce: u64, tip: u64) -> RecoveredTransaction {
    let body = TransactionBody::DynamicFee(DynamicFeeTransaction {
        chain_id: 1,
        nonce,
        max_priority_fee_per_gas: tip.into(),
        max_fee_per_gas: U256::from(tip) + U256::from(10 * BASE_FEE),
        gas_limit: GAS,
        to: Some(address(0xff)),
        value: U256::one(),
        ..DynamicFeeTransaction::default()
    });
    let signature = Signature { r: U256::from(sender) + 1, s: U256::one(), y_parity: true };
    let transaction = Transaction { body, signature };
    RecoveredTransaction { hash: transaction.hash(), transaction, sender: address(sender) }
}

pub(crate) fn account(account: u8, nonce: u64, balance: u64, slots: &[(u64, u64)]) -> StateChanges {
    let change = AccountChange {
        account: Some(AccountState { nonce, balance: balance.into(), ..AccountState::default() }),
        storage_cleared: false,
        storage: slots.iter().map(|(slot, value)| (word(*slot), U256::from(*value))).collect(),
    };
    StateChanges { accounts: [(address(account), change)].into(), ..StateChanges::default() }
}

/// Returns a child of the canonical block `parent` with transactions that emit logs. Siblings differ in `branch`.
pub(crate) fn child(
    view: &dyn View,
    parent: u64,
    branch: u8,
    transactions: Vec<(RecoveredTransaction, Vec<Log>)>,
    changes: StateChanges,
) -> ExecutedBlock {
    let parent = view.header(parent.into()).unwrap().unwrap();
    let (transactions, logs): (Vec<_>, Vec<_>) = transactions.into_iter().unzip();
    let receipts: Vec<_> = logs.into_iter().zip(1..).map(|(logs, count)| receipt(logs, count * GAS)).collect();
    let header = Header {
        parent_hash: parent.hash,
        beneficiary: address(0xee),
        state_root: view.state(parent.header.number).unwrap().root_after(&changes).unwrap(),
        logs_bloom: receipts.iter().flat_map(|receipt| &receipt.logs).collect(),
        number: parent.header.number + 1,
        gas_limit: GAS_LIMIT,
        gas_used: receipts.last().map_or(0, |receipt| receipt.cumulative_gas_used),
        timestamp: parent.header.timestamp + BLOCK_TIME,
        extra_data: vec![branch].into(),
        base_fee_per_gas: Some(BASE_FEE),
        ..Header::default()
    };
    ExecutedBlock {
        header: Arc::new(seal(header, parent.total_difficulty)),
        body: Arc::new(Body { transactions, ..Body::default() }),
        receipts: Arc::new(receipts),
        changes: Arc::new(changes),
    }
}

/// Appends a block to the head.
pub(crate) fn push(
    backend: &dyn StateBackend,
    transactions: Vec<(RecoveredTransaction, Vec<Log>)>,
    changes: StateChanges,
) -> ExecutedBlock {
    let view = backend.view().unwrap();
    let block = child(&*view, view.head().number, 0, transactions, changes);
    backend.append(block.clone()).unwrap();
    block
}

/// Returns the receipt of a successful transaction.
pub(crate) fn receipt(logs: Vec<Log>, cumulative_gas_used: u64) -> Receipt {
    Receipt {
        transaction_type: TransactionType::DynamicFee,
        outcome: ReceiptOutcome::Success(true),
        cumulative_gas_used,
        logs_bloom: logs.iter().collect::<Bloom>(),
        logs,
    }
}

fn seal(header: Header, parent_difficulty: U256) -> SealedHeader {
    SealedHeader { hash: header.hash(), total_difficulty: parent_difficulty + header.difficulty, size: 600, header }
}
