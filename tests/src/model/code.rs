//! Code with a behaviour that the model knows.

use node_types::{Address, Bytes, H160, H256, U256};

/// Called with a slot, a word and a flag, 32 bytes each, stores and logs the word; reverts if the flag is set. Missing
/// input counts as zero.
#[rustfmt::skip]
pub const STORE: [u8; 36] = [
    0x60, 64, 0x35, 0x60, 32, 0x57,         // PUSH1 64 CALLDATALOAD PUSH1 fail JUMPI
    0x60, 32, 0x35, 0x5f, 0x35, 0x55,       // PUSH1 32 CALLDATALOAD PUSH0 CALLDATALOAD SSTORE
    0x60, 32, 0x35, 0x5f, 0x52,             // PUSH1 32 CALLDATALOAD PUSH0 MSTORE
    0x60, 32, 0x35, 0x5f, 0x35,             // PUSH1 32 CALLDATALOAD PUSH0 CALLDATALOAD
    0x63, 0xde, 0xad, 0xbe, 0xef,           // PUSH4 event
    0x60, 32, 0x5f, 0xa3, 0x00,             // PUSH1 32 PUSH0 LOG3 STOP
    0x5b, 0x5f, 0x5f, 0xfd,                 // fail: JUMPDEST PUSH0 PUSH0 REVERT
];

/// Always reverts.
pub const REVERT: [u8; 3] = [0x5f, 0x5f, 0xfd];

/// First topic of the logs of [`STORE`]; the second is the slot, the third the word, which is also the data.
pub const EVENT: H256 = {
    let mut word = [0; 32];
    [word[28], word[29], word[30], word[31]] = [0xde, 0xad, 0xbe, 0xef];
    H256(word)
};

/// The behaviour of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// No code.
    Nothing,
    /// [`STORE`].
    Store,
    /// Always fails.
    Fail,
    /// Delegates to another account (EIP-7702).
    Delegate(Address),
}

/// The behaviour of `code`, which is one of those that the model uses.
pub fn behaviour(code: &[u8]) -> Behaviour {
    match code {
        [] => Behaviour::Nothing,
        code if code == STORE => Behaviour::Store,
        [0xef, 0x01, 0x00, address @ ..] if address.len() == 20 => Behaviour::Delegate(H160::from_slice(address)),
        _ => Behaviour::Fail,
    }
}

/// Code that delegates to another account (EIP-7702); empty for the zero address.
pub fn delegation(to: Address) -> Bytes {
    if to.is_zero() { Bytes::new() } else { [&[0xef, 0x01, 0x00], to.as_bytes()].concat().into() }
}

/// The input of a call of [`STORE`].
pub fn store(slot: H256, value: U256, fail: bool) -> Bytes {
    [slot.0, value.to_big_endian(), U256::from(u8::from(fail)).to_big_endian()].concat().into()
}

/// Decodes the input of a call of [`STORE`]: slot, word and flag.
pub fn arguments(input: &[u8]) -> (H256, U256, bool) {
    let mut padded = input.to_vec();
    padded.resize(96, 0);
    let word = |index: usize| &padded[32 * index..32 * (index + 1)];
    (H256::from_slice(word(0)), U256::from_big_endian(word(1)), word(2).iter().any(|byte| *byte != 0))
}

/// Init code that stores 1 at slot 0 and returns [`STORE`].
pub fn creation() -> Bytes {
    // PUSH1 1 PUSH0 SSTORE; PUSH1 length DUP1 PUSH1 offset PUSH0 CODECOPY PUSH0 RETURN
    let head = [0x60, 1, 0x5f, 0x55, 0x60, STORE.len() as u8, 0x80, 0x60, 13, 0x5f, 0x39, 0x5f, 0xf3];
    [&head[..], &STORE].concat().into()
}
