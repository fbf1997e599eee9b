//! Tests of the whole backend.

mod answers;
mod backup;
mod caches;
mod crashes;
mod damage;
mod opening;
mod pruning;
mod random;
mod suite;

use crate::{Options, SyncPolicy};

/// Options under which rows go to the database after `blocks_in_memory` blocks, and pruning commits often.
fn small(blocks_in_memory: u64, sync: SyncPolicy) -> Options {
    Options { cache_bytes: 1 << 20, sync, commit_rows: 0, blocks_in_memory, prune_rows: 3, ..Options::default() }
}
