//! The state and the history that a fork reads from this project's server, and from one that lies.

use super::in_process::serve;
use super::upstream::{addresses, chain, serve_messages};
use crate::server::{Server, conformance_chain};
use node_chain::{BlockImporter, Genesis, import_file};
use node_core::backend::{
    BackendError, BackendHealth, BaseRead, BaseState, CacheUse, FeeRow, HeadChange, HeadListener, LogFilter, LogSearch,
    MemoryBackend, Record, RecordKind, RecordWrite, StateBackend, StateView, View,
};
use node_core::block::{
    BlockHashOrNumber, BlockLogs, BlockRef, Body, ExecutedBlock, LogPosition, SealedHeader, TransactionPosition,
};
use node_core::context::Context;
use node_core::logs::{PageSize, scan};
use node_core::node::{Node, TransactionRequest};
use node_core::producer::Mining;
use node_core::state::StateChanges;
use node_core::{remote, waiting};
use node_dev::{DevGenesis, DevNode};
use node_evm::{EvmExecutor, Secp256k1Recovery};
use node_fork::{Base, ForkBackend, ForkOptions};
use node_http::HttpConfig;
use node_store::files::faults::FaultyDisk;
use node_store::files::{DiskFolder, Folder, MemoryFolder};
use node_types::consensus::Receipt;
use node_types::{Address, BlockNumber, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use node_upstream::{HashedHeader, Upstream, UpstreamOptions};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A backend that has nothing from before a block, as the store of a fork.
struct BeginsAt {
    whole: Arc<dyn StateBackend>,
    first: BlockNumber,
}

struct ViewFrom {
    whole: Arc<dyn View>,
    first: BlockNumber,
}

impl ViewFrom {
    fn part<T>(
        &self,
        id: BlockHashOrNumber,
        read: impl FnOnce(&dyn View) -> Result<Option<T>, BackendError>,
    ) -> Result<Option<T>, BackendError> {
        let header = self.whole.header(id)?;
        let is_here = header.is_some_and(|header| header.header.number >= self.first);
        if is_here { read(&*self.whole) } else { Ok(None) }
    }
}

impl View for ViewFrom {
    fn head(&self) -> BlockRef {
        self.whole.head()
    }

    fn earliest_state(&self) -> BlockNumber {
        self.first
    }

    fn state(&self, at: BlockNumber) -> Result<Box<dyn StateView + '_>, BackendError> {
        if at < self.first {
            return Err(BackendError::StatePruned { block: at, earliest: self.first });
        }
        self.whole.state(at)
    }

    fn fork(&self, _: BlockNumber, _: &[ExecutedBlock]) -> Result<Option<Arc<dyn View>>, BackendError> {
        Ok(None)
    }

    fn header(&self, id: BlockHashOrNumber) -> Result<Option<Arc<SealedHeader>>, BackendError> {
        self.part(id, |view| view.header(id))
    }

    fn body(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Body>>, BackendError> {
        self.part(id, |view| view.body(id))
    }

    fn receipts(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Vec<Receipt>>>, BackendError> {
        self.part(id, |view| view.receipts(id))
    }

    fn canonical_hash(&self, number: BlockNumber) -> Result<Option<H256>, BackendError> {
        self.part(number.into(), |view| view.canonical_hash(number))
    }

    fn logs(&self, numbers: &[BlockNumber]) -> Result<Vec<BlockLogs>, BackendError> {
        assert!(numbers.iter().all(|number| *number >= self.first));
        self.whole.logs(numbers)
    }

    fn side_block(&self, hash: H256) -> Result<Option<ExecutedBlock>, BackendError> {
        self.whole.side_block(hash)
    }

    fn changes(&self, number: BlockNumber) -> Result<Option<Arc<StateChanges>>, BackendError> {
        self.part(number.into(), |view| view.changes(number))
    }

    fn transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError> {
        Ok(self.whole.transaction_position(hash)?.filter(|position| position.block >= self.first))
    }

    fn log_candidates(&self, context: &Context, search: LogSearch<'_>) -> Result<Vec<LogPosition>, BackendError> {
        assert!(search.from.block >= self.first || search.from.block > search.to);
        self.whole.log_candidates(context, search)
    }

    fn fee_rows(&self, range: RangeInclusive<BlockNumber>) -> Result<Vec<FeeRow>, BackendError> {
        assert!(range.is_empty() || *range.start() >= self.first);
        self.whole.fee_rows(range)
    }
}

impl StateBackend for BeginsAt {
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        Ok(Arc::new(ViewFrom { whole: self.whole.view()?, first: self.first }))
    }

    fn append_recording(&self, block: ExecutedBlock, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.whole.append_recording(block, writes)
    }

    fn switch_recording(
        &self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
        writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        self.whole.switch_recording(ancestor, branch, writes)
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        self.whole.keep_side_block(block)
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.whole.subscribe(listener);
    }

    fn proves_quickly(&self) -> bool {
        self.whole.proves_quickly()
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.whole.write_records_unsynced(writes)
    }

    fn sync_records(&self) -> Result<(), BackendError> {
        self.whole.sync_records()
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.whole.record(kind, key)
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        self.whole.records(kind)
    }

    fn caches(&self) -> Vec<CacheUse> {
        self.whole.caches()
    }

    fn health(&self) -> BackendHealth {
        self.whole.health()
    }
}

fn upstream(url: &str) -> Upstream {
    let options = UpstreamOptions { retries: 0, ..UpstreamOptions::default() };
    Upstream::new(&[url], options).unwrap()
}

/// Opens a fork of `whole` that begins with the block `first`.
fn fork(
    whole: &Arc<dyn StateBackend>,
    first: BlockNumber,
    folder: &Arc<dyn Folder>,
    upstream: Option<Upstream>,
) -> ForkBackend {
    let header = whole.view().unwrap().header(first.into()).unwrap().unwrap();
    let header = HashedHeader::new(header.header.clone());
    let base = Base::open(Arc::clone(folder), upstream, header, ForkOptions::default()).unwrap();
    let inner = Arc::new(BeginsAt { whole: Arc::clone(whole), first });
    ForkBackend::open(inner, base, Arc::new(Secp256k1Recovery)).unwrap()
}

fn memory() -> Arc<dyn Folder> {
    Arc::new(MemoryFolder::default())
}

/// How far an endpoint is trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trust {
    No,
    /// It may say that there is nothing.
    ToHaveIt,
    /// It may say anything.
    Word,
}

