//! Finding blocks in bytes that arrive in pieces.

use crate::stream::{BlockStream, RawBlock, StreamError};
use node_types::consensus::Block;

/// Divides a stream of concatenated blocks, which arrives in pieces, into blocks.
///
/// A stream with several writers, one after another, may break off within a block. The next writer then continues the
/// block or begins with a whole one; which of the two is seen when either is complete.
///
/// # Examples
/// ```
/// use node_chain::BlockSplitter;
///
/// let mut splitter = BlockSplitter::starting_at(0);
/// // Two RLP lists, of which the second is not complete.
/// splitter.push(&[0xc1, 0x01, 0xc2, 0x01]);
/// assert_eq!(splitter.next_block()?.unwrap().bytes, [0xc1, 0x01]);
/// assert_eq!(splitter.next_block()?, None);
/// splitter.push(&[0x02]);
/// assert_eq!(splitter.next_block()?.unwrap().bytes, [0xc2, 0x01, 0x02]);
/// # Ok::<(), node_chain::StreamError>(())
/// ```
#[derive(Debug)]
pub struct BlockSplitter {
    /// What has arrived. The bytes before `start` belong to blocks that were returned.
    bytes: Vec<u8>,
    start: usize,
    /// Offset of `start` in the stream.
    offset: u64,
    /// Number of bytes that the next block needs, as far as it is known.
    needed: u64,
    /// Where the bytes of the newest writer begin, if those before them end within a block.
    writer: Option<usize>,
    /// Bytes that were ignored.
    ignored: u64,
}

impl BlockSplitter {
    /// Divides a stream of which `offset` bytes were read before.
    pub fn starting_at(offset: u64) -> Self {
        Self { bytes: Vec::new(), start: 0, offset, needed: 1, writer: None, ignored: 0 }
    }

