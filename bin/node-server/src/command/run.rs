//! `ethnode run`: imports chain files and serves the chain until a signal arrives.

use crate::chain::import_mark::{ImportMark, Resumed};
use crate::chain::wiring::Wiring;
use crate::chain::{open, publish};
use crate::command::follow::{self, Following};
use crate::command::health::http_url;
use crate::command::progress::{ImportReporter, Rates};
use crate::command::prune::{check_floor, prune};
use crate::command::read_only;
use crate::error::{CommandError, Sources};
use crate::files::{self, Input, Unpacked};
use crate::logging;
use crate::options::data_dir::DataDir;
use crate::options::{
    CreationOptions, GenesisOptions, PruneBefore, PublishArguments, RestoreArguments, ServerOptions, StorageOptions,
    Target,
};
use crate::server::{metrics, notify, reload, write_failure, writer};
use clap::{ArgAction, Args};
use node_chain::{BlockImporter, FileError, ImportSummary, dev_genesis, import_rest};
use node_core::backend::StateBackend;
use node_core::context::Context;
use node_core::node::{Finality, Node};
use node_http::{HttpConfig, Metrics, ServeError, Shutdown, check, serve};
use node_types::{BlockNumber, H256};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use ureq::http::Uri;

/// The namespaces that are served by default: those that geth serves over HTTP.
const API: [&str; 3] = ["eth", "net", "web3"];

/// Options of `run`.
#[derive(Args, Debug)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) chain: ChainOptions,
    #[command(flatten)]
    pub(crate) storage: StorageOptions,
    #[command(flatten)]
    creation: CreationOptions,
    /// Serve a chain that another process writes, such as `run --follow`, and show its blocks as they come; needs only
    /// permission to read, takes no lock and writes nothing
    #[arg(long, help_heading = "Storage")]
    #[arg(conflicts_with_all = ["import", "follow", "head", "prune_before", "serve_while_importing", "shared_store"])]
    read_only: bool,
    /// URL of the server that writes the chain, to which transactions, requests about filters and the pool, and control of a
    /// development chain are passed on
    #[arg(long, value_name = "URL", value_parser = http_url, help_heading = "Storage", requires = "read_only")]
    pub(crate) writer: Option<Uri>,
    #[command(flatten)]
    publish: PublishArguments,
    #[command(flatten)]
    restore: RestoreArguments,
    #[command(flatten)]
    pub(crate) prune: PruneBefore,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
}

/// The chain to serve.
#[derive(Args, Debug)]
#[command(next_help_heading = "Chain")]
pub(crate) struct ChainOptions {
    #[command(flatten)]
    pub(crate) genesis: GenesisOptions,
    /// Chain file of RLP blocks to import, which gzip may have compressed; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) import: Vec<PathBuf>,
    /// Serve reads from the blocks imported so far during the import; until it ends, /ready returns 503 and
    /// transactions are refused
    #[arg(long)]
    pub(crate) serve_while_importing: bool,
    /// Take further blocks from this file as it grows, from a FIFO, from standard input (`-`), or from the files `….rlp`
    /// of a folder, after the import; none may be compressed; each block is durable and visible before the next one is
    /// taken
    #[arg(long, value_name = "PATH", conflicts_with = "head")]
    pub(crate) follow: Option<PathBuf>,
    /// Block to make the head after the import, if the files contain several branches
    #[arg(long, value_name = "HASH")]
    pub(crate) head: Option<H256>,
    /// Whether to fail if a chain file is empty, truncated or contains an invalid block; otherwise the blocks before it are
    /// served, and /ready returns 503
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true)]
    #[arg(default_value_t = true, default_missing_value = "true")]
    pub(crate) strict: bool,
}

/// Imports and serves the chain until SIGINT or SIGTERM, which also end the import.
pub(crate) fn run(options: &RunOptions) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals_then(notify::stopping)?;
    // Before the folder is created, and a large genesis is sorted.
    let mut http = http_config(&options.server)?;
    options.chain.import.iter().try_for_each(|path| files::check(path))?;
    options.chain.follow.as_deref().map_or(Ok(()), follow::check)?;
    reload::register(&http);
    let _metrics = metrics::serve(&options.server, &http)?;
    let given_folder = match &options.storage.data_dir {
        Some(DataDir::Folder(path)) => Some(&**path),
        _ => None,
    };
    open::check_no_fork(given_folder)?;
    if options.read_only {
        pass_on(&mut http, options.writer.as_ref())?;
        return read_only::run(options, http, shutdown);
    }
    let genesis_file = options.chain.genesis.genesis.as_deref();
    let target = Target::new(&options.publish, Some(&options.restore))?;
    publish::restore(&options.restore, target.as_ref(), given_folder, shutdown.context())?;
    let start = open::start(genesis_file, &options.storage, &options.creation, shutdown.context())?;
    let folder = open::folder(&options.storage, &options.creation, &start.genesis)?;
    metrics::include_folder(&http, folder.as_deref());
    let is_built_in = genesis_file.is_none() && start.genesis == dev_genesis();
    let wiring = Wiring::open(start, folder.as_deref(), &options.storage.caches, target.as_ref(), shutdown.context())?;
    write_failure::watch(&options.server.operation, wiring.store.clone())?;
    let served = if options.chain.import.is_empty() {
        build(options, &wiring, &http, shutdown.context()).and_then(|()| {
            let node = node(options, &wiring, is_built_in && options.chain.follow.is_none())?;
            wiring.sync_changes()?;
            let _following = follow(options, &wiring, &http, shutdown.context())?;
            serve(node, http.clone(), shutdown, |address| {
                announce(&http, address);
                Ok(())
            })?;
            Ok(())
        })
    } else {
        serve_during_import(options, &wiring, node(options, &wiring, false)?, http, shutdown)
    };
    match served {
        Err(stopped @ CommandError::Stopped { .. }) => tracing::info!("{stopped}"),
        served => served?,
    }
    wiring.close()
}

