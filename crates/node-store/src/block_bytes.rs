//! The encoding of an executed block. Its parts are the values of rows, and also parts of entries of the write-ahead
//! log.

use crate::codec::{Malformed, Reader, put_bytes, put_varint};
use crate::error::StoreError;
use crate::values::{
    decode_accounts, decode_body, decode_header, decode_receipts, encode_accounts, encode_body, encode_header,
    encode_receipts,
};
use node_core::block::ExecutedBlock;
use node_core::state::StateChanges;
use node_types::{Bytes, H256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The parts of a block, encoded once for the log and the rows.
pub(crate) struct BlockBytes {
    pub(crate) header: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) receipts: Vec<u8>,
    pub(crate) accounts: Vec<u8>,
}

impl BlockBytes {
    pub(crate) fn encode(block: &ExecutedBlock) -> Self {
        Self {
            header: encode_header(&block.header),
            body: encode_body(&block.body),
            receipts: encode_receipts(&block.receipts),
            accounts: encode_accounts(&block.changes.accounts),
        }
    }

    /// Returns the number of bytes of all parts.
    pub(crate) fn len(&self) -> usize {
        self.header.len() + self.body.len() + self.receipts.len() + self.accounts.len()
    }

    /// Appends all parts, and the deployed code of `block`, which must be the block that was encoded.
    pub(crate) fn append(&self, block: &ExecutedBlock, out: &mut Vec<u8>) {
        let parts = [&self.header, &self.body, &self.receipts, &self.accounts];
        parts.into_iter().for_each(|part| put_bytes(out, part));
        put_varint(out, block.changes.code.len() as u64);
        for (hash, code) in &block.changes.code {
            out.extend_from_slice(hash.as_bytes());
            put_bytes(out, code);
        }
    }
}

/// Decodes the output of [`BlockBytes::append`] from the front of `reader`.
pub(crate) fn decode_block(reader: &mut Reader<'_>) -> Result<ExecutedBlock, StoreError> {
    let header = decode_header(reader.bytes()?)?;
    let body = decode_body(reader.bytes()?)?;
    let receipts = decode_receipts(reader.bytes()?)?;
    let mut accounts = Reader::new(reader.bytes()?, "changes of accounts");
    let changes = StateChanges { accounts: decode_accounts(&mut accounts)?, code: decode_code(reader)? };
    accounts.finish()?;
    Ok(ExecutedBlock {
        header: Arc::new(header),
        body: Arc::new(body),
        receipts: Arc::new(receipts),
        changes: Arc::new(changes),
    })
}

fn decode_code(reader: &mut Reader<'_>) -> Result<BTreeMap<H256, Bytes>, Malformed> {
    (0..reader.count(33)?).map(|_| Ok((reader.h256()?, Bytes::from(reader.bytes()?)))).collect()
}
