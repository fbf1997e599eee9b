//! The progress of a startup task before requests are served.

use parking_lot::RwLock;
use std::sync::Arc;

/// The progress of a startup task of a server that is already listening. Until it has finished, `/ready` returns 503,
/// and so does everything else except `/health`, unless
/// [`serve_while_starting`](crate::HttpConfig::serve_while_starting) is set. Clones share the progress.
#[derive(Clone, Debug, Default)]
pub struct Starting(Arc<RwLock<Option<String>>>);

impl Starting {
    /// Marks the server as not ready. `progress` is the reason and the progress that `/ready` reports.
    pub fn set(&self, progress: String) {
        *self.0.write() = Some(progress);
    }

    /// Marks the task as finished and the server as ready.
    pub fn finish(&self) {
        *self.0.write() = None;
    }

    pub(crate) fn current(&self) -> Option<String> {
        self.0.read().clone()
    }
}
