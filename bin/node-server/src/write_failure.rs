//! What happens when changes cannot be stored.

use crate::error::{CommandError, Sources};
use crate::logs::print;
use crate::options::OperationOptions;
use node_core::backend::StateBackend;
use node_core::context::Context;
use node_http::Starting;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tracing::Level;

/// The exit status.
const STATUS: i32 = 3;

/// Time between two checks.
const INTERVAL: Duration = Duration::from_millis(200);

/// Logs from now on when `backend` cannot store changes, and when it can again. If `options` say so, ends the process instead: changes
/// that were acknowledged are durable, so nothing must be completed before.
pub(crate) fn watch(options: &OperationOptions, backend: &Arc<dyn StateBackend>) -> Result<(), CommandError> {
    let (ends, backend) = (options.exit_on_write_failure, Arc::downgrade(backend));
    let check = move || {
        let mut failed = false;
        while let Some(backend) = backend.upgrade() {
            match backend.health().write_failure {
                Some(reason) if ends => {
                    print(Level::ERROR, &format!("changes cannot be stored (--exit-on-write-failure): {reason}"));
                    process::exit(STATUS);
                }
                Some(reason) if !failed => {
                    tracing::error!("changes cannot be stored, and are refused until they can: {reason}");
                    failed = true;
                }
                None if failed => {
                    tracing::info!("changes can be stored again");
                    failed = false;
                }
                _ => {}
            }
            drop(backend);
            thread::sleep(INTERVAL);
        }
    };
    let thread = thread::Builder::new().name("write-failure".to_owned()).spawn(check);
    thread.map(drop).map_err(CommandError::Thread)
}

/// If writes have failed since there were `before` of them, logs `error` and waits until changes can be stored again, or until
/// `context` is cancelled.
///
/// # Errors
/// `error`, if it has another cause.
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
