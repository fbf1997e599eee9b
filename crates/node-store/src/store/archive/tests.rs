//! The runs of a store compared with maps: blocks are added and leave the chain, runs are merged and pruned, the power
//! fails.

use super::*;
use crate::files::faults::FaultyDisk;
use crate::keys::{LogId, RowKey, Term};
use crate::postings;
use crate::values::encode_number;
use crate::wal::Sequence;
use node_core::backend::suite::Random;
use node_core::block::BlockRef;
use node_types::H256;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

impl crate::Store {
    /// Waits until nothing is written: no rows are moved to runs, there is nothing to merge, and no file of an unlisted
    /// run or of an older manifest.
    pub(crate) fn wait_for_merges(&self) {
        self.shared.wait_for_flusher(&mut self.shared.writer.lock());
        let archive = &self.shared.archive;
        let files = || {
            let names = archive.folder.list().unwrap();
            names.iter().filter(|name| RunId::of_file_name(name).is_some()).count()
        };
        while archive.plan().is_some() || archive.merging.is_locked() || files() != archive.tables().parts().count() {
            std::thread::yield_now();
        }
    }

    /// Visits all rows in runs. Keys do not include the number of the table.
    pub(crate) fn for_each_row(&self, mut visit: impl FnMut(Table, &[u8], &[u8])) {
        for table in Table::ALL {
            let mut scan = self.shared.archive.tables().scan(table).unwrap();
            while let Some((key, value)) = scan.next().unwrap() {
                visit(table, &key[1..], value);
            }
        }
    }

    /// Returns what the manifest says about the chain.
    pub(crate) fn meta_text(&self) -> String {
        let Meta { genesis, base: _, head, earliest, logged } = self.shared.archive.meta().unwrap();
        // As the fixture has it.
        format!("Meta {{ genesis: {genesis:?}, head: {head:?}, earliest: {earliest:?}, logged: {logged:?} }}")
    }
}

impl Archive {
    /// Returns a plan for these runs.
    fn plan_for(&self, family: Family, range: Range<usize>) -> Plan {
        let mut manifest = self.state.lock().manifest.clone().unwrap();
        Plan { family, is_bottom: range.start == 0, runs: manifest.runs(family)[range].to_vec() }
    }

    /// Replaces all runs by ones with other rows.
    pub(in crate::store) fn change_rows(&self, change: impl FnOnce(&mut BTreeMap<Vec<u8>, Vec<u8>>)) {
        let tables = self.tables();
        let mut rows = BTreeMap::new();
        for table in [Table::Headers, Table::Accounts] {
            let mut scan = Scan::new(tables.parts_of(table), &[], None).unwrap();
            while let Some((key, value)) = scan.next().unwrap() {
                rows.insert(key.to_vec(), value.to_vec());
            }
        }
        change(&mut rows);
        let mut opened = Vec::new();
        let mut manifest = self.state.lock().manifest.clone().unwrap();
        for family in Family::ALL {
            let is_own = |key: &&Vec<u8>| {
                Table::of_key(key).is_some_and(|table| table.is_numbered() == (family == Family::Numbered))
            };
            let mut own = rows.iter().filter(|(key, _)| is_own(key)).map(|(key, value)| (&**key, &**value));
            // Rows above the head are visible.
            let run = self.write(0..=manifest.meta.head.number + 1, &mut own).unwrap();
            *manifest.runs(family) = run.iter().map(listed).collect();
            opened.extend(run);
        }
        self.replace(&mut self.state.lock(), manifest, opened, false).unwrap();
    }
}

/// What runs must have.
#[derive(Clone, Default)]
struct Model {
    head: Option<BlockNumber>,
    hashes: BTreeMap<BlockNumber, H256>,
    removed: Vec<H256>,
    accounts: BTreeMap<(u8, BlockNumber), Vec<u8>>,
    logs: BTreeMap<u8, Vec<LogId>>,
    code: BTreeMap<u8, ()>,
    record: Option<u8>,
    /// Number of calls of `add`, to recognize what one of them changed.
    additions: u64,
    floor: BlockNumber,
}

