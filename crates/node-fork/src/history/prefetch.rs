//! Fetching several blocks together, so that they are known when they are read.

use super::History;
use crate::contents::Kind;
use crate::error::{Needed, storage};
use node_core::backend::BackendError;
use node_core::waiting;
use node_types::consensus::{EMPTY_ROOT, Transaction};
use node_types::{BlockId, BlockNumber, H256};
use node_upstream::{HashedHeader, UpstreamError};
use parking_lot::Mutex;
use std::thread;

/// Maximum number of blocks whose headers are fetched together.
const MAX_BLOCKS: usize = 256;

/// Maximum estimated length of the blocks and receipts that are fetched together, in bytes.
const MAX_BYTES: usize = 32 << 20;

/// Number of threads that recover the senders of transactions.
const THREADS: usize = 8;

impl History {
    /// Fetches what is not known of ancestors: first the headers, then bodies and receipts together. Returns to how many of the
    /// blocks, from the first one on, this applies: at least one, if there are any. Of the others, only headers may be known.
    ///
    /// What an endpoint does not have or gets wrong is left to those who read it.
    ///
    /// # Errors
    /// If the upstream is unavailable.
    pub(crate) fn prefetch(&self, numbers: &[BlockNumber]) -> Result<usize, BackendError> {
        let numbers = &numbers[..numbers.len().min(MAX_BLOCKS)];
        if numbers.len() < 2 || self.base.upstream().is_none() || !waiting::is_allowed() {
            return Ok(numbers.len());
        }
        self.prefetch_hashes(numbers)?;
        let hashes: Vec<_> = numbers.iter().map(|number| self.hashes.get(number)).collect();
        self.prefetch_headers(&hashes.iter().flatten().copied().collect::<Vec<_>>())?;
        let (mut headers, mut bytes, mut count) = (Vec::new(), 0usize, 0);
        for hash in hashes {
            if hash.is_some_and(|hash| self.has_all_of(hash)) {
                count += 1;
                continue;
            }
            let known = match hash {
                Some(hash) => self.base.contents().get(Kind::Header, hash).map_err(storage)?,
                None => None,
            };
            if let Some(encoded) = known {
                let header = HashedHeader::new(rlp::decode(&encoded).map_err(storage)?);
                let parts = usize::from(self.lacks_body(&header)) + usize::from(self.lacks_receipts(&header));
                bytes = bytes.saturating_add(parts * header.estimated_length());
                if bytes > MAX_BYTES && count > 0 {
                    break;
                }
                headers.push(header);
            }
            count += 1;
        }
        self.prefetch_parts(&headers)?;
        self.prefetch_difficulties(&headers)?;
        Ok(count)
    }

    /// Returns whether everything of a block is in memory.
    fn has_all_of(&self, hash: H256) -> bool {
        self.headers.peek(&hash).is_some() && self.bodies.peek(&hash).is_some() && self.receipts.peek(&hash).is_some()
    }

    fn lacks_body(&self, header: &HashedHeader) -> bool {
        let hash = header.hash();
        !header.is_whole_block() && self.bodies.peek(&hash).is_none() && !self.base.contents().has(Kind::Block, hash)
    }

    fn lacks_receipts(&self, header: &HashedHeader) -> bool {
        let (hash, root) = (header.hash(), header.header().receipts_root);
        root != EMPTY_ROOT && self.receipts.peek(&hash).is_none() && !self.base.contents().has(Kind::Receipts, hash)
    }

    fn prefetch_headers(&self, hashes: &[H256]) -> Result<(), BackendError> {
        let lacks = |hash: &&H256| !self.base.contents().has(Kind::Header, **hash) && !self.absent.contains(**hash);
        let unknown: Vec<H256> = hashes.iter().filter(lacks).copied().collect();
        let Some(first) = unknown.first().copied() else { return Ok(()) };
        let blocks: Vec<_> = unknown.into_iter().map(BlockId::from).collect();
        let headers = self.ask_headers(&blocks, || Needed::Block(first))?;
        self.keep_headers(&headers.into_iter().filter_map(Result::ok).collect::<Vec<_>>());
        Ok(())
    }

    /// Asks for the headers of blocks together. What an endpoint does not have or gets wrong is an error of its own.
    pub(super) fn ask_headers(
        &self,
        blocks: &[BlockId],
        needed: impl Fn() -> Needed,
    ) -> Result<Vec<Result<HashedHeader, UpstreamError>>, BackendError> {
        self.base.ask(blocks.len(), needed, |upstream, context| available(upstream.headers(context, blocks)))
    }

