//! Opening a chain that continues the state of another one.

use super::open::{Start, require_chain};
use super::snapshot::SnapshotFolder;
use super::{Options, Store};
use crate::error::StoreError;
use crate::files::{DiskFolder, Folder, MemoryFolder};
use node_core::backend::{BackendError, BaseState};
use node_core::block::ExecutedBlock;
use std::path::Path;
use std::sync::Arc;

impl Store {
    /// Opens the chain in `path` that continues another one from block `first` on, or creates it if the folder is empty.
    /// `base` has the state as of `first`; whatever no later block changes is read from it. `first` must have no changes.
    ///
    /// Blocks before `first` are unknown, and their states pruned. The chain cannot be published.
    ///
    /// # Errors
    /// Those of [`Self::open`]; [`BackendError::StateRootMismatch`] unless `base` has the state root of `first`; and
    /// [`StoreError::NoBase`] if the chain in the folder begins with its genesis block.
    pub fn open_fork(
        path: impl AsRef<Path>,
        first: ExecutedBlock,
        base: Arc<dyn BaseState>,
        options: Options,
    ) -> Result<Self, BackendError> {
        Self::check_usable(path.as_ref())?;
        let folder = DiskFolder::open(path.as_ref()).map_err(StoreError::from)?;
        Self::open_fork_in(Arc::new(folder), first, base, options)
    }

    /// Like [`Self::open_fork`], in memory.
    ///
    /// # Errors
    /// [`BackendError::StateRootMismatch`], and an error if no thread can be started.
    pub fn fork_in_memory(
        first: ExecutedBlock,
        base: Arc<dyn BaseState>,
        options: Options,
    ) -> Result<Self, BackendError> {
        Self::open_fork_in(Arc::new(MemoryFolder::default()), first, base, options)
    }

    /// Like [`Self::open_fork`], in any implementation of [`Folder`].
    ///
    /// # Errors
    /// Those of [`Self::open_fork`].
    pub fn open_fork_in(
        folder: Arc<dyn Folder>,
        first: ExecutedBlock,
        base: Arc<dyn BaseState>,
        options: Options,
    ) -> Result<Self, BackendError> {
        Self::open_or_begin(folder, Some(Start { first, state: None }), Some(base), options)
    }

    /// Opens the chain in `path` that continues another one. Never creates one.
    ///
    /// # Errors
    /// As [`Self::open_fork`]; also if there is no chain.
    pub fn open_existing_fork(
        path: impl AsRef<Path>,
        base: Arc<dyn BaseState>,
        options: Options,
    ) -> Result<Self, BackendError> {
        require_chain(path.as_ref())?;
        let folder = DiskFolder::open(path.as_ref()).map_err(StoreError::from)?;
        Self::open_or_begin(Arc::new(folder), None, Some(base), options)
    }

    /// Like [`Self::open_snapshot`], of a chain that continues another one. `open_base` is called after the snapshot was
    /// taken, so that what the base has by then includes what the blocks of the snapshot need.
    ///
    /// # Errors
    /// Those of [`Self::open_snapshot`], [`Self::open_fork`] and `open_base`.
    pub fn open_fork_snapshot(
        path: impl AsRef<Path>,
        open_base: impl FnOnce() -> Result<Arc<dyn BaseState>, BackendError>,
        options: Options,
    ) -> Result<Self, BackendError> {
        require_chain(path.as_ref())?;
        let folder = SnapshotFolder::open(path.as_ref()).map_err(StoreError::File)?;
        Self::open_or_begin(Arc::new(folder), None, Some(open_base()?), Options { merge: false, ..options })
    }
}
