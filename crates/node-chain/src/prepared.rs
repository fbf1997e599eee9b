//! The part of validation that needs only the block, and can therefore run on any thread.

use crate::validation::BlockError;
use node_core::block::{BlockRef, Body, RecoveredTransaction, SealedHeader};
use node_core::crypto::{SenderRecovery, SignatureError};
use node_core::executor::TransactionError;
use node_core::trie::ordered_root;
use node_types::consensus::DecodeError;
use node_types::consensus::{Block, Header, Transaction, Withdrawal};
use node_types::{Address, H256, U256, keccak256, keccak256_all};

/// A decoded block with its hashes, roots and senders.
#[derive(Clone, Debug)]
pub struct PreparedBlock {
    pub header: Header,
    pub hash: H256,
    /// Length of the encoded block in bytes.
    pub size: u64,
    pub transactions: Vec<SignedTransaction>,
    /// Root of the trie of `transactions`.
    pub transactions_root: H256,
    pub ommers: Vec<Header>,
    /// Keccak of the RLP of `ommers`.
    pub ommers_hash: H256,
    /// The withdrawals; `None` before Shanghai.
    pub withdrawals: Option<Vec<Withdrawal>>,
    /// Root of the trie of `withdrawals`.
    pub withdrawals_root: Option<H256>,
}

/// A transaction with its hash and its sender.
#[derive(Clone, Debug)]
pub struct SignedTransaction {
    pub transaction: Transaction,
    pub hash: H256,
    /// The sender, or why the signature is invalid.
    pub sender: Result<Address, SignatureError>,
}

impl PreparedBlock {
    /// Decodes and prepares a block.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if `bytes` are not exactly one RLP-encoded block.
    pub fn decode(bytes: &[u8], senders: &dyn SenderRecovery) -> Result<Self, DecodeError> {
        let block = Block::decode(bytes)?;
        Ok(Self::of(block, bytes.len() as u64, senders))
    }

    /// Prepares a decoded block: computes the hashes and roots of its parts, and recovers the senders of its
    /// transactions.
    pub fn new(block: Block, senders: &dyn SenderRecovery) -> Self {
        let size = rlp::encode(&block).len() as u64;
        Self::of(block, size, senders)
    }

    fn of(block: Block, size: u64, senders: &dyn SenderRecovery) -> Self {
        let encoded: Vec<Vec<u8>> = block.transactions.iter().map(Transaction::encode).collect();
        let hashes = keccak256_all(&encoded);
        let signed = block.transactions.into_iter().zip(hashes).map(|(transaction, hash)| SignedTransaction {
            hash,
            sender: senders.sender(&transaction),
            transaction,
        });
        let withdrawals_root = block.withdrawals.as_ref().map(|withdrawals| {
            let encoded: Vec<_> = withdrawals.iter().map(rlp::encode).collect();
            ordered_root(&encoded)
        });
        Self {
            hash: block.header.hash(),
            size,
            transactions: signed.collect(),
            transactions_root: ordered_root(&encoded),
            ommers_hash: keccak256(rlp::encode_list(&block.ommers)),
            header: block.header,
            ommers: block.ommers,
            withdrawals: block.withdrawals,
            withdrawals_root,
        }
    }

    /// Returns the number and the hash of the block.
    pub fn block_ref(&self) -> BlockRef {
        BlockRef { number: self.header.number, hash: self.hash }
    }

    /// Converts to the header and the body that the backend stores. Fails if a sender could not be recovered.
    pub(crate) fn seal(self, parent_total_difficulty: U256) -> Result<(SealedHeader, Body), BlockError> {
        let mut transactions = Vec::with_capacity(self.transactions.len());
        for (index, signed) in self.transactions.into_iter().enumerate() {
            let SignedTransaction { transaction, hash, sender } = signed;
            let refused = |source| BlockError::Transaction { index, source: TransactionError::Signature(source) };
            transactions.push(RecoveredTransaction { transaction, hash, sender: sender.map_err(refused)? });
        }
        let header = SealedHeader {
            hash: self.hash,
            total_difficulty: parent_total_difficulty.saturating_add(self.header.difficulty),
            header: self.header,
            size: self.size,
        };
        Ok((header, Body { transactions, ommers: self.ommers, withdrawals: self.withdrawals }))
    }
}
