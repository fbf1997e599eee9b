//! Reading chain files (concatenated RLP-encoded blocks) as a stream.

use node_core::context::{Context, Interrupted};
use node_types::{BlockNumber, H256, keccak256};
use rlp::{PayloadInfo, Rlp};
use std::io::{self, BufReader, Read, Seek};

/// Maximum length of an encoded block in bytes, inclusive. Before Osaka the protocol limits the length only indirectly,
/// by gas.
pub const MAX_BLOCK_LENGTH: u64 = 64 << 20;

/// Length of the longest prefix of an RLP item, in bytes.
const LONGEST_PREFIX: u64 = 9;

/// The first bytes of a file that gzip has compressed (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Index of the number in a header.
pub(crate) const NUMBER_IN_HEADER: usize = 8;

/// Number of bytes that are read at once to look at headers: about a dozen empty blocks, and little more than the
/// header of a full one.
const HEADERS_BUFFER: usize = 8 << 10;

/// One encoded block of a chain file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawBlock {
    /// Offset in the stream, in bytes.
    pub offset: u64,
    pub bytes: Vec<u8>,
}

impl RawBlock {
    /// Returns the offset of what follows the block.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }

    /// Returns the hash of the block, or `None` if the bytes are not those of one block. Decodes only the RLP around the
    /// header.
    pub fn hash(&self) -> Option<H256> {
        let block = Rlp::new(&self.bytes);
        let is_whole = block.payload_info().is_ok_and(|info| info.total() == self.bytes.len());
        if !is_whole {
            return None;
        }
        block.at(0).ok().map(|header| keccak256(header.as_raw()))
    }
}

/// Why a stream has no further block.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    #[error("cannot read at byte {offset}")]
    Io { offset: u64, source: io::Error },
    #[error("no block begins at byte {offset}: found {byte:#04x}, expected an RLP list")]
    NotAList { offset: u64, byte: u8 },
    #[error("the file is compressed with gzip, expected an RLP list: decompress it first, as with gunzip")]
    Gzip,
    #[error("the length of the block at byte {offset} is malformed")]
    Length { offset: u64 },
    #[error("the block at byte {offset} has {length} bytes, at most {limit} are allowed")]
    TooLong { offset: u64, length: u64, limit: u64 },
    #[error("the block at byte {offset} is truncated: {got} of {expected} bytes")]
    Truncated {
        offset: u64,
        got: u64,
        /// Length of the block, as far as it is known.
        expected: u64,
    },
}

/// An iterator over the encoded blocks of a stream. It does not decode the blocks, and ends after the first error.
#[derive(Debug)]
pub struct BlockStream<R> {
    reader: R,
    offset: u64,
    limit: u64,
    ended: bool,
}

impl<R: Read> BlockStream<R> {
    /// Reads from `reader`, which should be buffered.
    pub fn new(reader: R) -> Self {
        Self::starting_at(reader, 0)
    }

    /// Reads the rest of a stream, from the byte `offset` on, where a block begins.
    pub fn starting_at(reader: R, offset: u64) -> Self {
        Self { reader, offset, limit: MAX_BLOCK_LENGTH, ended: false }
    }

    /// Returns the next block, or `None` at the end of the stream.
    fn read_block(&mut self) -> Result<Option<RawBlock>, StreamError> {
        let offset = self.offset;
        let Some((mut bytes, length)) = self.read_prefix()? else { return Ok(None) };
        self.fill_exactly(&mut bytes, length)?;
        self.offset += length;
        Ok(Some(RawBlock { offset, bytes }))
    }

    /// Returns the bytes before the payload of the next block, and the length of the whole block; `None` at the end of
    /// the stream.
    fn read_prefix(&mut self) -> Result<Option<(Vec<u8>, u64)>, StreamError> {
        let offset = self.offset;
        let mut bytes = Vec::new();
        if self.fill(&mut bytes, 1)? == 0 {
            return Ok(None);
        }
        let payload = match bytes[0] {
            byte @ 0xc0..=0xf7 => u64::from(byte - 0xc0),
            byte @ 0xf8..=0xff => {
                let length_of_length = u64::from(byte - 0xf7);
                self.fill_exactly(&mut bytes, 1 + length_of_length)?;
                let length = bytes[1..].iter().fold(0, |length: u64, byte| length << 8 | u64::from(*byte));
                if bytes[1] == 0 || length <= 55 {
                    return Err(StreamError::Length { offset });
                }
                length
            }
            byte => {
                let is_gzip = offset == 0 && self.fill(&mut bytes, 2)? == 2 && bytes == GZIP;
                return Err(if is_gzip { StreamError::Gzip } else { StreamError::NotAList { offset, byte } });
            }
        };
        let length = payload.saturating_add(bytes.len() as u64);
        if length > self.limit {
            return Err(StreamError::TooLong { offset, length, limit: self.limit });
        }
        Ok(Some((bytes, length)))
    }

