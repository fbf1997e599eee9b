//! Reading a folder of layout 1, which has a redb database in place of runs.

use super::file::{DATABASE, DatabaseFile};
use super::{Migrated, MigrationProgress, SOURCE};
use crate::codec::{Malformed, Reader};
use crate::error::StoreError;
use crate::files::{DiskFolder, Folder, LOCK_FILE, read_whole};
use crate::keys::{LogId, Table};
use crate::layout::Layout;
use crate::postings;
use crate::rows::PRESENT;
use crate::runs::{Run, RunId, RunWriter, RunsShared};
use crate::store::{Listed, Manifest, Meta, manifest_number};
use crate::trie;
use crate::values;
use crate::wal::{self, Sequence, Wal, WalOptions};
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_core::context::Context;
use node_core::trie::Reference;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Tables whose rows are keyed by block numbers. They are written to one run.
const NUMBERED: &[Table] = &[Table::Headers, Table::Bodies, Table::Receipts, Table::Changes, Table::Fees];

/// The tables of each other run.
const KEYED: [&[Table]; 9] = [
    &[Table::Numbers],
    &[Table::Transactions],
    &[Table::Accounts],
    &[Table::Storage],
    &[Table::Code],
    &[Table::Trie],
    &[Table::Postings],
    &[Table::SideBlocks],
    &[Table::Records],
];

/// See [`migrate`](super::migrate).
pub(super) fn migrate(
    from: &Path,
    to: &Path,
    context: &Context,
    progress: impl FnMut(MigrationProgress),
) -> Result<Migrated, BackendError> {
    if !from.join(DATABASE).exists() {
        return Err(StoreError::NotLayout1.into());
    }
    let [from, to] = [DiskFolder::open(from), DiskFolder::open(to)];
    let (from, to) = (from.map_err(StoreError::from)?, to.map_err(StoreError::from)?);
    migrate_in(Arc::new(from), Arc::new(to), context, progress)
}

/// Like [`migrate`], in any implementation of [`Folder`].
pub(crate) fn migrate_in(
    from: Arc<dyn Folder>,
    to: Arc<dyn Folder>,
    context: &Context,
    mut progress: impl FnMut(MigrationProgress),
) -> Result<Migrated, BackendError> {
    let left = to.list().map_err(StoreError::File)?;
    let is_manifest = |name: &String| manifest_number(name).is_some();
    let is_ours = |name: &String| {
        let is_of_store = RunId::of_file_name(name).is_some() || wal::is_log_file(name) || is_manifest(name);
        is_of_store || [LOCK_FILE, SOURCE].contains(&&**name)
    };
    // A chain without a source was not written by a migration.
    let has_chain = left.iter().any(is_manifest);
    if !left.iter().all(is_ours) || has_chain && !left.iter().any(|name| name == SOURCE) {
        return Err(StoreError::NotEmpty.into());
    }
    let file = DatabaseFile::open(&*from).map_err(StoreError::File)?;
    let database = Database::builder().set_cache_size(64 << 20).create_with_backend(file).map_err(redb)?;
    let old = database.begin_read().map_err(redb)?;
    let (meta, genesis_file) = read_meta(&old)?;
    Wal::check_presence(&*from).map_err(StoreError::from)?;
    let mut log_entries = 0;
    for entry in wal::read_only(Arc::clone(&from), meta.logged).map_err(StoreError::from)? {
        entry.map_err(StoreError::from)?;
        log_entries += 1;
    }
    let source = format!("{meta:?} and {log_entries} entries of the log");
    let mut continues = begin_or_continue(&*to, &left, source.as_bytes()).map_err(StoreError::File)?;
    if let Some(manifest) = Manifest::read(&*to)? {
        // The process that wrote it may have failed to make it durable.
        let again = Manifest { number: manifest.number + 1, ..manifest };
        again.write(&*to).map_err(StoreError::File)?;
        return Ok(Migrated { head: meta.head, rows: 0, log_entries });
    }
    let groups = [NUMBERED].into_iter().chain(KEYED);
    let mut of = 0;
    for table in groups.clone().flatten() {
        of += old.open_table(definition(*table)).map_err(redb)?.len().map_err(redb)?;
    }
    let shared = RunsShared::new(0);
    let (mut rows, mut runs) = (0, Vec::new());
    for (id, tables) in (1..).map(RunId).zip(groups) {
        let mut count = 0;
        for table in tables {
            count += old.open_table(definition(*table)).map_err(redb)?.len().map_err(redb)?;
        }
        if count == 0 {
            runs.push(None);
            continue;
        }
        // A run is durable if another one was begun after it.
        let is_durable = continues && left.iter().any(|name| RunId::of_file_name(name) > Some(id));
        let mut run = Run::open(&*to, id, Arc::clone(&shared));
        if run.is_err() || !is_durable {
            if continues {
                let later = left.iter().filter(|name| RunId::of_file_name(name) >= Some(id));
                remove(&*to, later).map_err(StoreError::File)?;
                continues = false;
            }
            let mut writer = RunWriter::create(&*to, id).map_err(StoreError::File)?;
            let done = rows;
            for table in tables {
                copy(&old, *table, &mut writer, &mut |written| {
                    context.check()?;
                    progress(MigrationProgress { rows: done + written, of });
                    Ok(())
                })?;
            }
            writer.finish(0..=meta.head.number).map_err(StoreError::File)?;
            run = Run::open(&*to, id, Arc::clone(&shared));
        }
        let run = run.map_err(StoreError::File)?;
        runs.push(Some(Listed { id, size: run.size(), limit: meta.head.number }));
        rows += count;
        progress(MigrationProgress { rows, of });
    }
    copy_log(from, &to, meta.logged)?;
    // The names of the runs must be durable before the manifest is written.
    to.sync().map_err(StoreError::File)?;
    let next_run = runs.len() as u64 + 1;
    let keyed = runs.split_off(1).into_iter().flatten().collect();
    let numbered = runs.into_iter().flatten().collect();
    let manifest = Manifest { number: 1, layout: Layout::V2, next_run, meta, genesis_file, numbered, keyed };
    manifest.write(&*to).map_err(StoreError::File)?;
    Ok(Migrated { head: meta.head, rows, log_entries })
}

