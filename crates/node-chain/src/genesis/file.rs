//! Reading a genesis file: rules, header and accounts.

use super::config::{self, RawObject};
use super::{Genesis, GenesisAccount, GenesisError, number};
use node_core::protocol::fees::INITIAL_BASE_FEE;
use node_core::protocol::{ChainSpec, Fork};
use node_types::consensus::{EMPTY_OMMERS_HASH, EMPTY_REQUESTS_HASH, EMPTY_ROOT, Header, HeaderField};
use node_types::{Address, H256, U256};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

const KEYS: [&str; 17] = [
    "alloc",
    "baseFeePerGas",
    "blobGasUsed",
    "coinbase",
    "config",
    "difficulty",
    "excessBlobGas",
    "extraData",
    "gasLimit",
    "gasUsed",
    "mixHash",
    "nonce",
    "number",
    "parentBeaconBlockRoot",
    "parentHash",
    "stateRoot",
    "timestamp",
];

/// The keys of [`AccountFields`].
const ACCOUNT_KEYS: [&str; 4] = ["balance", "nonce", "code", "storage"];

/// An account in a file. Numbers are kept as text, because JSON integers may have more than 64 bits.
#[derive(Deserialize)]
struct AccountFields {
    balance: Option<Box<RawValue>>,
    nonce: Option<Box<RawValue>>,
    code: Option<String>,
    storage: Option<Slots>,
}

/// The slots of an account with their values, in the order of the file. Unlike a map, it contains all entries if
/// several have the same key.
struct Slots(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Slots;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of slots")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Slots, A::Error> {
                std::iter::from_fn(|| map.next_entry().transpose()).collect::<Result<_, _>>().map(Slots)
            }
        }
        json.deserialize_map(Object)
    }
}

/// An object with the fields of an account. Without this wrapper, serde would also accept an array of their values.
struct FileAccount(AccountFields);

impl<'de> Deserialize<'de> for FileAccount {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = FileAccount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the fields of an account")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FileAccount, A::Error> {
                AccountFields::deserialize(MapAccessDeserializer::new(Spelled(map))).map(FileAccount)
            }
        }
        json.deserialize_map(Object)
    }
}

/// The properties of an account, whose keys are checked.
struct Spelled<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Spelled<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some(key) = self.0.next_key::<String>()? else { return Ok(None) };
        number::check_spelling("", &key, ACCOUNT_KEYS).map_err(A::Error::custom)?;
        seed.deserialize(key.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

/// Receives the accounts of a file one by one.
type Receiver<'a> = &'a mut dyn FnMut(Address, GenesisAccount) -> Result<(), GenesisError>;

pub(super) fn parse(json: &[u8]) -> Result<Genesis, GenesisError> {
    let mut alloc = BTreeMap::new();
    let mut receive = |address, account| {
        let earlier = alloc.insert(address, account);
        earlier.map_or(Ok(()), |_| Err(GenesisError::DuplicateAccount { address }))
    };
    let (genesis, stated) = read(serde_json::Deserializer::from_slice(json), &mut receive)?;
    let genesis = Genesis { alloc, ..genesis };
    if let Some(stated) = stated {
        check_root(genesis.root_of_accounts(), stated)?;
    }
    Ok(genesis)
}

/// Reads a file whose accounts need not fit into memory, and passes each account to `each`. Returns a genesis without
/// accounts, and the root of its accounts if the file states it.
pub(super) fn read_large(file: impl Read, each: Receiver<'_>) -> Result<(Genesis, Option<H256>), GenesisError> {
    read(serde_json::Deserializer::from_reader(file), each)
}

/// Compares the root of the accounts with the one that the file states.
pub(super) fn check_root(computed: H256, stated: H256) -> Result<(), GenesisError> {
    if computed == stated { Ok(()) } else { Err(GenesisError::StateRoot { computed, stated }) }
}

fn read<'de>(
    mut json: serde_json::Deserializer<impl serde_json::de::Read<'de>>,
    each: Receiver<'_>,
) -> Result<(Genesis, Option<H256>), GenesisError> {
    let mut failed = None;
    let mut file = File::default();
    let accounts = Accounts { each, failed: &mut failed };
    let read = FileReader { file: &mut file, accounts }.deserialize(&mut json).and_then(|()| json.end());
    match (failed, read) {
        (Some(error), _) => return Err(error),
        (None, read) => read.map_err(GenesisError::Json)?,
    }
    let missing = |field: &str| GenesisError::Missing { field: field.to_owned() };
    let config: RawObject<'_> = number::typed("config", file.get("config").ok_or_else(|| missing("config"))?)?;
    let spec = config::parse(&config)?;
    let header = header(&spec, &file)?;
    let (state_root, stated) = match (file.has_accounts, file.hash("stateRoot")?) {
        (true, root) => (None, root),
        (false, Some(root)) => (Some(root), None),
        (false, None) => return Err(missing("alloc")),
    };
    Ok((Genesis { spec, header, alloc: BTreeMap::new(), state_root }, stated))
}

/// The properties of a file other than `alloc`.
#[derive(Default)]
struct File {
    properties: BTreeMap<String, Box<RawValue>>,
    /// Whether the file has `alloc`.
    has_accounts: bool,
}

impl File {
    /// Returns the property, or `None` if it is absent or null.
    fn get(&self, key: &str) -> Option<&RawValue> {
        self.properties.get(key).map(|value| &**value).filter(|value| value.get() != "null")
    }

