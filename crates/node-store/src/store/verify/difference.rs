//! Differences between stored and expected rows.

use crate::error::StoreError;
use crate::keys::Key;
use node_core::backend::BackendError;
use node_core::context::Interrupted;
use node_types::BlockNumber;
use std::fmt;

/// A row that differs from what the blocks of the chain require.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The block of the row. `None` if it is unknown.
    pub block: Option<BlockNumber>,
    /// The name of the table.
    pub table: &'static str,
    /// The key of the row.
    pub key: Vec<u8>,
    pub fault: RowFault,
}

/// How a stored row differs from the row that the blocks determine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowFault {
    /// The row is missing.
    Missing,
    /// The row belongs to no block.
    Surplus {
        /// The value of the row.
        found: Vec<u8>,
    },
    /// The value cannot be decoded.
    Malformed { reason: String },
    /// The value, or something derived from it, differs.
    Differs {
        /// The part that differs.
        part: String,
        /// The expected bytes.
        expected: Vec<u8>,
        /// The stored bytes.
        found: Vec<u8>,
    },
}

impl RowFault {
    /// Compares a part of a row.
    pub(super) fn unless_equal(part: &str, expected: impl AsRef<[u8]>, found: impl AsRef<[u8]>) -> Result<(), Self> {
        let (expected, found) = (expected.as_ref(), found.as_ref());
        if expected == found {
            return Ok(());
        }
        Err(Self::Differs { part: part.to_owned(), expected: expected.to_vec(), found: found.to_vec() })
    }

    pub(super) fn malformed(reason: impl fmt::Display) -> Self {
        Self::Malformed { reason: reason.to_string() }
    }

    /// Returns the difference in the row of `key` and `version`.
    pub(super) fn of(self, block: BlockNumber, key: &Key, version: u64) -> Stop {
        self.at(Some(block), key.table().name(), key.versioned(version)[1..].to_vec())
    }

    pub(super) fn at(self, block: Option<BlockNumber>, table: &'static str, key: Vec<u8>) -> Stop {
        Stop::Difference(Box::new(Difference { block, table, key, fault: self }))
    }
}

/// Maximum number of bytes of a key or value that are printed from each end.
const SHOWN: usize = 8;

/// Prints hex digits; for long values only the first and last.
struct Short<'a>(&'a [u8]);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits =
            |f: &mut fmt::Formatter<'_>, bytes: &[u8]| bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"));
        match self.0 {
            [] => f.write_str("nothing"),
            all if all.len() <= 2 * SHOWN => digits(f, all),
            long => {
                digits(f, &long[..SHOWN])?;
                f.write_str("…")?;
                digits(f, &long[long.len() - SHOWN..])
            }
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(block) = self.block {
            write!(f, "block {block}: ")?;
        }
        write!(f, "table {}, key {}: {}", self.table, Short(&self.key), self.fault)
    }
}

impl fmt::Display for RowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the row is missing"),
            Self::Surplus { found } => write!(f, "no block accounts for this row, found {}", Short(found)),
            Self::Malformed { reason } => f.write_str(reason),
            Self::Differs { part, expected, found } => {
                write!(f, "{part}: expected {}, found {}", Short(expected), Short(found))
            }
        }
    }
}

/// Why a check ended early.
pub(super) enum Stop {
    /// It found a difference.
    Difference(Box<Difference>),
    /// The check failed.
    Failed(BackendError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Interrupted> for Stop {
    fn from(error: Interrupted) -> Self {
        Self::Failed(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_shortened() {
        let part = "value".to_owned();
        let fault = RowFault::Differs { part, expected: (0..40).collect(), found: Vec::new() };
        let difference = Difference { block: Some(7), table: "trie", key: vec![0xab, 0x01], fault };
        let text = "block 7: table trie, key ab01: value: expected 0001020304050607…2021222324252627, found nothing";
        assert_eq!(difference.to_string(), text);
    }
}
