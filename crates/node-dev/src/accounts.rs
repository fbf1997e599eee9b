//! Accounts from a mnemonic (BIP-39) along a derivation path (BIP-32).

use crate::derivation::{DerivationPath, ExtendedKey};
use crate::{DevAccount, InvalidPath};
use bip39::{Language, Mnemonic};
use node_chain::Genesis;
use node_evm::InvalidKey;
use node_types::consensus::Signature;
use node_types::{Address, H256};
use std::ops::Deref;
use zeroize::Zeroizing;

/// The well-known mnemonic that development tools share. Its keys are public.
pub const DEFAULT_MNEMONIC: &str = "test test test test test test test test test test test junk";

/// The derivation path of Ethereum accounts (BIP-44), to which the index of the account is appended.
pub const DEFAULT_DERIVATION_PATH: &str = "m/44'/60'/0'/0/";

/// Maximum number of accounts. Each takes about 0.1 ms to derive, and adds a leaf to the genesis state.
pub const MAX_ACCOUNTS: u32 = 10_000;

/// Options for deriving accounts.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountOptions {
    /// Number of accounts, at most [`MAX_ACCOUNTS`].
    pub count: u32,
    /// 12, 15, 18, 21 or 24 English words, the last of which contains the checksum.
    pub mnemonic: String,
    /// Path to which the index of each account is appended, with or without a trailing slash.
    pub derivation_path: String,
}

impl Default for AccountOptions {
    fn default() -> Self {
        Self { count: 10, mnemonic: DEFAULT_MNEMONIC.into(), derivation_path: DEFAULT_DERIVATION_PATH.into() }
    }
}

/// The accounts of a mnemonic, in the order of their indices. On a chain with a custom genesis, the accounts that it
/// funds come first. Dereferences to a slice.
#[derive(Clone)]
pub struct Accounts {
    mnemonic: Mnemonic,
    path: DerivationPath,
    accounts: Vec<DevAccount>,
}

impl Accounts {
    /// Derives the accounts, starting with index 0.
    ///
    /// # Errors
    /// [`AccountsError`] if there are too many accounts, or the mnemonic or the path is invalid.
    pub fn derive(options: &AccountOptions) -> Result<Self, AccountsError> {
        if options.count > MAX_ACCOUNTS {
            return Err(AccountsError::Count { got: options.count });
        }
        let mnemonic = Mnemonic::parse_in_normalized(Language::English, &options.mnemonic)?;
        let bad_path = |source| AccountsError::Path { path: options.derivation_path.clone(), source };
        let prefix = options.derivation_path.strip_suffix('/').unwrap_or(&options.derivation_path);
        let path = prefix.parse().map_err(bad_path)?;
        let seed = Zeroizing::new(mnemonic.to_seed_normalized(""));
        let parent = ExtendedKey::derive(&*seed, &path)?;
        let account = |number| Ok(DevAccount::new(parent.child(number)?.into_key()));
        let accounts = (0..options.count).map(account).collect::<Result<_, InvalidKey>>()?;
        Ok(Self { mnemonic, path, accounts })
    }

    /// Returns the words of the mnemonic, separated by single spaces. They give access to all keys.
    pub fn mnemonic(&self) -> String {
        self.mnemonic.to_string()
    }

    /// Returns the path to which the index of each account is appended, with a trailing slash.
    pub fn derivation_path(&self) -> String {
        format!("{}/", self.path)
    }

    /// Moves accounts that have a balance in `genesis` to the front.
    pub(crate) fn funded_first(mut self, genesis: &Genesis) -> Self {
        let balance = |account: &DevAccount| genesis.alloc.get(&account.address()).map(|found| found.balance);
        self.accounts.sort_by_key(|account| balance(account).is_none_or(|balance| balance.is_zero()));
        self
    }

    /// Iterates over the addresses in order of the accounts.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = Address> {
        self.accounts.iter().map(DevAccount::address)
    }
}

