//! Merkle Patricia tries (Yellow Paper, appendix D), all versions of which are stored in rows.
//!
//! Keys have 32 bytes. This module does not depend on where rows are stored: a [`Source`] reads nodes as of some
//! block, and an [`Update`] lists the rows to write for the next block.

mod base;
mod prove;
mod recompute;
mod row;
mod subtrie;
#[cfg(test)]
mod tests;
mod update;

pub(crate) use base::BaseTrie;
pub(crate) use prove::prove;
pub(crate) use recompute::{RecomputeError, recompute};
pub(crate) use row::{Branch, Decoder, FROM_BASE, MAX_AGE, Node, Opaque, Stored, is_delta, is_empty};
pub(crate) use update::{Change, NewRow, Planned, Source, Update, finish, plan};

use node_types::Bytes;
use node_types::rlp::{put_string, string_length};

/// Returns the RLP of a storage value: that of a leaf in a storage trie. `word` has no leading zeros.
pub(crate) fn encode_word_leaf(word: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(string_length(word));
    put_string(&mut out, word);
    out.into()
}
