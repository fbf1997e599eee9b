//! The contents of a data folder, and texts that clients send back.

use super::consensus::executed;
use super::{Check, Format, Target};
use node_core::backend::{MemoryBackend, Record, RecordKind, RecordWrite, StateBackend};
use node_core::context::Context;
use node_core::edits::edited_blocks;
use node_core::node::{LogCursor, Node};
use node_core::producer::Production;
use node_dev::DevNode;
use node_evm::EvmExecutor;
use node_rpc::{Client, Rpc, RpcLimits};
use node_store::files::faults::FaultyDisk;
use node_store::wal::{Sequence, Wal, WalOptions};
use node_store::{Options, Store, SyncPolicy, Table, decoders};
use node_types::{Address, ChainEventId};
use serde_json::json;
use std::sync::Arc;

pub(super) fn targets() -> Vec<Target> {
    let target = |name, format, seeds, check| Target { name, format, seeds, check };
    vec![
        target("log-segments", Format::Bytes, segments, || Box::new(segment)),
        target("log-entries", Format::Bytes, entries, || Box::new(|input| Ok(decoders::decode_entry(input).is_ok()))),
        target("database-rows", Format::Bytes, rows, || Box::new(row)),
        target("runs", Format::Bytes, runs, || Box::new(|input| Ok(decoders::read_run(input).is_ok()))),
        target("manifests", Format::Bytes, manifests, manifest_check),
        target("records", Format::Rlp, records, record_check),
        target("event-ids", Format::Bytes, event_ids, || Box::new(event_id)),
        target("cursors", Format::Bytes, cursors, || Box::new(cursor)),
    ]
}

const SEGMENT: &str = "wal-00000000000000000001.log";

fn segments() -> Vec<Vec<u8>> {
    let disk = FaultyDisk::new();
    let log = Wal::open(disk.folder(), Sequence(0), WalOptions::default());
    let written = log.and_then(|log| {
        for size in [0, 5, 100, 3] {
            log.append(&vec![7; size])?;
            log.sync()?;
        }
        Ok(())
    });
    assert!(written.is_ok(), "{written:?}");
    disk.content(SEGMENT).into_iter().collect()
}

/// Opens a log with this segment. The entries that it returns must survive a power failure.
fn segment(input: &[u8]) -> Result<bool, String> {
    let disk = FaultyDisk::new();
    disk.put(SEGMENT, input.to_vec());
    let read = || {
        let log = Wal::open(disk.folder(), Sequence(0), WalOptions::default())?;
        log.entries_after(Sequence(0)).collect::<Result<Vec<_>, _>>()
    };
    let Ok(first) = read() else { return Ok(false) };
    disk.crash(first.len() as u64);
    match read() {
        Ok(second) if second == first => Ok(true),
        second => Err(format!("{first:?}, then {second:?}")),
    }
}

fn entries() -> Vec<Vec<u8>> {
    executed().iter().take(2).flat_map(decoders::sample_entries).collect()
}

/// The index of the table, and the value.
fn rows() -> Vec<Vec<u8>> {
    let rows = executed().into_iter().take(2).flat_map(|block| decoders::sample_rows(&block));
    rows.map(|(table, value)| [vec![table as u8], value].concat()).collect()
}

fn row(input: &[u8]) -> Result<bool, String> {
    let Some((table, value)) = input.split_first() else { return Ok(false) };
    let table = Table::ALL[usize::from(*table) % Table::ALL.len()];
    Ok(decoders::decode_row(table, value).is_ok())
}

/// The files of a store with the blocks of a small chain in several runs.
fn store_files() -> Vec<(String, Vec<u8>)> {
    let disk = FaultyDisk::new();
    let written = Store::open_in(disk.folder(), node_chain::dev_genesis().block(), store_options()).and_then(|store| {
        executed().into_iter().try_for_each(|block| store.append(block))?;
        store.flush()
    });
    assert!(written.is_ok(), "{written:?}");
    disk.names().into_iter().filter_map(|name| Some((name.clone(), disk.content(&name)?))).collect()
}

/// Rows are moved to runs block by block, and runs are not merged.
fn store_options() -> Options {
    let sync = SyncPolicy::OnDemand;
    Options { cache_bytes: 1 << 20, sync, commit_rows: 0, blocks_in_memory: 0, merge: false, ..Options::default() }
}

fn runs() -> Vec<Vec<u8>> {
    let files = store_files().into_iter();
    files.filter(|(name, _)| name.starts_with("run-")).map(|(_, bytes)| bytes).collect()
}

/// Number of the manifest of a store with the input as its content.
const MANIFEST: u64 = 999;

/// The contents of manifests.
fn manifests() -> Vec<Vec<u8>> {
    let files = store_files().into_iter().filter(|(name, _)| name.starts_with("manifest-"));
    // Two copies, each with a checksum of eight bytes.
    files.map(|(_, bytes)| bytes[..bytes.len() / 2 - 8].to_vec()).collect()
}

