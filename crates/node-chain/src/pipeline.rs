//! Import of chain files: blocks are read, decoded and their senders recovered ahead of execution.

use crate::chain::{Chain, Imported};
use crate::import_error::ImportError;
use crate::prepared::PreparedBlock;
use crate::stream::{BlockStream, RawBlock, StreamError};
use node_core::backend::View;
use node_core::block::BlockHashOrNumber;
use node_core::context::Context;
use node_types::consensus::DecodeError;
use node_types::{BlockNumber, keccak256};
use rlp::Rlp;
use std::io::{BufReader, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Blocks that go from thread to thread at once, unless they are long.
const BATCH_BLOCKS: usize = 64;

/// Bytes of encoded blocks from which on a batch is full.
const BATCH_BYTES: usize = 1 << 20;

/// Batches that wait before and after each worker: enough that nobody waits, few enough to bound memory.
const QUEUED_BATCHES: usize = 4;

/// Most threads that decode and recover senders; execution cannot keep up with more.
const MAX_WORKERS: usize = 8;

/// How far an import has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of the last block.
    pub number: BlockNumber,
    /// Blocks read and imported, or known already.
    pub blocks: u64,
    /// Gas used by the blocks that were not known.
    pub gas: u64,
    /// Time since the start.
    pub elapsed: Duration,
}

/// What an import came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Blocks that were not known before.
    pub imported: u64,
    /// Blocks that were.
    pub known: u64,
    /// Gas used by the blocks that were not.
    pub gas: u64,
    /// Time taken.
    pub elapsed: Duration,
}

/// Why an import ended before the file did. The blocks before stay.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file does not go on with a block.
    #[error("the chain file is damaged")]
    Stream(#[source] StreamError),
    /// What is there is no block.
    #[error("the block at byte {offset} cannot be decoded")]
    Decode {
        /// Where it begins.
        offset: u64,
        /// Why.
        #[source]
        source: DecodeError,
    },
    /// The block was refused.
    #[error("the block at byte {offset} was not imported")]
    Import {
        /// Where it begins.
        offset: u64,
        /// Why.
        #[source]
        source: Box<ImportError>,
    },
}

/// Blocks on their way from one thread to the next. An error is the last of them.
type Batch<T> = Vec<Result<T, FileError>>;

/// A block with its place in the file.
struct Prepared {
    offset: u64,
    block: Known,
}

/// Whether a block has to be imported.
enum Known {
    /// The block is there already: its number.
    Already(BlockNumber),
    /// It may be there by the time its turn comes.
    NotYet(Box<PreparedBlock>),
}

/// Imports a chain file of any length: encoded blocks, one behind the other. Blocks that are known are passed over: of these only
/// the header is looked at.
///
/// Execution runs on the calling thread, everything before it on others. `progress` is called after each block.
pub fn import_file(
    chain: &Chain,
    context: &Context,
    reader: impl Read + Send,
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
            scope.spawn(move || prepare(&work, &done, chain));
            inputs.push(raw);
            outputs.push(prepared);
        }
        scope.spawn(move || read(reader, &inputs));

        let mut summary = ImportSummary::default();
        // Batches were dealt out in turn, and are taken back in turn. When all threads before are done, so is the file.
        for output in (0..outputs.len()).cycle() {
            let Ok(batch) = outputs[output].recv() else { break };
            for prepared in batch {
                let Prepared { offset, block } = prepared?;
                let (number, gas, imported) = match block {
                    Known::Already(number) => {
                        let checked = context.check().map_err(ImportError::from);
                        (number, 0, checked.map(|()| Imported::AlreadyKnown))
                    }
                    Known::NotYet(block) => (block.header.number, block.header.gas_used, chain.import(context, *block)),
                };
                match imported.map_err(|source| FileError::Import { offset, source: Box::new(source) })? {
                    Imported::AlreadyKnown => summary.known += 1,
                    Imported::Appended | Imported::SideBranch | Imported::Switched(_) => {
                        summary.imported += 1;
                        summary.gas += gas;
                    }
                }
                summary.elapsed = start.elapsed();
                let blocks = summary.imported + summary.known;
                progress(&Progress { number, blocks, gas: summary.gas, elapsed: summary.elapsed });
            }
        }
        Ok(summary)
    })
}

/// Reads the file, and deals out batches to the workers in turn. Ends early when a worker is gone.
fn read(reader: impl Read, workers: &[SyncSender<Batch<RawBlock>>]) {
    let mut stream = BlockStream::new(BufReader::with_capacity(BATCH_BYTES, reader));
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

/// Decodes blocks that are not known and recovers their senders. Ends when there is no more work, or nobody wants it.
fn prepare(work: &Receiver<Batch<RawBlock>>, done: &SyncSender<Batch<Prepared>>, chain: &Chain) {
    for batch in work {
        // Blocks are never forgotten, so that what is known now is known when its turn comes.
        let view = chain.backend().view().ok();
        let prepare = |RawBlock { offset, bytes }| {
            if let Some(number) = view.as_deref().and_then(|view| known(view, &bytes)) {
                return Ok(Prepared { offset, block: Known::Already(number) });
            }
            match PreparedBlock::decode(&bytes, &**chain.senders()) {
                Ok(block) => Ok(Prepared { offset, block: Known::NotYet(Box::new(block)) }),
                Err(source) => Err(FileError::Decode { offset, source }),
            }
        };
        let prepared = batch.into_iter().map(|raw| raw.and_then(prepare)).collect();
        if done.send(prepared).is_err() {
            return;
        }
    }
}

/// The number of a block, if `view` has it. Whatever keeps that from being told will be told by its import.
fn known(view: &dyn View, block: &[u8]) -> Option<BlockNumber> {
    let header = Rlp::new(block).at(0).ok()?;
    let header = view.header(BlockHashOrNumber::Hash(keccak256(header.as_raw()))).ok()??;
    Some(header.header.number)
}

#[cfg(test)]
mod tests;
