//! Merkle proofs (EIP-1186).

use super::fault::{Fault, Field};
use super::{Limit, Node, NodeError};
use crate::backend::{AccountProof, StorageProof};
use crate::context::Context;
use node_types::consensus::EMPTY_ROOT;
use node_types::proof::{InvalidProof, prove_account, prove_slot};
use node_types::{Address, BlockId, H256};

pub(super) fn get_proof(
    node: &Node,
    context: &Context,
    address: Address,
    slots: &[H256],
    block: BlockId,
) -> Result<AccountProof, NodeError> {
    let limit = node.limits.storage_keys;
    let mut faults = Vec::new();
    if slots.len() > limit {
        faults.push(Fault::too_many(Field::StorageKeys, slots.len(), limit, "keys", Limit::StorageKeys));
    }
    if block.is_pending() {
        faults.push(Fault::new(Field::BlockNumber, "the pending block has no proofs"));
    }
    if !faults.is_empty() {
        return Err(NodeError::Invalid(faults));
    }
    context.check()?;
    let snapshot = node.snapshot(context)?;
    let at = snapshot.state(block, Field::BlockNumber)?;
    let proof = snapshot.view.state(at)?.proof(address, slots)?;
    context.check()?;
    let root = snapshot.header(at)?.header.state_root;
    verify(root, address, &proof).map_err(|source| NodeError::Proof { block: at, source })?;
    Ok(proof)
}

/// Verifies all nodes of `proof` from the state root down to the claimed values.
fn verify(root: H256, address: Address, proof: &AccountProof) -> Result<(), InvalidProof> {
    if prove_account(root, address, &proof.proof)? != proof.account {
        return Err(InvalidProof::OtherAccount);
    }
    let storage_root = proof.account.map_or(EMPTY_ROOT, |account| account.storage_root);
    for StorageProof { slot, value, proof } in &proof.storage {
        if prove_slot(storage_root, *slot, proof)? != *value {
            return Err(InvalidProof::OtherValue { slot: *slot });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::node::testing::World;
    use crate::node::{Finality, Limits};
    use crate::test_chain::{account, address, word};
    use node_types::{Bytes, KECCAK_EMPTY, U256};

    fn world() -> World {
        let world = World::new();
        world.change(account(1, 3, 100, &[(1, 7), (2, 8)]));
        world.change(account(2, 0, 50, &[]));
        world.change(account(1, 4, 90, &[(1, 0), (3, 9)]));
        world
    }

    #[test]
    fn proves_accounts_at_any_block() {
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
            let case = format!("account {account} after block {block}");
            let slots = [1, 2, 3].map(word);
            let proof = world.node.get_proof(&Context::unbounded(), address(account), &slots, block.into()).unwrap();
            let got: Vec<_> = proof.storage.iter().map(|entry| entry.value).collect();
            assert_eq!(got, values.map(U256::from), "{case}");
            let exists = (nonce, balance) != (0, 0);
            assert_eq!(proof.account.is_some(), exists, "{case}");
            if let Some(account) = proof.account {
                assert_eq!((account.nonce, account.balance), (nonce, balance.into()), "{case}");
                assert_eq!(account.code_hash, KECCAK_EMPTY, "{case}");
                assert_eq!(account.storage_root == EMPTY_ROOT, values == [0; 3], "{case}");
            }
        }
    }

    #[test]
    fn limits_the_number_of_keys() {
        for (limit, count, accepted) in
            [(2_000, 1_025, true), (2_000, 2_000, true), (2_000, 2_001, false), (1, 2, false)]
        {
            let world = World::with(Finality::Head, Limits { storage_keys: limit, ..Limits::default() });
            let slots = vec![H256::zero(); count];
            let proof = world.node.get_proof(&Context::unbounded(), address(1), &slots, BlockId::latest());
            assert_eq!(proof.is_ok(), accepted, "{count} keys of at most {limit}");
        }
    }

    #[test]
    fn reports_every_fault() {
        let world = world();
        let cases = [
            (BlockId::latest(), 1_024, vec![]),
            (BlockId::latest(), 1_025, vec![Field::StorageKeys]),
            (BlockId::pending(), 0, vec![Field::BlockNumber]),
            (BlockId::pending(), 1_025, vec![Field::StorageKeys, Field::BlockNumber]),
        ];
        for (block, count, expected) in cases {
            let slots = vec![H256::zero(); count];
            let fields = match world.node.get_proof(&Context::unbounded(), address(1), &slots, block) {
                Ok(_) => Vec::new(),
                Err(NodeError::Invalid(faults)) => faults.iter().map(|fault| fault.field).collect(),
                Err(error) => panic!("{block}, {count} keys: {error:?}"),
            };
            assert_eq!(fields, expected, "{block}, {count} keys");
        }
        let beyond = world.node.get_proof(&Context::unbounded(), address(1), &[], BlockId::number(4));
        assert!(matches!(beyond, Err(NodeError::BlockNotFound { field: Field::BlockNumber, .. })), "{beyond:?}");
    }

    #[test]
    fn rejects_wrong_proofs() {
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
