//! Receipts and logs.

use super::codec::{DecodeError, Item, Items, append_bytes, record};
use super::transaction::{enveloped, open_envelope};
use super::{Bloom, TransactionType};
use crate::{Address, Bytes, H256};
use rlp::RlpStream;

record! {
    /// An event emitted by a contract.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Log {
        /// The contract that emitted it.
        pub address: Address = "log address";
        /// Up to four indexed words.
        pub topics: Vec<H256> = "log topics";
        pub data: Bytes = "log data";
    }
}

/// The outcome of a transaction, as recorded in its receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptOutcome {
    /// Before Byzantium: the state root after the transaction.
    StateRoot(H256),
    /// Since Byzantium (EIP-658): whether the outermost call succeeded.
    Success(bool),
}

/// The receipt of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub transaction_type: TransactionType,
    pub outcome: ReceiptOutcome,
    /// Gas used by this transaction and those before it in the block.
    pub cumulative_gas_used: u64,
    /// Bloom filter of `logs`.
    pub logs_bloom: Bloom,
    /// Logs in the order in which they were emitted.
    pub logs: Vec<Log>,
}

impl Receipt {
    /// Returns the encoding used in the receipts trie (EIP-2718): a type byte, except for type 0, and a list.
    pub fn encode(&self) -> Vec<u8> {
        let mut stream = enveloped(self.transaction_type);
        self.append_list(&mut stream);
        stream.out().into()
    }

    /// Decodes the encoding that [`Self::encode`] returns.
    ///
    /// # Errors
    /// Fails if `bytes` is anything but exactly one canonical encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (transaction_type, list) = open_envelope(bytes, "receipt")?;
        Items::exactly(list, "receipt", |items| Self::decode_list(transaction_type, items))
    }

    fn append_list(&self, stream: &mut RlpStream) {
        stream.begin_list(4);
        match &self.outcome {
            ReceiptOutcome::StateRoot(root) => append_bytes(stream, root.as_bytes()),
            ReceiptOutcome::Success(success) => {
                stream.append(success);
            }
        }
        self.cumulative_gas_used.append(stream);
        self.logs_bloom.append(stream);
        self.logs.append(stream);
    }

    fn decode_list(transaction_type: TransactionType, items: &mut Items<'_>) -> Result<Self, DecodeError> {
        items.record("receipt", |fields| {
            Ok(Self {
                transaction_type,
                outcome: ReceiptOutcome::from_bytes(fields.bytes("receipt status")?)?,
                cumulative_gas_used: Item::read(fields, "receipt cumulative gas used")?,
                logs_bloom: Item::read(fields, "receipt logs bloom")?,
                logs: Item::read(fields, "receipt logs")?,
            })
        })
    }
}

impl ReceiptOutcome {
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        match bytes {
            [] => Ok(Self::Success(false)),
            [1] => Ok(Self::Success(true)),
            root => root.try_into().map(|root| Self::StateRoot(H256(root))).map_err(|_| DecodeError::InvalidStatus),
        }
    }
}
