//! Which hashes the ancestors of the first block have.
//!
//! In this order:
//!
//! 1. what was proven before, and the parent of a block that is known;
//! 2. the history contract of EIP-2935, which has the last 8,191 hashes in the state that the fork begins with, unless the
//!    endpoints no longer have that state;
//! 3. the chain of parents, for the last 256 blocks, whose hashes the EVM can read;
//! 4. the word of an endpoint. Such a block is right in itself, but nothing shows that it is an ancestor.

use super::History;
use crate::contents::Kind;
use crate::error::{ForkError, Needed, is_refusal, storage};
use node_core::backend::{BackendError, BaseRead, BaseState};
use node_types::consensus::Header;
use node_types::{Address, BlockNumber, Bytes, H160, H256, keccak256};
use node_upstream::HashedHeader;
use std::sync::atomic::Ordering;

/// The contract that stores the hashes of blocks (EIP-2935).
const CONTRACT: Address = H160([
    0x00, 0x00, 0xf9, 0x08, 0x27, 0xf1, 0xc5, 0x3a, 0x10, 0xcb, 0x7a, 0x02, 0x33, 0x5b, 0x17, 0x53, 0x20, 0x00, 0x29,
    0x35,
]);

/// Number of hashes that the contract has.
const HISTORY: u64 = 8_191;

/// Number of blocks up to which parents are followed.
const PARENTS: u64 = 256;

impl History {
    /// Returns the hash of an ancestor, whose number must be below that of the first block.
    pub(crate) fn hash(&self, number: BlockNumber) -> Result<H256, BackendError> {
        if let Some(hash) = self.known_hash(number)? {
            return Ok(hash);
        }
        self.read_contract(&[number])?;
        if let Some(hash) = self.known_hash(number)? {
            return Ok(hash);
        }
        if self.end() - number <= PARENTS && self.base.upstream().is_some() {
            return self.follow_parents(number);
        }
        self.claimed_hash(number)
    }

    /// Finds the hashes of several ancestors together.
    pub(super) fn prefetch_hashes(&self, numbers: &[BlockNumber]) -> Result<(), BackendError> {
        let unknown = self.unknown_hashes(numbers)?;
        if unknown.is_empty() {
            return Ok(());
        }
        self.read_contract(&unknown)?;
        let (near, far): (Vec<_>, Vec<_>) =
            self.unknown_hashes(&unknown)?.into_iter().partition(|number| self.end() - number <= PARENTS);
        if let Some(lowest) = near.into_iter().min() {
            // The others are on the way.
            self.follow_parents(lowest)?;
        }
        self.prefetch_claimed(&far)
    }

    fn unknown_hashes(&self, numbers: &[BlockNumber]) -> Result<Vec<BlockNumber>, BackendError> {
        let mut unknown = Vec::new();
        for number in numbers {
            if self.known_hash(*number)?.is_none() {
                unknown.push(*number);
            }
        }
        Ok(unknown)
    }

    /// Returns a hash that was proven, or follows from a block that is known.
    fn known_hash(&self, number: BlockNumber) -> Result<Option<H256>, BackendError> {
        if let Some(hash) = self.hashes.get(&number) {
            return Ok(Some(hash));
        }
        let stored = self.base.contents().get(Kind::Ancestor, self.key(number)).map_err(storage)?;
        let hash = match stored.and_then(|bytes| Some(H256(*bytes.first_chunk()?))) {
            Some(hash) => hash,
            None if number + 1 == self.end() => self.first.header.parent_hash,
            None => match self.parent_hash(number + 1)? {
                Some(hash) => {
                    self.keep_parent(number, hash)?;
                    hash
                }
                None => return Ok(None),
            },
        };
        self.hashes.insert(number, hash);
        Ok(Some(hash))
    }

    /// Returns the hash of the parent of an ancestor whose hash and header are known.
    fn parent_hash(&self, number: BlockNumber) -> Result<Option<H256>, BackendError> {
        let Some(hash) = self.hashes.get(&number) else { return Ok(None) };
        let header = self.base.contents().get(Kind::Header, hash).map_err(storage)?;
        let header = header.map(|bytes| rlp::decode::<Header>(&bytes).map_err(storage)).transpose()?;
        Ok(header.map(|header| header.parent_hash))
    }

    /// Keeps the hash of an ancestor, which its child has. It is as certain as that of the child.
    fn keep_parent(&self, number: BlockNumber, hash: H256) -> Result<(), BackendError> {
        let child = self.base.contents().get(Kind::Ancestor, self.key(number + 1)).map_err(storage)?;
        let is_proven = number + 2 == self.end() || child.is_some();
        let kind = if is_proven { Kind::Ancestor } else { Kind::ClaimedAncestor };
        self.base.contents().add(vec![(kind, self.key(number), Bytes::from(hash.0.to_vec()))]);
        Ok(())
    }