/// Returns whether the folder has the remains of a migration of `source`. Otherwise, removes what is in it. Records
/// the source in both cases, because the process that did it before may have failed to make it durable.
fn begin_or_continue(to: &dyn Folder, left: &[String], source: &[u8]) -> io::Result<bool> {
    let noted = to.open(SOURCE).and_then(|file| read_whole(&*file, SOURCE, source.len() as u64));
    let continues = noted.is_ok_and(|noted| noted == source);
    let file = if continues {
        to.open(SOURCE)?
    } else {
        remove(to, left.iter().filter(|name| *name != LOCK_FILE))?;
        to.create(SOURCE)?
    };
    file.write_at(0, source)?;
    file.sync_data()?;
    to.sync()?;
    Ok(continues)
}

/// Removes files durably.
fn remove<'a>(folder: &dyn Folder, mut names: impl Iterator<Item = &'a String>) -> io::Result<()> {
    names.try_for_each(|name| folder.remove(name))?;
    folder.sync()
}

fn definition(table: Table) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(table.name())
}

fn redb(error: impl Into<redb::Error>) -> StoreError {
    StoreError::File(match error.into() {
        redb::Error::Io(error) => error,
        error => io::Error::other(error),
    })
}

fn read_meta(old: &ReadTransaction) -> Result<(Meta, Option<Vec<u8>>), StoreError> {
    let table = old.open_table(TableDefinition::<&str, &[u8]>::new("meta")).map_err(redb)?;
    let row = |name: &str| -> Result<Option<Vec<u8>>, StoreError> {
        Ok(table.get(name).map_err(redb)?.map(|value| value.value().to_vec()))
    };
    let layout = row("layout")?.ok_or(StoreError::NotLayout1)?;
    if layout != [1] {
        return Err(StoreError::NotLayout1);
    }
    let chain = row("chain")?.ok_or(Malformed("the table meta"))?;
    let mut reader = Reader::new(&chain, "the table meta");
    let meta = Meta {
        genesis: reader.h256()?,
        head: BlockRef { number: reader.varint()?, hash: reader.h256()? },
        earliest: reader.varint()?,
        logged: Sequence(reader.varint()?),
    };
    reader.finish()?;
    Ok((meta, row("genesis_file")?))
}