    /// Reads until `bytes` has `length` bytes. Memory grows only as bytes are read, even if `length` is huge.
    fn fill_exactly(&mut self, bytes: &mut Vec<u8>, length: u64) -> Result<(), StreamError> {
        let got = self.fill(bytes, length)?;
        if got == length {
            return Ok(());
        }
        Err(StreamError::Truncated { offset: self.offset, got, expected: length })
    }

    /// Reads until `bytes` has `length` bytes or the stream ends. Returns the number of bytes.
    fn fill(&mut self, bytes: &mut Vec<u8>, length: u64) -> Result<u64, StreamError> {
        let missing = length.saturating_sub(bytes.len() as u64);
        let read = self.reader.by_ref().take(missing).read_to_end(bytes);
        read.map_err(|source| StreamError::Io { offset: self.offset, source })?;
        Ok(bytes.len() as u64)
    }
}

impl<R: Read + Seek> BlockStream<BufReader<R>> {
    /// Returns the number of the next block, without reading its body; `None` at the end of the stream, and for a block
    /// whose header cannot be decoded.
    fn skip_block(&mut self) -> Result<Option<BlockNumber>, StreamError> {
        let Some((mut bytes, length)) = self.read_prefix()? else { return Ok(None) };
        let prefix = bytes.len();
        self.fill(&mut bytes, length.min(prefix as u64 + LONGEST_PREFIX))?;
        let Ok(header) = PayloadInfo::from(&bytes[prefix..]) else { return Ok(None) };
        let header_end = header.header_len.saturating_add(header.value_len).saturating_add(prefix) as u64;
        self.fill(&mut bytes, length.min(header_end))?;
        let number = Rlp::new(&bytes[prefix..]).val_at(NUMBER_IN_HEADER);
        let offset = self.offset;
        let rest = i64::try_from(length - bytes.len() as u64).unwrap_or(i64::MAX);
        self.reader.seek_relative(rest).map_err(|source| StreamError::Io { offset, source })?;
        self.offset += length;
        Ok(number.ok())
    }
}

/// Returns the highest block number in a chain file, or `None` if there are no blocks. Reads only the headers, and ends
/// where the file is damaged.
///
/// # Errors
/// If `context` interrupts it.
pub fn highest_block(file: impl Read + Seek, context: &Context) -> Result<Option<BlockNumber>, Interrupted> {
    let mut stream = BlockStream::new(BufReader::with_capacity(HEADERS_BUFFER, file));
    let mut highest = None;
    // The import reports what is wrong with the file.
    while let Ok(Some(number)) = stream.skip_block() {
        highest = highest.max(Some(number));
        context.check()?;
    }
    Ok(highest)
}

impl<R: Read> Iterator for BlockStream<R> {
    type Item = Result<RawBlock, StreamError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read_block().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::consensus::Header;
    use proptest::prelude::*;
    use rlp::Encodable;

    /// Returns an RLP list with a payload of `length` bytes.
    fn item(length: usize) -> Vec<u8> {
        let mut stream = rlp::RlpStream::new();
        stream.begin_unbounded_list();
        for _ in 0..length {
            stream.append(&1u8);
        }
        stream.finalize_unbounded_list();
        stream.out().to_vec()
    }

    #[test]
    fn the_hash_is_that_of_the_header() {
        let header = Header { number: 7, ..Header::default() };
        let mut block = RawBlock { offset: 0, bytes: numbered(7, 100) };
        assert_eq!(block.hash(), Some(header.hash()));
        assert_eq!(RawBlock { offset: 0, bytes: block.bytes[..50].to_vec() }.hash(), None);
        block.bytes.push(0);
        assert_eq!(block.hash(), None);
    }

