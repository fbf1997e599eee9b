//! The layout on the disk. A folder is kept in `tests/fixtures` and must stay readable; blocks and records that are
//! written again must have the same bytes.

use super::OneSender;
use super::small;
use crate::files::DiskFolder;
use crate::wal::{Sequence, Wal, WalOptions};
use crate::{Options, Store, SyncPolicy, VerifyOptions};
use alloy_primitives::hex;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use node_core::backend::suite::{Content, TestChain, TestTransaction};
use node_core::backend::{LogFilter, Record, RecordKind, RecordWrite, StateBackend};
use node_core::block::{BlockRef, Body, ExecutedBlock, LogPosition, SealedHeader};
use node_core::context::Context;
use node_core::logs::{self, PageSize};
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_core::trie::{ordered_root, verify_proof};
use node_types::consensus::{Block, EMPTY_ROOT, Header, Log, Receipt, ReceiptOutcome, Withdrawal};
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const HEAD: BlockRef =
    BlockRef { number: 5, hash: H256(hex!("04654be48c94c03852b1f6f5cd425c5739a798e772837a69e56a78be304a94c7")) };
const REPLACED_3: H256 = H256(hex!("ac7e8a75325bce03dceb2c242b25aeafb03fc2fc1326e31f5784e653b6c8c6dc"));
const SIDE_3: H256 = H256(hex!("5d6122c788c1dbc422b9a4356af8d58e4d5ba9e23099d5a7281218d2c7531cbc"));

const CONTRACT: Address = Address::repeat_byte(1);
const CODE: &[u8] = &[0x60, 0x01, 0x60, 0x00, 0xf3];
const TOPIC: H256 = H256::repeat_byte(0xaa);

/// The blocks of a folder. Some are in runs, the others only in the log.
struct Contents {
    /// Blocks 0 to 3, which are in runs.
    old: Vec<ExecutedBlock>,
    /// A block 4 that leaves the chain.
    replaced: ExecutedBlock,
    /// The blocks 4 and 5 that take its place.
    branch: Vec<ExecutedBlock>,
    /// Another block 4 that was never on the chain.
    side: ExecutedBlock,
}

/// The kinds of records that the fixture has. Later ones do not change the layout.
const KINDS: [RecordKind; 6] = [
    RecordKind::PoolTransaction,
    RecordKind::Filter,
    RecordKind::PendingEdit,
    RecordKind::EditedBlock,
    RecordKind::Snapshot,
    RecordKind::ChainId,
];

/// The last entry of the log that [`write_folder`] moves to runs.
const FLUSHED: Sequence = Sequence(4);

/// Writes `contents` to a store in `folder`, and copies to `copy` what a process killed at the end would have left.
fn write_folder(contents: &Contents, folder: &Path, copy: &Path) {
    let options = small(1_000, SyncPolicy::Always);
    let store = Store::open(folder, contents.old[0].clone(), options).unwrap();
    contents.old[1..].iter().for_each(|block| store.append(block.clone()).unwrap());
    store.write_records(&KINDS.map(|kind| RecordWrite::Put(kind, record(kind)))).unwrap();
    store.flush().unwrap();

    let brief = Record { key: vec![8; 16], value: b"a brief filter".to_vec() };
    let deletion = RecordWrite::Delete(RecordKind::Filter, brief.key.clone());
    store.append_recording(contents.replaced.clone(), &[RecordWrite::Put(RecordKind::Filter, brief)]).unwrap();
    store.switch_recording(3, contents.branch.clone(), &[deletion]).unwrap();
    store.keep_side_block(contents.side.clone()).unwrap();
    let filter = RecordWrite::Delete(RecordKind::Filter, record(RecordKind::Filter).key);
    store.write_records(&[filter, RecordWrite::Put(RecordKind::Filter, later_filter())]).unwrap();
    for name in files(folder) {
        fs::copy(folder.join(&name), copy.join(&name)).unwrap();
    }
}

/// Returns a record of each kind. The encodings of the values are those of node-core and tested there; the store only
/// reads those of edited blocks.
fn record(kind: RecordKind) -> Record {
    let (key, value): (&[u8], &[u8]) = match kind {
        RecordKind::PoolTransaction => (&[0; 32], b"a pool transaction"),
        RecordKind::Filter => (&[1; 16], b"a filter"),
        RecordKind::PendingEdit => (&[2; 40], b"a pending edit"),
        // Nothing edited in block 9.
        RecordKind::EditedBlock => {
            (&[&[0, 0, 0, 0, 0, 0, 0, 9][..], &[3; 32]].concat(), &[0xc5, 0x80, 0x80, 0xc2, 0xc0, 0xc0])
        }
        RecordKind::Snapshot => (&[0, 0, 0, 0, 0, 0, 0, 4], b"a snapshot"),
        RecordKind::ChainId => (&[], &[0, 0, 0, 0, 0, 0, 5, 57]),
        RecordKind::ImportedFile => (b"/chain.rlp", b"an imported file"),
    };
    Record { key: key.to_vec(), value: value.to_vec() }
}

