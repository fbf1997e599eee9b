//! State dumps in anvil's format: gzipped JSON in hex. Accounts can be exchanged with anvil in both directions.

use super::named;
use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use crate::wire::{Hex, Loose};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use node_core::context::Context;
use node_core::node::NodeError;
use node_core::producer::WholeAccount;
use node_types::wire::{AddressData, BytesData, Data, JsonBuffer, StorageKey, Word, append_digits};
use node_types::{Address, H256, U256};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Read, Write};

/// Maximum number of bytes of decompressed JSON: what a request body of the default size can contain if it compresses
/// well.
const MAX_DUMP: u64 = 256 << 20;

/// A dump. It has no blocks: the chain that loads it keeps its own, and its headers commit to the accounts from then
/// on. Anvil requires the fields to be present.
#[derive(Serialize)]
struct Dump<'a> {
    block: Option<()>,
    #[serde(serialize_with = "write_accounts")]
    accounts: &'a BTreeMap<Address, WholeAccount>,
    best_block_number: Option<()>,
    blocks: [(); 0],
    transactions: [(); 0],
}

#[derive(Serialize)]
struct Account<'a> {
    nonce: u64,
    balance: Hex<U256>,
    code: BytesData,
    #[serde(serialize_with = "write_storage")]
    storage: &'a BTreeMap<H256, U256>,
}

fn write_accounts<S: Serializer>(accounts: &BTreeMap<Address, WholeAccount>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(accounts.iter().map(|(address, account)| {
        let WholeAccount { nonce, balance, code, storage } = account;
        (Data(*address), Account { nonce: *nonce, balance: Hex(*balance), code: Data(code.clone()), storage })
    }))
}

fn write_storage<S: Serializer>(storage: &BTreeMap<H256, U256>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(storage.iter().map(|(slot, value)| (Data(*slot), Word(*value))))
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
        ["anvil_dumpState", "hardhat_dumpState"].map(dumping).into(),
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

fn dumping(name: &'static str) -> Method {
    let about = "All accounts with code and storage, as gzipped JSON.";
    Method::writing(name, &["preserveHistory?"], about, |scope, (_history,): (Option<bool>,), out| dump(scope, out))
        .controlling()
}

/// Writes the accounts while they are encoded and compressed. Their memory counts as that of the response.
fn dump(scope: Scope<'_>, out: &mut JsonBuffer) -> Result<(), RpcError> {
    let accounts = scope.control()?.dump(scope.context, |bytes| out.set_aside(bytes))?;
    out.extend_from_slice(b"\"0x");
    let encoder = GzEncoder::new(Digits { out: &mut *out, context: scope.context }, Compression::fast());
    let mut pieces = BufWriter::with_capacity(PIECE, encoder);
    let written = write_dump(&mut pieces, &accounts).and_then(|()| pieces.into_inner()?.finish().map(drop));
    drop(accounts);
    written.map_err(|error| match (scope.context.check(), out.full()) {
        (Err(over), _) => NodeError::from(over).into(),
        (_, Some(full)) => NodeError::ResponseTooLarge(full).into(),
        _ => RpcError::internal(&error),
    })?;
    out.return_aside();
    out.push(b'"');
    Ok(())
}

/// Number of bytes that are compressed at a time.
const PIECE: usize = 64 << 10;

/// Writes bytes as hex digits, until the request has to end.
struct Digits<'a> {
    out: &'a mut JsonBuffer,
    context: &'a Context,
}

impl Write for Digits<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.context.check().map_err(io::Error::other)?;
        append_digits(self.out, bytes);
        self.out.full().map_or(Ok(bytes.len()), |full| Err(io::Error::other(full)))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn load(scope: Scope<'_>, dump: &[u8]) -> Result<bool, RpcError> {
    let accounts = read_dump(dump).map_err(|error| RpcError::argument(0, error))?;
    scope.control()?.load(accounts)?;
    Ok(true)
}

/// Writes accounts as the JSON of a dump.
///
/// # Errors
/// Those of `out`.
pub fn write_dump(out: impl Write, accounts: &BTreeMap<Address, WholeAccount>) -> io::Result<()> {
    let dump = Dump { block: None, accounts, best_block_number: None, blocks: [], transactions: [] };
    Ok(serde_json::to_writer(out, &dump)?)
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