    fn u64(&self, key: &str) -> Result<Option<u64>, GenesisError> {
        self.get(key).map(|value| number::u64(key, value)).transpose()
    }

    fn text(&self, key: &str) -> Result<Option<String>, GenesisError> {
        self.get(key).map(|value| number::string(key, value)).transpose()
    }

    fn hash(&self, key: &str) -> Result<Option<H256>, GenesisError> {
        self.text(key)?.map(|text| number::h256(key, &text)).transpose()
    }
}

/// Reads the top-level object of a file.
struct FileReader<'a, 'b> {
    file: &'a mut File,
    accounts: Accounts<'a, 'b>,
}

impl<'de> DeserializeSeed<'de> for FileReader<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FileReader<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            number::check_spelling("", &key, KEYS).map_err(A::Error::custom)?;
            let is_new = if key == "alloc" {
                !std::mem::replace(&mut self.file.has_accounts, map.next_value_seed(&mut self.accounts)?)
            } else {
                self.file.properties.insert(key.clone(), map.next_value()?).is_none()
            };
            if !is_new {
                return Err(A::Error::custom(format_args!("duplicate field `{key}`")));
            }
        }
        Ok(())
    }
}

/// Reads the property `alloc`. Returns whether it has a value.
struct Accounts<'a, 'b> {
    each: Receiver<'b>,
    /// Why the receiver refused an account.
    failed: &'a mut Option<GenesisError>,
}

impl<'de> DeserializeSeed<'de> for &mut Accounts<'_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<bool, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Accounts<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of accounts")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while let Some((key, value)) = map.next_entry::<String, FileAccount>()? {
            let address = number::address(&format!("alloc.{key}"), &key);
            let received = address.and_then(|address| (self.each)(address, account(&key, &value.0)?));
            if let Err(error) = received {
                *self.failed = Some(error);
                return Err(A::Error::custom("an account is refused"));
            }
        }
        Ok(true)
    }
}

/// Returns the header. Fields that the active forks require but the file omits have defaults.
fn header(spec: &ChainSpec, file: &File) -> Result<Header, GenesisError> {
    let required = |field: &str| GenesisError::Missing { field: field.to_owned() };
    let timestamp = file.u64("timestamp")?.unwrap_or(0);
    let number = file.u64("number")?.unwrap_or(0);
    if number != 0 {
        return Err(GenesisError::BlockNumber { got: number });
    }
    let before_merge = spec.fork_at(number, timestamp, false);
    // The encoding requires all earlier optional fields: without London's base fee there can be no fields of later
    // forks, even if the timestamp is after their activation.
    let fork = if before_merge >= Fork::London { spec.fork_at(number, timestamp, true) } else { before_merge };
    let optional = |field, key, given: Option<u64>, default| match (fork.has(field), given) {
        (true, given) => Ok(Some(given.unwrap_or(default))),
        (false, None) => Ok(None),
        (false, Some(_)) => Err(GenesisError::UnexpectedField { field: key }),
    };
    let base_fee = file.u64("baseFeePerGas")?;
    let blob_gas_used = file.u64("blobGasUsed")?;
    let excess_blob_gas = file.u64("excessBlobGas")?;
    let beacon_root = file.hash("parentBeaconBlockRoot")?;
    if beacon_root.is_some() && !fork.has(HeaderField::ParentBeaconBlockRoot) {
        return Err(GenesisError::UnexpectedField { field: "parentBeaconBlockRoot" });
    }
    Ok(Header {
        parent_hash: file.hash("parentHash")?.unwrap_or_default(),
        ommers_hash: EMPTY_OMMERS_HASH,
        beneficiary: match file.text("coinbase")? {
            Some(text) => number::address("coinbase", &text)?,
            None => Address::zero(),
        },
        // `Genesis::block` computes it from the accounts.
        state_root: H256::zero(),
        transactions_root: EMPTY_ROOT,
        receipts_root: EMPTY_ROOT,
        difficulty: number::u256("difficulty", file.get("difficulty").ok_or_else(|| required("difficulty"))?)?,
        number,
        gas_limit: number::u64("gasLimit", file.get("gasLimit").ok_or_else(|| required("gasLimit"))?)?,
        gas_used: file.u64("gasUsed")?.unwrap_or(0),
        timestamp,
        extra_data: number::bytes("extraData", &file.text("extraData")?.unwrap_or_default())?,
        mix_hash: file.hash("mixHash")?.unwrap_or_default(),
        nonce: file.u64("nonce")?.unwrap_or(0).to_be_bytes(),
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

fn account(key: &str, account: &AccountFields) -> Result<GenesisAccount, GenesisError> {
    let field = |name: &str| format!("alloc.{key}.{name}");
    let mut storage = BTreeMap::new();
    for (slot, value) in account.storage.iter().flat_map(|slots| &slots.0) {
        let name = field(&format!("storage.{slot}"));
        let value = U256::from_big_endian(number::h256(&name, value)?.as_bytes());
        let slot = number::h256(&name, slot)?;
        if storage.insert(slot, value).is_some() {
            return Err(GenesisError::DuplicateSlot { account: key.to_owned(), slot });
        }
    }
    Ok(GenesisAccount {
        balance: match &account.balance {
            Some(value) => number::u256(&field("balance"), value)?,
            None => U256::zero(),
        },
        nonce: match &account.nonce {
            Some(value) => number::u64(&field("nonce"), value)?,
            None => 0,
        },
        code: number::bytes(&field("code"), account.code.as_deref().unwrap_or(""))?,
        storage,
    })
}
