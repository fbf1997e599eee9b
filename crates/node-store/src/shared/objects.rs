//! The port to a medium of named, immutable objects.

use super::retry::Cancel;
use crate::files::Object;
use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of names in a page of a listing.
pub const PAGE: usize = 1000;

/// Named objects that are created once, read in parts and deleted, such as those of a bucket.
///
/// Names consist of a folder and a name in it, `log/1`. Reads of a single name see every creation and deletion that
/// returned before. Listings may lag behind. A call that fails with [`Fault::Transient`] may have taken effect.
///
/// All methods wait for the medium, so they must not be called on threads that serve connections.
///
/// # Errors
/// All methods fail if the medium does.
#[expect(clippy::missing_errors_doc, reason = "stated once for all methods")]
pub trait Objects: Debug + Send + Sync {
    /// Creates an object, unless the name exists. Of several callers, one creates it. It is durable when this returns,
    /// and so is the existing one.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, ObjectsError>;

    /// Copies `content` to the object `name`, with a bounded part of it in memory. Does nothing if an object of this
    /// name and size exists: everyone who uploads to a name uploads the same bytes.
    fn upload(&self, name: &str, content: &dyn Object) -> Result<(), ObjectsError>;

    /// Returns a whole object, or `None` if it does not exist.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectsError>;

    /// Returns whole objects, read at the same time where the medium can.
    fn get_many(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, ObjectsError> {
        names.iter().map(|name| self.get(name)).collect()
    }

    /// Returns parts of an object, or `None` if it does not exist. Fails if it ends before the end of a range.
    fn read(&self, name: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<Vec<u8>>>, ObjectsError>;

    /// Returns one part of an object, like [`read`](Self::read).
    fn read_range(&self, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>, ObjectsError> {
        Ok(self.read(name, std::slice::from_ref(&range))?.map(|parts| parts.concat()))
    }

    /// Returns the length of an object in bytes, or `None` if it does not exist.
    fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError>;

    /// Returns the next names in `folder` after the name `after`, in ascending order; at most [`PAGE`], and none at the
    /// end.
    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, ObjectsError>;

    /// Deletes an object. Does nothing if it does not exist.
    fn delete(&self, name: &str) -> Result<(), ObjectsError>;

    /// Makes operations fail with [`Fault::Cancelled`] when `cancel` is cancelled, as far as the medium can give up waiting.
    /// Replaces what an earlier call set.
    fn end_with(&self, _cancel: &Arc<Cancel>) {}
}

/// Whether a creation created the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    Created,
    /// The name exists. It may be the caller's own object, if an earlier attempt took effect but appeared to fail.
    Exists,
}

/// An operation on the medium failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {name} in the shared store")]
#[non_exhaustive]
pub struct ObjectsError {
    pub fault: Fault,
    pub action: &'static str,
    pub name: String,
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// What a failure means to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The medium cannot be reached, is overloaded or fails. The operation may have taken effect, and can be repeated.
    Transient,
    /// The medium does not accept the credentials, or they do not permit the operation.
    Permission,
    /// Repeating the operation would fail again.
    Permanent,
    /// The caller was asked to stop waiting.
    Cancelled,
}

impl ObjectsError {
    /// Creates the error for an operation on the object `name`.
    pub fn new(
        fault: Fault,
        action: &'static str,
        name: &str,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { fault, action, name: name.to_owned(), source: source.into() }
    }

    /// Creates the error for a failure of the operating system.
    pub(super) fn io(action: &'static str, name: &str, error: io::Error) -> Self {
        let fault = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Fault::Permission,
            io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidFilename
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::UnexpectedEof => Fault::Permanent,
            _ => Fault::Transient,
        };
        Self::new(fault, action, name, error)
    }
}

/// Returns parts of `bytes`, the content of an object.
pub(super) fn parts(name: &str, bytes: &[u8], ranges: &[Range<u64>]) -> Result<Vec<Vec<u8>>, ObjectsError> {
    let part = |range: &Range<u64>| {
        let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        Some(bytes.get(range)?.to_vec())
    };
    ranges.iter().map(|range| part(range).ok_or_else(|| short(name))).collect()
}

/// Returns the error for an object that ends before the end of a range. Objects appear as a whole, so this one is damaged.
pub(super) fn short(name: &str) -> ObjectsError {
    ObjectsError::new(Fault::Permanent, "read", name, "it is truncated")
}
