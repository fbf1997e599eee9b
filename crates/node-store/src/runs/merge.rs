//! Reading several sorted sources as a single one.

use super::run::Cursor;
use std::io;

/// A position in ascending rows.
pub(crate) trait Ascending {
    /// Returns the key of the current row.
    fn key(&self) -> &[u8];

    /// Returns the value of the current row.
    fn value(&self) -> &[u8];

    /// Moves to the next row. Returns whether there is one.
    fn advance(&mut self) -> io::Result<bool>;
}

impl Ascending for Cursor {
    fn key(&self) -> &[u8] {
        self.key()
    }

    fn value(&self) -> &[u8] {
        self.value()
    }

    fn advance(&mut self) -> io::Result<bool> {
        self.advance()
    }
}

/// The rows of several sources in ascending order of their keys. Among equal keys, that of the first source comes
/// first.
pub(crate) struct Merged<T> {
    /// Ascending by their keys, equal keys by `Source::index`.
    sources: Vec<Source<T>>,
}

struct Source<T> {
    rows: T,
    index: usize,
}

impl<T: Ascending> Source<T> {
    fn precedes(&self, other: &Self) -> bool {
        (self.rows.key(), self.index) < (other.rows.key(), other.index)
    }
}

impl<T: Ascending> Merged<T> {
    /// Merges sources, which are ordered from the newest run to the oldest.
    pub(crate) fn new(sources: impl IntoIterator<Item = T>) -> Self {
        let mut sources: Vec<_> = sources.into_iter().enumerate().map(|(index, rows)| Source { rows, index }).collect();
        sources.sort_by(|a, b| (a.rows.key(), a.index).cmp(&(b.rows.key(), b.index)));
        Self { sources }
    }

    /// Returns the current row. `None` at the end.
    pub(crate) fn row(&self) -> Option<(&[u8], &[u8])> {
        self.sources.first().map(|source| (source.rows.key(), source.rows.value()))
    }

    /// Moves to the next row.
    pub(crate) fn advance(&mut self) -> io::Result<()> {
        let Some(first) = self.sources.first_mut() else { return Ok(()) };
        if !first.rows.advance()? {
            self.sources.remove(0);
            return Ok(());
        }
        // Rows of one source are often adjacent.
        let mut index = 0;
        while index + 1 < self.sources.len() && self.sources[index + 1].precedes(&self.sources[index]) {
            self.sources.swap(index, index + 1);
            index += 1;
        }
        Ok(())
    }
}
