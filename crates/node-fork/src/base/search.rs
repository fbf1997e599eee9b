//! Searching keys whose hashes begin with given nibbles.

use node_core::context::Context;
use node_types::trie::NibblePath;
use node_types::{H256, keccak256_all};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Maximum number of nibbles: a search for 7 tries 268 million keys on average, which takes seconds.
pub(super) const MAX_NIBBLES: usize = 7;

/// Number of threads that search.
const THREADS: u64 = 2;

/// Number of keys that are hashed between two looks at the context.
const BATCH: u64 = 4_096;

/// Finds `N` bytes whose hash begins with `prefix`, of at most [`MAX_NIBBLES`] nibbles. The search begins with the key with
/// the number `start`. If `context` ends it, the result is the number of the key with which another search can go on.
pub(super) fn find_key<const N: usize>(prefix: &NibblePath, start: u64, context: &Context) -> Result<[u8; N], u64> {
    let (found, ended) = (Mutex::new(None), AtomicBool::new(false));
    // Returns the number up to which it has tried its share of the keys.
    let search = |first: u64| {
        let mut start = start;
        // Each search tries some, so that many short ones come to an end.
        loop {
            let numbers = start + first * BATCH..start + (first + 1) * BATCH;
            let keys: Vec<[u8; N]> = numbers.map(key).collect();
            let hashes = keccak256_all(&keys);
            if let Some(index) = hashes.iter().position(|hash| begins_with(hash, prefix)) {
                *found.lock() = Some(keys[index]);
                ended.store(true, Ordering::Relaxed);
            }
            if context.check().is_err() {
                ended.store(true, Ordering::Relaxed);
            }
            start += THREADS * BATCH;
            if ended.load(Ordering::Relaxed) {
                return start;
            }
        }
    };
    let next = thread::scope(|scope| {
        let others = (1..THREADS).map(|first| {
            // Without the thread, this one searches half of the keys, which are enough.
            thread::Builder::new().name("search".to_owned()).spawn_scoped(scope, move || search(first))
        });
        let others: Vec<_> = others.filter_map(Result::ok).collect();
        let own = search(0);
        others.into_iter().filter_map(|thread| thread.join().ok()).fold(own, u64::min)
    });
    found.into_inner().ok_or(next)
}

/// Returns the key with a number. Its first byte is not zero, so it is neither a precompile nor a slot of a variable.
fn key<const N: usize>(number: u64) -> [u8; N] {
    let mut key = [0xff; N];
    key[N - 8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Returns the number of a key.
pub(super) fn number<const N: usize>(key: &[u8; N]) -> u64 {
    key[N - 8..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
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
        let context = Context::unbounded();
        for length in 0..5 {
            for byte in [0x00, 0x5a, 0xff] {
                let prefix = NibblePath::from(H256::repeat_byte(byte)).prefix(length);
                let address = find_key::<20>(&prefix, 0, &context).unwrap();
                assert!(NibblePath::from(keccak256(address)).starts_with(&prefix));
                let slot = find_key::<32>(&prefix, 0, &context).unwrap();
                assert!(NibblePath::from(keccak256(slot)).starts_with(&prefix));
            }
        }
    }

    #[test]
    fn a_search_ends_with_its_request_and_another_goes_on() {
        let over = Context::unbounded().with_timeout(Duration::ZERO);
        let prefix = NibblePath::from(H256::repeat_byte(7)).prefix(MAX_NIBBLES);
        let mut next = 0;
        for _ in 0..3 {
            let begun = next;
            next = find_key::<20>(&prefix, begun, &over).unwrap_err();
            assert!(next > begun, "{begun} {next}");
        }
        let cancelled = Context::unbounded();
        cancelled.cancel();
        assert!(find_key::<20>(&prefix, next, &cancelled).is_err());
        // In parts, all keys are tried.
        let prefix = prefix.prefix(3);
        let mut next = 0;
        let found = loop {
            match find_key::<20>(&prefix, next, &over) {
                Ok(found) => break found,
                Err(later) => next = later,
            }
        };
        assert!(NibblePath::from(keccak256(found)).starts_with(&prefix));
    }
}
