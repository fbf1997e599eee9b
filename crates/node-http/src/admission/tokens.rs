//! Bearer tokens (RFC 6750).

use node_types::{H256, keccak256};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::future;
use std::sync::Arc;
use tokio::sync::watch;

/// Minimum length of a token in characters; shorter ones could be guessed.
const MIN_LENGTH: usize = 16;

/// The permissions of a token. Each role includes the previous ones, except for `Metrics`, which is separate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// To read metrics.
    Metrics,
    /// To use operations that change nothing.
    Read,
    /// To send signed transactions.
    Send,
    /// To control the chain.
    Control,
}

impl Role {
    const NAMES: [(&str, Self); 4] =
        [("metrics", Self::Metrics), ("read", Self::Read), ("send", Self::Send), ("control", Self::Control)];

    /// Returns whether nobody else may do what it allows, once a token has it.
    fn protects(self) -> bool {
        matches!(self, Self::Metrics | Self::Control)
    }

    fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
    }
}

/// The bearer tokens that the server accepts, with their roles. Clones share them.
///
/// Only their hashes are stored, so tokens cannot leak through logs, and the time of a comparison reveals nothing
/// about a token.
#[derive(Clone)]
pub struct Tokens(Arc<watch::Sender<Roles>>);

#[derive(Clone)]
struct Roles {
    by_token: HashMap<H256, Role>,
    /// The roles that a token has or had. What they protect stays protected when the last such token is removed.
    reserved: BTreeSet<Role>,
}

impl Roles {
    fn of(&self, token: &H256) -> Option<Role> {
        self.by_token.get(token).copied()
    }
}

impl Tokens {
    /// Reads tokens, one per line, each alone or followed by a space and its role: `metrics`, `read`, `send` (the
    /// default) or `control`. Skips empty lines and lines that start with `#`.
    ///
    /// # Errors
    /// If a token is too short, is repeated, or has characters that a header cannot carry, if a role is unknown, or if
    /// there is no token.
    pub fn parse(text: &str) -> Result<Self, InvalidTokens> {
        let mut tokens = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let (token, line) = (line.trim(), index + 1);
            if token.is_empty() || token.starts_with('#') {
                continue;
            }
            let (token, role) = token.split_once(char::is_whitespace).unwrap_or((token, "send"));
            let role = Role::named(role.trim()).ok_or(InvalidTokens::Role { line })?;
            // The alphabet of RFC 6750, section 2.1.
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
            if !token.bytes().all(plain) {
                return Err(InvalidTokens::Character { line });
            }
            if token.len() < MIN_LENGTH {
                return Err(InvalidTokens::Short { line });
            }
            if tokens.insert(keccak256(token.as_bytes()), role).is_some() {
                return Err(InvalidTokens::Repeated { line });
            }
        }
        if tokens.is_empty() {
            return Err(InvalidTokens::None);
        }
        let reserved = tokens.values().copied().collect();
        Ok(Self(Arc::new(watch::Sender::new(Roles { by_token: tokens, reserved }))))
    }

    /// Replaces the tokens, including those of clones, with those of `other`, for all further requests. Ends the
    /// WebSockets and event streams whose tokens lose their rights.
    ///
    /// If the last token with the role `metrics` or `control` is removed, nobody may read metrics or control the chain,
    /// instead of everybody.
    pub fn replace(&self, other: &Self) {
        let mut roles = other.0.borrow().clone();
        roles.reserved.extend(&self.0.borrow().reserved);
        self.0.send_replace(roles);
    }

    /// Returns the names of roles that a token had, but no token has any more.
    pub fn orphaned_roles(&self) -> Vec<&'static str> {
        let roles = self.0.borrow();
        let has = |role: Role| roles.by_token.values().any(|known| *known == role);
        let orphaned = Role::NAMES.iter().filter(|(_, role)| role.protects() && roles.reserved.contains(role));
        orphaned.filter(|(_, role)| !has(*role)).map(|(name, _)| *name).collect()
    }

    /// Returns the role of the token in `header`, the value of an `Authorization` header, or `None` if it contains
    /// none of the tokens.
    pub(crate) fn role(&self, header: &[u8]) -> Option<Role> {
        self.0.borrow().of(&hash_of(header)?)
    }

    /// Returns what the token in `header` grants from now on, or `None` like [`role`](Self::role).
    pub(crate) fn grant(&self, header: &[u8]) -> Option<Grant> {
        let (token, mut tokens) = (hash_of(header)?, self.0.subscribe());
        let (role, controls) = {
            let roles = tokens.borrow_and_update();
            (roles.of(&token)?, roles.reserved.contains(&Role::Control))
        };
        Some(Grant { tokens, token, role, controls })
    }

    /// Returns whether reading the metrics requires a token.
    pub fn protects_metrics(&self) -> bool {
        self.reserve(Role::Metrics)
    }

    /// Returns whether only tokens with `role` may do what it allows: whether one of the tokens has it, or had it before
    /// it was replaced.
    pub(crate) fn reserve(&self, role: Role) -> bool {
        self.0.borrow().reserved.contains(&role)
    }
}

