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

/// Returns the write that stores `transaction`.
pub(super) fn put(transaction: &PoolTransaction) -> RecordWrite {
    let record = Record { key: transaction.hash().as_bytes().to_vec(), value: encode(transaction) };
    RecordWrite::Put(RecordKind::PoolTransaction, record)
}

pub(super) fn delete(hash: H256) -> RecordWrite {
    RecordWrite::Delete(RecordKind::PoolTransaction, hash.as_bytes().to_vec())
}

/// Returns the size in bytes that counts towards the pool's limits, given the length of the transaction's encoding.
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

/// Decodes the transaction in a record.
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::hex;
    use node_types::Address;

    fn golden(key: &[u8], value: &[u8]) -> PoolTransaction {
        let record = Record { key: key.to_vec(), value: value.to_vec() };
        let transaction = decode(&record).unwrap();
        assert_eq!(put(&transaction), RecordWrite::Put(RecordKind::PoolTransaction, record));
        transaction
    }

    // Part of the layout on the disk: see docs/storage.md.
    #[test]
    fn keeps_the_encoding_of_a_transaction() {
        let key = hex!("33469b22e9f636356c4160a87eb19df52b7412e8eac32a4a55ffe88ea8350788");
        let value = hex!(
            "f8b80186019200000000949d9d9d9d9d9d9d9d9d9d9d9d9d9d9d9d9d9d9d9db86ef86c098504a817c8008252089435353535353535353535"
            "35353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067"
            "cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83ea94aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa94bbbb"
            "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
        );
        let transaction = golden(&key, &value);
        assert_eq!((transaction.arrival, transaction.received), (1, 0x0192_0000_0000));
        assert_eq!((transaction.hash(), transaction.sender()), (H256(key), Address::repeat_byte(0x9d)));
        assert_eq!(transaction.authorities, [0xaa, 0xbb].map(Address::repeat_byte));
        assert_eq!((transaction.body().nonce(), transaction.sidecar), (9, None));
    }

    #[test]
    fn keeps_the_encoding_of_blob_transactions() {
        let key = hex!("bdf2b93331ec095c66ea8d79621a631d6723fa00a9d173fd35b02b937d2c0555");
        let start = hex!(
            "f87a0203949d9d9d9d9d9d9d9d9d9d9d9d9d9d9d9d9d9d9d9db84603f84301020304059435353535353535353535353535353535353535350680"
            "c007e1a00111111111111111111111111111111111111111111111111111111111111111800809c0"
        );
        let [blobs, commitments] = ["blob", "commitment"].map(|text| vec![Bytes::from(text.as_bytes())]);
        let v0 = hex!("80c584626c6f62cb8a636f6d6d69746d656e74c68570726f6f66");
        let proofs = vec![Bytes::from(&b"proof"[..])];
        let sidecar = BlobSidecar::V0 { blobs: blobs.clone(), commitments: commitments.clone(), proofs };
        assert_eq!(golden(&key, &[&start[..], &v0].concat()).sidecar, Some(sidecar));
        let v1 = hex!("01c584626c6f62cb8a636f6d6d69746d656e74c6827031827032");
        let cell_proofs = ["p1", "p2"].map(|text| Bytes::from(text.as_bytes())).to_vec();
        let sidecar = BlobSidecar::V1 { blobs, commitments, cell_proofs };
        assert_eq!(golden(&key, &[&start[..], &v1].concat()).sidecar, Some(sidecar));
    }
}
