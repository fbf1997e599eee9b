//! Fetching accounts, slots and code.

use super::Base;
use crate::contents::{Kind, name};
use crate::error::{ForkError, Needed, storage};
use node_core::backend::{AccountProof, BackendError, BaseRead};
use node_core::context::{Context, Interrupted};
use node_core::{remote, waiting};
use node_types::consensus::{Account, EMPTY_ROOT};
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, keccak256};
use node_upstream::{AccountRead, ProvenState, Upstream, UpstreamError};
use std::collections::{BTreeMap, BTreeSet};

/// What is not known of some accounts.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    /// Accounts to prove, with slots.
    pub(super) reads: Vec<AccountRead>,
    /// Those of them whose code is fetched as well: all that are not known, and others.
    pub(super) codes_of: Vec<Address>,
}

impl Base {
    /// Runs a request to the upstream within the time limit and that of the [current](Context::current) request, and records
    /// it as a step of `reads` reads.
    ///
    /// # Errors
    /// Those of the request; [`ForkError::Offline`], and the error of [`waiting::refuse`].
    pub(crate) fn ask<T>(
        &self,
        reads: usize,
        needed: impl Fn() -> Needed,
        request: impl FnOnce(&Upstream, &Context) -> Result<T, UpstreamError>,
    ) -> Result<T, BackendError> {
        self.ask_within(&Context::current(), reads, needed, request)
    }

    /// Like [`ask`](Self::ask), and ends with the work that `context` belongs to.
    pub(crate) fn ask_within<T>(
        &self,
        context: &Context,
        reads: usize,
        needed: impl Fn() -> Needed,
        request: impl FnOnce(&Upstream, &Context) -> Result<T, UpstreamError>,
    ) -> Result<T, BackendError> {
        let Some(upstream) = self.upstream() else { return Err(ForkError::Offline { needed: needed() }.into()) };
        if !waiting::is_allowed() {
            return Err(storage(waiting::refuse()));
        }
        remote::record_step(reads as u64);
        let timeout = self.options().timeout;
        let result = request(&upstream, &context.clone().with_timeout(timeout));
        result.map_err(|error| match error {
            UpstreamError::Interrupted(Interrupted::DeadlineExceeded) if context.check().is_ok() => {
                ForkError::TimedOut { needed: needed(), seconds: timeout.as_secs() }.into()
            }
            error => ForkError::Upstream(error).into(),
        })
    }

    /// Fetches what is not known of `reads`, and returns the proofs that were fetched.
    pub(super) fn fetch_unknown(&self, reads: &[BaseRead]) -> Result<Vec<AccountProof>, BackendError> {
        let unknown = self.unknown(reads)?;
        let Unknown { reads, codes_of } = &unknown;
        if reads.is_empty() {
            return Ok(Vec::new());
        }
        let slots: usize = reads.iter().map(|read| read.slots.len()).sum();
        let others = reads.len() + slots - 1 - usize::from(!reads[0].slots.is_empty());
        let first = || (reads[0].address, reads[0].slots.first().copied());
        let needed = || {
            let (address, slot) = first();
            Needed::State { address, slot, others, block: self.block().header().number }
        };
        if self.trusts() {
            return self.fetch_claims(&unknown, needed);
        }
        let state = |upstream: &Upstream| ProvenState::new(upstream.clone(), self.block().clone());
        let (proofs, codes) = self.ask_for_state(reads.len() + codes_of.len(), needed, |upstream, context| {
            state(upstream).accounts_and_codes(context, reads, codes_of)
        })?;
        self.keep(reads, &proofs, codes);
        for (read, proof) in reads.iter().zip(&proofs) {
            self.keep_account(read.address, proof.account);
            proof.storage.iter().for_each(|slot| self.keep_slot(read.address, slot.slot, slot.value));
        }
        Ok(proofs)
    }

    /// Fetches the code of an account that is known.
    pub(super) fn fetch_code(&self, address: Address, hash: H256) -> Result<Bytes, BackendError> {
        let needed = || Needed::Code { address, block: self.block().header().number };
        let codes = self.ask_for_state(1, needed, |upstream, context| {
            ProvenState::new(upstream.clone(), self.block().clone()).codes(context, &[(address, hash)])
        })?;
        let code = codes.into_iter().next().unwrap_or_default();
        self.keep(&[], &[], vec![code.clone()]);
        Ok(code)
    }

    /// Returns the names of what was read and exists.
    pub(super) fn names_of(&self, reads: &[AccountRead], proofs: &[AccountProof]) -> Vec<(Kind, H256, Bytes)> {
        let mut names = Vec::new();
        for (read, proof) in reads.iter().zip(proofs).filter(|(_, proof)| self.is_own() && proof.account.is_some()) {
            names.push(name(read.address, None));
            let slots = proof.storage.iter().filter(|proof| !proof.value.is_zero());
            names.extend(slots.map(|proof| name(read.address, Some(proof.slot))));
        }
        names
    }

    /// Adds the proven nodes and the codes of `reads` to the contents.
    fn keep(&self, reads: &[AccountRead], proofs: &[AccountProof], codes: Vec<Bytes>) {
        let nodes = proofs.iter().flat_map(|proof| {
            let storage = proof.storage.iter().flat_map(|slot| &slot.proof);
            proof.proof.iter().chain(storage)
        });
        let nodes = nodes.map(|node| (Kind::Node, keccak256(node), node.clone()));
        let codes = codes.into_iter().filter(|code| !code.is_empty());
        let codes = codes.map(|code| (Kind::Code, keccak256(&code), code));
        self.contents().add(nodes.chain(codes).chain(self.names_of(reads, proofs)).collect());
    }

    /// Returns what is not known of `reads`. The code of an account that is not known may be needed next.
    fn unknown(&self, reads: &[BaseRead]) -> Result<Unknown, BackendError> {
        let mut merged: BTreeMap<Address, BTreeSet<H256>> = BTreeMap::new();
        for BaseRead { address, slots } in reads {
            merged.entry(*address).or_default().extend(slots);
        }
        let mut unknown = Unknown::default();
        for (address, slots) in merged {
            let Some(account) = self.known_account(address)? else {
                unknown.codes_of.push(address);
                unknown.reads.push(AccountRead { address, slots: slots.into_iter().collect() });
                continue;
            };
            let Account { storage_root, code_hash, .. } = account.unwrap_or_default();
            let is_wanted = code_hash != KECCAK_EMPTY && self.0.source.wanted_codes.lock().remove(&code_hash);
            let lacks_code = is_wanted && !self.contents().has(Kind::Code, code_hash);
            let mut missing = Vec::new();
            for slot in slots {
                if storage_root != EMPTY_ROOT && self.known_slot(address, storage_root, slot)?.is_none() {
                    missing.push(slot);
                }
            }
            if lacks_code {
                unknown.codes_of.push(address);
            }
            if lacks_code || !missing.is_empty() {
                unknown.reads.push(AccountRead { address, slots: missing });
            }
        }
        Ok(unknown)
    }

    pub(super) fn lost(&self, address: Address, slot: Option<H256>) -> BackendError {
        ForkError::Lost(Needed::State { address, slot, others: 0, block: self.block().header().number }).into()
    }

    pub(crate) fn lost_node(&self, hash: H256) -> BackendError {
        ForkError::Lost(Needed::NodeHash(hash)).into()
    }
}
