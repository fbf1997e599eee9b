//! `ethnode export`: writes blocks of a folder to a chain file.

use crate::chain::open;
use crate::command::report::{self, Report};
use crate::error::CommandError;
use crate::files::{self, Access};
use crate::options::{OutputOptions, ReadableChain, check_apart};
use clap::Args;
use node_chain::{ExportError, export_blocks};
use node_core::backend::{StateBackend, View, first_without_state_root};
use node_core::context::Context;
use node_core::edits::first_edited_block;
use node_dev::fork::Fork;
use node_http::Shutdown;
use node_store::check_outside;
use node_types::BlockNumber;
use serde_json::json;
use std::io::{self, BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Options of `export`.
#[derive(Args, Debug)]
pub(crate) struct ExportOptions {
    /// Chain file to write, or - for standard output
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// First block [default: 1, or the first one of a fork that the other chain does not have]
    #[arg(long, value_name = "BLOCK")]
    pub(crate) from: Option<BlockNumber>,
    /// Last block [default: the head]
    #[arg(long, value_name = "BLOCK")]
    pub(crate) to: Option<BlockNumber>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) chain: ReadableChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Number of blocks between progress reports.
const STEP: u64 = 100;

/// Writes the blocks to the file, which appears when it is complete.
pub(crate) fn run(options: &ExportOptions) -> Result<(), CommandError> {
    let json = options.output.json;
    let to_stdout = options.file.as_os_str() == "-";
    if to_stdout && json {
        return Err(CommandError::TwoOutputs);
    }
    if !to_stdout && options.file.is_file() && !options.force {
        return Err(CommandError::Exists { path: options.file.clone() });
    }
    let shutdown = Shutdown::on_signals()?;
    if let (Some(url), false) = (&options.chain.shared.store, to_stdout) {
        check_apart(url, &options.file)?;
    }
    let store = open::open_snapshot(&options.chain, "export", shutdown.context())?;
    if !to_stdout {
        check_outside(&options.file, store.folder().path())?;
    }
    let view = store.view()?;
    // Before the range, because no other range of this chain could be exported.
    if let Some(genesis) = open::genesis_of(&store)?.filter(|genesis| !genesis.spec.relaxations.is_empty()) {
        return Err(CommandError::Relaxed(genesis.spec.relaxations));
    }
    let range = range(options, view.first(), view.head().number)?;
    if let Some(block) = first_edited_block(&store, *range.end())? {
        let first = block.number == view.first() + 1;
        return Err(match store.folder().path().is_some_and(Fork::exists) {
            true => CommandError::EditedFork { block, first },
            false => CommandError::Edited { block, first },
        });
    }
    if let Some(block) = first_without_state_root(&*view, *range.end())? {
        return Err(CommandError::NoStateRoot { block });
    }
    let title = format!("exporting to {}", options.file.display());
    let mut report = Report::start("export", json, title, 1 + range.end() - range.start());
    let write = |writer: &mut dyn Write, report: &mut Report| {
        let written = write_blocks(&*view, range.clone(), writer, report, shutdown.context());
        report.finish();
        written.map_err(|error| match shutdown.context().check() {
            Ok(()) => with_path(error, &options.file),
            // A read of a shared store may have been ended.
            Err(_) => CommandError::Interrupted,
        })
    };
    if to_stdout {
        let mut stdout = BufWriter::new(io::stdout().lock());
        return write(&mut stdout, &mut report);
    }
    let bytes = files::replace(&options.file, Access::Default, |file| write(file, &mut report))?;
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

/// Returns the requested range of blocks, all of which exist, of a chain from block `first` to `head`.
fn range(options: &ExportOptions, first: u64, head: u64) -> Result<RangeInclusive<u64>, CommandError> {
    let above = |option, block| Err(CommandError::AboveHead { option, block, head });
    let from = options.from.unwrap_or(first + 1);
    match (from, options.to) {
        (from, Some(to)) if from > to => Err(CommandError::EmptyRange { from, to }),
        (_, Some(to)) if to > head => above("--to", to),
        _ if options.from.is_none() && head == first => Err(CommandError::OnlyFirst),
        (from, _) if from < first => Err(CommandError::BelowFirst { from, first }),
        (from, _) if from > head => above("--from", from),
        (from, to) => Ok(from..=to.unwrap_or(head)),
    }
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
