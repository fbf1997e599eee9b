//! Blocks with their hashes, senders and totals, so that these are computed only once.

mod bytes;
mod logs;

pub use logs::{BlockLog, BlockLogs, BlockLogsBuilder, LogRef};

use crate::state::StateChanges;
use node_types::consensus::{Block, Header, Receipt, Signature, Transaction, TransactionBody, Withdrawal};
use node_types::{Address, BlockNumber, H256, U256, keccak256};
use rlp::RlpStream;
use std::fmt;
use std::sync::Arc;

/// Number and hash of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRef {
    /// Height.
    pub number: BlockNumber,
    pub hash: H256,
}

impl fmt::Display for BlockRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:#x})", self.number, self.hash)
    }
}

/// A block by number on the canonical chain, or by hash on any branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockHashOrNumber {
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

/// A header with values derived from its block and its ancestors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedHeader {
    /// Hash of `header`.
    pub hash: H256,
    pub header: Header,
    /// Sum of the difficulties from genesis up to and including this block.
    pub total_difficulty: U256,
    /// Length of the encoded block in bytes.
    pub size: u64,
}

impl SealedHeader {
    /// Returns the number and the hash of the block.
    pub fn block_ref(&self) -> BlockRef {
        BlockRef { number: self.header.number, hash: self.hash }
    }
}

/// A transaction with its hash and its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredTransaction {
    pub transaction: Transaction,
    pub hash: H256,
    pub sender: Address,
}

impl RecoveredTransaction {
    /// Creates an unsigned transaction from `sender`. In place of a signature, r and s are the sender's address, so
    /// that transactions of different senders have different hashes. No real signature has this form.
    pub fn impersonating(sender: Address, body: TransactionBody) -> Self {
        let transaction = Transaction { body, signature: impersonation(sender) };
        Self { hash: transaction.hash(), transaction, sender }
    }

    /// Creates a transaction from `sender` whose signature is all zeros.
    pub fn unsigned(sender: Address, body: TransactionBody) -> Self {
        let transaction = Transaction { body, signature: Signature::default() };
        Self { hash: transaction.hash(), transaction, sender }
    }

    /// Returns the address of the contract that a creation deploys: the last 20 bytes of the keccak of the RLP list of
    /// sender and nonce (Yellow Paper, section 7).
    pub fn created_address(&self) -> Address {
        let mut list = RlpStream::new_list(2);
        list.append(&self.sender).append(&self.transaction.body.nonce());
        Address::from_slice(&keccak256(list.out())[12..])
    }

    /// Returns the price that the transaction pays in a block with this base fee, in wei per gas. Its fee cap must
    /// not be below the base fee.
    pub fn paid_price(&self, base_fee: Option<u64>) -> U256 {
        let body = &self.transaction.body;
        body.effective_gas_price(base_fee).unwrap_or_else(|| body.max_fee_per_gas())
    }

    /// Returns whether the transaction was created by [`impersonating`](Self::impersonating).
    pub fn is_impersonating(&self) -> bool {
        self.transaction.signature == impersonation(self.sender)
    }
}

fn impersonation(sender: Address) -> Signature {
    let number = U256::from_big_endian(sender.as_bytes());
    Signature { r: number, s: number, y_parity: false }
}

/// A block without its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// Transactions in the order of execution.
    pub transactions: Vec<RecoveredTransaction>,
    pub ommers: Vec<Header>,
    /// Withdrawals, since Shanghai.
    pub withdrawals: Option<Vec<Withdrawal>>,
}

impl Body {
    /// Returns the block with this body and `header`, in the form that is encoded in chain files.
    pub fn with_header(&self, header: &Header) -> Block {
        Block {
            header: header.clone(),
            transactions: self.transactions.iter().map(|recovered| recovered.transaction.clone()).collect(),
            ommers: self.ommers.clone(),
            withdrawals: self.withdrawals.clone(),
        }
    }
}

/// A block with the results of its execution.
#[derive(Clone, Debug)]
pub struct ExecutedBlock {
    pub header: Arc<SealedHeader>,
    /// Transactions, ommers, withdrawals.
    pub body: Arc<Body>,
    /// One receipt for each transaction.
    pub receipts: Arc<Vec<Receipt>>,
    /// Changes to the parent's state.
    pub changes: Arc<StateChanges>,
}

/// The position of a transaction on the canonical chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionPosition {
    pub block: BlockNumber,
    /// Index among the block's transactions, from 0.
    pub index: usize,
}

/// Position of a log on the canonical chain. Positions are ordered as on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    pub block: BlockNumber,
    /// Index among all logs of the block, from 0.
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
