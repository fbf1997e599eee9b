//! Stored tries compared with `node_core`'s trie in memory and with alloy-trie, as of every block.

use super::*;
use crate::error::StoreError;
use alloy_primitives::{B256, U256 as AlloyU256, keccak256 as alloy_keccak256};
use alloy_trie::HashBuilder;
use alloy_trie::proof::ProofRetainer;
use node_core::trie::{NibblePath, Reference, Trie};
use node_types::{Bytes, H256, keccak256};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rows and leaves of one trie by block.
#[derive(Default)]
struct Model {
    rows: BTreeMap<(Vec<u8>, u64), Vec<u8>>,
    leaves: Vec<BTreeMap<H256, Vec<u8>>>,
    roots: Vec<H256>,
}

struct At<'a>(&'a Model, Option<u64>);

fn position_key(position: &NibblePath) -> Vec<u8> {
    [&[position.len() as u8][..], position.packed()].concat()
}

impl Source for At<'_> {
    type Error = StoreError;

    fn node(&mut self, position: &NibblePath, _: Option<&Reference>) -> Result<Arc<Stored>, StoreError> {
        let Some(at) = self.1 else { return Ok(Arc::new(Stored::NOTHING)) };
        let key = position_key(position);
        let mut decoder = Decoder::new(*position);
        let mut rows = self.0.rows.range((key.clone(), 0)..=(key, at)).rev().peekable();
        if rows.peek().is_none() {
            return Ok(Arc::new(Stored::NOTHING));
        }
        for (_, row) in rows {
            if let Some(stored) = decoder.read(row)? {
                return Ok(Arc::new(stored));
            }
        }
        Err(StoreError::Missing { table: "trie" })
    }

    fn open(&mut self, _: &Opaque) -> Result<Box<Branch>, StoreError> {
        Err(StoreError::Missing { table: "trie" })
    }

    fn value(&mut self, leaf: &NibblePath) -> Result<Bytes, StoreError> {
        Ok(self.0.leaves[self.1.unwrap() as usize][&H256::from_slice(leaf.packed())].clone().into())
    }
}

impl Model {
    fn apply(&mut self, changes: &BTreeMap<H256, Option<Vec<u8>>>) {
        let parent = (self.leaves.len() as u64).checked_sub(1);
        let number = self.leaves.len() as u64;
        let batch: Vec<Change> =
            changes.iter().map(|(key, value)| (NibblePath::from(*key), value.clone().map(Bytes::from))).collect();
        let update = finish(vec![plan(&mut At(self, parent), &batch).unwrap()]).remove(0);
        let mut leaves = self.leaves.last().cloned().unwrap_or_default();
        for (key, value) in changes {
            match value {
                Some(value) => drop(leaves.insert(*key, value.clone())),
                None => drop(leaves.remove(key)),
            }
        }
        for row in update.rows {
            let twice = self.rows.insert((position_key(&row.position), number), row.value);
            assert!(twice.is_none(), "two rows at {:?}", row.position);
        }
        self.leaves.push(leaves);
        self.roots.push(update.root);
    }

    fn roll_back(&mut self, count: usize) {
        self.rows.retain(|(_, block), _| (*block as usize) < count);
        self.leaves.truncate(count);
        self.roots.truncate(count);
    }

    /// Compares the root and the proofs of `keys` as of each block with both oracles.
    fn check(&self, keys: &[H256]) {
        for (at, leaves) in self.leaves.iter().enumerate() {
            let trie: Trie = leaves.iter().map(|(key, value)| (*key, value.clone())).collect();
            assert_eq!(self.roots[at], trie.root(), "root as of {at}");
            for key in keys {
                let proof = prove(&mut At(self, Some(at as u64)), &NibblePath::from(*key), None).unwrap();
                assert_eq!(proof, trie.prove(key.as_bytes()), "proof of {key:#x} as of {at}");
            }
            let targets = keys.iter().map(|key| alloy_trie::Nibbles::unpack(B256::from(key.0)));
            let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::from_iter(targets));
            for (key, value) in leaves {
                builder.add_leaf(alloy_trie::Nibbles::unpack(B256::from(key.0)), value);
            }
            assert_eq!(builder.root().0, self.roots[at].0, "alloy's root as of {at}");
            let nodes = builder.take_proof_nodes();
            for key in keys.iter().filter(|_| !leaves.is_empty()) {
                let proof = prove(&mut At(self, Some(at as u64)), &NibblePath::from(*key), None).unwrap();
                let theirs = nodes.matching_nodes_sorted(&alloy_trie::Nibbles::unpack(B256::from(key.0)));
                let ours: Vec<_> = proof.iter().map(|node| node.to_vec()).collect();
                let theirs: Vec<_> = theirs.into_iter().map(|(_, node)| node.to_vec()).collect();
                // alloy also lists nodes that are contained in their parents.
                let listed =
                    theirs.into_iter().enumerate().filter(|(i, node)| *i == 0 || node.len() >= 32).map(|(_, n)| n);
                assert_eq!(ours, listed.collect::<Vec<_>>(), "alloy's proof of {key:#x} as of {at}");
            }
        }
    }
}

