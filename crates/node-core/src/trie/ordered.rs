//! Tries over lists.

use super::Trie;
use node_types::{Bytes, H256};

/// The root of the trie that maps the RLP of 0, 1, 2, … to `items`, as for transactions, receipts and withdrawals.
pub fn ordered_root<I: AsRef<[u8]>>(items: &[I]) -> H256 {
    let entries = items.iter().enumerate().map(|(index, item)| (rlp::encode(&index), Bytes::from(item.as_ref())));
    entries.collect::<Trie>().root()
}
