//! Recovery of senders from signatures, on libsecp256k1.

use node_core::crypto::{SenderRecovery, SignatureError};
use node_types::consensus::Signature;
use node_types::{Address, H256, U256, keccak256};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, PublicKey, SECP256K1};

/// Recovers the senders of transactions with libsecp256k1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Secp256k1Recovery;

/// Order of the curve's group.
const ORDER: U256 = U256([0xbfd2_5e8c_d036_4141, 0xbaae_dce6_af48_a03b, 0xffff_ffff_ffff_fffe, 0xffff_ffff_ffff_ffff]);

/// Half of [`ORDER`], rounded down: the highest s since Homestead (EIP-2).
const HALF_ORDER: U256 =
    U256([0xdfe9_2f46_681b_20a0, 0x5d57_6e73_57a4_501d, 0xffff_ffff_ffff_ffff, 0x7fff_ffff_ffff_ffff]);

/// Returns whether s is above half the order of the curve (EIP-2).
pub(crate) fn is_high_s(signature: &Signature) -> bool {
    signature.s > HALF_ORDER
}

impl SenderRecovery for Secp256k1Recovery {
    fn recover(&self, message: H256, signature: &Signature, low_s: bool) -> Result<Address, SignatureError> {
        let Signature { r, s, y_parity } = *signature;
        let in_range = |value: U256| !value.is_zero() && value < ORDER;
        if !in_range(r) || !in_range(s) {
            return Err(SignatureError::OutOfRange);
        }
        if low_s && is_high_s(signature) {
            return Err(SignatureError::HighS);
        }
        let mut compact = [0; 64];
        compact[..32].copy_from_slice(&r.to_big_endian());
        compact[32..].copy_from_slice(&s.to_big_endian());
        let id = if y_parity { RecoveryId::One } else { RecoveryId::Zero };
        let signature = RecoverableSignature::from_compact(&compact, id).map_err(|_| SignatureError::OutOfRange)?;
        let key = SECP256K1
            .recover_ecdsa(Message::from_digest(message.0), &signature)
            .map_err(|_| SignatureError::NoPoint)?;
        Ok(address_of(&key))
    }
}

/// Returns the address of the account with this public key (Yellow Paper, appendix F).
pub(crate) fn address_of(key: &PublicKey) -> Address {
    // The first byte is the prefix of uncompressed keys.
    let hash = keccak256(&key.serialize_uncompressed()[1..]);
    Address::from_slice(&hash[12..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SecretKey;
    use proptest::prelude::*;

    fn sign(secret: [u8; 32], message: H256) -> (Address, Signature) {
        let secret = SecretKey::from_bytes(&secret).unwrap();
        (secret.address(), secret.sign(message))
    }

    #[test]
    fn recovers_the_first_development_account() {
        let secret = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
        let mut key = [0; 32];
        for (byte, digits) in key.iter_mut().zip(secret.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
        }
        let (address, signature) = sign(key, H256::repeat_byte(7));
        assert_eq!(format!("{address:#x}"), "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
        assert_eq!(Secp256k1Recovery.recover(H256::repeat_byte(7), &signature, true), Ok(address));
    }

    #[test]
    fn rejects_invalid_signatures() {
        let message = H256::repeat_byte(7);
        let (address, good) = sign([1; 32], message);
        let high = Signature { s: ORDER - good.s, y_parity: !good.y_parity, ..good };
        let one = U256::one();
        for (name, signature, low_s, expected) in [
            ("good", good, true, Ok(address)),
            ("high s where it is allowed", high, false, Ok(address)),
            ("high s", high, true, Err(SignatureError::HighS)),
            ("the highest low s", Signature { s: HALF_ORDER, ..good }, true, recover_low(HALF_ORDER, good)),
            ("r = 0", Signature { r: U256::zero(), ..good }, false, Err(SignatureError::OutOfRange)),
            ("s = 0", Signature { s: U256::zero(), ..good }, false, Err(SignatureError::OutOfRange)),
            ("r = order", Signature { r: ORDER, ..good }, false, Err(SignatureError::OutOfRange)),
            ("s = order", Signature { s: ORDER, ..good }, false, Err(SignatureError::OutOfRange)),
            ("r too high", Signature { r: U256::MAX, ..good }, false, Err(SignatureError::OutOfRange)),
            ("no point", Signature { r: U256::from(5), s: one, y_parity: false }, true, Err(SignatureError::NoPoint)),
        ] {
            assert_eq!(Secp256k1Recovery.recover(message, &signature, low_s), expected, "{name}");
        }
    }

    /// Recovers without the check of s.
    fn recover_low(s: U256, good: Signature) -> Result<Address, SignatureError> {
        Secp256k1Recovery.recover(H256::repeat_byte(7), &Signature { s, ..good }, false)
    }

    proptest! {
        #[test]
        fn recovers_the_signer(secret in any::<[u8; 32]>(), message in any::<[u8; 32]>()) {
            prop_assume!(SecretKey::from_bytes(&secret).is_ok());
            let (address, signature) = sign(secret, H256(message));
            prop_assert_eq!(Secp256k1Recovery.recover(H256(message), &signature, true), Ok(address));
        }

        #[test]
        fn never_panics(r in any::<[u8; 32]>(), s in any::<[u8; 32]>(), y_parity: bool, low_s: bool) {
            let signature = Signature { r: U256::from_big_endian(&r), s: U256::from_big_endian(&s), y_parity };
            let _ = Secp256k1Recovery.recover(H256::zero(), &signature, low_s);
        }
    }
}
