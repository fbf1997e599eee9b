//! Waking tasks that wait for a change.

use node_core::backend::{HeadChange, HeadListener};
use node_core::pool::PoolListener;
use node_types::H256;
use tokio::sync::watch;

/// Notifies tasks that something has changed, without saying what.
#[derive(Debug)]
pub(crate) struct Signal(watch::Sender<()>);

impl Signal {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// Returns a receiver for future changes. Several changes may arrive as one.
    pub(crate) fn listen(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }

    fn notify(&self) {
        self.0.send_replace(());
    }
}

impl HeadListener for Signal {
    fn head_changed(&self, _change: &HeadChange) {
        self.notify();
    }
}

impl PoolListener for Signal {
    fn transaction_added(&self, _hash: H256) {
        self.notify();
    }
}
