//! The end of the process when changes cannot be stored.

use crate::error::CommandError;
use crate::logs::print_last;
use crate::options::OperationOptions;
use node_core::backend::StateBackend;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tracing::Level;

/// The exit status.
const STATUS: i32 = 3;

/// Time between two checks.
const INTERVAL: Duration = Duration::from_millis(200);

/// If `options` say so, ends the process when `backend` cannot store changes. Changes that were acknowledged are durable, so
/// nothing must be completed before.
pub(crate) fn watch(options: &OperationOptions, backend: &Arc<dyn StateBackend>) -> Result<(), CommandError> {
    if !options.exit_on_write_failure {
        return Ok(());
    }
    let backend = Arc::downgrade(backend);
    let check = move || {
        while let Some(backend) = backend.upgrade() {
            if let Some(reason) = backend.health().write_failure {
                print_last(Level::ERROR, &format!("changes cannot be stored (--exit-on-write-failure): {reason}"));
                process::exit(STATUS);
            }
            drop(backend);
            thread::sleep(INTERVAL);
        }
    };
    let thread = thread::Builder::new().name("write-failure".to_owned()).spawn(check);
    thread.map(drop).map_err(CommandError::Thread)
}
