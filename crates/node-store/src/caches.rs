//! Decoded objects that were read lately, bounded in bytes.

use node_core::block::{Body, SealedHeader};
use node_types::consensus::Receipt;
use node_types::{Bytes, H256, U256};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;

/// Objects by the hash of their block, or of themselves. What a hash names never changes, so nothing goes stale.
pub(crate) struct Caches {
    pub(crate) headers: ByHash<Arc<SealedHeader>>,
    pub(crate) bodies: ByHash<Arc<Body>>,
    pub(crate) receipts: ByHash<Arc<Vec<Receipt>>>,
    /// The hashes of a block's transactions.
    pub(crate) transactions: ByHash<Arc<[H256]>>,
    pub(crate) tips: ByHash<Arc<Vec<(U256, u64)>>>,
    pub(crate) code: ByHash<Bytes>,
}

impl Caches {
    /// Caches of so many bytes together.
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            headers: ByHash::new(bytes / 8),
            bodies: ByHash::new(bytes / 4),
            receipts: ByHash::new(bytes / 4),
            transactions: ByHash::new(bytes / 8),
            tips: ByHash::new(bytes / 8),
            code: ByHash::new(bytes / 8),
        }
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

impl Decoded for Arc<[H256]> {
    fn bytes(&self, _encoded: usize) -> usize {
        size_of_val(&**self)
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
