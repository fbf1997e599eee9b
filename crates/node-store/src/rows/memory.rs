//! Rows of the newest blocks, in memory.

use crate::keys::{Key, LogId, Suffix};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use node_types::BlockNumber;
use parking_lot::RwLock;
use quick_cache::DefaultHashBuilder;
use std::array;
use std::hash::BuildHasher;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of a value: a part of a buffer, which rows of the same block share, so that they are allocated and freed
/// together.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    buffer: Arc<[u8]>,
    start: u32,
    end: u32,
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.start as usize..self.end as usize]
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self { start: 0, end: bytes.len() as u32, buffer: bytes.into() }
    }
}

#[derive(Default)]
pub(crate) struct BlockRows {
    rows: Vec<(Key, u64, Value)>,
    /// Rows whose values are in `values`: key, version and end of the value. A value begins where the one before ends.
    open: Vec<(Key, u64, u32)>,
    values: Vec<u8>,
}

impl BlockRows {
    /// Size at which a buffer is full. Its last value can make it longer.
    const BUFFER: usize = 1 << 20;

    /// Adds a row. In tables without versions, the version is the number of the block.
    pub(crate) fn add(&mut self, key: Key, version: u64, value: &[u8]) {
        if self.values.len() >= Self::BUFFER {
            self.seal();
        }
        self.values.extend_from_slice(value);
        self.open.push((key, version, self.values.len() as u32));
    }

    fn seal(&mut self) {
        let buffer: Arc<[u8]> = self.values.as_slice().into();
        self.values.clear();
        let mut start = 0;
        self.rows.extend(self.open.drain(..).map(|(key, version, end)| {
            let value = Value { buffer: Arc::clone(&buffer), start, end };
            start = end;
            (key, version, value)
        }));
    }
}

/// Number of tables among which the rows of a generation are distributed, so that readers rarely wait for the writer.
const SHARDS: usize = 16;

type Shard = HashTable<(Key, Versions)>;

/// Rows of consecutive blocks, in memory. One thread adds blocks while others read.
///
/// Every row has a version that determines its block. Readers see only rows up to the head of their view. Rows are
/// never removed; [`Generation::up_to`] creates a generation without the rows of later blocks.
#[derive(Default)]
pub(crate) struct Generation {
    shards: [RwLock<Shard>; SHARDS],
    hasher: DefaultHashBuilder,
    count: AtomicUsize,
}

/// The rows with one prefix, ascending by version. Most prefixes have one row.
#[derive(Clone)]
enum Versions {
    One((u64, Value)),
    Many(Vec<(u64, Value)>),
}

impl Generation {
    /// Creates an empty generation with capacity for as many keys as this one has.
    pub(crate) fn next(&self) -> Self {
        let shards = array::from_fn(|index| RwLock::new(Shard::with_capacity(self.shards[index].read().len())));
        Self { shards, hasher: self.hasher.clone(), count: AtomicUsize::new(0) }
    }

    /// Returns the number of rows.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Adds rows. Their versions must be above those of the existing rows of their keys.
    pub(crate) fn add(&self, mut rows: BlockRows) {
        rows.seal();
        self.count.fetch_add(rows.rows.len(), Ordering::Relaxed);
        // Each table is locked once, so that the processor waits for several rows of it at a time.
        let mut by_shard: [Vec<_>; SHARDS] = Default::default();
        for (key, version, value) in rows.rows {
            let hash = self.hasher.hash_one(key);
            by_shard[shard_of(hash)].push((hash, key, version, value));
        }
        for (shard, rows) in self.shards.iter().zip(by_shard) {
            if !rows.is_empty() {
                let shard = &mut *shard.write();
                rows.into_iter().for_each(|(hash, key, version, value)| self.put(shard, hash, key, version, value));
            }
        }
    }

    fn put(&self, shard: &mut Shard, hash: u64, key: Key, version: u64, value: Value) {
        match shard.entry(hash, |(other, _)| *other == key, |(other, _)| self.hasher.hash_one(other)) {
            Entry::Occupied(mut entry) => entry.get_mut().1.push(version, value),
            Entry::Vacant(entry) => drop(entry.insert((key, Versions::One((version, value))))),
        }
    }

    /// Returns the result of `read` for the rows of `key`, or `None` if there are none.
    fn read<T>(&self, key: &Key, read: impl FnOnce(&Versions) -> T) -> Option<T> {
        let hash = self.hasher.hash_one(key);
        let shard = self.shards[shard_of(hash)].read();
        shard.find(hash, |(other, _)| other == key).map(|(_, versions)| read(versions))
    }

    /// Returns a generation with the rows of blocks up to and including `block`.
    pub(crate) fn up_to(&self, block: BlockNumber) -> Self {
        let kept = self.next();
        for (from, to) in self.shards.iter().zip(&kept.shards) {
            let mut to = to.write();
            for (key, versions) in from.read().iter() {
                let rows = versions.up_to(last_version_of(key, block));
                kept.count.fetch_add(rows.len(), Ordering::Relaxed);
                let rows = match rows {
                    [] => continue,
                    [row] => Versions::One(row.clone()),
                    rows => Versions::Many(rows.to_vec()),
                };
                let hash_of = |(key, _): &(Key, Versions)| self.hasher.hash_one(key);
                to.insert_unique(self.hasher.hash_one(key), (*key, rows), hash_of);
            }
        }
        kept
    }

