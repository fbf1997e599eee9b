//! Decoded objects that were read lately, bounded in bytes.

use crate::rows::SnapshotId;
use node_core::block::{BlockLog, BlockLogs, Body, SealedHeader};
use node_types::consensus::Receipt;
use node_types::{BlockNumber, Bytes, H256, U256};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;

/// Objects by the hash of their block, or of themselves. What a hash names never changes, so nothing goes stale.
pub(crate) struct Caches {
    pub(crate) hashes: BlockHashes,
    pub(crate) headers: ByHash<Arc<SealedHeader>>,
    pub(crate) bodies: ByHash<Arc<Body>>,
    pub(crate) receipts: ByHash<Arc<Vec<Receipt>>>,
    pub(crate) logs: ByHash<Arc<BlockLogs>>,
    pub(crate) tips: ByHash<Arc<Vec<(U256, u64)>>>,
    pub(crate) code: ByHash<Bytes>,
}

impl Caches {
    /// Caches of so many bytes together.
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            hashes: BlockHashes::new(bytes / 16),
            headers: ByHash::new(bytes / 8),
            bodies: ByHash::new(bytes * 3 / 16),
            receipts: ByHash::new(bytes / 8),
            logs: ByHash::new(bytes / 4),
            tips: ByHash::new(bytes / 8),
            code: ByHash::new(bytes / 8),
        }
    }
}

/// Hashes of canonical blocks, by a snapshot of the database and the number of the block. What a snapshot holds never
/// changes, so nothing goes stale.
pub(crate) struct BlockHashes(Cache<(SnapshotId, BlockNumber), H256>);

impl BlockHashes {
    fn new(bytes: u64) -> Self {
        Self(Cache::new(bytes as usize / ENTRY))
    }

    /// The hash of the block `number` of a snapshot, which `read` gets if it is not here.
    pub(crate) fn get_or<E>(
        &self,
        snapshot: SnapshotId,
        number: BlockNumber,
        read: impl FnOnce() -> Result<H256, E>,
    ) -> Result<H256, E> {
        if let Some(hash) = self.0.get(&(snapshot, number)) {
            return Ok(hash);
        }
        let hash = read()?;
        self.0.insert((snapshot, number), hash);
        Ok(hash)
    }
}

/// Values by hash, each counted with the bytes it takes.
pub(crate) struct ByHash<T>(Cache<H256, (T, u32), Bytewise>);

/// Bytes that an entry takes beside its value.
const ENTRY: usize = 128;

#[derive(Clone)]
struct Bytewise;

impl<T> Weighter<H256, (T, u32)> for Bytewise {
    fn weight(&self, _key: &H256, (_, bytes): &(T, u32)) -> u64 {
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

impl<T: Decoded> ByHash<T> {
    fn new(bytes: u64) -> Self {
        Self(Cache::with_weighter((bytes / 1024) as usize, bytes, Bytewise))
    }

    pub(crate) fn get(&self, hash: H256) -> Option<T> {
        self.0.get(&hash).map(|(value, _)| value)
    }

    /// Keeps a value whose encoding has `encoded` bytes.
    pub(crate) fn insert(&self, hash: H256, value: T, encoded: usize) {
        let bytes = u32::try_from(value.bytes(encoded) + ENTRY).unwrap_or(u32::MAX);
        self.0.insert(hash, (value, bytes));
    }

    /// The value of `hash`, which `read` gets with the length of its encoding if it is not here.
    pub(crate) fn get_or<E>(&self, hash: H256, read: impl FnOnce() -> Result<(T, usize), E>) -> Result<T, E> {
        if let Some(value) = self.get(hash) {
            return Ok(value);
        }
        let (value, encoded) = read()?;
        self.insert(hash, value.clone(), encoded);
        Ok(value)
    }
}