/// Something that was read, as text.
#[derive(Debug)]
struct Fact {
    name: String,
    trust: Trust,
    value: Result<String, BackendError>,
}

/// What is read of a chain.
struct Reads {
    numbers: Vec<BlockNumber>,
    /// The last block whose state is read.
    states_to: BlockNumber,
    accounts: Vec<BaseRead>,
    searches: Vec<(LogFilter, BlockNumber, BlockNumber)>,
}

impl Reads {
    /// Everything about blocks of a chain, and some accounts of it.
    fn of(view: &dyn View, numbers: Vec<BlockNumber>, states_to: BlockNumber, addresses: &[Address]) -> Self {
        let head = view.head().number;
        let mut slots: BTreeSet<H256> = (0..3).map(H256::from_low_u64_be).collect();
        let mut filters = vec![LogFilter::default()];
        for number in &numbers {
            let changes = view.changes(*number).unwrap().unwrap_or_default();
            slots.extend(changes.accounts.values().flat_map(|change| change.storage.keys()).take(6));
            for log in view.logs(&[*number]).unwrap()[0].iter().take(2) {
                let log = log.log.to_log();
                let first = log.topics.first().copied();
                filters.push(LogFilter { addresses: vec![log.address], topics: Vec::new() });
                filters.push(LogFilter {
                    addresses: Vec::new(),
                    topics: vec![Vec::new(), log.topics.get(1).copied().into_iter().collect()],
                });
                filters.push(LogFilter { addresses: Vec::new(), topics: vec![first.into_iter().collect()] });
            }
        }
        filters.truncate(8);
        let slots: Vec<_> = slots.into_iter().take(20).collect();
        let searches = filters.into_iter().flat_map(|filter| {
            let middle = head / 2;
            [(0, head), (middle, head), (0, middle)].map(|(from, to)| (filter.clone(), from, to))
        });
        let accounts = addresses.iter().map(|address| BaseRead { address: *address, slots: slots.clone() });
        Self { accounts: accounts.collect(), searches: searches.collect(), numbers, states_to }
    }