/// Returns the checked configuration of the HTTP interface of a server that does not produce blocks.
pub(crate) fn http_config(options: &ServerOptions) -> Result<HttpConfig, CommandError> {
    let mut http = options.http_config()?;
    if http.access.api.is_empty() {
        http.access.api = API.iter().filter_map(|name| name.parse().ok()).collect();
    }
    check(&http)?;
    Ok(http)
}

/// Makes a server that only reads pass changes on to the server at `url`, if there is one.
pub(crate) fn pass_on(http: &mut HttpConfig, url: Option<&Uri>) -> Result<(), CommandError> {
    let writer = url.map(|url| writer::at(url, http.requests.max_response));
    http.writer = writer.transpose()?;
    Ok(())
}

/// Opens the node of a chain. The built-in chain counts as a development chain as long as it has no blocks.
fn node(options: &RunOptions, wiring: &Wiring, is_built_in: bool) -> Result<Arc<Node>, CommandError> {
    // No consensus client reports which blocks are final. The blocks of an imported chain are never reorganized.
    let development = is_built_in && wiring.store.view()?.head().number == 0;
    let finality = if development { Finality::DEVELOPMENT } else { Finality::Head };
    Ok(Arc::new(wiring.node(&options.server, finality)?))
}

/// Announces that the server is ready.
pub(crate) fn announce(http: &HttpConfig, address: SocketAddr) {
    logging::announce("", &format!("listening on {}://{address}{}", http.scheme(), http.listen.base_path));
    notify::ready(address, http.listen.tls.is_some());
}

/// Imports the chain files, while a thread serves health checks and, depending on the options, reads; serves
/// everything after that.
fn serve_during_import(
    options: &RunOptions,
    wiring: &Wiring,
    node: Arc<Node>,
    mut http: HttpConfig,
    shutdown: Shutdown,
) -> Result<(), CommandError> {
    http.serve_while_starting = options.chain.serve_while_importing;
    node.begin_import()?;
    let (starting, context) = (http.starting.clone(), shutdown.context().clone());
    starting.set("the import begins".to_owned());
    let (sender, bound) = mpsc::channel();
    let (serving, served) = (http.clone(), node.clone());
    let serve = move || {
        serve(served, serving, shutdown, |address| {
            // Sending cannot fail, because the receiver waits for the address.
            let _ = sender.send(address);
            Ok(())
        })
    };
    let server = thread::Builder::new().name("server".to_owned()).spawn(serve).map_err(CommandError::Thread)?;
    // Ends after the server.
    let mut following = None;
    if let Ok(address) = bound.recv() {
        if http.serve_while_starting {
            tracing::info!("serving the blocks imported so far on {}://{address}", http.scheme());
            starting.set("looking for the end of the chain files".to_owned());
            node.set_highest_block(highest_block(&*wiring.store, &options.chain.import, &context));
        }
        // If the import fails, the program exits, which ends the thread.
        match build(options, wiring, &http, &context) {
            // The signal ends the server as well, after the requests in progress.
            Err(stopped @ CommandError::Stopped { .. }) if http.serve_while_starting => {
                join(server)?;
                return Err(stopped);
            }
            built => built?,
        }
        let failed_writes = wiring.store.health().failed_writes;
        while let Err(error) = wiring.sync_changes() {
            write_failure::outlast(error, failed_writes, &*wiring.store, &starting, &context)?;
        }
        node.end_import();
        starting.finish();
        following = follow(options, wiring, &http, &context)?;
        // A signal may have arrived when nothing was left to import.
        if context.check().is_ok() {
            announce(&http, address);
        }
    }
    let served = join(server);
    drop(following);
    served
}

