//! Keccak-256, the hash function of Ethereum (Yellow Paper, section 3).

#[cfg(target_arch = "x86_64")]
mod lanes;

use primitive_types::H256;
use tiny_keccak::{Hasher, Keccak};

/// The hash of the empty byte string: the code hash of an account without code.
pub const KECCAK_EMPTY: H256 = H256([
    0xc5, 0xd2, 0x46, 0x01, 0x86, 0xf7, 0x23, 0x3c, 0x92, 0x7e, 0x7d, 0xb2, 0xdc, 0xc7, 0x03, 0xc0, 0xe5, 0x00, 0xb6,
    0x53, 0xca, 0x82, 0x27, 0x3b, 0x7b, 0xfa, 0xd8, 0x04, 0x5d, 0x85, 0xa4, 0x70,
]);

/// Returns the Keccak-256 of `bytes`, with the padding of the original submission rather than that of FIPS 202 (SHA-3).
///
/// # Examples
/// ```
/// use node_types::{KECCAK_EMPTY, keccak256};
///
/// assert_eq!(keccak256([]), KECCAK_EMPTY);
/// ```
pub fn keccak256(bytes: impl AsRef<[u8]>) -> H256 {
    #[cfg(target_arch = "x86_64")]
    if let Some(hash) = lanes::keccak256(bytes.as_ref()) {
        return hash;
    }
    portable(bytes.as_ref())
}

fn portable(bytes: &[u8]) -> H256 {
    let mut hasher = Keccak::v256();
    hasher.update(bytes);
    let mut hash = H256::zero();
    hasher.finalize(hash.as_bytes_mut());
    hash
}

/// Returns the Keccak-256 of each message, in their order.
///
/// Use this for messages that do not depend on each other, such as the nodes on one level of a trie: with AVX-512,
/// eight are hashed in the time of one, with AVX2 four. The processor's features are detected at run time. Short and
/// long messages may be mixed in any order.
///
/// # Examples
/// ```
/// use node_types::{keccak256, keccak256_all};
///
/// assert_eq!(keccak256_all(&["one", "two"]), [keccak256("one"), keccak256("two")]);
/// ```
pub fn keccak256_all<T: AsRef<[u8]>>(messages: &[T]) -> Vec<H256> {
    #[cfg(target_arch = "x86_64")]
    if let Some(hashes) = lanes::keccak256_all(messages) {
        return hashes;
    }
    messages.iter().map(keccak256).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn many_hashes_are_those_of_each(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..40)) {
            let expected: Vec<_> = messages.iter().map(|message| portable(message)).collect();
            prop_assert_eq!(keccak256_all(&messages), expected);
        }
    }

    #[test]
    fn every_length_around_the_rate_is_padded_correctly() {
        for length in 0..=3 * 136 + 1 {
            let messages: Vec<Vec<u8>> = (0..9u8).map(|fill| vec![fill; length]).collect();
            let expected: Vec<_> = messages.iter().map(|message| portable(message)).collect();
            assert_eq!(keccak256_all(&messages), expected, "{length} bytes");
            assert_eq!(keccak256(&messages[8]), expected[8], "{length} bytes");
        }
    }

    #[test]
    fn hash_of_nothing_is_the_constant() {
        assert_eq!(keccak256([]), KECCAK_EMPTY);
    }
}