    fn facts(&self, view: &dyn View) -> Vec<Fact> {
        let mut facts = Vec::new();
        let mut add = |name: String, trust: Trust, value: Result<String, BackendError>| {
            facts.push(Fact { name, trust, value });
        };
        for number in &self.numbers {
            let hash = match view.canonical_hash(*number) {
                Ok(hash) => hash.unwrap(),
                Err(error) => {
                    add(format!("hash of {number}"), Trust::No, Err(error));
                    continue;
                }
            };
            add(format!("hash of {number}"), Trust::No, Ok(format!("{hash:#x}")));
            for id in [BlockHashOrNumber::from(*number), hash.into()] {
                let of_block = match id {
                    BlockHashOrNumber::Number(_) => Trust::No,
                    BlockHashOrNumber::Hash(_) => Trust::ToHaveIt,
                };
                let header = view.header(id).map(|header| header.map(|header| (header.header.clone(), header.size)));
                add(format!("header of {id:?}"), of_block, text(header));
                // The server does not return those from before the merge.
                let merged = view.header(id).map(|header| header.filter(|header| header.header.difficulty.is_zero()));
                let difficulty = merged.map(|header| header.map(|header| header.total_difficulty));
                add(format!("total difficulty of {id:?}"), Trust::ToHaveIt, text(difficulty));
                add(format!("body of {id:?}"), of_block, text(view.body(id)));
                add(format!("receipts of {id:?}"), of_block, text(view.receipts(id)));
            }
            add(format!("logs of {number}"), Trust::No, text(view.logs(&[*number])));
            for transaction in view.body(hash.into()).ok().flatten().iter().flat_map(|body| &body.transactions) {
                let position = view.transaction_position(transaction.hash);
                add(format!("position of {:#x}", transaction.hash), Trust::ToHaveIt, text(position));
            }
            let rows = view
                .fee_rows(*number..=*number)
                .map(|rows| rows.into_iter().map(|row| (row.header.header.clone(), row.tips)).collect::<Vec<_>>());
            add(format!("fees of {number}"), Trust::No, text(rows));
            if *number <= self.states_to {
                match view.state(*number) {
                    Ok(state) => self.accounts.iter().for_each(|read| {
                        let read_state = self::state(&*state, read);
                        add(format!("{:#x} as of {number}", read.address), Trust::No, read_state);
                    }),
                    Err(error) => add(format!("state of {number}"), Trust::No, Err(error)),
                }
            }
        }
        for (filter, from, to) in &self.searches {
            let from = LogPosition { block: *from, log_index: 0 };
            for size in [1, 3, 100_000] {
                let found = scan(view, &Context::unbounded(), filter, from, *to, PageSize::of_entries(size));
                let logs = found.map(|found| (found.logs, found.next));
                add(format!("{size} logs of {from:?} to {to} like {filter:?}"), Trust::Word, text(logs));
            }
        }
        add("unknown hash".to_owned(), Trust::No, text(view.header(H256::repeat_byte(0x99).into())));
        let unknown = view.transaction_position(H256::repeat_byte(0x98));
        add("unknown transaction".to_owned(), Trust::No, text(unknown));
        facts
    }
}

fn text<T: Debug>(read: Result<T, BackendError>) -> Result<String, BackendError> {
    read.map(|read| format!("{read:?}"))
}

/// Everything about an account, with and without proofs.
fn state(state: &dyn StateView, read: &BaseRead) -> Result<String, BackendError> {
    let account = state.account(read.address)?;
    let hash = account.map_or(KECCAK_EMPTY, |account| account.code_hash);
    let code = if hash == KECCAK_EMPTY { None } else { state.code(hash)? };
    let slots = read.slots.iter().map(|slot| state.storage(read.address, *slot)).collect::<Result<Vec<_>, _>>()?;
    let has_storage = state.has_storage(read.address)?;
    let proof = state.proof(read.address, &read.slots)?;
    Ok(format!("{account:?} {code:?} {slots:?} {has_storage} {proof:?}"))
}

/// Checks that a base is the state as of a block.
fn check_base(base: &Base, view: &dyn View, number: BlockNumber, reads: &[BaseRead]) {
    let state = view.state(number).unwrap();
    base.fetch(reads).unwrap();
    for BaseRead { address, slots } in reads {
        let expected = state.proof(*address, slots).unwrap();
        assert_eq!(base.account(*address).unwrap(), expected.account);
        let storage = expected.storage.iter();
        for node in expected.proof.iter().chain(storage.clone().flat_map(|slot| &slot.proof)) {
            assert_eq!(base.node(keccak256(node)).unwrap().as_ref(), Some(node));
        }
        for slot in storage {
            assert_eq!(base.storage(*address, slot.slot).unwrap(), slot.value);
        }
        let hash = expected.account.map_or(KECCAK_EMPTY, |account| account.code_hash);
        if hash != KECCAK_EMPTY {
            assert_eq!(base.code(hash).unwrap(), state.code(hash).unwrap());
        }
    }
}

fn check(fork: &ForkBackend, expected: &[Fact], reads: &Reads) {
    let found = reads.facts(&*fork.view().unwrap());
    assert_eq!(found.len(), expected.len());
    let is_offline = fork.base().upstream().is_none();
    for (found, expected) in found.iter().zip(expected) {
        if is_offline && found.name.starts_with("unknown") {
            // The other chain may have it.
            assert!(matches!(found.value, Err(BackendError::Unobtainable(_))), "{found:#?}");
            continue;
        }
        let (found_value, expected_value) = (found.value.as_ref(), expected.value.as_ref().unwrap());
        assert_eq!(found.name, expected.name);
        assert!(found_value.is_ok_and(|found| found == expected_value), "{found:#?}\n{expected:#?}");
    }
}

