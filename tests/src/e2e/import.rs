//! Import of whole chains: a generated one and the recorded one.

use crate::generator::{Generator, Shape};
use crate::server::conformance_chain;
use node_chain::{BlockImporter, BlockStream, Genesis, ImportError, Imported, dev_genesis};
use node_core::backend::MemoryBackend;
use node_core::block::BlockRef;
use node_core::context::Context;
use node_evm::{EvmExecutor, Secp256k1Recovery};
use node_types::H256;
use node_types::consensus::{Block, Bloom, Header};
use std::error::Error;
use std::fs;
use std::sync::Arc;

/// A chain to import.
struct TestChain {
    name: &'static str,
    genesis: Genesis,
    blocks: Vec<Block>,
}

fn decode(file: &[u8]) -> Vec<Block> {
    BlockStream::new(file).map(|raw| Block::decode(&raw.unwrap().bytes).unwrap()).collect()
}

fn generated() -> TestChain {
    let mut file = Vec::new();
    Generator::new(Shape::default()).write(20, &mut file).unwrap();
    TestChain { name: "generated", genesis: dev_genesis(), blocks: decode(&file) }
}

fn recorded() -> TestChain {
    let [_, genesis, _, file] = conformance_chain();
    let genesis = Genesis::parse(&fs::read(genesis).unwrap()).unwrap();
    TestChain { name: "recorded", genesis, blocks: decode(&fs::read(file).unwrap()) }
}

/// A chain in memory that holds the genesis and the first `count` blocks.
fn imported(chain: &TestChain, count: usize) -> BlockImporter {
    let spec = Arc::new(chain.genesis.spec.clone());
    let backend = Arc::new(MemoryBackend::new(chain.genesis.block()).unwrap());
    let executor = Arc::new(EvmExecutor::new(Arc::clone(&spec)));
    let grown = BlockImporter::new(backend, executor, Arc::new(Secp256k1Recovery), spec);
    for block in &chain.blocks[..count] {
        let number = block.header.number;
        let result = import(&grown, block.clone());
        let result = result.unwrap_or_else(|error| panic!("{}, block {number}: {}", chain.name, chained(&error)));
        assert_eq!(result, Imported::Appended, "{}, block {number}", chain.name);
    }
    grown
}

fn import(chain: &BlockImporter, block: Block) -> Result<Imported, ImportError> {
    chain.import_block(&Context::unbounded(), block)
}

fn head(chain: &BlockImporter) -> BlockRef {
    chain.backend().view().unwrap().head()
}

/// An error with all its sources.
fn chained(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chained(source)),
        None => error.to_string(),
    }
}

/// A change to a valid block, and the start of the expected error.
type Case = (fn(&mut Block), &'static str);

/// Imports the blocks before `number`, then block `number` with each change, and finally unchanged.
fn check_refusals(chain: &TestChain, number: usize, cases: &[Case]) {
    let grown = imported(chain, number - 1);
    let before = head(&grown);
    let good = &chain.blocks[number - 1];
    for (change, expected) in cases {
        let mut block = good.clone();
        change(&mut block);
        let error = import(&grown, block).expect_err(expected);
        let ImportError::Invalid { block, source } = &error else { panic!("{}, {expected}: {error}", chain.name) };
        let got = chained(source);
        assert!(got.starts_with(expected), "{}\n got: {got}\nwant: {expected}", chain.name);
        assert_eq!(block.number, number as u64);
        assert_eq!(head(&grown), before, "{}: {expected}", chain.name);
    }
    assert_eq!(import(&grown, good.clone()).unwrap(), Imported::Appended, "{}", chain.name);
}

#[test]
fn the_generated_chain() {
    check_chain(&generated());
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn the_recorded_chain() {
    check_chain(&recorded());
}

fn check_chain(chain: &TestChain) {
    imports_every_block_once(chain);
    rejects_headers_that_execution_contradicts(chain);
    rejects_invalid_transactions_and_bodies(chain);
}

fn imports_every_block_once(chain: &TestChain) {
    let grown = imported(chain, chain.blocks.len());
    for block in &chain.blocks {
        assert_eq!(import(&grown, block.clone()).unwrap(), Imported::AlreadyKnown, "{}", chain.name);
    }
    assert_eq!(head(&grown).hash, chain.blocks.last().unwrap().header.hash(), "{}", chain.name);
}

fn rejects_headers_that_execution_contradicts(chain: &TestChain) {
    check_refusals(
        chain,
        chain.blocks.len(),
        &[
            (|block| block.header.gas_used += 1, "gas used "),
            (
                |block| block.header.blob_gas_used = block.header.blob_gas_used.map(|gas| gas + (1 << 17)),
                "blob gas used ",
            ),
            (|block| block.header.logs_bloom = Bloom([1; 256]), "the logs bloom "),
            (|block| block.header.receipts_root = H256::zero(), "receipts root 0x00"),
            (|block| block.header.requests_hash = Some(H256::zero()), "requests hash 0x00"),
            (|block| block.header.state_root = H256::zero(), "state root 0x00"),
            (|block| block.header.transactions_root = H256::zero(), "transactions root 0x00"),
            (|block| block.header.withdrawals_root = Some(H256::zero()), "withdrawals root 0x00"),
        ],
    );
}

fn rejects_invalid_transactions_and_bodies(chain: &TestChain) {
    let last = chain.blocks.iter().rposition(|block| !block.transactions.is_empty()).unwrap();
    check_refusals(
        chain,
        last + 1,
        &[
            (
                |block| block.transactions[0].signature.r = 0.into(),
                "transaction 0 is invalid: invalid sender: r and s must be above zero",
            ),
            (|block| block.transactions.insert(1, block.transactions[0].clone()), "transaction 1 is invalid: nonce "),
            (|block| block.transactions.clear(), "transactions root "),
            (|block| block.ommers.push(Header::default()), "ommers after the merge"),
            (|block| block.withdrawals = None, "the list of withdrawals is missing"),
            (|block| block.withdrawals = Some(vec![Default::default()]), "withdrawals root "),
        ],
    );
}