fn account(key: u8) -> Key {
    Key::of_hash(Table::Accounts, H256::repeat_byte(key))
}

fn term(key: u8) -> Key {
    Key::of_term(Term::Topic(key % 4, H256::repeat_byte(key)))
}

fn code(key: u8) -> Key {
    Key::of_hash(Table::Code, H256::repeat_byte(key))
}

/// Adds blocks to the model, after those up to `limit`, and returns their rows.
fn blocks(model: &mut Model, random: &mut Random, limit: Option<BlockNumber>, count: u64) -> Vec<(RowKey, Vec<u8>)> {
    let mut rows = Vec::new();
    let kept = |block: BlockNumber| limit.is_some_and(|limit| block <= limit);
    let removed: Vec<_> = model.hashes.iter().filter(|(block, _)| !kept(**block)).map(|(_, hash)| *hash).collect();
    model.removed.extend(removed);
    model.hashes.retain(|block, _| kept(*block));
    model.accounts.retain(|(_, block), _| kept(*block));
    model.logs.values_mut().for_each(|ids| ids.retain(|id| kept(id.position().block)));
    let first = limit.map_or(0, |limit| limit + 1);
    for number in first..first + count {
        let hash = H256::from_low_u64_be(random.below(u64::MAX));
        model.hashes.insert(number, hash);
        for table in [Table::Headers, Table::Bodies, Table::Changes] {
            rows.push((Key::of_block(table, number).versioned(0), hash.as_bytes().to_vec()));
        }
        rows.push((Key::of_hash(Table::Numbers, hash).versioned(0), encode_number(number)));
        for key in 0..6 {
            if random.once_in(3) {
                let value = if random.once_in(3) { Vec::new() } else { hash.as_bytes()[20..].to_vec() };
                rows.push((account(key).versioned(number), value.clone()));
                model.accounts.insert((key, number), value);
            }
            if random.once_in(4) {
                let ids: Vec<_> = (0..=random.below(3)).map(|index| LogId(LogId::first_of(number).0 + index)).collect();
                rows.push((term(key).versioned(ids.last().unwrap().0), postings::encode(&ids)));
                model.logs.entry(key).or_default().extend(ids);
            }
            if random.once_in(20) && model.code.insert(key, ()).is_none() {
                rows.push((code(key).versioned(0), vec![key; 9]));
            }
        }
    }
    model.head = (first + count).checked_sub(1);
    rows
}

fn meta(model: &Model) -> Meta {
    let number = model.head.unwrap_or_default();
    let head = BlockRef { number, hash: model.hashes.get(&number).copied().unwrap_or_default() };
    Meta { genesis: H256::zero(), base: None, head, earliest: model.floor, logged: Sequence(model.additions) }
}

fn add(archive: &Archive, model: &mut Model, random: &mut Random) -> Result<(), StoreError> {
    model.additions += 1;
    let limit =
        model.head.map(|head| if random.once_in(3) { head - random.below(head - model.floor + 1) } else { head });
    let count = if limit.is_none() { 1 } else { random.below(8) };
    let rows = blocks(model, random, limit, count);
    let mut others = Vec::new();
    if random.once_in(2) {
        model.record = (!random.once_in(3)).then(|| random.below(256) as u8);
        let value = model.record.map_or(vec![crate::rows::DELETED], |value| vec![crate::rows::PRESENT, value]);
        others.push((vec![Table::Records as u8, 1], value));
    }
    let (mut numbered, mut keyed): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .map(|(key, value)| (key.to_vec(), value))
        .chain(others)
        .partition(|(key, _)| Table::of_key(key).unwrap().is_numbered());
    numbered.sort();
    keyed.sort();
    let first = limit.map_or(0, |limit| limit + 1);
    let rows = NewRows {
        // `first..=first - 1` without underflow is not needed: the genesis block is never missing.
        blocks: first..=first + count - 1,
        numbered: &mut numbered.iter().map(|(key, value)| (&**key, &**value)),
        keyed: &mut keyed.iter().map(|(key, value)| (&**key, &**value)),
    };
    archive.add(rows, limit.unwrap_or_default(), meta(model))
}

