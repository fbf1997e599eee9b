//! The accounts of the development chain, and their signatures.

use node_types::consensus::{LegacyTransaction, Signature, Transaction, TransactionBody};
use node_types::{Address, Bytes, U256};
use secp256k1::{Message, Secp256k1, SecretKey};

/// Chain id of the development chain.
pub const CHAIN_ID: u64 = 31337;

/// Address of the first account of the development chain.
pub const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/// Address of the second account of the development chain.
pub const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// Private key of [`ALICE`]: the first of the mnemonic `test test … junk`.
const ALICE_KEY: &str = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// The order of the curve.
const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";

/// A plain transfer of one wei from [`ALICE`] to [`BOB`] that the pool takes.
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

/// An address from its hex form.
pub fn address(text: &str) -> Address {
    text.parse().expect("an address")
}

/// Signs as [`ALICE`].
pub fn sign(body: TransactionBody) -> Transaction {
    let mut transaction = Transaction { body, signature: Signature::default() };
    let key: SecretKey = ALICE_KEY.parse().expect("a key");
    let message = Message::from_digest(transaction.signing_hash().0);
    let (parity, bytes) = Secp256k1::new().sign_ecdsa_recoverable(message, &key).serialize_compact();
    transaction.signature = Signature {
        r: U256::from_big_endian(&bytes[..32]),
        s: U256::from_big_endian(&bytes[32..]),
        y_parity: i32::from(parity) == 1,
    };
    transaction
}

/// The other signature of the same signer, whose s is above half the order of the curve (EIP-2).
pub fn with_high_s(mut transaction: Transaction) -> Transaction {
    let order = U256::from_str_radix(ORDER, 16).expect("a number");
    transaction.signature.s = order - transaction.signature.s;
    transaction.signature.y_parity = !transaction.signature.y_parity;
    transaction
}

/// `0x` and the hex digits of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    Bytes::from(bytes).to_string()
}
