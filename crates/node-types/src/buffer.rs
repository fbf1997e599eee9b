//! The buffer for the JSON of a response.

use std::fmt;
use std::io;
use std::ops::Deref;

/// Capacity in bytes up to which it doubles.
const DOUBLING: usize = 1 << 20;

/// The next capacity in bytes. A buffer that needs more gets as much as it may ever have, so that it is never copied
/// again: the system provides memory only for the part that is written.
const MEDIUM: usize = 16 << 20;

/// Number of bytes of a long response for which an [`Allowance`] is asked at once.
const STEP: usize = 256 << 10;

/// Grants memory to a [`JsonBuffer`].
pub trait Allowance: Send + Sync {
    /// Returns the number of bytes that the buffer may have at most.
    fn most(&self) -> usize;

    /// Sets the number of bytes that the buffer holds. On an error it still holds as many as before, and it never fails
    /// for fewer.
    ///
    /// # Errors
    /// If the buffer may not have that many bytes.
    fn hold(&mut self, bytes: usize) -> Result<(), BufferFull>;
}

/// Why a buffer may not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BufferFull {
    /// The response is longer than any may be.
    #[error("the response would have more than {limit} bytes")]
    TooLong { limit: usize },
    /// It takes more memory than all responses together may.
    #[error("the response would have more than {limit} bytes, which all responses together may have")]
    OverMemory { limit: usize },
    /// Responses that clients have not read yet leave no memory for it.
    #[error(
        "the response and others that clients have not read take too much memory: they may have at most {limit} bytes, and one \
         client at most half of what the others leave free"
    )]
    NoMemory { limit: usize },
}

/// A buffer to which JSON is appended, and whose memory is granted before it is used.
///
/// Once the buffer is [full](Self::full), nothing more is appended until it is [truncated](Self::truncate), so that
/// writers need to check this only now and then.
///
/// # Examples
/// ```
/// use node_types::wire::{JsonBuffer, append_json};
///
/// let mut out = JsonBuffer::default();
/// append_json(&mut out, "text")?;
/// assert_eq!(&out[..], b"\"text\"");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Default)]
pub struct JsonBuffer {
    bytes: Vec<u8>,
    /// `None` if the memory is not limited.
    allowance: Option<Box<dyn Allowance>>,
    /// The number of bytes that were granted.
    granted: usize,
    /// The number of further bytes that are held for what the response is made from.
    aside: usize,
    full: Option<BufferFull>,
}

impl fmt::Debug for JsonBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, allowance: _, granted, aside, full } = self;
        let mut debug = f.debug_struct("JsonBuffer");
        debug.field("length", &bytes.len()).field("granted", granted).field("aside", aside).field("full", full);
        debug.finish_non_exhaustive()
    }
}

impl JsonBuffer {
    /// Creates an empty buffer with room for `capacity` bytes, which are not counted, and whose further memory
    /// `allowance` grants.
    pub fn within(allowance: impl Allowance + 'static, capacity: usize) -> Self {
        let granted = capacity.min(allowance.most());
        Self { bytes: Vec::new(), allowance: Some(Box::new(allowance)), granted, aside: 0, full: None }
    }

    /// Counts `bytes` of other memory as if they were part of the buffer, instead of those of an earlier call: for what
    /// the response is made from. [Truncating](Self::truncate) a full buffer ends this.
    ///
    /// # Errors
    /// If the buffer may not have as many. It is full then.
    pub fn set_aside(&mut self, bytes: usize) -> Result<(), BufferFull> {
        if let Some(full) = self.full {
            return Err(full);
        }
        if let Some(allowance) = &mut self.allowance {
            allowance.hold(self.granted.saturating_add(bytes)).inspect_err(|full| self.full = Some(*full))?;
            self.aside = bytes;
        }
        Ok(())
    }

    /// Counts only the buffer again, after [`set_aside`](Self::set_aside).
    pub fn return_aside(&mut self) {
        self.aside = 0;
        if let Some(allowance) = &mut self.allowance
            && let Err(full) = allowance.hold(self.granted)
        {
            self.full = Some(full);
        }
    }

    /// Appends `more`, unless the buffer is full.
    #[inline]
    pub fn extend_from_slice(&mut self, more: &[u8]) {
        if self.reserve(more.len()) {
            self.bytes.extend_from_slice(more);
        }
    }

