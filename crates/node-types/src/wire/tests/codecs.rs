//! The texts that each encoding accepts and writes.

use super::strategies::u256;
use crate::wire::{AddressData, AddressFilter, BytesData, HashData, NonceData, Quantity, StorageKey, TextError, Word};
use crate::{Address, BlockId, BlockNumberOrTag, Bytes, H256, U256};
use proptest::prelude::*;
use std::fmt::{Debug, Display};
use std::str::FromStr;

#[track_caller]
fn reads<T: FromStr<Err = TextError> + PartialEq + Debug>(cases: &[(&str, T)]) {
    for (text, expected) in cases {
        assert_eq!(text.parse::<T>().as_ref(), Ok(expected), "{text:?}");
    }
}

#[track_caller]
fn refuses<T: FromStr<Err = TextError> + Debug>(texts: &[&str], expected: TextError) {
    for text in texts {
        assert_eq!(text.parse::<T>().err(), Some(expected), "{text:?}");
    }
}

fn json<T: serde::Serialize>(value: T) -> String {
    serde_json::to_string(&value).unwrap()
}

#[test]
fn reads_and_writes_quantities() {
    let max = "18446744073709551615";
    reads::<Quantity<u64>>(&[
        ("0", Quantity(0)),
        ("10", Quantity(10)),
        ("0x10", Quantity(16)),
        ("0x0", Quantity(0)),
        ("0xfF", Quantity(255)),
        ("00000000000000000000000000000007", Quantity(7)),
        ("0x00000000000000000000000000000007", Quantity(7)),
        (max, Quantity(u64::MAX)),
        ("0xffffffffffffffff", Quantity(u64::MAX)),
    ]);
    let malformed = ["", "0x", "0X1", "-1", "+1", " 1", "1 ", "1.0", "1e3", "1_000", "0xg", "0x-1", "ff", "١", "0x0x1"];
    refuses::<Quantity<u64>>(&malformed, TextError::Number);
    refuses::<Quantity<U256>>(&malformed, TextError::Number);
    let (long, long_hex) = ("9".repeat(300), format!("0x{}", "f".repeat(300)));
    let too_large = ["18446744073709551616", "0x10000000000000000", &long, &long_hex];
    refuses::<Quantity<u64>>(&too_large, TextError::Overflow { bits: 64 });

    let max = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    reads(&[(max, Quantity(U256::MAX)), (&format!("0x{}", "f".repeat(64)), Quantity(U256::MAX))]);
    let above = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
    let above_hex = format!("0x1{}", "0".repeat(64));
    refuses::<Quantity<U256>>(&[above, &above_hex, &long, &long_hex], TextError::Overflow { bits: 256 });
    assert_eq!(json(Quantity(U256::MAX)), format!("\"{max}\""));
    assert_eq!(json(Quantity(U256::exp10(38))), format!("\"1{}\"", "0".repeat(38)));
    assert_eq!(json(Quantity(0_u64)), "\"0\"");
}

#[test]
fn reads_and_writes_byte_strings() {
    let bytes = |bytes: &[u8]| BytesData::from(Bytes::from(bytes));
    reads(&[("0x", bytes(&[])), ("0x00", bytes(&[0])), ("0xaBCd", bytes(&[0xab, 0xcd]))]);
    refuses::<BytesData>(&["", "00", "0x0", "0xgg", "0X00", "0x0x00", " 0x00", "0x00 ", "0xéé"], TextError::Data);

    let address = AddressData::from(Address::repeat_byte(0xab));
    reads(&[(&format!("0x{}", "ab".repeat(20)), address), (&format!("0x{}", "AB".repeat(20)), address)]);
    let (short, long) = (format!("0x{}", "a".repeat(39)), format!("0x{}", "a".repeat(41)));
    refuses::<AddressData>(&["", "0x", &short, &long, &"a".repeat(40)], TextError::FixedData { digits: 40 });
    assert_eq!(json(address), format!("\"0x{}\"", "ab".repeat(20)));

    reads(&[(&format!("0x{}", "01".repeat(32)), HashData::from(H256::repeat_byte(1)))]);
    refuses::<HashData>(&["0x01", "1", &format!("0x0x{}", "0".repeat(62))], TextError::FixedData { digits: 64 });
    assert_eq!(json(NonceData::from([0, 0, 0, 0, 0, 0, 0, 0x42])), "\"0x0000000000000042\"");
    assert_eq!(json(Word(U256::one())), format!("\"0x{}1\"", "0".repeat(63)));
}