    /// Records hashes that were proven.
    fn keep_proven(&self, proven: Vec<(BlockNumber, H256)>) {
        proven.iter().for_each(|(number, hash)| self.hashes.insert(*number, *hash));
        let content =
            |(number, hash): (BlockNumber, H256)| (Kind::Ancestor, self.key(number), Bytes::from(hash.0.to_vec()));
        self.base.contents().add(proven.into_iter().map(content).collect());
    }

    /// Reads the hashes of blocks that the history contract has, all together.
    fn read_contract(&self, numbers: &[BlockNumber]) -> Result<(), BackendError> {
        // What it has must be proven.
        if self.base.trusts() {
            return Ok(());
        }
        let has = |number: &&BlockNumber| self.end() - **number <= HISTORY;
        let numbers: Vec<_> = numbers.iter().filter(has).copied().collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let slot = |number: &BlockNumber| H256::from_low_u64_be(number % HISTORY);
        match self.base.known_account(CONTRACT)? {
            // Without the contract, there is nothing to ask for.
            Some(None) => return Ok(()),
            // An offline fork has what it has.
            None if self.base.upstream().is_none() => return Ok(()),
            Some(Some(_)) | None => {}
        }
        if self.base.upstream().is_some() && !self.lacks_state.load(Ordering::Relaxed) {
            let slots = numbers.iter().map(slot).collect();
            match self.base.fetch(&[BaseRead { address: CONTRACT, slots }]) {
                Err(error) if is_refusal(&error) => {
                    self.lacks_state.store(true, Ordering::Relaxed);
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "the hashes of earlier blocks are not proven by the state of the fork");
                }
                fetched => fetched?,
            }
        }
        // What is known may be enough.
        let Some(Some(account)) = self.base.known_account(CONTRACT)? else { return Ok(()) };
        let mut proven = Vec::new();
        for number in &numbers {
            // Zero if the contract is not that old.
            let value = self.base.known_slot(CONTRACT, account.storage_root, slot(number))?;
            if let Some(value) = value.filter(|value| !value.is_zero()) {
                proven.push((*number, H256(value.to_big_endian())));
            }
        }
        self.keep_proven(proven);
        Ok(())
    }

    /// Follows the parents of the nearest block whose header is known.
    fn follow_parents(&self, number: BlockNumber) -> Result<H256, BackendError> {
        let mut nearest = HashedHeader::new(self.first.header.clone());
        loop {
            let parent = nearest.header().parent_hash;
            if nearest.header().number == number + 1 {
                self.keep_proven(vec![(number, parent)]);
                return Ok(parent);
            }
            let Some(bytes) = self.base.contents().get(Kind::Header, parent).map_err(storage)? else { break };
            nearest = HashedHeader::new(rlp::decode(&bytes).map_err(storage)?);
        }
        let count = nearest.header().number - number;
        let ancestors = self.base.ask(
            count as usize,
            || Needed::BlockNumber(number),
            |upstream, context| upstream.ancestors(context, &nearest, count),
        )?;
        self.keep_headers(&ancestors);
        self.keep_proven(ancestors.iter().map(|header| (header.header().number, header.hash())).collect());
        Ok(ancestors.last().unwrap_or(&nearest).hash())
    }

    /// Asks for the block with a number.
    fn claimed_hash(&self, number: BlockNumber) -> Result<H256, BackendError> {
        if self.base.upstream().is_none() {
            let claimed = self.base.contents().get(Kind::ClaimedAncestor, self.key(number)).map_err(storage)?;
            let hash = claimed.and_then(|bytes| Some(H256(*bytes.first_chunk()?)));
            return hash.ok_or_else(|| ForkError::Offline { needed: Needed::BlockNumber(number) }.into());
        }
        let header = self.base.ask(
            1,
            || Needed::BlockNumber(number),
            |upstream, context| upstream.header(context, number.into()),
        )?;
        Ok(self.keep_claimed(number, header))
    }

    /// Asks for the blocks with these numbers together.
    fn prefetch_claimed(&self, numbers: &[BlockNumber]) -> Result<(), BackendError> {
        let Some(first) = numbers.first().copied() else { return Ok(()) };
        let blocks: Vec<_> = numbers.iter().map(|number| (*number).into()).collect();
        let headers = self.ask_headers(&blocks, || Needed::BlockNumber(first))?;
        for (number, header) in numbers.iter().zip(headers) {
            if let Ok(header) = header {
                self.keep_claimed(*number, header);
            }
        }
        Ok(())
    }

    /// Keeps the block that has a number, as an endpoint says.
    fn keep_claimed(&self, number: BlockNumber, header: HashedHeader) -> H256 {
        let hash = header.hash();
        self.keep_headers(&[header]);
        self.hashes.insert(number, hash);
        let claim = (Kind::ClaimedAncestor, self.key(number), Bytes::from(hash.0.to_vec()));
        self.base.contents().add(vec![claim]);
        hash
    }

    /// Returns the key of the ancestor of the first block with a number.
    fn key(&self, number: BlockNumber) -> H256 {
        keccak256([&self.first.hash.0[..], &number.to_be_bytes()].concat())
    }
}
