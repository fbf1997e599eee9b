//! `node-server backup`: copies a folder. If a server uses the folder, the server makes the copy.

use crate::control::request_backup;
use crate::error::CommandError;
use crate::open;
use crate::options::{ExistingChain, OutputOptions};
use crate::report::{self, Report};
use clap::Args;
use node_core::context::Context;
use node_http::Shutdown;
use node_store::{Backup, BackupError, BackupProgress, Store};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Options of `backup`.
#[derive(Args, Debug)]
pub(crate) struct BackupOptions {
    /// Folder to create; an existing one must be empty
    #[arg(value_name = "DEST")]
    pub(crate) dest: PathBuf,
    #[command(flatten)]
    pub(crate) chain: ExistingChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Makes the copy. If a signal arrives, removes what was copied so far.
pub(crate) fn run(options: &BackupOptions) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals()?;
    let (json, dest) = (options.output.json, &options.dest);
    let mut report = Report::start("backup", json, format!("copying to {}", dest.display()), 0);
    let progress = |BackupProgress { rows, of }| {
        report.bar().set_length(of);
        report.bar().set_position(rows);
        report.progress(|| format!("{rows} of {of} rows"), || json!({"rows": rows, "of": of}));
    };
    let (copied, served) = match open::open_existing(&options.chain, "backup") {
        Ok(store) => (copy(&store, options, shutdown.context(), progress)?, false),
        Err(error) if error.is_locked() => {
            let folder = open::existing_folder(&options.chain, "backup")?;
            (request_backup(&folder, dest, shutdown.context(), progress)?, true)
        }
        Err(error) => return Err(error),
    };
    report.finish();
    let (head, rows, seconds) = (&copied["head"], &copied["rows"], report.elapsed().as_secs_f64());
    let by = if served { " by the server" } else { "" };
    let text = format!("copied {rows} rows to {}{by} in {seconds:.2} s; head {}", dest.display(), head["number"]);
    let value = json!({
        "dest": dest.display().to_string(), "head": head, "rows": rows, "served": served, "seconds": seconds,
    });
    report::result("backup", json, text, value);
    Ok(())
}

/// Copies a folder that no other process uses.
fn copy(
    store: &Store,
    options: &BackupOptions,
    context: &Context,
    progress: impl FnMut(BackupProgress),
) -> Result<Value, CommandError> {
    match store.backup(&options.dest, context, progress) {
        Ok(Backup { head, rows, .. }) => Ok(json!({"head": report::block(head), "rows": rows})),
        Err(BackupError::Interrupted(_)) => Err(CommandError::Interrupted),
        Err(error) => Err(error.into()),
    }
}
