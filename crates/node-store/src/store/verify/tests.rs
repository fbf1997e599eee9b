//! Intact stores pass verification, and every kind of damage is found and located.

use crate::chain::ChainVersion;
use crate::files::faults::FaultyDisk;
use crate::keys::{Key, Table, Term, TrieId};
use crate::postings;
use crate::tests::{OneSender, fork_at};
use crate::{Difference, Options, RowFault, Store, SyncPolicy, VerifyOptions};
use node_core::backend::StateBackend;
use node_core::backend::suite::{Random, TestChain};
use node_core::context::Context;
use node_core::trie::NibblePath;
use node_types::keccak256;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Options that move rows to runs after `blocks_in_memory` blocks.
fn small(blocks_in_memory: u64) -> Options {
    let sync = SyncPolicy::OnDemand;
    Options { cache_bytes: 1 << 20, sync, commit_rows: 0, blocks_in_memory, ..Options::default() }
}

fn verify(store: &mut Store) -> Option<Difference> {
    let stats = store.stats().unwrap();
    verify_part(store, VerifyOptions::default(), stats.head.number - stats.first_block + 1)
}

/// Verifies `blocks` blocks.
fn verify_part(store: &mut Store, options: VerifyOptions, blocks: u64) -> Option<Difference> {
    let mut progress = Vec::new();
    let verified = store.verify(options, &Context::unbounded(), &OneSender, |step| progress.push(step)).unwrap();
    assert_eq!((verified.head, verified.blocks), (store.view().unwrap().head(), blocks));
    assert!(progress.iter().all(|step| step.of == blocks) && progress.is_sorted_by_key(|step| step.blocks));
    assert!(verified.difference.is_some() || progress.last().unwrap().blocks == blocks);
    verified.difference
}

fn filled(seed: u64, length: u64, blocks_in_memory: u64) -> (TestChain, Store) {
    let chain = Random(seed).chain(length);
    let options = small(blocks_in_memory);
    let store = Store::open_in(FaultyDisk::new().folder(), chain.blocks()[0].clone(), options).unwrap();
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    (chain, store)
}

#[test]
fn intact_stores_pass() {
    for seed in 0..8 {
        let (mut chain, mut store) = filled(seed, 120, 1 + 10 * seed);
        assert_eq!(verify(&mut store), None, "seed {seed}");
        // Blocks that leave the chain take their rows with them.
        let random = &mut Random(100 + seed);
        for ancestor in [110, 60] {
            chain = chain.up_to(ancestor);
            random.extend(&mut chain, 30);
            store.switch(ancestor, chain.above(ancestor)).unwrap();
        }
        assert_eq!(verify(&mut store), None, "seed {seed}, after switches");
        for floor in [1, 40, 90] {
            store.prune_before(floor).unwrap();
            assert_eq!(verify(&mut store), None, "seed {seed}, pruned before {floor}");
        }
        random.extend(&mut chain, 5);
        chain.above(90).into_iter().for_each(|block| store.append(block).unwrap());
        assert_eq!(verify(&mut store), None, "seed {seed}, after appending");
    }
}

/// Changes of rows: a key and its new value, or `None` to delete the row.
type Rows = Vec<(Table, Vec<u8>, Option<Vec<u8>>)>;

fn write(store: &Store, rows: &Rows) {
    store.shared.archive.change_rows(|all| {
        for (table, key, value) in rows {
            let key = [&[*table as u8], &key[..]].concat();
            match value {
                Some(value) => drop(all.insert(key, value.clone())),
                None => assert!(all.remove(&key).is_some(), "{table:?} {key:02x?}"),
            }
        }
    });
    let mut chain = ChainVersion::clone(&store.shared.current.read());
    chain.rows.tables = store.shared.archive.tables();
    *store.shared.current.write() = Arc::new(chain);
}

