//! Blocks as the node keeps them: with hashes, senders and totals computed once.

use crate::state::StateChanges;
use node_types::consensus::{Header, Log, Receipt, Signature, Transaction, TransactionBody, Withdrawal};
use node_types::{Address, BlockNumber, H256, U256, keccak256};
use rlp::RlpStream;
use std::fmt;
use std::sync::Arc;

/// Number and hash of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRef {
    /// Height.
    pub number: BlockNumber,
    /// Hash of the header.
    pub hash: H256,
}

impl fmt::Display for BlockRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:#x})", self.number, self.hash)
    }
}

/// A block by height on the canonical chain, or by hash on any branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockHashOrNumber {
    /// The canonical block of this height.
    Number(BlockNumber),
    /// The block with this hash, canonical or not.
    Hash(H256),
}

impl From<BlockNumber> for BlockHashOrNumber {
    fn from(number: BlockNumber) -> Self {
        Self::Number(number)
    }
}

impl From<H256> for BlockHashOrNumber {
    fn from(hash: H256) -> Self {
        Self::Hash(hash)
    }
}

/// A header with what is computed from its block and its ancestors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedHeader {
    /// Hash of `header`.
    pub hash: H256,
    /// The header.
    pub header: Header,
    /// Sum of the difficulties from genesis up to and including this block.
    pub total_difficulty: U256,
    /// Length of the encoded block in bytes.
    pub size: u64,
}

impl SealedHeader {
    /// Number and hash.
    pub fn block_ref(&self) -> BlockRef {
        BlockRef { number: self.header.number, hash: self.hash }
    }
}

/// A transaction with its hash and its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredTransaction {
    /// The signed transaction.
    pub transaction: Transaction,
    /// Its hash.
    pub hash: H256,
    /// Who signed it.
    pub sender: Address,
}

impl RecoveredTransaction {
    /// A transaction of `sender` that nobody signed: in place of a signature it carries the sender's address, as r and as
    /// s. No key signs so, and each sender's transactions have hashes of their own.
    pub fn impersonating(sender: Address, body: TransactionBody) -> Self {
        let transaction = Transaction { body, signature: impersonation(sender) };
        Self { hash: transaction.hash(), transaction, sender }
    }

    /// A transaction of `sender` without a signature: all of it is zero.
    pub fn unsigned(sender: Address, body: TransactionBody) -> Self {
        let transaction = Transaction { body, signature: Signature::default() };
        Self { hash: transaction.hash(), transaction, sender }
    }

    /// The address of the contract that it creates if it names no receiver: the last 20 bytes of the keccak of the RLP list
    /// of the sender and the nonce (Yellow Paper, section 7).
    pub fn created_address(&self) -> Address {
        let mut list = RlpStream::new_list(2);
        list.append(&self.sender).append(&self.transaction.body.nonce());
        Address::from_slice(&keccak256(list.out())[12..])
    }

    /// What it pays in wei per gas in a block with this base fee. A block holds none whose fee cap is below its base fee.
    pub fn paid_price(&self, base_fee: Option<u64>) -> U256 {
        let body = &self.transaction.body;
        body.effective_gas_price(base_fee.unwrap_or(0)).unwrap_or_else(|| body.max_fee_per_gas())
    }

    /// Whether nobody signed it.
    pub fn is_impersonating(&self) -> bool {
        self.transaction.signature == impersonation(self.sender)
    }
}

fn impersonation(sender: Address) -> Signature {
    let number = U256::from_big_endian(sender.as_bytes());
    Signature { r: number, s: number, y_parity: false }
}

/// What a block holds beside its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// Transactions in the order of execution.
    pub transactions: Vec<RecoveredTransaction>,
    /// Headers of ommers.
    pub ommers: Vec<Header>,
    /// Withdrawals, since Shanghai.
    pub withdrawals: Option<Vec<Withdrawal>>,
}

/// A block with everything that its execution gave.
#[derive(Clone, Debug)]
pub struct ExecutedBlock {
    /// The header.
    pub header: Arc<SealedHeader>,
    /// Transactions, ommers, withdrawals.
    pub body: Arc<Body>,
    /// A receipt for each transaction.
    pub receipts: Arc<Vec<Receipt>>,
    /// What the block changed in its parent's state.
    pub changes: Arc<StateChanges>,
}

/// Where a transaction was mined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionPosition {
    /// The canonical block.
    pub block: BlockNumber,
    /// Position among the block's transactions.
    pub index: usize,
}

/// The logs of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLogs {
    /// Hash of the block.
    pub hash: H256,
    /// The logs in their order.
    pub logs: Vec<BlockLog>,
}

/// A log with the transaction that emitted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLog {
    /// Position of the transaction in the block.
    pub transaction_index: usize,
    /// Hash of the transaction.
    pub transaction_hash: H256,
    /// The log.
    pub log: Log,
}

impl BlockLogs {
    /// The logs of the block `hash`.
    pub fn of(hash: H256, body: &Body, receipts: &[Receipt]) -> Self {
        let transactions = body.transactions.iter().map(|transaction| transaction.hash);
        Self::new(hash, transactions, receipts.iter().map(|receipt| receipt.logs.clone()))
    }

    /// The logs of the block `hash`, from the hash of each transaction and the logs in its receipt.
    pub fn new(
        hash: H256,
        transactions: impl IntoIterator<Item = H256>,
        logs: impl IntoIterator<Item = Vec<Log>>,
    ) -> Self {
        let of_transaction = |(transaction_index, (transaction_hash, logs)): (usize, (H256, Vec<Log>))| {
            logs.into_iter().map(move |log| BlockLog { transaction_index, transaction_hash, log })
        };
        Self { hash, logs: transactions.into_iter().zip(logs).enumerate().flat_map(of_transaction).collect() }
    }
}

/// Position of a log on the canonical chain. The order is that of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// The block that holds it.
    pub block: BlockNumber,
    /// Position among all logs of the block.
    pub log_index: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::consensus::LegacyTransaction;

    #[test]
    fn addresses_of_created_contracts() {
        let sender: Address = "6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0".parse().unwrap();
        let cases = [
            (0, "cd234a471b72ba2f1ccf0a70fcaba648a5eecd8d"),
            (1, "343c43a37d37dff08ae8c4a11544c718abb4fcf8"),
            (2, "f778b86fa74e846c4f0a1fbd1335fe81c00a0c91"),
            (3, "fffd933a0bc612844eaf0c6fe3e5b8e9b6c1d19c"),
        ];
        for (nonce, expected) in cases {
            let body = TransactionBody::Legacy(LegacyTransaction { nonce, ..LegacyTransaction::default() });
            let transaction = RecoveredTransaction::impersonating(sender, body);
            assert_eq!(transaction.created_address(), expected.parse().unwrap(), "nonce {nonce}");
        }
    }
}