    /// Adds bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.writer = self.writer.map(|writer| writer - self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the number of bytes of the block that is not complete.
    pub fn incomplete(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Returns the number of bytes that the block that is not complete will have, as far as it is known.
    pub fn needed(&self) -> u64 {
        self.needed
    }

    /// Returns the offset in the stream of the first byte that belongs to no block yet.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of bytes that were ignored, because a writer ended within a block and the next one began with
    /// another.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Notes that the writer has ended, so that what follows may be from another one.
    pub fn writer_ended(&mut self) {
        if self.incomplete() > 0 && self.writer.is_none() {
            self.writer = Some(self.bytes.len());
        }
    }

    /// Returns the next block, or `None` if it is not complete yet.
    ///
    /// # Errors
    /// If no block can follow.
    pub fn next_block(&mut self) -> Result<Option<RawBlock>, StreamError> {
        let Some(writer) = self.writer else { return self.split() };
        // What the newest writer has sent is a block of its own, or the rest of the one before.
        let is_block = |block: &RawBlock| Block::decode(&block.bytes).is_ok();
        let own = BlockStream::starting_at(&self.bytes[writer..], self.offset).next();
        if matches!(&own, Some(Ok(block)) if is_block(block)) {
            let ignored = (writer - self.start) as u64;
            (self.ignored, self.offset) = (self.ignored + ignored, self.offset + ignored);
            (self.start, self.needed, self.writer) = (writer, 1, None);
            return self.split();
        }
        let (start, offset) = (self.start, self.offset);
        let Some(block) = self.split()? else { return Ok(None) };
        if matches!(own, Some(Err(StreamError::Truncated { .. }))) && !is_block(&block) {
            // The newest writer's own block is not complete yet.
            (self.start, self.offset) = (start, offset);
            return Ok(None);
        }
        self.writer = None;
        Ok(Some(block))
    }

    fn split(&mut self) -> Result<Option<RawBlock>, StreamError> {
        if (self.incomplete() as u64) < self.needed {
            return Ok(None);
        }
        match BlockStream::starting_at(&self.bytes[self.start..], self.offset).next() {
            None => Ok(None),
            Some(Ok(block)) => {
                self.start += block.bytes.len();
                (self.offset, self.needed) = (block.end(), 1);
                Ok(Some(block))
            }
            Some(Err(StreamError::Truncated { expected, .. })) => {
                self.needed = expected;
                Ok(None)
            }
            Some(Err(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::genesis::dev_genesis;
    use crate::test_support::{chain_of, grow};
    use crate::{MAX_BLOCK_LENGTH, export_blocks};
    use proptest::prelude::*;

    /// Encoded empty blocks.
    fn blocks() -> Vec<Vec<u8>> {
        let genesis = dev_genesis();
        let chain = chain_of(&genesis);
        let mut parent = chain.backend().view().unwrap().header(0.into()).unwrap().unwrap();
        for _ in 0..3 {
            parent = grow(&chain, &genesis.spec, &parent, 12, b"").1;
        }
        let mut file = Vec::new();
        export_blocks(&*chain.backend().view().unwrap(), 1..=3, &mut file).unwrap();
        BlockStream::new(&file[..]).map(|block| block.unwrap().bytes).collect()
    }

    /// The blocks that are complete.
    fn complete(splitter: &mut BlockSplitter) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| Some(splitter.next_block().unwrap()?.bytes)).collect()
    }

    #[test]
    fn a_writer_may_continue_a_block_or_begin_a_new_one() {
        let blocks = blocks();
        for sent_again in [false, true] {
            for first in [1, 2, blocks[1].len() / 2, blocks[1].len() - 1] {
                let mut splitter = BlockSplitter::starting_at(0);
                splitter.push(&[&blocks[0][..], &blocks[1][..first]].concat());
                assert_eq!(complete(&mut splitter).len(), 1);
                assert_eq!(splitter.incomplete(), first);
                splitter.writer_ended();
                let rest = if sent_again { &blocks[1][..] } else { &blocks[1][first..] };
                let mut got = Vec::new();
                for byte in [rest, &blocks[2]].concat() {
                    splitter.push(&[byte]);
                    got.extend(complete(&mut splitter));
                }
                assert_eq!(got, blocks[1..], "{sent_again} {first}");
                assert_eq!(splitter.incomplete(), 0);
                assert_eq!(splitter.ignored(), if sent_again { first as u64 } else { 0 });
            }
        }
    }

    #[test]
    fn faults_are_at_their_offset_in_the_stream() {
        let mut splitter = BlockSplitter::starting_at(1_000);
        splitter.push(&[0xc0, 0x80]);
        assert_eq!(splitter.next_block().unwrap(), Some(RawBlock { offset: 1_000, bytes: vec![0xc0] }));
        let error = splitter.next_block().unwrap_err().to_string();
        assert!(error.contains("at byte 1001"), "{error}");
        let mut splitter = BlockSplitter::starting_at(0);
        splitter.push(&[0xff; 9]);
        let error = splitter.next_block().unwrap_err().to_string();
        assert!(error.contains(&MAX_BLOCK_LENGTH.to_string()), "{error}");
    }

    proptest! {
        #[test]
        fn pieces_of_any_length_have_the_same_blocks(
            lengths in proptest::collection::vec(0usize..300, 0..6),
            cuts in proptest::collection::vec(1usize..50, 1..40),
        ) {
            let items: Vec<Vec<u8>> = lengths.iter().map(|length| {
                let mut stream = rlp::RlpStream::new_list(1);
                stream.append(&vec![1u8; *length]);
                stream.out().to_vec()
            }).collect();
            let file = items.concat();
            let (mut splitter, mut got, mut rest) = (BlockSplitter::starting_at(0), Vec::new(), &file[..]);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, left) = rest.split_at(rest.len().min(*cut));
                splitter.push(piece);
                rest = left;
                got.extend(complete(&mut splitter));
            }
            prop_assert_eq!(got, items);
            prop_assert_eq!(splitter.offset(), file.len() as u64);
        }
    }
}
