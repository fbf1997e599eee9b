//! Checks the rows that can be computed from the block itself, which are all except those of the state.

use super::base::{Base, stored};
use super::content::{self, Part};
use super::counts::{Counted, Counts};
use super::difference::{RowFault, Stop};
use crate::error::StoreError;
use crate::keys::{Key, LogId, Table};
use crate::postings;
use crate::rows::{Tables, Value};
use crate::values;
use node_core::backend::fee_row;
use node_core::block::{ExecutedBlock, SealedHeader};
use node_types::{BlockNumber, H256, U256};
use std::sync::Arc;

/// The values of a block that its child must continue.
#[derive(Clone, Copy)]
pub(super) struct Parent {
    hash: H256,
    total_difficulty: U256,
}

/// Returns what the header of the parent of block `number` says; `None` for the first block. The parent itself is not
/// checked.
pub(super) fn parent_of(base: &Base<'_>, number: BlockNumber) -> Result<Option<Parent>, Stop> {
    let tables = base.tables();
    let Some(parent) = number.checked_sub(1).filter(|parent| *parent >= base.chain.first) else { return Ok(None) };
    let key = Key::of_block(Table::Headers, parent);
    let row = stored(tables, &key, parent)?.ok_or_else(|| RowFault::Missing.of(parent, &key, parent))?;
    let header = values::decode_header(&row).map_err(|error| RowFault::malformed(error).of(parent, &key, parent))?;
    Ok(Some(Parent { hash: header.hash, total_difficulty: header.total_difficulty }))
}

/// Checks the rows of canonical block `number`. `parent` is the parent of the block, and is replaced by the block.
pub(super) fn check(
    base: &Base<'_>,
    number: BlockNumber,
    parent: &mut Option<Parent>,
    counts: &mut Counts,
) -> Result<(), Stop> {
    let tables = base.tables();
    let block = read(tables, number)?;
    let key = |part: Part| {
        let table = match part {
            Part::Header => Table::Headers,
            Part::Body => Table::Bodies,
            Part::Receipts => Table::Receipts,
        };
        Key::of_block(table, number)
    };
    let edits = base.edits(block.header.hash);
    content::check(&block, base.senders, edits).map_err(|(part, fault)| fault.of(number, &key(part), number))?;
    let header = |fault: RowFault| fault.of(number, &key(Part::Header), number);
    check_place(&block.header, number, *parent).map_err(header)?;
    *parent = Some(Parent { hash: block.header.hash, total_difficulty: block.header.total_difficulty });

    let expect = |key: Key, value: &[u8]| base.expect(number, &key, number, value);
    expect(Key::of_hash(Table::Numbers, block.header.hash), &values::encode_number(number))?;
    for (index, transaction) in block.body.transactions.iter().enumerate() {
        let position = values::encode_position(number, index);
        expect(Key::of_hash(Table::Transactions, transaction.hash), &position)?;
    }
    expect(Key::of_block(Table::Fees, number), &values::encode_tips(&fee_row(&block).tips))?;
    counts.add(number, Counted::Transactions, block.body.transactions.len());
    check_postings(tables, number, &block, counts)
}

/// Reads the canonical block `number`, without its changes.
pub(super) fn read(tables: &Tables, number: BlockNumber) -> Result<ExecutedBlock, Stop> {
    let row = |table: Table| -> Result<(Key, Value), Stop> {
        let key = Key::of_block(table, number);
        let row = stored(tables, &key, number)?.ok_or_else(|| RowFault::Missing.of(number, &key, number))?;
        Ok((key, row))
    };
    fn readable<T, E: std::fmt::Display>(key: &Key, number: BlockNumber, read: Result<T, E>) -> Result<T, Stop> {
        read.map_err(|error| RowFault::malformed(error).of(number, key, number))
    }
    let same = |key: &Key, encoded: &[u8], row: &[u8]| {
        RowFault::unless_equal("value", encoded, row).map_err(|fault| fault.of(number, key, number))
    };
    let (key, row_of_header) = row(Table::Headers)?;
    let header = readable(&key, number, values::decode_header(&row_of_header))?;
    same(&key, &values::encode_header(&header), &row_of_header)?;
    let (key, row_of_body) = row(Table::Bodies)?;
    let body = readable(&key, number, values::decode_body(&row_of_body))?;
    same(&key, &values::encode_body(&body), &row_of_body)?;
    let (key, row_of_receipts) = row(Table::Receipts)?;
    let receipts = readable(&key, number, values::decode_receipts(&row_of_receipts))?;
    same(&key, &values::encode_receipts(&receipts), &row_of_receipts)?;
    Ok(ExecutedBlock {
        header: Arc::new(header),
        body: Arc::new(body),
        receipts: Arc::new(receipts),
        changes: Arc::default(),
    })
}

/// Checks the position of a header in the chain.
fn check_place(header: &SealedHeader, number: BlockNumber, parent: Option<Parent>) -> Result<(), RowFault> {
    RowFault::unless_equal("number", number.to_be_bytes(), header.header.number.to_be_bytes())?;
    let mut total = header.header.difficulty;
    match parent {
        Some(parent) => {
            RowFault::unless_equal("parent hash", parent.hash, header.header.parent_hash)?;
            total = total.saturating_add(parent.total_difficulty);
        }
        // Earlier blocks, which are not stored, add to the total difficulty.
        None if number > 0 => return Ok(()),
        None => {}
    }
    RowFault::unless_equal("total difficulty", total.to_big_endian(), header.total_difficulty.to_big_endian())
}

/// Checks that each log of a block is found by each of its terms, however logs are divided into chunks.
fn check_postings(
    tables: &Tables,
    number: BlockNumber,
    block: &ExecutedBlock,
    counts: &mut Counts,
) -> Result<(), Stop> {
    let Some(terms) = postings::terms_of(number, &block.receipts) else { return Ok(()) };
    for (key, ids) in &terms {
        let mut chunk: Vec<LogId> = Vec::new();
        for id in ids {
            if chunk.binary_search(id).is_ok() {
                continue;
            }
            let missing = || RowFault::Missing.of(number, key, id.0);
            chunk = match tables.chunk_from(key, *id, number) {
                Ok(chunk) => chunk.ok_or_else(missing)?,
                Err(StoreError::Malformed(error)) => return Err(RowFault::malformed(error).of(number, key, id.0)),
                Err(error) => return Err(error.into()),
            };
            chunk.binary_search(id).map_err(|_| missing())?;
        }
        counts.add(number, Counted::Postings, ids.len());
    }
    Ok(())
}

/// Returns the hash in the row of canonical block `number`.
pub(super) fn hash_of(tables: &Tables, number: BlockNumber) -> Result<Option<H256>, Stop> {
    let row = stored(tables, &Key::of_block(Table::Headers, number), number)?;
    Ok(row.and_then(|row| values::header_hash(&row).ok()))
}
