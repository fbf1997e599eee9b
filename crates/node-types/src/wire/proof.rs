//! Storage and Merkle proofs.

use super::decode::{Decode, Faults, Input, decode_array, wire_objects};
use super::text::{self, TextError};
use super::{AddressData, BytesData, Data, HashData, Quantity, Quantity64, Quantity256, Word};
use crate::{BlockId, H256, U256};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::str::FromStr;

wire_objects! {
    /// The request body of getProof.
    request GetProofInput {
        /// The account.
        address: AddressData = required("Address"),
        /// The block whose state is read; the latest if absent. The pending block has no proofs.
        #[cfg_attr(feature = "schema", schema(required = false))]
        block_number: BlockId = optional_or_default("BlockNumber") as ProvenBlock,
        /// Storage slots to prove. The node limits their number.
        #[cfg_attr(feature = "schema", schema(required = false))]
        storage_keys: Vec<StorageKey> = optional_or_default("StorageKeys") as StorageKeys,
    }

    /// The response of getProof (EIP-1186).
    response GetProofOutput {
        /// RLP of the trie nodes from the state root towards the hashed address.
        account_proof: Vec<BytesData>,
        /// The account.
        address: AddressData,
        /// Balance in wei.
        balance: Quantity256,
        /// Keccak-256 of the code.
        code_hash: HashData,
        /// Nonce of the account.
        nonce: Quantity64,
        /// Root of the storage trie.
        storage_hash: HashData,
        /// One entry for each requested key, in the order of the request.
        storage_proof: Vec<StorageEntry>,
    }

    /// A storage slot with its proof.
    response StorageEntry as Response_StorageEntry {
        /// The slot.
        key: HashData,
        /// RLP of the trie nodes from the storage root towards the hashed key.
        proof: Vec<BytesData>,
        /// Its value.
        value: Word,
    }

    /// The request body of getStorageAt.
    request GetStorageAtInput {
        /// The account.
        address: AddressData = required("Address"),
        /// The block whose state is read; the latest if absent.
        #[cfg_attr(feature = "schema", schema(required = false))]
        block_number: BlockId = optional_or_default("BlockNumber"),
        /// Storage slot.
        position: StorageKey = required("Position"),
    }

    /// The response of getStorageAt.
    response GetStorageAtOutput {
        /// The slot's value.
        value: Word,
    }
}

/// A block whose state has a trie, which that of the pending block has not.
#[derive(Default)]
pub(super) struct ProvenBlock(pub(super) BlockId);

impl FromStr for ProvenBlock {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let block: BlockId = text.parse()?;
        if block.is_pending() { Err(TextError::PendingProof) } else { Ok(Self(block)) }
    }
}

impl Decode for ProvenBlock {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        input.text_or_integer(faults)
    }
}

#[derive(Default)]
struct StorageKeys(Vec<StorageKey>);

impl Decode for StorageKeys {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        decode_array(input, "keys", faults.limits().storage_keys, faults).map(Self)
    }
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
