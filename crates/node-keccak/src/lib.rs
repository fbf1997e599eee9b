#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(target_arch = "x86_64")]
mod lanes;

use tiny_keccak::{Hasher, Keccak};

/// Bytes that one permutation absorbs.
#[cfg(target_arch = "x86_64")]
const RATE: usize = 136;

/// Returns the Keccak-256 of `message` (Yellow Paper, section 3).
pub fn keccak256(message: &[u8]) -> [u8; 32] {
    let mut hasher = Keccak::v256();
    hasher.update(message);
    let mut hash = [0; 32];
    hasher.finalize(&mut hash);
    hash
}

/// Returns the Keccak-256 of each message, in their order.
///
/// Messages of about the same length are hashed together, so that it does not matter in which order they come.
pub fn keccak256_all<T: AsRef<[u8]>>(messages: &[T]) -> Vec<[u8; 32]> {
    #[cfg(target_arch = "x86_64")]
    if let Some(hashes) = lanes::keccak256_all(messages) {
        return hashes;
    }
    messages.iter().map(|message| keccak256(message.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_hashing_one_by_one(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..40)) {
            let expected: Vec<_> = messages.iter().map(|message| keccak256(message)).collect();
            prop_assert_eq!(keccak256_all(&messages), expected);
        }
    }

    #[test]
    fn every_length_around_the_rate_is_padded_correctly() {
        for length in 0..=3 * 136 + 1 {
            let messages: Vec<Vec<u8>> = (0..9u8).map(|fill| vec![fill; length]).collect();
            let expected: Vec<_> = messages.iter().map(|message| keccak256(message)).collect();
            assert_eq!(keccak256_all(&messages), expected, "{length} bytes");
        }
    }
}