    /// Returns the newest row of `key` with this version or a lower one.
    pub(crate) fn newest(&self, key: &Key, version: u64) -> Option<(u64, Value)> {
        self.read(key, |versions| versions.up_to(version).last().cloned())?
    }

    /// Visits the rows of `key` with this version or a lower one, the newest first. `visit` must not use this
    /// generation, or it may deadlock.
    pub(crate) fn newest_first<E>(
        &self,
        key: &Key,
        version: u64,
        mut visit: impl FnMut(u64, &[u8]) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        let visited = self.read(key, |versions| {
            for (version, value) in versions.up_to(version).iter().rev() {
                if visit(*version, value)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        });
        visited.unwrap_or(Ok(ControlFlow::Continue(())))
    }

    /// Returns the first row of `key` with this version or a higher one.
    pub(crate) fn oldest_from(&self, key: &Key, version: u64) -> Option<(u64, Value)> {
        self.read(key, |versions| {
            let below = version.checked_sub(1).map_or(0, |below| versions.up_to(below).len());
            versions.as_slice().get(below).cloned()
        })?
    }

    /// Visits all rows. Those of one key are visited together, ascending by version.
    pub(crate) fn for_each<E>(&self, mut visit: impl FnMut(&Key, &[(u64, Value)]) -> Result<(), E>) -> Result<(), E> {
        for shard in &self.shards {
            shard.read().iter().try_for_each(|(key, versions)| visit(key, versions.as_slice()))?;
        }
        Ok(())
    }
}

/// Returns the table of the rows whose keys have this hash. The tables themselves use its other bits.
fn shard_of(hash: u64) -> usize {
    (hash >> 32) as usize % SHARDS
}

impl Versions {
    fn as_slice(&self) -> &[(u64, Value)] {
        match self {
            Self::One(row) => std::slice::from_ref(row),
            Self::Many(rows) => rows,
        }
    }

    fn push(&mut self, version: u64, value: Value) {
        debug_assert!(self.as_slice().last().is_none_or(|(last, _)| *last < version));
        match self {
            Self::One(first) => *self = Self::Many(vec![first.clone(), (version, value)]),
            Self::Many(rows) => rows.push((version, value)),
        }
    }

    /// Returns the rows with this version or a lower one.
    fn up_to(&self, version: u64) -> &[(u64, Value)] {
        let rows = self.as_slice();
        // Most reads are of the newest state.
        if rows.last().is_some_and(|(last, _)| *last <= version) {
            return rows;
        }
        &rows[..rows.partition_point(|(own, _)| *own <= version)]
    }
}

/// Returns the highest version that a row of `key` from `block` can have.
fn last_version_of(key: &Key, block: BlockNumber) -> u64 {
    match key.table().suffix() {
        Suffix::Log => LogId::first_of(block + 1).0 - 1,
        Suffix::Block | Suffix::None => block,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Table;
    use node_types::H256;
    use std::convert::Infallible;

    fn add(generation: &Generation, key: Key, version: u64, value: &[u8]) {
        let mut rows = BlockRows::default();
        rows.add(key, version, value);
        generation.add(rows);
    }

    #[test]
    fn finds_rows_by_version() {
        let key = Key::of_hash(Table::Accounts, H256::repeat_byte(1));
        for versions in [&[3][..], &[3, 5], &[3, 5, 9]] {
            let rows = Generation::default();
            versions.iter().for_each(|version| add(&rows, key, *version, &[*version as u8]));
            for at in 0..12 {
                let up_to: Vec<_> = versions.iter().rev().copied().filter(|version| *version <= at).collect();
                let newest = rows.newest(&key, at).map(|(version, value)| (version, value[0]));
                assert_eq!(newest, up_to.first().map(|version| (*version, *version as u8)), "{versions:?} at {at}");
                let found = |rows: &Generation, at| {
                    let mut found = Vec::new();
                    let visited = rows.newest_first(&key, at, |version, _| {
                        found.push(version);
                        Ok::<_, Infallible>(ControlFlow::Continue(()))
                    });
                    assert!(visited.is_ok_and(|flow| flow.is_continue()));
                    found
                };
                assert_eq!(found(&rows, at), up_to, "{versions:?} at {at}");
                let next = versions.iter().copied().find(|version| *version >= at);
                assert_eq!(rows.oldest_from(&key, at).map(|(version, _)| version), next, "{versions:?} from {at}");

                let kept = rows.up_to(at);
                assert_eq!(found(&kept, u64::MAX), up_to, "{versions:?} up to {at}");
                assert_eq!((kept.count(), rows.count()), (up_to.len(), versions.len()));
            }
        }
    }

    #[test]
    fn finds_logs_by_the_block_in_their_id() {
        let key = Key::of_term(crate::keys::Term::Any);
        let rows = Generation::default();
        let ids = [LogId::first_of(4), LogId::first_of(5), LogId(LogId::first_of(6).0 - 1), LogId::first_of(6)];
        ids.iter().for_each(|id| add(&rows, key, id.0, &[]));
        assert_eq!([3, 4, 5, 6].map(|block| rows.up_to(block).count()), [0, 1, 3, 4]);
    }
}
