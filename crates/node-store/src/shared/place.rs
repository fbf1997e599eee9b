//! Creating and reading objects although answers are lost and reads are torn.

use super::error::{FormatError, SharedError};
use super::objects::{Creation, Objects, ObjectsError};

/// Number of attempts before an object is considered damaged, or deleted, rather than read or created at a bad moment.
const ATTEMPTS: usize = 8;

/// The outcome of an attempt to create an object.
pub(super) enum Placed {
    /// The object exists with the given bytes.
    Ours,
    /// It exists with other bytes.
    Theirs(Vec<u8>),
    /// It seems to exist, and then not to.
    Gone,
}

/// Creates the object `name`, unless it exists. `is_intact` is whether bytes are a whole object of this name.
///
/// Some services refuse one of several simultaneous creations as if the object existed, although it does not in the
/// end. An object that was created by an attempt whose answer was lost is recognized by its bytes.
pub(super) fn place(
    objects: &dyn Objects,
    name: &str,
    bytes: &[u8],
    is_intact: impl Fn(&[u8]) -> bool,
) -> Result<Placed, ObjectsError> {
    let mut found = None;
    for _ in 0..ATTEMPTS {
        if objects.create(name, bytes)? == Creation::Created {
            return Ok(Placed::Ours);
        }
        match objects.get(name)? {
            Some(theirs) if theirs == bytes => return Ok(Placed::Ours),
            Some(theirs) if is_intact(&theirs) => return Ok(Placed::Theirs(theirs)),
            other => found = other,
        }
    }
    Ok(found.map_or(Placed::Gone, Placed::Theirs))
}

/// Reads and decodes a whole object. Returns `None` if it does not exist.
pub(super) fn fetch<T>(
    objects: &dyn Objects,
    name: &str,
    decode: impl Fn(&[u8]) -> Result<T, FormatError>,
) -> Result<Option<T>, SharedError> {
    let mut attempts = 1;
    loop {
        let Some(bytes) = objects.get(name)? else { return Ok(None) };
        match decode(&bytes) {
            Ok(decoded) => return Ok(Some(decoded)),
            Err(FormatError::Damaged { .. }) if attempts < ATTEMPTS => attempts += 1,
            Err(error) => return Err(error.into()),
        }
    }
}
