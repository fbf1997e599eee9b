//! getProof (EIP-1186).

use super::limits::too_many;
use super::{Node, NodeError};
use crate::backend::AccountProof;
use crate::context::Context;
use crate::trie::{ProofError, verify_proof};
use node_types::consensus::{Account, EMPTY_ROOT};
use node_types::wire::{Data, ErrorDetail, GetProofInput, GetProofOutput, Quantity, StorageEntry, Word};
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};

impl Node {
    /// An account and storage slots of it with their Merkle proofs, which were checked against the state root.
    pub fn get_proof(&self, context: &Context, input: GetProofInput) -> Result<GetProofOutput, NodeError> {
        let keys = input.storage_keys.len();
        let limit = self.limits.storage_keys;
        let mut faults = Vec::new();
        if keys > limit {
            faults.push(ErrorDetail::new("body.StorageKeys", too_many(keys, limit, "keys", "max-storage-keys")));
        }
        if input.block_number.is_pending() {
            faults.push(
                ErrorDetail::new("body.BlockNumber", "the pending block has no proofs").with_value(&input.block_number),
            );
        }
        if !faults.is_empty() {
            return Err(NodeError::Invalid(faults));
        }
        context.check()?;
        let snapshot = self.snapshot(context)?;
        let at = snapshot.state(input.block_number, "body.BlockNumber")?;
        let address = input.address.0;
        let slots: Vec<H256> = input.storage_keys.iter().map(|key| key.0).collect();
        let proof = snapshot.view.state(at)?.proof(address, &slots)?;
        context.check()?;
        let root = snapshot.header(at)?.header.state_root;
        verify(root, address, &proof).map_err(|source| NodeError::Proof { block: at, source })?;
        Ok(answer(address, proof))
    }
}

/// Checks that `proof` shows exactly what it says, all the way from the state root.
fn verify(root: H256, address: Address, proof: &AccountProof) -> Result<(), InvalidProof> {
    let leaf = verify_proof(root, keccak256(address).as_bytes(), &proof.proof).map_err(InvalidProof::Account)?;
    if leaf.as_deref() != proof.account.as_ref().map(Account::encode).as_deref() {
        return Err(InvalidProof::OtherAccount);
    }
    let storage_root = proof.account.map_or(EMPTY_ROOT, |account| account.storage_root);
    for entry in &proof.storage {
        let slot = entry.slot;
        let value = verify_proof(storage_root, keccak256(slot).as_bytes(), &entry.proof)
            .map_err(|source| InvalidProof::Slot { slot, source })?;
        let expected = (!entry.value.is_zero()).then(|| rlp::encode(&entry.value));
        if value.as_deref() != expected.as_deref() {
            return Err(InvalidProof::OtherValue { slot });
        }
    }
    Ok(())
}

fn answer(address: Address, proof: AccountProof) -> GetProofOutput {
    let account = proof.account.unwrap_or(Account {
        nonce: 0,
        balance: U256::zero(),
        storage_root: EMPTY_ROOT,
        code_hash: KECCAK_EMPTY,
    });
    let nodes = |nodes: Vec<Bytes>| nodes.into_iter().map(Data).collect();
    GetProofOutput {
        account_proof: nodes(proof.proof),
        address: Data(address),
        balance: Quantity(account.balance),
        code_hash: Data(account.code_hash),
        nonce: Quantity(account.nonce),
        storage_hash: Data(account.storage_root),
        storage_proof: proof
            .storage
            .into_iter()
            .map(|entry| StorageEntry { key: Data(entry.slot), proof: nodes(entry.proof), value: Word(entry.value) })
            .collect(),
    }
}

