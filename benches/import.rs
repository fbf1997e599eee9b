//! Import of chain files from memory into an empty backend: decoding, sender recovery, execution, validation, state
//! roots.

#![allow(clippy::unwrap_used)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use node_chain::{BlockImporter, Genesis, ImportSummary, dev_genesis, import_file};
use node_core::backend::MemoryBackend;
use node_core::context::Context;
use node_evm::{EvmExecutor, Secp256k1Recovery};
use node_tests::generator::{Generator, Shape};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

criterion_main!(benches);
criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(5));
    targets = small_blocks, large_blocks, dev20k
}

/// Two transactions per block: measures the cost of a block.
fn small_blocks(criterion: &mut Criterion) {
    let file = generated(2_000, 2);
    bench(criterion, "2000 blocks of 2", &dev_genesis(), &file, |summary| summary.imported);
}

/// Full blocks: measures the cost of gas.
fn large_blocks(criterion: &mut Criterion) {
    let file = generated(100, 200);
    bench(criterion, "gas, 100 blocks of 200", &dev_genesis(), &file, |summary| summary.gas);
}

/// A chain of another client. Skipped with a message if `../shared/bench` does not exist.
fn dev20k(criterion: &mut Criterion) {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    let root = env::var_os("NODE_SHARED").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let folder = root.join("bench");
    let (Ok(json), Ok(file)) = (fs::read(folder.join("dev20k.genesis.json")), fs::read(folder.join("dev20k.rlp")))
    else {
        eprintln!("skipped: {} has no dev20k", folder.display());
        return;
    };
    bench(criterion, "dev20k", &Genesis::parse(&json).unwrap(), &file, |summary| summary.imported);
}

fn generated(blocks: u64, transactions_per_block: usize) -> Vec<u8> {
    let mut file = Vec::new();
    Generator::new(Shape { transactions_per_block, ..Shape::default() }).write(blocks, &mut file).unwrap();
    file
}

/// Measures imports of `file`, with the throughput in what `elements` counts.
fn bench(
    criterion: &mut Criterion,
    name: &str,
    genesis: &Genesis,
    file: &[u8],
    elements: impl Fn(ImportSummary) -> u64,
) {
    let chain = || {
        let spec = Arc::new(genesis.spec.clone());
        let backend = Arc::new(MemoryBackend::new(genesis.block()).unwrap());
        BlockImporter::new(backend, Arc::new(EvmExecutor::new(spec.clone())), Arc::new(Secp256k1Recovery), spec)
    };
    let import = |chain: &BlockImporter| import_file(chain, &Context::unbounded(), file, |_| {}).unwrap();
    let mut group = criterion.benchmark_group("import");
    group.throughput(Throughput::Elements(elements(import(&chain()))));
    // Returns the chain, so that dropping it is not measured.
    let timed = |chain: BlockImporter| {
        import(&chain);
        chain
    };
    group.bench_function(name, |bencher| bencher.iter_batched(chain, timed, BatchSize::PerIteration));
}
