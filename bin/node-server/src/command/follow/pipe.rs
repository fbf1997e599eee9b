//! Following a FIFO, to which writers come and go, and standard input, which ends.

use super::{CHUNK, Follower, POLL};
use crate::error::CommandError;
use crate::files::{self, Input};
use node_chain::{BlockSplitter, StreamError};
use std::io::Read;
use std::thread;

impl Follower {
    /// Imports the blocks of a FIFO, until following ends.
    pub(super) fn follow_pipe(&self) -> Result<(), CommandError> {
        let (mut pipe, _) = files::open(&self.path, &self.context)?;
        let mut splitter = BlockSplitter::starting_at(0);
        loop {
            if !self.read_pipe(&mut pipe, &mut splitter)? {
                // There is no writer, and the next one may come at any time.
                splitter.writer_ended();
                thread::sleep(POLL);
                self.context.check().map_err(|_| CommandError::Interrupted)?;
            }
        }
    }

    /// Imports the blocks of standard input up to its end.
    pub(super) fn follow_input(&self, mut input: Input) -> Result<(), CommandError> {
        let mut splitter = BlockSplitter::starting_at(0);
        while self.read_pipe(&mut input, &mut splitter)? {}
        let got = splitter.incomplete() as u64;
        if got > 0 {
            let (offset, expected) = (splitter.offset(), splitter.needed());
            return Err(self.damaged(&self.path, StreamError::Truncated { offset, got, expected }));
        }
        if splitter.offset() == 0 {
            tracing::warn!("standard input has ended without a block, so nothing was followed");
        } else {
            tracing::info!("standard input has ended, and with it following");
        }
        Ok(())
    }

    /// Waits for bytes, and imports the blocks that they complete. Returns false if there is no writer.
    fn read_pipe(&self, pipe: &mut Input, splitter: &mut BlockSplitter) -> Result<bool, CommandError> {
        let mut bytes = vec![0; CHUNK];
        let count = pipe.read(&mut bytes).map_err(|source| self.unreadable(source))?;
        splitter.push(&bytes[..count]);
        let ignored = splitter.ignored();
        while let Some(block) = splitter.next_block().map_err(|error| self.damaged(&self.path, error))? {
            let newly = splitter.ignored() - ignored;
            if newly > 0 {
                tracing::warn!("a writer to {} ended within a block: {newly} bytes are ignored", self.path.display());
            }
            self.take(&block).map_err(|error| self.ended(&self.path, error))?;
        }
        Ok(count > 0)
    }
}
