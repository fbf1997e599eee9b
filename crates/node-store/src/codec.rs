//! The primitives of stored values: byte strings and integers of variable length.

use node_types::{Address, H256, U256};

/// Stored bytes cannot be decoded. The text is the name of the object that they should encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is malformed")]
pub struct Malformed(pub &'static str);

/// Appends `value` as a varint: seven bits per byte, the lowest first, with the top bit set on all bytes but the last.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the length of `bytes` as a varint, and `bytes`.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a length byte and the big-endian bytes of `value` without leading zeros.
pub(crate) fn put_u256(out: &mut Vec<u8>, value: U256) {
    let length = value.bits().div_ceil(8);
    out.push(length as u8);
    out.extend_from_slice(&value.to_big_endian()[32 - length..]);
}

/// The unread rest of a value.
///
/// Methods fail if the bytes end too early. They never allocate more than there are bytes.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// Creates a reader. Errors say that `what` is malformed.
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    /// Returns the error for malformed bytes.
    pub(crate) fn malformed(&self) -> Malformed {
        Malformed(self.what)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Fails unless all bytes were read.
    pub(crate) fn finish(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.malformed()) }
    }

    /// Reads all remaining bytes.
    pub(crate) fn remainder(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed(self.what))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed(self.what))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn h256(&mut self) -> Result<H256, Malformed> {
        self.array().map(H256)
    }

    pub(crate) fn address(&mut self) -> Result<Address, Malformed> {
        self.array().map(Address::from)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.malformed())
    }

    /// Reads a number of items, each of which has at least `size` bytes.
    pub(crate) fn count(&mut self, size: usize) -> Result<usize, Malformed> {
        let count = self.varint()?;
        let fits = usize::try_from(count).ok().filter(|count| *count <= self.rest.len() / size);
        fits.ok_or(Malformed(self.what))
    }

    /// Reads the output of [`put_bytes`].
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.count(1)?;
        self.take(length)
    }

    /// Reads the output of [`put_u256`].
    pub(crate) fn u256(&mut self) -> Result<U256, Malformed> {
        let length = usize::from(self.byte()?);
        if length > 32 {
            return Err(self.malformed());
        }
        Ok(U256::from_big_endian(self.take(length)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_and_bytes_round_trip(number: u64, limbs: [u64; 4], bytes: Vec<u8>) {
            let wide = U256(limbs) >> (number % 256);
            let mut out = Vec::new();
            put_varint(&mut out, number);
            put_u256(&mut out, wide);
            put_bytes(&mut out, &bytes);
            let mut reader = Reader::new(&out, "test");
            prop_assert_eq!(reader.varint(), Ok(number));
            prop_assert_eq!(reader.u256(), Ok(wide));
            prop_assert_eq!(reader.bytes(), Ok(&bytes[..]));
            prop_assert_eq!(reader.finish(), Ok(()));
            for end in 0..out.len() {
                let mut reader = Reader::new(&out[..end], "test");
                let all = reader.varint().and_then(|_| reader.u256()).and_then(|_| reader.bytes().map(drop));
                prop_assert!(all.is_err(), "cut to {}", end);
            }
        }
    }

    #[test]
    fn rejects_integers_beyond_64_bits() {
        let mut bytes = [0xff; 10];
        bytes[9] = 1;
        assert_eq!(Reader::new(&bytes, "test").varint(), Ok(u64::MAX));
        bytes[9] = 2;
        assert_eq!(Reader::new(&bytes, "test").varint(), Err(Malformed("test")));
        assert_eq!(Reader::new(&[0xff; 20], "test").varint(), Err(Malformed("test")));
    }
}
