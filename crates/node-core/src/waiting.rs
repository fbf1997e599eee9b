//! Work that must not wait for a disk or a network, or take long.
//!
//! A thread that serves many clients runs short work itself, but other clients must not wait for it. It runs the work
//! with [`without_waiting`]. A backend that would have to wait, or an executor that would be busy for long,
//! [refuses](refuse) instead, and the work is repeated on a thread of its own. The same happens if the deadline of its
//! [context](crate::context::Context::check) passes.
//!
//! Work that may wait can still occupy a thread that other work needs. It waits [`aside`] if it may take long, so that the
//! [`Place`] of its thread can be given away in the meantime.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

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

/// A place among those that run work at the same time, such as a thread of a pool.
pub trait Place {
    /// Called when work begins to wait. Returns whether the place was given up.
    fn leave(&self) -> bool;

    /// Called when work that left goes on.
    fn enter(&self);
}

thread_local! {
    /// `None` if nobody else needs this thread.
    static PLACE: RefCell<Option<Rc<dyn Place>>> = const { RefCell::new(None) };
}

/// Sets what the work on this thread gives up while it waits [`aside`], for as long as the thread lives.
pub fn set_place(place: Rc<dyn Place>) {
    PLACE.set(Some(place));
}

/// Takes the place again that was given up, even if waiting panics.
struct Aside(Rc<dyn Place>);

impl Drop for Aside {
    fn drop(&mut self) {
        self.0.enter();
        set_place(Rc::clone(&self.0));
    }
}

/// Waits for another machine, or for a lock whose holder may do so, and gives up the place of this thread meanwhile.
pub fn aside<T>(wait: impl FnOnce() -> T) -> T {
    let place = PLACE.with_borrow(Clone::clone);
    let _aside = place.filter(|place| place.leave()).map(|place| {
        // It is given up once.
        PLACE.set(None);
        Aside(place)
    });
    wait()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[derive(Default)]
    struct Counted {
        inside: Cell<i32>,
        is_full: Cell<bool>,
    }

    impl Place for Counted {
        fn leave(&self) -> bool {
            let leaves = !self.is_full.get();
            self.inside.set(self.inside.get() - i32::from(leaves));
            leaves
        }

        fn enter(&self) {
            self.inside.set(self.inside.get() + 1);
        }
    }

    #[test]
    fn work_that_waits_aside_gives_up_its_place_and_takes_it_again() {
        let place = Rc::new(Counted::default());
        assert_eq!(aside(|| 7), 7);
        set_place(place.clone());
        assert_eq!(aside(|| place.inside.get()), -1);
        assert_eq!(aside(|| aside(|| place.inside.get())), -1);
        assert_eq!(place.inside.get(), 0);
        assert!(catch_unwind(|| aside(|| panic!("a defect"))).is_err());
        assert_eq!(place.inside.get(), 0);
        place.is_full.set(true);
        assert_eq!(aside(|| place.inside.get()), 0);
        assert_eq!(place.inside.get(), 0);
    }

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
