//! Storage tries that continue those of a base, of every small shape, compared with `node_core`'s trie in memory.

use super::*;
use crate::keys::Key;
use crate::rows::{BlockRows, Generation, Tables};
use crate::tests::TestBase;
use node_core::backend::suite::Random;
use node_core::trie::Trie;
use std::sync::Arc;

const ACCOUNT: Address = Address::repeat_byte(0xac);

type Leaves = BTreeMap<H256, Vec<u8>>;

/// The versions of one trie.
struct Model {
    base: TestBase,
    rows: Rows,
    /// The trie with its root hash, and its leaves, after each block.
    versions: Vec<(Option<(TrieId, H256)>, Leaves)>,
}

impl Model {
    fn new(leaves: Leaves) -> Self {
        let values = leaves.iter().map(|(key, word)| (*key, trie::encode_word_leaf(word))).collect();
        let base = TestBase::of_storage(ACCOUNT, &values);
        let rows = Rows {
            head: BlockNumber::MAX,
            young: Arc::new(Generation::default()),
            old: Arc::default(),
            tables: Arc::new(Tables::new(Vec::new(), Vec::new())),
            limit: 0,
            base: Some(Arc::new(base.clone())),
        };
        let root = oracle(&leaves).root();
        let storage = (root != EMPTY_ROOT).then_some((TrieId::UNCHANGED, root));
        Self { base, rows, versions: vec![(storage, leaves)] }
    }

    /// Makes the nodes known that a change or proof of a leaf needs.
    fn fetch(&self, trie: TrieId, at: BlockNumber, leaf: H256) {
        if trie.continues_base() && self.rows.newest(&Key::of_slot(trie, leaf), at).unwrap().is_none() {
            self.base.learn(Some(ACCOUNT), leaf);
        }
    }

    fn apply(&mut self, changes: &BTreeMap<H256, Vec<u8>>) {
        let number = self.versions.len() as u64;
        let (before, mut leaves) = self.versions.last().unwrap().clone();
        let changes: Leaves = changes
            .iter()
            .filter(|(_, word)| before.is_some() || !word.is_empty())
            .map(|(k, w)| (*k, w.clone()))
            .collect();
        for leaf in changes.keys() {
            before.iter().for_each(|(trie, _)| self.fetch(*trie, number - 1, *leaf));
        }
        let mut new = NewState::default();
        let storage = StorageBefore { address: ACCOUNT, parent: Before::Block(number - 1), before, new: (number, 0) };
        let changed = new.change_slots(&self.rows, None, storage, changes.clone()).unwrap();
        let after = match changed {
            None => before,
            Some((trie, planned)) => {
                let Update { root, rows } = trie::finish(vec![planned]).remove(0);
                new.add_nodes(trie, rows);
                (root != EMPTY_ROOT).then_some((trie, root))
            }
        };
        leaves.retain(|leaf, _| !changes.contains_key(leaf));
        leaves.extend(changes.into_iter().filter(|(_, word)| !word.is_empty()));
        assert_eq!(after.map_or(EMPTY_ROOT, |(_, root)| root), oracle(&leaves).root(), "block {number}");
        let mut rows = BlockRows::default();
        let mut keys: Vec<_> = new.rows.iter().map(|(key, _)| key.as_slice().to_vec()).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), new.rows.len(), "two rows with one key");
        new.rows.iter().for_each(|(key, value)| rows.add(*key, number, value));
        self.rows.young.add(rows);
        self.versions.push((after, leaves));
    }

    /// Compares the proofs of `keys` as of every block.
    fn check(&self, keys: &[H256]) {
        for (at, (storage, leaves)) in (0..).zip(&self.versions) {
            let Some((trie, _)) = *storage else { continue };
            let expected = oracle(leaves);
            for key in keys {
                self.fetch(trie, at, *key);
                let base = storage_base(&self.rows, trie, ACCOUNT, *storage);
                let mut reader =
                    TrieReader { rows: &self.rows, trie, at: Some(at), replaces: false, cache: None, base };
                let proof = trie::prove(&mut reader, &NibblePath::from(*key), None).unwrap();
                assert_eq!(proof, expected.prove(key.as_bytes()), "proof of {key:#x} as of {at}");
            }
        }
    }
}

fn oracle(leaves: &Leaves) -> Trie {
    leaves.iter().map(|(key, word)| (*key, trie::encode_word_leaf(word))).collect::<Trie>()
}

/// Returns a key that shares few or many nibbles with others.
fn key(random: &mut Random) -> H256 {
    let mut key = H256::repeat_byte(0x11);
    for _ in 0..random.below(3) {
        // Among them are nibbles so low that leaves are embedded in their parents.
        let byte = [0, 0, 0, 1, 2, 3, 5, 8, 20, 31][random.below(10) as usize];
        key.0[byte] ^= [0x01, 0x02, 0x10, 0x20][random.below(4) as usize];
    }
    key
}

fn word(random: &mut Random) -> Vec<u8> {
    match random.below(5) {
        0 | 1 => Vec::new(),
        2 | 3 => vec![1 + random.below(100) as u8],
        _ => vec![0xff; 32],
    }
}

#[test]
fn tries_of_every_small_shape_continue_those_of_a_base() {
    let mut resolved = 0;
    for seed in 0..4_000 {
        let random = &mut Random(seed);
        let keys: Vec<H256> = (0..2 + random.below(8)).map(|_| key(random)).collect();
        let pick = |random: &mut Random| keys[random.below(keys.len() as u64) as usize];
        let mut leaves = Leaves::new();
        for _ in 0..random.below(7) {
            // Among them are leaves of slots that are zero, which some servers keep.
            let length = if random.once_in(8) { 0 } else { 1 + random.below(32) as usize };
            leaves.insert(pick(random), vec![1 + random.below(200) as u8; length]);
        }
        let mut model = Model::new(leaves);
        for _ in 0..1 + random.below(6) {
            let changes = (0..1 + random.below(3)).map(|_| (pick(random), word(random))).collect();
            model.apply(&changes);
        }
        let counted = model.base.known().resolved;
        model.check(&keys);
        assert_eq!(model.base.known().resolved, counted, "a proof resolved nodes, seed {seed}");
        resolved += counted;
    }
    assert!(resolved > 0);
}
