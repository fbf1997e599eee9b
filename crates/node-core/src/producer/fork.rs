//! The chain that a development chain continues.

use super::{Producer, ProducerError};
use crate::backend::{BackendError, StateBackend};
use crate::block::BlockRef;
use crate::context::Context;
use node_types::BlockNumber;
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

impl Producer {
    /// Resets the chain as [`reset`](Self::reset) does, and then replaces it by one that begins with another block.
    ///
    /// # Errors
    /// Failures of the backend. If `replace` fails, the chain was only reset.
    pub(crate) fn reset_onto(&self, replace: Replace) -> Result<BlockRef, ProducerError> {
        let _sealing = self.sealing.lock();
        self.reset_locked()?;
        replace()?;
        let view = self.parts.backend.view()?;
        let first = view.header(view.first().into())?.ok_or(BackendError::UnknownBlock(view.first()))?;
        self.settings.reset(&first);
        self.refresh_pool();
        Ok(first.block_ref())
    }
}