/// Begins to follow the path of `--follow`, if there is one.
fn follow(
    options: &RunOptions,
    wiring: &Wiring,
    http: &HttpConfig,
    context: &Context,
) -> Result<Option<Following>, CommandError> {
    let begin = |path: &PathBuf| Following::begin(path, wiring.importer(), http.metrics.clone(), context);
    options.chain.follow.as_ref().map(begin).transpose()
}

/// Waits for the end of the server.
fn join(server: JoinHandle<Result<(), ServeError>>) -> Result<(), CommandError> {
    Ok(server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
}

/// Returns the highest block number in what was not imported yet of the chain files, or 0 if that has no blocks. Skips
/// pipes, which cannot be read twice, compressed files, and those that cannot be read, which the import reports.
fn highest_block(backend: &dyn StateBackend, paths: &[PathBuf], context: &Context) -> BlockNumber {
    let rest_of = |path: &PathBuf| {
        let mut file = File::open(path).ok()?;
        file.seek(SeekFrom::Start(ImportMark::resume(backend, path).ok()?.offset)).ok()?;
        Some(file)
    };
    let files = paths.iter().filter(|path| path.is_file()).filter_map(rest_of);
    files.map_while(|file| node_chain::highest_block(file, context).ok()).flatten().max().unwrap_or_default()
}

/// Imports the chain files, and then drops old states.
fn build(options: &RunOptions, wiring: &Wiring, http: &HttpConfig, context: &Context) -> Result<(), CommandError> {
    import(&wiring.importer(), &options.chain, http, context)?;
    if let Some(floor) = options.prune.prune_before {
        check_floor(&wiring.store, "--prune-before", floor)?;
        tracing::info!("{}", prune(&wiring.store, floor)?);
    }
    Ok(())
}

fn import(
    chain: &BlockImporter,
    options: &ChainOptions,
    http: &HttpConfig,
    context: &Context,
) -> Result<(), CommandError> {
    let backend = &**chain.backend();
    let mut paths = options.import.iter().peekable();
    while let Some(path) = paths.peek() {
        let Resumed { offset, blocks: before } = ImportMark::resume(backend, path)?;
        let (file, length) = files::open_at(path, offset, context)?;
        let from =
            if offset == 0 { String::new() } else { format!(" from byte {offset} on, before which it is known") };
        tracing::info!("importing {}{from}", path.display());
        let failed_writes = backend.health().failed_writes;
        let mut last = None;
        let reporter = ImportReporter::start(path, length, offset, http);
        let imported = import_opened(chain, file, offset, reporter, &http.metrics, context, &mut last);
        let has_blocks = offset > 0 || last.is_some();
        if let Some((place, blocks)) = last
            && let Err(error) = ImportMark::record(backend, path, place, before + blocks)
        {
            // The next start reads the file again.
            tracing::warn!("cannot record how far {} was imported: {}", path.display(), Sources(&error));
        }
        let imported = match imported {
            Ok(_) if !has_blocks => Err(CommandError::NoBlocks { path: path.to_path_buf() }),
            Ok(summary) => {
                let ImportSummary { imported, gas, elapsed, .. } = summary;
                tracing::info!("imported {}: {imported} blocks, {}", path.display(), Rates(imported, gas, elapsed));
                Ok(())
            }
            Err(source) => {
                let head = backend.view()?.head().number;
                if context.check().is_err() {
                    return Err(CommandError::Stopped { head });
                }
                let error = CommandError::Import { path: path.to_path_buf(), head, source };
                match write_failure::outlast(error, failed_writes, backend, &http.starting, context) {
                    // Imports the file again. Known blocks are skipped.
                    Ok(()) => continue,
                    Err(error) => Err(error),
                }
            }
        };
        match imported {
            Ok(()) => {}
            Err(error) if options.strict => {
                tracing::error!("--strict=false would serve the blocks before the fault");
                return Err(error);
            }
            Err(error) => {
                let error = Sources(&error).to_string();
                tracing::error!("{error}");
                http.incomplete.set(error);
            }
        }
        paths.next();
    }
    if let Some(hash) = options.head {
        chain.set_head(hash).map_err(CommandError::Head)?;
    }
    Ok(())
}

/// Imports the rest of a file, from the byte `offset` on, and shows its progress. Sets `last` to the place of the last
/// block that was imported or known, and the number of blocks up to it.
fn import_opened(
    chain: &BlockImporter,
    file: Input,
    offset: u64,
    mut progress: ImportReporter,
    metrics: &Metrics,
    context: &Context,
    last: &mut Option<(Range<u64>, u64)>,
) -> Result<ImportSummary, FileError> {
    let reader = Unpacked::new(progress.count(file));
    let (mut blocks, mut gas) = (0, 0);
    let imported = import_rest(chain, context, reader, offset, |state| {
        metrics.record_import(state.blocks - blocks, state.gas - gas);
        (blocks, gas) = (state.blocks, state.gas);
        *last = Some((state.place.clone(), state.blocks));
        progress.update(state);
    });
    progress.finish();
    imported
}
