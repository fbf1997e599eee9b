//! Storage and Merkle proofs.

use super::Hex;
use node_core::backend::AccountProof;
use node_types::wire::{AddressData, BytesData, Data, HashData, StorageKey, Word};
use node_types::{Address, Bytes, H256, U256};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;

/// A storage slot as the client wrote it: 32 bytes, or a shorter number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) key: H256,
    /// Whether the client wrote all 64 digits.
    whole: bool,
}

impl<'de> Deserialize<'de> for Slot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        if !text.starts_with("0x") {
            return Err(D::Error::custom("storage key without 0x prefix"));
        }
        let key = text.parse::<StorageKey>().map_err(|_| match text.len() {
            ..=66 => D::Error::custom(format_args!("invalid hex in storage key: {text:?}")),
            _ => D::Error::custom("storage key too long (want at most 32 bytes)"),
        })?;
        Ok(Self { key: key.0, whole: text.len() == 66 })
    }
}

impl Serialize for Slot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = U256::from_big_endian(self.key.as_bytes());
        if self.whole { Word(number).serialize(serializer) } else { Hex(number).serialize(serializer) }
    }
}

/// The result of eth_getProof (EIP-1186).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Proof {
    address: AddressData,
    account_proof: Vec<BytesData>,
    balance: Hex<U256>,
    code_hash: HashData,
    nonce: Hex<u64>,
    storage_hash: HashData,
    storage_proof: Vec<StorageProof>,
}

#[derive(Clone, Debug, Serialize)]
struct StorageProof {
    key: Slot,
    value: Hex<U256>,
    proof: Vec<BytesData>,
}

impl Proof {
    /// Converts the proof of an account and of storage slots, in the order of the request.
    pub(crate) fn new(address: Address, found: AccountProof, slots: &[Slot]) -> Self {
        let nodes = |nodes: Vec<Bytes>| nodes.into_iter().map(Data).collect();
        let account = found.account.unwrap_or_default();
        Self {
            address: Data(address),
            account_proof: nodes(found.proof),
            balance: Hex(account.balance),
            code_hash: Data(account.code_hash),
            nonce: Hex(account.nonce),
            storage_hash: Data(account.storage_root),
            storage_proof: (found.storage.into_iter().zip(slots))
                .map(|(entry, slot)| StorageProof { key: *slot, value: Hex(entry.value), proof: nodes(entry.proof) })
                .collect(),
        }
    }
}