/// Returns all rows of a table, the keys without its number.
fn all_rows(store: &Store, table: Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut scan = store.shared.archive.tables().scan(table).unwrap();
    let mut rows = Vec::new();
    while let Some((key, value)) = scan.next().unwrap() {
        rows.push((key[1..].to_vec(), value.to_vec()));
    }
    rows
}

/// Returns the key of a row without the number of its table.
fn key_of(key: &Key, version: u64) -> Vec<u8> {
    key.versioned(version)[1..].to_vec()
}

/// Opens the folder after `change`, with empty caches, and verifies it.
fn difference_after(change: impl Fn(&Store) -> Rows, floor: u64) -> Difference {
    let open = |disk: &FaultyDisk, chain: &TestChain| {
        Store::open_in(disk.folder(), chain.blocks()[0].clone(), small(20)).unwrap()
    };
    difference_in(open, 0, change, floor)
}

/// The first block of the chain with a base.
const FIRST: u64 = 10;

/// Like [`difference_after`], in a chain with a base.
fn difference_in_fork(change: impl Fn(&Store) -> Rows, floor: u64) -> Difference {
    let open = |disk: &FaultyDisk, chain: &TestChain| {
        let (base, first) = fork_at(chain, FIRST);
        Store::open_fork_in(disk.folder(), first, Arc::new(base), small(20)).unwrap()
    };
    difference_in(open, FIRST, change, floor)
}

fn difference_in(
    open: impl Fn(&FaultyDisk, &TestChain) -> Store,
    first: u64,
    change: impl Fn(&Store) -> Rows,
    floor: u64,
) -> Difference {
    let disk = FaultyDisk::new();
    let chain = Random(11).chain(60);
    let open = || open(&disk, &chain);
    let store = open();
    chain.above(first).into_iter().for_each(|block| store.append(block).unwrap());
    store.prune_before(floor).unwrap();
    store.flush().unwrap();
    let rows = change(&store);
    assert!(!rows.is_empty());
    write(&store, &rows);
    drop(store);
    let mut store = open();
    verify(&mut store).unwrap_or_else(|| panic!("nothing found of {rows:02x?}"))
}

/// Returns the row of each of `table` selected by its version or number, with `change` applied to its value.
fn changed(store: &Store, table: Table, block: u64, change: impl Fn(&mut [u8])) -> Rows {
    let chosen = |key: &[u8]| match table {
        Table::Accounts | Table::Storage | Table::Trie => crate::keys::version_of(table.suffix(), key) == Some(block),
        _ => *key == *key_of(&Key::of_block(table, block), 0),
    };
    let row = all_rows(store, table).into_iter().find(|(key, value)| chosen(key) && !value.is_empty());
    let (key, mut value) = row.unwrap_or_else(|| panic!("no row of {} in {block}", table.name()));
    change(&mut value);
    vec![(table, key, Some(value))]
}

fn flip_last(value: &mut [u8]) {
    *value.last_mut().unwrap() ^= 1;
}

/// Returns a block of the chain of [`difference_after`] that has transactions, logs, changed accounts and slots.
fn rich_block() -> u64 {
    let chain = Random(11).chain(60);
    let rich = |number: &u64| {
        let block = &chain.blocks()[*number as usize];
        let slots = block
            .changes
            .accounts
            .values()
            .any(|change| change.account.is_some() && change.storage.values().any(|value| !value.is_zero()));
        slots && block.receipts.iter().any(|receipt| !receipt.logs.is_empty())
    };
    (20..50).find(rich).unwrap()
}

#[test]
fn finds_changed_bytes_in_every_table() {
    let block = rich_block();
    let tables = [
        Table::Headers,
        Table::Bodies,
        Table::Receipts,
        Table::Accounts,
        Table::Storage,
        Table::Trie,
        Table::Changes,
        Table::Fees,
    ];
    for table in tables {
        for floor in [0, 5] {
            let found = difference_after(|store| changed(store, table, block, flip_last), floor);
            assert_eq!((found.block, found.table), (Some(block), table.name()), "floor {floor}: {found}");
        }
    }
}

