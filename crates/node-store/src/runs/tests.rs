//! Runs compared with maps.

use super::writer::Sizes;
use super::*;
use crate::files::faults::FaultyDisk;
use crate::keys::{Table, filter_part};
use node_core::waiting::without_waiting;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns a key of `accounts` with few different addresses and versions.
fn key(address: u8, version: u8) -> Vec<u8> {
    [&[Table::Accounts as u8][..], &[address; 32], &[0, 0, 0, 0, version]].concat()
}

fn write(disk: &FaultyDisk, id: u64, rows: &Rows, sizes: Sizes) -> Arc<Run> {
    let folder = disk.folder();
    let mut writer = RunWriter::with_sizes(&*folder, RunId(id), sizes).unwrap();
    rows.iter().for_each(|(key, value)| writer.add(key, value).unwrap());
    assert_eq!(writer.count(), rows.len() as u64);
    writer.finish(3..=7).unwrap();
    open(disk, id).unwrap()
}

fn open(disk: &FaultyDisk, id: u64) -> io::Result<Arc<Run>> {
    Run::open(&*disk.folder(), RunId(id), RunsShared::new(1 << 16)).map(Arc::new)
}

fn rest(mut cursor: Option<Cursor>) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut rows = Vec::new();
    while let Some(found) = &mut cursor {
        rows.push((found.key().to_vec(), found.value().to_vec()));
        if !found.advance()? {
            cursor = None;
        }
    }
    Ok(rows)
}

fn rows() -> impl Strategy<Value = Rows> {
    let value = prop_oneof![4 => prop::collection::vec(any::<u8>(), 0..40), 1 => Just(vec![7; 3000])];
    prop::collection::btree_map((any::<u8>(), any::<u8>()).prop_map(|(a, v)| key(a / 4, v / 4)), value, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_returns_what_a_map_returns(
        rows in rows(),
        wanted in prop::collection::vec((0u8..70, 0u8..70), 40),
        // With the smallest ones, a block has one entry.
        block in prop_oneof![1usize..60, 40usize..2000],
        partition in 1usize..5,
    ) {
        let disk = FaultyDisk::new();
        let run = write(&disk, 5, &rows, Sizes { rows: block, index: block, partition });
        prop_assert_eq!(&run.properties().blocks, &(3..=7));
        let size = run.properties().tables[Table::Accounts as usize];
        let bytes: usize = rows.iter().map(|(key, value)| key.len() - 1 + value.len()).sum();
        prop_assert_eq!((size.rows, size.bytes), (rows.len() as u64, bytes as u64));
        prop_assert!(rows.is_empty() || (1..run.size()).contains(&size.disk));
        for (address, version) in wanted {
            let from = key(address, version);
            let expected: Vec<_> = rows.range(from.clone()..).map(|(k, v)| (k.clone(), v.clone())).collect();
            prop_assert_eq!(rest(run.seek(&from).unwrap()).unwrap(), expected.clone());
            prop_assert_eq!(rest(run.scan(&from).unwrap()).unwrap(), expected.clone());
            let part = filter_part(&from).unwrap();
            let first = run.seek_part(part, &from).unwrap().map(|row| (row.key().to_vec(), row.value().to_vec()));
            let expected = expected.into_iter().next();
            if expected.as_ref().is_some_and(|(key, _)| key.starts_with(part)) {
                prop_assert_eq!(first, expected);
            } else {
                prop_assert!(first.is_none_or(|first| Some(first) == expected));
            }
        }
    }

    #[test]
    fn merged_runs_return_all_rows_and_the_newest_first(parts in prop::collection::vec(rows(), 1..6)) {
        let disk = FaultyDisk::new();
        let sizes = Sizes { rows: 300, index: 300, partition: 3 };
        let runs: Vec<_> = (1..).zip(&parts).map(|(id, rows)| write(&disk, id, rows, sizes)).collect();
        let mut merged = Merged::new(runs.iter().filter_map(|run| run.scan(&[]).unwrap()));
        let mut expected = BTreeMap::new();
        for (source, rows) in parts.iter().enumerate() {
            expected.extend(rows.iter().map(|(key, value)| ((key.clone(), source), value.clone())));
        }
        for ((key, source), value) in &expected {
            let _ = source;
            prop_assert_eq!(merged.row(), Some((&**key, &**value)));
            merged.advance().unwrap();
        }
        prop_assert_eq!(merged.row(), None);
    }
}

#[test]
fn every_damaged_bit_is_noticed() {
    let rows: Rows = (0..40).map(|n| (key(n / 4, n % 4), vec![n; 5])).collect();
    let disk = FaultyDisk::new();
    write(&disk, 1, &rows, Sizes { rows: 100, index: 100, partition: 2 });
    let name = RunId(1).file_name();
    let expected: Vec<_> = rows.clone().into_iter().collect();
    let length = disk.content(&name).unwrap().len();
    let mut refused = 0;
    for bit in 0..8 * length {
        disk.flip_bit(&name, bit);
        let found = open(&disk, 1).and_then(|run| {
            let part = filter_part(&expected[17].0).unwrap_or_default();
            let one = run.seek_part(part, &expected[17].0)?.map(|row| row.value().to_vec());
            Ok((one, rest(run.seek(&[])?)?))
        });
        match found {
            Ok((one, all)) => assert_eq!((one.as_ref(), &all), (Some(&expected[17].1), &expected), "bit {bit}"),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::InvalidData);
                refused += 1;
            }
        }
        disk.flip_bit(&name, bit);
    }
    // All but filters of other partitions are read.
    assert!(refused > 8 * length * 2 / 3, "{refused} of {length} bytes");
    for size in 0..length {
        disk.truncate(&name, size);
        assert!(open(&disk, 1).is_err(), "with {size} of {length} bytes");
        write(&disk, 1, &rows, Sizes { rows: 100, index: 100, partition: 2 });
    }
}

