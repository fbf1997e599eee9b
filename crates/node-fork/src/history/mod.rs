//! The blocks before the first block of a fork.

mod absent;
mod ancestors;
mod encoding;
mod logs;
mod prefetch;
mod searched;
mod transactions;

pub(crate) use encoding::{check_block, check_receipts};
#[cfg(test)]
pub(crate) use encoding::{encode_block, encode_receipts};

use crate::base::Base;
use crate::contents::Kind;
use crate::error::{ForkError, Needed, storage};
use absent::Absent;
use encoding::{SizedBody, decode_block, decode_receipts};
use node_core::backend::{BackendError, CacheUse};
use node_core::block::{Body, ExecutedBlock, RecoveredTransaction, SealedHeader};
use node_core::crypto::{SenderRecovery, SignatureError};
use node_types::consensus::{Block, EMPTY_ROOT, Receipt, Transaction};
use node_types::wire::{Data, Quantity256};
use node_types::{Address, BlockNumber, Bytes, H256, U256};
use node_upstream::{HashedHeader, UpstreamError};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use searched::Searched;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The ancestors of the first block of a fork, which lie with the upstream.
///
/// Headers, bodies and receipts are verified against the hash of their block. Which hash belongs to a number is proven
/// where the state or the parents show it; see [`ancestors`].
pub(crate) struct History {
    base: Base,
    first: Arc<SealedHeader>,
    recovery: Arc<dyn SenderRecovery>,
    hashes: Cache<BlockNumber, H256>,
    /// With their sizes in bytes, by the hashes of their blocks.
    headers: Cache<H256, Arc<SealedHeader>>,
    bodies: Cache<H256, Kept<Body>, BySize>,
    receipts: Cache<H256, Kept<Vec<Receipt>>, BySize>,
    absent: Absent,
    searched: Searched,
    /// Whether the endpoints no longer have the state that the fork begins with.
    lacks_state: AtomicBool,
    /// The number of blocks of which logs are requested at once.
    span: AtomicU64,
}

#[derive(Debug)]
struct Kept<T> {
    value: Arc<T>,
    /// Its size in bytes when encoded.
    size: u64,
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), size: self.size }
    }
}

#[derive(Clone)]
struct BySize;

impl<T> Weighter<H256, Kept<T>> for BySize {
    fn weight(&self, _key: &H256, value: &Kept<T>) -> u64 {
        // Decoded, a block takes about twice as much memory.
        2 * value.size + 512
    }
}

impl History {
    /// Creates the history before `first`, which is the block of `base`.
    pub(crate) fn new(base: Base, first: Arc<SealedHeader>, recovery: Arc<dyn SenderRecovery>) -> Self {
        let bytes = base.options().history_bytes;
        Self {
            base,
            first,
            recovery,
            hashes: Cache::new((bytes / 8 / 96) as usize),
            headers: Cache::new((bytes / 8 / 1_024) as usize),
            bodies: Cache::with_weighter((bytes >> 16) as usize, bytes / 8 * 3, BySize),
            receipts: Cache::with_weighter((bytes >> 16) as usize, bytes / 8 * 3, BySize),
            absent: Absent::default(),
            searched: Searched::default(),
            lacks_state: AtomicBool::new(false),
            span: AtomicU64::new(logs::FIRST_SPAN),
        }
    }

    pub(crate) fn base(&self) -> &Base {
        &self.base
    }

    /// Returns the number of the first block of the fork.
    pub(crate) fn end(&self) -> BlockNumber {
        self.first.header.number
    }

    /// Returns the header of an ancestor.
    pub(crate) fn ancestor(&self, number: BlockNumber) -> Result<HashedHeader, BackendError> {
        let hash = self.hash(number)?;
        let header = self.plain_header(hash)?.filter(|header| header.header().number == number);
        header.ok_or_else(|| self.missing(Needed::Block(hash)))
    }

    /// Returns the error for a block that must exist.
    pub(crate) fn missing_block(&self, hash: H256) -> BackendError {
        self.missing(Needed::Block(hash))
    }

