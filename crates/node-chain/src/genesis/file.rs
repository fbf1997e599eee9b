//! Parsing of a genesis file: rules, header and accounts.

use super::config::{self, RawObject};
use super::{Genesis, GenesisAccount, GenesisError, number};
use node_core::fees::INITIAL_BASE_FEE;
use node_core::forks::{ChainSpec, Fork};
use node_types::consensus::{EMPTY_OMMERS_HASH, EMPTY_REQUESTS_HASH, EMPTY_ROOT, Header, HeaderField};
use node_types::{Address, H256, U256};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The properties of the file. Numbers stay text, because JSON integers may have more than 64 bits.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(borrow)]
    config: Option<RawObject<'a>>,
    #[serde(borrow)]
    alloc: Option<BTreeMap<String, FileAccount<'a>>>,
    #[serde(borrow)]
    nonce: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    extra_data: Option<String>,
    #[serde(borrow)]
    gas_limit: Option<&'a RawValue>,
    #[serde(borrow)]
    gas_used: Option<&'a RawValue>,
    #[serde(borrow)]
    difficulty: Option<&'a RawValue>,
    mix_hash: Option<String>,
    coinbase: Option<String>,
    #[serde(borrow)]
    number: Option<&'a RawValue>,
    parent_hash: Option<String>,
    #[serde(borrow)]
    base_fee_per_gas: Option<&'a RawValue>,
    #[serde(borrow)]
    excess_blob_gas: Option<&'a RawValue>,
    #[serde(borrow)]
    blob_gas_used: Option<&'a RawValue>,
    parent_beacon_block_root: Option<String>,
}

#[derive(Deserialize)]
struct FileAccount<'a> {
    #[serde(borrow)]
    balance: Option<&'a RawValue>,
    #[serde(borrow)]
    nonce: Option<&'a RawValue>,
    code: Option<String>,
    storage: Option<BTreeMap<String, String>>,
}

pub(super) fn parse(json: &[u8]) -> Result<Genesis, GenesisError> {
    let file: File<'_> = serde_json::from_slice(json).map_err(GenesisError::Json)?;
    let missing = |field: &str| GenesisError::Missing { field: field.to_owned() };
    let spec = config::parse(file.config.as_ref().ok_or_else(|| missing("config"))?)?;
    let header = header(&spec, &file)?;
    let mut alloc = BTreeMap::new();
    for (key, value) in file.alloc.ok_or_else(|| missing("alloc"))? {
        let address = number::address(&format!("alloc.{key}"), &key)?;
        if alloc.insert(address, account(&key, &value)?).is_some() {
            return Err(GenesisError::DuplicateAccount { address });
        }
    }
    Ok(Genesis { spec, header, alloc })
}

/// Returns the header. Fields that the active forks require and the file omits have defaults.
fn header(spec: &ChainSpec, file: &File<'_>) -> Result<Header, GenesisError> {
    let required = |field: &str| GenesisError::Missing { field: field.to_owned() };
    let timestamp = optional_u64("timestamp", file.timestamp)?.unwrap_or(0);
    let number = optional_u64("number", file.number)?.unwrap_or(0);
    if number != 0 {
        return Err(GenesisError::BlockNumber { got: number });
    }
    let before_merge = spec.fork_at(number, timestamp, false);
    // The encoding requires all earlier optional fields: without London's base fee there are no fields of later forks,
    // even if the timestamp is after them.
    let fork = if before_merge >= Fork::London { spec.fork_at(number, timestamp, true) } else { before_merge };
    let optional = |field, key, given: Option<u64>, default| match (fork.has(field), given) {
        (true, given) => Ok(Some(given.unwrap_or(default))),
        (false, None) => Ok(None),
        (false, Some(_)) => Err(GenesisError::UnexpectedField { field: key }),
    };
    let base_fee = optional_u64("baseFeePerGas", file.base_fee_per_gas)?;
    let blob_gas_used = optional_u64("blobGasUsed", file.blob_gas_used)?;
    let excess_blob_gas = optional_u64("excessBlobGas", file.excess_blob_gas)?;
    let beacon_root = optional_hash("parentBeaconBlockRoot", file.parent_beacon_block_root.as_deref())?;
    if beacon_root.is_some() && !fork.has(HeaderField::ParentBeaconBlockRoot) {
        return Err(GenesisError::UnexpectedField { field: "parentBeaconBlockRoot" });
    }
    Ok(Header {
        parent_hash: optional_hash("parentHash", file.parent_hash.as_deref())?.unwrap_or_default(),
        ommers_hash: EMPTY_OMMERS_HASH,
        beneficiary: match &file.coinbase {
            Some(text) => number::address("coinbase", text)?,
            None => Address::zero(),
        },
        // `Genesis::block` computes it from the accounts.
        state_root: H256::zero(),
        transactions_root: EMPTY_ROOT,
        receipts_root: EMPTY_ROOT,
        difficulty: number::u256("difficulty", file.difficulty.ok_or_else(|| required("difficulty"))?)?,
        number,
        gas_limit: number::u64("gasLimit", file.gas_limit.ok_or_else(|| required("gasLimit"))?)?,
        gas_used: optional_u64("gasUsed", file.gas_used)?.unwrap_or(0),
        timestamp,
        extra_data: number::bytes("extraData", file.extra_data.as_deref().unwrap_or(""))?,
        mix_hash: optional_hash("mixHash", file.mix_hash.as_deref())?.unwrap_or_default(),
        nonce: optional_u64("nonce", file.nonce)?.unwrap_or(0).to_be_bytes(),
        base_fee_per_gas: optional(HeaderField::BaseFeePerGas, "baseFeePerGas", base_fee, INITIAL_BASE_FEE)?,
        withdrawals_root: fork.has(HeaderField::WithdrawalsRoot).then_some(EMPTY_ROOT),
        blob_gas_used: optional(HeaderField::BlobGasUsed, "blobGasUsed", blob_gas_used, 0)?,
        excess_blob_gas: optional(HeaderField::ExcessBlobGas, "excessBlobGas", excess_blob_gas, 0)?,
        // The genesis block has no parent beacon block (EIP-4788).
        parent_beacon_block_root: fork.has(HeaderField::ParentBeaconBlockRoot).then(|| beacon_root.unwrap_or_default()),
        requests_hash: fork.has(HeaderField::RequestsHash).then_some(EMPTY_REQUESTS_HASH),
        ..Header::default()
    })
}

fn account(key: &str, account: &FileAccount<'_>) -> Result<GenesisAccount, GenesisError> {
    let field = |name: &str| format!("alloc.{key}.{name}");
    let mut storage = BTreeMap::new();
    for (slot, value) in account.storage.iter().flatten() {
        let name = field(&format!("storage.{slot}"));
        let value = U256::from_big_endian(number::h256(&name, value)?.as_bytes());
        storage.insert(number::h256(&name, slot)?, value);
    }
    Ok(GenesisAccount {
        balance: match account.balance {
            Some(value) => number::u256(&field("balance"), value)?,
            None => U256::zero(),
        },
        nonce: optional_u64(&field("nonce"), account.nonce)?.unwrap_or(0),
        code: number::bytes(&field("code"), account.code.as_deref().unwrap_or(""))?,
        storage,
    })
}

fn optional_u64(field: &str, value: Option<&RawValue>) -> Result<Option<u64>, GenesisError> {
    value.map(|value| number::u64(field, value)).transpose()
}

fn optional_hash(field: &str, text: Option<&str>) -> Result<Option<H256>, GenesisError> {
    text.map(|text| number::h256(field, text)).transpose()
}
