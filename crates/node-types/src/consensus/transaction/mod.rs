//! Signed transactions of types 0 to 4.

mod authorization;
mod body;
mod envelope;
mod sidecar;
mod types;

pub use authorization::Authorization;
pub use body::TransactionBody;
pub use envelope::TransactionType;
pub use sidecar::{BlobSidecar, PooledTransaction, versioned_hash};
pub use types::{
    AccessListItem, AccessListTransaction, BlobTransaction, DynamicFeeTransaction, LegacyTransaction,
    SetCodeTransaction,
};

pub(super) use envelope::{enveloped, open_envelope};

use super::codec::{DecodeError, Fields, Item, Items, append_bytes};
use crate::{Address, Bytes, H256, U256, keccak256};
use rlp::RlpStream;

/// A recoverable ECDSA signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// The x coordinate of the ephemeral point modulo the order of the curve.
    pub r: U256,
    /// The s value of the signature. Since Homestead, it is at most half the order of the curve (EIP-2).
    pub s: U256,
    /// Whether the ephemeral point's y coordinate is odd.
    pub y_parity: bool,
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
                fields.append_fields(&mut stream);
                stream.append(chain_id).append(&0u8).append(&0u8);
            }
            _ => {
                stream.begin_list(fields.count());
                fields.append_fields(&mut stream);
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
    /// Fails if `bytes` is anything but exactly one canonical encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (transaction_type, list) = open_envelope(bytes, "transaction")?;
        Items::exactly(list, "transaction", |items| Self::decode_list(transaction_type, items))
    }

    /// Returns the signature's `v`: the y parity; for type 0 the y parity plus 27, or plus 35 and twice the chain id
    /// (EIP-155).
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

    /// Returns the type of the transaction (EIP-2718).
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
        fields.append_fields(stream);
        stream.append(&self.v()).append(&self.signature.r).append(&self.signature.s);
    }

    /// Reads the list of signed fields and signature.
    fn decode_list(transaction_type: TransactionType, items: &mut Items<'_>) -> Result<Self, DecodeError> {
        items.record("transaction", |fields| {
            let mut body = match transaction_type {
                TransactionType::Legacy => TransactionBody::Legacy(Fields::read_fields(fields)?),
                TransactionType::AccessList => TransactionBody::AccessList(Fields::read_fields(fields)?),
                TransactionType::DynamicFee => TransactionBody::DynamicFee(Fields::read_fields(fields)?),
                TransactionType::Blob => TransactionBody::Blob(Fields::read_fields(fields)?),
                TransactionType::SetCode => TransactionBody::SetCode(Fields::read_fields(fields)?),
            };
            let v = U256::read(fields, "transaction v")?;
            let y_parity = match &mut body {
                TransactionBody::Legacy(tx) => {
                    let (chain_id, y_parity) = split_v(v)?;
                    tx.chain_id = chain_id;
                    y_parity
                }
                _ if v <= U256::one() => !v.is_zero(),
                _ => return Err(DecodeError::InvalidV { v }),
            };
            let r = Item::read(fields, "transaction r")?;
            let signature = Signature { r, s: Item::read(fields, "transaction s")?, y_parity };
            Ok(Self { body, signature })
        })
    }
}

/// An item of a block body: a list for type 0, otherwise the canonical encoding as a byte string.
impl Item for Transaction {
    fn read(items: &mut Items<'_>, _name: &'static str) -> Result<Self, DecodeError> {
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

    fn append(&self, stream: &mut RlpStream) {
        match self.body {
            TransactionBody::Legacy(_) => self.append_list(stream),
            _ => append_bytes(stream, self.encoded().as_raw()),
        }
    }
}

/// Splits the `v` of a legacy transaction into chain id and y parity. 27 and 28 have no chain id; from 35 on the chain
/// id is `(v - 35) / 2` (EIP-155).
///
/// # Errors
/// [`DecodeError::InvalidV`] if it is any other number, or the chain id exceeds 64 bits.
pub fn split_v(v: U256) -> Result<(Option<u64>, bool), DecodeError> {
    let bare = U256::from(27);
    let protected = U256::from(35);
    if v < bare || v > U256::from(u64::MAX) * 2 + protected + 1 {
        return Err(DecodeError::InvalidV { v });
    }
    if v < protected {
        let parity = v - bare;
        return if parity <= U256::one() { Ok((None, !parity.is_zero())) } else { Err(DecodeError::InvalidV { v }) };
    }
    // By the bound above, at most 2^65 - 1.
    let offset = (v - protected).as_u128();
    Ok((Some((offset / 2) as u64), offset % 2 == 1))
}