    /// Returns the error for something that must exist.
    fn missing(&self, needed: Needed) -> BackendError {
        match self.base.upstream() {
            None => ForkError::Offline { needed }.into(),
            Some(_) => ForkError::Missing(needed).into(),
        }
    }

    /// Returns the header of a block, or `None` if the upstream does not have it, or it is not before the fork.
    pub(crate) fn header(&self, hash: H256) -> Result<Option<Arc<SealedHeader>>, BackendError> {
        if let Some(header) = self.headers.get(&hash) {
            return Ok(Some(header));
        }
        let Some(header) = self.block_before(hash)? else { return Ok(None) };
        let size = self.sized_body(&header)?.size;
        let total_difficulty = self.total_difficulty(&header)?;
        Ok(Some(self.keep_sealed(&header, total_difficulty, size)))
    }

    fn keep_sealed(&self, header: &HashedHeader, total_difficulty: U256, size: u64) -> Arc<SealedHeader> {
        let hash = header.hash();
        let sealed = Arc::new(SealedHeader { hash, header: header.header().clone(), total_difficulty, size });
        self.headers.insert(hash, Arc::clone(&sealed));
        sealed
    }

    /// Returns the body of a block, or `None` if there is no such block before the fork.
    pub(crate) fn body(&self, hash: H256) -> Result<Option<Arc<Body>>, BackendError> {
        if let Some(body) = self.bodies.get(&hash) {
            return Ok(Some(body.value));
        }
        let Some(header) = self.block_before(hash)? else { return Ok(None) };
        Ok(Some(self.sized_body(&header)?.value))
    }

    /// Returns the receipts of a block, or `None` if there is no such block before the fork.
    pub(crate) fn receipts(&self, hash: H256) -> Result<Option<Arc<Vec<Receipt>>>, BackendError> {
        if let Some(receipts) = self.receipts.get(&hash) {
            return Ok(Some(receipts.value));
        }
        match self.block_before(hash)? {
            Some(header) => self.receipts_of(&header).map(Some),
            None => Ok(None),
        }
    }

    fn receipts_of(&self, header: &HashedHeader) -> Result<Arc<Vec<Receipt>>, BackendError> {
        let hash = header.hash();
        let known = self.base.contents().get(Kind::Receipts, hash).map_err(storage)?;
        let bytes = match known {
            Some(bytes) => bytes,
            None if header.header().receipts_root == EMPTY_ROOT => Bytes::from(encoding::encode_receipts(&[])),
            None => {
                let body = self.sized_body(header)?.value;
                let transactions: Vec<Transaction> =
                    body.transactions.iter().map(|recovered| recovered.transaction.clone()).collect();
                let receipts = self.base.ask(
                    1,
                    || Needed::Receipts(hash),
                    |upstream, context| upstream.receipts(context, header, &transactions),
                )?;
                return Ok(self.keep_receipts(hash, receipts));
            }
        };
        let receipts = Arc::new(decode_receipts(&bytes).ok_or_else(|| storage(Undecodable))?);
        self.receipts.insert(hash, Kept { value: Arc::clone(&receipts), size: bytes.len() as u64 });
        Ok(receipts)
    }

    /// Keeps receipts that were fetched.
    fn keep_receipts(&self, hash: H256, receipts: Vec<Receipt>) -> Arc<Vec<Receipt>> {
        let (bytes, receipts) = (Bytes::from(encoding::encode_receipts(&receipts)), Arc::new(receipts));
        self.receipts.insert(hash, Kept { value: Arc::clone(&receipts), size: bytes.len() as u64 });
        self.base.contents().add(vec![(Kind::Receipts, hash, bytes)]);
        receipts
    }

    /// Returns the statistics of the caches.
    pub(crate) fn caches(&self) -> [CacheUse; 2] {
        let usage = |name, bytes, capacity, hits, misses| CacheUse { name, bytes, capacity, hits, misses };
        let (bodies, receipts) = (&self.bodies, &self.receipts);
        [
            usage("fetched_bodies", bodies.weight(), bodies.capacity(), bodies.hits(), bodies.misses()),
            usage("fetched_receipts", receipts.weight(), receipts.capacity(), receipts.hits(), receipts.misses()),
        ]
    }

