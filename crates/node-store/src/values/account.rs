//! Accounts.

use crate::codec::{Malformed, Reader, put_u256, put_varint};
use crate::keys::TrieId;
use node_core::state::AccountState;
use node_types::consensus::{Account, EMPTY_ROOT};
use node_types::{H256, KECCAK_EMPTY};

/// An account as of some block. An account that does not exist has an empty value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccountRow {
    pub(crate) state: AccountState,
    /// The storage trie and its root hash. `None` if the account has no storage.
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
