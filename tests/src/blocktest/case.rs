//! One test: a genesis, blocks, and the expected head and state.

use super::Storage;
use super::exceptions::check_refusal;
use super::format::{Account, BlockTest};
use super::hex::Number;
use super::network::chain_spec;
use node_chain::genesis::GenesisAccount;
use node_chain::{BlockImporter, Genesis};
use node_core::backend::{MemoryBackend, StateBackend, View};
use node_core::block::BlockHashOrNumber;
use node_core::context::Context;
use node_evm::{EvmExecutor, Secp256k1Recovery};
use node_store::{Options, Store};
use node_types::Address;
use node_types::consensus::Block;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

/// Runs one test. The error describes what differed.
pub(super) fn run(test: &BlockTest, storage: Storage) -> Result<(), String> {
    let spec = Arc::new(chain_spec(&test.network, &test.config)?);
    let encoded = Block::decode(&test.genesis_rlp.0).map_err(|error| format!("genesisRLP: {error}"))?;
    let genesis =
        Genesis { spec: (*spec).clone(), header: encoded.header, alloc: accounts(&test.pre)?, state_root: None };
    let block = genesis.block();
    if block.header.hash != test.genesis_block_header.hash.word() {
        return Err(format!(
            "genesis: hash {:#x}, expected {:#x}",
            block.header.hash, test.genesis_block_header.hash.0
        ));
    }

    // Dropped after the backend, which is declared later.
    let folder = tempfile::tempdir().map_err(|error| chained(&error))?;
    let options = Options::for_import();
    let backend: Arc<dyn StateBackend> = match storage {
        Storage::Memory => Arc::new(MemoryBackend::new(block).map_err(|error| chained(&error))?),
        Storage::Folders => Arc::new(Store::open(folder.path(), block, options).map_err(|error| chained(&error))?),
    };
    let executor = Arc::new(EvmExecutor::new(Arc::clone(&spec)));
    let chain = BlockImporter::new(Arc::clone(&backend), executor, Arc::new(Secp256k1Recovery), spec);
    for (index, block) in test.blocks.iter().enumerate() {
        let result = chain.import_bytes(&Context::unbounded(), &block.rlp.0);
        let verdict = match (&result, &block.expect_exception) {
            (Ok(_), None) if block.block_header.is_some() => Ok(()),
            (Ok(_), None) => Err("was imported, expected to be refused".to_owned()),
            (Ok(_), Some(exception)) => Err(format!("was imported, expected {exception}")),
            (Err(error), Some(exception)) => check_refusal(exception, error),
            (Err(error), None) if block.block_header.is_some() => Err(chained(error)),
            (Err(_), None) => Ok(()),
        };
        verdict.map_err(|reason| format!("block {index} of the list: {reason}"))?;
    }

    let view = backend.view().map_err(|error| chained(&error))?;
    let head = view.head();
    if head.hash != test.lastblockhash.word() {
        return Err(format!("the head is {head}, expected {:#x}", test.lastblockhash.word()));
    }
    check_state(test, &genesis, &*view)
}

/// Compares the state at the head by its root, which also covers accounts that should not exist.
fn check_state(test: &BlockTest, genesis: &Genesis, view: &dyn View) -> Result<(), String> {
    let head = view.head();
    let header = view.header(BlockHashOrNumber::Hash(head.hash)).map_err(|error| chained(&error))?;
    let root = header.ok_or("the head has no header")?.header.state_root;
    if let Some(expected) = test.post_state_hash
        && root != expected.word()
    {
        return Err(format!("state root {root:#x}, expected {:#x}", expected.word()));
    }
    let Some(post) = &test.post_state else { return Ok(()) };
    let alloc = accounts(post)?;
    let state = view.state(head.number).map_err(|error| chained(&error))?;
    for (address, expected) in &alloc {
        let account = state.account(*address).map_err(|error| chained(&error))?.unwrap_or_default();
        if (account.balance, account.nonce) != (expected.balance, expected.nonce) {
            return Err(format!(
                "{address:#x}: balance {}, nonce {}; expected {}, {}",
                account.balance, account.nonce, expected.balance, expected.nonce
            ));
        }
        for (slot, expected) in &expected.storage {
            let value = state.storage(*address, *slot).map_err(|error| chained(&error))?;
            if value != *expected {
                return Err(format!("{address:#x}: slot {slot:#x} holds {value:#x}, expected {expected:#x}"));
            }
        }
    }
    let expected = Genesis { alloc, ..genesis.clone() }.block().header.header.state_root;
    if root == expected { Ok(()) } else { Err(format!("state root {root:#x}, expected {expected:#x} from postState")) }
}

fn accounts(accounts: &BTreeMap<Number, Account>) -> Result<BTreeMap<Address, GenesisAccount>, String> {
    let pair = |(address, account): (&Number, &Account)| Ok((Address::from(address.word()), account.to_genesis()?));
    accounts.iter().map(pair).collect()
}

/// An error with all its sources.
pub(super) fn chained(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
