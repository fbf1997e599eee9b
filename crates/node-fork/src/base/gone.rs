//! Whether the endpoints still have the state that a fork begins with. Most nodes keep only the newest ones.

use super::Base;
use crate::error::{ForkError, Needed};
use node_core::backend::BackendError;
use node_core::context::Context;
use node_upstream::{ClaimedState, ProvenState, Upstream, UpstreamError};
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// How long the endpoints are not asked again after they refused it. Another one may be at the same URL by then.
const TIME: Duration = Duration::from_secs(30);

/// Since when it is known that an upstream does not have the state any longer, and what it says; `None` if it may have it.
#[derive(Debug, Default)]
pub(super) struct Gone(Mutex<Option<(Instant, String)>>);

impl Gone {
    /// Returns what the endpoints said if they were asked a short time ago.
    fn recent(&self) -> Option<String> {
        self.0.lock().as_ref().filter(|(since, _)| since.elapsed() < TIME).map(|(_, reason)| reason.clone())
    }
}

impl Base {
    /// Like [`ask`](Self::ask), for accounts, slots and code as of the block. If it is the one that the fork begins with, and
    /// the endpoints do not have its state any longer, nothing is asked for a while.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask), and [`ForkError::Gone`].
    pub(super) fn ask_for_state<T>(
        &self,
        reads: usize,
        needed: impl Fn() -> Needed,
        request: impl FnOnce(&Upstream, &Context) -> Result<T, UpstreamError>,
    ) -> Result<T, BackendError> {
        self.expect_state(&needed)?;
        let Some(connection) = self.connection().filter(|_| self.is_own()) else {
            return self.ask(reads, needed, request);
        };
        let error = match self.ask(reads, &needed, request) {
            Ok(read) => {
                *connection.gone.0.lock() = None;
                return Ok(read);
            }
            Err(error) => error,
        };
        let Some(reason) = reason_of(&error) else { return Err(error) };
        let is_known = connection.gone.0.lock().is_some();
        if !is_known && !self.is_gone(&needed)? {
            return Err(error);
        }
        if !is_known {
            tracing::warn!(
                block = self.block().header().number,
                reason,
                "the upstream does not have the state any longer that the fork begins with; blocks that need more of it \
                 have no state root"
            );
        }
        *connection.gone.0.lock() = Some((Instant::now(), reason.clone()));
        Err(ForkError::Gone { needed: needed(), reason }.into())
    }

    /// Returns what an endpoint says if none has the state any longer that the fork begins with, or `None` if they may have it.
    pub fn state_gone(&self) -> Option<String> {
        self.connection()?.gone.0.lock().as_ref().map(|(_, reason)| reason.clone())
    }

    /// Returns an error if the endpoints said a short time ago that they do not have the state any longer that the fork begins
    /// with, and this is that state.
    pub(super) fn expect_state(&self, needed: impl Fn() -> Needed) -> Result<(), BackendError> {
        let connection = self.connection().filter(|_| self.is_own());
        match connection.and_then(|connection| connection.gone.recent()) {
            Some(reason) => Err(ForkError::Gone { needed: needed(), reason }.into()),
            None => Ok(()),
        }
    }

    /// Asks whether no endpoint has the state any longer. A refusal alone may be that of one of several servers at a URL.
    fn is_gone(&self, needed: impl Fn() -> Needed) -> Result<bool, BackendError> {
        self.ask(1, needed, |upstream, context| {
            let (upstream, block) = (upstream.clone(), self.block().clone());
            Ok(match self.trusts() {
                true => ClaimedState::new(upstream, block).is_gone(context),
                false => ProvenState::new(upstream, block).is_gone(context),
            })
        })
    }
}

/// Returns what an endpoint says if it does not have the state of a block any longer.
fn reason_of(error: &BackendError) -> Option<String> {
    let BackendError::Upstream(error) = error else { return None };
    match error.downcast_ref()? {
        ForkError::Upstream(refusal @ UpstreamError::Refused { endpoint, message, .. })
            if refusal.says_that_the_state_is_gone() =>
        {
            Some(format!("{endpoint}: {message}"))
        }
        _ => None,
    }
}