#[test]
fn failed_reads_are_remembered_until_they_succeed() {
    let rows: Rows = (0..200).map(|n| (key(n, 0), vec![n; 100])).collect();
    let disk = FaultyDisk::new();
    write(&disk, 1, &rows, Sizes { rows: 1000, index: 1000, partition: 64 });
    let name = RunId(1).file_name();
    disk.flip_bit(&name, 80);
    let shared = RunsShared::new(1 << 20);
    let run = Arc::new(Run::open(&*disk.folder(), RunId(1), Arc::clone(&shared)).unwrap());
    assert!(run.seek(&key(0, 0)).is_err());
    assert_eq!(rest(run.seek(&key(100, 0)).unwrap()).unwrap().len(), 100);
    shared.failed.read_again();
    assert!(shared.failed.count() == 1 && shared.failed.error().is_some());
    disk.flip_bit(&name, 80);
    shared.failed.read_again();
    assert_eq!(shared.failed.error(), None);
    assert_eq!(rest(run.seek(&key(0, 0)).unwrap()).unwrap().len(), 200);
}

#[test]
fn a_read_that_would_have_to_wait_has_not_failed() {
    let rows: Rows = (0..200).map(|n| (key(n, 0), vec![n; 100])).collect();
    let disk = FaultyDisk::new();
    write(&disk, 1, &rows, Sizes { rows: 1000, index: 1000, partition: 64 });
    let shared = RunsShared::new(1 << 20);
    let run = Arc::new(Run::open(&*disk.folder(), RunId(1), Arc::clone(&shared)).unwrap());
    let find = || Ok::<_, io::Error>(run.seek(&key(7, 0))?.map(|row| row.value().to_vec()));
    assert!(without_waiting(find).is_none());
    assert_eq!((shared.failed.count(), shared.failed.error()), (0, None));
    // What has been read is in the cache.
    assert_eq!(find().unwrap(), Some(vec![7; 100]));
    assert_eq!(without_waiting(find).unwrap().unwrap(), Some(vec![7; 100]));
}
