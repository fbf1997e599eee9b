//! Pruning of old states.

use super::small;
use crate::files::faults::FaultyDisk;
use crate::{Store, SyncPolicy};
use node_core::backend::suite::Random;
use node_core::backend::{BackendError, MemoryBackend, StateBackend};
use node_core::state::StateChanges;

fn trie_rows(store: &Store) -> u64 {
    store.stats().unwrap().tables.iter().find(|table| table.name == "trie").unwrap().rows
}

#[test]
fn drops_exactly_the_states_before_the_floor() {
    for seed in 0..6 {
        let random = &mut Random(seed);
        let mut chain = random.chain(150);
        let disk = FaultyDisk::new();
        let genesis = chain.blocks()[0].clone();
        let options = small(20, SyncPolicy::Always);
        let mut store = Store::open_in(disk.folder(), genesis.clone(), options).unwrap();
        let reference = MemoryBackend::new(genesis.clone()).unwrap();
        for block in chain.above(0) {
            store.append(block.clone()).unwrap();
            reference.append(block).unwrap();
        }
        store.flush().unwrap();
        let rows = trie_rows(&store);
        for floor in [0, 40, 30, 149, 170] {
            let earliest = store.view().unwrap().earliest_state().max(floor);
            store.prune_before(floor).unwrap();
            let head = chain.head().header.header.number;
            random.extend(&mut chain, 10);
            for block in chain.above(head) {
                store.append(block.clone()).unwrap();
                reference.append(block).unwrap();
            }
            drop(store);
            store = Store::open_in(disk.folder(), genesis.clone(), options).unwrap();
            let (view, expected) = (store.view().unwrap(), reference.view().unwrap());
            assert_eq!(view.earliest_state(), earliest);
            for at in 0..=chain.head().header.header.number {
                for address in Random::addresses() {
                    match view.state(at).and_then(|state| state.proof(address, &Random::slots())) {
                        Ok(proof) if at >= earliest => {
                            let expected = expected.state(at).unwrap().proof(address, &Random::slots()).unwrap();
                            assert_eq!(proof, expected, "{address:#x} as of {at}, pruned before {floor}");
                        }
                        Err(BackendError::StatePruned { block, earliest: named }) => {
                            assert!((block, named) == (at, earliest) && at < earliest, "as of {at}, before {floor}");
                        }
                        other => panic!("as of {at}, pruned before {floor}: {other:?}"),
                    }
                }
            }
            let switched = store.switch(earliest.wrapping_sub(1), Vec::new());
            assert!(earliest == 0 || matches!(switched, Err(BackendError::StatePruned { .. })), "{switched:?}");
        }
        assert!(trie_rows(&store) < rows, "{} rows of {rows} left", trie_rows(&store));
        store.switch(170, Vec::new()).unwrap();
        chain = chain.up_to(170);
        let root = chain.head().header.header.state_root;
        let view = store.view().unwrap();
        assert_eq!(view.state(170).unwrap().root_after(&StateChanges::default()).unwrap(), root);
        drop(view);
        let beyond = store.prune_before(171);
        assert!(matches!(beyond, Err(BackendError::UnknownBlock(171))), "{beyond:?}");
    }
}
