//! Accounts and slots as servers without proofs claim them to be.

use super::Base;
use super::fetch::Unknown;
use crate::contents::Kind;
use crate::error::{Needed, storage};
use node_core::backend::{AccountProof, BackendError, StorageProof};
use node_types::consensus::{Account, EMPTY_ROOT};
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use node_upstream::{AccountRead, Claimed, ClaimedAccount, ClaimedState};
use std::collections::HashMap;

/// Stands for the root of a storage, which only proofs show.
const UNKNOWN_ROOT: H256 = H256::zero();

impl Base {
    /// Returns whether reads are believed without proofs.
    pub fn trusts(&self) -> bool {
        self.options().trusts
    }

    /// Returns an account if it was fetched without a proof. Its storage root is unknown, unless it has no storage.
    pub(super) fn claimed_account(&self, address: Address) -> Result<Option<Option<Account>>, BackendError> {
        let claim = self.contents().get(Kind::ClaimedAccount, self.account_key(address)).map_err(storage)?;
        let account = |encoded: Bytes| {
            if encoded.is_empty() { Ok(None) } else { rlp::decode::<Account>(&encoded).map(Some).map_err(storage) }
        };
        claim.map(account).transpose()
    }

    /// Returns a slot if it was fetched without a proof.
    pub(super) fn claimed_slot(&self, address: Address, slot: H256) -> Result<Option<U256>, BackendError> {
        let claim = self.contents().get(Kind::ClaimedSlot, self.slot_key(address, slot)).map_err(storage)?;
        claim.map(|encoded| rlp::decode::<U256>(&encoded).map_err(storage)).transpose()
    }

    /// Fetches what is not known without proofs, and returns it for each read. Accounts come with their codes; those that are
    /// known are not fetched again.
    pub(super) fn fetch_claims(
        &self,
        unknown: &Unknown,
        needed: impl Fn() -> Needed,
    ) -> Result<Vec<AccountProof>, BackendError> {
        let slots: Vec<_> =
            unknown.reads.iter().flat_map(|read| read.slots.iter().map(|slot| (read.address, *slot))).collect();
        let addresses = &unknown.codes_of;
        let count = addresses.len() + slots.len();
        let Claimed { accounts, values } = self.ask_for_state(count, needed, |upstream, context| {
            ClaimedState::new(upstream.clone(), self.block().clone()).accounts_and_slots(context, addresses, &slots)
        })?;
        let (mut contents, mut claimed_now) = (Vec::new(), HashMap::new());
        for (address, claimed) in addresses.iter().zip(accounts) {
            let account = account(&claimed);
            let encoded = account.map(|account| rlp::encode(&account).freeze().into()).unwrap_or_default();
            contents.push((Kind::ClaimedAccount, self.account_key(*address), encoded));
            if !claimed.code.is_empty() {
                contents.push((Kind::Code, keccak256(&claimed.code), claimed.code));
            }
            self.keep_account(*address, account);
            claimed_now.insert(*address, account);
        }
        let mut left = values.iter();
        let claim = |AccountRead { address, slots }: &AccountRead| {
            let account = match claimed_now.get(address) {
                Some(account) => *account,
                None => self.known_account(*address)?.flatten(),
            };
            let slots = slots.iter().zip(left.by_ref());
            let storage = slots.map(|(slot, value)| StorageProof { slot: *slot, value: *value, proof: Vec::new() });
            Ok(AccountProof { account, proof: Vec::new(), storage: storage.collect() })
        };
        let claims = unknown.reads.iter().map(claim).collect::<Result<Vec<_>, BackendError>>()?;
        for ((address, slot), value) in slots.into_iter().zip(values) {
            contents.push((Kind::ClaimedSlot, self.slot_key(address, slot), rlp::encode(&value).freeze().into()));
            self.keep_slot(address, slot, value);
        }
        contents.extend(self.names_of(&unknown.reads, &claims));
        self.contents().add(contents);
        Ok(claims)
    }

    /// Returns the key of an account as of the block.
    fn account_key(&self, address: Address) -> H256 {
        keccak256([self.block().hash().as_bytes(), address.as_bytes()].concat())
    }

    fn slot_key(&self, address: Address, slot: H256) -> H256 {
        keccak256([self.block().hash().as_bytes(), address.as_bytes(), slot.as_bytes()].concat())
    }
}

/// Returns a claimed account, or `None` if it is empty: since EIP-161, such accounts do not exist.
fn account(claimed: &ClaimedAccount) -> Option<Account> {
    let ClaimedAccount { nonce, balance, code } = claimed;
    let is_new = *nonce == 0 && code.is_empty();
    if is_new && balance.is_zero() {
        return None;
    }
    // Whoever has storage has code or had it, and then has a nonce (EIP-161, EIP-7702).
    let storage_root = if is_new { EMPTY_ROOT } else { UNKNOWN_ROOT };
    let code_hash = if code.is_empty() { KECCAK_EMPTY } else { keccak256(code) };
    Some(Account { nonce: *nonce, balance: *balance, storage_root, code_hash })
}