    /// Fetches bodies and receipts.
    fn prefetch_parts(&self, headers: &[HashedHeader]) -> Result<(), BackendError> {
        let bodies: Vec<_> = headers.iter().filter(|header| self.lacks_body(header)).collect();
        let receipts: Vec<_> = headers.iter().filter(|header| self.lacks_receipts(header)).collect();
        let Some(first) = bodies.iter().chain(&receipts).next() else { return Ok(()) };
        let needed = || Needed::Block(first.hash());
        let (of_bodies, of_receipts) = self.base.ask(bodies.len() + receipts.len(), needed, |upstream, context| {
            let (of_bodies, of_receipts) = upstream.blocks_and_receipts(context, &bodies, &receipts);
            Ok((available(of_bodies)?, available(of_receipts)?))
        })?;
        let blocks = bodies.iter().zip(of_bodies).filter_map(|(header, block)| Some((header.hash(), block.ok()?)));
        let blocks = Mutex::new(blocks.collect::<Vec<_>>());
        let work = || {
            while let Some((hash, block)) = { blocks.lock().pop() } {
                // Whoever reads it gets the error.
                let _ = self.keep_block(hash, block);
            }
        };
        let count = blocks.lock().len();
        thread::scope(|scope| {
            for _ in 1..count.min(THREADS) {
                // Without a thread, this one does all of the work.
                let _ = thread::Builder::new().name("history".to_owned()).spawn_scoped(scope, work);
            }
            work();
        });
        let mut refused = Vec::new();
        for (header, receipts) in receipts.into_iter().zip(of_receipts) {
            match receipts {
                Ok(receipts) => drop(self.keep_receipts(header.hash(), receipts)),
                Err(UpstreamError::Refused { .. }) if !self.lacks_body(header) => refused.push(header),
                Err(_) => {}
            }
        }
        self.prefetch_refused(&refused)
    }

    /// Fetches the receipts of blocks with known bodies by their transactions.
    fn prefetch_refused(&self, headers: &[&HashedHeader]) -> Result<(), BackendError> {
        let mut blocks = Vec::new();
        for header in headers {
            let body = self.sized_body(header)?.value;
            let transactions = body.transactions.iter().map(|recovered| recovered.transaction.clone());
            blocks.push((*header, transactions.collect::<Vec<Transaction>>()));
        }
        let Some((first, _)) = blocks.first() else { return Ok(()) };
        let count = blocks.iter().map(|(_, transactions)| transactions.len()).sum();
        let receipts = self.base.ask(
            count,
            || Needed::Receipts(first.hash()),
            |upstream, context| available(upstream.receipts_of_transactions(context, &blocks)),
        )?;
        for (header, receipts) in headers.iter().zip(receipts) {
            if let Ok(receipts) = receipts {
                self.keep_receipts(header.hash(), receipts);
            }
        }
        Ok(())
    }

    /// Fetches the total difficulties of blocks from before the merge.
    fn prefetch_difficulties(&self, headers: &[HashedHeader]) -> Result<(), BackendError> {
        let lacks = |header: &&HashedHeader| {
            !self.is_merged(header) && self.headers.peek(&header.hash()).is_none() && !self.lacks_body(header)
        };
        let headers: Vec<_> = headers.iter().filter(lacks).collect();
        if headers.is_empty() {
            return Ok(());
        }
        let hashes: Vec<_> = headers.iter().map(|header| header.hash()).collect();
        for (header, claimed) in headers.into_iter().zip(self.ask_difficulties(&hashes)?) {
            self.keep_sealed(header, claimed, self.sized_body(header)?.size);
        }
        Ok(())
    }
}

/// Returns the results, or the error of those that could not be requested.
fn available<T>(results: Vec<Result<T, UpstreamError>>) -> Result<Vec<Result<T, UpstreamError>>, UpstreamError> {
    let is_failure = |result: &Result<T, UpstreamError>| match result {
        Err(error) => error.is_end() || matches!(error, UpstreamError::Unavailable { .. }),
        Ok(_) => false,
    };
    match results.iter().position(is_failure) {
        Some(index) => results.into_iter().nth(index).map_or(Ok(Vec::new()), |failure| failure.map(|_| Vec::new())),
        None => Ok(results),
    }
}