#[test]
fn a_fork_shows_the_chain_before_it_also_offline() {
    let (chain, server) = chain();
    let whole: Arc<dyn StateBackend> = chain.backend().clone();
    let view = whole.view().unwrap();
    let head = view.head().number;
    let addresses = addresses(&*view);
    for first in 0..=head {
        let temporary = tempfile::tempdir().unwrap();
        let disk = || -> Arc<dyn Folder> { Arc::new(DiskFolder::open(temporary.path()).unwrap()) };
        let reads = Reads::of(&*view, (0..=head).collect(), head, &addresses);
        let expected = reads.facts(&*view);
        let fork_of = |folder: &_, upstream| fork(&whole, first, folder, upstream);
        {
            let online = fork_of(&disk(), Some(upstream(server.url())));
            check(&online, &expected, &reads);
            check_base(&online.base(), &*view, first, &reads.accounts);
            let checked = online.base().contents().check().unwrap();
            assert_eq!((checked.entries, checked.damaged), (online.base().contents().stats().entries, 0));
            let rows = online.view().unwrap().fee_rows(0..=head).unwrap();
            assert_eq!(rows.len() as u64, head + 1);
            let numbers: Vec<_> = (0..=head).collect();
            assert_eq!(online.view().unwrap().logs(&numbers).unwrap(), view.logs(&numbers).unwrap());
            assert!(matches!(online.view().unwrap().logs(&[head + 1]), Err(BackendError::UnknownBlock(_))));
            // Only searches need the upstream again.
            let known = Reads { searches: Vec::new(), ..Reads::of(&*view, (0..=head).collect(), head, &addresses) };
            let (_, reads) = remote::reads_of(|| check(&online, &known.facts(&*view), &known));
            assert_eq!(reads.reads, 0);
        }
        let offline = fork_of(&disk(), None);
        check(&offline, &expected, &reads);
        check_base(&offline.base(), &*view, first, &reads.accounts);
    }
}

#[test]
fn what_was_fetched_is_durable_before_a_block_is_stored() {
    let (chain, server) = chain();
    let whole: Arc<dyn StateBackend> = chain.backend().clone();
    let view = whole.view().unwrap();
    let head = view.head().number;
    let reads = Reads::of(&*view, vec![head], 0, &addresses(&*view));
    let header = view.header(head.into()).unwrap().unwrap();
    let block = || ExecutedBlock {
        header: Arc::clone(&header),
        body: view.body(head.into()).unwrap().unwrap(),
        receipts: view.receipts(head.into()).unwrap().unwrap(),
        changes: view.changes(head).unwrap().unwrap(),
    };
    for seed in 0..10 {
        let disk = FaultyDisk::new();
        let online = fork(&whole, head, &disk.folder(), Some(upstream(server.url())));
        online.base().fetch(&reads.accounts).unwrap();
        match seed % 2 {
            0 => online.keep_side_block(block()).unwrap(),
            _ => _ = online.switch(head, Vec::new()).unwrap(),
        }
        disk.crash(seed);
        check_base(&fork(&whole, head, &disk.folder(), None).base(), &*view, head, &reads.accounts);
    }
}

#[test]
fn nothing_is_read_from_the_upstream_where_nobody_may_wait() {
    let (chain, server) = chain();
    let whole: Arc<dyn StateBackend> = chain.backend().clone();
    let fork = fork(&whole, 3, &memory(), Some(upstream(server.url())));
    let view = fork.view().unwrap();
    assert!(waiting::without_waiting(|| view.header(1.into())).is_none());
    assert!(waiting::without_waiting(|| view.transaction_position(H256::zero())).is_none());
    assert!(waiting::without_waiting(|| view.state(1).map(drop)).is_none());
    view.header(1.into()).unwrap();
    assert!(waiting::without_waiting(|| view.header(1.into())).is_some());
}

