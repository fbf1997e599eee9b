//! The newest searches for logs.

use node_types::{BlockNumber, H256};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

/// Maximum number of searches that are remembered.
const MAX: usize = 16;

/// Blocks with logs that match, and how many an endpoint has listed of each. `None` if they are known to be right.
pub(super) type Listed = BTreeMap<BlockNumber, Option<u64>>;

/// Which blocks have logs that match, as an endpoint has said. The pages of a search are searches of their own, from where
/// the last one ended.
#[derive(Debug, Default)]
pub(super) struct Searched(Mutex<VecDeque<Search>>);

#[derive(Debug)]
struct Search {
    /// Identifies the filter.
    filter: H256,
    range: RangeInclusive<BlockNumber>,
    blocks: Listed,
}

impl Searched {
    /// Returns the last block up to which a search from `from` is known, at most `to`, and the blocks until then that have
    /// logs.
    pub(super) fn get(&self, filter: H256, from: BlockNumber, to: BlockNumber) -> Option<(BlockNumber, Listed)> {
        let all = self.0.lock();
        let known = all.iter().find(|search| search.filter == filter && search.range.contains(&from))?;
        let end = to.min(*known.range.end());
        Some((end, known.blocks.range(from..=end).map(|(number, count)| (*number, *count)).collect()))
    }

    pub(super) fn insert(&self, filter: H256, range: RangeInclusive<BlockNumber>, blocks: Listed) {
        let mut all = self.0.lock();
        all.push_front(Search { filter, range, blocks });
        all.truncate(MAX);
    }

    /// Forgets what was said about a filter.
    pub(super) fn forget(&self, filter: H256) {
        self.0.lock().retain(|search| search.filter != filter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_search_are_known_until_others_replace_it() {
        let (searched, filter) = (Searched::default(), H256::repeat_byte(1));
        let blocks = |numbers: &[u64]| numbers.iter().map(|number| (*number, Some(number * 2))).collect::<Listed>();
        searched.insert(filter, 5..=20, blocks(&[6, 9, 20]));
        assert_eq!(searched.get(filter, 5, 9), Some((9, blocks(&[6, 9]))));
        assert_eq!(searched.get(filter, 7, 30), Some((20, blocks(&[9, 20]))));
        for (filter, from) in [(filter, 4), (filter, 21), (H256::zero(), 5)] {
            assert_eq!(searched.get(filter, from, 30), None);
        }
        let other = |n: u64| H256::from_low_u64_be(n);
        (0..MAX as u64).for_each(|n| searched.insert(other(n), 0..=9, Listed::new()));
        assert_eq!(searched.get(filter, 5, 9), None);
        searched.forget(other(3));
        assert_eq!((searched.get(other(3), 5, 9), searched.get(other(4), 5, 9)), (None, Some((9, Listed::new()))));
    }
}