#[test]
fn finds_changed_missing_and_surplus_rows_of_a_chain_with_a_base() {
    let (block, floor) = (rich_block(), FIRST + 8);
    let of_state = [Table::Accounts, Table::Storage, Table::Trie];
    for table in
        [Table::Headers, Table::Bodies, Table::Receipts, Table::Changes, Table::Fees].into_iter().chain(of_state)
    {
        for floor in [0, floor] {
            let found = difference_in_fork(|store| changed(store, table, block, flip_last), floor);
            assert_eq!((found.block, found.table), (Some(block), table.name()), "floor {floor}: {found}");
        }
    }
    for table in of_state {
        // Of the earliest state, which is not computed from blocks, as much as differs from the base.
        let in_floor = |store: &Store| {
            let is_earliest = |key: &[u8]| crate::keys::version_of(table.suffix(), key).is_some_and(|at| at <= floor);
            let mut rows = all_rows(store, table).into_iter();
            let (key, mut value) =
                rows.find(|(key, value)| is_earliest(key) && !value.is_empty() && *value != [0]).unwrap();
            flip_last(&mut value);
            vec![(table, key, Some(value))]
        };
        difference_in_fork(in_floor, floor);
        let missing = |store: &Store| {
            let rows = changed(store, table, block, |_| {}).into_iter();
            rows.map(|(table, key, _)| (table, key, None)).collect()
        };
        let found = difference_in_fork(missing, 0);
        assert_eq!((found.block, found.table, found.fault), (Some(block), table.name(), RowFault::Missing));
    }
    let surplus = Key::of_hash(Table::Accounts, keccak256("surplus"));
    for at in [FIRST, block] {
        let found = difference_in_fork(|_| vec![(Table::Accounts, key_of(&surplus, at), Some(vec![0, 1, 0]))], 0);
        assert_eq!((found.block, found.table), (Some(at), "accounts"));
        assert!(matches!(found.fault, RowFault::Surplus { .. }), "{found}");
    }
}

#[test]
fn finds_changes_of_every_part_of_a_row() {
    let block = rich_block();
    let disk = FaultyDisk::new();
    let chain = Random(11).chain(60);
    let options = small(1);
    let mut store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), options).unwrap();
    chain.up_to(block + 1).above(0).into_iter().for_each(|block| store.append(block).unwrap());
    store.flush().unwrap();
    for table in [Table::Headers, Table::Bodies, Table::Receipts, Table::Accounts] {
        let good = changed(&store, table, block, |_| {});
        let [(_, key, Some(value))] = &good[..] else { panic!() };
        for index in (0..value.len()).step_by(7) {
            let mut bad = value.clone();
            bad[index] ^= 0x11;
            write(&store, &vec![(table, key.clone(), Some(bad))]);
            let found = verify(&mut store).unwrap_or_else(|| panic!("{} byte {index}", table.name()));
            assert_eq!(found.block, Some(block), "{} byte {index}: {found}", table.name());
        }
        write(&store, &good);
    }
    assert_eq!(verify(&mut store), None);
}

