//! Secret keys of accounts, on libsecp256k1.

use crate::recovery::address_of;
use node_types::consensus::Signature;
use node_types::{Address, H256, U256};
use secp256k1::ecdsa::RecoveryId;
use secp256k1::{Message, SECP256K1, Scalar};
use std::fmt;

/// The secret key of an account. Its memory is erased when it is dropped. `Debug` shows only the address.
#[derive(Clone)]
pub struct SecretKey(secp256k1::SecretKey);

impl SecretKey {
    /// Creates a key from its bytes, in big-endian order.
    ///
    /// # Errors
    /// Returns [`InvalidKey`] if the number is zero or not below the order of the curve.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, InvalidKey> {
        secp256k1::SecretKey::from_byte_array(*bytes).map(Self).map_err(|_| InvalidKey)
    }

    /// Returns the bytes of the key.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.secret_bytes()
    }

    /// Returns the public key in compressed form.
    pub fn public_key(&self) -> [u8; 33] {
        self.0.public_key(SECP256K1).serialize()
    }

    /// Returns the sum of the key and a number in big-endian order, modulo the order of the curve (BIP-32).
    ///
    /// # Errors
    /// Returns [`InvalidKey`] if the number is not below the order of the curve, or the sum is zero.
    pub fn add(&self, number: &[u8; 32]) -> Result<Self, InvalidKey> {
        let number = Scalar::from_be_bytes(*number).map_err(|_| InvalidKey)?;
        self.0.add_tweak(&number).map(Self).map_err(|_| InvalidKey)
    }

    /// Returns the address of the account.
    pub fn address(&self) -> Address {
        address_of(&self.0.public_key(SECP256K1))
    }

    /// Signs a hash. The signature has a low s (EIP-2) and is deterministic (RFC 6979).
    pub fn sign(&self, message: H256) -> Signature {
        let signed = SECP256K1.sign_ecdsa_recoverable(Message::from_digest(message.0), &self.0);
        let (id, compact) = signed.serialize_compact();
        // Ids two and three mean that r overflowed the order of the curve, which has a probability of 2^-128.
        let y_parity = matches!(id, RecoveryId::One | RecoveryId::Three);
        Signature { r: U256::from_big_endian(&compact[..32]), s: U256::from_big_endian(&compact[32..]), y_parity }
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.0.non_secure_erase();
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({:#x})", self.address())
    }
}

/// The bytes are not a valid secret key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret key must be above zero and below the order of the curve")]
pub struct InvalidKey;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_keys_out_of_range() {
        let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
        let order = U256::from_str_radix(order, 16).unwrap();
        let key = |number: U256| SecretKey::from_bytes(&number.to_big_endian()).map(|key| key.address());
        assert_eq!(key(U256::zero()), Err(InvalidKey));
        assert_eq!(key(order), Err(InvalidKey));
        assert_eq!(key(U256::MAX), Err(InvalidKey));
        assert!(key(order - 1).is_ok());
        assert_eq!(format!("{:#x}", key(U256::one()).unwrap()), "0x7e5f4552091a69125d5dfcb7b8c2659029395bdf");
    }

    #[test]
    fn adds_modulo_the_order_of_the_curve() {
        let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
        let order = U256::from_str_radix(order, 16).unwrap();
        let key = |number: u64| SecretKey::from_bytes(&U256::from(number).to_big_endian()).unwrap();
        let sum = |number: u64, other: U256| {
            key(number).add(&other.to_big_endian()).map(|sum| U256::from_big_endian(&sum.to_bytes()))
        };
        assert_eq!(sum(2, 3.into()), Ok(5.into()));
        assert_eq!(sum(2, order - 1), Ok(1.into()));
        assert_eq!(sum(1, order - 1), Err(InvalidKey));
        assert_eq!(sum(2, order), Err(InvalidKey));
        let generator = H256::from_slice(&key(1).public_key()[1..]);
        assert_eq!(format!("{generator:x}"), "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798");
    }

    #[test]
    fn debug_shows_only_the_address() {
        let key = SecretKey::from_bytes(&[1; 32]).unwrap();
        assert_eq!(key.to_bytes(), [1; 32]);
        assert_eq!(format!("{key:?}"), "SecretKey(0x1a642f0e3c3af545e7acbd38b07251b3990914f1)");
    }
}
