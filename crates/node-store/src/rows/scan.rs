//! Reading all visible rows in order.

use super::tables::{Part, cut};
use crate::codec::Malformed;
use crate::error::StoreError;
use crate::files::damage;
use crate::keys::{LogId, Suffix, Table, number_of, version_of};
use crate::runs::{Ascending, Cursor, Merged};
use crate::{postings, values};
use node_types::BlockNumber;
use std::io;

/// Key and value of a row.
pub(crate) type Row<'a> = (&'a [u8], &'a [u8]);

/// The visible rows of several runs, ascending.
///
/// Of rows with the same key, only the newest is visible. The rows of deleted records and side blocks are included.
pub(crate) struct Scan {
    merged: Merged<VisibleRows>,
    /// The table to which all rows must belong.
    only: Option<Table>,
    /// The key of the last row.
    last: Vec<u8>,
    started: bool,
}

impl Scan {
    /// Returns the rows from `key` on: those of one table, or of all.
    pub(crate) fn new(parts: &[Part], key: &[u8], only: Option<Table>) -> Result<Self, StoreError> {
        let mut sources = Vec::with_capacity(parts.len());
        for part in parts.iter().rev().filter(|part| only.is_none_or(|table| part.run.has(table))) {
            if let Some(cursor) = part.run.scan(key)? {
                // Most runs have no rows of blocks that have left the chain.
                let limit = (part.limit < *part.run.properties().blocks.end()).then_some(part.limit);
                sources.extend(VisibleRows::new(cursor, limit)?);
            }
        }
        Ok(Self { merged: Merged::new(sources), only, last: Vec::new(), started: false })
    }

    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>, StoreError> {
        if std::mem::replace(&mut self.started, true) {
            loop {
                self.merged.advance()?;
                // Older rows with the same key follow the newest.
                if self.merged.row().is_none_or(|(key, _)| key != self.last) {
                    break;
                }
            }
        }
        let Some((key, value)) = self.merged.row() else { return Ok(None) };
        if self.only.is_some_and(|only| Table::of_key(key) != Some(only)) {
            return Ok(None);
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(Some((key, value)))
    }
}

/// The visible rows of one run.
struct VisibleRows {
    cursor: Cursor,
    /// The last block whose rows are visible. `None` if all are.
    limit: Option<BlockNumber>,
    /// The current row if it differs from that of the run.
    cut: Option<(Vec<u8>, Vec<u8>)>,
}

impl VisibleRows {
    /// Returns the visible rows from the position of `cursor` on, or `None` if there are no more.
    fn new(cursor: Cursor, limit: Option<BlockNumber>) -> io::Result<Option<Self>> {
        let mut rows = Self { cursor, limit, cut: None };
        Ok((rows.cut_to_visible()? || rows.advance()?).then_some(rows))
    }

    /// Returns whether the row at the cursor is visible, and stores its visible part if that differs.
    fn cut_to_visible(&mut self) -> io::Result<bool> {
        let Some(limit) = self.limit else { return Ok(true) };
        let (key, value) = (self.cursor.key(), self.cursor.value());
        let visible = visible(Table::of_key(key), key, value, limit);
        match visible.map_err(damage)? {
            Visible::No => return Ok(false),
            Visible::Yes => self.cut = None,
            Visible::Cut { last, value } => {
                let term = &key[..key.len() - Suffix::Log.len()];
                self.cut = Some(([term, &last.to_be_bytes()].concat(), value));
            }
        }
        Ok(true)
    }
}

impl Ascending for VisibleRows {
    fn key(&self) -> &[u8] {
        self.cut.as_ref().map_or_else(|| self.cursor.key(), |(key, _)| key)
    }

    fn value(&self) -> &[u8] {
        self.cut.as_ref().map_or_else(|| self.cursor.value(), |(_, value)| value)
    }

    fn advance(&mut self) -> io::Result<bool> {
        while self.cursor.advance()? {
            if self.cut_to_visible()? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The visible part of a row under a run's limit.
pub(super) enum Visible {
    No,
    Yes,
    /// A chunk of logs, some of which are from later blocks. The key of the visible part is lower, but still above
    /// that of the previous chunk.
    Cut {
        last: u64,
        value: Vec<u8>,
    },
}

pub(super) fn visible(
    table: Option<Table>,
    key: &[u8],
    value: &[u8],
    limit: BlockNumber,
) -> Result<Visible, Malformed> {
    let block = match table {
        Some(table) if table.is_numbered() => number_of(key),
        Some(Table::Numbers) => values::decode_number(value)?,
        Some(Table::Transactions) => values::decode_position(value)?.block,
        Some(Table::Accounts | Table::Storage | Table::Trie) => version_of(Suffix::Block, key).unwrap_or_default(),
        Some(Table::Postings) => {
            let last = version_of(Suffix::Log, key).unwrap_or_default();
            if LogId(last).position().block <= limit {
                return Ok(Visible::Yes);
            }
            let ids = cut(postings::decode(last, value)?, limit);
            return Ok(match ids.last() {
                Some(last) => Visible::Cut { last: last.0, value: postings::encode(&ids) },
                None => Visible::No,
            });
        }
        _ => return Ok(Visible::Yes),
    };
    Ok(if block <= limit { Visible::Yes } else { Visible::No })
}
