//! Decoding of stored bytes without a store, for tests with damaged bytes.

use crate::block_bytes::BlockBytes;
use crate::error::StoreError;
use crate::journal::{self, LoggedChange};
use crate::keys::Table;
use crate::postings;
use crate::trie::Decoder;
use crate::values::{self, AccountRow};
use crate::{runs, store};
use node_core::backend::{Record, RecordKind, RecordWrite};
use node_core::block::ExecutedBlock;
use node_core::trie::NibblePath;
use node_types::U256;
use std::fmt::Debug;

/// Decodes the value of a row.
///
/// # Errors
/// If the value is malformed.
///
/// # Panics
/// If encoding and decoding the decoded value again results in a different value.
pub fn decode_row(table: Table, value: &[u8]) -> Result<(), StoreError> {
    match table {
        Table::Headers => {
            values::header_hash(value)?;
            again(value, values::decode_header, values::encode_header)
        }
        Table::Numbers => again(value, values::decode_number, |number| values::encode_number(*number)),
        Table::Bodies => again(value, values::decode_body, values::encode_body),
        Table::Receipts => again(value, values::decode_receipts, |receipts| values::encode_receipts(receipts)),
        Table::Transactions => {
            again(value, values::decode_position, |position| values::encode_position(position.block, position.index))
        }
        Table::Accounts => again(value, AccountRow::decode, |row| row.map_or_else(Vec::new, |row| row.encode())),
        Table::Storage => again(value, values::decode_word, |word| values::encode_word(*word)),
        // Any bytes are valid. Side blocks are also entries of the log, see [`decode_entry`].
        Table::Code | Table::SideBlocks | Table::Records => Ok(()),
        Table::Trie => {
            // The row twice, so that a delta has a row to which it applies.
            let mut decoder = Decoder::new(NibblePath::ROOT);
            if decoder.read(value)?.is_none() {
                decoder.read(value)?;
            }
            Ok(())
        }
        Table::Postings => again(value, |value| postings::decode(1 << 24, value), |ids| postings::encode(ids)),
        Table::Changes => Ok(values::decode_changes_row(value).map(drop)?),
        Table::Fees => again(value, values::decode_tips, |tips| values::encode_tips(tips)),
    }
}

fn again<T: Debug + PartialEq, E: Into<StoreError> + Debug>(
    value: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, E>,
    encode: impl Fn(&T) -> Vec<u8>,
) -> Result<(), StoreError> {
    let first = decode(value).map_err(Into::into)?;
    match decode(&encode(&first)) {
        Ok(second) => assert_eq!(first, second, "another value"),
        Err(error) => panic!("{first:?} is malformed after it was encoded again: {error:?}"),
    }
    Ok(())
}

/// Decodes an entry of the write-ahead log.
///
/// # Errors
/// If the entry is malformed.
pub fn decode_entry(payload: &[u8]) -> Result<(), StoreError> {
    LoggedChange::decode(payload).map(drop)
}

/// Reads the file of a run as if all its checksums were right. Returns the number of its rows.
///
/// # Errors
/// If the file is malformed.
///
/// # Panics
/// If a search returns a row before the searched one.
pub fn read_run(bytes: &[u8]) -> Result<usize, StoreError> {
    runs::read_run(bytes).map_err(StoreError::File)
}

/// Returns the file of the manifest with this number and content: two copies with their checksums.
pub fn seal_manifest(number: u64, content: &[u8]) -> Vec<u8> {
    store::seal_manifest(number, content.to_vec())
}

/// Returns example rows of `block`, and of tables that do not depend on a block.
pub fn sample_rows(block: &ExecutedBlock) -> Vec<(Table, Vec<u8>)> {
    let BlockBytes { header, body, receipts, accounts } = BlockBytes::encode(block);
    let account = block.changes.accounts.values().find_map(|change| change.account);
    let account = account.map_or_else(Vec::new, |state| AccountRow { state, storage: None }.encode());
    let leaf = [vec![1], vec![7; 32]].concat();
    let hash = [5; 32];
    let branch = [&[2, 0, 0b101][..], &hash, &hash].concat();
    let child = [&[0x12][..], &hash].concat();
    let delta = [&[12, 0, 0b1100][..], &[0x80, 0xa0], &hash].concat();
    let extended = [&[3, 2, 0x12, 0, 0b11][..], &hash, &hash].concat();
    vec![
        (Table::Headers, header),
        (Table::Numbers, values::encode_number(300)),
        (Table::Bodies, body),
        (Table::Receipts, receipts),
        (Table::Transactions, values::encode_position(300, 2)),
        (Table::Accounts, account),
        (Table::Storage, values::encode_word(U256::from(300))),
        (Table::Code, vec![0x60]),
        (Table::Trie, leaf),
        (Table::Trie, branch),
        (Table::Trie, child),
        (Table::Trie, delta),
        (Table::Trie, extended),
        (Table::Postings, vec![1, 2, 0x80, 1]),
        (Table::Changes, values::encode_changes_row(&accounts, block.changes.code.keys())),
        (Table::Fees, values::encode_tips(&[(U256::from(300), 21_000), (U256::MAX, 1)])),
    ]
}

/// Returns an example of each kind of log entry.
pub fn sample_entries(block: &ExecutedBlock) -> Vec<Vec<u8>> {
    let bytes = || BlockBytes::encode(block);
    let record = Record { key: vec![1, 2], value: vec![3; 40] };
    let writes = [RecordWrite::Put(RecordKind::Filter, record), RecordWrite::Delete(RecordKind::Snapshot, vec![4])];
    vec![
        journal::append(block, &bytes(), &writes),
        journal::switch(3, &[(block.clone(), bytes()), (block.clone(), bytes())], &writes),
        journal::side_block(block),
        journal::records(&writes),
        journal::switch_to(3, std::slice::from_ref(block), &writes),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_core::backend::suite::Random;

    #[test]
    fn samples_are_accepted() {
        let block = Random(1).chain(1).head().clone();
        for (table, value) in sample_rows(&block) {
            // A delta alone is incomplete, but not malformed.
            decode_row(table, &value).unwrap();
        }
        for entry in sample_entries(&block) {
            decode_entry(&entry).unwrap();
            decode_entry(&entry[..entry.len() - 1]).unwrap_err();
        }
        decode_row(Table::Headers, &[0; 5]).unwrap_err();
    }
}
