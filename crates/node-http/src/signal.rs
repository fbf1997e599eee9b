//! Wakes those who wait for a change.

use node_core::backend::{HeadChange, HeadListener};
use node_core::pool::PoolListener;
use node_types::H256;
use tokio::sync::watch;

/// Tells that something has changed, and not what: who hears it looks for itself.
#[derive(Debug)]
pub(crate) struct Signal(watch::Sender<()>);

impl Signal {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// Hears of changes from now on; several may be heard as one.
    pub(crate) fn listen(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }

    fn give(&self) {
        self.0.send_replace(());
    }
}

impl HeadListener for Signal {
    fn head_changed(&self, _change: &HeadChange) {
        self.give();
    }
}

impl PoolListener for Signal {
    fn transaction_added(&self, _hash: H256) {
        self.give();
    }
}
