//! What a server is busy with before it serves requests.

use parking_lot::RwLock;
use std::sync::Arc;

/// What a server that listens already is busy with. Until it has finished, `/ready` returns 503, and so does everything else but
/// `/health`, unless [`serve_while_starting`](crate::HttpConfig::serve_while_starting) is set. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Starting(Arc<RwLock<Option<String>>>);

impl Starting {
    /// The server is not ready yet. `progress` says why, and how far it is, for `/ready`.
    pub fn set(&self, progress: String) {
        *self.0.write() = Some(progress);
    }

    /// The server is ready from now on.
    pub fn finish(&self) {
        *self.0.write() = None;
    }

    pub(crate) fn current(&self) -> Option<String> {
        self.0.read().clone()
    }
}
