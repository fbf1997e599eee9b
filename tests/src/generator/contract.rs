//! The contract of generated chains: stores one word per key, and logs each write. Its copies, the holders, have a word
//! from the start.

use node_types::{Address, Bytes, H160, H256, U256, keccak256};

/// The contract's address: created by the first account's first transaction.
pub const CONTRACT: Address = H160([
    0x5f, 0xbd, 0xb2, 0x31, 0x56, 0x78, 0xaf, 0xec, 0xb3, 0x67, 0xf0, 0x32, 0xd9, 0x3f, 0x64, 0x2f, 0x64, 0x18, 0x0a,
    0xa3,
]);

/// First topic of every log. The second is the key, the third the tag of the write, which is unique.
pub const EVENT: H256 = {
    let mut word = [0; 32];
    [word[28], word[29], word[30], word[31]] = [0xde, 0xad, 0xbe, 0xef];
    H256(word)
};

/// Called with a key (32 bytes), returns the word stored there; called with a key, a value and a tag, stores and logs
/// the value.
#[rustfmt::skip]
const RUNTIME: [u8; 37] = [
    0x36, 0x60, 32, 0x14, 0x60, 27, 0x57,   // CALLDATASIZE PUSH1 32 EQ PUSH1 read JUMPI
    0x60, 32, 0x35, 0x5f, 0x35, 0x55,       // PUSH1 32 CALLDATALOAD PUSH0 CALLDATALOAD SSTORE
    0x60, 64, 0x35, 0x5f, 0x35,             // PUSH1 64 CALLDATALOAD PUSH0 CALLDATALOAD
    0x63, 0xde, 0xad, 0xbe, 0xef,           // PUSH4 event
    0x5f, 0x5f, 0xa3, 0x00,                 // PUSH0 PUSH0 LOG3 STOP
    0x5b, 0x5f, 0x35, 0x54, 0x5f, 0x52,     // read: JUMPDEST PUSH0 CALLDATALOAD SLOAD PUSH0 MSTORE
    0x60, 32, 0x5f, 0xf3,                   // PUSH1 32 PUSH0 RETURN
];

/// Stores 1 at key 0.
const FIRST_WORD: [u8; 4] = [0x60, 1, 0x5f, 0x55]; // PUSH1 1 PUSH0 SSTORE

/// Length of the code returned by [`constructor`].
const CONSTRUCTOR: usize = 9;

/// Code that returns the runtime code, which follows it directly, `offset` bytes from the start.
#[rustfmt::skip]
const fn constructor(offset: usize) -> [u8; CONSTRUCTOR] {
    [
        0x60, RUNTIME.len() as u8, 0x80, 0x60, offset as u8, // PUSH1 length DUP1 PUSH1 offset
        0x5f, 0x39, 0x5f, 0xf3,                 // PUSH0 CODECOPY PUSH0 RETURN
    ]
}

/// Key number `index`.
pub fn slot_key(index: u64) -> H256 {
    keccak256([b"slot".as_slice(), &index.to_be_bytes()].concat())
}

/// The code of the contract.
pub(super) fn runtime_code() -> Bytes {
    RUNTIME.to_vec().into()
}

/// Input of the transaction that deploys the contract.
pub(super) fn creation_code() -> Bytes {
    [&constructor(CONSTRUCTOR)[..], &RUNTIME].concat().into()
}

/// Input of a transaction that deploys a holder.
pub(super) fn holder_creation_code() -> Bytes {
    [&FIRST_WORD[..], &constructor(FIRST_WORD.len() + CONSTRUCTOR), &RUNTIME].concat().into()
}

/// Input of a call that stores `value` at `key` and logs it with `tag`.
pub(super) fn store(key: H256, value: U256, tag: H256) -> Bytes {
    [key.0, value.to_big_endian(), tag.0].concat().into()
}
