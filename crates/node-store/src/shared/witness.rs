//! Noticing that a store has disappeared.

use super::error::SharedError;
use super::log::LogHeader;
use super::objects::Objects;
use super::reader::header;

/// The first object of a writer's epoch. No one ever deletes it, so if it does not exist, the store is another one.
///
/// Creating the next object of the log does not show that: in a bucket that was emptied, the name is free.
#[derive(Clone, Copy, Debug)]
pub struct Witness(pub(super) LogHeader);

impl Witness {
    /// Checks that the store is still there, with one small read.
    ///
    /// # Errors
    /// [`SharedError::Vanished`] if it is not, and if the medium fails.
    pub fn check(&self, objects: &dyn Objects) -> Result<(), SharedError> {
        match header(objects, self.0.number)? {
            Some(found) if found.sum() == self.0.sum() => Ok(()),
            _ => Err(SharedError::Vanished(self.0.number)),
        }
    }
}
