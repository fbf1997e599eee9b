//! Hostile input: decoders do not panic, and input that they accept is its only encoding.

use crate::consensus::test_support::*;
use crate::consensus::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Decodes and encodes again. `None` if decoding fails.
type Recode = fn(&[u8]) -> Option<Vec<u8>>;

const DECODERS: [(&str, Recode); 9] = [
    ("header", |bytes| Some(Header::decode(bytes).ok()?.encode())),
    ("block", |bytes| Some(Block::decode(bytes).ok()?.encode())),
    ("transaction", |bytes| Some(Transaction::decode(bytes).ok()?.encode())),
    ("pooled transaction", |bytes| Some(PooledTransaction::decode(bytes).ok()?.encode())),
    ("receipt", |bytes| Some(Receipt::decode(bytes).ok()?.encode())),
    ("log", |bytes| Some(Log::decode(bytes).ok()?.encode())),
    ("withdrawal", |bytes| Some(Withdrawal::decode(bytes).ok()?.encode())),
    ("account", |bytes| Some(Account::decode(bytes).ok()?.encode())),
    ("block through the rlp crate", |bytes| Some(rlp::encode(&rlp::decode::<Block>(bytes).ok()?).into())),
];

/// Returns the encoding of any object.
fn encoded() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        header().prop_map(|header| header.encode()),
        block().prop_map(|block| block.encode()),
        transaction().prop_map(|transaction| transaction.encode()),
        receipt().prop_map(|receipt| receipt.encode()),
        log().prop_map(|log| log.encode()),
        withdrawal().prop_map(|withdrawal| withdrawal.encode()),
        account().prop_map(|account| account.encode()),
    ]
}

#[derive(Clone, Debug)]
enum Mutation {
    Set(Index, u8),
    SetEarly(usize, u8),
    Insert(Index, u8),
    Remove(Index),
    Truncate(Index),
    Append(u8),
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Append(byte) => bytes.push(*byte),
            _ if bytes.is_empty() => {}
            Self::Set(at, byte) => *at.get_mut(bytes) = *byte,
            Self::SetEarly(at, byte) => {
                let last = bytes.len() - 1;
                bytes[(*at).min(last)] = *byte;
            }
            Self::Insert(at, byte) => bytes.insert(at.index(bytes.len()), *byte),
            Self::Remove(at) => {
                bytes.remove(at.index(bytes.len()));
            }
            Self::Truncate(at) => bytes.truncate(at.index(bytes.len())),
        }
    }
}

fn mutation() -> impl Strategy<Value = Mutation> {
    // Bytes at which the meaning of an RLP header changes are frequent.
    let byte =
        || prop_oneof![any::<u8>(), prop::sample::select(&[0, 1, 0x7f, 0x80, 0x81, 0xb8, 0xbf, 0xc0, 0xf8, 0xff][..])];
    prop_oneof![
        (any::<Index>(), byte()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        // The outer header and the first field are here.
        (0usize..8, byte()).prop_map(|(at, byte)| Mutation::SetEarly(at, byte)),
        (any::<Index>(), byte()).prop_map(|(at, byte)| Mutation::Insert(at, byte)),
        any::<Index>().prop_map(Mutation::Remove),
        any::<Index>().prop_map(Mutation::Truncate),
        byte().prop_map(Mutation::Append),
    ]
}

fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    for (name, recode) in DECODERS {
        if let Some(recoded) = recode(bytes) {
            prop_assert_eq!(const_hex::encode(recoded), const_hex::encode(bytes), "{}", name);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..600)) {
        check(&bytes)?;
    }

    #[test]
    fn mutated_encodings(bytes in encoded(), mutations in vec(mutation(), 1..4)) {
        let mut bytes = bytes;
        mutations.iter().for_each(|mutation| mutation.apply(&mut bytes));
        check(&bytes)?;
    }
}

#[test]
fn rejects_every_truncation_of_a_block() {
    let block = Block { withdrawals: Some(vec![Withdrawal::default()]), ..Block::default() };
    let encoded = block.encode();
    for length in 0..encoded.len() {
        assert!(Block::decode(&encoded[..length]).is_err(), "the first {length} bytes decode");
    }
}

#[test]
fn rejects_deeply_nested_lists() {
    // Built in reverse from the inside out, so that every list ends with its parent.
    let mut reversed = vec![0xc0];
    while reversed.len() < 1_000_000 {
        let length = reversed.len();
        let prefix = if length <= 55 {
            vec![0xc0 + length as u8]
        } else {
            let bytes: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
            [vec![0xf7 + bytes.len() as u8], bytes].concat()
        };
        reversed.extend(prefix.into_iter().rev());
    }
    reversed.reverse();
    for (name, recode) in DECODERS {
        assert!(recode(&reversed).is_none(), "{name}");
    }
}
