//! Decoded objects that were read lately, bounded in bytes.

use crate::rows::SnapshotId;
use node_core::block::{BlockLog, BlockLogs, Body, SealedHeader};
use node_core::caches::CacheUse;
use node_types::consensus::Receipt;
use node_types::{BlockNumber, Bytes, H256, U256};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::hash::Hash;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Objects by the hash of their block, or of themselves, or by their place in a snapshot of the database. What a hash names
/// and a snapshot holds never changes, so nothing goes stale.
pub(crate) struct Caches {
    pub(crate) hashes: BlockHashes,
    pub(crate) headers: ByHash<Arc<SealedHeader>>,
    pub(crate) bodies: ByHash<Arc<Body>>,
    pub(crate) receipts: ByHash<Arc<Vec<Receipt>>>,
    /// Of blocks in memory.
    pub(crate) new_logs: ByHash<Arc<BlockLogs>>,
    /// Of blocks in a snapshot of the database: found without their hashes, which many a search has no other use for.
    pub(crate) logs: Cached<(SnapshotId, BlockNumber), Arc<BlockLogs>>,
    pub(crate) tips: ByHash<Arc<Vec<(U256, u64)>>>,
    pub(crate) code: ByHash<Bytes>,
}

impl Caches {
    /// Caches of so many bytes together.
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            // At the default size, those of 300,000 blocks.
            hashes: BlockHashes::new(bytes / 4),
            headers: Cached::new(bytes / 8),
            bodies: Cached::new(bytes / 8),
            receipts: Cached::new(bytes / 8),
            new_logs: Cached::new(bytes / 16),
            logs: Cached::new(bytes * 3 / 16),
            tips: Cached::new(bytes / 16),
            code: Cached::new(bytes / 16),
        }
    }

    /// What each holds.
    pub(crate) fn usage(&self) -> [CacheUse; 8] {
        let Self { hashes, headers, bodies, receipts, new_logs, logs, tips, code } = self;
        [
            hashes.usage("block_hashes"),
            headers.usage("headers"),
            bodies.usage("bodies"),
            receipts.usage("receipts"),
            new_logs.usage("new_logs"),
            logs.usage("logs"),
            tips.usage("tips"),
            code.usage("code"),
        ]
    }
}

/// Block hashes of a snapshot of the database, in runs of consecutive blocks. What a snapshot holds never changes, so
/// nothing goes stale.
pub(crate) struct BlockHashes(Cache<(SnapshotId, BlockNumber), Arc<[H256]>>);

impl BlockHashes {
    /// Blocks of a run: whoever asks for one often asks for the next.
    const RUN: BlockNumber = 8;

    /// Bytes that a run takes.
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

    /// The hash that the snapshot has for the block `number`, if it has one; `read` gets those of a range of blocks, as
    /// many as there are.
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

/// Values, each counted with the bytes it takes.
pub(crate) struct Cached<K, T>(Cache<K, (T, u32), Bytewise>);

/// Values by hash.
pub(crate) type ByHash<T> = Cached<H256, T>;

/// Bytes that an entry takes beside its value.
const ENTRY: usize = 128;

#[derive(Clone)]
struct Bytewise;

impl<K, T> Weighter<K, (T, u32)> for Bytewise {
    fn weight(&self, _key: &K, (_, bytes): &(T, u32)) -> u64 {
        u64::from(*bytes)
    }
}

/// What is kept.
pub(crate) trait Decoded: Clone {
    /// About how many bytes it takes, if its encoding has `encoded`.
    fn bytes(&self, encoded: usize) -> usize {
        2 * encoded
    }
}

impl Decoded for Arc<SealedHeader> {}
impl Decoded for Arc<Body> {}
impl Decoded for Arc<Vec<(U256, u64)>> {}

impl Decoded for Arc<Vec<Receipt>> {
    fn bytes(&self, encoded: usize) -> usize {
        // Zeros of bloom filters are not stored.
        2 * encoded + self.len() * size_of::<Receipt>()
    }
}

impl Decoded for Arc<BlockLogs> {
    fn bytes(&self, _encoded: usize) -> usize {
        let of_log = |log: &BlockLog| size_of::<BlockLog>() + size_of_val(&*log.log.topics) + log.log.data.len();
        self.logs.iter().map(of_log).sum()
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

    /// Keeps a value whose encoding has `encoded` bytes.
    pub(crate) fn insert(&self, key: K, value: T, encoded: usize) {
        let bytes = u32::try_from(value.bytes(encoded) + ENTRY).unwrap_or(u32::MAX);
        self.0.insert(key, (value, bytes));
    }

    /// The value of `key`, which `read` gets with the length of its encoding if it is not here.
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

    /// Receipts that take many bytes decoded and few encoded.
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
    fn what_is_kept_is_bounded_in_bytes() {
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
    fn runs_of_hashes_are_read_once_and_end_where_the_snapshot_does() {
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
