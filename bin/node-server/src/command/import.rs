//! `ethnode import`: imports chain files into a folder.

use crate::chain::import_mark::{ImportMark, Resumed};
use crate::chain::open;
use crate::command::progress::{NewBlocks, Rates};
use crate::command::prune::{check_floor, prune};
use crate::command::report::{self, Report};
use crate::error::CommandError;
use crate::files::{self, Unpacked};
use crate::options::{
    CreationOptions, GenesisOptions, OutputOptions, PruneBefore, PublishArguments, StorageOptions, Target,
};
use clap::Args;
use node_chain::{BlockImporter, ImportSummary, Progress, import_rest};
use node_core::backend::{BackendError, StateBackend};
use node_core::context::Context;
use node_http::Shutdown;
use node_store::{Store, SyncPolicy};
use node_types::BlockNumber;
use serde_json::json;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Options of `import`.
#[derive(Args, Debug)]
pub(crate) struct ImportOptions {
    /// Chain files of RLP blocks, which gzip may have compressed
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) genesis: GenesisOptions,
    #[command(flatten)]
    pub(crate) storage: StorageOptions,
    #[command(flatten)]
    creation: CreationOptions,
    /// Number of blocks after which the import is made durable; a crash loses at most this many [default: 1000 blocks
    /// or a second, whichever is first]
    #[arg(long, value_name = "BLOCKS", help_heading = "Storage")]
    pub(crate) sync_every: Option<NonZeroU64>,
    #[command(flatten)]
    pub(crate) prune: PruneBefore,
    #[command(flatten)]
    publish: PublishArguments,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Number of blocks and time after which the store is synced by default, whichever is first.
const SYNC_BLOCKS: u64 = 1_000;
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Imports the files one by one. A signal or an invalid block ends the import, after which the imported blocks are
/// durable.
pub(crate) fn run(options: &ImportOptions) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals()?;
    options.files.iter().try_for_each(|path| files::check(path))?;
    let genesis = options.genesis.genesis.as_deref();
    let start = open::start(genesis, &options.storage, &options.creation, shutdown.context())?;
    let folder = open::folder(&options.storage, &options.creation, &start.genesis)?
        .ok_or(CommandError::InMemory { needed_by: "import" })?;
    let caches = &options.storage.caches;
    let (target, context) = (Target::new(&options.publish, None)?, shutdown.context());
    let store = open::create_store(&folder, &start, caches, SyncPolicy::OnDemand, target.as_ref(), context)?;
    let store = Arc::new(store);
    let spec = Arc::new(start.genesis.spec);
    let evm = open::evm(&spec, caches);
    let chain = BlockImporter::new(store.clone(), evm.clone(), evm, spec);

    let mut sum = ImportSummary::default();
    for path in &options.files {
        let ImportSummary { imported, known, gas, elapsed } =
            import(&chain, &store, path, shutdown.context(), options)?;
        sum.imported += imported;
        sum.known += known;
        sum.gas += gas;
        sum.elapsed += elapsed;
    }
    if let Some(floor) = options.prune.prune_before {
        check_floor(&store, "--prune-before", floor)?;
        let pruned = prune(&store, floor)?;
        let _ = writeln!(io::stderr(), "{pruned}");
    }
    let mut last = Instant::now();
    store.wait_until_published(shutdown.context(), |publication| {
        if last.elapsed() >= report::LINE_INTERVAL {
            last = Instant::now();
            let left = publication.lag_bytes + publication.uploading_bytes;
            let reason = publication.failure.map_or_else(String::new, |reason| format!(": {reason}"));
            let _ = writeln!(io::stderr(), "{left} bytes are to be published{reason}");
        }
    })?;
    let view = store.view()?;
    let (head, earliest) = (view.head(), view.earliest_state());
    let ImportSummary { imported, known, gas, elapsed } = sum;
    let text = format!(
        "imported {imported} blocks, {known} were known, in {:.2} s: {}; head {head}",
        elapsed.as_secs_f64(),
        Rates(imported, gas, elapsed)
    );
    let value = json!({
        "imported": imported, "known": known, "gas": gas, "seconds": elapsed.as_secs_f64(),
        "head": report::block(head), "durable": head.number, "earliest_state": earliest,
    });
    report::result("import", options.output.json, text, value)
}

