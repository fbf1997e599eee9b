//! Proofs of accounts and slots (EIP-1186).

use crate::bounded::up_to;
use node_types::wire::BytesData;
use serde::Deserialize;

/// The result of eth_getProof. The account and the values are left out: they follow from the proofs, and clients
/// disagree about those of accounts that do not exist.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AccountProofJson {
    #[serde(deserialize_with = "up_to::<66, _, _>")]
    pub(crate) account_proof: Vec<BytesData>,
    #[serde(deserialize_with = "up_to::<1024, _, _>")]
    pub(crate) storage_proof: Vec<SlotProofJson>,
}

/// The proof of a slot.
#[derive(Deserialize)]
pub(crate) struct SlotProofJson {
    // A path has at most 64 nodes with a branch at each nibble, a leaf, and whatever clients add.
    #[serde(deserialize_with = "up_to::<66, _, _>")]
    pub(crate) proof: Vec<BytesData>,
}