fn check(archive: &Archive, model: &Model) {
    let tables = archive.tables();
    let head = model.head.unwrap();
    assert_eq!(archive.meta().unwrap(), meta(model));
    for number in 0..head + 3 {
        let found = tables.get(&Key::of_block(Table::Headers, number)).unwrap();
        assert_eq!(found.as_deref(), model.hashes.get(&number).map(H256::as_bytes), "header {number} of {head}");
        let found = tables.get(&Key::of_block(Table::Changes, number)).unwrap();
        let expected = model.hashes.get(&number).filter(|_| model.floor == 0 || number > model.floor);
        assert_eq!(found.as_deref(), expected.map(H256::as_bytes), "changes {number} of {head}");
    }
    for (number, hash) in &model.hashes {
        let found = tables.get(&Key::of_hash(Table::Numbers, *hash)).unwrap();
        assert_eq!(found.as_deref(), Some(&*encode_number(*number)));
    }
    for hash in &model.removed {
        assert!(tables.get(&Key::of_hash(Table::Numbers, *hash)).unwrap().is_none());
    }
    for key in 0..6 {
        for at in model.floor..=head + 1 {
            let mut newest = None;
            let visit = |version, value: &[u8]| {
                newest = Some((version, value.to_vec()));
                Ok(ControlFlow::Break(()))
            };
            tables.newest_first(&account(key), at, visit).unwrap();
            let expected = model.accounts.range((key, 0)..=(key, at)).next_back();
            let expected = expected.map(|((_, version), value)| (*version, value.clone()));
            // Below the floor, rows with an empty value may be missing.
            let same = |row: &Option<(BlockNumber, Vec<u8>)>| row.clone().filter(|(_, value)| !value.is_empty());
            if model.floor == 0 {
                assert_eq!(newest, expected, "account {key} at {at} of {head}");
            } else {
                assert_eq!(same(&newest), same(&expected), "account {key} at {at} of {head}");
            }
        }
        let ids = model.logs.get(&key).cloned().unwrap_or_default();
        for limit in [head, head / 2] {
            let mut found: Vec<LogId> = Vec::new();
            let mut wanted = LogId(0);
            while let Some(chunk) = tables.chunk_from(&term(key), wanted, limit).unwrap() {
                found.extend(chunk.iter().filter(|id| **id >= wanted));
                wanted = LogId(found.last().unwrap().0 + 1);
            }
            let expected: Vec<_> = ids.iter().copied().filter(|id| id.position().block <= limit).collect();
            assert_eq!(found, expected, "logs {key} up to {limit}");
        }
        let expected = model.code.get(&key).map(|()| vec![key; 9]);
        assert_eq!(tables.get(&code(key)).unwrap().map(|code| code.to_vec()), expected);
    }
    let mut scan = tables.scan(Table::Records).unwrap();
    let record = scan.next().unwrap().and_then(|(_, value)| value.get(1).copied());
    assert_eq!(record, model.record);
}