/// Writes the rows of a table. Calls `check` regularly with the total number of rows written so far.
fn copy(
    old: &ReadTransaction,
    table: Table,
    out: &mut RunWriter,
    check: &mut dyn FnMut(u64) -> Result<(), BackendError>,
) -> Result<(), BackendError> {
    let rows = old.open_table(definition(table)).map_err(redb)?;
    for (index, row) in rows.iter().map_err(redb)?.enumerate() {
        let (key, value) = row.map_err(redb)?;
        let (key, value) = match table {
            Table::Postings => ending_with_last(key.value(), value.value())?,
            // The keys of the rows that the block wrote follow.
            Table::Changes => {
                let mut reader = Reader::new(value.value(), "a row of changes");
                values::read_changes_row(&mut reader).map_err(StoreError::from)?;
                let rest = reader.remainder().len();
                (key.value().to_vec(), value.value()[..value.value().len() - rest].to_vec())
            }
            Table::Trie => {
                let row = row_of_trie(key.value(), value.value());
                (key.value().to_vec(), row.ok_or(StoreError::from(Malformed("a row of trie")))?)
            }
            Table::SideBlocks | Table::Records => (key.value().to_vec(), [&[PRESENT], value.value()].concat()),
            _ => (key.value().to_vec(), value.value().to_vec()),
        };
        out.add(&[&[table as u8], &key[..]].concat(), &value).map_err(StoreError::File)?;
        if index.is_multiple_of(4096) {
            check(out.count())?;
        }
    }
    Ok(())
}

/// Converts the row of a chunk of logs: in layout 1, the key ends with the first id, and the value has the difference
/// between each id and the next.
fn ending_with_last(key: &[u8], value: &[u8]) -> Result<(Vec<u8>, Vec<u8>), StoreError> {
    const WHAT: &str = "a row of postings";
    let (term, first) = key.split_last_chunk().ok_or(Malformed(WHAT))?;
    let mut last = u64::from_be_bytes(*first);
    let mut ids = vec![LogId(last)];
    let mut reader = Reader::new(value, WHAT);
    while !reader.is_empty() {
        last = last.checked_add(reader.varint()?).ok_or(Malformed(WHAT))?;
        ids.push(LogId(last));
    }
    Ok(([term, &last.to_be_bytes()].concat(), postings::encode(&ids)))
}

/// Converts the row of a trie node: in layout 1, references are RLP items, and the tag of a delta contains its age.
fn row_of_trie(key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    const EXTENDED: u8 = 3;
    const DELTA: u8 = 0x40;
    let (tag, mut rest) = value.split_first()?;
    if *tag < 2 {
        return Some(value.to_vec());
    }
    let mut out = Vec::with_capacity(value.len());
    if *tag == EXTENDED {
        // The length of a trie's id, the id, the number of nibbles.
        let nibbles = key.get(1 + usize::from(*key.first()?))?;
        let length = rest.first()?;
        let (extension, after) = rest.split_at_checked(1 + usize::from(length.div_ceil(2) - nibbles / 2))?;
        out.extend_from_slice(extension);
        rest = after;
    }
    let (mask, mut rest) = rest.split_first_chunk()?;
    let mut children = Vec::new();
    while !rest.is_empty() {
        children.push(Reference::split_from(&mut rest)?);
    }
    Some(trie::encode_children((*tag < DELTA).then_some(*tag), &out, u16::from_be_bytes(*mask), children.iter()))
}

/// Copies the entries of the log after `logged`.
fn copy_log(from: Arc<dyn Folder>, to: &Arc<dyn Folder>, logged: Sequence) -> Result<(), StoreError> {
    // Remains of an interrupted migration.
    for name in to.list()?.iter().filter(|name| wal::is_log_file(name)) {
        to.remove(name)?;
    }
    let log = Wal::open(Arc::clone(to), logged, WalOptions::default())?;
    for entry in wal::read_only(from, logged)? {
        log.append(&entry?.payload)?;
    }
    Ok(log.sync()?)
}
