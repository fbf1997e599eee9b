//! Filters for logs that the node keeps for clients, counted in bytes.

use crate::backend::LogFilter;
use crate::block::LogRef;
use crate::context::{ClientId, is_fair_share};
use node_types::consensus::Log;
use node_types::{Address, H256};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that a filter takes besides its addresses and topics, with the subscription or stream that it belongs to.
const OVERHEAD: usize = 512;

/// A filter for logs that the node keeps. All that use it share it, and its memory counts as held by its client until
/// nothing uses it any more. Its addresses and topics are sorted, so that matching a log takes a few comparisons.
#[derive(Clone)]
pub struct KeptFilter(Arc<Kept>);

struct Kept {
    filter: LogFilter,
    /// `None` if its memory is not counted.
    held: Option<Held>,
}

impl KeptFilter {
    fn new(mut filter: LogFilter, held: Option<Held>) -> Self {
        sort(&mut filter.addresses);
        filter.addresses.shrink_to_fit();
        for words in &mut filter.topics {
            sort(words);
            words.shrink_to_fit();
        }
        Self(Arc::new(Kept { filter, held }))
    }

    /// Returns whether `log` matches the filter.
    pub fn matches(&self, log: &Log) -> bool {
        self.matches_parts(&log.address, log.topics.iter().map(|topic| &topic.0))
    }

    /// Returns whether a log in the memory of its block matches the filter.
    pub fn matches_ref(&self, log: &LogRef<'_>) -> bool {
        self.matches_parts(&log.address, log.topics.iter())
    }

    fn matches_parts<'a>(&self, address: &Address, topics: impl ExactSizeIterator<Item = &'a [u8; 32]>) -> bool {
        let LogFilter { addresses, topics: wanted } = &self.0.filter;
        let has = |words: &[H256], topic| words.is_empty() || words.binary_search_by(|word| word.0.cmp(topic)).is_ok();
        (addresses.is_empty() || addresses.binary_search(address).is_ok())
            && wanted.len() <= topics.len()
            && wanted.iter().zip(topics).all(|(words, topic)| has(words, topic))
    }
}

impl From<LogFilter> for KeptFilter {
    /// Creates a filter whose memory is not counted.
    fn from(filter: LogFilter) -> Self {
        Self::new(filter, None)
    }
}

fn sort<T: Ord>(words: &mut Vec<T>) {
    words.sort_unstable();
    words.dedup();
}

impl Deref for KeptFilter {
    type Target = LogFilter;

    fn deref(&self) -> &LogFilter {
        &self.0.filter
    }
}

impl PartialEq for KeptFilter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.filter == other.0.filter
    }
}

impl Eq for KeptFilter {}

impl fmt::Debug for KeptFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kept { filter, held } = &*self.0;
        f.debug_struct("KeptFilter")
            .field("filter", filter)
            .field("bytes", &held.as_ref().map(|held| held.bytes))
            .finish()
    }
}

/// The memory of all kept filters.
#[derive(Debug)]
pub(crate) struct FilterMemory {
    /// Maximum number of bytes.
    limit: usize,
    held: Mutex<Holders>,
}

#[derive(Debug, Default)]
struct Holders {
    total: usize,
    by_client: HashMap<ClientId, usize>,
}

/// Bytes that a filter holds until this is dropped.
struct Held {
    memory: Arc<FilterMemory>,
    client: Option<ClientId>,
    bytes: usize,
}

impl FilterMemory {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, held: Mutex::default() })
    }

    /// Keeps `filter` for `client`. Returns `None` if too little memory is left, or the client would hold more than it
    /// leaves for others.
    pub(crate) fn keep(self: &Arc<Self>, client: Option<ClientId>, filter: LogFilter) -> Option<KeptFilter> {
        let bytes = size(&filter);
        let mut held = self.held.lock();
        let of_client = client.and_then(|client| held.by_client.get(&client)).copied().unwrap_or(0);
        let left = self.limit.checked_sub(held.total + bytes)?;
        if client.is_some() && !is_fair_share(of_client + bytes, left) {
            return None;
        }
        held.add(client, bytes);
        drop(held);
        Some(KeptFilter::new(filter, Some(Held { memory: self.clone(), client, bytes })))
    }

    /// Keeps `filter` even if too little memory is left, because it was kept before a restart.
    pub(crate) fn restore(self: &Arc<Self>, filter: LogFilter) -> KeptFilter {
        let bytes = size(&filter);
        self.held.lock().add(None, bytes);
        KeptFilter::new(filter, Some(Held { memory: self.clone(), client: None, bytes }))
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }
}

impl Holders {
    fn add(&mut self, client: Option<ClientId>, bytes: usize) {
        self.total += bytes;
        if let Some(client) = client {
            *self.by_client.entry(client).or_default() += bytes;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.memory.held.lock();
        held.total -= self.bytes;
        if let Some(client) = self.client
            && let Some(bytes) = held.by_client.get_mut(&client)
        {
            *bytes -= self.bytes;
            if *bytes == 0 {
                held.by_client.remove(&client);
            }
        }
    }
}

/// Returns the number of bytes that a filter takes.
fn size(filter: &LogFilter) -> usize {
    let words: usize = filter.topics.iter().map(|words| size_of::<Vec<H256>>() + words.len() * size_of::<H256>()).sum();
    OVERHEAD + filter.addresses.len() * size_of::<Address>() + words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn filter(count: usize) -> LogFilter {
        let words = (0..count as u64).rev().map(H256::from_low_u64_be).collect();
        LogFilter { addresses: Vec::new(), topics: vec![words] }
    }

    #[test]
    fn filters_count_until_nothing_uses_them() {
        let bytes = size(&filter(10));
        let memory = FilterMemory::new(4 * bytes);
        let [first, second] = [1, 2].map(|client| Some(ClientId(client)));
        let kept: Vec<_> = (0..9).map_while(|_| memory.keep(first, filter(10))).collect();
        assert_eq!(kept.len(), 2, "half of the memory");
        let other = memory.keep(second, filter(10)).unwrap();
        assert!(memory.keep(second, filter(10)).is_none(), "a quarter");
        let shared = kept[0].clone();
        drop(kept);
        assert_eq!(memory.held.lock().total, 2 * bytes);
        drop((shared, other));
        let held = memory.held.lock();
        assert_eq!((held.total, held.by_client.len()), (0, 0));
    }

    #[test]
    fn filters_from_before_a_restart_are_kept() {
        let memory = FilterMemory::new(10);
        let restored = memory.restore(filter(3));
        assert!(memory.keep(None, filter(0)).is_none());
        drop(restored);
        assert_eq!(memory.held.lock().total, 0);
    }

    proptest! {
        #[test]
        fn a_kept_filter_matches_as_the_filter_does(
            addresses in vec(0..4u64, 0..4),
            topics in vec(vec(0..4u64, 0..4), 0..5),
            log in (0..4u64, vec(0..4u64, 0..5)),
        ) {
            let word = H256::from_low_u64_be;
            let address = Address::from_low_u64_be;
            let filter = LogFilter {
                addresses: addresses.into_iter().map(address).collect(),
                topics: topics.into_iter().map(|words| words.into_iter().map(word).collect()).collect(),
            };
            let (contract, topics) = log;
            let log = Log {
                address: address(contract),
                topics: topics.into_iter().map(word).collect(),
                data: Default::default(),
            };
            prop_assert_eq!(KeptFilter::from(filter.clone()).matches(&log), filter.matches(&log));
        }
    }
}