/// A backend answered a proof that does not hold.
#[derive(Debug, thiserror::Error)]
pub enum InvalidProof {
    /// The account's proof does not lead to the state root.
    #[error("the account proof is invalid")]
    Account(#[source] ProofError),
    /// The account's proof shows another account.
    #[error("the account proof shows another account")]
    OtherAccount,
    /// A slot's proof does not lead to the storage root.
    #[error("the proof of slot {slot:#x} is invalid")]
    Slot {
        /// The slot.
        slot: H256,
        /// What is wrong with it.
        #[source]
        source: ProofError,
    },
    /// A slot's proof shows another value.
    #[error("the proof of slot {slot:#x} shows another value")]
    OtherValue {
        /// The slot.
        slot: H256,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{StateBackend, StorageProof};
    use crate::node::testing::World;
    use crate::node::{Finality, Limits};
    use crate::test_chain::{account, address, word};
    use node_types::BlockId;
    use node_types::wire::StorageKey;

    fn world() -> World {
        let world = World::new();
        world.change(account(1, 3, 100, &[(1, 7), (2, 8)]));
        world.change(account(2, 0, 50, &[]));
        world.change(account(1, 4, 90, &[(1, 0), (3, 9)]));
        world
    }

    #[test]
    fn accounts_at_any_block() {
        let world = world();
        // Block, account; nonce, balance, values of the slots 1, 2, 3.
        let cases = [
            (0, 1, 0, 0, [0, 0, 0]),
            (1, 1, 3, 100, [7, 8, 0]),
            (2, 1, 3, 100, [7, 8, 0]),
            (3, 1, 4, 90, [0, 8, 9]),
            (1, 2, 0, 0, [0, 0, 0]),
            (3, 2, 0, 50, [0, 0, 0]),
        ];
        for (block, account, nonce, balance, values) in cases {
            let input = GetProofInput {
                address: Data(address(account)),
                block_number: BlockId::number(block),
                storage_keys: (1..=3).map(|slot| StorageKey(word(slot))).collect(),
            };
            let output = world.node.get_proof(&Context::unbounded(), input).unwrap();
            let got: Vec<_> = output.storage_proof.iter().map(|entry| entry.value.0).collect();
            assert_eq!(got, values.map(U256::from), "account {account} after block {block}");
            assert_eq!(
                (output.nonce, output.balance, output.code_hash),
                (Quantity(nonce), Quantity(balance.into()), Data(KECCAK_EMPTY)),
                "account {account} after block {block}"
            );
            assert_eq!(output.storage_hash.0 == EMPTY_ROOT, values == [0; 3], "account {account} after block {block}");
        }
    }

    #[test]
    fn the_number_of_keys_is_an_option() {
        for (limit, count, accepted) in
            [(2_000, 1_025, true), (2_000, 2_000, true), (2_000, 2_001, false), (1, 2, false)]
        {
            let world = World::with(Finality::Head, Limits { storage_keys: limit, ..Limits::default() });
            let input = GetProofInput { storage_keys: vec![StorageKey::default(); count], ..GetProofInput::default() };
            let output = world.node.get_proof(&Context::unbounded(), input);
            assert_eq!(output.is_ok(), accepted, "{count} keys of at most {limit}");
        }
    }

    #[test]
    fn faults() {
        let world = world();
        let keys = |count| vec![StorageKey::default(); count];
        let cases = [
            (BlockId::latest(), keys(1_024), vec![]),
            (BlockId::latest(), keys(1_025), vec!["body.StorageKeys"]),
            (BlockId::pending(), keys(0), vec!["body.BlockNumber"]),
            (BlockId::pending(), keys(1_025), vec!["body.StorageKeys", "body.BlockNumber"]),
            (BlockId::number(4), keys(0), vec!["body.BlockNumber"]),
        ];
        for (block_number, storage_keys, expected) in cases {
            let case = format!("{block_number}, {} keys", storage_keys.len());
            let input = GetProofInput { address: Data(address(1)), block_number, storage_keys };
            let faults = match world.node.get_proof(&Context::unbounded(), input) {
                Ok(_) => Vec::new(),
                Err(error) => error.details().into_iter().map(|detail| detail.location).collect(),
            };
            assert_eq!(faults, expected, "{case}");
        }
    }

    #[test]
    fn a_wrong_proof_is_not_answered() {
        let view = world().backend.view().unwrap();
        let root = view.header(3.into()).unwrap().unwrap().header.state_root;
        let good = view.state(3).unwrap().proof(address(1), &[word(2)]).unwrap();
        verify(root, address(1), &good).unwrap();

        type Change = fn(&mut AccountProof);
        let slot = |change: fn(&mut StorageProof)| move |proof: &mut AccountProof| change(&mut proof.storage[0]);
        let value = slot(|slot| slot.value += U256::one());
        let zero = slot(|slot| slot.value = U256::zero());
        let node = slot(|slot| drop(slot.proof.pop()));
        assert!(!good.storage[0].proof.is_empty());
        let cases: [(&str, Change); 4] = [
            ("another balance", |proof| proof.account.as_mut().unwrap().balance += U256::one()),
            ("no account", |proof| proof.account = None),
            ("a node too few", |proof| drop(proof.proof.pop())),
            ("a node too many", |proof| proof.proof.push(Bytes::new())),
        ];
        for (case, change) in cases {
            let mut proof = good.clone();
            change(&mut proof);
            assert!(verify(root, address(1), &proof).is_err(), "{case}");
        }
        for (case, change) in
            [("another value", &value as &dyn Fn(&mut AccountProof)), ("zero", &zero), ("no node", &node)]
        {
            let mut proof = good.clone();
            change(&mut proof);
            assert!(verify(root, address(1), &proof).is_err(), "{case} of the slot");
        }
        assert!(verify(root, address(2), &good).is_err(), "another address");
        assert!(verify(word(1), address(1), &good).is_err(), "another root");
    }
}
