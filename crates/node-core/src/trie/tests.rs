//! The trie against alloy-trie, against the definition of the Yellow Paper, and against recorded tests.

use super::*;
use alloy_primitives::B256;
use alloy_trie::proof::ProofRetainer;
use alloy_trie::{HashBuilder, Nibbles as AlloyNibbles};
use node_types::keccak256;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use rlp::RlpStream;
use std::collections::BTreeMap;
use std::path::PathBuf;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns the root and the proof of `key` by alloy-trie, which supports only keys of equal length.
fn alloy(entries: &Entries, key: &[u8]) -> (B256, Vec<Vec<u8>>) {
    let target = AlloyNibbles::unpack(key);
    let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::from_iter([target]));
    for (key, value) in entries {
        builder.add_leaf(AlloyNibbles::unpack(key), value);
    }
    let root = builder.root();
    let nodes = builder.take_proof_nodes().matching_nodes_sorted(&target).into_iter().map(|(_, node)| node.to_vec());
    // alloy-trie also lists nodes that are contained in their parents.
    (root, nodes.enumerate().filter(|(depth, node)| *depth == 0 || node.len() >= 32).map(|(_, node)| node).collect())
}

/// Returns the root by the recursive definition of the Yellow Paper, equations 191 to 196: slow, and without any
/// state.
fn defined_root(entries: &Entries) -> H256 {
    let entries: Vec<(Vec<u8>, &[u8])> =
        entries.iter().map(|(key, value)| (nibbles_of(key), value.as_slice())).collect();
    if entries.is_empty() { EMPTY_ROOT } else { keccak256(defined_node(&entries, 0)) }
}

fn nibbles_of(key: &[u8]) -> Vec<u8> {
    key.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]).collect()
}

fn defined_node(entries: &[(Vec<u8>, &[u8])], depth: usize) -> Vec<u8> {
    let mut stream = RlpStream::new();
    if let [(path, value)] = entries {
        stream.begin_list(2).append(&defined_compact(&path[depth..], true)).append(value);
        return stream.out().to_vec();
    }
    let first = &entries[0].0[depth..];
    let common = |path: &[u8]| first.iter().zip(path).take_while(|(a, b)| a == b).count();
    let shared = entries.iter().map(|(path, _)| common(&path[depth..])).min().unwrap();
    if shared > 0 {
        stream.begin_list(2).append(&defined_compact(&first[..shared], false));
        append_defined(&mut stream, entries, depth + shared);
        return stream.out().to_vec();
    }
    stream.begin_list(17);
    for nibble in 0..16 {
        let below: Vec<_> = entries.iter().filter(|(path, _)| path.get(depth) == Some(&nibble)).cloned().collect();
        append_defined(&mut stream, &below, depth + 1);
    }
    let here = entries.iter().find(|(path, _)| path.len() == depth).map(|(_, value)| *value);
    stream.append(&here.unwrap_or_default());
    stream.out().to_vec()
}

/// Returns the compact encoding by the Yellow Paper, equation 186.
fn defined_compact(nibbles: &[u8], leaf: bool) -> Vec<u8> {
    let flag = if leaf { 2 } else { 0 };
    let padded = match nibbles.len() % 2 {
        0 => [&[flag, 0], nibbles].concat(),
        _ => [&[flag + 1], nibbles].concat(),
    };
    padded.chunks(2).map(|pair| 16 * pair[0] + pair[1]).collect()
}

fn append_defined(stream: &mut RlpStream, entries: &[(Vec<u8>, &[u8])], depth: usize) {
    if entries.is_empty() {
        stream.append_empty_data();
        return;
    }
    let node = defined_node(entries, depth);
    if node.len() < 32 {
        stream.append_raw(&node, 1);
    } else {
        stream.append(&keccak256(node).as_bytes());
    }
}

/// Keys that share long prefixes, all of the same length.
fn fixed_keys() -> impl Strategy<Value = Vec<u8>> {
    (vec(0u8..3, 2), prop_oneof![Just(0u8), any::<u8>()]).prop_map(|(start, end)| [start, vec![0, end]].concat())
}

/// Keys some of which are prefixes of others.
fn nested_keys() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0x11u8), Just(0x12), any::<u8>()], 0..5)
}

/// Values short enough that nodes are contained in their parents, and longer ones.
fn values() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 1..4), vec(any::<u8>(), 20..40)]
}

