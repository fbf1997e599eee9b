//! Tries over lists.

use super::Trie;
use node_types::{Bytes, H256};

/// Returns the root of the trie that maps the RLP of 0, 1, 2, … to `items`, as headers commit to transactions, receipts
/// and withdrawals.
///
/// # Examples
///
/// ```
/// use node_core::trie::ordered_root;
/// use node_types::consensus::EMPTY_ROOT;
///
/// let withdrawals: [Vec<u8>; 0] = [];
/// assert_eq!(ordered_root(&withdrawals), EMPTY_ROOT);
/// ```
pub fn ordered_root<I: AsRef<[u8]>>(items: &[I]) -> H256 {
    let entries = items.iter().enumerate().map(|(index, item)| (rlp::encode(&index), Bytes::from(item.as_ref())));
    entries.collect::<Trie>().root()
}
