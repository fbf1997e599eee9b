//! Chains for tests.

use crate::validation::BlockError;
use crate::{BlockImporter, BlockStream, Genesis, ImportError, Imported};
use node_core::backend::MemoryBackend;
use node_core::block::SealedHeader;
use node_core::context::Context;
use node_core::protocol::fees::{next_base_fee, next_excess_blob_gas};
use node_core::protocol::{ChainSpec, Fork};
use node_evm::{EvmExecutor, Secp256k1Recovery};
use node_types::consensus::{Block, EMPTY_OMMERS_HASH, EMPTY_REQUESTS_HASH, EMPTY_ROOT, Header, HeaderField};
use node_types::{Bytes, H256};
use std::path::PathBuf;
use std::sync::Arc;
use std::{env, fs};

/// Returns a file of the recorded test data: in `../shared` beside the workspace, or in the folder in `NODE_SHARED`.
pub(crate) fn shared(path: &str) -> Vec<u8> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let root = env::var_os("NODE_SHARED").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let file = root.join(path);
    fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

pub(crate) fn conformance_chain() -> (Genesis, Vec<Block>) {
    let genesis = Genesis::parse(&shared("conformance/chain/genesis.json")).unwrap();
    let file = shared("conformance/chain/chain.rlp");
    let blocks = BlockStream::new(&file[..]).map(|raw| Block::decode(&raw.unwrap().bytes).unwrap()).collect();
    (genesis, blocks)
}

/// Returns a chain in memory with only the genesis block.
pub(crate) fn chain_of(genesis: &Genesis) -> BlockImporter {
    let spec = Arc::new(genesis.spec.clone());
    let backend = Arc::new(MemoryBackend::new(genesis.block()).unwrap());
    BlockImporter::new(backend, Arc::new(EvmExecutor::new(Arc::clone(&spec))), Arc::new(Secp256k1Recovery), spec)
}

/// Returns the genesis of a proof-of-work chain under the rules of Byzantium, without accounts.
pub(crate) fn work_genesis() -> Genesis {
    let block_forks = vec![(Fork::Homestead, 0), (Fork::TangerineWhistle, 0), (Fork::Byzantium, 0)];
    Genesis {
        spec: ChainSpec { chain_id: 7, block_forks, ..ChainSpec::default() },
        header: Header {
            ommers_hash: EMPTY_OMMERS_HASH,
            transactions_root: EMPTY_ROOT,
            receipts_root: EMPTY_ROOT,
            difficulty: 1_000_000.into(),
            gas_limit: 10_000_000,
            ..Header::default()
        },
        alloc: Default::default(),
        state_root: None,
    }
}

/// Returns the header of a block without transactions, `seconds` after `parent`. Only the state root is not valid.
pub(crate) fn empty_header(spec: &ChainSpec, parent: &SealedHeader, seconds: u64) -> Header {
    let timestamp = parent.header.timestamp + seconds;
    let number = parent.header.number + 1;
    let merged = spec.terminal_total_difficulty.is_some_and(|terminal| parent.total_difficulty >= terminal);
    let fork = spec.fork_at(number, timestamp, merged);
    let first_london = fork >= Fork::London && parent.header.base_fee_per_gas.is_none();
    let difficulty = node_core::protocol::difficulty::expected_difficulty(fork, timestamp, &parent.header);
    Header {
        parent_hash: parent.hash,
        ommers_hash: EMPTY_OMMERS_HASH,
        transactions_root: EMPTY_ROOT,
        receipts_root: EMPTY_ROOT,
        difficulty: if merged { 0.into() } else { difficulty },
        number,
        gas_limit: parent.header.gas_limit * if first_london { 2 } else { 1 },
        timestamp,
        base_fee_per_gas: next_base_fee(spec, &parent.header),
        withdrawals_root: fork.has(HeaderField::WithdrawalsRoot).then_some(EMPTY_ROOT),
        blob_gas_used: fork.has(HeaderField::BlobGasUsed).then_some(0),
        excess_blob_gas: next_excess_blob_gas(spec, &parent.header, timestamp),
        parent_beacon_block_root: fork.has(HeaderField::ParentBeaconBlockRoot).then(H256::zero),
        requests_hash: fork.has(HeaderField::RequestsHash).then_some(EMPTY_REQUESTS_HASH),
        ..Header::default()
    }
}

/// Imports an empty block on top of `parent` and returns its header. `extra` distinguishes it from its siblings.
pub(crate) fn grow(
    chain: &BlockImporter,
    spec: &ChainSpec,
    parent: &SealedHeader,
    seconds: u64,
    extra: &'static [u8],
) -> (Imported, Arc<SealedHeader>) {
    let header = Header { extra_data: Bytes::from_static(extra), ..empty_header(spec, parent, seconds) };
    let withdrawals = header.withdrawals_root.map(|_| Vec::new());
    let mut block = Block { header, withdrawals, ..Block::default() };
    // The error has the state root that the block must have.
    match chain.import_block(&Context::unbounded(), block.clone()) {
        Err(ImportError::Invalid { source: BlockError::StateRoot { expected, .. }, .. }) => {
            block.header.state_root = expected;
        }
        other => panic!("expected a wrong state root, got {other:?}"),
    }
    let hash = block.header.hash();
    let imported = chain.import_block(&Context::unbounded(), block).unwrap();
    (imported, chain.backend().view().unwrap().header(hash.into()).unwrap().unwrap())
}

/// Returns the text of an error with all its sources.
pub(crate) fn chained(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chained(source)),
        None => error.to_string(),
    }
}