    /// Returns a header without what does not follow from its hash. `None` if the upstream does not have the block.
    fn plain_header(&self, hash: H256) -> Result<Option<HashedHeader>, BackendError> {
        if let Some(bytes) = self.base.contents().get(Kind::Header, hash).map_err(storage)? {
            return Ok(Some(HashedHeader::new(rlp::decode(&bytes).map_err(storage)?)));
        }
        if self.absent.contains(hash) || self.base.is_probe(hash) {
            return Ok(None);
        }
        let read = self.base.ask(
            1,
            || Needed::Block(hash),
            |upstream, context| optional(upstream.header(context, hash.into())),
        )?;
        match &read {
            Some(header) => self.keep_headers(std::slice::from_ref(header)),
            None => self.absent.insert(hash),
        }
        Ok(read)
    }

    /// Returns the header of a block that is before the fork, whether canonical or not.
    fn block_before(&self, hash: H256) -> Result<Option<HashedHeader>, BackendError> {
        Ok(self.plain_header(hash)?.filter(|header| header.header().number < self.end()))
    }

    fn keep_headers(&self, headers: &[HashedHeader]) {
        let content =
            |header: &HashedHeader| (Kind::Header, header.hash(), rlp::encode(header.header()).to_vec().into());
        self.base.contents().add(headers.iter().map(content).collect());
    }

    fn sized_body(&self, header: &HashedHeader) -> Result<Kept<Body>, BackendError> {
        let hash = header.hash();
        if let Some(body) = self.bodies.get(&hash) {
            return Ok(body);
        }
        let known = self.base.contents().get(Kind::Block, hash).map_err(storage)?;
        let SizedBody { body, size } = match known {
            Some(bytes) => decode_block(&bytes).map_err(storage)?.1,
            None if header.is_whole_block() => {
                let body =
                    Body { withdrawals: header.header().withdrawals_root.map(|_| Vec::new()), ..Body::default() };
                SizedBody { size: body.with_header(header.header()).encoded_len() as u64, body }
            }
            None => {
                let block =
                    self.base.ask(1, || Needed::Block(hash), |upstream, context| upstream.block(context, header))?;
                return self.keep_block(hash, block);
            }
        };
        let sized = Kept { value: Arc::new(body), size };
        self.bodies.insert(hash, sized.clone());
        Ok(sized)
    }

    /// Keeps a block that was fetched.
    fn keep_block(&self, hash: H256, block: Block) -> Result<Kept<Body>, BackendError> {
        let (header, size) = (block.header.clone(), block.encoded_len() as u64);
        let body = self.recover(block)?;
        self.base.contents().add(vec![(Kind::Block, hash, encoding::encode_block(&header, &body).into())]);
        let sized = Kept { value: Arc::new(body), size };
        self.bodies.insert(hash, sized.clone());
        Ok(sized)
    }

    fn recover(&self, block: Block) -> Result<Body, BackendError> {
        let Block { header: _, transactions, ommers, withdrawals } = block;
        let recover = |transaction: Transaction| {
            let sender = self.sender(&transaction).map_err(storage)?;
            let hash = transaction.hash();
            Ok(RecoveredTransaction { transaction, hash, sender })
        };
        let transactions = transactions.into_iter().map(recover).collect::<Result<_, BackendError>>()?;
        Ok(Body { transactions, ommers, withdrawals })
    }

    /// Returns the sender of a transaction. On development chains, it may have no signature, but name its sender.
    fn sender(&self, transaction: &Transaction) -> Result<Address, SignatureError> {
        let named = Address::from_slice(&transaction.signature.r.to_big_endian()[12..]);
        let impersonating =
            RecoveredTransaction { hash: H256::zero(), transaction: transaction.clone(), sender: named };
        if impersonating.is_impersonating() { Ok(named) } else { self.recovery.sender(transaction) }
    }

