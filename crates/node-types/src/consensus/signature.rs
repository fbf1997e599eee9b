//! Signatures over secp256k1.

use crate::U256;

/// A recoverable ECDSA signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// The x coordinate of the ephemeral point modulo the order of the curve.
    pub r: U256,
    /// The s value of the signature. Since Homestead, it is at most half the order of the curve (EIP-2).
    pub s: U256,
    /// Whether the ephemeral point's y coordinate is odd.
    pub y_parity: bool,
}
