//! Statistics of the caches.

use super::small;
use crate::files::faults::FaultyDisk;
use crate::{Store, SyncPolicy};
use node_core::backend::suite::{Random, check_view};
use node_core::backend::{CacheUse, StateBackend};

fn of(store: &Store, name: &str) -> CacheUse {
    let caches = store.caches();
    let mut found = caches.iter().filter(|cache| cache.name == name);
    let cache = *found.next().unwrap_or_else(|| panic!("no cache {name}: {caches:?}"));
    assert!(found.next().is_none(), "{name} twice");
    cache
}

#[test]
fn counts_hits_misses_and_bytes() {
    let chain = Random(1).chain(40);
    let disk = FaultyDisk::new();
    let options = small(1, SyncPolicy::Always);
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), options).unwrap();
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    let nodes = of(&store, "trie_nodes");
    assert!(nodes.hits > 0 && nodes.misses > 0 && nodes.bytes > 0, "{nodes:?}");
    drop(store);

    // After opening again, no cache has any entries.
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), options).unwrap();
    let view = store.view().unwrap();
    let hash = chain.blocks()[7].header.hash;
    let before = of(&store, "receipts");
    assert_eq!((before.bytes, before.hits, before.misses), (0, 0, 0));
    for _ in 0..3 {
        view.receipts(hash.into()).unwrap().unwrap();
    }
    let after = of(&store, "receipts");
    assert_eq!((after.hits, after.misses), (2, 1));
    assert!((1..=after.capacity).contains(&after.bytes), "{after:?}");
    let pages = of(&store, "pages");
    assert!(pages.hits + pages.misses > 0 && pages.bytes > 0, "{pages:?}");
    let capacity: u64 = store.caches().iter().map(|cache| cache.capacity).sum();
    let wanted = options.cache_bytes as u64;
    assert!(capacity.abs_diff(wanted) < wanted / 10, "{capacity} of {wanted}");
}

/// Rows that are cached for one branch or block are not returned for another.
#[test]
fn newest_rows_are_those_of_the_view() {
    let random = &mut Random(3);
    let chain = random.chain(30);
    let disk = FaultyDisk::new();
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), small(1, SyncPolicy::Always)).unwrap();
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    store.flush().unwrap();
    let before = store.view().unwrap();
    check_view(&*before, &chain);
    // Blocks that are in runs leave the chain.
    let mut branch = chain.up_to(20);
    random.extend(&mut branch, 5);
    store.switch(20, branch.above(20)).unwrap();
    for _ in 0..2 {
        for _ in 0..2 {
            check_view(&*store.view().unwrap(), &branch);
            check_view(&*before, &chain);
        }
        store.flush().unwrap();
    }
    let newest = of(&store, "newest_rows");
    assert!(newest.hits > 0 && newest.bytes > 0, "{newest:?}");
}
