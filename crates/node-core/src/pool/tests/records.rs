//! Transactions as durable records.

use super::*;
use crate::backend::{Record, RecordWrite};
use crate::pool::{PoolTransaction, record};
use node_types::consensus::{
    AccessListItem, AccessListTransaction, Authorization, LegacyTransaction, SetCodeTransaction, Transaction,
};
use node_types::{Address, U256};
use proptest::collection::vec;
use proptest::prelude::*;

/// Transactions of all types with all optional parts.
fn body() -> impl Strategy<Value = TransactionBody> {
    let numbers = (any::<u64>(), any::<u64>(), any::<[u8; 20]>(), vec(any::<u8>(), 0..70));
    (0u8..5, any::<bool>(), numbers).prop_map(|(kind, flag, (nonce, number, address, input))| {
        let (value, address) = (U256::from(number), Address::from(address));
        let input = Bytes::from(input);
        let access_list = vec![AccessListItem { address, storage_keys: vec![H256::from_low_u64_be(number)] }];
        match kind {
            0 => TransactionBody::Legacy(LegacyTransaction {
                chain_id: flag.then_some(number >> 2),
                nonce,
                value,
                to: flag.then_some(address),
                input,
                ..Default::default()
            }),
            1 => TransactionBody::AccessList(AccessListTransaction {
                nonce,
                value,
                input,
                access_list,
                ..Default::default()
            }),
            2 => TransactionBody::DynamicFee(DynamicFeeTransaction {
                nonce,
                value,
                input,
                access_list,
                ..Default::default()
            }),
            3 => TransactionBody::Blob(BlobTransaction {
                input,
                max_fee_per_blob_gas: value,
                ..blob_body(nonce, u8::from(flag) + 1)
            }),
            _ => TransactionBody::SetCode(SetCodeTransaction {
                nonce,
                value,
                authorization_list: vec![Authorization { nonce: number, address, ..Default::default() }],
                ..Default::default()
            }),
        }
    })
}

/// Sidecars of both versions with lists of any length, including empty ones.
fn any_sidecar() -> impl Strategy<Value = BlobSidecar> {
    let items = || vec(vec(any::<u8>(), 0..60).prop_map(Bytes::from), 0..4);
    (any::<bool>(), items(), items(), items()).prop_map(|(first, blobs, commitments, proofs)| {
        if first {
            BlobSidecar::V0 { blobs, commitments, proofs }
        } else {
            BlobSidecar::V1 { blobs, commitments, cell_proofs: proofs }
        }
    })
}

fn any_transaction() -> impl Strategy<Value = PoolTransaction> {
    let signature = (any::<[u8; 32]>(), any::<[u8; 32]>(), any::<bool>());
    let others = (any::<[u8; 20]>(), vec(any::<[u8; 20]>(), 0..3), any::<u64>(), any::<u64>());
    (body(), proptest::option::of(any_sidecar()), signature, others).prop_map(
        |(body, sidecar, (r, s, y_parity), others)| {
            let (r, s) = (U256::from_big_endian(&r), U256::from_big_endian(&s));
            let transaction = Transaction { body, signature: node_types::consensus::Signature { r, s, y_parity } };
            let (sender, authorities, arrival, received) = others;
            PoolTransaction {
                size: record::size(transaction.encode().len(), sidecar.as_ref()),
                recovered: RecoveredTransaction { hash: transaction.hash(), sender: sender.into(), transaction },
                sidecar,
                authorities: authorities.into_iter().map(Address::from).collect(),
                arrival,
                received,
            }
        },
    )
}

fn recorded(transaction: &PoolTransaction) -> Record {
    match record::put(transaction) {
        RecordWrite::Put(_, record) => record,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn records_round_trip(transaction in any_transaction()) {
        prop_assert_eq!(record::decode(&recorded(&transaction)), Ok(transaction));
    }

    #[test]
    fn damaged_records_do_not_panic(
        transaction in any_transaction(),
        position in any::<usize>(),
        bit in 0u8..8,
        cut in any::<usize>(),
    ) {
        let whole = recorded(&transaction);
        let mut flipped = whole.clone();
        let position = position % flipped.value.len();
        flipped.value[position] ^= 1 << bit;
        // The arrival may differ, but never the transaction under this key.
        if let Ok(read) = record::decode(&flipped) {
            prop_assert_eq!(read.hash(), transaction.hash());
        }
        let mut short = whole.clone();
        short.value.truncate(cut % whole.value.len());
        prop_assert!(record::decode(&short).is_err(), "cut off");
        let other_key = Record { key: vec![7; 32], ..whole };
        prop_assert!(record::decode(&other_key).is_err(), "under another key");
    }

    #[test]
    fn any_bytes_never_panic(key: Vec<u8>, value: Vec<u8>) {
        let record = Record { key, value };
        prop_assert!(record::decode(&record).is_err());
    }
}
