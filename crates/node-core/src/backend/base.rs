//! The port to the state that a chain begins with, if most of it is elsewhere.

use super::BackendError;
use crate::executor::Call;
use node_types::consensus::Account;
use node_types::trie::NibblePath;
use node_types::{Address, Bytes, H256, U256};
use std::fmt::Debug;

/// The state as of the first block of a chain, of which only the parts that were needed so far are known here. The others
/// are fetched when they are read.
///
/// What is known is a set of trie nodes, each identified by its hash, so nothing that is known can be wrong, and it does
/// not matter for which block it was fetched. If keys of the trie are known, so are all nodes on the paths to them.
///
/// # Errors
/// All methods fail with [`BackendError::Upstream`] if something is not known and cannot be fetched at present, with
/// [`BackendError::Unobtainable`] if it cannot be fetched at all, and with any error if it is not known and this thread
/// [must not wait](crate::waiting).
#[expect(clippy::missing_errors_doc, reason = "stated once for all methods")]
pub trait BaseState: Send + Sync + Debug {
    /// Returns the root of the state.
    fn root(&self) -> H256;

    /// Returns an account, or `None` if it does not exist.
    fn account(&self, address: Address) -> Result<Option<Account>, BackendError>;

    /// Returns the value of a storage slot, zero if it was never set.
    fn storage(&self, address: Address, slot: H256) -> Result<U256, BackendError>;

    /// Returns the code of an account that was read, by its hash, or `None` if no such account has this code.
    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError>;

    /// Returns whether the state comes with proofs. Otherwise nothing is known of its tries.
    fn is_proven(&self) -> bool {
        true
    }

    /// Records that an account, or a slot of it, was read as of a later block, where the chain itself has it. That does not
    /// mean that it was read here before: what is new in a trie moves a neighbor, which then has a row. Fetches nothing.
    fn note_read(&self, address: Address, slot: Option<H256>) -> Result<(), BackendError>;

    /// Fetches accounts and slots that are not known, together. Afterwards, these accounts and slots and all nodes on
    /// the paths to them are known.
    fn fetch(&self, reads: &[BaseRead]) -> Result<(), BackendError>;

    /// Returns the RLP of the trie node with this hash, or `None` if it is not known. Fetches nothing.
    fn node(&self, hash: H256) -> Result<Option<Bytes>, BackendError>;

    /// Returns what a call probably reads, as somebody says who has the whole state; empty if nobody does. It may be wrong,
    /// and serves only to fetch things together.
    fn reads_of(&self, _call: &Call) -> Vec<BaseRead> {
        Vec::new()
    }

    /// Fetches the trie node with this hash, which is at `position` in the account trie, or in the storage trie of
    /// `account`. Returns its RLP. No key below the position is known, so this may take long, or be impossible. It ends with
    /// the [current](crate::context::Context::current) request, with [`BackendError::Interrupted`].
    fn resolve(&self, account: Option<Address>, position: &NibblePath, hash: H256) -> Result<Bytes, BackendError>;
}

/// An account to fetch, and slots of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseRead {
    pub address: Address,
    pub slots: Vec<H256>,
}
