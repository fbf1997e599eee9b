//! The network form of blob transactions, which includes the blobs.

use super::{Transaction, TransactionType, enveloped, open_envelope};
use crate::consensus::codec::{DecodeError, Item, Items};
use crate::{Bytes, H256};
use hmac_sha256::Hash as Sha256;
use rlp::RlpStream;

/// First byte of the versioned hash of a KZG commitment.
const KZG_VERSION: u8 = 0x01;

/// Bytes of a blob: 4,096 field elements of 32 bytes.
const BLOB_LEN: usize = 131_072;

/// Bytes of a commitment or proof: a compressed point of the curve.
const POINT_LEN: usize = 48;

/// The blobs of a transaction with their commitments and proofs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobSidecar {
    /// Before Osaka: one proof per blob (EIP-4844).
    V0 {
        /// 131,072 bytes each.
        blobs: Vec<Bytes>,
        /// 48 bytes each.
        commitments: Vec<Bytes>,
        /// 48 bytes each, one per blob.
        proofs: Vec<Bytes>,
    },
    /// Since Osaka: 128 cell proofs per blob (EIP-7594).
    V1 {
        /// 131,072 bytes each.
        blobs: Vec<Bytes>,
        /// 48 bytes each.
        commitments: Vec<Bytes>,
        /// 48 bytes each, 128 per blob.
        cell_proofs: Vec<Bytes>,
    },
}

/// The network form of a transaction: a blob transaction includes its sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PooledTransaction {
    pub transaction: Transaction,
    /// The blobs. `None` for other types, and for a blob transaction that was decoded from the encoding used in block
    /// bodies.
    pub sidecar: Option<BlobSidecar>,
}

/// Returns the versioned hash of a blob's commitment: SHA-256 with the first byte replaced by 1 (EIP-4844).
pub fn versioned_hash(commitment: &[u8]) -> H256 {
    let mut hash = Sha256::hash(commitment);
    hash[0] = KZG_VERSION;
    H256(hash)
}

impl BlobSidecar {
    /// Returns the blobs, in the order of the transaction's versioned hashes.
    pub fn blobs(&self) -> &[Bytes] {
        match self {
            Self::V0 { blobs, .. } | Self::V1 { blobs, .. } => blobs,
        }
    }

    /// Returns the commitments, in the order of the blobs.
    pub fn commitments(&self) -> &[Bytes] {
        match self {
            Self::V0 { commitments, .. } | Self::V1 { commitments, .. } => commitments,
        }
    }

    /// Returns the proofs of version 0, or the cell proofs of version 1.
    pub fn proofs(&self) -> &[Bytes] {
        match self {
            Self::V0 { proofs, .. } | Self::V1 { cell_proofs: proofs, .. } => proofs,
        }
    }

    /// Appends the items that follow the transaction.
    fn append_fields(&self, stream: &mut RlpStream) {
        if matches!(self, Self::V1 { .. }) {
            stream.append(&1u8);
        }
        for strings in [self.blobs(), self.commitments(), self.proofs()] {
            stream.begin_list(strings.len());
            strings.iter().for_each(|bytes| bytes.append(stream));
        }
    }

    /// Returns the number of items that [`Self::append_fields`] appends.
    fn field_count(&self) -> usize {
        match self {
            Self::V0 { .. } => 3,
            Self::V1 { .. } => 4,
        }
    }

    /// Reads the items that follow the transaction. Checks the length of each, but not how many blobs, commitments and
    /// proofs there are.
    fn decode_fields(items: &mut Items<'_>) -> Result<Self, DecodeError> {
        // Version 0 has no version byte, not even a zero.
        let versioned = !items.next_is_list();
        if versioned {
            match u8::read(items, "sidecar version")? {
                1 => {}
                version => return Err(DecodeError::UnknownSidecarVersion(version)),
            }
        }
        let blobs = fixed_list::<BLOB_LEN>(items, "blobs", "blob")?;
        let commitments = fixed_list::<POINT_LEN>(items, "commitments", "commitment")?;
        let proofs = fixed_list::<POINT_LEN>(items, "proofs", "proof")?;
        Ok(if versioned {
            Self::V1 { blobs, commitments, cell_proofs: proofs }
        } else {
            Self::V0 { blobs, commitments, proofs }
        })
    }
}

/// Reads a list of byte strings of `LEN` bytes each.
fn fixed_list<const LEN: usize>(
    items: &mut Items<'_>,
    list: &'static str,
    item: &'static str,
) -> Result<Vec<Bytes>, DecodeError> {
    items.vec(list, |items| {
        let bytes = items.bytes(item)?;
        if bytes.len() != LEN {
            return Err(DecodeError::UnexpectedLength { field: item, expected: LEN, got: bytes.len() });
        }
        Ok(bytes.into())
    })
}

impl From<Transaction> for PooledTransaction {
    fn from(transaction: Transaction) -> Self {
        Self { transaction, sidecar: None }
    }
}

impl PooledTransaction {
    /// Returns the network encoding. With a sidecar, this is `0x03` and a list of transaction, version (only if it is
    /// 1), blobs, commitments and proofs; without one, it is the canonical encoding.
    pub fn encode(&self) -> Vec<u8> {
        let Some(sidecar) = &self.sidecar else { return self.transaction.encode() };
        let mut stream = enveloped(TransactionType::Blob);
        stream.begin_list(1 + sidecar.field_count());
        self.transaction.append_list(&mut stream);
        sidecar.append_fields(&mut stream);
        stream.out().into()
    }

    /// Decodes the network encoding. Also accepts the canonical encoding of a blob transaction, which has no sidecar.
    ///
    /// # Errors
    /// Fails if `bytes` is anything but exactly one such encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (transaction_type, list) = open_envelope(bytes, "transaction")?;
        if transaction_type != TransactionType::Blob || !holds_sidecar(list) {
            return Transaction::decode(bytes).map(|transaction| Self { transaction, sidecar: None });
        }
        Items::exactly(list, "transaction", |items| {
            items.record("transaction with blobs", |fields| {
                let transaction = Transaction::decode_list(transaction_type, fields)?;
                let sidecar = BlobSidecar::decode_fields(fields)?;
                Ok(Self { transaction, sidecar: Some(sidecar) })
            })
        })
    }
}

/// Returns whether the payload of a blob transaction is a list that begins with a list. The canonical payload begins
/// with a number.
fn holds_sidecar(payload: &[u8]) -> bool {
    rlp::PayloadInfo::from(payload).is_ok_and(|info| payload.get(info.header_len).is_some_and(|prefix| *prefix >= 0xc0))
}
