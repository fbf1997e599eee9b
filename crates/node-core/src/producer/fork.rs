//! The chain that a development chain continues.

use super::{Producer, ProducerError, Replay};
use crate::backend::{BackendError, StateBackend, View};
use crate::block::{BlockRef, RecoveredTransaction};
use crate::collecting::gather;
use crate::context::Context;
use crate::pool::delegates;
use crate::remote::EndpointUse;
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::{Address, BlockId, BlockNumber, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Where a development chain that continues another one reads the latter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkInfo {
    /// Scheme, host and port of each server; the rest of a URL may be secret. Empty if the fork is offline.
    pub endpoints: Vec<String>,
    /// The id of the other chain.
    pub chain_id: u64,
    /// Whether the id was given at this start, instead of asking a server for it.
    pub is_chain_id_given: bool,
    /// The block of the other chain with which this one begins.
    pub block: BlockRef,
    /// Time before a failed request is repeated.
    pub retry_backoff: Duration,
    /// Whether the state of the other chain comes with proofs. Otherwise, it is the servers' word.
    pub is_verified: bool,
}

/// How the servers of the other chain were used since they were set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkUse {
    /// Empty if the fork is offline.
    pub endpoints: Vec<EndpointUse>,
    /// How often a message was repeated because it had failed at all of them.
    pub retries: u64,
    /// What a server says if none has the state any longer that the fork begins with. `None` if they may have it.
    pub state_gone: Option<String>,
}

/// A block of another chain with which a fork can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkBlock {
    /// The block with this number, hash or tag.
    Id(BlockId),
    /// The block this many blocks before the newest one.
    Back(u64),
}

/// The newest block.
impl Default for ForkBlock {
    fn default() -> Self {
        Self::Id(BlockId::latest())
    }
}

impl fmt::Display for ForkBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(block) => block.fmt(f),
            Self::Back(blocks) => write!(f, "-{blocks}"),
        }
    }
}

impl FromStr for ForkBlock {
    type Err = InvalidForkBlock;

    /// Parses a number, a hash, a tag, or a negative number that counts from the newest block.
    fn from_str(text: &str) -> Result<Self, InvalidForkBlock> {
        match text.strip_prefix('-') {
            Some(blocks) => blocks.parse().map(Self::Back).map_err(|_| InvalidForkBlock),
            None => text.parse().map(Self::Id).map_err(|_| InvalidForkBlock),
        }
    }
}

/// The text does not specify a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the number or hash of a block, a tag such as latest or finalized, or a negative number")]
pub struct InvalidForkBlock;

/// Controls the chain that a development chain continues.
pub trait ForkControl: Send + Sync {
    /// Returns where the other chain is read.
    fn info(&self) -> ForkInfo;

    /// Returns how the servers were used. Nothing is sent.
    fn usage(&self) -> ForkUse;

    /// Reads the other chain from this URL from now on.
    ///
    /// # Errors
    /// [`ProducerError::Fork`] if this is no URL, or the server has another chain; [`BackendError::Upstream`].
    fn set_url(&self, context: &Context, url: &str) -> Result<(), ProducerError>;

    /// Prepares a chain that begins with `block` of the other chain, or that with which `url` ends, or its newest one. It is
    /// read from `url`, if that is given. The result replaces the chain when it is called, or leaves it as it is if it begins
    /// with that block already; until then nothing changes.
    ///
    /// # Errors
    /// [`ProducerError::Fork`] if the chain cannot begin there, and [`BackendError::Upstream`].
    fn prepare(&self, context: &Context, url: Option<&str>, block: Option<ForkBlock>)
    -> Result<Replace, ProducerError>;
}

/// Replaces a chain by one that was prepared.
pub type Replace = Box<dyn FnOnce() -> Result<(), BackendError>>;

/// How a fork begins after its first block, at its start and after each [reset](Producer::reset).
#[derive(Clone, Debug, Default)]
pub struct Beginning {
    /// What its second block repeats, if it does; not after a reset onto another block.
    pub replay: Option<Replay>,
    /// Accounts that have the balance from then on.
    pub accounts: Vec<Address>,
    /// In wei.
    pub balance: U256,
    /// The code of contracts, which are deployed where there is no code: those without which no block is valid.
    pub contracts: BTreeMap<Address, Bytes>,
}

impl Beginning {
    /// Returns whether the first state is changed.
    fn funds(&self) -> bool {
        !self.accounts.is_empty() || !self.contracts.is_empty()
    }
}

