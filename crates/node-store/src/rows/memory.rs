//! Rows of the newest blocks, in memory.

use crate::keys::{Key, Suffix};
use rpds::{HashTrieMapSync, VectorSync};
use std::sync::Arc;

/// The bytes of a value.
pub(crate) type Value = Arc<[u8]>;

/// Rows of consecutive blocks. Cloning is cheap, for all within is shared.
#[derive(Clone)]
pub(crate) struct Generation {
    rows: HashTrieMapSync<Key, Versions>,
    count: usize,
}

/// The rows with one prefix, ascending by version. Most prefixes have one row.
#[derive(Clone)]
enum Versions {
    One(u64, Value),
    Many(VectorSync<(u64, Value)>),
}

impl Generation {
    pub(crate) fn new() -> Self {
        Self { rows: HashTrieMapSync::new_sync(), count: 0 }
    }

    /// The number of rows.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds a row, whose version is above all others of the key; in tables without versions, that is its block.
    pub(crate) fn put(&mut self, key: Key, version: u64, value: Value) {
        self.count += 1;
        match self.rows.get_mut(&key) {
            Some(versions) => versions.push(version, value),
            None => self.rows.insert_mut(key, Versions::One(version, value)),
        }
    }

    /// Drops the rows of `key` from `version` on.
    pub(crate) fn drop_from(&mut self, key: &Key, version: u64) {
        let Some(versions) = self.rows.get(key) else { return };
        let (kept, dropped) = versions.clone().without(version);
        self.count -= dropped;
        match kept {
            _ if dropped == 0 => {}
            Some(kept) => self.rows.insert_mut(*key, kept),
            None => drop(self.rows.remove_mut(key)),
        }
    }

    /// The newest row of `key` with this version or a lower one.
    pub(crate) fn newest(&self, key: &Key, version: u64) -> Option<(u64, &Value)> {
        let versions = self.rows.get(key)?;
        versions.get(versions.count_up_to(version).checked_sub(1)?)
    }

    /// The rows of `key` with this version or a lower one, the newest first.
    pub(crate) fn newest_first(&self, key: &Key, version: u64) -> impl Iterator<Item = (u64, &Value)> {
        let versions = self.rows.get(key);
        let count = versions.map_or(0, |versions| versions.count_up_to(version));
        (0..count).rev().filter_map(move |index| versions?.get(index))
    }

    /// The first row of `key` with this version or a higher one.
    pub(crate) fn oldest_from(&self, key: &Key, version: u64) -> Option<(u64, &Value)> {
        let versions = self.rows.get(key)?;
        versions.get(version.checked_sub(1).map_or(0, |below| versions.count_up_to(below)))
    }

    /// All rows, those of one key together and ascending by version.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, Vec<(u64, &Value)>)> {
        self.rows.iter().map(|(key, versions)| {
            let rows = (0..versions.len()).filter_map(|index| versions.get(index)).collect();
            (key, rows)
        })
    }
}

impl Versions {
    fn len(&self) -> usize {
        match self {
            Self::One(..) => 1,
            Self::Many(versions) => versions.len(),
        }
    }

    fn get(&self, index: usize) -> Option<(u64, &Value)> {
        match self {
            Self::One(version, value) => (index == 0).then_some((*version, value)),
            Self::Many(versions) => versions.get(index).map(|(version, value)| (*version, value)),
        }
    }

    fn push(&mut self, version: u64, value: Value) {
        match self {
            Self::One(first, first_value) => {
                debug_assert!(*first < version);
                let mut versions = VectorSync::new_sync();
                versions.push_back_mut((*first, Arc::clone(first_value)));
                versions.push_back_mut((version, value));
                *self = Self::Many(versions);
            }
            Self::Many(versions) => {
                debug_assert!(versions.last().is_none_or(|(last, _)| *last < version));
                versions.push_back_mut((version, value));
            }
        }
    }

    /// What is below `version`, and how many rows are not.
    fn without(self, version: u64) -> (Option<Self>, usize) {
        match self {
            Self::One(own, _) if own >= version => (None, 1),
            Self::One(..) => (Some(self), 0),
            Self::Many(mut versions) => {
                let before = versions.len();
                while versions.last().is_some_and(|(last, _)| *last >= version) {
                    versions.drop_last_mut();
                }
                let dropped = before - versions.len();
                ((!versions.is_empty()).then_some(Self::Many(versions)), dropped)
            }
        }
    }

    fn count_up_to(&self, version: u64) -> usize {
        let holds = |index: usize| self.get(index).is_some_and(|(own, _)| own <= version);
        // Most readers want the newest.
        if holds(self.len() - 1) {
            return self.len();
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// The version from which on the rows of a key belong to blocks above `block`.
pub(crate) fn first_version_above(key: &Key, block: u64) -> u64 {
    match key.table().suffix() {
        Suffix::Log => crate::keys::LogId::first_of(block + 1).0,
        Suffix::Block | Suffix::None => block + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Table;
    use node_types::H256;

    #[test]
    fn rows_come_and_go_by_version() {
        let key = Key::of_hash(Table::Accounts, H256::repeat_byte(1));
        let value = |version: u64| Value::from([version as u8]);
        for versions in [&[3][..], &[3, 5], &[3, 5, 9]] {
            let mut rows = Generation::new();
            versions.iter().for_each(|version| rows.put(key, *version, value(*version)));
            for at in 0..12 {
                let up_to: Vec<_> = versions.iter().rev().copied().filter(|version| *version <= at).collect();
                let newest = rows.newest(&key, at).map(|(version, value)| (version, value[0]));
                assert_eq!(newest, up_to.first().map(|version| (*version, *version as u8)), "{versions:?} at {at}");
                let all: Vec<_> = rows.newest_first(&key, at).map(|(version, _)| version).collect();
                assert_eq!(all, up_to, "{versions:?} at {at}");
                let next = versions.iter().copied().find(|version| *version >= at);
                assert_eq!(rows.oldest_from(&key, at).map(|(version, _)| version), next, "{versions:?} from {at}");

                let mut cut = rows.clone();
                cut.drop_from(&key, at);
                let left: Vec<_> = cut.newest_first(&key, u64::MAX).map(|(version, _)| version).collect();
                let below: Vec<_> = versions.iter().rev().copied().filter(|version| *version < at).collect();
                assert_eq!((left, cut.count()), (below.clone(), below.len()), "{versions:?} cut at {at}");
            }
        }
    }
}
