//! The chain that a development chain continues.

use super::{Producer, ProducerError};
use crate::backend::{BackendError, StateBackend};
use crate::block::BlockRef;
use crate::collecting::gather;
use crate::context::Context;
use crate::pool::delegates;
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::{Address, BlockNumber, Bytes, KECCAK_EMPTY, U256, keccak256};
use std::collections::BTreeMap;
use std::time::Duration;

/// Where a development chain that continues another one reads the latter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkInfo {
    /// Host and port of each server; the rest of a URL may be secret.
    pub endpoints: Vec<String>,
    pub chain_id: u64,
    /// The block of the other chain with which this one begins.
    pub block: BlockRef,
    /// Time before a failed request is repeated.
    pub retry_backoff: Duration,
}

/// Controls the chain that a development chain continues.
pub trait ForkControl: Send + Sync {
    /// Returns where the other chain is read.
    fn info(&self) -> ForkInfo;

    /// Reads the other chain from this URL from now on.
    ///
    /// # Errors
    /// [`ProducerError::Fork`] if this is no URL, or the server has another chain.
    fn set_url(&self, context: &Context, url: &str) -> Result<(), ProducerError>;

    /// Prepares a chain that begins with another block of the other chain: `block`, or its newest one. It is read from
    /// `url`, if that is given. The result replaces the chain when it is called; until then nothing changes.
    ///
    /// # Errors
    /// [`ProducerError::Fork`] if the chain cannot begin there, and [`BackendError::Upstream`].
    fn prepare(
        &self,
        context: &Context,
        url: Option<&str>,
        block: Option<BlockNumber>,
    ) -> Result<Replace, ProducerError>;
}

/// Replaces a chain by one that was prepared.
pub type Replace = Box<dyn FnOnce() -> Result<(), BackendError>>;

/// What a fork has from its first block on, besides the state of the chain that it continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Funding {
    /// Accounts with a balance.
    pub accounts: Vec<Address>,
    /// In wei.
    pub balance: U256,
    /// The code of contracts, which are deployed where there is no code: those without which no block is valid.
    pub contracts: BTreeMap<Address, Bytes>,
}

impl Producer {
    /// Gives accounts a balance from the first block on, and deploys contracts: now, if the chain has no other blocks and no
    /// edits, and after each [reset](Self::reset). An account whose code only delegates to another one (EIP-7702) loses it: on public networks,
    /// accounts whose keys are known have the code that a thief gave them.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn fund(&self, funding: Funding) -> Result<(), ProducerError> {
        *self.funding.lock() = Some(funding);
        if self.is_untouched()? { self.fund_again() } else { Ok(()) }
    }

    /// Changes the first block's state as [`fund`](Self::fund) does.
    pub(super) fn fund_again(&self) -> Result<(), ProducerError> {
        let Some(Funding { accounts, balance, contracts }) = self.funding.lock().clone() else { return Ok(()) };
        self.edit(|view| {
            gather(|| {
                let state = view.state(view.head().number)?;
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
        })
    }

    /// Resets the chain as [`reset`](Self::reset) does, and then replaces it by one that begins with another block.
    ///
    /// # Errors
    /// Failures of the backend. If `replace` fails, the chain was only reset.
    pub(crate) fn reset_onto(&self, replace: Replace) -> Result<BlockRef, ProducerError> {
        let first = {
            let _sealing = self.sealing.lock();
            self.reset_locked()?;
            replace()?;
            let view = self.parts.backend.view()?;
            let first = view.header(view.first().into())?.ok_or(BackendError::UnknownBlock(view.first()))?;
            self.settings.reset(&first);
            self.refresh_pool();
            first.block_ref()
        };
        self.fund_again()?;
        Ok(first)
    }
}
