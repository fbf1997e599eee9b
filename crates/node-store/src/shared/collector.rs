//! Deleting what no reader needs any longer.

use super::error::SharedError;
use super::names::{LogNumber, ManifestName, RunName};
use super::objects::Objects;
use std::collections::BTreeSet;
use std::ops::Range;

/// Objects that are no longer needed. [`Writer::collection`](super::Writer::collection) determines them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Manifests, the oldest first.
    pub(super) manifests: Vec<ManifestName>,
    pub(super) log: Range<LogNumber>,
    /// The objects in `log` that must remain.
    pub(super) fences: BTreeSet<LogNumber>,
    pub(super) runs: Vec<RunName>,
}

impl Collection {
    /// Returns whether nothing is to be deleted.
    pub fn is_empty(&self) -> bool {
        self.manifests.is_empty() && self.log.is_empty() && self.runs.is_empty()
    }

    /// Deletes the objects. After an error, the same or a later collection can be run; objects that do not exist are no
    /// error.
    ///
    /// Manifests are deleted before the objects of the log that they need: whoever finds a manifest after it missed an
    /// object of the log knows that the object was not deleted.
    ///
    /// # Errors
    /// If the medium fails.
    pub fn run(&self, objects: &dyn Objects) -> Result<(), SharedError> {
        for manifest in &self.manifests {
            objects.delete(&manifest.object())?;
        }
        for number in (self.log.start.0..self.log.end.0).map(LogNumber) {
            // A fence is what an earlier writer finds that has not noticed its end. Without it, that writer could create
            // the number, and would acknowledge what no one reads.
            if !self.fences.contains(&number) {
                objects.delete(&number.object())?;
            }
        }
        for run in &self.runs {
            objects.delete(&run.object())?;
        }
        Ok(())
    }
}