/// Returns the filter that replaces the one of [`record`] in the log.
fn later_filter() -> Record {
    Record { key: vec![7; 16], value: b"a later filter".to_vec() }
}

/// Returns the names of the files of a folder, except for the lock.
fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name != "lock").collect();
    names.sort();
    names
}

/// Returns the entries of the log that are not in runs, and then, after opening the folder has moved them there, all
/// rows, a line each: where it is, its key and its value, in hexadecimal.
fn dump(folder: &Path) -> String {
    let mut lines = String::new();
    let disk = Arc::new(DiskFolder::open(folder).unwrap());
    let log = Wal::open(disk, FLUSHED, WalOptions::default()).unwrap();
    for entry in log.entries_after(FLUSHED) {
        let entry = entry.unwrap();
        writeln!(lines, "log {} {}", entry.sequence.0, to_hex(&entry.payload)).unwrap();
    }
    drop(log);
    // Merging joins chunks of logs, so the merged runs must not depend on timing.
    Store::open_existing(folder, Options::default()).unwrap().wait_for_merges();

    let store = Store::open_existing(folder, Options::default()).unwrap();
    store.wait_for_merges();
    store.for_each_row(|table, key, value| {
        writeln!(lines, "{} {} {}", table.name(), to_hex(key), to_hex(value)).unwrap();
    });
    writeln!(lines, "{}", store.meta_text()).unwrap();
    lines
}

fn to_hex(bytes: &[u8]) -> String {
    if bytes.is_empty() { "-".to_owned() } else { format!("{:#}", Bytes::from(bytes)) }
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/layout-1")
}

/// Unpacks the fixture.
fn unpack() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in files(&fixture()) {
        let Some(unpacked) = name.strip_suffix(".gz") else { continue };
        let mut packed = GzDecoder::new(File::open(fixture().join(&name)).unwrap());
        io::copy(&mut packed, &mut File::create(folder.path().join(unpacked)).unwrap()).unwrap();
    }
    folder
}

/// Compares line by line, because rows are too long for one message.
fn assert_same_rows(found: &str) {
    let expected = fs::read_to_string(fixture().join("rows.txt")).unwrap();
    for (number, (found, expected)) in (1..).zip(found.lines().zip(expected.lines())) {
        assert_eq!(found, expected, "line {number} of rows.txt");
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "number of rows");
}

#[test]
fn the_fixture_can_be_read() {
    let folder = unpack();
    let mut store = Store::open_existing(folder.path(), Options::default()).unwrap();
    let view = store.view().unwrap();
    assert_eq!(view.head(), HEAD);
    assert_eq!(view.earliest_state(), 0);

    let header = view.header(5.into()).unwrap().unwrap();
    let body = view.body(5.into()).unwrap().unwrap();
    let block = block_of(&header.header, &body);
    assert_eq!((block.hash(), block.encoded_len() as u64), (header.hash, header.size));
    assert_eq!((body.transactions.len(), body.ommers.len(), body.withdrawals.as_ref().unwrap().len()), (2, 1, 2));
    let position = view.transaction_position(body.transactions[1].hash).unwrap().unwrap();
    assert_eq!((position.block, position.index), (5, 1));
    assert_eq!(view.receipts(5.into()).unwrap().unwrap()[1].outcome, ReceiptOutcome::Success(false));

    for at in 0..=5 {
        let root = view.header(at.into()).unwrap().unwrap().header.state_root;
        for address in (1..=21).map(Address::repeat_byte) {
            let slots = [6, 8].map(H256::from_low_u64_be);
            let proof = view.state(at).unwrap().proof(address, &slots).unwrap();
            let leaf = proof.account.map(|account| Bytes::from(account.encode()));
            assert_eq!(verify_proof(root, keccak256(address).as_bytes(), &proof.proof), Ok(leaf));
            for slot in &proof.storage {
                let leaf = (!slot.value.is_zero()).then(|| Bytes::from(rlp::encode(&slot.value).to_vec()));
                let root = proof.account.map_or(EMPTY_ROOT, |account| account.storage_root);
                assert_eq!(verify_proof(root, keccak256(slot.slot).as_bytes(), &slot.proof), Ok(leaf));
                assert_eq!(view.state(at).unwrap().storage(address, slot.slot).unwrap(), slot.value);
            }
        }
    }
    let account = view.state(5).unwrap().account(CONTRACT).unwrap().unwrap();
    assert_eq!(&view.state(5).unwrap().code(account.code_hash).unwrap().unwrap()[..], CODE);

    let filter = LogFilter { addresses: vec![CONTRACT], topics: vec![vec![TOPIC]] };
    let start = LogPosition { block: 0, log_index: 0 };
    let scan = logs::scan(&*view, &Context::unbounded(), &filter, start, 5, PageSize::of_entries(100)).unwrap();
    assert_eq!(scan.logs.len(), 3);
    assert_eq!(view.fee_rows(1..=1).unwrap()[0].tips.len(), 2);

    for kind in KINDS {
        let expected = if kind == RecordKind::Filter { later_filter() } else { record(kind) };
        assert_eq!(store.records(kind).unwrap(), [expected]);
    }
    drop(view);
    let verified = store.verify(VerifyOptions::default(), &Context::unbounded(), &OneSender, |_| {}).unwrap();
    assert_eq!((verified.head, verified.difference), (HEAD, None));
}