#[test]
fn finds_missing_rows() {
    let block = rich_block();
    let chain = Random(11).chain(60);
    let content = &chain.blocks()[block as usize];
    let hashes = [(Table::Numbers, content.header.hash), (Table::Transactions, content.body.transactions[0].hash)];
    for (table, hash) in hashes {
        let found = difference_after(|_| vec![(table, Key::of_hash(table, hash).prefix().to_vec(), None)], 0);
        assert_eq!((found.block, found.table, found.fault), (Some(block), table.name(), RowFault::Missing));
    }
    for table in [Table::Headers, Table::Bodies, Table::Changes, Table::Fees, Table::Trie, Table::Storage] {
        let found = difference_after(
            |store| {
                let mut rows = changed(store, table, block, |_| {});
                rows[0].2 = None;
                rows
            },
            0,
        );
        assert_eq!((found.block, found.table, found.fault), (Some(block), table.name(), RowFault::Missing));
    }
    // A log that is missing from the middle of its chunk.
    let found = difference_after(
        |store| {
            let key = Key::of_term(Term::Any);
            let tables = store.shared.archive.tables();
            let id = crate::keys::LogId::first_of(block);
            let mut ids = tables.chunk_from(&key, id, u64::MAX).unwrap().unwrap();
            let (count, last) = (ids.len(), ids.last().unwrap().0);
            ids.retain(|id| id.position().block != block);
            assert!(ids.len() < count && !ids.is_empty());
            let mut rows = vec![(Table::Postings, key_of(&key, last), None)];
            rows.push((Table::Postings, key_of(&key, ids.last().unwrap().0), Some(postings::encode(&ids))));
            rows
        },
        0,
    );
    assert_eq!((found.block, found.table, found.fault), (Some(block), "postings", RowFault::Missing));
}

#[test]
fn finds_surplus_rows() {
    let block = rich_block();
    let stranger = keccak256(b"stranger");
    let known = keccak256(Random::addresses()[0]);
    let hash = |table| Key::of_hash(table, stranger).prefix().to_vec();
    let cases: Vec<(&str, Table, Vec<u8>, Vec<u8>)> = vec![
        ("an account", Table::Accounts, key_of(&Key::of_hash(Table::Accounts, stranger), block), vec![0, 1, 0]),
        ("a tombstone", Table::Accounts, key_of(&Key::of_hash(Table::Accounts, stranger), block), vec![]),
        ("a slot", Table::Storage, key_of(&Key::of_slot(TrieId::storage(block, 9), stranger), block), vec![1]),
        ("a node", Table::Trie, key_of(&Key::of_node(TrieId::storage(block, 9), &NibblePath::ROOT), block), vec![0]),
        ("a transaction", Table::Transactions, hash(Table::Transactions), crate::values::encode_position(block, 0)),
        ("a number", Table::Numbers, hash(Table::Numbers), crate::values::encode_number(block)),
        (
            "a log",
            Table::Postings,
            key_of(&Key::of_term(Term::Topic(3, stranger)), crate::keys::LogId::first_of(block).0),
            vec![],
        ),
    ];
    for floor in [0, 5] {
        for (name, table, key, value) in &cases {
            let found = difference_after(|_| vec![(*table, key.clone(), Some(value.clone()))], floor);
            let expected = Difference {
                block: Some(block),
                table: table.name(),
                key: key.clone(),
                fault: RowFault::Surplus { found: value.clone() },
            };
            assert_eq!(found, expected, "{name}, floor {floor}");
        }
    }
    // A version of an account that the following blocks read.
    let read = Key::of_hash(Table::Accounts, known);
    let found = difference_after(
        |store| {
            let versions = all_rows(store, Table::Accounts);
            let free = (10..60).find(|version| versions.iter().all(|(key, _)| *key != key_of(&read, *version)));
            vec![(Table::Accounts, key_of(&read, free.unwrap()), Some(vec![0, 99, 0]))]
        },
        0,
    );
    assert!(matches!(found.fault, RowFault::Surplus { .. }) && found.table == "accounts", "{found}");
    // Blocks above the head.
    for table in [Table::Headers, Table::Bodies, Table::Receipts, Table::Changes, Table::Fees] {
        let key = Key::of_block(table, 61).prefix().to_vec();
        let found = difference_after(|_| vec![(table, key.clone(), Some(vec![1]))], 0);
        assert_eq!((found.block, found.table), (Some(61), table.name()), "{found}");
    }
}

