//! Verifying what a server says about accounts and their storage, given a header that is trusted (EIP-1186).

use crate::consensus::{Account, DecodeError, Header};
use crate::trie::{self, ProofError};
use crate::wire::{GetProofInput, GetProofOutput};
use crate::{Address, H256, U256, keccak256};
use rlp::Rlp;

/// Verifies the response of getProof to `request` against the state root of `header`: the account, every slot, and that the
/// response has what was requested. Returns the account, or `None` if the proof shows that it does not exist; the values of
/// [`storage_proof`](GetProofOutput::storage_proof) are proven then, too.
///
/// The header must be trusted: decode its RLP with [`Header::decode`], or convert the block of a response with
/// [`Block::header`](crate::wire::Block::header), and compare [`Header::hash`] with a hash from a source other than the server.
///
/// # Errors
/// [`InvalidProof`] says which part of the response is not proven.
///
/// # Examples
/// ```
/// use node_types::consensus::{EMPTY_ROOT, Header};
/// use node_types::verify_proof;
/// use node_types::wire::{GetProofInput, GetProofOutput};
///
/// // No account exists in an empty state, and no nodes are needed to prove that.
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

/// Returns the account that `proof` shows at `address` in the state with the root `state_root`, or `None` if it shows that
/// the account does not exist.
///
/// # Errors
/// [`InvalidProof::Account`] and [`InvalidProof::NotAnAccount`].
pub fn prove_account<N: AsRef<[u8]>>(
    state_root: H256,
    address: Address,
    proof: &[N],
) -> Result<Option<Account>, InvalidProof> {
    let leaf = trie::verify_proof(state_root, keccak256(address).as_bytes(), proof).map_err(InvalidProof::Account)?;
    leaf.map(|leaf| Account::decode(&leaf)).transpose().map_err(InvalidProof::NotAnAccount)
}

/// Returns the value that `proof` shows for `slot` in the storage with the root `storage_root`. Slots that the trie does not
/// hold are zero.
///
/// # Errors
/// [`InvalidProof::Slot`] and [`InvalidProof::NotAValue`].
pub fn prove_slot<N: AsRef<[u8]>>(storage_root: H256, slot: H256, proof: &[N]) -> Result<U256, InvalidProof> {
    let leaf = trie::verify_proof(storage_root, keccak256(slot).as_bytes(), proof)
        .map_err(|source| InvalidProof::Slot { slot, source })?;
    let Some(leaf) = leaf else { return Ok(U256::zero()) };
    let value = Rlp::new(&leaf).as_val::<U256>().ok().filter(|value| rlp::encode(value) == *leaf);
    value.ok_or(InvalidProof::NotAValue { slot })
}

/// What a proof does not prove.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum InvalidProof {
    /// The response is about another account than the one requested.
    #[error("the response is about the account {address:#x}, which was not requested")]
    OtherAddress { address: Address },
    /// The account proof does not match the state root.
    #[error("the account proof is invalid")]
    Account(#[source] ProofError),
    /// The account proof leads to a value that is not an account.
    #[error("the account proof leads to a value that is not an account")]
    NotAnAccount(#[source] DecodeError),
    /// The account proof proves another account than the one claimed.
    #[error("the account of the response differs from the one that its proof proves")]
    OtherAccount,
    /// The response has more or fewer slots than were requested.
    #[error("the response has {got} slots, expected {expected}")]
    SlotCount { got: usize, expected: usize },
    /// The proof of a slot does not match the storage root.
    #[error("the proof of slot {slot:#x} is invalid")]
    Slot { slot: H256, source: ProofError },
    /// The proof of a slot leads to bytes that are not a 256-bit number.
    #[error("the proof of slot {slot:#x} leads to a value that is not a number")]
    NotAValue { slot: H256 },
    /// The response has another slot at this place, or the proof shows another value than the one claimed.
    #[error("the proof of slot {slot:#x} shows another value")]
    OtherValue { slot: H256 },
}