/// Opens a store with this manifest, and reads its newest state: both succeed or return an error.
fn manifest_check() -> Check {
    let files = store_files();
    Box::new(move |input| {
        let disk = FaultyDisk::new();
        for (name, bytes) in files.iter().filter(|(name, _)| !name.starts_with("manifest-")) {
            disk.put(name, bytes.clone());
        }
        disk.put(&format!("manifest-{MANIFEST:012}"), decoders::seal_manifest(MANIFEST, input));
        let Ok(store) = Store::open_in(disk.folder(), node_chain::dev_genesis().block(), store_options()) else {
            return Ok(false);
        };
        let read = store.view().and_then(|view| {
            view.header(view.head().hash.into())?;
            view.state(view.head().number)?.account(Address::zero())
        });
        Ok(read.is_ok() && store.stats().is_ok())
    })
}

/// Records of a development chain in use: the index of the kind, the key and the value, each as RLP.
fn records() -> Vec<Vec<u8>> {
    let genesis = node_chain::dev_genesis();
    let backend = Arc::new(MemoryBackend::new(genesis.block()).expect("a genesis block is valid"));
    let chain = DevNode::builder().genesis(genesis).backend(backend.clone()).spawn().expect("the chain starts");
    let rpc = Rpc::new(chain.node().clone(), RpcLimits::default());
    let (from, to) = ("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", format!("0x{}", "11".repeat(20)));
    let transaction = json!({"from": from, "to": to, "value": "0x1", "gas": "0x5208"});
    let steps = [
        ("eth_newFilter", json!([{"address": to, "topics": [[format!("0x{}", "22".repeat(32))], null]}])),
        ("eth_newBlockFilter", json!([])),
        ("eth_newPendingTransactionFilter", json!([])),
        ("anvil_setBalance", json!([to, "0x5"])),
        ("eth_sendTransaction", json!([transaction])),
        ("evm_snapshot", json!([])),
        ("anvil_setStorageAt", json!([to, "0x0", format!("0x{}", "33".repeat(32))])),
        ("evm_setAutomine", json!([false])),
        ("eth_sendTransaction", json!([transaction])),
    ];
    for (method, params) in steps {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let message = rpc.read(message.as_bytes()).expect("the message is valid");
        let client = Client { control: Ok(()), ..Client::default() };
        let reply = rpc.respond(&Context::holding_view(), &message, client);
        assert!(reply.error().is_none(), "{method}: {:?}", reply.error());
    }
    let mut records = Vec::new();
    for (index, kind) in RecordKind::ALL.into_iter().enumerate() {
        for record in backend.records(kind).expect("the backend is in memory") {
            let mut stream = rlp::RlpStream::new();
            stream.append(&(index as u8)).append(&record.key).append(&record.value);
            records.push(stream.out().to_vec());
        }
    }
    records
}

/// Opens a node over a backend with this record: opening succeeds or returns an error.
fn record_check() -> Check {
    let genesis = node_chain::dev_genesis();
    let spec = Arc::new(genesis.spec.clone());
    let block = genesis.block();
    let executor = Arc::new(EvmExecutor::new(spec.clone()));
    Box::new(move |input| {
        let Some((&index, rest)) = input.split_first() else { return Ok(false) };
        // The encoding of 0 is 0x80.
        let kind = RecordKind::ALL[usize::from(index & 0x7f) % RecordKind::ALL.len()];
        let mut parts = Vec::new();
        let mut rest = rest;
        while parts.len() < 2 {
            let Ok(info) = rlp::Rlp::new(rest).payload_info() else { return Ok(false) };
            let Some((item, after)) = rest.split_at_checked(info.total()) else { return Ok(false) };
            parts.push(item[info.header_len..].to_vec());
            rest = after;
        }
        let [key, value] = [parts[0].clone(), parts[1].clone()];
        let backend = Arc::new(MemoryBackend::new(block.clone()).map_err(|error| error.to_string())?);
        let write = RecordWrite::Put(kind, Record { key, value });
        backend.write_records(&[write]).map_err(|error| error.to_string())?;
        let edits = edited_blocks(&*backend).is_ok();
        let opened = Node::builder(backend, executor.clone(), spec.clone()).production(Production::default()).open();
        Ok(edits && opened.is_ok())
    })
}

fn event_ids() -> Vec<Vec<u8>> {
    let hash = format!("0x{}", "33".repeat(32));
    vec![hash.clone().into_bytes(), format!("{hash}:17").into_bytes()]
}

fn event_id(input: &[u8]) -> Result<bool, String> {
    let Ok(text) = std::str::from_utf8(input) else { return Ok(false) };
    let Ok(id) = text.parse::<ChainEventId>() else { return Ok(false) };
    if id.to_string().parse() == Ok(id) { Ok(true) } else { Err(format!("{id} is another id")) }
}

fn cursors() -> Vec<Vec<u8>> {
    vec![format!("{:016x}{:016x}{}{}", 300, 2, "ab".repeat(32), "cd".repeat(32)).into_bytes()]
}

fn cursor(input: &[u8]) -> Result<bool, String> {
    let Ok(text) = std::str::from_utf8(input) else { return Ok(false) };
    let Ok(cursor) = text.parse::<LogCursor>() else { return Ok(false) };
    let same = cursor.to_string() == text.to_ascii_lowercase();
    if same { Ok(true) } else { Err(format!("{cursor} is another cursor")) }
}
