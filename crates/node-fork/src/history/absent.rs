//! What the upstream did not have a short time ago.

use node_types::H256;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long the upstream is not asked again. It may have a block or a transaction later than another upstream.
const TIME: Duration = Duration::from_secs(30);

/// Maximum number of hashes that are remembered.
const MAX: usize = 4_096;

/// Hashes of blocks and transactions that the upstream did not have, such as those of transactions in the pool, which
/// clients ask for again and again.
#[derive(Debug, Default)]
pub(super) struct Absent(Mutex<HashMap<H256, Instant>>);

impl Absent {
    pub(super) fn contains(&self, hash: H256) -> bool {
        self.0.lock().get(&hash).is_some_and(|since| since.elapsed() < TIME)
    }

    pub(super) fn insert(&self, hash: H256) {
        let mut all = self.0.lock();
        if all.len() >= MAX {
            all.retain(|_, since| since.elapsed() < TIME);
        }
        if all.len() < MAX {
            all.insert(hash, Instant::now());
        }
    }
}
