//! Becoming the writer of a shared store.

use crate::error::{CommandError, Sources};
use crate::options::{RestoreArguments, Target, check_apart};
use crate::server::notify::{self, LongStart};
use node_core::backend::{BackendError, StateBackend};
use node_core::context::Context;
use node_store::shared::Fault;
use node_store::{PublishOptions, RestoreProgress, Store, StoreError};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Minimum time between two log lines about progress.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Minimum time between two log lines about a store that does not respond.
const OUTAGE_INTERVAL: Duration = Duration::from_secs(30);

/// Repeats `start` as long as it fails because the shared store at `url` does not respond, until `context` is cancelled.
pub(crate) fn outlast_outage<T>(
    url: &str,
    context: &Context,
    mut start: impl FnMut() -> Result<T, BackendError>,
) -> Result<T, BackendError> {
    let mut last: Option<Instant> = None;
    loop {
        let error = match start() {
            Err(BackendError::Storage(error)) if is_outage(&*error) => error,
            done => return done,
        };
        context.check()?;
        if last.is_none_or(|last| last.elapsed() >= OUTAGE_INTERVAL) {
            tracing::warn!("waiting for the shared store {url}: {}", Sources(&*error));
            last = Some(Instant::now());
        }
        notify::starting(format_args!("waiting for the shared store {url}"));
    }
}

/// Returns whether the shared store does not respond, which will probably be over at some time.
fn is_outage(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref().and_then(StoreError::shared_fault) == Some(Fault::Transient)
}

/// If `--restore` is given and `folder` has no chain, makes it from the shared store.
pub(crate) fn restore(
    arguments: &RestoreArguments,
    target: Option<&Target>,
    folder: Option<&Path>,
    context: &Context,
) -> Result<(), CommandError> {
    let (Some(_), Some(target)) = (&arguments.restore, target) else { return Ok(()) };
    let folder = folder.ok_or(CommandError::NoFolder { needed_by: "--restore" })?;
    check_apart(&target.url, folder)?;
    let failed = |error| CommandError::store(folder, error);
    Store::check_usable(folder).map_err(failed)?;
    if Store::exists(folder) {
        tracing::info!("{} has a chain, so nothing is restored", folder.display());
        return Ok(());
    }
    let status = format!("restoring {} from {}", folder.display(), target.url);
    tracing::info!("{status}");
    let (mut start, mut last) = (LongStart::begin(status), Instant::now());
    let mut progress = |RestoreProgress { bytes, of }| {
        start.progress();
        if last.elapsed() >= LINE_INTERVAL {
            tracing::info!(bytes, of, "restoring");
            last = Instant::now();
        }
    };
    let restore = || Store::restore(folder, Arc::clone(&target.objects), context, &mut progress);
    let head = outlast_outage(&target.url, context, restore).map_err(failed)?;
    tracing::info!("restored {} up to block {head} and what the log has", folder.display());
    Ok(())
}

/// Starts publishing the chain of `store`, whose folder is `folder`. Applies what another writer has added. When `context` is
/// cancelled, this fails, and later changes no longer wait for the store.
pub(crate) fn publish(store: &Store, folder: &Path, target: &Target, context: &Context) -> Result<(), CommandError> {
    let before = store.view()?.head();
    let options = PublishOptions { context: context.clone(), ..target.options.clone() };
    let publish = || store.publish(Arc::clone(&target.objects), options.clone());
    let published = if target.waits { outlast_outage(&target.url, context, publish) } else { publish() };
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