/// Changes to a trie in order; `None` removes the key.
fn changes(keys: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<(Vec<u8>, Option<Vec<u8>>)>> {
    vec((keys, proptest::option::weighted(0.6, values())), 0..80)
}

fn change(trie: &mut Trie, entries: &mut Entries, key: &[u8], value: Option<&Vec<u8>>) {
    match value {
        Some(value) => {
            trie.insert(key, value.clone());
            entries.insert(key.to_vec(), value.clone());
        }
        None => assert_eq!(trie.remove(key), entries.remove(key).is_some(), "removal of {key:x?}"),
    }
}

proptest! {
    #[test]
    fn roots_and_proofs_equal_those_of_alloy(entries in btree_map(fixed_keys(), values(), 0..60), other in fixed_keys()) {
        let trie: Trie = entries.iter().map(|(key, value)| (key, value.clone())).collect();
        for key in entries.keys().chain([&other]) {
            let (root, proof) = alloy(&entries, key);
            prop_assert_eq!(trie.root().0, root.0);
            if !entries.is_empty() {
                let got: Vec<Vec<u8>> = trie.prove(key).iter().map(|node| node.to_vec()).collect();
                prop_assert_eq!(got, proof, "proof of {:x?}", key);
            }
        }
    }

    #[test]
    fn roots_of_sorted_leaves_equal_those_of_alloy(
        keys in btree_map((vec(0u8..3, 2), prop_oneof![Just(0u8), any::<u8>()]), values(), 0..80),
    ) {
        // Keys that part at any depth.
        let of = |(start, end): &(Vec<u8>, u8)| H256([&start[..], &[0; 28], &[*end, 1]].concat().try_into().unwrap());
        let leaves: BTreeMap<H256, Vec<u8>> = keys.iter().map(|(key, value)| (of(key), value.clone())).collect();
        let entries: Entries = leaves.iter().map(|(key, value)| (key.0.to_vec(), value.clone())).collect();
        let root = sorted_root(leaves.into_iter().map(Ok::<_, std::convert::Infallible>)).unwrap();
        prop_assert_eq!(root.0, alloy(&entries, &[]).0.0);
    }

    #[test]
    fn every_change_leaves_the_defined_root(history in changes(nested_keys()), hash_often in any::<bool>()) {
        let (mut trie, mut entries) = (Trie::new(), Entries::new());
        let mut clones = Vec::new();
        for (key, value) in &history {
            change(&mut trie, &mut entries, key, value.as_ref());
            if hash_often {
                prop_assert_eq!(trie.root(), defined_root(&entries), "after {:x?}", key);
                clones.push((trie.clone(), trie.root(), entries.clone()));
            }
        }
        prop_assert_eq!(trie.root(), defined_root(&entries));
        for (clone, root, entries) in clones {
            prop_assert_eq!(clone.root(), root, "a clone has changed");
            let rebuilt: Trie = entries.into_iter().collect();
            prop_assert_eq!(rebuilt.root(), root);
        }
    }

    #[test]
    fn removing_every_key_leaves_the_empty_trie(entries in btree_map(nested_keys(), values(), 0..40)) {
        let mut trie: Trie = entries.iter().map(|(key, value)| (key, value.clone())).collect();
        for (key, value) in &entries {
            prop_assert_eq!(trie.get(key).map(|value| value.to_vec()), Some(value.clone()));
            trie.insert(key, Vec::new());
            prop_assert_eq!(trie.get(key), None);
        }
        prop_assert!(trie.is_empty());
        prop_assert_eq!(trie.root(), EMPTY_ROOT);
    }

    #[test]
    fn proofs_verify(entries in btree_map(nested_keys(), values(), 0..40), other in nested_keys()) {
        let trie: Trie = entries.iter().map(|(key, value)| (key, value.clone())).collect();
        for key in entries.keys().chain([&other]) {
            let value = entries.get(key).map(|value| Bytes::from(value.clone()));
            let proof = trie.prove(key);
            prop_assert_eq!(verify_proof(trie.root(), key, &proof), Ok(value), "key {:x?}", key);
        }
    }

    #[test]
    fn altered_proofs_do_not_verify(
        entries in btree_map(nested_keys(), values(), 1..40),
        key in nested_keys(),
        place in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let trie: Trie = entries.iter().map(|(key, value)| (key, value.clone())).collect();
        let proof: Vec<Vec<u8>> = trie.prove(&key).iter().map(|node| node.to_vec()).collect();
        let (root, index) = (trie.root(), place.index(proof.len()));

        let mut flipped = proof.clone();
        let byte = place.index(flipped[index].len());
        flipped[index][byte] ^= 1 << bit;
        prop_assert!(verify_proof(root, &key, &flipped).is_err(), "a flipped bit");

        let mut shortened = proof.clone();
        shortened.remove(index);
        prop_assert!(verify_proof(root, &key, &shortened).is_err(), "a missing node");

        let mut longer = proof.clone();
        longer.push(proof[index].clone());
        prop_assert_eq!(verify_proof(root, &key, &longer), Err(ProofError::Surplus { index: proof.len() }));
    }

    /// The root is the hash of the first node, so that its bytes reach the decoder.
    #[test]
    fn random_nodes_never_panic(
        nodes in vec(prop_oneof![vec(any::<u8>(), 0..80), node_like()], 1..4),
        key in vec(any::<u8>(), 0..4),
    ) {
        let _ = verify_proof(keccak256(&nodes[0]), &key, &nodes);
        let _ = verify_proof(H256::zero(), &key, &nodes);
    }
}

/// Lists whose header is right, or off by one byte.
fn node_like() -> impl Strategy<Value = Vec<u8>> {
    let item = prop_oneof![Just(vec![0x80]), Just(vec![0x20]), vec(any::<u8>(), 1..4)];
    (vec(item, 1..18), -1i8..2).prop_map(|(items, error)| {
        let payload = items.concat();
        let mut node = vec![(0xc0 + payload.len() as u8).wrapping_add_signed(error)];
        node.extend(payload);
        node
    })
}

#[test]
fn only_the_empty_trie_has_an_empty_proof() {
    let empty: [Bytes; 0] = [];
    assert_eq!(Trie::new().root(), EMPTY_ROOT);
    assert!(Trie::new().prove(b"key").is_empty());
    assert_eq!(verify_proof(EMPTY_ROOT, b"key", &empty), Ok(None));
    let root = Trie::from_iter([("key", b"value".to_vec())]).root();
    assert_eq!(verify_proof(root, b"key", &empty), Err(ProofError::Incomplete { missing: root }));
    assert_eq!(verify_proof(EMPTY_ROOT, b"key", &[[0x80]]), Err(ProofError::Surplus { index: 0 }));
}

#[test]
fn ordered_roots_equal_those_of_alloy() {
    for count in [0, 1, 2, 16, 127, 128, 129, 300] {
        let items: Vec<Vec<u8>> = (0..count).map(|item| vec![item as u8 | 1; 1 + item % 50]).collect();
        let expected =
            alloy_trie::root::ordered_trie_root_with_encoder(&items, |item, out| out.extend_from_slice(item));
        assert_eq!(ordered_root(&items).0, expected.0, "{count} items");
    }
}

/// Returns a file of Ethereum's TrieTests: in `../shared` beside the workspace, or in the folder in `NODE_SHARED`.
fn recorded(file: &str) -> serde_json::Map<String, serde_json::Value> {
    let shared = std::env::var_os("NODE_SHARED")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")), PathBuf::from);
    let path = shared.join("vectors/ethereum-tests/TrieTests").join(file);
    let json = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&json).unwrap()
}