    /// Returns the total difficulty of an ancestor. After the merge it is that of the first block of the fork, before it
    /// is what an endpoint claims, or zero if none does.
    fn total_difficulty(&self, header: &HashedHeader) -> Result<U256, BackendError> {
        if self.is_merged(header) {
            return Ok(self.first.total_difficulty);
        }
        self.claimed_difficulty(header.hash())
    }

    /// Returns whether the total difficulty of a block is that of the first block of the fork.
    fn is_merged(&self, header: &HashedHeader) -> bool {
        header.header().difficulty.is_zero() && self.first.header.difficulty.is_zero()
    }

    fn claimed_difficulty(&self, hash: H256) -> Result<U256, BackendError> {
        if self.base.upstream().is_none() {
            let claimed = self.base.contents().get(Kind::ClaimedDifficulty, hash).map_err(storage)?;
            let claimed = claimed.ok_or_else(|| self.missing(Needed::Block(hash)))?;
            return Ok(U256::from_big_endian(claimed.get(..32).unwrap_or_default()));
        }
        // There is one result for each hash.
        Ok(self.ask_difficulties(&[hash])?.into_iter().next().unwrap_or_default())
    }

    /// Asks for the total difficulties of blocks, and keeps them.
    fn ask_difficulties(&self, hashes: &[H256]) -> Result<Vec<U256>, BackendError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Claim {
            total_difficulty: Option<Quantity256>,
        }

        let params = hashes.iter().map(|hash| raw(format!("[\"{}\",false]", Data(*hash))));
        let params = params.collect::<Result<Vec<_>, _>>()?;
        let claims = self.base.ask(
            hashes.len(),
            || Needed::Block(hashes.first().copied().unwrap_or_default()),
            |upstream, context| {
                let claims = upstream.forward_all(context, "eth_getBlockByHash", &params);
                claims.into_iter().collect::<Result<Vec<_>, _>>()
            },
        )?;
        let claimed = |claim: &Arc<RawValue>| {
            let claim: Option<Claim> = serde_json::from_str(claim.get()).ok();
            claim.and_then(|claim| claim.total_difficulty).map_or(U256::zero(), |claimed| *claimed)
        };
        let claims: Vec<U256> = claims.iter().map(claimed).collect();
        let content = |(hash, claim): (&H256, &U256)| {
            (Kind::ClaimedDifficulty, *hash, Bytes::from(claim.to_big_endian().to_vec()))
        };
        self.base.contents().add(hashes.iter().zip(&claims).map(content).collect());
        Ok(claims)
    }
}

/// Reads the block of a state, with which a fork begins. Its changes are empty. `recovery` recovers the senders of its
/// transactions.
///
/// Its total difficulty is zero after the merge, and before it the word of an endpoint.
///
/// # Errors
/// [`BackendError::Upstream`], and failures of the folder.
pub fn first_block(base: &Base, recovery: Arc<dyn SenderRecovery>) -> Result<ExecutedBlock, BackendError> {
    let header = base.block();
    let (hash, fields) = (header.hash(), header.header().clone());
    let sealed =
        |total_difficulty, size| Arc::new(SealedHeader { hash, header: fields.clone(), total_difficulty, size });
    let history = History::new(base.clone(), sealed(U256::zero(), 0), recovery);
    history.keep_headers(std::slice::from_ref(header));
    let Kept { value: body, size } = history.sized_body(header)?;
    let receipts = history.receipts_of(header)?;
    let is_merged = fields.difficulty.is_zero();
    let total_difficulty = if is_merged { U256::zero() } else { history.claimed_difficulty(hash)? };
    Ok(ExecutedBlock { header: sealed(total_difficulty, size), body, receipts, changes: Arc::default() })
}

/// Content with a right checksum that is not what it should be, which only a program of another version can have
/// written.
#[derive(Debug, thiserror::Error)]
#[error("what was fetched cannot be decoded")]
struct Undecodable;

/// Converts the absence of something to `None`.
fn optional<T>(read: Result<T, UpstreamError>) -> Result<Option<T>, UpstreamError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(UpstreamError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn raw(params: String) -> Result<Box<RawValue>, BackendError> {
    RawValue::from_string(params).map_err(storage)
}
