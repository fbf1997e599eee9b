//! Import of chain files in stages that run on separate threads: reading, decoding and recovering senders, execution,
//! and storage.

use crate::ahead::{Ahead, Next};
use crate::import_error::ImportError;
use crate::importer::{BlockImporter, Imported};
use crate::prepared::PreparedBlock;
use crate::stream::{BlockStream, NUMBER_IN_HEADER, RawBlock, StreamError};
use node_core::backend::View;
use node_core::block::ExecutedBlock;
use node_core::context::Context;
use node_types::consensus::DecodeError;
use node_types::{BlockNumber, keccak256};
use rlp::Rlp;
use std::convert::Infallible;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of blocks per batch.
const BATCH_BLOCKS: usize = 64;

/// Total size of encoded blocks, in bytes, at which a batch is full.
const BATCH_BYTES: usize = 1 << 20;

/// Maximum number of batches in each queue before and after a worker. This bounds memory while keeping workers busy.
const QUEUED_BATCHES: usize = 4;

/// Number of executed blocks that are passed on for storage together, so that threads rarely wake each other.
const STORED_TOGETHER: usize = 8;

/// Maximum number of such batches that are waiting to be stored.
const QUEUED_STEPS: usize = 2;

/// Maximum number of threads that decode blocks and recover senders. Execution cannot keep up with more.
const MAX_WORKERS: usize = 8;

/// The progress of an import from a chain file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of the last processed block.
    pub number: BlockNumber,
    /// Number of blocks processed so far, imported or already known.
    pub blocks: u64,
    /// Number of those that were already known.
    pub known: u64,
    /// The place of the last processed block in the file, in bytes.
    pub place: Range<u64>,
    /// Gas used by the imported blocks.
    pub gas: u64,
    /// Time since the start.
    pub elapsed: Duration,
}

/// The result of an import from a chain file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Number of imported blocks, including those that were side blocks and became the head.
    pub imported: u64,
    /// Number of other blocks that were already known.
    pub known: u64,
    /// Gas used by the imported blocks.
    pub gas: u64,
    pub elapsed: Duration,
}

/// Why an import ended before the end of the file. The blocks before the fault stay imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    #[error("the chain file is damaged")]
    Stream(#[source] StreamError),
    #[error("the block at byte {offset} cannot be decoded")]
    Decode { offset: u64, source: DecodeError },
    #[error("the block at byte {offset} was not imported")]
    Import { offset: u64, source: Box<ImportError> },
}

/// Blocks that are passed from one thread to the next. Nothing follows an error.
type Batch<T> = Vec<Result<T, FileError>>;

/// A block with its place in the file.
struct Prepared {
    place: Range<u64>,
    block: Known,
}

/// Whether a block has to be imported.
enum Known {
    Already(BlockNumber),
    /// The block was not stored when it was prepared.
    NotYet(Box<PreparedBlock>),
}

/// A block for the storing thread.
enum Step {
    Already(BlockNumber),
    /// The block was executed on top of the previous block.
    Executed(ExecutedBlock),
    /// The block is not the next one of the chain. It has to be imported before any other block is executed; dropping
    /// the sender signals that.
    Apart(Box<PreparedBlock>, SyncSender<Infallible>),
}

/// Imports a chain file of any length: concatenated RLP-encoded blocks. Blocks that are already stored are recognized
/// by their headers and not executed again. They become the head by the same rule as new ones.
///
/// Blocks are stored by the calling thread, while other threads read, decode and execute later ones. `progress` is
/// called after each block.
///
/// # Errors
/// Returns a [`FileError`] for the first block that cannot be read, decoded or imported. The blocks before it stay
/// imported.
pub fn import_file(
    importer: &BlockImporter,
    context: &Context,
    reader: impl Read + Send,
    progress: impl FnMut(&Progress),
) -> Result<ImportSummary, FileError> {
    import_rest(importer, context, reader, 0, progress)
}

/// Like [`import_file`], for the rest of a file, which `reader` returns: the blocks from the byte `offset` on.
///
/// # Errors
/// Those of [`import_file`]. Offsets are those in the whole file.
pub fn import_rest(
    importer: &BlockImporter,
    context: &Context,
    reader: impl Read + Send,
    offset: u64,
    mut progress: impl FnMut(&Progress),
) -> Result<ImportSummary, FileError> {
    let start = Instant::now();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let mut inputs = Vec::new();
        let mut outputs = Vec::new();
        for _ in 0..cores.saturating_sub(1).clamp(1, MAX_WORKERS) {
            let (raw, work) = sync_channel(QUEUED_BATCHES);
            let (done, prepared) = sync_channel(QUEUED_BATCHES);
            scope.spawn(move || prepare(&work, &done, importer));
            inputs.push(raw);
            outputs.push(prepared);
        }
        scope.spawn(move || read(reader, offset, &inputs));
        let (executed, steps) = sync_channel(QUEUED_STEPS);
        scope.spawn(move || execute(&outputs, &executed, importer, context));

        let mut summary = ImportSummary::default();
        for step in steps.into_iter().flatten() {
            let (place, step) = step?;
            let (number, gas, imported) = match step {
                Step::Already(number) => {
                    let checked = context.check().map_err(ImportError::from);
                    (number, 0, checked.map(|()| Imported::AlreadyKnown))
                }
                Step::Executed(block) => {
                    let header = &block.header.header;
                    (header.number, header.gas_used, importer.append(context, block))
                }
                Step::Apart(block, _done) => {
                    (block.header.number, block.header.gas_used, importer.import(context, *block))
                }
            };
            match imported.map_err(|source| FileError::Import { offset: place.start, source: Box::new(source) })? {
                Imported::AlreadyKnown => summary.known += 1,
                Imported::Appended | Imported::SideBranch | Imported::Switched(_) => {
                    summary.imported += 1;
                    summary.gas += gas;
                }
            }
            summary.elapsed = start.elapsed();
            let ImportSummary { imported, known, gas, elapsed } = summary;
            progress(&Progress { number, blocks: imported + known, known, place, gas, elapsed });
        }
        Ok(summary)
    })
}

