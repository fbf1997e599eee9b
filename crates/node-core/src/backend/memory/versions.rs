//! The values of one key over time.

use node_types::BlockNumber;
use rpds::VectorSync;

/// Values with the block from which each is valid, ascending.
#[derive(Clone, Debug)]
pub(super) struct Versions<T>(VectorSync<(BlockNumber, T)>);

impl<T: Copy> Versions<T> {
    /// Returns the newest value set at or before block `at`, with the number of the block that set it.
    pub(super) fn at(&self, at: BlockNumber) -> Option<(BlockNumber, T)> {
        let newest = self.0.last().filter(|(block, _)| *block <= at);
        newest.or_else(|| self.0.get(self.count_up_to(at).checked_sub(1)?)).copied()
    }

    /// Returns the newest value.
    pub(super) fn newest(&self) -> Option<&T> {
        self.0.last().map(|(_, value)| value)
    }

    /// Adds a value set in block `number`, which must be above all others.
    pub(super) fn push(&mut self, number: BlockNumber, value: T) {
        debug_assert!(self.0.last().is_none_or(|(last, _)| *last < number));
        self.0.push_back_mut((number, value));
    }

    /// Removes the newest value if it was set in block `number`. Returns whether any is left.
    pub(super) fn drop_newest(&mut self, number: BlockNumber) -> bool {
        if self.0.last().is_some_and(|(last, _)| *last == number) {
            self.0.drop_last_mut();
        }
        !self.0.is_empty()
    }

    fn count_up_to(&self, at: BlockNumber) -> usize {
        let (mut low, mut high) = (0, self.0.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.0.get(middle) {
                Some((block, _)) if *block <= at => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }
}

impl<T> Default for Versions<T> {
    fn default() -> Self {
        Self(VectorSync::new_sync())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_the_newest_value_at_or_before_a_block() {
        let mut versions = Versions::default();
        for (block, value) in [(3, 'a'), (5, 'b'), (9, 'c')] {
            versions.push(block, value);
        }
        let cases = [
            (0, None),
            (2, None),
            (3, Some((3, 'a'))),
            (4, Some((3, 'a'))),
            (5, Some((5, 'b'))),
            (8, Some((5, 'b'))),
            (9, Some((9, 'c'))),
            (u64::MAX, Some((9, 'c'))),
        ];
        for (at, expected) in cases {
            assert_eq!(versions.at(at), expected, "as of block {at}");
        }
        assert!(versions.drop_newest(8));
        assert_eq!(versions.at(9), Some((9, 'c')));
        assert!(versions.drop_newest(9));
        assert_eq!(versions.at(9), Some((5, 'b')));
        assert!(versions.drop_newest(5));
        assert!(!versions.drop_newest(3));
    }
}
