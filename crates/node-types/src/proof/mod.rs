//! Verification of proofs of accounts and their storage (EIP-1186) against a trusted header.

use crate::consensus::{Account, DecodeError, Header};
use crate::trie::{self, ProofError};
use crate::wire::{GetProofInput, GetProofOutput};
use crate::{Address, H256, U256, keccak256};
use rlp::Rlp;

#[cfg(test)]
mod tests;

/// Verifies a getProof response against `request` and the state root of `header`: that it is for the requested
/// account and slots, and that the account and the value of every slot are proven. Returns the account, or `None` if
/// the proof shows that it does not exist. If this succeeds, the values in
/// [`storage_proof`](GetProofOutput::storage_proof) are proven as well.
///
/// The header must be trusted: decode its RLP with [`Header::decode`], or convert the block in a response with
/// [`Block::header`](crate::wire::Block::header), and compare [`Header::hash`] with a hash from a source other than
/// the server.
///
/// # Errors
/// An [`InvalidProof`] that identifies the part of the response that is not proven.
///
/// # Examples
/// ```
/// use node_types::consensus::{EMPTY_ROOT, Header};
/// use node_types::verify_proof;
/// use node_types::wire::{GetProofInput, GetProofOutput};
///
/// // No account exists in the empty state, and proving that takes no nodes.
/// let header = Header { state_root: EMPTY_ROOT, ..Header::default() };
/// let mut response = GetProofOutput {
///     code_hash: node_types::KECCAK_EMPTY.into(),
///     storage_hash: EMPTY_ROOT.into(),
///     ..GetProofOutput::default()
/// };
/// assert_eq!(verify_proof(&header, &GetProofInput::default(), &response), Ok(None));
///
/// response.balance = node_types::U256::one().into();
/// assert!(verify_proof(&header, &GetProofInput::default(), &response).is_err());
/// ```
pub fn verify_proof(
    header: &Header,
    request: &GetProofInput,
    response: &GetProofOutput,
) -> Result<Option<Account>, InvalidProof> {
    let address = *request.address;
    if *response.address != address {
        return Err(InvalidProof::OtherAddress { address: *response.address });
    }
    let account = prove_account(header.state_root, address, &response.account_proof)?;
    let claimed = Account {
        nonce: *response.nonce,
        balance: *response.balance,
        storage_root: *response.storage_hash,
        code_hash: *response.code_hash,
    };
    if account.unwrap_or_default() != claimed {
        return Err(InvalidProof::OtherAccount);
    }
    if request.storage_keys.len() != response.storage_proof.len() {
        return Err(InvalidProof::SlotCount {
            got: response.storage_proof.len(),
            expected: request.storage_keys.len(),
        });
    }
    for (slot, entry) in request.storage_keys.iter().zip(&response.storage_proof) {
        let slot = slot.0;
        if *entry.key != slot || prove_slot(claimed.storage_root, slot, &entry.proof)? != *entry.value {
            return Err(InvalidProof::OtherValue { slot });
        }
    }
    Ok(account)
}

/// Returns the account at `address` in the state with the root `state_root`, according to `proof`, or `None` if the
/// proof shows that the account does not exist.
///
/// # Errors
/// [`InvalidProof::Account`] if the proof is invalid, and [`InvalidProof::NotAnAccount`] if the proven value is not
/// an account.
pub fn prove_account<N: AsRef<[u8]>>(
    state_root: H256,
    address: Address,
    proof: &[N],
) -> Result<Option<Account>, InvalidProof> {
    let leaf = trie::verify_proof(state_root, keccak256(address).as_bytes(), proof).map_err(InvalidProof::Account)?;
    leaf.map(|leaf| Account::decode(&leaf)).transpose().map_err(InvalidProof::NotAnAccount)
}

/// Returns the value of `slot` in the storage with the root `storage_root`, according to `proof`. If the proof shows
/// that the trie does not contain the slot, the value is zero.
///
/// # Errors
/// [`InvalidProof::Slot`] if the proof is invalid, and [`InvalidProof::NotAValue`] if the proven bytes are not a
/// number.
pub fn prove_slot<N: AsRef<[u8]>>(storage_root: H256, slot: H256, proof: &[N]) -> Result<U256, InvalidProof> {
    let leaf = trie::verify_proof(storage_root, keccak256(slot).as_bytes(), proof)
        .map_err(|source| InvalidProof::Slot { slot, source })?;
    let Some(leaf) = leaf else { return Ok(U256::zero()) };
    let value = Rlp::new(&leaf).as_val::<U256>().ok().filter(|value| rlp::encode(value) == *leaf);
    value.ok_or(InvalidProof::NotAValue { slot })
}

/// Why a response is not proven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidProof {
    #[error("the response is about the account {address:#x}, which was not requested")]
    OtherAddress { address: Address },
    #[error("the account proof is invalid")]
    Account(#[source] ProofError),
    #[error("the account proof leads to a value that is not an account")]
    NotAnAccount(#[source] DecodeError),
    #[error("the account of the response differs from the one that its proof proves")]
    OtherAccount,
    #[error("the response has {got} slots, expected {expected}")]
    SlotCount { got: usize, expected: usize },
    #[error("the proof of slot {slot:#x} is invalid")]
    Slot { slot: H256, source: ProofError },
    #[error("the proof of slot {slot:#x} leads to a value that is not a number")]
    NotAValue { slot: H256 },
    /// The response has a different slot at this position, or the proven value differs from the one in the response.
    #[error("the proof of slot {slot:#x} shows another value")]
    OtherValue { slot: H256 },
}