/// Returns the hash of the token in `header`, the value of an `Authorization` header.
fn hash_of(header: &[u8]) -> Option<H256> {
    let (scheme, token) = header.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| keccak256(token.trim_ascii()))
}

/// What a token grants to a request that stays open while the tokens may be replaced.
pub(crate) struct Grant {
    tokens: watch::Receiver<Roles>,
    /// The hash of the token.
    token: H256,
    role: Role,
    /// Whether the role `Control` was required for control.
    controls: bool,
}

impl Grant {
    /// Returns when the token has other rights than at first. May be cancelled and called again.
    pub(crate) async fn changed(&mut self) {
        let (token, before) = (self.token, (Some(self.role), self.controls));
        self.wait(|roles| (roles.of(&token), roles.reserved.contains(&Role::Control)) != before).await;
    }

    /// Returns when the token does not allow reading any more. May be cancelled and called again.
    pub(crate) async fn withdrawn(&mut self) {
        let token = self.token;
        self.wait(|roles| roles.of(&token) < Some(Role::Read)).await;
    }

    async fn wait(&mut self, is_over: impl FnMut(&Roles) -> bool) {
        if self.tokens.wait_for(is_over).await.is_err() {
            // The tokens no longer exist, and cannot be replaced.
            future::pending().await
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.borrow().by_token.len())
    }
}

/// Why a list of tokens cannot be used. Never contains a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTokens {
    /// It contains no token.
    #[error("it contains no token")]
    None,
    /// A token is too short, and could be guessed.
    #[error("the token on line {line} is shorter than {MIN_LENGTH} characters")]
    Short {
        /// The line number, counted from 1.
        line: usize,
    },
    /// A token is repeated, possibly with another role.
    #[error("the token on line {line} was listed before")]
    Repeated {
        /// The line number of the repetition, counted from 1.
        line: usize,
    },
    /// A token has an unknown role.
    #[error("the token on line {line} has a role other than metrics, read, send and control")]
    Role {
        /// The line number, counted from 1.
        line: usize,
    },
    /// A token has characters that a header cannot carry.
    #[error("the token on line {line} has characters other than letters, digits and -._~+/=")]
    Character {
        /// The line number, counted from 1.
        line: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_one_token_per_line() {
        let cases = [
            ("0123456789abcdef", Ok(1)),
            ("# two\n\n 0123456789abcdef \r\nABCDEFGHIJKLMNOP==\n", Ok(2)),
            ("", Err(InvalidTokens::None)),
            ("# 0123456789abcdef", Err(InvalidTokens::None)),
            ("0123456789abcdef\nshort", Err(InvalidTokens::Short { line: 2 })),
            ("0123456789\u{e4}abcdef", Err(InvalidTokens::Character { line: 1 })),
            ("0123456789abcdef read\nABCDEFGHIJKLMNOP\tcontrol", Ok(2)),
            ("0123456789abcdef write", Err(InvalidTokens::Role { line: 1 })),
            ("0123456789abcdef read\n\n0123456789abcdef control", Err(InvalidTokens::Repeated { line: 3 })),
        ];
        for (text, expected) in cases {
            assert_eq!(Tokens::parse(text).map(|tokens| tokens.0.borrow().by_token.len()), expected, "{text:?}");
        }
    }

    #[test]
    fn accepts_only_complete_tokens() {
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
            assert_eq!(tokens.role(header.as_bytes()).is_some(), expected, "{header:?}");
        }
        assert_eq!(format!("{tokens:?}"), "Tokens(1)");
        let clone = tokens.clone();
        assert_eq!(tokens.role(b"Bearer 0123456789abcdef"), Some(Role::Send));
        clone.replace(&Tokens::parse("fedcba9876543210").unwrap());
        assert_eq!(tokens.role(b"Bearer fedcba9876543210"), Some(Role::Send));
        assert_eq!(tokens.role(b"Bearer 0123456789abcdef"), None);
    }

    #[test]
    fn what_tokens_protect_stays_protected_without_them() {
        let of = |text: &str| Tokens::parse(text).unwrap();
        let tokens = of("0123456789abcdef metrics\nABCDEFGHIJKLMNOP control\nfedcba9876543210");
        assert!(tokens.orphaned_roles().is_empty());
        tokens.replace(&of("fedcba9876543210 read"));
        assert_eq!(tokens.orphaned_roles(), ["metrics", "control"]);
        assert!(tokens.protects_metrics() && tokens.reserve(Role::Control));
        tokens.replace(&of("fedcba9876543210 metrics"));
        assert_eq!(tokens.orphaned_roles(), ["control"]);
        let never = of("0123456789abcdef");
        never.replace(&of("fedcba9876543210 read"));
        assert!(!never.protects_metrics() && never.orphaned_roles().is_empty());
    }
}
