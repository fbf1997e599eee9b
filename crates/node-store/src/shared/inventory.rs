//! Checking that the runs exist that a manifest lists.

use super::error::SharedError;
use super::manifest::Content;
use super::names::RunName;
use super::objects::{Objects, ObjectsError};
use super::reader::Reader;
use std::fmt;
use std::sync::Arc;
use std::thread;

/// Number of runs that are looked for at the same time.
const PARALLEL: usize = 8;

/// A run that is not in the store as a manifest lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunFault {
    pub run: RunName,
    /// Its length in bytes, or `None` if it does not exist.
    pub found: Option<u64>,
    /// The length that it should have, or `None` if the manifest does not say: it was uploaded for a later one.
    pub expected: Option<u64>,
}

impl fmt::Display for RunFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.run.object();
        match (self.found, self.expected) {
            (Some(found), Some(expected)) => write!(formatter, "{name} has {found} bytes instead of {expected}"),
            _ => write!(formatter, "{name} is missing"),
        }
    }
}

/// Returns the runs of `content` that are missing or have another length. Asks for each of them, because listings may be
/// outdated. Does not read them.
///
/// # Errors
/// If the medium fails.
pub fn run_faults(objects: &dyn Objects, content: &Content) -> Result<Vec<RunFault>, ObjectsError> {
    let listed = content.numbered.iter().chain(&content.keyed).map(|run| (run.name, Some(run.size)));
    let runs: Vec<_> = listed.chain(content.pending.iter().map(|run| (*run, None))).collect();
    let fault = |(run, expected): (RunName, Option<u64>)| -> Result<Option<RunFault>, ObjectsError> {
        let found = objects.size(&run.object())?;
        let is_intact = found.is_some() && (expected.is_none() || found == expected);
        Ok((!is_intact).then_some(RunFault { run, found, expected }))
    };
    let part = |runs: &[(RunName, Option<u64>)]| {
        runs.iter().filter_map(|run| fault(*run).transpose()).collect::<Result<Vec<_>, _>>()
    };
    let parts = thread::scope(|scope| {
        let length = runs.len().div_ceil(PARALLEL).max(1);
        let threads: Vec<_> = runs.chunks(length).map(|runs| scope.spawn(|| part(runs))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()
    });
    Ok(parts?.concat())
}

/// Checks that the store has all runs that its newest manifest lists, with the right lengths. Does not read them.
///
/// # Errors
/// [`SharedError::Runs`] if it does not, and the errors of [`Reader::open`].
pub fn check_runs(objects: &Arc<dyn Objects>) -> Result<(), SharedError> {
    let newest = || Ok::<_, SharedError>(Reader::open(Arc::clone(objects))?.map(|(_, manifest)| manifest));
    let Some(mut manifest) = newest()? else { return Ok(()) };
    loop {
        let faults = run_faults(&**objects, &manifest.content)?;
        if faults.is_empty() {
            return Ok(());
        }
        // The writer may have replaced the manifest in the meantime, and deleted runs that the new one does not list.
        match newest()? {
            Some(newer) if newer.name != manifest.name => manifest = newer,
            _ => return Err(SharedError::Runs(faults)),
        }
    }
}