/// `trietestnextprev.json` is left out: it looks up neighbouring keys, which this trie does not support.
#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn recorded_roots() {
    let files = [
        ("trieanyorder.json", false),
        ("trietest.json", false),
        ("trieanyorder_secureTrie.json", true),
        ("trietest_secureTrie.json", true),
        ("hex_encoded_securetrie_test.json", true),
    ];
    for (file, secure) in files {
        for (name, test) in recorded(file) {
            let mut trie = Trie::new();
            for (key, value) in recorded_changes(&test["in"]) {
                let key = if secure { keccak256(key).as_bytes().to_vec() } else { key };
                trie.insert(&key, value);
            }
            assert_eq!(format!("{:#x}", trie.root()), test["root"].as_str().unwrap(), "{file}: {name}");
        }
    }
}

/// Returns the changes of a recorded test in order. The file has an object or an array of pairs; null removes a key.
fn recorded_changes(changes: &serde_json::Value) -> Vec<(Vec<u8>, Vec<u8>)> {
    let bytes = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => alloy_primitives::hex::decode(hex).unwrap(),
        None => text.as_bytes().to_vec(),
    };
    let value = |value: &serde_json::Value| value.as_str().map(bytes).unwrap_or_default();
    match changes {
        serde_json::Value::Object(map) => map.iter().map(|(key, entry)| (bytes(key), value(entry))).collect(),
        list => list.as_array().unwrap().iter().map(|pair| (value(&pair[0]), value(&pair[1]))).collect(),
    }
}
