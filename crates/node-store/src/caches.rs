//! Caches of decoded objects, bounded in bytes.

use crate::chain::NextState;
use crate::keys::Key;
use crate::rows::{SnapshotId, Value};
use node_core::backend::CacheUse;
use node_core::block::{BlockLogs, Body, RecoveredTransaction, SealedHeader};
use node_types::consensus::Receipt;
use node_types::{BlockNumber, Bytes, H256, U256};
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::hash::Hash;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The caches that all versions of a chain share. The keys of most caches are hashes of blocks or code, or positions
/// in a snapshot of the runs. The value of such a key never changes, so entries are never invalidated.
pub(crate) struct Caches {
    pub(crate) next: Mutex<NextState>,
    /// Statistics of `next` as of the last block, for readers that must not wait while a block is being added.
    pub(crate) next_usage: Mutex<[CacheUse; 2]>,
    pub(crate) hashes: BlockHashes,
    pub(crate) headers: ByHash<Arc<SealedHeader>>,
    pub(crate) bodies: ByHash<Arc<Body>>,
    pub(crate) receipts: ByHash<Arc<Vec<Receipt>>>,
    /// Logs of blocks that are in memory.
    pub(crate) new_logs: ByHash<BlockLogs>,
    /// Logs of blocks in a snapshot of the runs, by number, because many searches do not need the hash of a block.
    pub(crate) logs: Cached<(SnapshotId, BlockNumber), BlockLogs>,
    pub(crate) tips: ByHash<Arc<Vec<(U256, u64)>>>,
    pub(crate) code: ByHash<Bytes>,
    /// The newest row of an account or slot in a snapshot of the runs, with its block; `None` if there is no row. A
    /// read of the newest state would otherwise search all runs.
    pub(crate) newest: Cached<(SnapshotId, Key), Option<(BlockNumber, Value)>>,
    /// Accounts and slots of the base, as the values that rows would have. `None` if the chain has no base.
    pub(crate) base: Option<Cached<Key, Value>>,
}

impl Caches {
    /// Creates caches of `bytes` bytes in total.
    pub(crate) fn new(bytes: u64) -> Self {
        let of_next = bytes / 3;
        let bytes = bytes - of_next;
        let next = NextState::new(of_next as usize);
        Self {
            next_usage: Mutex::new(next.usage()),
            next: Mutex::new(next),
            // With the default size, this holds the hashes of 300,000 blocks.
            hashes: BlockHashes::new(bytes / 4),
            headers: Cached::new(bytes / 8),
            bodies: Cached::new(bytes / 16),
            receipts: Cached::new(bytes / 16),
            new_logs: Cached::new(bytes / 16),
            logs: Cached::new(bytes * 3 / 16),
            tips: Cached::new(bytes / 16),
            code: Cached::new(bytes / 16),
            newest: Cached::new(bytes / 8),
            base: None,
        }
    }

    /// Creates caches of `bytes` bytes in total for a chain with a base.
    pub(crate) fn with_base(bytes: u64) -> Self {
        let of_base = bytes / 8;
        Self { base: Some(Cached::new(of_base)), ..Self::new(bytes - of_base) }
    }

    pub(crate) fn usage(&self) -> impl Iterator<Item = CacheUse> {
        let Self { next: _, next_usage, hashes, headers, bodies, receipts, new_logs, logs, tips, code, newest, base } =
            self;
        let [nodes, accounts] = *next_usage.lock();
        let all = [
            nodes,
            accounts,
            hashes.usage("block_hashes"),
            headers.usage("headers"),
            bodies.usage("bodies"),
            receipts.usage("receipts"),
            new_logs.usage("new_logs"),
            logs.usage("logs"),
            tips.usage("tips"),
            code.usage("code"),
            newest.usage("newest_rows"),
        ];
        all.into_iter().chain(base.as_ref().map(|base| base.usage("base")))
    }
}

/// Block hashes of snapshots of the runs, in groups of consecutive blocks. A snapshot never changes, so entries are
/// never invalidated.
pub(crate) struct BlockHashes(Cache<(SnapshotId, BlockNumber), Arc<[H256]>>);

impl BlockHashes {
    /// Number of blocks in a group. Readers often need the hash of the next block as well.
    const RUN: BlockNumber = 8;

    /// Size of a group in memory, in bytes.
    const BYTES: usize = Self::RUN as usize * size_of::<H256>() + ENTRY;

    fn new(bytes: u64) -> Self {
        Self(Cache::new(bytes as usize / Self::BYTES))
    }

    fn usage(&self, name: &'static str) -> CacheUse {
        let Self(cache) = self;
        let bytes = |runs: u64| runs * Self::BYTES as u64;
        CacheUse {
            name,
            bytes: bytes(cache.weight()),
            capacity: bytes(cache.capacity()),
            hits: cache.hits(),
            misses: cache.misses(),
        }
    }

    /// Returns the hash of block `number` in the snapshot, or `None` if the snapshot ends before it. `read` returns
    /// the hashes of a range of blocks, up to the end of the snapshot.
    pub(crate) fn get<E>(
        &self,
        snapshot: SnapshotId,
        number: BlockNumber,
        read: impl FnOnce(RangeInclusive<BlockNumber>) -> Result<Arc<[H256]>, E>,
    ) -> Result<Option<H256>, E> {
        let (run, index) = (number / Self::RUN, (number % Self::RUN) as usize);
        if let Some(hashes) = self.0.get(&(snapshot, run)) {
            return Ok(hashes.get(index).copied());
        }
        let first = run * Self::RUN;
        let hashes = read(first..=first + Self::RUN - 1)?;
        let hash = hashes.get(index).copied();
        self.0.insert((snapshot, run), hashes);
        Ok(hash)
    }
}

