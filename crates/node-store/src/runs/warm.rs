//! Reading the indexes and filters of a run in advance.

use super::block::Block;
use super::format::Handle;
use super::run::{Run, index_entry, read_handle_of};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::thread;

/// Number of frames that are read at the same time.
const THREADS: usize = 4;

impl Run {
    /// Reads all indexes and filters, so that they are in the caches: also in that of frames if `keep` is set. Ends when
    /// `left` is used up, the number of bytes that may still be read, or when `stop` is set. Returns whether all were read.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn warm(&self, keep: bool, left: &AtomicI64, stop: &AtomicBool) -> io::Result<bool> {
        self.warm_below(self.root(), self.properties().levels, keep, left, stop)
    }

    fn warm_below(
        &self,
        block: &Block,
        levels: usize,
        keep: bool,
        left: &AtomicI64,
        stop: &AtomicBool,
    ) -> io::Result<bool> {
        let mut frames = Vec::new();
        let mut entry = block.seek(&[])?;
        while let Some(found) = &mut entry {
            let mut reader = index_entry(found.value());
            while !reader.is_empty() {
                frames.push(read_handle_of(&mut reader)?);
            }
            if !found.advance()? {
                break;
            }
        }
        if levels > 1 {
            for handle in frames {
                let below = Block::new(self.content(handle, keep)?)?;
                if !self.warm_below(&below, levels - 1, keep, left, stop)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let next = AtomicUsize::new(0);
        let read = || -> io::Result<bool> {
            while let Some(Handle { offset, length }) = frames.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
                let bytes = i64::try_from(length).unwrap_or(i64::MAX);
                if stop.load(Ordering::Relaxed) || left.fetch_sub(bytes, Ordering::Relaxed) < bytes {
                    return Ok(false);
                }
                self.content(Handle { offset, length }, keep)?;
            }
            Ok(true)
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS.min(frames.len())).map(|_| scope.spawn(read)).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, io::Result<bool>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).try_fold(true, |all, done| Ok(all && done?))
        })
    }
}
