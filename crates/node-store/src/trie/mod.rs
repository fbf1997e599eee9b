//! Merkle Patricia tries whose every version is kept, in rows (Yellow Paper, appendix D).
//!
//! Keys have 32 bytes. Nothing here knows where rows are kept: a [`Source`] reads nodes as of some block, and an
//! [`Update`] lists the rows to be written for another.

mod node;
mod path;
mod prove;
mod recompute;
mod row;
#[cfg(test)]
mod tests;
mod update;

pub(crate) use node::{Branch, Node, encode_word_leaf};
pub(crate) use path::Path;
pub(crate) use prove::prove;
pub(crate) use recompute::{Broken, recompute};
pub(crate) use row::{Decoder, Stored, is_delta, is_empty};
pub(crate) use update::{Change, NewRow, Source, Update, update};
