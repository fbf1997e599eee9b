//! Transactions of the pool as durable records.
//!
//! The key is the transaction's hash; the value the RLP list of arrival, time received, sender, transaction,
//! authorities, and, for a blob transaction, the version of its sidecar, blobs, commitments and proofs.

use super::PoolTransaction;
use crate::backend::{Record, RecordKind, RecordWrite};
use crate::block::RecoveredTransaction;
use node_types::consensus::{BlobSidecar, Transaction};
use node_types::{Bytes, H256};
use rlp::{DecoderError, Rlp, RlpStream};

/// Keeps `transaction`.
pub(super) fn put(transaction: &PoolTransaction) -> RecordWrite {
    let record = Record { key: transaction.hash().as_bytes().to_vec(), value: encode(transaction) };
    RecordWrite::Put(RecordKind::PoolTransaction, record)
}

/// Gives up the transaction with this hash.
pub(super) fn delete(hash: H256) -> RecordWrite {
    RecordWrite::Delete(RecordKind::PoolTransaction, hash.as_bytes().to_vec())
}

/// Bytes that a transaction takes, given the length of its encoding.
pub(super) fn size(encoded_length: usize, sidecar: Option<&BlobSidecar>) -> usize {
    let blobs =
        sidecar.map_or(0, |sidecar| lists(sidecar).1.iter().flat_map(|list| list.iter()).map(|item| item.len()).sum());
    encoded_length + blobs
}

fn encode(transaction: &PoolTransaction) -> Vec<u8> {
    let mut stream = RlpStream::new_list(if transaction.sidecar.is_some() { 9 } else { 5 });
    stream.append(&transaction.arrival);
    stream.append(&transaction.received);
    stream.append(&transaction.sender());
    stream.append(&transaction.recovered.transaction.encode());
    stream.append_list(&transaction.authorities);
    if let Some(sidecar) = &transaction.sidecar {
        let (version, lists) = lists(sidecar);
        stream.append(&version);
        for list in lists {
            stream.begin_list(list.len());
            list.iter().for_each(|item| {
                stream.append(&item.as_ref());
            });
        }
    }
    stream.out().to_vec()
}

/// The transaction that a record holds.
pub(super) fn decode(record: &Record) -> Result<PoolTransaction, DecoderError> {
    let rlp = Rlp::new(&record.value);
    let encoded: Vec<u8> = rlp.val_at(3)?;
    let transaction = Transaction::decode(&encoded)?;
    let sidecar = match rlp.item_count()? {
        5 => None,
        9 => Some(decode_sidecar(&rlp)?),
        _ => return Err(DecoderError::RlpIncorrectListLen),
    };
    let recovered = RecoveredTransaction { hash: transaction.hash(), sender: rlp.val_at(2)?, transaction };
    if recovered.hash.as_bytes() != record.key {
        return Err(DecoderError::Custom("the key is not the hash of the transaction"));
    }
    Ok(PoolTransaction {
        size: size(encoded.len(), sidecar.as_ref()),
        recovered,
        sidecar,
        authorities: rlp.list_at(4)?,
        arrival: rlp.val_at(0)?,
        received: rlp.val_at(1)?,
    })
}

fn decode_sidecar(rlp: &Rlp<'_>) -> Result<BlobSidecar, DecoderError> {
    let list = |index| -> Result<Vec<Bytes>, DecoderError> {
        rlp.at(index)?.iter().map(|item| item.data().map(Bytes::from)).collect()
    };
    let (blobs, commitments, proofs) = (list(6)?, list(7)?, list(8)?);
    match rlp.val_at(5)? {
        0u8 => Ok(BlobSidecar::V0 { blobs, commitments, proofs }),
        1 => Ok(BlobSidecar::V1 { blobs, commitments, cell_proofs: proofs }),
        _ => Err(DecoderError::Custom("unknown version of the sidecar")),
    }
}

fn lists(sidecar: &BlobSidecar) -> (u8, [&[Bytes]; 3]) {
    match sidecar {
        BlobSidecar::V0 { blobs, commitments, proofs } => (0, [blobs, commitments, proofs]),
        BlobSidecar::V1 { blobs, commitments, cell_proofs } => (1, [blobs, commitments, cell_proofs]),
    }
}
