//! The changes of a block.

use crate::codec::{Malformed, Reader, put_u256, put_varint};
use node_core::state::{AccountChange, AccountState};
use node_types::{Address, H256, KECCAK_EMPTY};
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

/// The changes of a block.
#[derive(Debug)]
pub(crate) struct ChangesRow {
    pub(crate) accounts: BTreeMap<Address, AccountChange>,
    /// Hashes of the deployed code, which remains stored when the block leaves the chain.
    pub(crate) code: Vec<H256>,
}

/// Encodes a row of changes. `accounts` is the output of [`encode_accounts`].
pub(crate) fn encode_changes_row<'a>(accounts: &[u8], code: impl ExactSizeIterator<Item = &'a H256>) -> Vec<u8> {
    let mut out = accounts.to_vec();
    put_varint(&mut out, code.len() as u64);
    code.for_each(|hash| out.extend_from_slice(hash.as_bytes()));
    out
}

pub(crate) fn decode_changes_row(value: &[u8]) -> Result<ChangesRow, Malformed> {
    let mut reader = Reader::new(value, "a row of changes");
    let accounts = decode_accounts(&mut reader)?;
    let code = (0..reader.count(32)?).map(|_| reader.h256()).collect::<Result<_, _>>()?;
    reader.finish()?;
    Ok(ChangesRow { accounts, code })
}
