//! Reading damaged runs as if their checksums were right, for tests of what checksums keep away from the reader.

use super::format::{FOOTER, RunId};
use super::{Run, RunsShared};
use crate::files::Object;
use std::io;
use std::sync::Arc;
use twox_hash::XxHash3_64;

/// The bytes of a run. Whatever is read of them ends with the checksum that the reader expects.
#[derive(Debug)]
struct Resealed(Vec<u8>);

const RUN: RunId = RunId(1);

impl Object for Resealed {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = start.checked_add(buffer.len()).and_then(|end| self.0.get(start..end));
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        let is_footer = buffer.len() == FOOTER && start + FOOTER == self.0.len();
        let seed = RUN.seed(if is_footer { u64::MAX } else { offset });
        if let Some((content, sum)) = buffer.split_last_chunk_mut() {
            *sum = XxHash3_64::oneshot_with_seed(seed, content).to_be_bytes();
        }
        Ok(())
    }
}

/// Reads all rows, and searches for each of their keys. Returns their number.
pub(crate) fn read_run(bytes: &[u8]) -> io::Result<usize> {
    let run = Arc::new(Run::read(Arc::new(Resealed(bytes.to_vec())), RUN, RunsShared::new(1 << 20))?);
    let mut rows = 0;
    let mut next = run.scan(&[])?;
    while let Some(cursor) = &mut next {
        rows += 1;
        let key = cursor.key();
        // In an inconsistent run it may be absent.
        if let Some(found) = run.seek_part(key, key)? {
            assert!(found.key() >= key, "{:02x?} is below {key:02x?}", found.key());
        }
        if !cursor.advance()? {
            next = None;
        }
    }
    Ok(rows)
}
