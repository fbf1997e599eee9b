//! Becoming the writer of a shared store.

use crate::error::CommandError;
use crate::options::{RestoreArguments, Target};
use crate::server::notify::LongStart;
use node_core::backend::StateBackend;
use node_core::context::Context;
use node_store::{RestoreProgress, Store};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Minimum time between two log lines about progress.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// If `--restore` is given and `folder` has no chain, makes it from the shared store.
pub(crate) fn restore(
    arguments: &RestoreArguments,
    target: Option<&Target>,
    folder: Option<&Path>,
    context: &Context,
) -> Result<(), CommandError> {
    let (Some(_), Some(target)) = (&arguments.restore, target) else { return Ok(()) };
    let folder = folder.ok_or(CommandError::NoFolder { needed_by: "--restore" })?;
    let failed = |error| CommandError::store(folder, error);
    Store::check_usable(folder).map_err(failed)?;
    if Store::exists(folder) {
        tracing::info!("{} has a chain, so nothing is restored", folder.display());
        return Ok(());
    }
    let status = format!("restoring {} from {}", folder.display(), target.url);
    tracing::info!("{status}");
    let (mut start, mut last) = (LongStart::begin(status), Instant::now());
    let progress = |RestoreProgress { bytes, of }| {
        start.progress();
        if last.elapsed() >= LINE_INTERVAL {
            tracing::info!(bytes, of, "restoring");
            last = Instant::now();
        }
    };
    let head = Store::restore(folder, Arc::clone(&target.objects), context, progress).map_err(failed)?;
    tracing::info!("restored {} up to block {head} and what the log has", folder.display());
    Ok(())
}

/// Starts publishing the chain of `store`, whose folder is `folder`. Applies what another writer has added.
pub(crate) fn publish(store: &Store, folder: &Path, target: &Target) -> Result<(), CommandError> {
    let before = store.view()?.head();
    let published = store.publish(Arc::clone(&target.objects), target.options.clone());
    let faults = published.map_err(|error| CommandError::store(folder, error))?;
    if !faults.is_empty() {
        let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
        tracing::warn!(
            "the shared store lacks runs that its manifest lists: {}; those that the folder has are uploaded again, and \
             `verify --store` checks everything",
            faults.join(", ")
        );
    }
    let epoch = store.health().publication.map_or(0, |publication| publication.epoch);
    tracing::info!(epoch, sync = target.options.sync, "publishing to {}", target.url);
    let head = store.view()?.head();
    if head != before {
        tracing::info!("block {head} is the head in the shared store; it was block {before} in the folder");
    }
    Ok(())
}
