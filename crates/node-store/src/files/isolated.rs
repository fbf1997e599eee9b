//! Reads of the database whose failure affects no others.
//!
//! After an error of its file, redb refuses every further operation until the database is opened again. One damaged page
//! would end all reads. So an isolated read that fails does not return to redb: it unwinds through redb's reading code,
//! which holds no lock while it reads a page, and becomes an error in the function that began the read.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

thread_local! {
    /// Whether the thread is within [`isolated`].
    static ISOLATED: Cell<bool> = const { Cell::new(false) };
}

/// The payload of the unwinding.
struct FailedRead(io::Error);

/// Runs `read`, which must use the database only through read transactions. A failed read of the file ends it.
///
/// # Errors
/// The error of the file.
pub(crate) fn isolated<T>(read: impl FnOnce() -> T) -> io::Result<T> {
    let outer = ISOLATED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    ISOLATED.set(outer);
    result.or_else(|payload| match payload.downcast::<FailedRead>() {
        Ok(failed) => Err(failed.0),
        Err(panic) => resume_unwind(panic),
    })
}

/// Ends the isolated read that this thread is in, if it is in one; otherwise returns the error.
pub(super) fn end_isolated(error: io::Error) -> io::Error {
    if ISOLATED.get() {
        // Unlike a panic, this prints nothing.
        resume_unwind(Box::new(FailedRead(error)));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_the_error_of_the_innermost_read() {
        let failed = || isolated(|| end_isolated(io::Error::other("damaged")));
        let both = isolated(|| (failed().unwrap_err().to_string(), isolated(|| 7).unwrap()));
        assert_eq!(both.unwrap(), ("damaged".to_owned(), 7));
        let after = isolated(|| {
            failed().unwrap_err();
            end_isolated(io::Error::other("second"))
        });
        assert_eq!(after.unwrap_err().to_string(), "second");
        assert_eq!(end_isolated(io::Error::other("outside")).to_string(), "outside");
        let panicked = catch_unwind(|| isolated(|| panic!("of something else")));
        assert!(panicked.is_err());
    }
}
