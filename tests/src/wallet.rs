//! Transactions signed by the accounts of the development chain.

use node_dev::{AccountOptions, Accounts, DevAccount};
use node_types::consensus::{LegacyTransaction, Transaction, TransactionBody};
use node_types::{Address, Bytes, U256};
use std::sync::LazyLock;

/// Chain id of the development chain.
pub const CHAIN_ID: u64 = 31337;

/// Address of the first account of the development chain.
pub const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/// Address of the second account of the development chain.
pub const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// The order of secp256k1.
const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";

/// The accounts of the development chain, [`ALICE`] first.
pub fn accounts() -> &'static [DevAccount] {
    static ACCOUNTS: LazyLock<Accounts> =
        LazyLock::new(|| Accounts::derive(&AccountOptions::default()).expect("the defaults are valid"));
    &ACCOUNTS
}

/// A valid transfer of one wei from [`ALICE`] to [`BOB`].
pub fn transfer(nonce: u64) -> LegacyTransaction {
    LegacyTransaction {
        chain_id: Some(CHAIN_ID),
        nonce,
        gas_price: U256::from(2_000_000_000u64),
        gas_limit: 21_000,
        to: Some(address(BOB)),
        value: U256::one(),
        input: Bytes::new(),
    }
}

/// A contract creation by [`ALICE`] that emits `count` logs, with topics counting down from `count`.
pub fn log_writer(nonce: u64, count: u8) -> LegacyTransaction {
    // PUSH1 count; JUMPDEST; DUP1, PUSH1 0, PUSH1 0, LOG1; PUSH1 1, SWAP1, SUB; DUP1, PUSH1 2, JUMPI; STOP
    let code = [0x60, count, 0x5b, 0x80, 0x60, 0, 0x60, 0, 0xa1, 0x60, 1, 0x90, 0x03, 0x80, 0x60, 2, 0x57, 0];
    LegacyTransaction {
        to: None,
        value: U256::zero(),
        gas_limit: 500_000,
        input: Bytes::from(&code[..]),
        ..transfer(nonce)
    }
}

/// Parses an address.
pub fn address(text: &str) -> Address {
    text.parse().expect("an address")
}

/// Signs with [`ALICE`]'s key.
pub fn sign(body: TransactionBody) -> Transaction {
    accounts()[0].sign(body)
}

/// The equivalent signature with s above half the order of the curve, which is invalid (EIP-2).
pub fn with_high_s(mut transaction: Transaction) -> Transaction {
    let order = U256::from_str_radix(ORDER, 16).expect("a number");
    transaction.signature.s = order - transaction.signature.s;
    transaction.signature.y_parity = !transaction.signature.y_parity;
    transaction
}

/// Returns `0x` and the hex digits of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    Bytes::from(bytes).to_string()
}
