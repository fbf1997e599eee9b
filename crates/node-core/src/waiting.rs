//! Work that must not wait for a disk or a network, or take long.
//!
//! A thread that serves many clients runs short work itself, but other clients must not wait for it. It runs the work
//! with [`without_waiting`]. A backend that would have to wait, or an executor that would be busy for long,
//! [refuses](refuse) instead, and the work is repeated on a thread of its own. The same happens if the deadline of its
//! [context](crate::context::Context::check) passes.

use std::cell::Cell;
use std::io;

#[derive(Clone, Copy, PartialEq)]
enum Waiting {
    Allowed,
    Forbidden,
    /// Forbidden, and the work would have had to wait, or taken too long.
    Refused,
}

thread_local! {
    static WAITING: Cell<Waiting> = const { Cell::new(Waiting::Allowed) };
}

/// Restores the state of the thread, even if the work panics.
struct Restore(Waiting);

impl Drop for Restore {
    fn drop(&mut self) {
        WAITING.set(self.0);
    }
}

/// Runs `work` on this thread, which may not wait in the meantime. Returns `None` if the work was refused because it
/// would have had to wait or took too long; it must be repeated on a thread that may wait.
///
/// # Examples
/// ```
/// use node_core::waiting;
///
/// let read_from_disk = || if waiting::is_allowed() { Ok(7) } else { Err(waiting::refuse()) };
/// assert!(waiting::without_waiting(read_from_disk).is_none());
/// assert_eq!(read_from_disk().unwrap(), 7);
/// assert_eq!(waiting::without_waiting(|| 8), Some(8));
/// ```
pub fn without_waiting<T>(work: impl FnOnce() -> T) -> Option<T> {
    let _restore = Restore(WAITING.replace(Waiting::Forbidden));
    let result = work();
    (WAITING.get() == Waiting::Forbidden).then_some(result)
}

/// Returns whether work on this thread may wait and take long.
pub fn is_allowed() -> bool {
    WAITING.get() == Waiting::Allowed
}

/// Records that the work on this thread would have to wait, or take long. Returns an error of the kind
/// [`io::ErrorKind::WouldBlock`], with which the read fails.
pub fn refuse() -> io::Error {
    if !is_allowed() {
        WAITING.set(Waiting::Refused);
    }
    io::ErrorKind::WouldBlock.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn the_state_of_the_thread_is_restored() {
        assert!(catch_unwind(|| without_waiting(|| panic!("a defect"))).is_err());
        assert!(is_allowed());
        let outer = without_waiting(|| {
            assert!(without_waiting(refuse).is_none());
            is_allowed()
        });
        assert_eq!(outer, Some(false));
        assert!(is_allowed());
    }
}
