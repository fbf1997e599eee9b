//! Reading RLP item by item.

use super::DecodeError;
use rlp::{DecoderError, PayloadInfo};

/// The items of a list that have not been read.
///
/// The claimed length of an item is compared with the bytes that are left before it is used, so that input can neither
/// read out of bounds nor cause a large allocation.
#[derive(Clone, Copy, Debug)]
pub(in crate::consensus) struct Items<'a> {
    rest: &'a [u8],
}

impl<'a> Items<'a> {
    /// Decodes an object from bytes that hold nothing else. `read` must read one item.
    pub(in crate::consensus) fn exactly<T>(
        bytes: &'a [u8],
        object: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if bytes.is_empty() {
            return Err(DecodeError::Truncated { field: object });
        }
        let mut items = Self { rest: bytes };
        let value = read(&mut items)?;
        match items.rest.len() {
            0 => Ok(value),
            count => Err(DecodeError::TrailingBytes { object, count }),
        }
    }

    /// Reads a list with a fixed number of fields, all of which `read` must read.
    pub(in crate::consensus) fn record<T>(
        &mut self,
        object: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let mut fields = self.list(object)?;
        let value = read(&mut fields)?;
        if fields.is_empty() { Ok(value) } else { Err(DecodeError::SurplusItems { object }) }
    }

    /// Reads a list of any length. `read` reads one item.
    pub(in crate::consensus) fn vec<T>(
        &mut self,
        field: &'static str,
        mut read: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let mut items = self.list(field)?;
        let mut values = Vec::new();
        while !items.is_empty() {
            values.push(read(&mut items)?);
        }
        Ok(values)
    }

    /// Returns whether all items were read.
    pub(in crate::consensus) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns whether the next item is a list. `false` at the end.
    pub(in crate::consensus) fn next_is_list(&self) -> bool {
        self.rest.first().is_some_and(|prefix| *prefix >= 0xc0)
    }

    /// Reads a byte string of any length.
    pub(in crate::consensus) fn bytes(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        if self.next_is_list() {
            return Err(DecodeError::NotBytes { field });
        }
        let (info, payload) = self.payload(field)?;
        match payload {
            // A byte below 0x80 is its own encoding and must not have a prefix.
            [0..=0x7f] if info.header_len != 0 => Err(DecodeError::NonCanonicalLength { field }),
            _ => Ok(payload),
        }
    }

    /// Reads a byte string of exactly `N` bytes.
    pub(in crate::consensus) fn fixed<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let bytes = self.bytes(field)?;
        bytes.try_into().map_err(|_| DecodeError::UnexpectedLength { field, expected: N, got: bytes.len() })
    }

    /// Reads the empty byte string if it is next, and returns whether it was.
    pub(super) fn skip_empty_string(&mut self) -> bool {
        let Some((0x80, rest)) = self.rest.split_first() else { return false };
        self.rest = rest;
        true
    }

    /// Reads an integer without leading zeros into `N` big-endian bytes.
    pub(super) fn integer<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let bytes = self.bytes(field)?;
        if bytes.first() == Some(&0) {
            return Err(DecodeError::LeadingZeros { field });
        }
        let start = N.checked_sub(bytes.len()).ok_or(DecodeError::Overflow { field, bits: 8 * N as u32 })?;
        let mut padded = [0; N];
        padded[start..].copy_from_slice(bytes);
        Ok(padded)
    }

    /// Reads a list and returns its items unread.
    fn list(&mut self, field: &'static str) -> Result<Items<'a>, DecodeError> {
        if !self.is_empty() && !self.next_is_list() {
            return Err(DecodeError::NotAList { field });
        }
        let (_, rest) = self.payload(field)?;
        Ok(Items { rest })
    }

    /// Reads the next item and returns its header and payload.
    fn payload(&mut self, field: &'static str) -> Result<(PayloadInfo, &'a [u8]), DecodeError> {
        if self.is_empty() {
            return Err(DecodeError::MissingField { field });
        }
        let info = PayloadInfo::from(self.rest).map_err(|error| match error {
            DecoderError::RlpIsTooShort => DecodeError::Truncated { field },
            _ => DecodeError::NonCanonicalLength { field },
        })?;
        let end = info.header_len.checked_add(info.value_len).filter(|end| *end <= self.rest.len());
        let (item, rest) = self.rest.split_at(end.ok_or(DecodeError::Truncated { field })?);
        self.rest = rest;
        let payload = &item[info.header_len..];
        Ok((info, payload))
    }
}