fn import(
    chain: &BlockImporter,
    store: &Store,
    path: &Path,
    context: &Context,
    options: &ImportOptions,
) -> Result<ImportSummary, CommandError> {
    let Resumed { offset, blocks: before } = ImportMark::resume(store, path)?;
    let (file, length) = files::open_at(path, offset, context)?;
    let name = path.display().to_string();
    let report = Report::start("import", options.output.json, name.clone(), length);
    report.bar().set_position(offset);
    let reader = Unpacked::new(report.bar().wrap_read(file));
    let (every, interval) = match options.sync_every {
        Some(blocks) => (blocks.get(), None),
        None => (SYNC_BLOCKS, Some(SYNC_INTERVAL)),
    };
    let (durable, now) = (store.view()?.head().number, Instant::now());
    let new = NewBlocks::after(offset);
    let mut sync =
        PeriodicSync { store, report, name, new, every, interval, blocks: 0, last: now, durable, reported: now };
    let (mut failure, mut last) = (None, None);
    let imported = import_rest(chain, context, reader, offset, |progress| {
        last = Some((progress.place.clone(), before + progress.blocks));
        if failure.is_none()
            && let Err(error) = sync.imported(progress)
        {
            failure = Some(error);
            context.cancel();
        }
    });
    sync.report.finish();
    let has_blocks = offset > 0 || last.is_some();
    // Imported blocks become durable even if the import failed. In that case the error of the import is reported.
    let marked = last.map_or(Ok(()), |(place, blocks)| ImportMark::record(store, path, place, blocks));
    let flushed = marked.and_then(|()| store.flush());
    if let Some(error) = failure {
        return Err(error.into());
    }
    let head = store.view()?.head().number;
    let path = path.to_owned();
    match imported {
        Ok(_) if !has_blocks => Err(CommandError::NoBlocks { path }),
        Ok(summary) => {
            flushed?;
            Ok(ImportSummary { known: summary.known + before, ..summary })
        }
        Err(_) if context.check().is_err() => {
            flushed?;
            Err(CommandError::Stopped { head })
        }
        Err(source) if flushed.is_err() => Err(CommandError::NotDurable { path, durable: sync.durable, source }),
        Err(source) => Err(CommandError::Import { path, head, source }),
    }
}

/// Syncs the store at intervals, and reports progress with the last durable block.
struct PeriodicSync<'a> {
    store: &'a Store,
    report: Report,
    name: String,
    new: NewBlocks,
    /// Number of blocks, and possibly time, from one sync to the next.
    every: u64,
    interval: Option<Duration>,
    /// Number of blocks read up to the last sync.
    blocks: u64,
    last: Instant,
    /// The last block that is certain to be durable.
    durable: BlockNumber,
    /// When progress was last reported.
    reported: Instant,
}

impl PeriodicSync<'_> {
    /// Records that a block was imported.
    fn imported(&mut self, progress: &Progress) -> Result<(), BackendError> {
        let share = self.new.share(progress, self.report.bar());
        let is_late = self.interval.is_some_and(|interval| self.last.elapsed() >= interval);
        if progress.blocks >= self.blocks.saturating_add(self.every) || is_late {
            // Read before the sync, because only the blocks up to this one are certain to be durable after it.
            let head = self.store.view()?.head().number;
            self.store.sync()?;
            self.durable = head;
            self.blocks = progress.blocks;
            self.last = Instant::now();
        } else if self.reported.elapsed() < report::LINE_INTERVAL {
            return Ok(());
        }
        self.reported = Instant::now();
        let durable = self.durable;
        let Progress { number, blocks, gas, elapsed, .. } = *progress;
        let (bytes, total_bytes) = (self.report.bar().position(), self.report.bar().length());
        let is_drawn = !self.report.bar().is_hidden();
        let text = || {
            // The bar already shows the percentage.
            let place = if is_drawn { String::new() } else { format!("{share}, ") };
            format!("{place}block {number}, {}, durable up to block {durable}", share.rates)
        };
        let value = || {
            json!({
                "file": self.name, "block": number, "blocks": blocks, "gas": gas, "seconds": elapsed.as_secs_f64(),
                "durable": durable, "bytes": bytes, "total_bytes": total_bytes,
            })
        };
        self.report.progress(text, value);
        Ok(())
    }
}