/// A cache that counts the bytes of each value.
pub(crate) struct Cached<K, T>(Cache<K, (T, u32), Bytewise>);

/// Values by hash.
pub(crate) type ByHash<T> = Cached<H256, T>;

/// Bytes of an entry without its value.
const ENTRY: usize = 128;

#[derive(Clone)]
struct Bytewise;

impl<K, T> Weighter<K, (T, u32)> for Bytewise {
    fn weight(&self, _key: &K, (_, bytes): &(T, u32)) -> u64 {
        u64::from(*bytes)
    }
}

/// A cached value.
pub(crate) trait Decoded: Clone {
    /// Estimates the size in memory in bytes, given the length of the encoding.
    fn bytes(&self, encoded: usize) -> usize {
        2 * encoded
    }
}

impl Decoded for Arc<SealedHeader> {}
impl Decoded for Arc<Vec<(U256, u64)>> {}

impl Decoded for Arc<Body> {
    fn bytes(&self, encoded: usize) -> usize {
        encoded + self.transactions.len() * size_of::<RecoveredTransaction>()
    }
}

impl Decoded for Arc<Vec<Receipt>> {
    fn bytes(&self, encoded: usize) -> usize {
        // The encoding does not contain the zeros of bloom filters.
        2 * encoded + self.len() * size_of::<Receipt>()
    }
}

impl Decoded for BlockLogs {
    fn bytes(&self, _encoded: usize) -> usize {
        self.size()
    }
}

impl Decoded for Option<(BlockNumber, Value)> {
    fn bytes(&self, encoded: usize) -> usize {
        size_of::<(SnapshotId, Key)>() + encoded
    }
}

impl Decoded for Value {
    fn bytes(&self, encoded: usize) -> usize {
        size_of::<Key>() + encoded
    }
}

impl Decoded for Bytes {
    fn bytes(&self, encoded: usize) -> usize {
        encoded
    }
}

impl<K: Hash + Eq + Copy, T: Decoded> Cached<K, T> {
    fn new(bytes: u64) -> Self {
        Self(Cache::with_weighter((bytes / 1024) as usize, bytes, Bytewise))
    }

    fn usage(&self, name: &'static str) -> CacheUse {
        let Self(cache) = self;
        CacheUse { name, bytes: cache.weight(), capacity: cache.capacity(), hits: cache.hits(), misses: cache.misses() }
    }

    pub(crate) fn get(&self, key: K) -> Option<T> {
        self.0.get(&key).map(|(value, _)| value)
    }

    /// Inserts a value whose encoding has `encoded` bytes.
    pub(crate) fn insert(&self, key: K, value: T, encoded: usize) {
        let bytes = u32::try_from(value.bytes(encoded) + ENTRY).unwrap_or(u32::MAX);
        self.0.insert(key, (value, bytes));
    }

    /// Returns the value of `key`. If it is not cached, calls `read`, which returns it with the length of its
    /// encoding in bytes.
    pub(crate) fn get_or<E>(&self, key: K, read: impl FnOnce() -> Result<(T, usize), E>) -> Result<T, E> {
        if let Some(value) = self.get(key) {
            return Ok(value);
        }
        let (value, encoded) = read()?;
        self.insert(key, value.clone(), encoded);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::consensus::{Bloom, Log, ReceiptOutcome, TransactionType};
    use std::convert::Infallible;

    /// Receipts with a short encoding that need much memory.
    fn receipts() -> Arc<Vec<Receipt>> {
        let receipt = Receipt {
            transaction_type: TransactionType::Legacy,
            outcome: ReceiptOutcome::Success(true),
            cumulative_gas_used: 0,
            logs_bloom: Bloom::ZERO,
            logs: vec![Log::default()],
        };
        Arc::new(vec![receipt; 100])
    }

    #[test]
    fn caches_stay_within_their_bounds() {
        let capacity = 1 << 20;
        let cache = ByHash::new(capacity);
        for index in 0..1_000 {
            cache.insert(H256::from_low_u64_be(index), receipts(), crate::values::encode_receipts(&receipts()).len());
        }
        let kept = (0..1_000).filter(|index| cache.get(H256::from_low_u64_be(*index)).is_some()).count();
        let taken = (kept * 100 * size_of::<Receipt>()) as u64;
        assert!((capacity / 4..=capacity).contains(&taken), "{kept} kept, {taken} bytes");
    }

    #[test]
    fn reads_runs_of_hashes_once_up_to_the_end_of_the_snapshot() {
        let cache = BlockHashes::new(1 << 20);
        let hash = H256::from_low_u64_be;
        let end = BlockHashes::RUN + 3;
        let [older, newer] = [0, 1].map(SnapshotId::of_test);
        let mut reads = 0;
        let mut get = |snapshot, number| {
            let read = |range: RangeInclusive<BlockNumber>| {
                reads += 1;
                Ok::<_, Infallible>(range.take_while(|number| *number < end).map(hash).collect())
            };
            cache.get(snapshot, number, read).unwrap()
        };
        for number in 0..2 * BlockHashes::RUN {
            assert_eq!(get(older, number), (number < end).then(|| hash(number)), "block {number}");
        }
        get(newer, 0);
        assert_eq!(reads, 3);
    }
}
