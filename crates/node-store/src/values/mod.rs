//! Encodings of the values of rows, which balance size against the speed of reading.

mod block;
mod changes;

pub(crate) use block::{
    decode_block_logs, decode_body, decode_header, decode_receipts, encode_body, encode_header, encode_receipts,
    header_hash,
};
pub(crate) use changes::{ChangesRow, decode_accounts, decode_changes_row, encode_accounts, encode_changes_row};

use crate::codec::{Malformed, Reader, put_u256, put_varint};
use crate::keys::TrieId;
use node_core::block::TransactionPosition;
use node_core::state::AccountState;
use node_types::consensus::{Account, EMPTY_ROOT};
use node_types::{BlockNumber, H256, KECCAK_EMPTY, U256};

pub(crate) fn encode_number(number: BlockNumber) -> Vec<u8> {
    let mut out = Vec::with_capacity(5);
    put_varint(&mut out, number);
    out
}

pub(crate) fn decode_number(value: &[u8]) -> Result<BlockNumber, Malformed> {
    let mut reader = Reader::new(value, "a row of numbers");
    let number = reader.varint()?;
    reader.finish()?;
    Ok(number)
}

/// Encodes the position of a transaction.
pub(crate) fn encode_position(block: BlockNumber, index: usize) -> Vec<u8> {
    let mut out = encode_number(block);
    put_varint(&mut out, index as u64);
    out
}

pub(crate) fn decode_position(value: &[u8]) -> Result<TransactionPosition, Malformed> {
    let mut reader = Reader::new(value, "a row of transactions");
    let (block, index) = (reader.varint()?, reader.varint()?);
    let index = usize::try_from(index).map_err(|_| reader.malformed())?;
    reader.finish()?;
    Ok(TransactionPosition { block, index })
}

/// Encodes the value of a slot: big-endian without leading zeros. Zero is empty.
pub(crate) fn encode_word(word: U256) -> Vec<u8> {
    word.to_big_endian()[32 - word.bits().div_ceil(8)..].to_vec()
}

pub(crate) fn decode_word(value: &[u8]) -> Result<U256, Malformed> {
    if value.len() > 32 {
        return Err(Malformed("a row of storage"));
    }
    Ok(U256::from_big_endian(value))
}

/// Encodes effective tips in wei per gas with the gas used, in order.
pub(crate) fn encode_tips(tips: &[(U256, u64)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(tips.len() * 12);
    for (tip, gas_used) in tips {
        put_u256(&mut out, *tip);
        put_varint(&mut out, *gas_used);
    }
    out
}

pub(crate) fn decode_tips(value: &[u8]) -> Result<Vec<(U256, u64)>, Malformed> {
    let mut reader = Reader::new(value, "a row of fees");
    let mut tips = Vec::new();
    while !reader.is_empty() {
        tips.push((reader.u256()?, reader.varint()?));
    }
    Ok(tips)
}

/// An account as of some block. An account that does not exist has an empty value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccountRow {
    pub(crate) state: AccountState,
    /// The storage trie and its root hash. `None` if the account has no storage. The hash is zero if it is not known.
    pub(crate) storage: Option<(TrieId, H256)>,
}

const HAS_CODE: u8 = 1;
const HAS_STORAGE: u8 = 2;

impl AccountRow {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(96);
        let code = if self.state.has_code() { HAS_CODE } else { 0 };
        let storage = if self.storage.is_some() { HAS_STORAGE } else { 0 };
        out.push(code | storage);
        put_varint(&mut out, self.state.nonce);
        put_u256(&mut out, self.state.balance);
        if self.state.has_code() {
            out.extend_from_slice(self.state.code_hash.as_bytes());
        }
        if let Some((trie, root)) = self.storage {
            put_varint(&mut out, trie.0);
            out.extend_from_slice(root.as_bytes());
        }
        out
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Option<Self>, Malformed> {
        if value.is_empty() {
            return Ok(None);
        }
        let mut reader = Reader::new(value, "a row of accounts");
        let flags = reader.byte()?;
        let (nonce, balance) = (reader.varint()?, reader.u256()?);
        let code_hash = if flags & HAS_CODE != 0 { reader.h256()? } else { KECCAK_EMPTY };
        let storage = if flags & HAS_STORAGE != 0 { Some((TrieId(reader.varint()?), reader.h256()?)) } else { None };
        reader.finish()?;
        Ok(Some(Self { state: AccountState { nonce, balance, code_hash }, storage }))
    }

    /// Returns the value of the account in the state trie.
    pub(crate) fn leaf(&self) -> Account {
        let AccountState { nonce, balance, code_hash } = self.state;
        Account { nonce, balance, storage_root: self.storage.map_or(EMPTY_ROOT, |(_, root)| root), code_hash }
    }
}