impl node_core::crypto::Wallet for Accounts {
    fn addresses(&self) -> Vec<Address> {
        self.accounts.iter().map(DevAccount::address).collect()
    }

    fn sign(&self, address: Address, hash: H256) -> Option<Signature> {
        self.accounts.iter().find(|account| account.address() == address).map(|account| account.sign_hash(hash))
    }
}

impl Deref for Accounts {
    type Target = [DevAccount];

    fn deref(&self) -> &[DevAccount] {
        &self.accounts
    }
}

/// Why accounts could not be derived. Messages do not repeat words of the mnemonic.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountsError {
    #[error("{got} accounts, at most {MAX_ACCOUNTS} are supported")]
    Count { got: u32 },
    #[error("expected a mnemonic of 12, 15, 18, 21 or 24 words, got {got}")]
    WordCount { got: usize },
    #[error("word {position} of the mnemonic is not in the English word list of BIP-39")]
    UnknownWord {
        /// Position of the word, from 1.
        position: usize,
    },
    /// The checksum in the last word is wrong.
    #[error(
        "the checksum in the last word of the mnemonic is wrong: a word was changed, or words are in the wrong order"
    )]
    Checksum,
    #[error("derivation path {path:?}: expected a path such as {DEFAULT_DERIVATION_PATH}, with at most 254 numbers")]
    Path { path: String, source: InvalidPath },
    /// A key on the path is not valid, which has a probability of 2^-127.
    #[error("a key on the derivation path is not valid")]
    Key(#[from] InvalidKey),
}