    #[test]
    fn names_gzip() {
        let error = |file: &[u8]| BlockStream::new(file).next().unwrap().unwrap_err().to_string();
        assert!(error(&[0x1f, 0x8b, 8, 0]).contains("compressed with gzip"));
        assert!(error(&[0x1f]).contains("found 0x1f"));
    }

    #[test]
    fn reads_blocks_unchanged() {
        let items: Vec<Vec<u8>> = [0, 1, 55, 56, 255, 256, 70_000].into_iter().map(item).collect();
        let file = items.concat();
        let got: Vec<RawBlock> = BlockStream::new(&file[..]).collect::<Result<_, _>>().unwrap();
        let mut offset = 0;
        assert_eq!(got.len(), items.len());
        for (got, bytes) in got.into_iter().zip(items) {
            let length = bytes.len() as u64;
            assert_eq!(got, RawBlock { offset, bytes });
            offset += length;
        }
    }

    #[test]
    fn errors_state_the_offset() {
        let good = item(10);
        let long = item(300);
        let cases: [(&[u8], &str); 8] = [
            (&[0x80], "no block begins at byte 11: found 0x80, expected an RLP list"),
            (&[0x00, 0xff], "no block begins at byte 11: found 0x00, expected an RLP list"),
            (&[0xc2, 0x01], "the block at byte 11 is truncated: 2 of 3 bytes"),
            (&[0xf9, 0x01], "the block at byte 11 is truncated: 2 of 3 bytes"),
            (&long[..200], "the block at byte 11 is truncated: 200 of 303 bytes"),
            (&[0xf8, 0x37], "the length of the block at byte 11 is malformed"),
            (&[0xf9, 0x00, 0x80], "the length of the block at byte 11 is malformed"),
            (&[0xff; 9], "the block at byte 11 has 18446744073709551615 bytes, at most 67108864 are allowed"),
        ];
        for (tail, expected) in cases {
            let file = [&good[..], tail].concat();
            let mut stream = BlockStream::new(&file[..]);
            assert!(stream.next().unwrap().is_ok(), "the block before: {expected}");
            assert_eq!(stream.next().unwrap().unwrap_err().to_string(), expected);
            assert!(stream.next().is_none(), "nothing follows an error: {expected}");
        }
    }

    #[test]
    fn a_declared_length_does_not_allocate() {
        // The length says 2 GiB; three bytes follow.
        let file = [0xfb, 0x7f, 0xff, 0xff, 0xff, 1, 2, 3];
        let mut stream = BlockStream { limit: u64::MAX, ..BlockStream::new(&file[..]) };
        let got = stream.next().unwrap().unwrap_err();
        assert!(matches!(got, StreamError::Truncated { got: 8, .. }), "{got}");
    }

    /// A block whose header has a number, and a body of `length` bytes.
    fn numbered(number: u64, length: usize) -> Vec<u8> {
        let header = Header { number, ..Header::default() }.rlp_bytes();
        let mut stream = rlp::RlpStream::new_list(2);
        stream.append_raw(&header, 1).append(&vec![1u8; length]);
        stream.out().to_vec()
    }

    #[test]
    fn finds_the_highest_block_of_a_file() {
        let highest = |file: &[u8]| highest_block(io::Cursor::new(file), &Context::unbounded()).unwrap();
        let blocks =
            [(1, 0), (2, 70_000), (9, 300), (3, HEADERS_BUFFER)].map(|(number, length)| numbered(number, length));
        let file = blocks.concat();
        assert_eq!(highest(&file), Some(9));
        assert_eq!(highest(&[]), None);
        // What follows a damaged place is not imported.
        assert_eq!(highest(&[&blocks[0][..], &[0x80], &blocks[2]].concat()), Some(1));
        assert_eq!(highest(&[&blocks[0][..], &item(30), &blocks[2]].concat()), Some(1));
        assert_eq!(highest(&file[..blocks[0].len() + 20]), Some(1));

        let cancelled = Context::unbounded();
        cancelled.cancel();
        assert!(highest_block(io::Cursor::new(file), &cancelled).is_err());
    }

    proptest! {
        #[test]
        fn random_bytes_are_an_error_or_blocks(file in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let mut length = 0;
            for block in BlockStream::new(&file[..]) {
                match block {
                    Ok(block) => length += block.bytes.len(),
                    Err(_) => return Ok(()),
                }
            }
            prop_assert_eq!(length, file.len());
            prop_assert!(highest_block(io::Cursor::new(file), &Context::unbounded()).is_ok());
        }
    }
}
