//! Following a file that grows.

use super::{CHUNK, Follower, POLL};
use crate::chain::import_mark::{ImportMark, Resumed};
use crate::error::{CommandError, Sources};
use node_chain::BlockSplitter;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

/// Minimum time between two records of how far the file was imported. After a kill, the blocks since the last one are
/// read again.
const MARK_INTERVAL: Duration = Duration::from_secs(10);

/// A file with its blocks so far.
struct Open {
    file: File,
    splitter: BlockSplitter,
    /// Number of bytes that were read.
    position: u64,
    /// Number of blocks in them.
    blocks: u64,
}

/// The place of a block in the file, and the number of blocks up to it.
type Last = (Range<u64>, u64);

impl Follower {
    /// Imports the blocks of a file as it grows, until following ends. If the file is replaced or overwritten, begins
    /// again with the new content.
    pub(super) fn follow_file(&self) -> Result<(), CommandError> {
        let backend = &**self.importer.backend();
        let mut marked = Instant::now();
        let mut last = None;
        let resumed = ImportMark::resume(backend, &self.path)?;
        let followed = self.open_at(resumed).and_then(|mut open| {
            loop {
                self.context.check().map_err(|_| CommandError::Interrupted)?;
                if self.read_file(&mut open, &mut last)? {
                    continue;
                }
                if marked.elapsed() >= MARK_INTERVAL {
                    self.mark(last.take());
                    marked = Instant::now();
                }
                if self.is_other(&open).map_err(|source| self.unreadable(source))? {
                    tracing::warn!("{} was replaced, so it is read from its beginning", self.path.display());
                    (open, last) = (self.open_at(Resumed::default())?, None);
                    continue;
                }
                thread::sleep(POLL);
            }
        });
        self.mark(last);
        followed
    }

    fn open_at(&self, Resumed { offset, blocks }: Resumed) -> Result<Open, CommandError> {
        let open = || -> io::Result<File> {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(offset))?;
            Ok(file)
        };
        let file = open().map_err(|source| self.unreadable(source))?;
        Ok(Open { file, splitter: BlockSplitter::starting_at(offset), position: offset, blocks })
    }

    /// Imports the blocks in the next bytes. A block that is not complete is waited for. Returns false at the end of the
    /// file.
    fn read_file(&self, open: &mut Open, last: &mut Option<Last>) -> Result<bool, CommandError> {
        let mut bytes = vec![0; CHUNK];
        let count = open.file.read(&mut bytes).map_err(|source| self.unreadable(source))?;
        open.position += count as u64;
        open.splitter.push(&bytes[..count]);
        while let Some(block) = open.splitter.next_block().map_err(|error| self.damaged(&self.path, error))? {
            self.take(&block).map_err(|error| self.ended(&self.path, error))?;
            open.blocks += 1;
            *last = Some((block.offset..block.end(), open.blocks));
        }
        Ok(count > 0)
    }

    /// Returns whether the path has another file now, or the same one with less content. A file that was removed may
    /// come again.
    fn is_other(&self, open: &Open) -> io::Result<bool> {
        let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
        let found = match self.path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            found => found?,
        };
        Ok(identity(&found) != identity(&open.file.metadata()?) || found.len() < open.position)
    }

    /// Records how far the file was imported.
    fn mark(&self, last: Option<Last>) {
        let Some((place, blocks)) = last else { return };
        if let Err(error) = ImportMark::record(&**self.importer.backend(), &self.path, place, blocks) {
            // The next start reads the file again.
            tracing::warn!("cannot record how far {} was imported: {}", self.path.display(), Sources(&error));
        }
    }
}