#[test]
fn computes_the_earliest_state_from_its_leaves() {
    let floor = rich_block();
    for table in [Table::Accounts, Table::Storage, Table::Trie] {
        for index in 0..10 {
            let flip = |store: &Store| {
                let mut rows = all_rows(store, table);
                rows.retain(|(key, _)| crate::keys::version_of(table.suffix(), key).unwrap() <= floor);
                // The newest of each position: older ones may no longer be in use.
                rows.dedup_by(|(next, _), (key, _)| next[..next.len() - 5] == key[..key.len() - 5]);
                let (key, mut value) = rows[index % rows.len()].clone();
                flip_last(&mut value);
                vec![(table, key, Some(value))]
            };
            let found = difference_after(flip, floor);
            assert_eq!(found.block, Some(floor), "{found}");
        }
    }
    let stranger = key_of(&Key::of_hash(Table::Accounts, keccak256(b"stranger")), 3);
    let found = difference_after(|_| vec![(Table::Accounts, stranger.clone(), Some(vec![0, 1, 0]))], floor);
    assert_eq!((found.block, found.table, &found.key), (Some(floor), "accounts", &stranger));
}

#[test]
fn finds_damaged_code() {
    let found = difference_after(
        |store| {
            let (key, mut value) = all_rows(store, Table::Code).swap_remove(0);
            flip_last(&mut value);
            vec![(Table::Code, key, Some(value))]
        },
        0,
    );
    assert_eq!((found.block, found.table), (None, "code"), "{found}");
}

#[test]
fn a_part_of_the_blocks_can_be_checked() {
    let (_, mut store) = filled(4, 1_200, 100);
    let from = |from| VerifyOptions { from, ..VerifyOptions::default() };
    let sample = |from, blocks| VerifyOptions { from, sample: NonZeroU64::new(blocks) };
    for (options, blocks) in [
        (from(0), 1_201),
        (from(700), 501),
        (from(1_200), 1),
        (from(5_000), 1),
        (sample(0, 10), 10),
        (sample(1_000, 50), 50),
        (sample(0, 9_999), 1_201),
    ] {
        assert_eq!(verify_part(&mut store, options, blocks), None, "{options:?}");
    }
    // The fees of block 600.
    let (key, mut value) = all_rows(&store, Table::Fees).swap_remove(600);
    value.push(0);
    write(&store, &vec![(Table::Fees, key, Some(value))]);
    assert_eq!(verify(&mut store).unwrap().block, Some(600));
    assert_eq!(verify_part(&mut store, from(600), 601).unwrap().block, Some(600));
    assert_eq!(verify_part(&mut store, from(601), 600), None);
    assert_eq!(verify_part(&mut store, sample(599, 601), 601).unwrap().block, Some(600));
}

#[test]
fn can_be_cancelled() {
    let (_, mut store) = filled(1, 20, 1);
    let context = Context::unbounded();
    context.cancel();
    let ended = store.verify(VerifyOptions::default(), &context, &OneSender, |_| ());
    assert!(matches!(ended, Err(node_core::backend::BackendError::Interrupted(_))), "{ended:?}");
}

#[test]
fn a_prune_that_fails_at_any_operation_leaves_every_state_intact() {
    for seed in 1..4 {
        for operation in 0.. {
            let disk = FaultyDisk::new();
            let chain = Random(seed).chain(60);
            let open = || Store::open_in(disk.folder(), chain.blocks()[0].clone(), small(20)).unwrap();
            let store = open();
            chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
            store.flush().unwrap();
            disk.fail_operation(operation);
            let pruned = store.prune_before(50);
            let done = disk.fail_nothing();
            match operation % 2 {
                0 => disk.kill(),
                _ => disk.crash(operation),
            }
            drop(store);
            let mut store = open();
            assert_eq!(verify(&mut store), None, "seed {seed}, failed at operation {operation}");
            if done {
                pruned.unwrap();
                store.prune_before(50).unwrap();
                assert_eq!(verify(&mut store), None, "seed {seed}, pruned again");
                assert!(operation > 10, "{operation}");
                break;
            }
        }
    }
}
