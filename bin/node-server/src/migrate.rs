//! `ethnode migrate`: copies a folder of an older storage layout to a new folder.

use crate::error::CommandError;
use crate::open;
use crate::options::CopyOptions;
use crate::report::{self, Report};
use crate::verify::{self, Outcome};
use node_core::backend::BackendError;
use node_http::Shutdown;
use node_store::{Migrated, MigrationProgress, StoreError, check_destination, finish_migration};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

/// Copies the folder, verifies the copy, and renames it.
pub(crate) fn run(options: &CopyOptions) -> Result<(), CommandError> {
    let (json, dest) = (options.output.json, &options.dest);
    let from = open::existing_folder(&options.chain, "migrate")?;
    let place = check_destination(dest, from.canonicalize().ok().as_deref())?;
    let shutdown = Shutdown::on_signals()?;
    let mut unfinished = place.clone().into_os_string();
    unfinished.push(".migrating");
    let unfinished = PathBuf::from(unfinished);
    let mut report = Report::start("migrate", json, format!("migrating to {}", dest.display()), 0);
    let migrated = node_store::migrate(&from, &unfinished, shutdown.context(), |MigrationProgress { rows, of }| {
        report.bar().set_length(of);
        report.bar().set_position(rows);
        report.progress(|| format!("{rows} of {of} rows"), || json!({"rows": rows, "of": of}));
    });
    let rows = match migrated {
        Ok(Migrated { rows, .. }) => rows,
        Err(BackendError::Storage(error)) if matches!(error.downcast_ref(), Some(StoreError::NotEmpty)) => {
            return Err(CommandError::store(&unfinished, BackendError::Storage(error)));
        }
        Err(error) => return Err(CommandError::store(&from, error)),
    };
    report.finish();
    let mut store = open::open_folder(&unfinished, &options.chain)?;
    let Outcome { verified, blocks, .. } = verify::check(&mut store, "migrate", json, shutdown.context())?;
    drop(store);
    if let Some(difference) = verified.difference {
        // The next attempt copies everything again.
        let _ = fs::remove_dir_all(&unfinished);
        return Err(CommandError::Difference(Box::new(difference)));
    }
    finish_migration(&unfinished, &place).map_err(|source| CommandError::Write { path: dest.clone(), source })?;
    let seconds = report.elapsed().as_secs_f64();
    let text = format!(
        "migrated {rows} rows to {} in {seconds:.2} s and verified {blocks} blocks; head {}; {} has not changed",
        dest.display(),
        verified.head.number,
        from.display(),
    );
    let value = json!({
        "dest": dest.display().to_string(), "head": report::block(verified.head), "rows": rows, "blocks": blocks,
        "seconds": seconds,
    });
    report::result("migrate", json, text, value)
}
