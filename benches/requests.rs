//! Operations of the node without HTTP, on a chain of 2,000 blocks with 20,000 transactions.

#![allow(clippy::unwrap_used)]

use criterion::{Criterion, criterion_group, criterion_main};
use node_core::backend::LogFilter;
use node_core::context::Context;
use node_core::executor::Call;
use node_core::node::{BlockRange, LogBlocks, LogQuery, Node};
use node_evm::EvmExecutor;
use node_tests::generator::{CONTRACT, EVENT, Generator, Shape, slot_key};
use node_types::{BlockId, BlockNumberOrTag, H256, U256};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const BLOCKS: u64 = 2_000;
const SHAPE: Shape = Shape {
    accounts: 10,
    slots: 10_000,
    holders: 0,
    recipients: u64::MAX,
    transactions_per_block: 10,
    seed: 1,
    genesis_accounts: 0,
};

criterion_main!(benches);
criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
    targets = logs, proofs, fee_history, state, blocks
}

/// The chain, and a slot that a block in its middle writes.
struct World {
    node: Node,
    slot: H256,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let mut generator = Generator::new(SHAPE);
    for _ in 0..BLOCKS {
        generator.next_block().unwrap();
    }
    let backend = generator.backend();
    let receipts = backend.view().unwrap().receipts((BLOCKS / 2).into()).unwrap().unwrap();
    let slot = receipts.iter().flat_map(|receipt| &receipt.logs).next().unwrap().topics[1];
    let spec = generator.spec().clone();
    let node = Node::builder(backend, Arc::new(EvmExecutor::new(spec.clone())), spec).open();
    World { node: node.unwrap(), slot }
});

fn logs(criterion: &mut Criterion) {
    let World { node, slot } = &*WORLD;
    let topics = |words: [H256; 2]| LogFilter { topics: words.map(|word| vec![word]).to_vec(), ..LogFilter::default() };
    let query = |filter, first: u64, last: u64| {
        let range = BlockRange { from: Some(first.into()), to: Some(last.into()) };
        LogQuery { filter, blocks: LogBlocks::Range(range), ..LogQuery::default() }
    };
    let address = LogFilter { addresses: vec![CONTRACT], ..LogFilter::default() };
    let cases = [
        ("a rare topic, all blocks", query(topics([EVENT, *slot]), 0, BLOCKS)),
        ("an absent topic, all blocks", query(topics([EVENT, H256::zero()]), 0, BLOCKS)),
        ("one address, 100 blocks", query(address, BLOCKS - 99, BLOCKS)),
    ];
    let mut group = criterion.benchmark_group("logs");
    for (name, query) in cases {
        let found = node.get_logs(&Context::unbounded(), &query).unwrap().len();
        assert_eq!(found == 0, name.contains("absent"), "{name}: {found} logs");
        group.bench_function(name, |bencher| bencher.iter(|| node.get_logs(&Context::unbounded(), &query).unwrap()));
    }
}

fn proofs(criterion: &mut Criterion) {
    let World { node, slot } = &*WORLD;
    let mut group = criterion.benchmark_group("proof");
    for (name, block) in [("the head", BlockId::latest()), ("block 100", BlockId::number(100))] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| node.get_proof(&Context::unbounded(), CONTRACT, &[*slot], block).unwrap())
        });
    }
}

fn fee_history(criterion: &mut Criterion) {
    let World { node, .. } = &*WORLD;
    let mut group = criterion.benchmark_group("fee history");
    for blocks in [20, 1_024] {
        let percentiles = [25.0, 50.0, 75.0];
        group.bench_function(format!("{blocks} blocks"), |bencher| {
            let context = Context::unbounded();
            bencher.iter(|| node.fee_history(&context, blocks, BlockNumberOrTag::Latest, &percentiles).unwrap())
        });
    }
}

fn state(criterion: &mut Criterion) {
    let World { node, slot } = &*WORLD;
    let mut group = criterion.benchmark_group("state");
    let (context, latest) = (Context::unbounded(), BlockId::latest());
    group.bench_function("storage", |bencher| {
        bencher.iter(|| node.get_storage_at(&context, CONTRACT, *slot, latest).unwrap())
    });
    let call = |input: &[u8]| Call { to: Some(CONTRACT), input: input.into(), ..Call::default() };
    let read = call(slot.as_bytes());
    group.bench_function("call", |bencher| bencher.iter(|| node.call(&context, &read, latest).unwrap()));
    let write = call(&[slot_key(SHAPE.slots).0, U256::one().to_big_endian()].concat());
    group.bench_function("estimate", |bencher| bencher.iter(|| node.estimate_gas(&context, &write, latest).unwrap()));
}

fn blocks(criterion: &mut Criterion) {
    let World { node, .. } = &*WORLD;
    criterion.bench_function("block", |bencher| {
        bencher.iter(|| node.get_block(&Context::unbounded(), BlockId::number(BLOCKS / 2)).unwrap())
    });
}
