//! Reading a chain and its states.

use super::BackendError;
use crate::block::{
    BlockHashOrNumber, BlockLogs, BlockRef, Body, ExecutedBlock, LogPosition, SealedHeader, TransactionPosition,
};
use crate::context::Context;
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::consensus::{Account, Receipt};
use node_types::{Address, BlockNumber, Bytes, H256, KECCAK_EMPTY, U256};
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

/// A consistent snapshot of a chain. Later changes to the chain do not affect it.
///
/// # Errors
/// All methods fail if the backend cannot be read.
///
/// # Examples
/// ```
/// use node_core::backend::{BackendError, StateBackend};
/// use node_types::{Address, U256};
///
/// /// Returns the balance of an account as of the head, in wei.
/// fn balance(backend: &dyn StateBackend, address: Address) -> Result<U256, BackendError> {
///     let view = backend.view()?;
///     let account = view.state(view.head().number)?.account(address)?;
///     Ok(account.unwrap_or_default().balance)
/// }
/// ```
#[expect(clippy::missing_errors_doc, reason = "stated once for all methods")]
pub trait View: Send + Sync {
    /// Returns the newest canonical block.
    fn head(&self) -> BlockRef;

    /// Returns the number of the first block, which is never removed: the genesis block, or the block of another chain that
    /// this one continues. In the latter case, blocks and states before it may be readable.
    fn first(&self) -> BlockNumber {
        0
    }

    /// Returns the number of the earliest block whose state is kept, or can be fetched from elsewhere.
    fn earliest_state(&self) -> BlockNumber;

    /// Returns the state as of the canonical block `at`.
    ///
    /// # Errors
    /// [`BackendError::UnknownBlock`] if `at` is above the head, and [`BackendError::StatePruned`] if it is below
    /// [`earliest_state`](View::earliest_state).
    fn state(&self, at: BlockNumber) -> Result<Box<dyn StateView + '_>, BackendError>;

    /// Returns whether parts of the chain or its states have to be fetched from elsewhere before they can be read.
    fn is_partial(&self) -> bool {
        false
    }

    /// Calls `visit` with every account and slot that was read from elsewhere, is known now and not empty as of the
    /// [first](Self::first) block, in any order, until it breaks. Accounts that were read without a slot come without one.
    fn read_names(&self, _visit: &mut dyn FnMut(Address, Option<H256>) -> ControlFlow<()>) -> Result<(), BackendError> {
        Ok(())
    }

    /// Returns a view of the chain as it would be if `branch` replaced all blocks above the canonical block
    /// `ancestor`. Returns `None` if the backend cannot do this better than a [`LayeredView`](super::LayeredView),
    /// which callers then use.
    fn fork(&self, ancestor: BlockNumber, branch: &[ExecutedBlock]) -> Result<Option<Arc<dyn View>>, BackendError>;

    /// Returns the header of a block, canonical or not, or `None` if the block is unknown.
    fn header(&self, id: BlockHashOrNumber) -> Result<Option<Arc<SealedHeader>>, BackendError>;