#[test]
fn the_layout_is_written_byte_for_byte() {
    let contents = read_contents(unpack().path());
    let [new, copy] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    write_folder(&contents, new.path(), copy.path());
    assert_same_rows(&dump(copy.path()));
    // The last blocks of the fixture are in the log, so their rows are written now.
    assert_same_rows(&dump(unpack().path()));
}

/// Returns the contents that [`write_folder`] wrote to `folder`.
fn read_contents(folder: &Path) -> Contents {
    let store = Store::open_existing(folder, Options::default()).unwrap();
    let view = store.view().unwrap();
    let canonical = |number: u64| ExecutedBlock {
        header: view.header(number.into()).unwrap().unwrap(),
        body: view.body(number.into()).unwrap().unwrap(),
        receipts: view.receipts(number.into()).unwrap().unwrap(),
        changes: view.changes(number).unwrap().unwrap(),
    };
    Contents {
        old: (0..=3).map(canonical).collect(),
        replaced: view.side_block(REPLACED_3).unwrap().unwrap(),
        branch: (4..=5).map(canonical).collect(),
        side: view.side_block(SIDE_3).unwrap().unwrap(),
    }
}

#[test]
fn the_layout_has_a_fixture() {
    let target = fixture();
    if std::env::var_os("WRITE_FIXTURE").is_some() && !target.exists() {
        write_fixture(&target);
    }
    assert!(target.exists(), "run WRITE_FIXTURE=1 cargo test -p node-store the_layout_has_a_fixture");
}

fn write_fixture(target: &Path) {
    let [folder, copy] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let contents = new_contents();
    write_folder(&contents, folder.path(), copy.path());
    fs::create_dir_all(target).unwrap();
    for name in files(copy.path()) {
        let mut packed = GzEncoder::new(File::create(target.join(format!("{name}.gz"))).unwrap(), Compression::best());
        io::copy(&mut File::open(copy.path().join(&name)).unwrap(), &mut packed).unwrap();
        packed.finish().unwrap().flush().unwrap();
    }
    fs::write(target.join("rows.txt"), dump(copy.path())).unwrap();
    println!("head {}", contents.branch[1].header.block_ref());
    println!("replaced {:#x}, side {:#x}", contents.replaced.header.hash, contents.side.header.hash);
}

