//! Executes a recorded chain that activates every fork from Frontier to BPO2, and compares the results with its
//! headers.

use crate::{EvmExecutor, Secp256k1Recovery};
use node_core::backend::{MemoryBackend, StateBackend, View};
use node_core::block::{Body, ExecutedBlock, RecoveredTransaction, SealedHeader};
use node_core::context::Context;
use node_core::crypto::SenderRecovery;
use node_core::executor::{BlockOutcome, Executor, TracerJson, Tracing};
use node_core::protocol::{Activation, BlobEntry, BlobParams, ChainSpec, UPGRADES, Upgrade};
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_core::trie::ordered_root;
use node_types::buffer::JsonBuffer;
use node_types::consensus::{Block, Bloom, Header, Receipt, requests_hash};
use node_types::{Address, Bytes, H256, U256, keccak256};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn spec(config: &Value) -> ChainSpec {
    let number = |key: &str| config[key].as_u64().unwrap();
    let blob_params = |name: &str| {
        let params = &config["blobSchedule"][name];
        let number = |key: &str| params[key].as_u64().unwrap();
        let base_fee_update_fraction = number("baseFeeUpdateFraction");
        (BlobParams { target: number("target"), max: number("max"), base_fee_update_fraction }, format!("{name}Time"))
    };
    let at = |upgrade: &Upgrade| Some((upgrade.fork, number(upgrade.activation.key()?)));
    let of = |select: fn(&Upgrade) -> bool| UPGRADES.iter().filter(|upgrade| select(upgrade)).filter_map(at).collect();
    ChainSpec {
        chain_id: number("chainId"),
        block_forks: of(|upgrade| matches!(upgrade.activation, Activation::Block { .. })),
        terminal_total_difficulty: Some(number("terminalTotalDifficulty").into()),
        time_forks: of(|upgrade| matches!(upgrade.activation, Activation::Time { .. })),
        blob_schedule: ["cancun", "prague", "osaka", "bpo1", "bpo2"]
            .map(|upgrade| {
                let (params, key) = blob_params(upgrade);
                BlobEntry { upgrade, params, time: number(&key) }
            })
            .to_vec(),
        deposit_contract: Some(config["depositContractAddress"].as_str().unwrap().parse().unwrap()),
        ..ChainSpec::default()
    }
}

fn bytes(value: &Value) -> Bytes {
    let digits = value.as_str().unwrap_or("0x").trim_start_matches("0x").as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect::<Vec<_>>().into()
}

fn quantity(value: &Value) -> U256 {
    U256::from_str_radix(value.as_str().unwrap_or("0x0").trim_start_matches("0x"), 16).unwrap()
}

fn genesis(json: &Value) -> ExecutedBlock {
    let mut changes = StateChanges::default();
    for (address, account) in json["alloc"].as_object().unwrap() {
        let code = bytes(&account["code"]);
        let code_hash = keccak256(&code);
        changes.code.insert(code_hash, code);
        let state = AccountState {
            nonce: quantity(&account["nonce"]).as_u64(),
            balance: quantity(&account["balance"]),
            code_hash,
        };
        let slots = account["storage"].as_object().into_iter().flatten();
        let storage = slots.map(|(slot, value)| (slot.parse::<H256>().unwrap(), quantity(value))).collect();
        let change = AccountChange { account: Some(state), storage_cleared: false, storage };
        changes.accounts.insert(address.parse::<Address>().unwrap(), change);
    }
    // The header of the genesis block is not recorded. The error has the state root.
    let mut header = Header::default();
    let sealed = |header: &Header| ExecutedBlock {
        header: Arc::new(SealedHeader {
            hash: H256::zero(),
            header: header.clone(),
            total_difficulty: U256::zero(),
            size: 0,
        }),
        body: Arc::default(),
        receipts: Arc::default(),
        changes: Arc::new(changes.clone()),
    };
    if let Err(node_core::backend::BackendError::StateRootMismatch { computed, .. }) =
        MemoryBackend::new(sealed(&header))
    {
        header.state_root = computed;
    }
    sealed(&header)
}

fn blocks(mut file: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let (block, rest) = file.split_at(rlp::PayloadInfo::from(file).unwrap().total());
        blocks.push(Block::decode(block).unwrap());
        file = rest;
    }
    blocks
}

