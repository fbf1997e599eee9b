//! Operations of the node without HTTP, on a chain of 2,000 blocks with 20,000 transactions.

#![allow(clippy::unwrap_used)]

use criterion::{Criterion, criterion_group, criterion_main};
use node_core::backend::StateBackend;
use node_core::context::Context;
use node_core::node::Node;
use node_evm::EvmExecutor;
use node_tests::generator::{CONTRACT, EVENT, Generator, Shape, slot_key};
use node_types::wire::{
    AddressFilter, CallInput, Data, EstimateGasInput, FeeHistoryInput, GetBlockByNumberInput, GetLogsInput,
    GetProofInput, GetStorageAtInput, Quantity, StorageKey, TopicFilter, TransactionCall,
};
use node_types::{BlockId, BlockNumberOrTag, H256, U256};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const BLOCKS: u64 = 2_000;
const SHAPE: Shape =
    Shape { accounts: 10, slots: 10_000, holders: 0, recipients: u64::MAX, transactions_per_block: 10, seed: 1 };

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
    let topics = |words: [H256; 2]| words.map(|word| TopicFilter(vec![word])).to_vec();
    let range = |first, last| GetLogsInput {
        from_block: Some(BlockNumberOrTag::Number(first)),
        to_block: Some(BlockNumberOrTag::Number(last)),
        ..GetLogsInput::default()
    };
    let address = AddressFilter(vec![CONTRACT]);
    let cases = [
        ("a rare topic, all blocks", GetLogsInput { topics: topics([EVENT, *slot]), ..range(0, BLOCKS) }),
        ("an absent topic, all blocks", GetLogsInput { topics: topics([EVENT, H256::zero()]), ..range(0, BLOCKS) }),
        ("one address, 100 blocks", GetLogsInput { address, ..range(BLOCKS - 99, BLOCKS) }),
    ];
    let mut group = criterion.benchmark_group("logs");
    for (name, input) in cases {
        let found = node.get_logs(&Context::unbounded(), input.clone()).unwrap().logs.len();
        assert_eq!(found == 0, name.contains("absent"), "{name}: {found} logs");
        group.bench_function(name, |bencher| {
            bencher.iter(|| node.get_logs(&Context::unbounded(), input.clone()).unwrap())
        });
    }
}

fn proofs(criterion: &mut Criterion) {
    let World { node, slot } = &*WORLD;
    let mut group = criterion.benchmark_group("proof");
    for (name, block) in [("the head", BlockId::latest()), ("block 100", BlockId::number(100))] {
        let input =
            GetProofInput { address: Data(CONTRACT), block_number: block, storage_keys: vec![StorageKey(*slot)] };
        group.bench_function(name, |bencher| {
            bencher.iter(|| node.get_proof(&Context::unbounded(), input.clone()).unwrap())
        });
    }
}

fn fee_history(criterion: &mut Criterion) {
    let World { node, .. } = &*WORLD;
    let mut group = criterion.benchmark_group("fee history");
    for blocks in [20, 1_024] {
        let input = FeeHistoryInput {
            block_count: Quantity(blocks),
            newest_block: BlockNumberOrTag::Latest,
            reward_percentiles: vec![25.0, 50.0, 75.0],
        };
        group.bench_function(format!("{blocks} blocks"), |bencher| {
            bencher.iter(|| node.fee_history(&Context::unbounded(), input.clone()).unwrap())
        });
    }
}

fn state(criterion: &mut Criterion) {
    let World { node, slot } = &*WORLD;
    let mut group = criterion.benchmark_group("state");
    let storage =
        GetStorageAtInput { address: Data(CONTRACT), block_number: BlockId::latest(), position: StorageKey(*slot) };
    group.bench_function("storage", |bencher| {
        bencher.iter(|| node.get_storage_at(&Context::unbounded(), storage.clone()).unwrap())
    });
    let transaction = |input: &[u8]| TransactionCall {
        to: Some(Data(CONTRACT)),
        data: Some(Data(input.into())),
        ..TransactionCall::default()
    };
    let read = CallInput { block_number: BlockId::latest(), transaction: transaction(slot.as_bytes()) };
    group.bench_function("call", |bencher| bencher.iter(|| node.call(&Context::unbounded(), read.clone()).unwrap()));
    let write = [slot_key(SHAPE.slots).0, U256::one().to_big_endian()].concat();
    let write = EstimateGasInput { object: None, transaction: transaction(&write) };
    group.bench_function("estimate", |bencher| {
        bencher.iter(|| node.estimate_gas(&Context::unbounded(), write.clone()).unwrap())
    });
}

/// From the backend to the JSON of the response.
fn blocks(criterion: &mut Criterion) {
    let World { node, .. } = &*WORLD;
    let mut group = criterion.benchmark_group("block");
    for (name, transaction_detail) in [("hashes", false), ("10 transactions", true)] {
        let input = GetBlockByNumberInput { block_number: BlockNumberOrTag::Number(BLOCKS / 2), transaction_detail };
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let output = node.get_block_by_number(&Context::unbounded(), input).unwrap();
                serde_json::to_vec(&output).unwrap()
            })
        });
    }
}
