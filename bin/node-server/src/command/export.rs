//! `ethnode export`: writes blocks of a folder to a chain file.

use crate::chain::open;
use crate::command::report::{self, Report};
use crate::error::CommandError;
use crate::options::{ExistingChain, OutputOptions};
use clap::Args;
use node_chain::{ExportError, export_blocks};
use node_core::backend::{StateBackend, View};
use node_core::context::Context;
use node_core::edits::first_edited_block;
use node_http::Shutdown;
use node_store::check_outside;
use node_types::BlockNumber;
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Options of `export`.
#[derive(Args, Debug)]
pub(crate) struct ExportOptions {
    /// Chain file to write, or - for standard output
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// First block
    #[arg(long, value_name = "BLOCK", default_value_t = 1)]
    pub(crate) from: BlockNumber,
    /// Last block [default: the head]
    #[arg(long, value_name = "BLOCK")]
    pub(crate) to: Option<BlockNumber>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) chain: ExistingChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Number of blocks between progress reports.
const STEP: u64 = 100;

/// Writes the blocks to a temporary file next to the requested one, and renames it when it is complete.
pub(crate) fn run(options: &ExportOptions) -> Result<(), CommandError> {
    let json = options.output.json;
    let to_stdout = options.file.as_os_str() == "-";
    if to_stdout && json {
        return Err(CommandError::TwoOutputs);
    }
    let existing = if to_stdout { None } else { fs::metadata(&options.file).ok() };
    // A pipe or a device is written directly.
    let replace = existing.as_ref().is_none_or(fs::Metadata::is_file);
    if existing.is_some() && replace && !options.force {
        return Err(CommandError::Exists { path: options.file.clone() });
    }
    let shutdown = Shutdown::on_signals()?;
    let store = open::open_snapshot(&options.chain, "export")?;
    if !to_stdout {
        check_outside(&options.file, store.folder().path())?;
    }
    let view = store.view()?;
    let range = range(options, view.head().number)?;
    if let Some(block) = first_edited_block(&store, *range.end())? {
        return Err(CommandError::Edited { block });
    }
    let title = format!("exporting to {}", options.file.display());
    let mut report = Report::start("export", json, title, 1 + range.end() - range.start());
    let write = |writer: &mut dyn Write, report: &mut Report, path: &Path| {
        let written = write_blocks(&*view, range.clone(), writer, report, shutdown.context());
        report.finish();
        written.map_err(|error| with_path(error, path))
    };
    if to_stdout {
        let mut stdout = BufWriter::new(io::stdout().lock());
        return write(&mut stdout, &mut report, &options.file);
    }
    let path = if replace { temporary(&options.file) } else { options.file.clone() };
    let written = write_file(&path, replace, |file| write(file, &mut report, &path));
    let bytes = match written {
        Ok(bytes) if replace => fs::rename(&path, &options.file)
            .map(|()| bytes)
            .map_err(|source| CommandError::Write { path: options.file.clone(), source })?,
        Ok(bytes) => bytes,
        Err(error) => {
            if replace {
                // The original error is the one to report, so this error is ignored.
                let _ = fs::remove_file(&path);
            }
            return Err(error);
        }
    };
    let (from, to) = range.clone().into_inner();
    let text = format!(
        "exported blocks {from} to {to} to {}: {bytes} bytes in {:.2} s",
        options.file.display(),
        report.elapsed().as_secs_f64()
    );
    let value = json!({
        "file": options.file.display().to_string(), "from": from, "to": to, "bytes": bytes,
        "seconds": report.elapsed().as_secs_f64(),
    });
    report::result("export", json, text, value)
}

/// Returns the requested range of blocks, all of which exist.
fn range(options: &ExportOptions, head: u64) -> Result<RangeInclusive<u64>, CommandError> {
    let above = |option, block| Err(CommandError::AboveHead { option, block, head });
    match (options.from, options.to) {
        (from, Some(to)) if from > to => Err(CommandError::EmptyRange { from, to }),
        (_, Some(to)) if to > head => above("--to", to),
        (from, _) if from > head => above("--from", from),
        (from, to) => Ok(from..=to.unwrap_or(head)),
    }
}

/// Returns the name of the temporary file.
fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// Opens or creates a file, fills it with `write` and makes it durable. Returns its length in bytes.
fn write_file(
    path: &Path,
    create: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<(), CommandError>,
) -> Result<u64, CommandError> {
    let failed = |source| CommandError::Write { path: path.to_owned(), source };
    let file = if create { File::create(path) } else { OpenOptions::new().write(true).open(path) };
    let mut file = BufWriter::new(file.map_err(failed)?);
    write(&mut file)?;
    let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    if create {
        file.sync_all().map_err(failed)?;
    }
    Ok(file.metadata().map_err(failed)?.len())
}

fn write_blocks(
    view: &dyn View,
    range: RangeInclusive<u64>,
    mut writer: &mut dyn Write,
    report: &mut Report,
    context: &Context,
) -> Result<(), CommandError> {
    let last = *range.end();
    for from in range.clone().step_by(STEP as usize) {
        context.check().map_err(|_| CommandError::Interrupted)?;
        let to = last.min(from + STEP - 1);
        export_blocks(view, from..=to, &mut writer)?;
        report.bar().inc(1 + to - from);
        report.progress(|| format!("block {to}"), || json!({"block": to, "blocks": 1 + to - range.start()}));
    }
    writer.flush().map_err(ExportError::from)?;
    Ok(())
}

/// Adds the path to an I/O error of the export.
fn with_path(error: CommandError, path: &Path) -> CommandError {
    match error {
        CommandError::Export(ExportError::Io(source)) => CommandError::Write { path: path.to_owned(), source },
        error => error,
    }
}