    /// Returns the body of a block, canonical or not, or `None` if the block is unknown.
    fn body(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Body>>, BackendError>;

    /// Returns the receipts of a block, canonical or not, in the order of its transactions, or `None` if the block is
    /// unknown.
    fn receipts(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Vec<Receipt>>>, BackendError>;

    /// Returns the hash of the canonical block `number`, or `None` if it is above the head.
    fn canonical_hash(&self, number: BlockNumber) -> Result<Option<H256>, BackendError>;

    /// Returns the logs of canonical blocks, whose numbers ascend.
    ///
    /// # Errors
    /// [`BackendError::UnknownBlock`] if one is above the head.
    fn logs(&self, numbers: &[BlockNumber]) -> Result<Vec<BlockLogs>, BackendError>;

    /// Returns the side block `hash`, or `None` if no side block has this hash.
    fn side_block(&self, hash: H256) -> Result<Option<ExecutedBlock>, BackendError>;

    /// Returns the changes that the canonical block `number` made to its parent's state; for the genesis block, the
    /// whole genesis state. Returns `None` if they are not kept.
    fn changes(&self, number: BlockNumber) -> Result<Option<Arc<StateChanges>>, BackendError>;

    /// Returns the position of a transaction on the canonical chain, or `None` if no canonical block contains it.
    fn transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError>;

    /// Like [`Self::transaction_position`], but never waits for blocks before [`Self::first`], in which a transaction may be
    /// overlooked.
    fn own_transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError> {
        self.transaction_position(hash)
    }

    /// Returns the positions of logs that `search` may be for, ascending.
    ///
    /// The result includes every matching log between `from` and the last returned position. Fewer than `limit`
    /// positions are returned only if no more follow up to `to`. Positions of logs that do not match may be included,
    /// so a backend without an index may return every position, but every returned position must be that of a log. If
    /// `from` is after `to`, nothing is returned.
    ///
    /// # Errors
    /// [`BackendError::UnknownBlock`] with `to` if it is above the head, and [`BackendError::Interrupted`] if
    /// `context` is interrupted, even before the first block.
    fn log_candidates(&self, context: &Context, search: LogSearch<'_>) -> Result<Vec<LogPosition>, BackendError>;

    /// Returns the data for the fee history of consecutive canonical blocks, one row for each block; no rows if the
    /// range is empty.
    ///
    /// # Errors
    /// [`BackendError::UnknownBlock`] with the end of `range` if it is above the head.
    fn fee_rows(&self, range: RangeInclusive<BlockNumber>) -> Result<Vec<FeeRow>, BackendError>;
}

/// The state as of one block.
///
/// # Errors
/// All methods fail if the backend cannot be read.
#[expect(clippy::missing_errors_doc, reason = "stated once for all methods")]
pub trait StateView: Send + Sync {
    /// Returns an account, or `None` if it does not exist.
    fn account(&self, address: Address) -> Result<Option<AccountState>, BackendError>;

    /// Returns the value of a storage slot, which is zero if it was never set.
    fn storage(&self, address: Address, slot: H256) -> Result<U256, BackendError>;

    /// Returns whether any storage slot of the account is nonzero.
    fn has_storage(&self, address: Address) -> Result<bool, BackendError>;

    /// Returns code by its hash, or `None` if it was never deployed.
    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError>;

    /// Returns the code of an account that was read, by its hash.
    ///
    /// # Errors
    /// Also [`BackendError::Storage`] if it is lacking.
    fn code_of_account(&self, hash: H256) -> Result<Bytes, BackendError> {
        if hash == KECCAK_EMPTY {
            return Ok(Bytes::new());
        }
        self.code(hash)?.ok_or_else(|| BackendError::Storage(Box::new(MissingCode(hash))))
    }

    /// Returns an account with Merkle proofs of the account and of `slots`.
    ///
    /// # Errors
    /// [`BackendError::NoProofs`], [`BackendError::Uncommitted`] or [`BackendError::NoStateRoot`] if no header of a stored
    /// block commits to the account.
    fn proof(&self, address: Address, slots: &[H256]) -> Result<AccountProof, BackendError>;

    /// Returns the root of the state after `changes` are applied to it. Zero if the block of this state has no state root,
    /// or if trie nodes are needed that [cannot be had](BackendError::Unobtainable).
    fn root_after(&self, changes: &StateChanges) -> Result<H256, BackendError>;
}

/// A backend lacks the code of an account.
#[derive(Debug, thiserror::Error)]
#[error("there is no code with hash {0:#x}")]
struct MissingCode(H256);

/// Returns the number of the first canonical block at or below `upto` that has no
/// [state root](node_types::consensus::Header::has_state_root), or `None` if there is none.
///
/// # Errors
/// Failures of the backend.
pub fn first_without_state_root(view: &dyn View, upto: BlockNumber) -> Result<Option<BlockNumber>, BackendError> {
    let lacks = |number: BlockNumber| -> Result<bool, BackendError> {
        Ok(!view.header(number.into())?.ok_or(BackendError::UnknownBlock(number))?.header.has_state_root())
    };
    let (mut rooted, mut found) = (view.first(), upto);
    if upto <= rooted || !lacks(upto)? {
        return Ok(None);
    }
    // All blocks after the first one lack it as well.
    while found - rooted > 1 {
        let middle = rooted + (found - rooted) / 2;
        if lacks(middle)? { found = middle } else { rooted = middle }
    }
    Ok(Some(found))
}

/// Returns whether any storage slot of the account is nonzero after `change` is applied to `state`.
///
/// # Errors
/// Failures of the backend.
pub fn has_storage_after(
    state: &dyn StateView,
    address: Address,
    change: &AccountChange,
) -> Result<bool, BackendError> {
    if change.storage.values().any(|value| !value.is_zero()) {
        return Ok(true);
    }
    if change.clears_storage() {
        return Ok(false);
    }
    if change.storage.is_empty() {
        return state.has_storage(address);
    }
    // The change only clears slots. Some storage is left if and only if clearing all of it as well changes the root.
    let root = |change| {
        let accounts = [(address, change)].into();
        state.root_after(&StateChanges { accounts, ..StateChanges::default() })
    };
    let cleared = AccountChange { storage_cleared: true, ..change.clone() };
    let (left, cleared) = (root(change.clone())?, root(cleared)?);
    // Without a root, it is not known. Storage that was there is then considered to be still there.
    if left.is_zero() { state.has_storage(address) } else { Ok(left != cleared) }
}

/// A search for logs: those that match `filter`, from `from` up to the last log of block `to` (both inclusive), at most
/// `limit` of them.
#[derive(Clone, Copy, Debug)]
pub struct LogSearch<'a> {
    pub filter: &'a LogFilter,
    pub from: LogPosition,
    pub to: BlockNumber,
    pub limit: usize,
}

/// The addresses and topics that a log has to match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Accepted contracts; empty for any.
    pub addresses: Vec<Address>,
    /// Accepted words for each topic position; empty for any. A log with fewer topics does not match.
    pub topics: Vec<Vec<H256>>,
}

/// The data of one block for the fee history.
#[derive(Clone, Debug, PartialEq)]
pub struct FeeRow {
    /// The block's header.
    pub header: Arc<SealedHeader>,
    /// Effective tip in wei per gas and gas used of each transaction, ascending by tip; equal tips in block order.
    pub tips: Arc<Vec<(U256, u64)>>,
}

/// An account with its Merkle proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountProof {
    /// The account, or `None` if the proof is an exclusion proof.
    pub account: Option<Account>,
    /// RLP of the trie nodes on the path from the state root towards keccak(address).
    pub proof: Vec<Bytes>,
    /// A proof of each requested slot, in the order of the request.
    pub storage: Vec<StorageProof>,
}

/// A storage slot with its Merkle proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageProof {
    pub slot: H256,
    /// Its value; zero if the proof is an exclusion proof.
    pub value: U256,
    /// RLP of the trie nodes on the path from the storage root towards keccak(slot); empty if the trie is empty.
    pub proof: Vec<Bytes>,
}

/// Returns the fee row of `block`.
pub fn fee_row(block: &ExecutedBlock) -> FeeRow {
    let base_fee = block.header.header.base_fee_per_gas;
    let mut used_before = 0;
    let mut tips: Vec<_> = block
        .body
        .transactions
        .iter()
        .zip(block.receipts.iter())
        .map(|(transaction, receipt)| {
            let gas_used = receipt.cumulative_gas_used.saturating_sub(used_before);
            used_before = receipt.cumulative_gas_used;
            (transaction.transaction.body.effective_tip(base_fee).unwrap_or_default(), gas_used)
        })
        .collect();
    tips.sort_by_key(|(tip, _)| *tip);
    FeeRow { header: Arc::clone(&block.header), tips: Arc::new(tips) }
}