/// Blocks whose rows have every form that the layout has.
fn new_contents() -> Contents {
    let accounts = (2..=20).map(|index| (Address::repeat_byte(index), change(u64::from(index), 1_000)));
    // All slots begin with the same nibble when hashed, so that the root of the storage trie is an extension.
    let created = AccountChange { storage: slots(&[(6, 0xff), (8, 1), (74, 1), (84, 1), (115, 1)]), ..contract() };
    let genesis = StateChanges {
        accounts: accounts.chain([(CONTRACT, created)]).collect(),
        code: [(keccak256(CODE), Bytes::from(CODE))].into(),
    };
    let mut chain = TestChain::new(Content { changes: genesis, ..Content::default() });

    chain.push(transfers(1, [&[TOPIC], &[TOPIC, H256::repeat_byte(0xbb)]]));
    let deleted = AccountChange { storage_cleared: true, ..AccountChange::default() };
    let written = AccountChange { storage: slots(&[(6, 0x1234), (7, 1), (8, 0)]), ..contract() };
    // The first leaf to be deleted is alone below its position, the second one shares it.
    let [alone, sharing] = [18, 20].map(|index| (Address::repeat_byte(index), deleted.clone()));
    chain.push(edit(&[alone, sharing, (CONTRACT, written)]));
    // The contract is created again, which begins another storage trie.
    let recreated = AccountChange { storage: slots(&[(6, 1), (8, 2)]), storage_cleared: true, ..contract() };
    chain.push(edit(&[(CONTRACT, recreated)]));

    let old = chain.blocks().to_vec();
    let fork = |salt| chain.clone().push(transfers(salt, [&[], &[H256::repeat_byte(0xcc)]]));
    let (replaced, side) = (fork(2), fork(3));
    let first = chain.push(transfers(4, [&[TOPIC], &[]]));
    let second = chain.push(transfers(5, [&[], &[]]));
    Contents { old, replaced, branch: vec![first, with_all_parts(&second)], side }
}

fn change(nonce: u64, balance: u64) -> AccountChange {
    let account = AccountState { nonce, balance: balance.into(), code_hash: KECCAK_EMPTY };
    AccountChange { account: Some(account), ..AccountChange::default() }
}

fn contract() -> AccountChange {
    let account = AccountState { nonce: 1, balance: 5.into(), code_hash: keccak256(CODE) };
    AccountChange { account: Some(account), ..AccountChange::default() }
}

fn slots(slots: &[(u64, u64)]) -> BTreeMap<H256, U256> {
    slots.iter().map(|(slot, value)| (H256::from_low_u64_be(*slot), U256::from(*value))).collect()
}

fn edit(accounts: &[(Address, AccountChange)]) -> Content {
    let changes = StateChanges { accounts: accounts.iter().cloned().collect(), ..StateChanges::default() };
    Content { changes, base_fee: Some(7), ..Content::default() }
}

/// A block that changes two accounts and has two transactions, each of which emits a log with the given topics.
fn transfers(salt: u64, topics: [&[H256]; 2]) -> Content {
    let accounts = [(Address::repeat_byte(2), change(salt, 999)), (Address::repeat_byte(21), change(0, salt))];
    let log = |topics: &[H256]| Log { address: CONTRACT, topics: topics.to_vec(), data: Bytes::from(&b"data"[..]) };
    let transaction = |(tip_cap, topics)| TestTransaction {
        tip_cap,
        fee_cap: 300,
        gas_used: 21_000 * tip_cap,
        logs: vec![log(topics)],
    };
    Content { transactions: (1..).zip(topics).map(transaction).collect(), salt, ..edit(&accounts) }
}

/// Returns the block with an ommer, withdrawals and every outcome of receipts.
fn with_all_parts(block: &ExecutedBlock) -> ExecutedBlock {
    let mut header = block.header.header.clone();
    let withdrawal = |index| Withdrawal { index, validator_index: 300, address: CONTRACT, amount: 1_000_000_000 };
    let body = Body {
        ommers: vec![Header { number: 4, difficulty: U256::from(0x20000), ..Header::default() }],
        withdrawals: Some(vec![withdrawal(1), withdrawal(2)]),
        ..Body::clone(&block.body)
    };
    let mut receipts = Vec::clone(&block.receipts);
    receipts[0].outcome = ReceiptOutcome::StateRoot(H256::repeat_byte(0xee));
    receipts[1].outcome = ReceiptOutcome::Success(false);

    header.ommers_hash = keccak256(rlp::encode_list(&body.ommers));
    let withdrawals: Vec<_> = body.withdrawals.iter().flatten().map(rlp::encode).collect();
    header.withdrawals_root = Some(ordered_root(&withdrawals));
    header.receipts_root = ordered_root(&receipts.iter().map(Receipt::encode).collect::<Vec<_>>());
    let whole = block_of(&header, &body);
    let sealed = SealedHeader {
        hash: whole.hash(),
        size: whole.encoded_len() as u64,
        header,
        total_difficulty: block.header.total_difficulty,
    };
    ExecutedBlock { header: sealed.into(), body: body.into(), receipts: receipts.into(), ..block.clone() }
}

fn block_of(header: &Header, body: &Body) -> Block {
    Block {
        header: header.clone(),
        transactions: body.transactions.iter().map(|recovered| recovered.transaction.clone()).collect(),
        ommers: body.ommers.clone(),
        withdrawals: body.withdrawals.clone(),
    }
}
