//! The root of a trie, computed from its leaves in order, with memory for only one path.

use super::{NibblePath, Reference, encode_branch, encode_extension, encode_leaf};
use node_types::consensus::EMPTY_ROOT;
use node_types::{H256, keccak256};

/// Returns the root of the secure trie with these leaves, each the hash of a key and the RLP of its value. Only one
/// path of nodes is in memory at a time.
///
/// The hashes must be distinct and ascending; otherwise the root is wrong.
///
/// # Errors
/// The first error of `leaves`.
///
/// # Examples
/// ```
/// use node_core::trie::{Trie, sorted_root};
/// use node_types::H256;
/// use std::convert::Infallible;
///
/// let leaves = [1, 2, 3].map(|byte| (H256::repeat_byte(byte), vec![byte]));
/// let root = sorted_root(leaves.clone().into_iter().map(Ok::<_, Infallible>));
/// assert_eq!(root, Ok(Trie::from_iter(leaves).root()));
/// ```
pub fn sorted_root<E>(leaves: impl Iterator<Item = Result<(H256, Vec<u8>), E>>) -> Result<H256, E> {
    let mut leaves = Leaves { next: None, rest: leaves };
    match leaves.take()? {
        Some(first) => Ok(keccak256(encode(&mut leaves, first, 0)?)),
        None => Ok(EMPTY_ROOT),
    }
}

/// A leaf: its path and the RLP of its value.
type Leaf = (NibblePath, Vec<u8>);

/// The leaves that are not in the trie yet.
struct Leaves<I> {
    next: Option<Leaf>,
    rest: I,
}

impl<E, I: Iterator<Item = Result<(H256, Vec<u8>), E>>> Leaves<I> {
    /// Returns the next leaf, and reads the one after it.
    fn take(&mut self) -> Result<Option<Leaf>, E> {
        let mut read = || self.rest.next().transpose().map(|leaf| leaf.map(|(hash, value)| (hash.into(), value)));
        let taken = match self.next.take() {
            Some(leaf) => Some(leaf),
            None => read()?,
        };
        if taken.is_some() {
            self.next = read()?;
        }
        Ok(taken)
    }

    /// Returns how many nibbles the next leaf shares with `path`, or `None` if there are no more leaves.
    fn shared(&self, path: &NibblePath) -> Option<usize> {
        self.next.as_ref().map(|(next, _)| next.common(path))
    }
}

/// Returns the RLP of the node at the position given by the first `start` nibbles of `first`. It covers `first` and
/// the following leaves that share these nibbles.
fn encode<E, I>(leaves: &mut Leaves<I>, first: Leaf, start: usize) -> Result<Vec<u8>, E>
where
    I: Iterator<Item = Result<(H256, Vec<u8>), E>>,
{
    let (path, value) = first;
    // The lowest branch above the leaves read so far: the length of its path, and its encoding.
    let mut branch: Option<(usize, Vec<u8>)> = None;
    let encode_at = |branch: Option<(usize, Vec<u8>)>, start| match branch {
        None => encode_leaf(&path, start, &value),
        Some((length, encoded)) => encode_extension(&path.prefix(length), start, &encoded).unwrap_or(encoded),
    };
    // Each leaf shares at most as many nibbles with the first one as the previous leaf did.
    while let Some(length) = leaves.shared(&path).filter(|shared| *shared >= start) {
        let mut children = [Reference::NONE; 16];
        children[usize::from(path.nibble(length))] = Reference::to(&encode_at(branch, length + 1));
        while leaves.shared(&path) == Some(length)
            && let Some(next) = leaves.take()?
        {
            let nibble = next.0.nibble(length);
            children[usize::from(nibble)] = Reference::to(&encode(leaves, next, length + 1)?);
        }
        branch = Some((length, encode_branch(children.each_ref(), &[])));
    }
    Ok(encode_at(branch, start))
}
