//! Writing RLP (Yellow Paper, appendix B) into a byte vector.
//!
//! The stream of the `rlp` crate copies strings byte by byte, which is too slow for trie nodes, whose updates consist
//! mostly of encoding and hashing, and for code, blooms and blobs. Consensus objects use that stream for lists and
//! integers, and this module for strings.

/// Appends the encoding of the byte string `bytes` to `out`.
///
/// # Examples
/// ```
/// let mut out = Vec::new();
/// node_types::rlp::put_string(&mut out, b"dog");
/// assert_eq!(out, b"\x83dog");
/// ```
pub fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(string_header(bytes).as_bytes());
    out.extend_from_slice(bytes);
}

/// Appends the header of a list to `out`. `length` is the total length in bytes of the encoded items, which must
/// follow.
pub fn put_list_header(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(Header::new(0xc0, length).as_bytes());
}

/// Returns the number of bytes that [`put_string`] appends.
pub fn string_length(bytes: &[u8]) -> usize {
    string_header(bytes).as_bytes().len() + bytes.len()
}

/// Returns the header of a string. A single byte below 0x80 is its own encoding and has none.
pub(crate) fn string_header(bytes: &[u8]) -> Header {
    match bytes {
        [0..0x80] => Header { length: 0, bytes: [0; 9] },
        _ => Header::new(0x80, bytes.len()),
    }
}

/// The bytes that precede the payload of an item.
pub(crate) struct Header {
    length: u8,
    bytes: [u8; 9],
}

impl Header {
    /// `kind` is 0x80 for a string and 0xc0 for a list; `length` is the length of the payload.
    fn new(kind: u8, length: usize) -> Self {
        let mut bytes = [0; 9];
        if length < 56 {
            bytes[0] = kind + length as u8;
            return Self { length: 1, bytes };
        }
        let length = (length as u64).to_be_bytes();
        let zeros = length.iter().take_while(|byte| **byte == 0).count();
        let significant = &length[zeros..];
        bytes[0] = kind + 55 + significant.len() as u8;
        bytes[1..=significant.len()].copy_from_slice(significant);
        Self { length: 1 + significant.len() as u8, bytes }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_lists_equal_those_of_alloy() {
        for length in [0, 1, 2, 32, 55, 56, 57, 255, 256, 65_535, 65_536] {
            for byte in [0, 0x7f, 0x80, 0xff] {
                let bytes = vec![byte; length];
                let mut out = Vec::new();
                put_string(&mut out, &bytes);
                assert_eq!(out, alloy_rlp::encode(bytes.as_slice()), "{length} bytes of {byte:#x}");
                assert_eq!(string_length(&bytes), out.len());
            }
            let mut out = Vec::new();
            put_list_header(&mut out, length);
            let mut expected = Vec::new();
            alloy_rlp::Header { list: true, payload_length: length }.encode(&mut expected);
            assert_eq!(out, expected, "a list of {length} bytes");
        }
    }
}
