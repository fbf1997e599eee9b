//! Reactions to failures to store changes or to read stored data.

use crate::error::{CommandError, Sources};
use crate::logging::print;
use crate::options::OperationOptions;
use node_core::backend::{BackendHealth, StateBackend};
use node_core::context::Context;
use node_http::Starting;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tracing::Level;

/// The exit status.
const STATUS: i32 = 3;

/// Time between two checks.
const INTERVAL: Duration = Duration::from_millis(200);

/// Time between two log lines about an upload.
const UPLOAD_INTERVAL: Duration = Duration::from_secs(10);

/// The reason for a failure that began and ended between two checks.
const OVER: &str = "for a moment; the log line of the request that failed has the reason";

/// Starts watching `backend`: logs when it cannot store changes or read stored data, and when it can again. Depending
/// on `options`, exits the process instead. Acknowledged changes are durable, so nothing has to be completed before
/// that.
pub(crate) fn watch(options: &OperationOptions, backend: Arc<dyn StateBackend>) -> Result<(), CommandError> {
    let (ends, backend) = (options.exit_on_write_failure, Arc::downgrade(&backend));
    let check = move || {
        let mut writes = Failing::new(
            "changes cannot be stored, and are refused unless there is room for them",
            "changes can be stored again",
        );
        let mut reads = Failing::new(
            "a part of the storage cannot be read, and requests for it fail until it can",
            "all of the storage can be read again",
        );
        let mut publishing = Failing::new("the shared store is not up to date", "the shared store is up to date again");
        let mut uploading = Instant::now();
        while let Some(backend) = backend.upgrade() {
            let BackendHealth { failed_writes, write_failure, failed_reads, read_failure, publication, .. } =
                backend.health();
            if ends && failed_writes > 0 {
                let reason = write_failure.as_deref().unwrap_or(OVER);
                print(Level::ERROR, &format!("changes cannot be stored (--exit-on-write-failure): {reason}"));
                process::exit(STATUS);
            }
            writes.note(failed_writes, write_failure.as_deref());
            reads.note(failed_reads, read_failure.as_deref());
            if let Some(publication) = publication {
                // A takeover is already reported as a failure to store changes.
                publishing.note(0, publication.failure.as_deref().filter(|_| write_failure.is_none()));
                if publication.uploading_bytes > 0 && uploading.elapsed() >= UPLOAD_INTERVAL {
                    tracing::info!(left = publication.uploading_bytes, "uploading runs to the shared store");
                    uploading = Instant::now();
                }
            }
            drop(backend);
            thread::sleep(INTERVAL);
        }
    };
    let thread = thread::Builder::new().name("write-failure".to_owned()).spawn(check);
    thread.map(drop).map_err(CommandError::Thread)
}

/// An operation that fails from time to time.
struct Failing {
    /// Message that is logged, with the reason, when the operation starts to fail.
    begins: &'static str,
    /// Message that is logged when it works again.
    ends: &'static str,
    /// How often it had failed when this was last looked at.
    failures: u64,
    failed: bool,
}

impl Failing {
    fn new(begins: &'static str, ends: &'static str) -> Self {
        Self { begins, ends, failures: 0, failed: false }
    }

    /// Logs a change. `failures` is how often the operation has failed so far, and `failure` is the reason if it
    /// currently fails.
    fn note(&mut self, failures: u64, failure: Option<&str>) {
        let is_over = failure.is_none() && failures > self.failures;
        if !self.failed && (failure.is_some() || is_over) {
            tracing::error!("{}: {}", self.begins, failure.unwrap_or(OVER));
            self.failed = true;
        }
        if self.failed && failure.is_none() {
            tracing::info!("{}", self.ends);
            self.failed = false;
        }
        self.failures = failures;
    }
}

/// If more than `before` writes have failed by now, logs `error` and waits until changes can be stored again or
/// `context` is cancelled.
///
/// # Errors
/// `error`, if it was not caused by a failed write.
pub(crate) fn outlast(
    error: CommandError,
    before: u64,
    backend: &dyn StateBackend,
    starting: &Starting,
    context: &Context,
) -> Result<(), CommandError> {
    if backend.health().failed_writes == before || context.check().is_err() {
        return Err(error);
    }
    let text = Sources(&error).to_string();
    tracing::error!("{text}");
    starting.set(format!("{text}; the import continues when changes can be stored"));
    while backend.health().write_failure.is_some() && context.check().is_ok() {
        thread::sleep(INTERVAL);
    }
    Ok(())
}
