//! Storage and Merkle proofs.

use super::decode::{Decode, Faults, Input, decode_object, deserialize_by_decoding};
use super::text::{self, TextError};
use super::{AddressData, BytesData, Data, HashData, Quantity, Quantity64, Quantity256, Word};
use crate::{BlockId, H256, U256};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::str::FromStr;

/// The request body of getProof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_getProof))]
#[serde(rename_all = "PascalCase")]
pub struct GetProofInput {
    /// The account.
    pub address: AddressData,
    /// The block whose state is read; the latest if absent.
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub block_number: BlockId,
    /// Storage slots to prove. The node limits their number.
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub storage_keys: Vec<StorageKey>,
}

/// The response of getProof (EIP-1186).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getProof))]
#[serde(rename_all = "PascalCase")]
pub struct GetProofOutput {
    /// RLP of the trie nodes from the state root towards the hashed address.
    pub account_proof: Vec<BytesData>,
    /// The account.
    pub address: AddressData,
    /// Balance in wei.
    pub balance: Quantity256,
    /// Keccak-256 of the code.
    pub code_hash: HashData,
    /// Nonce of the account.
    pub nonce: Quantity64,
    /// Root of the storage trie.
    pub storage_hash: HashData,
    /// One entry for each requested key, in the order of the request.
    pub storage_proof: Vec<StorageEntry>,
}

/// A storage slot with its proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Response_StorageEntry))]
#[serde(rename_all = "PascalCase")]
pub struct StorageEntry {
    /// The slot.
    pub key: HashData,
    /// RLP of the trie nodes from the storage root towards the hashed key.
    pub proof: Vec<BytesData>,
    /// Its value.
    pub value: Word,
}

/// The request body of getStorageAt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_getStorageAt))]
#[serde(rename_all = "PascalCase")]
pub struct GetStorageAtInput {
    /// The account.
    pub address: AddressData,
    /// The block whose state is read; the latest if absent.
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub block_number: BlockId,
    /// Storage slot.
    pub position: StorageKey,
}

/// The response of getStorageAt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getStorageAt))]
#[serde(rename_all = "PascalCase")]
pub struct GetStorageAtOutput {
    /// The slot's value.
    pub value: Word,
}

/// A storage slot in a request: up to 64 hex digits, or a decimal number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorageKey(pub H256);

impl FromStr for StorageKey {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        if text.len() > "0x".len() + 64 && text.starts_with("0x") {
            return Err(TextError::StorageKey);
        }
        match text.parse::<Quantity<U256>>() {
            Ok(number) => Ok(Self(H256(number.0.to_big_endian()))),
            Err(TextError::Number) => Err(TextError::StorageKey),
            Err(error) => Err(error),
        }
    }
}

impl Serialize for StorageKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Data(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StorageKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::deserialize(deserializer)
    }
}

impl Decode for StorageKey {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        input.text_or_integer(faults)
    }
}

decode_object! {
    GetProofInput {
        address: required("Address"),
        block_number: optional_or_default("BlockNumber"),
        storage_keys: optional_or_default("StorageKeys"),
    }
    GetStorageAtInput {
        address: required("Address"),
        block_number: optional_or_default("BlockNumber"),
        position: required("Position"),
    }
}

deserialize_by_decoding!(GetProofInput, GetStorageAtInput);
