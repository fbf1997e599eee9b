//! `ethnode backup`: copies a folder, which a server may be using.

use crate::chain::open;
use crate::command::report::{self, Report};
use crate::error::CommandError;
use crate::options::{OutputOptions, ReadableChain, check_apart};
use clap::Args;
use node_dev::fork::Fork;
use node_http::{Shutdown, lower_priority};
use node_store::{Backup, BackupError, BackupProgress};
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};

/// Options of `backup`.
#[derive(Args, Debug)]
pub(crate) struct BackupOptions {
    /// Folder to create, beside older copies, with which it shares unchanged files; an existing one must be empty
    #[arg(value_name = "DEST")]
    dest: PathBuf,
    #[command(flatten)]
    chain: ReadableChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Makes the copy. If a signal arrives, removes the incomplete copy.
pub(crate) fn run(options: &BackupOptions) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals()?;
    let (json, dest) = (options.output.json, &options.dest);
    let mut report = Report::start("backup", json, format!("copying to {}", dest.display()), 0);
    let progress = |BackupProgress { rows, of }| {
        report.bar().set_length(of);
        report.bar().set_position(rows);
        report.progress(|| format!("{rows} of {of} rows"), || json!({"rows": rows, "of": of}));
    };
    options.chain.shared.store.as_ref().map_or(Ok(()), |url| check_apart(url, dest))?;
    let store = open::open_snapshot(&options.chain, "backup", shutdown.context())?;
    lower_priority();
    let source = open::folder_of(&options.chain, "backup")?;
    // What was fetched of another chain.
    let fetched = |part: &Path| source.map_or(Ok(()), |source| Fork::copy(&source, part)).map_err(io::Error::other);
    let copied = store.backup_with(dest, shutdown.context(), progress, fetched);
    report.finish();
    let Backup { head, rows, shared_bytes, .. } = copied.map_err(|error| match error {
        BackupError::Interrupted(_) => CommandError::Interrupted,
        // A read of a shared store may have been ended.
        _ if shutdown.context().check().is_err() => CommandError::Interrupted,
        error => error.into(),
    })?;
    let seconds = report.elapsed().as_secs_f64();
    let shared = if shared_bytes == 0 {
        String::new()
    } else {
        format!("; it shares {shared_bytes} bytes of unchanged files with an older copy")
    };
    let text = format!("copied {rows} rows to {} in {seconds:.2} s; head {}{shared}", dest.display(), head.number);
    let value = json!({
        "dest": dest.display().to_string(), "head": report::block(head), "rows": rows, "shared_bytes": shared_bytes,
        "seconds": seconds,
    });
    report::result("backup", json, text, value)
}