/// Returns the folder of the recorded test data: `../shared` beside the workspace, or the one in `NODE_SHARED`.
fn shared() -> PathBuf {
    std::env::var_os("NODE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from)
        .join("conformance")
}

/// Executes each block, passes it to `check` with the state before it and its outcome, and appends it. The backend
/// checks its state root.
fn import(
    shared: &Path,
    mut check: impl FnMut(&EvmExecutor, &dyn View, &Header, &[RecoveredTransaction], &BlockOutcome),
) {
    let folder = shared.join("chain");
    let json: Value = serde_json::from_slice(&std::fs::read(folder.join("genesis.json")).unwrap()).unwrap();
    let executor = EvmExecutor::new(Arc::new(spec(&json["config"])));
    let mut parent = genesis(&json);
    let blocks = blocks(&std::fs::read(folder.join("chain.rlp")).unwrap());
    assert!(blocks.len() > 50);
    // The first block has the hash of the genesis block.
    let mut sealed = SealedHeader::clone(&parent.header);
    sealed.hash = blocks[0].header.parent_hash;
    parent.header = Arc::new(sealed);
    let backend = MemoryBackend::new(parent).unwrap();
    let context = Context::unbounded();

    for block in blocks {
        let header = &block.header;
        let recovered = |transaction: &node_types::consensus::Transaction| RecoveredTransaction {
            sender: Secp256k1Recovery.sender(transaction).unwrap(),
            hash: transaction.hash(),
            transaction: transaction.clone(),
        };
        let transactions: Vec<_> = block.transactions.iter().map(recovered).collect();
        let view = backend.view().unwrap();
        let mut execution = executor.begin_block(&context, &*view, header).unwrap();
        for transaction in &transactions {
            execution.transact(transaction).unwrap();
        }
        let outcome = execution.finish(&block.ommers, block.withdrawals.as_deref()).unwrap();
        check(&executor, &*view, header, &transactions, &outcome);
        let executed = ExecutedBlock {
            header: Arc::new(SealedHeader {
                hash: header.hash(),
                header: header.clone(),
                total_difficulty: U256::zero(),
                size: 0,
            }),
            body: Arc::new(Body { transactions, ommers: block.ommers.clone(), withdrawals: block.withdrawals.clone() }),
            receipts: Arc::new(outcome.receipts),
            changes: Arc::new(outcome.changes),
        };
        backend.append(executed).unwrap_or_else(|error| panic!("block {}: {error}", header.number));
    }
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn every_block_matches_its_header() {
    import(&shared(), |_, _, header, _, outcome| {
        let name = format!("block {}", header.number);
        assert_eq!(outcome.gas_used, header.gas_used, "gas used by {name}");
        assert_eq!(outcome.blob_gas_used, header.blob_gas_used.unwrap_or(0), "blob gas used by {name}");
        let encoded: Vec<_> = outcome.receipts.iter().map(Receipt::encode).collect();
        assert_eq!(ordered_root(&encoded), header.receipts_root, "receipts of {name}");
        let bloom: Bloom = outcome.receipts.iter().flat_map(|receipt| &receipt.logs).collect();
        assert_eq!(bloom, header.logs_bloom, "bloom of {name}");
        assert_eq!(outcome.requests.as_deref().map(requests_hash), header.requests_hash, "requests of {name}");
    });
}

/// A block of which geth's traces were recorded.
struct RecordedTrace {
    name: String,
    block: u64,
    options: Option<TracerJson>,
    /// A trace for each transaction.
    traces: Vec<Value>,
}

/// Returns the recorded traces of whole blocks by number.
fn recorded_traces(shared: &Path) -> Vec<RecordedTrace> {
    let mut recorded = Vec::new();
    for entry in std::fs::read_dir(shared.join("rpc/debug_traceBlockByNumber")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let requests = text.lines().filter_map(|line| line.strip_prefix(">> "));
        let responses = text.lines().filter_map(|line| line.strip_prefix("<< "));
        for (request, response) in requests.zip(responses) {
            let [request, response] = [request, response].map(|text| serde_json::from_str::<Value>(text).unwrap());
            let Some(results) = response["result"].as_array() else { continue };
            let options = request["params"].get(1).map(|options| serde_json::value::to_raw_value(options).unwrap());
            recorded.push(RecordedTrace {
                name: path.file_name().unwrap().to_string_lossy().into_owned(),
                block: quantity(&request["params"][0]).as_u64(),
                options: options.map(Into::into),
                traces: results.iter().map(|result| result["result"].clone()).collect(),
            });
        }
    }
    recorded
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn traces_match_those_of_geth() {
    let shared = shared();
    let mut recorded = recorded_traces(&shared);
    assert!(recorded.len() >= 6, "{} traces are recorded", recorded.len());
    import(&shared, |executor, view, header, transactions, outcome| {
        let (of_block, others) =
            std::mem::take(&mut recorded).into_iter().partition(|trace| trace.block == header.number);
        recorded = others;
        for RecordedTrace { name, options, traces, .. } in of_block {
            let context = Context::unbounded();
            let mut execution = executor.begin_block(&context, view, header).unwrap();
            let tracing = Tracing { tracer: options, max_bytes: u64::MAX };
            assert_eq!(traces.len(), transactions.len(), "{name}");
            for (index, (transaction, expected)) in transactions.iter().zip(traces).enumerate() {
                let mut out = JsonBuffer::default();
                execution.trace(transaction, &tracing, &mut out).unwrap();
                let trace: Value = serde_json::from_slice(&out).unwrap();
                let steps = |trace: &Value| trace["structLogs"].as_array().unwrap().clone();
                for (step, (got, expected)) in steps(&trace).iter().zip(&steps(&expected)).enumerate() {
                    assert_eq!(got, expected, "{name}: transaction {index}, step {step}");
                }
                assert_eq!(trace, expected, "{name}: transaction {index}");
            }
            assert_eq!(execution.gas_used(), outcome.gas_used, "{name}");
        }
    });
    assert!(recorded.is_empty(), "not every block was executed");
}
