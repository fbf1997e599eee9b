//! Identifiers of filters.

use crate::crypto::random_bytes;
use std::fmt;
use std::str::FromStr;

/// Identifier of a filter: a version 4 UUID, whose 122 random bits prevent clients from guessing each other's
/// filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilterId(pub(super) [u8; 16]);

impl FilterId {
    /// Generates an identifier from random bytes of the operating system.
    pub(super) fn random() -> Self {
        let mut bytes: [u8; 16] = random_bytes();
        // Version and variant (RFC 9562, section 5.4).
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }
}

impl fmt::Display for FilterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#034x}", u128::from_be_bytes(self.0))
    }
}

/// The text is not the identifier of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 0x and 32 hex digits")]
pub struct InvalidFilterId;

impl FromStr for FilterId {
    type Err = InvalidFilterId;

    fn from_str(text: &str) -> Result<Self, InvalidFilterId> {
        let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 32).ok_or(InvalidFilterId)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(InvalidFilterId);
        }
        u128::from_str_radix(digits, 16).map(|id| Self(id.to_be_bytes())).map_err(|_| InvalidFilterId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_an_id_or_refused(text in prop_oneof![".{0,40}", "0x[0-9a-fA-F]{32}", "0[xX][0-9a-f+ é]{31,33}"]) {
            let digits = text.strip_prefix("0x").unwrap_or_default();
            let well_formed = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let expected = if well_formed { Ok(text.to_ascii_lowercase()) } else { Err(InvalidFilterId) };
            prop_assert_eq!(text.parse::<FilterId>().map(|id| id.to_string()), expected);
        }
    }
}
