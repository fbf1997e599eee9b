//! The accounts of the development chain, and their signatures.

use node_types::consensus::{LegacyTransaction, Signature, Transaction, TransactionBody};
use node_types::{Address, Bytes, H256, U256, keccak256};
use secp256k1::{Message, SECP256K1, SecretKey};

/// Chain id of the development chain.
pub const CHAIN_ID: u64 = 31337;

/// Address of the first account of the development chain.
pub const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/// Address of the second account of the development chain.
pub const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// Private keys of the accounts: the first ten of the mnemonic `test test … junk`.
const KEYS: [&str; 10] = [
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
    "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
    "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
    "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
    "4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
    "dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
    "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
];

/// The order of the curve.
const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";

/// An account with its key.
#[derive(Clone, Debug)]
pub struct Account {
    /// Address.
    pub address: Address,
    key: SecretKey,
}

impl Account {
    /// All accounts of the development chain, [`ALICE`] first.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        KEYS.iter().map(|key| {
            let key: SecretKey = key.parse().expect("a key");
            let public = key.public_key(SECP256K1).serialize_uncompressed();
            // The first byte tells how the point is encoded (Yellow Paper, appendix F).
            Self { address: Address::from_slice(&keccak256(&public[1..])[12..]), key }
        })
    }

    /// Signs as this account.
    pub fn sign(&self, body: TransactionBody) -> Transaction {
        let mut transaction = Transaction { body, signature: Signature::default() };
        transaction.signature = self.sign_hash(transaction.signing_hash());
        transaction
    }

    /// Signs a hash as this account.
    pub fn sign_hash(&self, hash: H256) -> Signature {
        let (parity, bytes) =
            SECP256K1.sign_ecdsa_recoverable(Message::from_digest(hash.0), &self.key).serialize_compact();
        Signature {
            r: U256::from_big_endian(&bytes[..32]),
            s: U256::from_big_endian(&bytes[32..]),
            y_parity: i32::from(parity) == 1,
        }
    }
}

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

/// The creation of a contract by [`ALICE`] that writes `count` logs, each with its number, counted down, as its topic.
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

/// An address from its hex form.
pub fn address(text: &str) -> Address {
    text.parse().expect("an address")
}

/// Signs as [`ALICE`].
pub fn sign(body: TransactionBody) -> Transaction {
    Account::all().next().expect("there are ten").sign(body)
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

#[cfg(test)]
mod tests {
    use super::*;
    use node_chain::dev_genesis;
    use node_core::crypto::SenderRecovery;
    use node_evm::Secp256k1Recovery;

    #[test]
    fn the_accounts_are_those_of_the_genesis_and_sign_for_themselves() {
        let genesis = dev_genesis();
        assert_eq!(Account::all().len(), 10);
        for account in Account::all() {
            let balance = genesis.alloc.get(&account.address).map(|alloc| alloc.balance);
            assert_eq!(balance, Some(U256::exp10(22)), "{:?}", account.address);
            let transaction = account.sign(TransactionBody::Legacy(transfer(0)));
            assert_eq!(Secp256k1Recovery.sender(&transaction), Ok(account.address));
        }
        assert_eq!(Account::all().next().unwrap().address, address(ALICE));
    }
}
