//! Reading a shared store.

mod cache;
mod histories;
mod publisher;

use super::*;
use crate::shared::MemoryObjects;
use node_core::backend::suite::{TestChain, check_view};
use publisher::Publisher;

fn check(reader: &StoreReader, chain: &TestChain) {
    assert_eq!(reader.view().unwrap().head(), chain.head().header.block_ref());
    check_view(&*reader.view().unwrap(), chain);
}

/// Options without a cache on a disk.
fn small() -> SharedOptions {
    SharedOptions { cache_bytes: 1 << 20, ..SharedOptions::default() }
}

fn open(objects: &Arc<dyn Objects>) -> StoreReader {
    StoreReader::open_shared(Arc::clone(objects), small()).unwrap()
}
