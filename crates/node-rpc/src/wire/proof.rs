//! Storage and Merkle proofs.

use super::Hex;
use node_types::wire::{AddressData, BytesData, GetProofOutput, HashData, StorageKey, Word};
use node_types::{H256, U256};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;

/// A storage slot as it was asked for: 32 bytes, or a shorter number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) key: H256,
    /// Whether all digits were written.
    whole: bool,
}

impl<'de> Deserialize<'de> for Slot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        if !text.starts_with("0x") {
            return Err(D::Error::custom("storage key without 0x prefix"));
        }
        let key = text.parse::<StorageKey>().map_err(D::Error::custom)?;
        Ok(Self { key: key.0, whole: text.len() == 66 })
    }
}

impl Serialize for Slot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = U256::from_big_endian(self.key.as_bytes());
        if self.whole { Word(number).serialize(serializer) } else { Hex(number).serialize(serializer) }
    }
}

/// The answer of eth_getProof (EIP-1186).
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
    /// The proof of an account and of the slots that were asked for, in their order.
    pub(crate) fn new(found: GetProofOutput, slots: &[Slot]) -> Self {
        let proofs = found.storage_proof.into_iter().zip(slots);
        Self {
            address: found.address,
            account_proof: found.account_proof,
            balance: Hex(found.balance.0),
            code_hash: found.code_hash,
            nonce: Hex(found.nonce.0),
            storage_hash: found.storage_hash,
            storage_proof: proofs
                .map(|(entry, slot)| StorageProof { key: *slot, value: Hex(entry.value.0), proof: entry.proof })
                .collect(),
        }
    }
}
