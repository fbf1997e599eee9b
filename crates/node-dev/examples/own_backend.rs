//! node-core over a backend of one's own: a chain in memory that also writes each block to a chain file, which any
//! Ethereum client imports.
//!
//! `cargo run -p node-dev --example own_backend -- chain.rlp`

use node_chain::export_blocks;
use node_core::backend::{
    BackendError, HeadChange, HeadListener, MemoryBackend, Record, RecordKind, RecordWrite, StateBackend, View,
};
use node_core::block::ExecutedBlock;
use node_core::clock::SystemClock;
use node_core::context::Context;
use node_core::filters::FilterLimits;
use node_core::node::{Finality, Limits, Node, NodeParts};
use node_core::pool::PoolLimits;
use node_core::producer::Production;
use node_dev::{AccountOptions, Accounts, DevGenesis};
use node_evm::{EvmExecutor, KzgVerifier, Secp256k1Recovery};
use node_types::BlockNumber;
use node_types::consensus::{DynamicFeeTransaction, TransactionBody};
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Writes what it is given, and leaves the rest to a chain in memory.
struct ChainFile {
    memory: MemoryBackend,
    file: Mutex<File>,
}

impl ChainFile {
    /// Writes the blocks above `ancestor` that are canonical now. A client that imports the file meets the blocks of a
    /// branch that was left first, and then those of the longer one.
    fn write_above(&self, ancestor: BlockNumber) -> Result<(), BackendError> {
        let view = self.memory.view()?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = export_blocks(&*view, ancestor + 1..=view.head().number, &mut *file);
        written.map_err(|error| BackendError::Storage(Box::new(error)))?;
        file.flush().map_err(|error| BackendError::Storage(Box::new(error)))
    }
}

impl StateBackend for ChainFile {
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        self.memory.view()
    }

    fn append(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        let parent = block.header.header.number - 1;
        self.memory.append(block)?;
        self.write_above(parent)
    }

    fn switch(&self, ancestor: BlockNumber, branch: Vec<ExecutedBlock>) -> Result<HeadChange, BackendError> {
        let change = self.memory.switch(ancestor, branch)?;
        self.write_above(ancestor)?;
        Ok(change)
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        self.memory.keep_side_block(block)
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.memory.subscribe(listener);
    }

    fn write_records(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.memory.write_records(writes)
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        self.memory.records(kind)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "chain.rlp".to_owned());
    let accounts = Accounts::derive(&AccountOptions::default())?;
    let genesis = DevGenesis::default().build(accounts.addresses())?;
    let backend = ChainFile { memory: MemoryBackend::new(genesis.block())?, file: Mutex::new(File::create(&path)?) };
    let spec = Arc::new(genesis.spec);
    let node = Node::open(NodeParts {
        backend: Arc::new(backend),
        executor: Arc::new(EvmExecutor::new(spec.clone())),
        recovery: Arc::new(Secp256k1Recovery),
        blobs: Arc::new(KzgVerifier),
        accounts: None,
        clock: Arc::new(SystemClock),
        spec: spec.clone(),
        production: Some(Production::default()),
        finality: Finality::DEVELOPMENT,
        limits: Limits::default(),
        pool_limits: PoolLimits::default(),
        filter_limits: FilterLimits::default(),
        client_version: "own-backend/1".to_owned(),
    })?;
    for nonce in 0..3 {
        node.send(accounts[0].sign(TransactionBody::DynamicFee(DynamicFeeTransaction {
            chain_id: spec.chain_id,
            nonce,
            max_fee_per_gas: 2_000_000_000.into(),
            max_priority_fee_per_gas: 1.into(),
            gas_limit: 21_000,
            to: Some(accounts[1].address()),
            value: 1.into(),
            ..Default::default()
        })))?;
    }
    let head = node.block_number(&Context::unbounded())?.block_number.0;
    println!("{head} blocks, {} bytes in {path}", std::fs::metadata(&path)?.len());
    Ok(())
}
