//! Byte strings.

use std::fmt;
use std::ops::Deref;

/// An immutable byte string that is cheap to clone: code, call data, log data, extra data.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub ::bytes::Bytes);

impl Bytes {
    /// Returns the empty byte string.
    pub const fn new() -> Self {
        Self(::bytes::Bytes::new())
    }

    /// Wraps static bytes without copying them.
    pub const fn from_static(bytes: &'static [u8]) -> Self {
        Self(::bytes::Bytes::from_static(bytes))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(::bytes::Bytes::copy_from_slice(bytes))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&const_hex::encode_prefixed(self))
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
