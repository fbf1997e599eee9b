//! Helpers for writing to a stream of the `rlp` crate.

use crate::{Address, H256};
use rlp::RlpStream;

/// Appends a byte string as one item.
///
/// The crate's own way goes byte by byte, which is slow for code, call data, blooms and blobs.
pub(in crate::consensus) fn append_bytes(stream: &mut RlpStream, bytes: &[u8]) {
    match bytes.len() {
        1 if bytes[0] < 0x80 => {}
        // Below 56 the cast is lossless. The prefix counts as no item; the bytes behind it complete one.
        len @ 0..=55 => {
            stream.append_raw(&[0x80 + len as u8], 0);
        }
        len => {
            let length = (len as u64).to_be_bytes();
            let zeros = (len as u64).leading_zeros() as usize / 8;
            stream.append_raw(&[0xb7 + (8 - zeros) as u8], 0).append_raw(&length[zeros..], 0);
        }
    }
    stream.append_raw(bytes, 1);
}

/// Appends a list of hashes.
pub(in crate::consensus) fn append_hashes(stream: &mut RlpStream, hashes: &[H256]) {
    stream.begin_list(hashes.len());
    hashes.iter().for_each(|hash| append_bytes(stream, hash.as_bytes()));
}

/// Appends the receiver of a transaction: the empty byte string for a contract creation.
pub(in crate::consensus) fn append_receiver(stream: &mut RlpStream, to: Option<Address>) {
    append_bytes(stream, to.as_ref().map_or(&[], |address| address.as_bytes()));
}
