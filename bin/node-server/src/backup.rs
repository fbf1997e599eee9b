//! `node-server backup`: a copy of a folder, made by the process that has it open, or by this one.

use crate::control::ask_for_backup;
use crate::error::CommandError;
use crate::open;
use crate::options::chain::ExistingChain;
use crate::options::output::OutputOptions;
use crate::report::{self, Report};
use clap::Args;
use node_core::context::Context;
use node_http::Shutdown;
use node_store::{Backup, BackupError, BackupProgress, Store};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Settings of `backup`.
#[derive(Args, Debug)]
pub(crate) struct BackupOptions {
    /// Folder to make; one that is there must be empty
    #[arg(value_name = "DEST")]
    pub(crate) dest: PathBuf,
    #[command(flatten)]
    pub(crate) chain: ExistingChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Makes the copy. A signal ends it, and nothing is left of it then.
pub(crate) fn run(options: &BackupOptions) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals()?;
    let (json, dest) = (options.output.json, &options.dest);
    let mut report = Report::start("backup", json, format!("copying to {}", dest.display()), 0);
    let progress = |BackupProgress { rows, of }| {
        report.bar().set_length(of);
        report.bar().set_position(rows);
        report.progress(|| format!("{rows} rows of {of}"), || json!({"rows": rows, "of": of}));
    };
    let (copied, served) = match open::open_existing(&options.chain, "backup") {
        Ok(store) => (copy(&store, options, shutdown.context(), progress)?, false),
        Err(error) if error.is_locked() => {
            let folder = open::existing_folder(&options.chain, "backup")?;
            (ask_for_backup(&folder, dest, shutdown.context(), progress)?, true)
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

/// The copy of a folder that nobody else has open.
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