impl Producer {
    /// Begins a fork, unless it has blocks or edits of its own: repeats what `beginning` says, gives accounts their
    /// balance, and deploys contracts. Each [reset](Self::reset) begins it again. An account whose code only delegates to
    /// another one (EIP-7702) loses it: on public networks, accounts whose keys are known have the code that a thief gave
    /// them.
    ///
    /// # Errors
    /// [`ProducerError::Replay`], and failures of the execution and the backend.
    pub fn begin(&self, beginning: Beginning) -> Result<(), ProducerError> {
        let replay = beginning.replay.clone();
        *self.beginning.lock() = beginning;
        if self.is_untouched()? {
            return self.begin_again();
        }
        // A crash may have come after the block and before the balances.
        let repeated = replay.as_ref().map(|replay| self.is_only(replay)).transpose()?.unwrap_or(false);
        if repeated { self.fund() } else { Ok(()) }
    }

    /// Returns whether the chain has no other block than its first one and the repetition, and no edits.
    fn is_only(&self, replay: &Replay) -> Result<bool, ProducerError> {
        let view = self.parts.backend.view()?;
        let head = view.head();
        let Some(body) = view.body(head.hash.into())? else { return Ok(false) };
        let hashes = |transactions: &[RecoveredTransaction]| -> Vec<H256> {
            transactions.iter().map(|transaction| transaction.hash).collect()
        };
        Ok(head.number == view.first() + 1
            && hashes(&body.transactions) == hashes(replay.transactions())
            && !self.parts.backend.has_edits(head.hash))
    }

    /// Begins the chain after its first block, which is the head. Once the chain is used, `sealing` must be locked.
    pub(super) fn begin_again(&self) -> Result<(), ProducerError> {
        let replay = self.beginning.lock().replay.clone();
        replay.map_or(Ok(()), |replay| self.repeat(&replay))?;
        self.fund()
    }

    /// Gives the accounts that have a balance from the beginning on this balance, and deploys contracts.
    fn fund(&self) -> Result<(), ProducerError> {
        if !self.beginning.lock().funds() {
            return Ok(());
        }
        self.edit_locked(|view| Ok(self.funding(view, view.head().number)?))
    }

    /// Reads what [`begin_again`](Self::begin_again) needs of the first state. Nothing may be removed if it cannot be read.
    pub(super) fn read_funded(&self) -> Result<(), ProducerError> {
        if !self.beginning.lock().funds() {
            return Ok(());
        }
        let view = self.parts.backend.view()?;
        Ok(self.funding(&*view, view.first()).map(drop)?)
    }

    /// Returns the changes of the state after block `at` that [`fund`](Self::fund) makes.
    fn funding(&self, view: &dyn View, at: BlockNumber) -> Result<StateChanges, BackendError> {
        let Beginning { accounts, balance, contracts, .. } = self.beginning.lock().clone();
        gather(|| {
            let state = view.state(at)?;
            let mut changes = StateChanges::default();
            for address in &accounts {
                let account = state.account(*address)?.unwrap_or_default();
                let code_hash = if delegates(&*state, &account)? { KECCAK_EMPTY } else { account.code_hash };
                let account = AccountState { balance, code_hash, ..account };
                let change = AccountChange { account: Some(account), ..AccountChange::default() };
                changes.accounts.insert(*address, change);
            }
            for (address, code) in &contracts {
                let account = state.account(*address)?.unwrap_or_default();
                if account.has_code() {
                    continue;
                }
                let code_hash = keccak256(code);
                let account = AccountState { code_hash, nonce: account.nonce.max(1), ..account };
                let change = AccountChange { account: Some(account), ..AccountChange::default() };
                changes.accounts.insert(*address, change);
                changes.code.insert(code_hash, code.clone());
            }
            Ok(changes)
        })
    }

    /// Resets the chain as [`reset`](Self::reset) does, and then replaces it by one that begins with another block.
    ///
    /// # Errors
    /// Failures of the backend. If `replace` fails, the chain was only reset.
    pub(crate) fn reset_onto(&self, replace: Replace) -> Result<BlockRef, ProducerError> {
        self.read_funded()?;
        let first = {
            let _sealing = self.lock()?;
            self.reset_locked()?;
            replace()?;
            // It repeated a block of the chain that was replaced.
            self.beginning.lock().replay = None;
            let view = self.parts.backend.view()?;
            let first = view.header(view.first().into())?.ok_or(BackendError::UnknownBlock(view.first()))?;
            self.settings.reset(&first);
            self.refresh_pool();
            self.begin_again()?;
            first.block_ref()
        };
        self.transactions_changed();
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_numbers_hashes_tags_or_count_from_the_head() {
        let hash = H256::repeat_byte(7);
        for (text, expected) in [
            ("17", ForkBlock::Id(BlockId::number(17))),
            ("0x11", ForkBlock::Id(BlockId::number(17))),
            ("finalized", ForkBlock::Id(BlockId::finalized())),
            ("-3", ForkBlock::Back(3)),
            (&format!("{hash:#x}"), ForkBlock::Id(BlockId::Hash(hash))),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in ["", "-", "--1", "-0x1", "newest", "1.5", "0x"] {
            assert!(text.parse::<ForkBlock>().is_err(), "{text}");
        }
    }
}
