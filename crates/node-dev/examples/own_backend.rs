//! A development chain over a custom backend: it stores the chain in memory and also appends each block to a chain file,
//! which any Ethereum client can import.
//!
//! `cargo run -p node-dev --example own_backend -- chain.rlp`

use node_chain::export_blocks;
use node_core::backend::{
    BackendError, BackendHealth, HeadChange, HeadListener, MemoryBackend, Record, RecordKind, RecordWrite,
    StateBackend, View,
};
use node_core::block::ExecutedBlock;
use node_core::caches::CacheUse;
use node_core::context::Context;
use node_dev::{AccountOptions, Accounts, DevGenesis, DevNode};
use node_types::BlockNumber;
use node_types::consensus::{DynamicFeeTransaction, TransactionBody};
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Appends canonical blocks to a file, and leaves the rest to a [`MemoryBackend`].
struct ChainFile {
    memory: MemoryBackend,
    file: Mutex<File>,
}

impl ChainFile {
    /// Writes the canonical blocks above `ancestor`. After a switch the file holds the blocks of the abandoned branch, then
    /// those of the new one.
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

    fn proves_quickly(&self) -> bool {
        self.memory.proves_quickly()
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.memory.write_records_unsynced(writes)
    }

    fn sync_records(&self) -> Result<(), BackendError> {
        self.memory.sync_records()
    }

    fn caches(&self) -> Vec<CacheUse> {
        self.memory.caches()
    }

    fn health(&self) -> BackendHealth {
        self.memory.health()
    }

    fn write_records(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.memory.write_records(writes)
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.memory.record(kind, key)
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
    let node = DevNode::builder().genesis(genesis).backend(Arc::new(backend)).spawn()?;
    let context = Context::unbounded();
    for nonce in 0..3 {
        let transfer = accounts[0].sign(TransactionBody::DynamicFee(DynamicFeeTransaction {
            chain_id: node.spec().chain_id,
            nonce,
            max_fee_per_gas: 2_000_000_000.into(),
            max_priority_fee_per_gas: 1.into(),
            gas_limit: 21_000,
            to: Some(accounts[1].address()),
            value: 1.into(),
            ..Default::default()
        }));
        node.send_transaction(&context, transfer)?;
    }
    let head = node.block_number(&context)?;
    println!("{head} blocks, {} bytes in {path}", std::fs::metadata(&path)?.len());
    Ok(())
}