impl From<bip39::Error> for AccountsError {
    fn from(error: bip39::Error) -> Self {
        match error {
            bip39::Error::BadWordCount(got) => Self::WordCount { got },
            bip39::Error::UnknownWord(index) => Self::UnknownWord { position: index + 1 },
            // The other errors concern entropy and languages, which are not used here.
            bip39::Error::InvalidChecksum
            | bip39::Error::BadEntropyBitCount(_)
            | bip39::Error::AmbiguousLanguages(_) => Self::Checksum,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DevGenesis;
    use proptest::prelude::*;

    fn derive(count: u32, mnemonic: &str, path: &str) -> Result<Accounts, AccountsError> {
        Accounts::derive(&AccountOptions { count, mnemonic: mnemonic.into(), derivation_path: path.into() })
    }

    fn shown(account: &DevAccount) -> (String, String) {
        (format!("{:#x}", account.address()), format!("{:#x}", node_types::H256(account.secret().to_bytes())))
    }

    #[test]
    fn default_accounts_are_the_well_known_ones() {
        let accounts = Accounts::derive(&AccountOptions::default()).unwrap();
        assert_eq!(accounts.len(), 10);
        let expected = [
            (
                0,
                "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
                "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
            ),
            (
                1,
                "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
                "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
            ),
            (
                9,
                "0xa0ee7a142d267c1f36714e4a8f75612f20a79720",
                "0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
            ),
        ];
        for (index, address, key) in expected {
            assert_eq!(shown(&accounts[index]), (address.to_owned(), key.to_owned()));
        }
        assert_eq!(accounts.mnemonic(), DEFAULT_MNEMONIC);
        assert_eq!(accounts.derivation_path(), DEFAULT_DERIVATION_PATH);
    }

    #[test]
    fn funded_accounts_come_first() {
        let accounts = Accounts::derive(&AccountOptions { count: 3, ..AccountOptions::default() }).unwrap();
        let addresses: Vec<_> = accounts.addresses().collect();
        let genesis = DevGenesis::default().build(addresses[1..].iter().copied()).unwrap();
        let sorted: Vec<_> = accounts.funded_first(&genesis).addresses().collect();
        assert_eq!(sorted, [addresses[1], addresses[2], addresses[0]]);
    }

    #[test]
    fn accounts_depend_on_words_and_path() {
        let of = |mnemonic: &str, path: &str| derive(1, mnemonic, path).unwrap()[0].address();
        let first = of(DEFAULT_MNEMONIC, DEFAULT_DERIVATION_PATH);
        // The trailing slash and the whitespace between words make no difference.
        assert_eq!(of(DEFAULT_MNEMONIC, "m/44'/60'/0'/0"), first);
        assert_eq!(of(&DEFAULT_MNEMONIC.replace(' ', " \n"), DEFAULT_DERIVATION_PATH), first);
        assert_ne!(of(DEFAULT_MNEMONIC, "m/44'/60'/1'/0/"), first);
        assert_ne!(of(DEFAULT_MNEMONIC, "m/44/60/0/0/"), first);
        assert_ne!(of(DEFAULT_MNEMONIC, "m"), first);
        // Well-known test vector of wallets.
        let twelve = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about";
        assert_eq!(format!("{:#x}", of(twelve, DEFAULT_DERIVATION_PATH)), "0x9858effd232b4033e47d90003d41ec34ecaeda94");
        let twenty_four = format!("{}art", "abandon ".repeat(23));
        assert_eq!(
            format!("{:#x}", of(&twenty_four, DEFAULT_DERIVATION_PATH)),
            "0xf278cf59f82edcf871d630f28ecc8056f25c1cdb"
        );
    }

    #[test]
    fn rejects_invalid_mnemonics() {
        let words = |count: usize| vec!["test"; count].join(" ");
        let cases = [
            (String::new(), AccountsError::WordCount { got: 0 }),
            (words(11), AccountsError::WordCount { got: 11 }),
            (words(13), AccountsError::WordCount { got: 13 }),
            (words(27), AccountsError::WordCount { got: 27 }),
            (words(12), AccountsError::Checksum),
            (DEFAULT_MNEMONIC.replace("junk", "jumk"), AccountsError::UnknownWord { position: 12 }),
            (DEFAULT_MNEMONIC.replacen("test", "tést", 1), AccountsError::UnknownWord { position: 1 }),
            (DEFAULT_MNEMONIC.replacen("test", "TEST", 1), AccountsError::UnknownWord { position: 1 }),
        ];
        for (mnemonic, expected) in cases {
            let got = derive(1, &mnemonic, DEFAULT_DERIVATION_PATH).err();
            assert_eq!(got, Some(expected), "{mnemonic:?}");
        }
        assert_eq!(
            AccountsError::UnknownWord { position: 12 }.to_string(),
            "word 12 of the mnemonic is not in the English word list of BIP-39"
        );
    }

    #[test]
    fn rejects_invalid_paths() {
        let long = format!("m{}", "/0".repeat(255));
        for path in ["", "/", "44'/60'", "m//", "m/44''/", "m/-1", "m/x", "m/2147483648", "M/0", "m/0/ 1", &long] {
            let got = derive(1, DEFAULT_MNEMONIC, path).err();
            assert!(
                matches!(&got, Some(AccountsError::Path { path: shown, .. }) if shown == path),
                "{path:?}: {got:?}"
            );
        }
        let longest = format!("m{}", "/0".repeat(254));
        assert!(derive(1, DEFAULT_MNEMONIC, &longest).is_ok());
    }

    #[test]
    fn the_number_of_accounts_is_bounded() {
        assert_eq!(derive(0, DEFAULT_MNEMONIC, "m").unwrap().len(), 0);
        let too_many = derive(MAX_ACCOUNTS + 1, DEFAULT_MNEMONIC, "m").err();
        assert_eq!(too_many, Some(AccountsError::Count { got: 10_001 }));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_text_panics(mnemonic in "(test |junk |[a-z]{3,6} ){11,13}", path in "m?(/[0-9']{0,11}){0,6}") {
            let _ = derive(1, &mnemonic, DEFAULT_DERIVATION_PATH);
            let _ = derive(1, DEFAULT_MNEMONIC, &path);
        }
    }
}