fn play(seed: u64, steps: usize, failures: bool) {
    let random = &mut Random(seed);
    let disk = FaultyDisk::new();
    let open = || Archive::open(disk.folder(), 1 << 16).unwrap();
    let mut archive = open();
    let mut model = Model::default();
    add(&archive, &mut model, random).unwrap();
    for _ in 0..steps {
        let before = model.clone();
        if failures && random.once_in(3) {
            disk.fail_operation(random.below(30));
        }
        let done = match random.below(12) {
            0..=5 => add(&archive, &mut model, random),
            6..=8 => {
                let (manifest, _) = archive.listed().unwrap();
                let (family, runs) = match random.once_in(3) {
                    true => (Family::Numbered, manifest.numbered.len() as u64),
                    false => (Family::Keyed, manifest.keyed.len() as u64),
                };
                let start = random.below(runs);
                let end = start + 1 + random.below(runs - start);
                archive.merge(&archive.plan_for(family, start as usize..end as usize), &mut || Ok(()))
            }
            9 => archive.remove_unlisted().map_err(StoreError::File),
            10 if random.once_in(4) => {
                let floor = model.floor.max(random.below(model.head.unwrap() + 1));
                if floor > model.floor {
                    model.floor = floor;
                    archive.prune(floor).map(drop)
                } else {
                    Ok(())
                }
            }
            _ => {
                disk.fail_nothing();
                disk.crash(random.below(u64::MAX));
                archive = open();
                Ok(())
            }
        };
        disk.fail_nothing();
        if done.is_err() {
            // The process continues as before.
            check(&archive, &before);
            if random.once_in(2) {
                disk.crash(random.below(u64::MAX));
                archive = open();
                // What failed may have been durable.
                if archive.meta() != Some(meta(&model)) || archive.meta() == Some(meta(&before)) {
                    model = before;
                }
                continue;
            }
            model = before;
            // The store writes again what failed, so its state is known again.
            archive.set_genesis_file(b"").unwrap();
        }
        check(&archive, &model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn runs_return_what_maps_return(seed: u64) {
        play(seed, 60, false);
    }

    #[test]
    fn failures_and_power_cuts_change_nothing_or_everything(seed: u64) {
        play(seed, 60, true);
    }
}

/// Adds blocks to a new archive until there are runs to merge.
fn until_a_merge(disk: &FaultyDisk, random: &mut Random) -> (Archive, Model, Plan) {
    let archive = Archive::open(disk.folder(), 1 << 16).unwrap();
    let mut model = Model::default();
    loop {
        add(&archive, &mut model, random).unwrap();
        if let Some(plan) = archive.plan() {
            return (archive, model, plan);
        }
    }
}

#[test]
fn an_abandoned_merge_changes_nothing() {
    let random = &mut Random(3);
    let disk = FaultyDisk::new();
    let (archive, mut model, plan) = until_a_merge(&disk, random);
    archive.merge(&plan, &mut || Err(StoreError::Closed)).unwrap_err();
    check(&archive, &model);
    // A later manifest shows that the unfinished file is of no use.
    add(&archive, &mut model, random).unwrap();
    archive.remove_unlisted().unwrap();
    let before = disk.names().len();
    let runs = disk.names().iter().filter(|name| RunId::of_file_name(name).is_some()).count();
    assert_eq!(runs, archive.tables().parts().count());
    check(&archive, &model);
    let plan = archive.plan().unwrap();
    archive.merge(&plan, &mut || Ok(())).unwrap();
    archive.remove_unlisted().unwrap();
    check(&archive, &model);
    assert!(disk.names().len() < before);
}

#[test]
fn merging_leaves_a_damaged_run_out() {
    let random = &mut Random(3);
    let disk = FaultyDisk::new();
    let (archive, mut model, plan) = until_a_merge(&disk, random);
    assert_eq!(plan.family, Family::Keyed);
    let damaged = plan.runs[1];
    // In its first block of rows.
    disk.flip_bit(&damaged.id.file_name(), 100);
    archive.merge(&plan, &mut || Ok(())).unwrap_err();
    let mut merges = 0;
    for _ in 0..100 {
        add(&archive, &mut model, random).unwrap();
        while let Some(plan) = archive.plan() {
            assert!(!plan.is_bottom && !plan.runs.contains(&damaged) || plan.family == Family::Numbered);
            archive.merge(&plan, &mut || Ok(())).unwrap();
            merges += 1;
        }
    }
    let runs = archive.tables().parts_of(Table::Accounts).len();
    assert!(merges > 10 && runs < MAX_KEYED, "{merges}, {runs}");
}