/// Reads the file and sends batches to the workers round-robin. Returns early if a worker has stopped.
fn read(reader: impl Read, offset: u64, workers: &[SyncSender<Batch<RawBlock>>]) {
    let mut stream = BlockStream::starting_at(BufReader::with_capacity(BATCH_BYTES, reader), offset);
    for worker in workers.iter().cycle() {
        let mut batch = Batch::new();
        let mut bytes = 0;
        while batch.len() < BATCH_BLOCKS && bytes < BATCH_BYTES {
            let Some(next) = stream.next() else { break };
            bytes += next.as_ref().map_or(0, |block| block.bytes.len());
            batch.push(next.map_err(FileError::Stream));
        }
        if batch.is_empty() || worker.send(batch).is_err() {
            return;
        }
    }
}

/// Decodes unknown blocks and recovers their senders, until there is no more work or the receiver has stopped.
fn prepare(work: &Receiver<Batch<RawBlock>>, done: &SyncSender<Batch<Prepared>>, importer: &BlockImporter) {
    for batch in work {
        // Blocks are never removed, so a block that is known now will still be known when its turn comes. An import
        // only makes better blocks the head, so a block that is canonical now will not be preferred to the head.
        let view = importer.backend().view().ok();
        let prepare = |raw: RawBlock| {
            let place = raw.offset..raw.end();
            if let Some(number) = view.as_deref().and_then(|view| known(view, &raw.bytes)) {
                return Ok(Prepared { place, block: Known::Already(number) });
            }
            match PreparedBlock::decode(&raw.bytes, &**importer.senders()) {
                Ok(block) => Ok(Prepared { place, block: Known::NotYet(Box::new(block)) }),
                Err(source) => Err(FileError::Decode { offset: raw.offset, source }),
            }
        };
        let prepared = batch.into_iter().map(|raw| raw.and_then(prepare)).collect();
        if done.send(prepared).is_err() {
            return;
        }
    }
}

/// Executes the blocks of all workers in the order of the file, until there are no more or one is invalid.
fn execute(
    workers: &[Receiver<Batch<Prepared>>],
    done: &SyncSender<Batch<(Range<u64>, Step)>>,
    importer: &BlockImporter,
    context: &Context,
) {
    let mut ahead = Ahead::new(importer);
    let mut steps = Batch::new();
    // Workers get batches round-robin, so their results arrive in the same order. The first closed channel marks the
    // end of the file.
    for worker in workers.iter().cycle() {
        let Ok(batch) = worker.recv() else { return };
        let end = batch.len();
        for (prepared, number) in batch.into_iter().zip(1..) {
            let mut wait = None;
            let mut execute = |Prepared { place, block }| {
                let next = match block {
                    Known::Already(number) => return Ok((place, Step::Already(number))),
                    Known::NotYet(block) => ahead.execute(context, *block),
                };
                match next {
                    Ok(Next::Executed(block)) => Ok((place, Step::Executed(block))),
                    Ok(Next::Apart(block)) => {
                        let (imported, imports) = sync_channel(0);
                        wait = Some(imports);
                        Ok((place, Step::Apart(block, imported)))
                    }
                    Err(source) => Err(FileError::Import { offset: place.start, source: Box::new(source) }),
                }
            };
            let step = prepared.and_then(&mut execute);
            let failed = step.is_err();
            steps.push(step);
            let is_full = steps.len() == STORED_TOGETHER || number == end;
            if (is_full || failed || wait.is_some()) && done.send(std::mem::take(&mut steps)).is_err() || failed {
                return;
            }
            if let Some(imports) = wait {
                // Nothing is ever sent; this waits until the sender is dropped.
                let _ = imports.recv();
            }
        }
    }
}

/// Returns the number of an encoded block if it is canonical in `view`. Errors are ignored here, because the import will
/// report them.
pub(crate) fn known(view: &dyn View, block: &[u8]) -> Option<BlockNumber> {
    let header = Rlp::new(block).at(0).ok()?;
    // Most blocks of an import are above the head, so no hash has to be computed.
    let number = header.val_at::<BlockNumber>(NUMBER_IN_HEADER).ok().filter(|number| *number <= view.head().number)?;
    (view.canonical_hash(number).ok()? == Some(keccak256(header.as_raw()))).then_some(number)
}

#[cfg(test)]
mod tests;
