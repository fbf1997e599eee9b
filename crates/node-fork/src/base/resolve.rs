//! Fetching a trie node of which only the position is known.
//!
//! Proofs are of keys, so a key below the position is needed. Some endpoints list keys from a position on; otherwise one
//! is found by trying.

use super::{Base, search};
use crate::contents::Kind;
use crate::error::{ForkError, MissingNode, Needed, storage};
use node_core::backend::{BackendError, BaseRead};
use node_core::context::Context;
use node_core::waiting;
use node_types::trie::NibblePath;
use node_types::wire::{Data, HashData};
use node_types::{Address, Bytes, H256, keccak256};
use node_upstream::Upstream;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Number of nibbles from which on the upstream is asked for a key first.
const FAST_NIBBLES: usize = 5;

/// Maximum number of nodes for which it is remembered that no key was found.
const MAX_UNRESOLVED: usize = 4_096;

/// A node to which no key was found so far.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unresolved {
    /// There is no further search, for this reason.
    NoKey(&'static str),
    /// Requests that ended have searched for this time. The next one goes on with the key with this number.
    Searched { time: Duration, next: u64 },
}

impl Base {
    pub(super) fn resolve_node(
        &self,
        account: Option<Address>,
        position: &NibblePath,
        hash: H256,
    ) -> Result<Bytes, BackendError> {
        if self.trusts() {
            return Err(ForkError::Unproven.into());
        }
        if let Some(node) = self.contents().get(Kind::Node, hash).map_err(storage)? {
            return Ok(node);
        }
        let missing = || MissingNode { account, position: *position, hash };
        if self.upstream().is_none() {
            return Err(ForkError::Offline { needed: Needed::Node(missing()) }.into());
        }
        let known = self.0.source.unresolved.lock().get(&hash).copied();
        if let Some(Unresolved::NoKey(reason)) = known {
            return Err(ForkError::NoKey { node: missing(), reason }.into());
        }
        if !waiting::is_allowed() {
            return Err(storage(waiting::refuse()));
        }
        self.expect_state(|| Needed::Node(missing()))?;
        let no_key = |reason| {
            self.keep_unresolved(hash, Unresolved::NoKey(reason));
            ForkError::NoKey { node: missing(), reason }
        };
        // A short search takes less time than a request.
        let listed = if position.len() < FAST_NIBBLES { None } else { self.listed_key(account, position) };
        let read = match listed {
            Some(read) => read,
            None if position.len() <= search::MAX_NIBBLES => {
                self.found_key(account, position, hash)?.ok_or_else(|| no_key("the search took too long"))?
            }
            None => return Err(no_key("it is too deep for a search, and the upstream does not list keys").into()),
        };
        // Its path leads through the position, so the node is among those of its proof.
        self.fetch_unknown(&[read])?;
        self.contents().get(Kind::Node, hash).map_err(storage)?.ok_or_else(|| ForkError::NotThere(missing()).into())
    }

    /// Finds a key below the position of the node with this hash by trying. Returns `None` if all searches together took as
    /// long as the options allow.
    ///
    /// # Errors
    /// If the request ends before that. The next one goes on with the search.
    fn found_key(
        &self,
        account: Option<Address>,
        position: &NibblePath,
        hash: H256,
    ) -> Result<Option<BaseRead>, BackendError> {
        let (searched, start) = match self.0.source.unresolved.lock().get(&hash) {
            Some(Unresolved::Searched { time, next }) => (*time, *next),
            _ => (Duration::ZERO, 0),
        };
        let (request, begun) = (Context::current(), Instant::now());
        let context = request.clone().with_timeout(self.options().search_timeout.saturating_sub(searched));
        let found = match account {
            None => search::find_key(position, start, &context)
                .map(|key: [u8; 20]| (search::number(&key), BaseRead { address: key.into(), slots: Vec::new() })),
            Some(address) => search::find_key(position, start, &context)
                .map(|key| (search::number(&key), BaseRead { address, slots: vec![H256(key)] })),
        };
        let time = searched + begun.elapsed();
        match found {
            // The request may end before the proof is there. The next one finds this key at once.
            Ok((next, read)) => {
                self.keep_unresolved(hash, Unresolved::Searched { time: searched, next });
                return Ok(Some(read));
            }
            Err(next) if time < self.options().search_timeout => {
                self.keep_unresolved(hash, Unresolved::Searched { time, next });
                request.check()?;
            }
            Err(_) => {}
        }
        Ok(None)
    }

    fn keep_unresolved(&self, hash: H256, unresolved: Unresolved) {
        let mut all = self.0.source.unresolved.lock();
        if all.len() >= MAX_UNRESOLVED {
            all.clear();
        }
        all.insert(hash, unresolved);
    }

    /// Asks the upstream for a key below the position with geth's methods. What they return need not be right, nor
    /// about exactly this block: only its proof counts.
    fn listed_key(&self, account: Option<Address>, position: &NibblePath) -> Option<BaseRead> {
        let mut start = H256::zero();
        start.0[..position.packed().len()].copy_from_slice(position.packed());
        let start = Data(start);
        let block = Data(self.block().hash());
        let is_below = |key: &[u8]| NibblePath::from(keccak256(key)).starts_with(position);
        let ask = |method: &str, params: String| {
            let params = RawValue::from_string(params).ok()?;
            let needed = || Needed::Node(MissingNode { account, position: *position, hash: H256::zero() });
            let request = |upstream: &Upstream, context: &_| upstream.forward(context, method, &params);
            self.ask(1, needed, request).ok()
        };
        match account {
            None => {
                let params = format!("[\"{:#x}\",\"{start}\",1,true,true,false]", self.block().header().number);
                let listed = ask("debug_accountRange", params)?;
                let listed: AccountRange = serde_json::from_str(listed.get()).ok()?;
                let mut addresses = listed.accounts.keys().filter_map(|address| address.parse::<Address>().ok());
                let address = addresses.find(|address| is_below(address.as_bytes()))?;
                Some(BaseRead { address, slots: Vec::new() })
            }
            Some(address) => {
                let params = format!("[\"{block}\",0,\"{}\",\"{start}\",1]", Data(address));
                let listed = ask("debug_storageRangeAt", params)?;
                let listed: StorageRange = serde_json::from_str(listed.get()).ok()?;
                let mut keys = listed.storage.into_values().filter_map(|slot| slot.key);
                let slot = keys.find(|key| is_below(key.as_bytes()))?;
                Some(BaseRead { address, slots: vec![*slot] })
            }
        }
    }
}

/// The result of debug_accountRange.
#[derive(Deserialize)]
struct AccountRange {
    accounts: BTreeMap<String, serde::de::IgnoredAny>,
}

/// The result of debug_storageRangeAt.
#[derive(Deserialize)]
struct StorageRange {
    storage: BTreeMap<String, Slot>,
}

#[derive(Deserialize)]
struct Slot {
    /// `None` if the endpoint does not know it.
    key: Option<HashData>,
}
