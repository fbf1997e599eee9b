//! State dumps in anvil's format: gzipped JSON in hex. Accounts can be exchanged with anvil in both directions.

use super::named;
use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use crate::wire::{Hex, Loose};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use node_core::producer::WholeAccount;
use node_types::wire::{AddressData, BytesData, Data, HashData, JsonBuffer, StorageKey, Word, append_json};
use node_types::{Address, Bytes, U256};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

/// Maximum number of bytes of decompressed JSON: what a request body of the default size can contain if it compresses
/// well.
const MAX_DUMP: u64 = 256 << 20;

/// A dump. It has no blocks: the chain that loads it keeps its own, and its headers commit to the accounts from then
/// on. Anvil requires the fields to be present.
#[derive(Serialize)]
struct Dump {
    block: Option<()>,
    accounts: BTreeMap<AddressData, Account>,
    best_block_number: Option<()>,
    blocks: [(); 0],
    transactions: [(); 0],
}

#[derive(Serialize)]
struct Account {
    nonce: u64,
    balance: Hex<U256>,
    code: BytesData,
    storage: BTreeMap<HashData, Word>,
}

/// The part of a dump that is loaded.
#[derive(Deserialize)]
struct Loaded {
    accounts: BTreeMap<AddressData, LoadedAccount>,
}

#[derive(Deserialize)]
struct LoadedAccount {
    nonce: Loose<u64>,
    balance: Loose<U256>,
    #[serde(default)]
    code: Option<BytesData>,
    #[serde(default)]
    storage: BTreeMap<String, Loose<U256>>,
}

pub(super) fn methods() -> Vec<Method> {
    [
        named(
            &["anvil_dumpState", "hardhat_dumpState"],
            &["preserveHistory?"],
            "All accounts with code and storage, as gzipped JSON.",
            |scope, (_history,): (Option<bool>,)| dump(scope),
        ),
        named(
            &["anvil_loadState", "hardhat_loadState"],
            &["dump"],
            "Loads the accounts of a dump; others are unchanged.",
            |scope, (dump,): (BytesData,)| load(scope, &dump),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn dump(scope: Scope<'_>) -> Result<BytesData, RpcError> {
    let json = write_dump(scope.control()?.dump()?);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let bytes = json.map_err(io::Error::from).and_then(|json| encoder.write_all(&json)).and_then(|()| encoder.finish());
    bytes.map(|bytes| Data(Bytes::from(bytes))).map_err(|error| RpcError::internal(&error))
}

fn load(scope: Scope<'_>, dump: &[u8]) -> Result<bool, RpcError> {
    let accounts = read_dump(dump).map_err(|error| RpcError::argument(0, error))?;
    scope.control()?.load(accounts)?;
    Ok(true)
}

/// Encodes accounts as the JSON of a dump.
///
/// # Errors
/// Only if encoding fails, which the caller cannot cause.
pub fn write_dump(accounts: BTreeMap<Address, WholeAccount>) -> Result<Vec<u8>, serde_json::Error> {
    let accounts = accounts.into_iter().map(|(address, account)| {
        let WholeAccount { nonce, balance, code, storage } = account;
        let storage = storage.into_iter().map(|(slot, value)| (Data(slot), Word(value))).collect();
        (Data(address), Account { nonce, balance: Hex(balance), code: Data(code), storage })
    });
    let dump =
        Dump { block: None, accounts: accounts.collect(), best_block_number: None, blocks: [], transactions: [] };
    let mut json = JsonBuffer::default();
    append_json(&mut json, &dump)?;
    Ok(json.into())
}

/// The bytes are not a valid dump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a state dump: {0}")]
pub struct InvalidDump(String);

/// Decodes the accounts of a dump, which may be compressed with gzip.
///
/// # Errors
/// [`InvalidDump`] if `dump` is not a dump, or is too long.
pub fn read_dump(dump: &[u8]) -> Result<BTreeMap<Address, WholeAccount>, InvalidDump> {
    let mut json = Vec::new();
    // Files, and older versions of anvil, are not compressed.
    if dump.starts_with(b"{") {
        json.extend_from_slice(dump);
    } else {
        let read = GzDecoder::new(dump).take(MAX_DUMP + 1).read_to_end(&mut json);
        read.map_err(|error| InvalidDump(error.to_string()))?;
    }
    if json.len() as u64 > MAX_DUMP {
        return Err(InvalidDump(format!("it has more than {MAX_DUMP} bytes")));
    }
    let loaded: Loaded = serde_json::from_slice(&json).map_err(|error| InvalidDump(error.to_string()))?;
    let mut accounts = BTreeMap::new();
    for (address, LoadedAccount { nonce, balance, code, storage }) in loaded.accounts {
        let slot = |(slot, value): (String, Loose<U256>)| {
            let key = slot.parse::<StorageKey>().map_err(|error| InvalidDump(format!("slot {slot}: {error}")))?;
            Ok((key.0, value.0))
        };
        let storage = storage.into_iter().map(slot).collect::<Result<_, InvalidDump>>()?;
        let code = code.unwrap_or_default().0;
        accounts.insert(address.0, WholeAccount { nonce: nonce.0, balance: balance.0, code, storage });
    }
    Ok(accounts)
}