/// Returns keys of which some share long prefixes.
fn key(index: u16) -> H256 {
    match index % 3 {
        0 => keccak256(index.to_be_bytes()),
        1 => H256::from_low_u64_be(u64::from(index)),
        _ => {
            let mut key = H256::repeat_byte(0x11);
            key.0[usize::from(index) % 32] = (index >> 5) as u8;
            key
        }
    }
}

/// Values short enough that nodes are contained in their parents, and longer ones.
fn value(seed: u8) -> Option<Vec<u8>> {
    match seed % 4 {
        0 => None,
        1 => Some(vec![seed]),
        _ => Some(vec![seed; usize::from(seed) / 4 + 1]),
    }
}

fn changes() -> impl Strategy<Value = BTreeMap<H256, Option<Vec<u8>>>> {
    prop::collection::btree_map((0u16..40).prop_map(key), any::<u8>().prop_map(value), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn roots_and_proofs_equal_the_oracles(
        first in prop::collection::vec(changes(), 1..40),
        keep in any::<prop::sample::Index>(),
        second in prop::collection::vec(changes(), 1..10),
    ) {
        let keys: Vec<_> = (0..42).map(key).collect();
        let mut model = Model::default();
        first.iter().for_each(|changes| model.apply(changes));
        model.roll_back(keep.index(first.len()) + 1);
        second.iter().for_each(|changes| model.apply(changes));
        model.check(&keys);
    }

    #[test]
    fn random_rows_never_panic(rows in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..5), key: [u8; 32], length in 0usize..=64) {
        let mut decoder = Decoder::new(NibblePath::of_key(&key).prefix(length));
        for row in rows {
            match decoder.read(&row) {
                Ok(None) => {}
                _ => break,
            }
        }
    }
}

#[test]
fn a_branch_of_which_only_the_reference_is_known_has_a_row() {
    let path = NibblePath::ROOT.child(0xa).child(0xb).child(0xc);
    let mut branch = Branch::new(path);
    branch.children[3] = Reference::from(H256::repeat_byte(3));
    branch.children[9] = Reference::from(H256::repeat_byte(9));
    let opaque = Opaque { path, branch: Reference::to(&branch.encode()) };
    assert_eq!(opaque.encode_at(1), Some(branch.encode_at(1)));
    assert_eq!(opaque.encode_at(3), None);
    let node = Node::Opaque(Box::new(opaque.clone()));
    assert!(node.is_same_branch(&Node::Branch(Box::new(branch))));
    let (row, age) = row::encode(&Stored::NOTHING, &node, 1).unwrap();
    assert_eq!(
        (&row[..5], &row[5..], age),
        (&[5, 3, 0xab, 0xc0, 0xa0][..], opaque.branch.hash().unwrap().as_bytes(), 0)
    );
    let mut decoder = Decoder::new(path.prefix(1));
    assert_eq!(decoder.read(&row).unwrap(), Some(Stored { node, age: 0 }));
    for length in 0..row.len() {
        assert!(Decoder::new(path.prefix(1)).read(&row[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn long_histories_are_read_through_few_rows() {
    let keys: Vec<_> = (0u32..500).map(|index| keccak256(index.to_be_bytes())).collect();
    let mut model = Model::default();
    model.apply(&keys.iter().map(|key| (*key, Some(vec![1; 40]))).collect());
    for block in 0..200usize {
        model.apply(&[(keys[block * 7 % 500], Some(vec![block as u8 + 2; 40]))].into());
    }
    let position = position_key(&NibblePath::ROOT);
    let rows: Vec<_> = model.rows.range((position.clone(), 0)..=(position, u64::MAX)).collect();
    assert_eq!(rows.len(), 201);
    let whole = rows.iter().filter(|(_, row)| !is_delta(row)).count();
    assert_eq!(whole, 201usize.div_ceil(usize::from(row::MAX_AGE) + 1), "whole rows");
    let trie: Trie = model.leaves[200].iter().map(|(key, value)| (*key, value.clone())).collect();
    assert_eq!(model.roots[200], trie.root());
}

#[test]
fn keccak_equals_that_of_alloy() {
    // The oracles use another implementation of Keccak.
    assert_eq!(alloy_keccak256(AlloyU256::from(7).to_be_bytes::<32>()).0, keccak256(H256::from_low_u64_be(7)).0);
}
