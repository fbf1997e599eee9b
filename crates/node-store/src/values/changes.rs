//! The changes of a block.

use crate::codec::{Malformed, Reader, put_u256, put_varint};
use crate::keys::TrieId;
use node_core::state::{AccountChange, AccountState};
use node_core::trie::NibblePath;
use node_types::{Address, Bytes, H256, KECCAK_EMPTY};
use std::collections::BTreeMap;

const EXISTS: u8 = 1;
const CLEARED: u8 = 2;
const HAS_CODE: u8 = 4;

/// Encodes changes of accounts and their slots.
pub(crate) fn encode_accounts(accounts: &BTreeMap<Address, AccountChange>) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 * accounts.len() + 8);
    put_varint(&mut out, accounts.len() as u64);
    for (address, change) in accounts {
        out.extend_from_slice(address.as_bytes());
        let exists = if change.account.is_some() { EXISTS } else { 0 };
        let cleared = if change.storage_cleared { CLEARED } else { 0 };
        let code = if change.account.is_some_and(|account| account.has_code()) { HAS_CODE } else { 0 };
        out.push(exists | cleared | code);
        if let Some(account) = change.account {
            put_varint(&mut out, account.nonce);
            put_u256(&mut out, account.balance);
            if account.has_code() {
                out.extend_from_slice(account.code_hash.as_bytes());
            }
        }
        put_varint(&mut out, change.storage.len() as u64);
        for (slot, value) in &change.storage {
            out.extend_from_slice(slot.as_bytes());
            put_u256(&mut out, *value);
        }
    }
    out
}

/// Decodes the output of [`encode_accounts`] from the front of `reader`.
pub(crate) fn decode_accounts(reader: &mut Reader<'_>) -> Result<BTreeMap<Address, AccountChange>, Malformed> {
    let mut accounts = BTreeMap::new();
    for _ in 0..reader.count(22)? {
        let address = reader.address()?;
        let flags = reader.byte()?;
        let account = if flags & EXISTS != 0 {
            let (nonce, balance) = (reader.varint()?, reader.u256()?);
            let code_hash = if flags & HAS_CODE != 0 { reader.h256()? } else { KECCAK_EMPTY };
            Some(AccountState { nonce, balance, code_hash })
        } else {
            None
        };
        let mut storage = BTreeMap::new();
        for _ in 0..reader.count(33)? {
            storage.insert(reader.h256()?, reader.u256()?);
        }
        accounts.insert(address, AccountChange { account, storage_cleared: flags & CLEARED != 0, storage });
    }
    Ok(accounts)
}

/// The changes of a block, and the keys of the rows of the state that it wrote.
#[derive(Debug)]
pub(crate) struct ChangesRow {
    pub(crate) accounts: BTreeMap<Address, AccountChange>,
    /// Hashes of the deployed code, which remains stored when the block leaves the chain.
    pub(crate) code: Vec<H256>,
    /// The storage trie of each of `accounts` in which slots were written.
    pub(crate) tries: Vec<Option<TrieId>>,
    /// Positions at which nodes were written.
    pub(crate) nodes: Vec<(TrieId, NibblePath)>,
}

/// Encodes a row of changes. `accounts` is the output of [`encode_accounts`].
pub(crate) fn encode_changes_row(
    accounts: &[u8],
    code: &BTreeMap<H256, Bytes>,
    tries: &[Option<TrieId>],
    nodes: &[(TrieId, NibblePath)],
) -> Vec<u8> {
    let mut out = accounts.to_vec();
    put_varint(&mut out, code.len() as u64);
    code.keys().for_each(|hash| out.extend_from_slice(hash.as_bytes()));
    // The trie of accounts is not a storage trie, so its id stands for `None`.
    tries.iter().for_each(|trie| put_varint(&mut out, trie.unwrap_or(TrieId::ACCOUNTS).0));
    for (trie, position) in nodes {
        put_varint(&mut out, trie.0);
        out.push(position.len() as u8);
        out.extend_from_slice(position.packed());
    }
    out
}

pub(crate) fn decode_changes_row(value: &[u8]) -> Result<ChangesRow, Malformed> {
    let mut reader = Reader::new(value, "a row of changes");
    let accounts = decode_accounts(&mut reader)?;
    let code = (0..reader.count(32)?).map(|_| reader.h256()).collect::<Result<_, _>>()?;
    let trie = |reader: &mut Reader<'_>| reader.varint().map(TrieId);
    let tries = (0..accounts.len()).map(|_| Ok(Some(trie(&mut reader)?).filter(|trie| *trie != TrieId::ACCOUNTS)));
    let tries = tries.collect::<Result<_, _>>()?;
    let mut nodes = Vec::new();
    while !reader.is_empty() {
        let (trie, length) = (trie(&mut reader)?, usize::from(reader.byte()?));
        let packed = reader.take(length.div_ceil(2))?;
        nodes.push((trie, NibblePath::ROOT.join_packed(length, packed).ok_or(reader.malformed())?));
    }
    Ok(ChangesRow { accounts, code, tries, nodes })
}