#[test]
fn reads_and_writes_block_ids() {
    let named = [
        ("earliest", BlockNumberOrTag::Earliest),
        ("latest", BlockNumberOrTag::Latest),
        ("pending", BlockNumberOrTag::Pending),
        ("safe", BlockNumberOrTag::Safe),
        ("finalized", BlockNumberOrTag::Finalized),
    ];
    reads(&named);
    reads(&named.map(|(text, tag)| (text, BlockId::from(tag))));
    reads(&[
        ("27", BlockNumberOrTag::Number(27)),
        ("0x1b", BlockNumberOrTag::Number(27)),
        ("0027", BlockNumberOrTag::Number(27)),
    ]);
    let hash = format!("0x{}", "2a".repeat(32));
    reads(&[
        (&hash[..], BlockId::Hash(H256::repeat_byte(0x2a))),
        ("0x1b", BlockId::number(27)),
        (&format!("0x0{}", "0".repeat(64)), BlockId::number(0)),
    ]);
    let malformed = ["", "Latest", "latest ", "-1", "1.5", "0xzz", "genesis"];
    refuses::<BlockNumberOrTag>(&malformed, TextError::BlockNumberOrTag);
    refuses::<BlockId>(&malformed, TextError::BlockId);
    refuses::<BlockNumberOrTag>(&[&hash, &hash.replace("2a", "00")], TextError::BlockHash);
    refuses::<BlockNumberOrTag>(&["18446744073709551616", "0x10000000000000000"], TextError::Overflow { bits: 64 });
}

#[test]
fn reads_storage_keys() {
    let key = |number: u64| StorageKey(H256::from_low_u64_be(number));
    let max = StorageKey(H256::repeat_byte(0xff));
    reads(&[("10", key(10)), ("0x10", key(16)), ("0x0", key(0)), (&format!("0x{}", "f".repeat(64)), max)]);
    refuses::<StorageKey>(&["", "0x", "0xasdf", "ff", &format!("0x{}", "0".repeat(65))], TextError::StorageKey);
    refuses::<StorageKey>(&[&"9".repeat(78)], TextError::Overflow { bits: 256 });
    assert_eq!(json(key(10)), format!("\"0x{}a\"", "0".repeat(63)));
}

#[test]
fn reads_address_filters() {
    let (a, b) = (Address::repeat_byte(0xaa), Address::repeat_byte(0xbb));
    let (text_a, text_b) = (format!("0x{}", "aa".repeat(20)), format!("0x{}", "bb".repeat(20)));
    reads(&[
        ("", AddressFilter(vec![])),
        (&text_a, AddressFilter(vec![a])),
        (&format!("{text_a},{text_b}"), AddressFilter(vec![a, b])),
        (&format!("{text_a}, {text_b}"), AddressFilter(vec![a, b])),
    ]);
    refuses::<AddressFilter>(&[",", &format!("{text_a},")], TextError::FixedData { digits: 40 });
}

fn round_trip<T>(value: T)
where
    T: FromStr<Err = TextError> + Display + PartialEq + Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    assert_eq!(value.to_string().parse::<T>().as_ref(), Ok(&value));
    assert_eq!(serde_json::from_str::<T>(&json(&value)).unwrap(), value);
}

proptest! {
    #[test]
    fn values_survive(number: u64, large in u256(), hash: [u8; 32], bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        round_trip(Quantity(number));
        round_trip(Quantity(large));
        round_trip(HashData::from(H256(hash)));
        round_trip(BytesData::from(Bytes::from(bytes)));
        round_trip(BlockNumberOrTag::Number(number));
        round_trip(BlockId::number(number));
        round_trip(BlockId::Hash(H256(hash)));
        // The slower formatting of the library is the oracle.
        prop_assert_eq!(Quantity(large).to_string(), large.to_string());
        prop_assert_eq!(HashData::from(H256(hash)).to_string(), format!("{:#x}", H256(hash)));
        prop_assert_eq!(format!("{large:#x}").parse(), Ok(Quantity(large)));
        let slot = StorageKey(H256(hash));
        prop_assert_eq!(serde_json::from_str::<StorageKey>(&json(slot)).unwrap(), slot);
        prop_assert_eq!(serde_json::from_str::<Word>(&json(Word(large))).unwrap(), Word(large));
    }

    #[test]
    fn never_panics_on_any_text(text in ".{0,80}") {
        let _ = text.parse::<Quantity<u64>>();
        let _ = text.parse::<Quantity<U256>>();
        let _ = text.parse::<BytesData>();
        let _ = text.parse::<AddressData>();
        let _ = text.parse::<BlockId>();
        let _ = text.parse::<StorageKey>();
        let _ = text.parse::<AddressFilter>();
    }
}