    /// Appends one byte, unless the buffer is full.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        if self.reserve(1) {
            self.bytes.push(byte);
        }
    }

    /// Returns why the buffer was not allowed to grow, or `None` if it was.
    pub fn full(&self) -> Option<BufferFull> {
        self.full
    }

    /// Shortens the buffer to `length` bytes, which are then correct although it may have been full.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
        if self.full.take().is_some()
            && let Some(allowance) = &mut self.allowance
        {
            // What was not written is not needed any more.
            self.bytes.shrink_to(length + STEP);
            self.granted = self.granted.min(length + STEP);
            self.aside = 0;
            self.full = allowance.hold(self.granted).err();
        }
    }

    /// Replaces the byte at `index`, which must exist.
    ///
    /// # Panics
    /// If it does not.
    pub fn replace(&mut self, index: usize, byte: u8) {
        self.bytes[index] = byte;
    }

    /// Returns the bytes, and what has granted their memory, which counts as held until it is dropped.
    pub fn into_parts(self) -> (Vec<u8>, Option<Box<dyn Allowance>>) {
        (self.bytes, self.allowance)
    }

    /// Returns the part to which `more` bytes can be written in place, or `None` if the buffer is full.
    pub(crate) fn extend_zeroed(&mut self, more: usize, zero: u8) -> Option<&mut [u8]> {
        if !self.reserve(more) {
            return None;
        }
        let start = self.bytes.len();
        self.bytes.resize(start + more, zero);
        Some(&mut self.bytes[start..])
    }

    /// Makes room for `more` bytes. Returns `false` if the buffer is full.
    #[inline]
    fn reserve(&mut self, more: usize) -> bool {
        let length = self.bytes.len().saturating_add(more);
        let fits =
            self.full.is_none() && (self.allowance.is_none() || length <= self.granted.min(self.bytes.capacity()));
        fits || self.grow(length)
    }

    #[cold]
    fn grow(&mut self, length: usize) -> bool {
        let (Some(allowance), None) = (&mut self.allowance, self.full) else { return false };
        let most = allowance.most();
        if length > self.granted {
            // The exact length is a last attempt.
            let step = length.saturating_add(STEP.min(length / 2)).min(most.max(length));
            let mut hold = |bytes: usize| allowance.hold(bytes.saturating_add(self.aside)).map(|()| bytes);
            let granted = hold(step).or_else(|_| hold(length));
            match granted {
                Ok(granted) => self.granted = granted,
                Err(full) => {
                    self.full = Some(full);
                    return false;
                }
            }
        }
        if length > self.bytes.capacity() {
            let capacity = if length <= DOUBLING {
                length.max(512).next_power_of_two()
            } else if length <= MEDIUM {
                MEDIUM
            } else {
                most
            };
            self.bytes.reserve_exact(capacity.max(length) - self.bytes.len());
        }
        true
    }
}

impl Deref for JsonBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<JsonBuffer> for Vec<u8> {
    fn from(buffer: JsonBuffer) -> Self {
        buffer.bytes
    }
}

impl From<Vec<u8>> for JsonBuffer {
    /// Creates a buffer whose memory is not limited.
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, ..Self::default() }
    }
}

/// Fails once the buffer is full, so that serialization ends.
impl io::Write for JsonBuffer {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        self.write_all(more).map(|()| more.len())
    }

    #[inline]
    fn write_all(&mut self, more: &[u8]) -> io::Result<()> {
        self.extend_from_slice(more);
        match self.full {
            None => Ok(()),
            Some(full) => Err(io::Error::other(full)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::wire::append_json;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Limit {
        most: usize,
        free: usize,
        held: Arc<AtomicUsize>,
    }

    impl Allowance for Limit {
        fn most(&self) -> usize {
            self.most
        }

        fn hold(&mut self, bytes: usize) -> Result<(), BufferFull> {
            if bytes > self.most {
                return Err(BufferFull::TooLong { limit: self.most });
            }
            if bytes > self.free {
                return Err(BufferFull::NoMemory { limit: self.free });
            }
            self.held.store(bytes, Ordering::Relaxed);
            Ok(())
        }
    }

    fn buffer(most: usize, free: usize) -> (JsonBuffer, Arc<AtomicUsize>) {
        let held = Arc::<AtomicUsize>::default();
        (JsonBuffer::within(Limit { most, free, held: held.clone() }, 100), held)
    }

    #[test]
    fn memory_is_granted_before_it_is_used() {
        let (mut out, held) = buffer(64 << 20, 64 << 20);
        out.extend_from_slice(&[b'a'; 100]);
        assert_eq!(held.load(Ordering::Relaxed), 0, "short responses are not counted");
        for _ in 0..40 << 10 {
            out.extend_from_slice(&[b'a'; 1 << 10]);
            let held = held.load(Ordering::Relaxed);
            assert!((out.len()..=out.len() + STEP).contains(&held), "{} of {held}", out.len());
        }
        assert_eq!(out.full(), None);
    }

    #[test]
    fn a_full_buffer_takes_nothing_until_it_is_truncated() {
        for (most, free, full) in [
            (1_000, 2_000, BufferFull::TooLong { limit: 1_000 }),
            (2_000, 1_000, BufferFull::NoMemory { limit: 1_000 }),
        ] {
            let (mut out, _) = buffer(most, free);
            out.extend_from_slice(&[b'a'; 1_000]);
            assert_eq!(out.full(), None);
            out.push(b'b');
            assert_eq!((out.full(), out.len()), (Some(full), 1_000));
            out.truncate(10);
            assert_eq!(out.full(), None);
            out.push(b'b');
            assert_eq!(&out[..], b"aaaaaaaaaab");
        }
    }

    #[test]
    fn serialization_ends_when_the_buffer_is_full() {
        let (mut out, _) = buffer(1_000, 1_000);
        assert!(append_json(&mut out, &vec!["text"; 1_000]).is_err());
        assert!(out.len() <= 1_000 && out.full().is_some());
    }
}