/// Changes the strings of a value that `is_chosen` chooses by their number.
fn lie(value: &mut Value, count: &mut usize, is_chosen: &dyn Fn(usize) -> bool) {
    match value {
        Value::String(text) => {
            *count += 1;
            if is_chosen(*count) {
                let last = if text.ends_with('1') { "2" } else { "1" };
                text.replace_range(text.len().saturating_sub(1).., last);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| lie(item, count, is_chosen)),
        Value::Object(members) => members.values_mut().for_each(|member| lie(member, count, is_chosen)),
        _ => {}
    }
}

#[test]
fn nothing_wrong_is_accepted_or_kept() {
    let (chain, server) = chain();
    let server = Arc::new(server);
    let whole: Arc<dyn StateBackend> = chain.backend().clone();
    let view = whole.view().unwrap();
    let head = view.head().number;
    let addresses: Vec<_> = addresses(&*view).into_iter().step_by(5).collect();
    let reads = Reads::of(&*view, (0..=head).collect(), head, &addresses);
    let expected = reads.facts(&*view);
    let (mut refused, mut accepted) = (0, 0);
    for seed in 0..14 {
        let behind = Arc::clone(&server);
        let url = serve_messages(move |message| {
            let mut responses = behind.post("/", message.to_string()).body;
            let all = match &mut responses {
                Value::Array(all) => all.iter_mut().collect(),
                one => vec![one],
            };
            for response in all {
                let mut count = 0;
                match seed {
                    0 => response["result"] = Value::Null,
                    1 => response["result"] = json!([]),
                    // Each string in turn, over the lies: first few, then many.
                    _ => lie(&mut response["result"], &mut count, &|n| n % (3 * seed) == seed % 7),
                }
            }
            responses
        });
        let folder = memory();
        let lying = fork(&whole, head, &folder, Some(upstream(&url)));
        let found = reads.facts(&*lying.view().unwrap());
        for fact in found {
            let truth = expected.iter().find(|expected| expected.name == fact.name);
            let truth = truth.and_then(|truth| truth.value.as_ref().ok());
            match fact.value {
                Ok(value)
                    if Some(&value) == truth
                        || fact.trust == Trust::Word
                        || fact.trust == Trust::ToHaveIt && value == "None" =>
                {
                    accepted += 1;
                }
                Ok(value) => panic!("seed {seed}: {}: {value}, expected {:?}", fact.name, truth),
                Err(BackendError::Upstream(_)) => refused += 1,
                Err(error) => panic!("seed {seed}: {}: {error}", fact.name),
            }
        }
        assert_eq!(lying.base().contents().check().unwrap().damaged, 0);
        check(&fork(&whole, head, &folder, Some(upstream(server.url()))), &expected, &reads);
    }
    println!("{refused} reads were refused, {accepted} were not affected");
    assert!(refused > 100 && accepted > 100);
}

#[test]
fn what_an_endpoint_lists_must_be_there() {
    let (chain, server) = chain();
    let server = Arc::new(server);
    let whole: Arc<dyn StateBackend> = chain.backend().clone();
    let view = whole.view().unwrap();
    let head = view.head().number;
    let transaction = view.body(1.into()).unwrap().unwrap().transactions[2].hash;
    type Lie = fn(&mut Value);
    let lies: [(&str, Lie); 8] = [
        ("eth_getLogs", |logs| logs[0]["blockNumber"] = json!("0x0")),
        ("eth_getLogs", |logs| logs[0]["blockNumber"] = json!("0xffff")),
        ("eth_getLogs", |logs| logs[0]["blockNumber"] = Value::Null),
        // Its block has others.
        ("eth_getLogs", |logs| drop(logs.as_array_mut().unwrap().remove(0))),
        ("eth_getLogs", |logs| *logs = Value::Null),
        ("eth_getTransactionByHash", |found| found["transactionIndex"] = json!("0x1")),
        ("eth_getTransactionByHash", |found| found["blockHash"] = json!(format!("0x{:064x}", 9))),
        ("eth_getTransactionByHash", |found| found["blockHash"] = Value::Null),
    ];
    for (method, change) in lies {
        let read = |view: &dyn View| match method {
            "eth_getLogs" => {
                let size = PageSize::of_entries(1_000);
                text(
                    scan(view, &Context::unbounded(), &LogFilter::default(), start(), head - 1, size)
                        .map(|found| found.logs),
                )
            }
            _ => text(view.transaction_position(transaction)),
        };
        let expected = read(&*view).unwrap();
        let (behind, is_lying) = (Arc::clone(&server), Arc::new(AtomicBool::new(true)));
        let lies = Arc::clone(&is_lying);
        let url = serve_messages(move |message| {
            let mut response = behind.post("/", message.to_string()).body;
            if message["method"] == method && lies.load(Ordering::Relaxed) {
                change(&mut response["result"]);
            }
            response
        });
        let folder = memory();
        let forked = fork(&whole, head, &folder, Some(upstream(&url)));
        let error = read(&*forked.view().unwrap()).unwrap_err();
        assert!(matches!(error, BackendError::Upstream(_)), "{method}: {error:?}");
        // Nothing of it is kept.
        let offline = fork(&whole, head, &folder, None);
        assert_ne!(read(&*offline.view().unwrap()).ok(), Some(expected.clone()), "{method}");
        assert!(method != "eth_getLogs" || read(&*offline.view().unwrap()).is_err());
        is_lying.store(false, Ordering::Relaxed);
        assert_eq!(read(&*forked.view().unwrap()).unwrap(), expected, "{method}");
    }
}

#[test]
fn logs_are_requested_in_ranges_that_the_provider_accepts() {
    let (chain, server) = chain();
    let producer = chain.producer().unwrap();
    producer.mine(60, None, Vec::new()).unwrap();
    let whole: Arc<dyn StateBackend> = chain.backend().clone();
    let view = whole.view().unwrap();
    let head = view.head().number;
    let reads = Reads::of(&*view, vec![1, 2, 3], 0, &[]);
    let expected = reads.facts(&*view);
    let url = serve_messages(move |message| {
        let params = &message["params"][0];
        let number = |name: &str| u64::from_str_radix(&params[name].as_str().unwrap()[2..], 16).unwrap();
        if message["method"] == "eth_getLogs" && number("toBlock") - number("fromBlock") >= 7 {
            let error = json!({"code": -32000, "message": "please narrow down your query"});
            return json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
        }
        server.post("/", message.to_string()).body
    });
    let fork = fork(&whole, head, &memory(), Some(upstream(&url)));
    check(&fork, &expected, &reads);
    // Pages of a search that was made are found without the upstream.
    let searched = |filter: &LogFilter| {
        let view = fork.view().unwrap();
        let found = scan(&*view, &Context::unbounded(), filter, start(), 3, PageSize::of_entries(1)).unwrap();
        let next = found.next.unwrap();
        remote::reads_of(|| scan(&*view, &Context::unbounded(), filter, next, 3, PageSize::of_entries(1)).unwrap()).1
    };
    assert_eq!(searched(&LogFilter::default()).reads, 0);
}

fn start() -> LogPosition {
    LogPosition { block: 0, log_index: 0 }
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn a_fork_of_the_recorded_chain_shows_what_was_before() {
    let arguments = conformance_chain();
    let genesis = Genesis::parse(&std::fs::read(&arguments[1]).unwrap()).unwrap();
    let file = std::fs::read(&arguments[3]).unwrap();
    let server = Server::start(arguments);
    let spec = Arc::new(genesis.spec.clone());
    let whole = Arc::new(MemoryBackend::new(genesis.block()).unwrap());
    let executor = Arc::new(EvmExecutor::new(Arc::clone(&spec)));
    let importer = BlockImporter::new(whole.clone(), executor, Arc::new(Secp256k1Recovery), spec);
    import_file(&importer, &Context::unbounded(), file.as_slice(), |_| {}).unwrap();
    let whole: Arc<dyn StateBackend> = whole;
    let view = whole.view().unwrap();
    let head = view.head().number;
    let mut seed = 7u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for first in [head, head / 2, 1 + random(head), 1 + random(head)] {
        let numbers: BTreeSet<_> = (0..12).map(|_| random(head + 1)).chain([0, first - 1, first]).collect();
        let mut addresses: BTreeSet<Address> = BTreeSet::new();
        for number in &numbers {
            addresses.extend(view.changes(*number).unwrap().unwrap_or_default().accounts.keys().take(4));
        }
        let addresses: Vec<_> = addresses.into_iter().take(25).collect();
        let reads = Reads::of(&*view, numbers.into_iter().collect(), head, &addresses);
        let expected = reads.facts(&*view);
        let folder = memory();
        let online = fork(&whole, first, &folder, Some(upstream(server.url())));
        check(&online, &expected, &reads);
        check_base(&online.base(), &*view, first, &reads.accounts);
        check(&fork(&whole, first, &folder, None), &expected, &reads);
        println!("block {first} of {head}: {:?}", online.base().contents().stats());
    }
}

#[test]
fn a_fork_is_served() {
    let (chain, server) = chain();
    let whole: Arc<dyn StateBackend> = chain.backend().clone();
    let fork = Arc::new(fork(&whole, 2, &memory(), Some(upstream(server.url()))));
    let evm = Arc::new(EvmExecutor::new(Arc::clone(chain.spec())));
    let node = Node::builder(fork, evm, Arc::clone(chain.spec()));
    let forked = serve(Arc::new(node.open().unwrap()), HttpConfig::default());
    let address = format!("{:#x}", chain.accounts()[0].address());
    for (method, params) in [
        ("eth_getBlockByNumber", json!(["0x1", true])),
        ("eth_getBlockReceipts", json!(["0x1"])),
        ("eth_getBalance", json!([address, "0x0"])),
        ("eth_getProof", json!([address, ["0x0"], "0x1"])),
        ("eth_feeHistory", json!(["0x3", "latest", [50]])),
        ("eth_getLogs", json!([{"fromBlock": "0x0", "toBlock": "latest"}])),
        ("eth_call", json!([{"to": address, "data": "0x"}, "0x1"])),
        ("debug_traceBlockByNumber", json!(["0x1", {"tracer": "callTracer"}])),
    ] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let [found, expected] = [&forked, &server].map(|server| server.post("/", message.clone()).body);
        assert_eq!(found, expected, "{method}");
        assert!(!found["result"].is_null(), "{found}");
    }
}

#[test]
fn hashes_of_ancestors_are_proven_where_the_state_or_the_parents_show_them() {
    for (hardfork, proven_from) in [("prague", 0), ("cancun", 400 - 256)] {
        let genesis = DevGenesis { hardfork: hardfork.parse().unwrap(), ..DevGenesis::default() };
        let chain = DevNode::builder().mining(Mining::Manual).dev_genesis(genesis).spawn().unwrap();
        chain.producer().unwrap().mine(400, None, Vec::new()).unwrap();
        let server = serve(Arc::clone(chain.node()), HttpConfig::default());
        let whole: Arc<dyn StateBackend> = chain.backend().clone();
        let view = whole.view().unwrap();
        let head = view.head().number;
        assert_eq!(head, 400);
        // An endpoint that returns another block than the one with the number.
        let url = serve_messages(move |message| {
            let mut message = message.clone();
            let requests = match &mut message {
                Value::Array(all) => all.iter_mut().collect(),
                one => vec![one],
            };
            for request in requests {
                if request["method"] == "eth_getBlockByNumber" {
                    request["params"][0] = json!("0x7");
                }
            }
            server.post("/", message.to_string()).body
        });
        let folder = memory();
        let online = fork(&whole, head, &folder, Some(upstream(&url)));
        let forked = online.view().unwrap();
        let hashes: Vec<_> = (proven_from..head).collect();
        let (_, reads) = remote::reads_of(|| forked.canonical_hash(hashes[hashes.len() / 2]).unwrap());
        assert!(reads.steps <= 2, "{reads:?}");
        for number in &hashes {
            assert_eq!(forked.canonical_hash(*number).unwrap(), view.canonical_hash(*number).unwrap(), "{number}");
        }
        for number in 0..proven_from {
            // Here, the word of the endpoint counts, and its block has another number.
            match forked.canonical_hash(number) {
                Ok(hash) => assert_eq!(hash, view.canonical_hash(number).unwrap()),
                Err(error) => assert!(matches!(error, BackendError::Upstream(_)), "{error:?}"),
            }
        }
        let offline = fork(&whole, head, &folder, None).view().unwrap();
        for number in hashes {
            assert_eq!(offline.canonical_hash(number).unwrap(), view.canonical_hash(number).unwrap(), "{number}");
        }
    }
}

#[test]
fn several_blocks_are_read_in_few_round_trips() {
    const BLOCKS: u64 = 120;
    // The first block whose hash nothing proves but the word of an endpoint, if there are such blocks; and whether the endpoint
    // has all receipts of a block at once, and how often is waited for it: for the proof of hashes, or that there are none;
    // for the headers; for the blocks and receipts; for receipts one by one; for total difficulties.
    for (hardfork, from, has_receipts, steps) in [
        ("prague", 30, true, 3),
        ("prague", 30, false, 4),
        ("cancun", 30, true, 3),
        ("cancun", 280, true, 3),
        ("london", 30, true, 4),
    ] {
        let genesis = DevGenesis { hardfork: hardfork.parse().unwrap(), ..DevGenesis::default() };
        let chain = DevNode::builder().mining(Mining::Manual).dev_genesis(genesis).spawn().unwrap();
        // LOG0 in init code.
        let log = TransactionRequest {
            from: chain.accounts()[0].address(),
            input: Bytes::from([0x60, 0, 0x60, 0, 0xa0]),
            gas: Some(100_000),
            gas_price: Some(U256::exp10(10)),
            ..Default::default()
        };
        for _ in 0..410 {
            chain.send_transaction(&Context::unbounded(), log.clone()).unwrap();
            chain.producer().unwrap().mine(1, None, Vec::new()).unwrap();
        }
        let server = serve(Arc::clone(chain.node()), HttpConfig::default());
        let url = serve_messages(move |message| {
            let one = |request: &Value| match request["method"] == "eth_getBlockReceipts" && !has_receipts {
                true => {
                    let error = json!({"code": -32601, "message": "the method does not exist"});
                    json!({"jsonrpc": "2.0", "id": request["id"], "error": error})
                }
                false => server.post("/", request.to_string()).body,
            };
            match message {
                Value::Array(all) => all.iter().map(one).collect(),
                request => one(request),
            }
        });
        let whole: Arc<dyn StateBackend> = chain.backend().clone();
        let view = whole.view().unwrap();
        let range = from..=from + BLOCKS - 1;
        let numbers: Vec<_> = range.clone().collect();
        let open = || fork(&whole, 410, &memory(), Some(upstream(&url)));
        let case = format!("{hardfork} from {from}, has_receipts: {has_receipts}");
        // Without the total difficulty, which this server does not return.
        let rows = |view: &dyn View| -> Vec<_> {
            let rows = view.fee_rows(range.clone()).unwrap().into_iter();
            rows.map(|row| (row.header.hash, row.header.size, row.tips)).collect()
        };
        let online = open();
        let (found, reads) = remote::reads_of(|| rows(&*online.view().unwrap()));
        assert_eq!(found, rows(&*view), "{case}");
        assert_eq!(reads.steps, steps, "{case}");
        // The same parts show the logs.
        let (found, reads) = remote::reads_of(|| online.view().unwrap().logs(&numbers).unwrap());
        assert_eq!((found, reads.steps), (view.logs(&numbers).unwrap(), 0), "{case}");
        // A search first asks which blocks have some.
        let online = open().view().unwrap();
        let filter = LogFilter::default();
        let last = from + BLOCKS - 1;
        let start = LogPosition { block: from, log_index: 0 };
        let search = |view: &dyn View, limit| {
            let search = LogSearch { filter: &filter, from: start, to: last, limit };
            view.log_candidates(&Context::unbounded(), search).unwrap()
        };
        let (found, reads) = remote::reads_of(|| search(&*online, 1_000));
        assert_eq!((found.len() as u64, reads.steps), (BLOCKS, steps + 1), "{case}");
        assert_eq!(found, search(&*view, 1_000), "{case}");
        // Of a search that ends early, only the blocks are read that it needs.
        let few = open();
        assert_eq!(search(&*few.view().unwrap(), 2).len(), 2);
        let (_, reads) = remote::reads_of(|| few.view().unwrap().receipts((from + 5).into()).unwrap());
        assert!(reads.steps > 0, "{case}");
    }
}

#[test]
fn what_follows_from_the_word_of_an_endpoint_is_kept() {
    let genesis = DevGenesis { hardfork: "cancun".parse().unwrap(), ..DevGenesis::default() };
    let chain = DevNode::builder().mining(Mining::Manual).dev_genesis(genesis).spawn().unwrap();
    chain.producer().unwrap().mine(400, None, Vec::new()).unwrap();
    let server = serve(Arc::clone(chain.node()), HttpConfig::default());
    let whole: Arc<dyn StateBackend> = chain.backend().clone();
    let (view, folder) = (whole.view().unwrap(), memory());
    // Further below than parents are followed: the first is the word of the endpoint, the others are its ancestors.
    let mut numbers = [50, 49, 48];
    for upstream in [Some(upstream(server.url())), None] {
        let forked = fork(&whole, 400, &folder, upstream).view().unwrap();
        for number in numbers {
            assert_eq!(forked.header(number.into()).unwrap(), view.header(number.into()).unwrap(), "{number}");
        }
        numbers.reverse();
    }
}

#[test]
fn an_upstream_without_the_state_still_has_the_blocks() {
    let chain = DevNode::builder().mining(Mining::Manual).spawn().unwrap();
    chain.producer().unwrap().mine(300, None, Vec::new()).unwrap();
    let server = serve(Arc::clone(chain.node()), HttpConfig::default());
    let url = serve_messages(move |message| {
        let refuse = |request: &Value| {
            let error =
                json!({"code": -32000, "message": "missing trie node 00ab (path ) state 0x00ab is not available"});
            json!({"jsonrpc": "2.0", "id": request["id"], "error": error})
        };
        match message {
            Value::Array(all) if all[0]["method"] == "eth_getProof" => all.iter().map(refuse).collect(),
            one if one["method"] == "eth_getProof" => refuse(one),
            other => server.post("/", other.to_string()).body,
        }
    });
    let whole: Arc<dyn StateBackend> = chain.backend().clone();
    let view = whole.view().unwrap();
    let folder = memory();
    let fork = fork(&whole, 300, &folder, Some(upstream(&url)));
    let forked = fork.view().unwrap();
    for number in [299, 200, 45, 44, 43, 3] {
        assert_eq!(forked.body(number.into()).unwrap(), view.body(number.into()).unwrap(), "{number}");
    }
    // A header is enough for an empty block.
    let offline = self::fork(&whole, 300, &folder, None).view().unwrap();
    assert_eq!(offline.receipts(200.into()).unwrap(), view.receipts(200.into()).unwrap());
    assert_eq!(offline.body(201.into()).unwrap(), view.body(201.into()).unwrap());
    let error = forked.state(200).unwrap().account(Address::zero()).unwrap_err();
    assert!(matches!(error, BackendError::Upstream(_)), "{error:?}");
}
