//! Input that a lenient decoder would accept, and the error for each.

use crate::consensus::*;
use crate::{Address, H256, U256};
use rlp::RlpStream;

/// Returns a list of encoded items.
fn list(items: &[&[u8]]) -> Vec<u8> {
    let mut stream = RlpStream::new_list(items.len());
    items.iter().for_each(|item| {
        stream.append_raw(item, 1);
    });
    stream.out().into()
}

const ADDRESS: [u8; 21] = [0x94, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];

/// Returns a withdrawal with one of its fields replaced.
fn withdrawal(index: &[u8]) -> Vec<u8> {
    list(&[index, &[0x02], &ADDRESS, &[0x03]])
}

#[test]
fn withdrawals() {
    use DecodeError::*;
    let nine_bytes = [0x89, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut trailing = withdrawal(&[0x01]);
    trailing.push(0x80);
    let mut overrun = withdrawal(&[0x01]);
    overrun[0] -= 1;
    let index = "withdrawal index";
    let object = "withdrawal";
    let cases = [
        ("nothing", vec![], Truncated { field: object }),
        ("a byte string", vec![0x80], NotAList { field: object }),
        ("an empty list", vec![0xc0], MissingField { field: index }),
        ("too few items", list(&[&[0x01], &[0x02], &ADDRESS]), MissingField { field: "withdrawal amount" }),
        ("too many items", list(&[&[0x01], &[0x02], &ADDRESS, &[0x03], &[0x04]]), SurplusItems { object }),
        ("bytes after it", trailing.clone(), TrailingBytes { object, count: 1 }),
        ("an item that ends outside its list", overrun, MissingField { field: "withdrawal amount" }),
        ("a list for a number", withdrawal(&[0xc0]), NotBytes { field: index }),
        ("a zero byte for the number zero", withdrawal(&[0x00]), LeadingZeros { field: index }),
        ("a leading zero", withdrawal(&[0x82, 0x00, 0xff]), LeadingZeros { field: index }),
        ("a prefix before a small byte", withdrawal(&[0x81, 0x7f]), NonCanonicalLength { field: index }),
        ("a long prefix of a short string", withdrawal(&[0xb8, 0x01, 0xff]), NonCanonicalLength { field: index }),
        ("2^64", withdrawal(&nine_bytes), Overflow { field: index, bits: 64 }),
        (
            "an address of 19 bytes",
            list(&[&[0x01], &[0x02], &[&[0x93][..], &ADDRESS[2..]].concat(), &[0x03]]),
            UnexpectedLength { field: "withdrawal address", expected: 20, got: 19 },
        ),
        ("a length with a leading zero", vec![0xf9, 0x00, 0x40], NonCanonicalLength { field: object }),
        ("a length of 2^64 - 1", [vec![0xff], vec![0xff; 8]].concat(), Truncated { field: object }),
        ("a length cut off", vec![0xf9, 0x01], Truncated { field: object }),
        ("a list cut off", vec![0xc5, 0x01, 0x02], Truncated { field: object }),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(Withdrawal::decode(&bytes), Err(expected), "{name}");
    }
}

#[test]
fn rejects_items_that_extend_beyond_their_list() {
    // The address claims 20 bytes, but its list ends before them.
    let bytes = [&[0xc3, 0x01, 0x02], &ADDRESS[..]].concat();
    assert_eq!(Withdrawal::decode(&bytes), Err(DecodeError::Truncated { field: "withdrawal address" }));
}

/// Returns `type_byte` followed by a list of encoded items.
fn typed(type_byte: u8, items: &[&[u8]]) -> Vec<u8> {
    [vec![type_byte], list(items)].concat()
}

/// Returns a legacy transaction with this `v`.
fn legacy_with_v(v: U256) -> Vec<u8> {
    list(&[&[0x01], &[0x01], &[0x01], &ADDRESS, &[0x80], &[0x80], &rlp::encode(&v), &[0x01], &[0x01]])
}

#[test]
fn v_of_legacy_transactions() {
    let largest = U256::from(u64::MAX) * 2 + 36;
    let cases = [
        (U256::from(27), Some((None, false))),
        (U256::from(28), Some((None, true))),
        (U256::from(35), Some((Some(0), false))),
        (U256::from(36), Some((Some(0), true))),
        (U256::from(37), Some((Some(1), false))),
        (U256::from(38), Some((Some(1), true))),
        (largest - 1, Some((Some(u64::MAX), false))),
        (largest, Some((Some(u64::MAX), true))),
        (U256::zero(), None),
        (U256::one(), None),
        (U256::from(26), None),
        (U256::from(29), None),
        (U256::from(34), None),
        (largest + 1, None),
        (U256::MAX, None),
    ];
    for (v, expected) in cases {
        let decoded = Transaction::decode(&legacy_with_v(v));
        match expected {
            None => assert_eq!(decoded, Err(DecodeError::InvalidV { v })),
            Some((chain_id, y_parity)) => {
                let transaction = decoded.unwrap_or_else(|error| panic!("v {v}: {error}"));
                assert_eq!((transaction.chain_id(), transaction.signature.y_parity), (chain_id, y_parity), "v {v}");
                assert_eq!(transaction.v(), v);
            }
        }
    }
}

#[test]
fn transactions() {
    use DecodeError::*;
    let (one, none, empty) = (&[0x01][..], &[0x80][..], &[0xc0][..]);
    let field = "transaction";
    let cases = [
        ("nothing", vec![], Truncated { field }),
        ("type 0 with a type byte", typed(0, &[one]), UnknownTransactionType(0)),
        ("type 5", typed(5, &[one]), UnknownTransactionType(5)),
        ("type 127", typed(0x7f, &[one]), UnknownTransactionType(0x7f)),
        ("a byte string", vec![0x81, 0xff], NotAList { field }),
        ("a type byte alone", vec![0x02], Truncated { field }),
        ("no list after the type", vec![0x02, 0x80], NotAList { field }),
        ("bytes after it", [legacy_with_v(27.into()), vec![0]].concat(), TrailingBytes { object: field, count: 1 }),
        (
            "type 1 with v 2",
            typed(1, &[one, one, one, one, &ADDRESS, none, none, empty, &[0x02], one, one]),
            InvalidV { v: 2.into() },
        ),
        (
            "type 3 without receiver",
            typed(3, &[one, one, one, one, one, none]),
            ContractCreation { transaction_type: TransactionType::Blob },
        ),
        (
            "type 4 without receiver",
            typed(4, &[one, one, one, one, one, none]),
            ContractCreation { transaction_type: TransactionType::SetCode },
        ),
        (
            "a gas limit of 2^64",
            list(&[one, one, &[0x89, 1, 0, 0, 0, 0, 0, 0, 0, 0]]),
            Overflow { field: "transaction gas limit", bits: 64 },
        ),
        (
            "a gas price of 2^256",
            list(&[one, &[&[0xa1, 0x01][..], &[0; 32]].concat()]),
            Overflow { field: "transaction gas price", bits: 256 },
        ),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(Transaction::decode(&bytes), Err(expected), "{name}");
    }
}

#[test]
fn transactions_in_a_block() {
    let legacy = legacy_with_v(27.into());
    let access_list = Transaction {
        body: TransactionBody::AccessList(AccessListTransaction::default()),
        signature: Signature::default(),
    };
    let block = |transaction: &[u8]| list(&[&Header::default().encode(), &list(&[transaction]), &[0xc0]]);
    let string = |bytes: &[u8]| rlp::encode(&bytes).to_vec();
    let typed = access_list.encode();
    let field = "transaction";
    let cases = [
        ("legacy as a list", legacy.clone(), None),
        ("typed as a byte string", string(&typed), None),
        ("legacy as a byte string", string(&legacy), Some(DecodeError::NotAList { field })),
        ("an unknown type", string(&[5, 0xc0]), Some(DecodeError::UnknownTransactionType(5))),
        ("an empty byte string", string(&[]), Some(DecodeError::Truncated { field })),
        (
            "bytes after it in the byte string",
            string(&[&typed[..], &[0]].concat()),
            Some(DecodeError::TrailingBytes { object: field, count: 1 }),
        ),
    ];
    for (name, transaction, expected) in cases {
        assert_eq!(Block::decode(&block(&transaction)).err(), expected, "{name}");
    }
}

#[test]
fn blob_sidecars() {
    use DecodeError::*;
    let to = Address::repeat_byte(1);
    let body = TransactionBody::Blob(BlobTransaction { to, ..BlobTransaction::default() });
    let transaction = Transaction { body, signature: Signature::default() };
    let payload = &transaction.encode()[1..];
    let short_point = list(&[&rlp::encode(&vec![1u8; 47])]);
    let empty = &[0xc0][..];
    let cases = [
        ("version 0", typed(3, &[payload, empty, empty, empty]), None),
        ("version 1", typed(3, &[payload, &[0x01], empty, empty, empty]), None),
        ("an explicit version 0", typed(3, &[payload, &[0x80], empty, empty, empty]), Some(UnknownSidecarVersion(0))),
        ("version 2", typed(3, &[payload, &[0x02], empty, empty, empty]), Some(UnknownSidecarVersion(2))),
        ("no proofs", typed(3, &[payload, empty, empty]), Some(MissingField { field: "proofs" })),
        (
            "a fourth list",
            typed(3, &[payload, empty, empty, empty, empty]),
            Some(SurplusItems { object: "transaction with blobs" }),
        ),
        (
            "a short blob",
            typed(3, &[payload, &short_point, empty, empty]),
            Some(UnexpectedLength { field: "blob", expected: 131_072, got: 47 }),
        ),
        (
            "a short commitment",
            typed(3, &[payload, empty, &short_point, empty]),
            Some(UnexpectedLength { field: "commitment", expected: 48, got: 47 }),
        ),
        (
            "a sidecar of another type",
            typed(2, &[payload, empty, empty, empty]),
            Some(NotBytes { field: "transaction chain id" }),
        ),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(PooledTransaction::decode(&bytes).err(), expected, "{name}");
    }
}

#[test]
fn receipts() {
    let receipt = |status: &[u8]| list(&[status, &[0x01], &rlp::encode(&vec![0u8; 256]), &[0xc0]]);
    let cases = [
        ("failure", receipt(&[0x80]), None),
        ("success", receipt(&[0x01]), None),
        ("state root", receipt(&rlp::encode(&H256::zero())), None),
        ("two", receipt(&[0x02]), Some(DecodeError::InvalidStatus)),
        ("a zero byte", receipt(&[0x00]), Some(DecodeError::InvalidStatus)),
        ("31 bytes", receipt(&rlp::encode(&vec![1u8; 31])), Some(DecodeError::InvalidStatus)),
        ("an unknown type", [&[9][..], &receipt(&[0x01])].concat(), Some(DecodeError::UnknownTransactionType(9))),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(Receipt::decode(&bytes).err(), expected, "{name}");
    }
}

#[test]
fn headers_have_15_to_21_fields() {
    let full = Header {
        base_fee_per_gas: Some(1),
        withdrawals_root: Some(H256::zero()),
        blob_gas_used: Some(0),
        excess_blob_gas: Some(0),
        parent_beacon_block_root: Some(H256::zero()),
        requests_hash: Some(EMPTY_REQUESTS_HASH),
        ..Header::default()
    };
    let encoded = full.encode();
    let items: Vec<&[u8]> = rlp::Rlp::new(&encoded).iter().map(|item| item.as_raw()).collect();
    assert_eq!(items.len(), 21);
    for count in 0..=21 {
        let decoded = Header::decode(&list(&items[..count]));
        assert_eq!(decoded.is_ok(), count >= 15, "{count} fields: {decoded:?}");
    }
    let surplus = [&items[..], &[&[0x01]]].concat();
    assert_eq!(Header::decode(&list(&surplus)), Err(DecodeError::SurplusItems { object: "header" }));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "an optional header field lacks one before it")]
fn hashing_a_header_with_a_gap_panics_in_debug_builds() {
    Header { withdrawals_root: Some(H256::zero()), ..Header::default() }.hash();
}
