//! Derivation of secret keys from a seed along a path (BIP-32).

use bitcoin_hashes::{Hash, HashEngine, Hmac, HmacEngine, sha512};
use node_evm::{InvalidKey, SecretKey};
use std::fmt;
use std::str::FromStr;
use zeroize::Zeroizing;

/// Added to the indices of hardened children, whose keys cannot be derived from public keys.
const HARDENED: u32 = 1 << 31;

/// Maximum number of steps of a path. A key has at most 255 ancestors, and accounts are one step below their path.
const MAX_STEPS: usize = 254;

/// A path from the master key, such as `m/44'/60'/0'/0`: the indices of the children along it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DerivationPath(Vec<u32>);

impl FromStr for DerivationPath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let mut parts = text.split('/');
        if parts.next() != Some("m") {
            return Err(InvalidPath::Master);
        }
        let steps = parts.map(step).collect::<Result<Vec<_>, _>>()?;
        if steps.len() > MAX_STEPS { Err(InvalidPath::TooLong) } else { Ok(Self(steps)) }
    }
}

/// Decodes the index of a child; `'` or `h` marks a hardened one.
fn step(text: &str) -> Result<u32, InvalidPath> {
    let (digits, offset) = text.strip_suffix(['\'', 'h']).map_or((text, 0), |digits| (digits, HARDENED));
    let index = digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse::<u32>().ok()).flatten();
    index.filter(|index| *index < HARDENED).map(|index| index + offset).ok_or(InvalidPath::Step)
}

impl fmt::Display for DerivationPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("m")?;
        self.0.iter().try_for_each(|step| {
            let mark = if *step >= HARDENED { "'" } else { "" };
            write!(f, "/{}{mark}", step % HARDENED)
        })
    }
}

/// Why text is not a derivation path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPath {
    #[error("it does not begin with m")]
    Master,
    /// A part is not a number below 2^31, with or without `'` or `h`.
    #[error("a part is not a number below 2^31")]
    Step,
    #[error("it has more than {MAX_STEPS} numbers")]
    TooLong,
}

/// A key from which others can be derived.
pub(crate) struct ExtendedKey {
    key: SecretKey,
    chain_code: Zeroizing<[u8; 32]>,
}

impl ExtendedKey {
    /// Returns the key at the end of `path` below the master key of `seed`.
    ///
    /// # Errors
    /// If a key on the path is not valid, which has a probability of 2^-127.
    pub(crate) fn derive(seed: &[u8], path: &DerivationPath) -> Result<Self, InvalidKey> {
        let (key, chain_code) = hash(b"Bitcoin seed", &[seed]);
        let master = Self { key: SecretKey::from_bytes(&key)?, chain_code };
        path.0.iter().try_fold(master, |key, step| key.child(*step))
    }

    /// Returns the child with this index.
    ///
    /// # Errors
    /// If it is not valid, which has a probability of 2^-127.
    pub(crate) fn child(&self, index: u32) -> Result<Self, InvalidKey> {
        let index_bytes = index.to_be_bytes();
        let (tweak, chain_code) = if index >= HARDENED {
            let secret = Zeroizing::new(self.key.to_bytes());
            hash(&*self.chain_code, &[&[0], &*secret, &index_bytes])
        } else {
            hash(&*self.chain_code, &[&self.key.public_key(), &index_bytes])
        };
        Ok(Self { key: self.key.add(&tweak)?, chain_code })
    }

    pub(crate) fn into_key(self) -> SecretKey {
        self.key
    }
}

/// Returns the halves of the HMAC-SHA512 of the concatenated `parts`.
fn hash(key: &[u8], parts: &[&[u8]]) -> (Zeroizing<[u8; 32]>, Zeroizing<[u8; 32]>) {
    let mut engine = HmacEngine::<sha512::Hash>::new(key);
    parts.iter().for_each(|part| engine.input(part));
    let hash = Zeroizing::new(Hmac::from_engine(engine).to_byte_array());
    let half = |start: usize| Zeroizing::new(std::array::from_fn(|index| hash[start + index]));
    (half(0), half(32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(seed: &[u8], path: &str) -> [u8; 32] {
        ExtendedKey::derive(seed, &path.parse().unwrap()).unwrap().into_key().to_bytes()
    }

    #[test]
    fn derives_the_keys_of_the_standard() {
        // Test vectors 1 and 3 of BIP-32.
        let first = const_hex::decode("000102030405060708090a0b0c0d0e0f").unwrap();
        let third = const_hex::decode(
            "4b381541583be4423346c643850da4b320e46a87ae3d2a4e6da11eba819cd4acba45d239319ac14f863b8d5ab5a0d0c64d2e8a1e7d1457df2e5a3c51c73235be",
        )
        .unwrap();
        let cases = [
            (&first, "m", "e8f32e723decf4051aefac8e2c93c9c5b214313817cdb01a1494b917c8436b35"),
            (&first, "m/0'", "edb2e14f9ee77d26dd93b4ecede8d16ed408ce149b6cd80b0715a2d911a0afea"),
            (&first, "m/0'/1", "3c6cb8d0f6a264c91ea8b5030fadaa8e538b020f0a387421a12de9319dc93368"),
            (&first, "m/0'/1/2'/2/1000000000", "471b76e389e528d6de6d816857e012c5455051cad6660850e58372a6c3e6e7c8"),
            // The key begins with a zero.
            (&third, "m", "00ddb80b067e0d4993197fe10f2657a844a384589847602d56f0c629c81aae32"),
            (&third, "m/0'", "491f7a2eebc7b57028e0d3faa0acda02e75c33b03c48fb288c41e2ea44e1daef"),
        ];
        for (seed, path, expected) in cases {
            assert_eq!(const_hex::encode(key(seed, path)), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_another_implementation(seed: [u8; 64], steps in prop::collection::vec(any::<u32>(), 0..5)) {
            let path = DerivationPath(steps);
            let expected = bip32::XPrv::derive_from_path(seed, &path.to_string().parse().unwrap()).unwrap();
            prop_assert_eq!(key(&seed, &path.to_string()), expected.to_bytes());
        }

        #[test]
        fn a_path_is_what_another_implementation_takes(text in "m?(/[0-9]{0,11}'?){0,6}") {
            let expected = text.parse::<bip32::DerivationPath>().ok().map(|path| path.to_string());
            prop_assert_eq!(text.parse::<DerivationPath>().ok().map(|path| path.to_string()), expected);
        }
    }
}
