//! Finding out which frames a read needs, so that those of runs on another machine are read together.

use super::block::Block;
use super::filter;
use super::format::{Handle, open_frame};
use super::run::{Run, index_entry, read_handle_of};
use std::io;
use std::sync::Arc;

/// What is known about the rows of a key, from frames that need not be read from another machine.
pub(crate) enum Known {
    /// The run has no such row.
    Absent,
    /// The run is likely to have the row, in this frame if it must be fetched.
    Likely(Option<Handle>),
    /// These frames show more.
    Unknown(Vec<Handle>),
}

impl Run {
    /// Returns whether reads may need another machine.
    pub(crate) fn is_remote(&self) -> bool {
        self.file().is_remote()
    }

    /// Returns what is known about the first row at or above `key`. `part` is the [`filter_part`](crate::keys::filter_part)
    /// of the rows wanted, if their table has filters.
    pub(crate) fn known(&self, part: Option<&[u8]>, key: &[u8]) -> io::Result<Known> {
        let Some(top) = self.root().value_at(key)? else { return Ok(Known::Absent) };
        let mut below;
        let mut reader = index_entry(top);
        for _ in 1..self.properties().levels {
            let handle = read_handle_of(&mut reader)?;
            let Some(content) = self.near(handle)? else { return Ok(Known::Unknown(vec![handle])) };
            below = Block::new(content)?;
            reader = index_entry(below.value_at(key)?.ok_or_else(|| self.inconsistent())?);
        }
        let index = read_handle_of(&mut reader)?;
        let mut missing = Vec::new();
        if let Some(part) = part
            && !reader.is_empty()
        {
            let handle = read_handle_of(&mut reader)?;
            match self.near(handle)? {
                Some(filter) if !filter::may_have(&filter, filter::hash(part)) => return Ok(Known::Absent),
                Some(_) => {}
                None => missing.push(handle),
            }
        }
        let found = match self.near(index)? {
            Some(content) => Block::new(content)?.value_at(key)?.map(<[u8]>::to_vec),
            None => {
                missing.push(index);
                None
            }
        };
        if !missing.is_empty() {
            return Ok(Known::Unknown(missing));
        }
        let rows = read_handle_of(&mut index_entry(&found.ok_or_else(|| self.inconsistent())?))?;
        let is_near = self.near(rows)?.is_some();
        Ok(Known::Likely((!is_near).then_some(rows)))
    }

    /// Returns the content of a frame, or `None` if it must be read from another machine.
    fn near(&self, handle: Handle) -> io::Result<Option<Arc<[u8]>>> {
        if let Some(content) = self.cached(handle) {
            return Ok(Some(content));
        }
        let range = handle.offset..handle.offset.saturating_add(handle.length);
        if self.file().is_near(&range) { Ok(Some(self.content(handle, true)?)) } else { Ok(None) }
    }

    /// Reads frames at the same time, and caches them. One that is damaged is not cached: whoever needs it will read it
    /// again and fail.
    pub(crate) fn fetch(&self, frames: &[Handle]) -> io::Result<()> {
        let end = |frame: &Handle| frame.offset.checked_add(frame.length).filter(|end| *end <= self.size());
        let ranges: Option<Vec<_>> = frames.iter().map(|frame| Some(frame.offset..end(frame)?)).collect();
        let ranges = ranges.ok_or_else(|| self.inconsistent())?;
        for (frame, bytes) in frames.iter().zip(self.file().read_many(&ranges)?) {
            if let Ok(content) = open_frame(self.id(), frame.offset, &bytes) {
                self.cache(*frame, content);
            }
        }
        Ok(())
    }
}
