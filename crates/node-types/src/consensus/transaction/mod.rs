//! Signed transactions of types 0 to 4.

mod access_list;
mod authorization;
mod blob;
mod body;
mod dynamic_fee;
mod envelope;
mod fields;
mod legacy;
mod set_code;
mod sidecar;

pub use access_list::{AccessListItem, AccessListTransaction};
pub use authorization::Authorization;
pub use blob::BlobTransaction;
pub use body::TransactionBody;
pub use dynamic_fee::DynamicFeeTransaction;
pub use legacy::LegacyTransaction;
pub use set_code::SetCodeTransaction;
pub use sidecar::{BlobSidecar, PooledTransaction, versioned_hash};

pub(super) use envelope::{enveloped, open_envelope};

use super::Signature;
use super::codec::{DecodeError, Items, append_bytes};
use crate::{Address, Bytes, H256, U256, keccak256};
use rlp::RlpStream;

/// The type byte of a transaction (EIP-2718).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TransactionType {
    /// Legacy: the format before EIP-2718, with or without replay protection (EIP-155).
    Legacy = 0,
    /// With an access list (EIP-2930).
    AccessList = 1,
    /// With a fee cap and a tip cap (EIP-1559).
    DynamicFee = 2,
    /// Carrying blobs (EIP-4844).
    Blob = 3,
    /// Setting the code of accounts (EIP-7702).
    SetCode = 4,
}

/// A signed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The signed fields.
    pub body: TransactionBody,
    /// The sender's signature.
    pub signature: Signature,
}

impl Transaction {
    /// Returns the keccak of the canonical encoding.
    pub fn hash(&self) -> H256 {
        keccak256(self.encoded().as_raw())
    }

    /// Returns the hash that the sender signed.
    pub fn signing_hash(&self) -> H256 {
        let fields = self.body.fields();
        let mut stream = enveloped(self.transaction_type());
        match &self.body {
            TransactionBody::Legacy(LegacyTransaction { chain_id: Some(chain_id), .. }) => {
                stream.begin_list(fields.count() + 3);
                fields.append(&mut stream);
                stream.append(chain_id).append(&0u8).append(&0u8);
            }
            _ => {
                stream.begin_list(fields.count());
                fields.append(&mut stream);
            }
        }
        keccak256(stream.as_raw())
    }

    /// Returns the canonical encoding (EIP-2718): a type byte and its payload, or the list of a legacy transaction.
    pub fn encode(&self) -> Vec<u8> {
        self.encoded().out().into()
    }

    /// Decodes the canonical encoding.
    ///
    /// # Errors
    ///
    /// Fails if `bytes` is anything else, or longer.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (transaction_type, list) = open_envelope(bytes, "transaction")?;
        Items::exactly(list, "transaction", |items| Self::decode_list(transaction_type, items))
    }

    /// Returns the signature's `v`: the y parity; for type 0 the y parity plus 27, or plus 35 and twice the chain id (EIP-155).
    pub fn v(&self) -> U256 {
        let parity = U256::from(u8::from(self.signature.y_parity));
        match &self.body {
            TransactionBody::Legacy(LegacyTransaction { chain_id: None, .. }) => parity + 27,
            TransactionBody::Legacy(LegacyTransaction { chain_id: Some(chain_id), .. }) => {
                U256::from(*chain_id) * 2 + 35 + parity
            }
            _ => parity,
        }
    }

    /// Returns the type.
    pub fn transaction_type(&self) -> TransactionType {
        self.body.transaction_type()
    }

    /// Returns the chain id, or `None` for a legacy transaction without replay protection.
    pub fn chain_id(&self) -> Option<u64> {
        self.body.chain_id()
    }

    /// Returns the sender's nonce.
    pub fn nonce(&self) -> u64 {
        self.body.nonce()
    }

    /// Returns the gas limit.
    pub fn gas_limit(&self) -> u64 {
        self.body.gas_limit()
    }

    /// Returns the recipient, or `None` for a contract creation.
    pub fn to(&self) -> Option<Address> {
        self.body.to()
    }

    /// Returns the transferred amount in wei.
    pub fn value(&self) -> U256 {
        self.body.value()
    }

    /// Returns the call data, or the init code of a contract creation.
    pub fn input(&self) -> &Bytes {
        self.body.input()
    }

    fn encoded(&self) -> RlpStream {
        let mut stream = enveloped(self.transaction_type());
        self.append_list(&mut stream);
        stream
    }

    /// Appends the list of signed fields and signature, without the type byte.
    fn append_list(&self, stream: &mut RlpStream) {
        let fields = self.body.fields();
        stream.begin_list(fields.count() + 3);
        fields.append(stream);
        stream.append(&self.v()).append(&self.signature.r).append(&self.signature.s);
    }

    /// Appends the transaction as an item of a block body: a list for type 0, else the canonical encoding as a byte string.
    pub(super) fn append_item(&self, stream: &mut RlpStream) {
        match self.body {
            TransactionBody::Legacy(_) => self.append_list(stream),
            _ => append_bytes(stream, self.encoded().as_raw()),
        }
    }

    /// Reads the transaction as an item of a block body.
    pub(super) fn decode_item(items: &mut Items<'_>) -> Result<Self, DecodeError> {
        if items.next_is_list() {
            return Self::decode_list(TransactionType::Legacy, items);
        }
        match open_envelope(items.bytes("transaction")?, "transaction")? {
            (TransactionType::Legacy, _) => Err(DecodeError::NotAList { field: "transaction" }),
            (transaction_type, list) => {
                Items::exactly(list, "transaction", |items| Self::decode_list(transaction_type, items))
            }
        }
    }

    /// Reads the list of signed fields and signature.
    fn decode_list(transaction_type: TransactionType, items: &mut Items<'_>) -> Result<Self, DecodeError> {
        items.record("transaction", |fields| {
            let mut body = match transaction_type {
                TransactionType::Legacy => TransactionBody::Legacy(LegacyTransaction::decode_fields(fields)?),
                TransactionType::AccessList => {
                    TransactionBody::AccessList(AccessListTransaction::decode_fields(fields)?)
                }
                TransactionType::DynamicFee => {
                    TransactionBody::DynamicFee(DynamicFeeTransaction::decode_fields(fields)?)
                }
                TransactionType::Blob => TransactionBody::Blob(BlobTransaction::decode_fields(fields)?),
                TransactionType::SetCode => TransactionBody::SetCode(SetCodeTransaction::decode_fields(fields)?),
            };
            let v = fields.u256("transaction v")?;
            let y_parity = match &mut body {
                TransactionBody::Legacy(tx) => {
                    let (chain_id, y_parity) = legacy::split_v(v)?;
                    tx.chain_id = chain_id;
                    y_parity
                }
                _ if v <= U256::one() => !v.is_zero(),
                _ => return Err(DecodeError::InvalidV { v }),
            };
            let signature = Signature { r: fields.u256("transaction r")?, s: fields.u256("transaction s")?, y_parity };
            Ok(Self { body, signature })
        })
    }
}
