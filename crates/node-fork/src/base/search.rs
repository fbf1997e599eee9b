//! Searching keys whose hashes begin with given nibbles.

use node_types::trie::NibblePath;
use node_types::{H256, keccak256_all};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Maximum number of nibbles: a search for 7 tries 268 million keys on average, which takes seconds.
pub(super) const MAX_NIBBLES: usize = 7;

/// Number of threads that search.
const THREADS: u64 = 2;

/// Number of keys that are hashed between two looks at the time.
const BATCH: u64 = 4_096;

/// Finds `N` bytes whose hash begins with `prefix`, of at most [`MAX_NIBBLES`] nibbles. Returns `None` at the deadline.
pub(super) fn find_key<const N: usize>(prefix: &NibblePath, deadline: Instant) -> Option<[u8; N]> {
    let (found, ended) = (Mutex::new(None), AtomicBool::new(false));
    let search = |first: u64| {
        let mut start = first * BATCH;
        while !ended.load(Ordering::Relaxed) {
            let keys: Vec<[u8; N]> = (start..start + BATCH).map(key).collect();
            let hashes = keccak256_all(&keys);
            if let Some(index) = hashes.iter().position(|hash| begins_with(hash, prefix)) {
                *found.lock() = Some(keys[index]);
                ended.store(true, Ordering::Relaxed);
            }
            if Instant::now() >= deadline {
                ended.store(true, Ordering::Relaxed);
            }
            start += THREADS * BATCH;
        }
    };
    thread::scope(|scope| {
        for first in 1..THREADS {
            // Without the thread, this one searches half of the keys, which are enough.
            let _ = thread::Builder::new().name("search".to_owned()).spawn_scoped(scope, move || search(first));
        }
        search(0);
    });
    found.into_inner()
}

/// Returns the key with a number. Its first byte is not zero, so it is neither a precompile nor a slot of a variable.
fn key<const N: usize>(number: u64) -> [u8; N] {
    let mut key = [0xff; N];
    key[N - 8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn begins_with(hash: &H256, prefix: &NibblePath) -> bool {
    let bytes = prefix.packed();
    let (whole, odd) = bytes.split_at(prefix.len() / 2);
    hash.0.starts_with(whole) && odd.first().is_none_or(|last| hash.0[whole.len()] >> 4 == last >> 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::keccak256;
    use std::time::Duration;

    #[test]
    fn keys_with_the_prefix_are_found() {
        let deadline = Instant::now() + Duration::from_secs(60);
        for length in 0..5 {
            for byte in [0x00, 0x5a, 0xff] {
                let prefix = NibblePath::from(H256::repeat_byte(byte)).prefix(length);
                let address = find_key::<20>(&prefix, deadline).unwrap();
                assert!(NibblePath::from(keccak256(address)).starts_with(&prefix));
                let slot = find_key::<32>(&prefix, deadline).unwrap();
                assert!(NibblePath::from(keccak256(slot)).starts_with(&prefix));
            }
        }
    }

    #[test]
    fn a_search_ends_at_its_deadline() {
        let prefix = NibblePath::from(H256::repeat_byte(7)).prefix(MAX_NIBBLES);
        assert_eq!(find_key::<20>(&prefix, Instant::now()), None);
    }
}
