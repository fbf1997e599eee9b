//! Appending strings to a stream of the `rlp` crate.

use crate::rlp::string_header;
use crate::{Address, H256};
use rlp::RlpStream;

/// Appends `bytes` as a string. Unlike the stream's own method it does not copy byte by byte.
pub(in crate::consensus) fn append_bytes(stream: &mut RlpStream, bytes: &[u8]) {
    // The header and the payload count as one item of the list.
    stream.append_raw(string_header(bytes).as_bytes(), 0).append_raw(bytes, 1);
}

/// Appends a list of hashes.
pub(in crate::consensus) fn append_hashes(stream: &mut RlpStream, hashes: &[H256]) {
    stream.begin_list(hashes.len());
    hashes.iter().for_each(|hash| append_bytes(stream, hash.as_bytes()));
}

/// Appends the recipient of a transaction: the empty string for a contract creation.
pub(in crate::consensus) fn append_recipient(stream: &mut RlpStream, to: Option<Address>) {
    append_bytes(stream, to.as_ref().map_or(&[], |address| address.as_bytes()));
}
