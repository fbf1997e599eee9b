//! Whole blocks.

use super::codec::{DecodeError, Items};
use super::{Header, Transaction, Withdrawal};
use crate::H256;
use rlp::{Encodable, RlpStream};

/// A block: a header, and a body of transactions, ommers and withdrawals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The header.
    pub header: Header,
    /// Transactions in the order of execution.
    pub transactions: Vec<Transaction>,
    /// Headers of ommers. Empty since the merge.
    pub ommers: Vec<Header>,
    /// Withdrawals. `None` before Shanghai (EIP-4895).
    pub withdrawals: Option<Vec<Withdrawal>>,
}

impl Block {
    /// Returns the hash of the header.
    pub fn hash(&self) -> H256 {
        self.header.hash()
    }

    /// Returns the RLP encoding.
    pub fn encode(&self) -> Vec<u8> {
        self.rlp_bytes().into()
    }

    /// Decodes the RLP encoding.
    ///
    /// # Errors
    ///
    /// Fails if `bytes` is not exactly one canonical encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Items::exactly(bytes, "block", Self::decode_item)
    }

    /// Returns the length of the encoding in bytes. Encodes the block to find it.
    pub fn encoded_len(&self) -> usize {
        self.rlp_bytes().len()
    }

    fn decode_item(items: &mut Items<'_>) -> Result<Self, DecodeError> {
        items.record("block", |fields| {
            Ok(Self {
                header: Header::decode_item(fields)?,
                transactions: fields.vec("block transactions", Transaction::decode_item)?,
                ommers: fields.vec("block ommers", Header::decode_item)?,
                withdrawals: fields
                    .optional("block withdrawals", |items, field| items.vec(field, Withdrawal::decode_item))?,
            })
        })
    }
}

impl Encodable for Block {
    fn rlp_append(&self, stream: &mut RlpStream) {
        stream.begin_list(3 + usize::from(self.withdrawals.is_some()));
        stream.append(&self.header);
        stream.begin_list(self.transactions.len());
        self.transactions.iter().for_each(|transaction| transaction.append_item(stream));
        stream.append_list(&self.ommers);
        if let Some(withdrawals) = &self.withdrawals {
            stream.append_list(withdrawals);
        }
    }
}
