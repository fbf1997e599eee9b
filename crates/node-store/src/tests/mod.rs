//! Tests of the whole backend.

mod backup;
mod caches;
mod crashes;
mod damage;
mod layout;
mod opening;
mod pruning;
mod queries;
mod random;
mod suite;

use crate::{Options, SyncPolicy};

/// Options that move rows to the database after `blocks_in_memory` blocks.
fn small(blocks_in_memory: u64, sync: SyncPolicy) -> Options {
    Options { cache_bytes: 1 << 20, sync, commit_rows: 0, blocks_in_memory, prune_rows: 3, ..Options::default() }
}
