//! Blocked Bloom filters, which show for most absent keys that a part of a run does not have them.

use twox_hash::XxHash3_64;

/// Bits per key. With six of 512 bits set for each, about one of 150 absent keys passes.
const BITS_PER_KEY: usize = 12;

/// Bits set for each key.
const PROBES: u32 = 6;

/// Bytes of a line. All bits of a key are in one line.
const LINE: usize = 64;

/// Returns the hash of a key from which its bits are derived.
pub(super) fn hash(key: &[u8]) -> u64 {
    XxHash3_64::oneshot(key)
}

/// Builds the filter of the keys with these hashes, at least one.
pub(super) fn build(hashes: &[u64]) -> Vec<u8> {
    let lines = (hashes.len() * BITS_PER_KEY).div_ceil(8 * LINE).max(1);
    let mut filter = vec![0; lines * LINE];
    for hash in hashes {
        let start = line(*hash, lines) * LINE;
        bits(*hash).for_each(|bit| filter[start + bit / 8] |= 1 << (bit % 8));
    }
    filter
}

/// Returns whether a key may be among those of the filter.
pub(super) fn may_have(filter: &[u8], hash: u64) -> bool {
    let lines = filter.len() / LINE;
    let Some(line) = filter.get(line(hash, lines) * LINE..).and_then(|rest| rest.first_chunk::<LINE>()) else {
        // Not a filter: the key may be anywhere.
        return true;
    };
    bits(hash).all(|bit| line[bit / 8] & 1 << (bit % 8) != 0)
}

/// Returns the line of a key, by the upper half of its hash.
fn line(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

/// Returns the bits of a key in its line, by the lower half of its hash.
fn bits(hash: u64) -> impl Iterator<Item = usize> {
    let mut state = hash as u32;
    (0..PROBES).map(move |_| {
        // The upper bits of the multiples of an odd constant are well spread.
        state = state.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
        (state >> 23) as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_all_its_keys_and_few_others() {
        for count in [1u64, 10, 1_000, 20_000] {
            let hashes: Vec<u64> = (0..count).map(|key| hash(&key.to_be_bytes())).collect();
            let filter = build(&hashes);
            assert!(hashes.iter().all(|hash| may_have(&filter, *hash)));
            let others = (count..count + 20_000).filter(|key| may_have(&filter, hash(&key.to_be_bytes()))).count();
            assert!(others < 500, "{others} of 20,000 with {count} keys");
        }
        assert!(may_have(&[], 7));
    }
}
