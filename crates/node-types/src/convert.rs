//! Conversions to and from the wrapper types of the HTTP interface, byte strings and text.

use crate::consensus::{BlockNonce, Bloom};
use crate::wire::{AddressFilter, Data, Quantity, StorageKey, TextError, TopicFilter, Word};
use crate::{Address, Bytes, H256, U256};
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// Implements `From` in the direction that a blanket implementation cannot cover.
macro_rules! unwrap {
    ($($encoding:ty => $value:ty),+ $(,)?) => {$(
        impl From<$encoding> for $value {
            fn from(encoded: $encoding) -> Self {
                encoded.0
            }
        }
    )+};
}

unwrap! {
    Data<H256> => H256,
    Data<Address> => Address,
    Data<Bytes> => Bytes,
    Data<Bloom> => Bloom,
    Data<BlockNonce> => BlockNonce,
    Quantity<u64> => u64,
    Quantity<U256> => U256,
    Word => U256,
    StorageKey => H256,
    Bloom => [u8; 256],
    Bytes => ::bytes::Bytes,
}

/// Implements `From` the wrapped value.
macro_rules! wrap {
    ($($value:ty => $encoding:ty),+ $(,)?) => {$(
        impl From<$value> for $encoding {
            fn from(value: $value) -> Self {
                Self(value)
            }
        }
    )+};
}

wrap! {
    U256 => Word,
    H256 => StorageKey,
    [u8; 256] => Bloom,
    ::bytes::Bytes => Bytes,
    Vec<Address> => AddressFilter,
    Vec<H256> => TopicFilter,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Data<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl<T> Borrow<T> for Data<T> {
    fn borrow(&self) -> &T {
        &self.0
    }
}

impl<T> Borrow<T> for Quantity<T> {
    fn borrow(&self) -> &T {
        &self.0
    }
}

impl Deref for Word {
    type Target = U256;

    fn deref(&self) -> &U256 {
        &self.0
    }
}

impl Borrow<U256> for Word {
    fn borrow(&self) -> &U256 {
        &self.0
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Data(H256(self.0.to_big_endian())).fmt(f)
    }
}

impl FromStr for Word {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        text.parse().map(|word: Data<H256>| Self(U256::from_big_endian(word.as_bytes())))
    }
}

impl From<U256> for StorageKey {
    fn from(slot: U256) -> Self {
        Self(H256(slot.to_big_endian()))
    }
}

impl From<u64> for StorageKey {
    fn from(slot: u64) -> Self {
        U256::from(slot).into()
    }
}

impl AsRef<[u8]> for StorageKey {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Borrow<H256> for StorageKey {
    fn borrow(&self) -> &H256 {
        &self.0
    }
}

impl fmt::Display for StorageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Data(self.0).fmt(f)
    }
}

impl AsRef<[u8]> for Bloom {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Bloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Bloom {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        text.parse().map(|bloom: Data<Self>| bloom.0)
    }
}

impl From<Address> for AddressFilter {
    fn from(address: Address) -> Self {
        Self(vec![address])
    }
}

impl From<H256> for TopicFilter {
    fn from(topic: H256) -> Self {
        Self(vec![topic])
    }
}

impl Borrow<[u8]> for Bytes {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl<const N: usize> From<[u8; N]> for Bytes {
    fn from(bytes: [u8; N]) -> Self {
        Self::from(bytes.as_slice())
    }
}

impl<const N: usize> From<&[u8; N]> for Bytes {
    fn from(bytes: &[u8; N]) -> Self {
        Self::from(bytes.as_slice())
    }
}

impl From<Bytes> for Vec<u8> {
    fn from(bytes: Bytes) -> Self {
        bytes.0.into()
    }
}

impl FromIterator<u8> for Bytes {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        Self(bytes.into_iter().collect())
    }
}

/// Parses `0x` and an even number of hex digits of either case.
impl FromStr for Bytes {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        text.parse().map(|data: Data<Self>| data.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::wire::{HashData, Quantity64};
    use std::collections::HashMap;
    use std::fmt::{Debug, Display};

    fn round_trips<T: FromStr<Err: Debug> + Display + Debug + PartialEq>(value: T) {
        assert_eq!(value.to_string().parse::<T>().unwrap(), value);
    }

    #[test]
    fn texts_are_parsed_to_what_they_display() {
        round_trips(Bytes::from([1, 2, 0xff]));
        round_trips(Bytes::new());
        round_trips(Bloom([7; 256]));
        round_trips(Word(U256::MAX));
        round_trips(StorageKey::from(7));
        round_trips(Quantity(U256::exp10(60)));
        round_trips(Data(Address::repeat_byte(3)));
    }

    #[test]
    fn encodings_convert_both_ways() {
        let hash = H256::repeat_byte(1);
        assert_eq!(H256::from(HashData::from(hash)), hash);
        assert_eq!(u64::from(Quantity64::from(7)), 7);
        assert_eq!(U256::from(Word::from(U256::one())), U256::one());
        assert_eq!(H256::from(StorageKey::from(U256::from(256))), H256::from_low_u64_be(256));
        assert_eq!(Vec::from(Bytes::from(vec![1, 2])), [1, 2]);
        assert_eq!(Bytes::from(b"ab"), Bytes::from([b'a', b'b']));
        assert_eq!(Data(Bytes::from([9])).as_ref(), [9]);
        assert_eq!(AddressFilter::from(Address::zero()).0, [Address::zero()]);
        assert_eq!(TopicFilter::from(hash).0, [hash]);
    }

    #[test]
    fn maps_are_searched_by_what_is_inside() {
        let codes = HashMap::from([(Bytes::from([1]), 1)]);
        assert_eq!(codes.get([1].as_slice()), Some(&1));
        let hashes = HashMap::from([(HashData::default(), 1)]);
        assert_eq!(hashes.get(&H256::zero()), Some(&1));
    }
}
