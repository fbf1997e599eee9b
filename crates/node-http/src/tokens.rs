//! Bearer tokens (RFC 6750).

use node_types::{H256, keccak256};
use std::collections::HashSet;
use std::fmt;

/// Shorter tokens can be guessed.
const SHORTEST: usize = 16;

/// The tokens of which a client has to show one.
///
/// Only their hashes are kept: nothing that is printed can leak them, and comparing hashes tells an attacker nothing by the
/// time it takes.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens(HashSet<H256>);

impl Tokens {
    /// Reads tokens, one a line. Empty lines and lines that begin with `#` are passed over.
    ///
    /// # Errors
    /// When a token is too short or holds what a header cannot, or when there is none.
    pub fn parse(text: &str) -> Result<Self, InvalidTokens> {
        let mut tokens = HashSet::new();
        for (index, line) in text.lines().enumerate() {
            let (token, line) = (line.trim(), index + 1);
            if token.is_empty() || token.starts_with('#') {
                continue;
            }
            // The alphabet of RFC 6750, section 2.1.
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
            if !token.bytes().all(plain) {
                return Err(InvalidTokens::Character { line });
            }
            if token.len() < SHORTEST {
                return Err(InvalidTokens::Short { line });
            }
            tokens.insert(keccak256(token.as_bytes()));
        }
        if tokens.is_empty() { Err(InvalidTokens::None) } else { Ok(Self(tokens)) }
    }

    /// Whether the value of an `Authorization` header shows one of the tokens.
    pub(crate) fn accept(&self, header: &[u8]) -> bool {
        let Some((scheme, token)) = header.split_at_checked(7) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ") && self.0.contains(&keccak256(token.trim_ascii()))
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

/// Why a list of tokens cannot be used. What is in it is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTokens {
    /// It holds none.
    #[error("there is no token in it")]
    None,
    /// A token could be guessed.
    #[error("the token on line {line} is shorter than {SHORTEST} characters")]
    Short {
        /// Counted from 1.
        line: usize,
    },
    /// A token holds what a header cannot.
    #[error("the token on line {line} holds other characters than letters, digits and -._~+/=")]
    Character {
        /// Counted from 1.
        line: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_tokens() {
        let cases = [
            ("0123456789abcdef", Ok(1)),
            ("# two\n\n 0123456789abcdef \r\nABCDEFGHIJKLMNOP==\n", Ok(2)),
            ("", Err(InvalidTokens::None)),
            ("# 0123456789abcdef", Err(InvalidTokens::None)),
            ("0123456789abcdef\nshort", Err(InvalidTokens::Short { line: 2 })),
            ("0123456789 abcdef", Err(InvalidTokens::Character { line: 1 })),
        ];
        for (text, expected) in cases {
            assert_eq!(Tokens::parse(text).map(|tokens| tokens.0.len()), expected, "{text:?}");
        }
    }

    #[test]
    fn tokens_are_shown_whole() {
        let tokens = Tokens::parse("0123456789abcdef").unwrap();
        let cases = [
            ("Bearer 0123456789abcdef", true),
            ("bearer  0123456789abcdef ", true),
            ("Bearer 0123456789abcde", false),
            ("Bearer 0123456789abcdef0", false),
            ("Bearer 0123456789ABCDEF", false),
            ("Basic 0123456789abcdef", false),
            ("0123456789abcdef", false),
            ("Bearer", false),
            ("", false),
        ];
        for (header, expected) in cases {
            assert_eq!(tokens.accept(header.as_bytes()), expected, "{header:?}");
        }
        assert_eq!(format!("{tokens:?}"), "Tokens(1)");
    }
}
