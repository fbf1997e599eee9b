//! Deleting what writers left that ended between an upload and the manifest that would have listed it.

use super::error::SharedError;
use super::names::{Epoch, MANIFESTS, ManifestName, RUNS, RunName};
use super::objects::Objects;
use std::collections::BTreeSet;

/// Recognizes objects of earlier writers that no manifest ever listed, or that are left of an interrupted collection.
#[derive(Clone, Debug)]
pub struct Sweep {
    pub(super) epoch: Epoch,
    pub(super) newest: Option<ManifestName>,
    /// The older manifests that are kept.
    pub(super) manifests: BTreeSet<ManifestName>,
    /// The runs that the newest and older manifests list.
    pub(super) runs: BTreeSet<RunName>,
}

impl Sweep {
    /// Lists manifests and runs, and deletes those that are not needed. Returns how many it deleted.
    ///
    /// Runs of this epoch remain: they may be listed soon. Those of earlier epochs can no longer be.
    ///
    /// # Errors
    /// If the medium fails.
    pub fn run(&self, objects: &dyn Objects) -> Result<u64, SharedError> {
        let is_left_run = |object: &str| {
            RunName::of_object(object).is_some_and(|run| run.epoch < self.epoch && !self.runs.contains(&run))
        };
        let is_left_manifest = |object: &str| {
            let name = ManifestName::of_object(object).filter(|name| name.epoch <= self.epoch);
            name.is_some_and(|name| {
                self.newest.is_some_and(|newest| name.position < newest.position) && !self.manifests.contains(&name)
            })
        };
        Ok(sweep(objects, RUNS, is_left_run)? + sweep(objects, MANIFESTS, is_left_manifest)?)
    }
}

fn sweep(objects: &dyn Objects, folder: &str, is_left: impl Fn(&str) -> bool) -> Result<u64, SharedError> {
    let (mut deleted, mut after) = (0, None);
    loop {
        let page = objects.list(folder, after.as_deref())?;
        for object in page.iter().filter(|object| is_left(object)) {
            objects.delete(object)?;
            deleted += 1;
        }
        let Some(last) = page.into_iter().next_back() else { return Ok(deleted) };
        after = Some(last);
    }
}
