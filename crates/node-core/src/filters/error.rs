//! Failures of filters.

use super::FilterId;
use crate::backend::BackendError;
use crate::block::BlockRef;

/// Why a filter could not be created or polled. On an error its cursor has not moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    #[error("there is no filter {0}")]
    NotFound(FilterId),
    /// The operation is only for log filters.
    #[error("filter {0} is not a log filter")]
    NotALogFilter(FilterId),
    /// The limit on the number of filters, or the client's share of it, is reached.
    #[error(
        "no more filters can be installed: the limit is {0}, and one client may have at most half of what the others leave"
    )]
    TooMany(usize),
    /// The limit on the memory of filters, or the client's share of it, is reached.
    #[error(
        "the filter takes too much memory: filters and subscriptions may have at most {0} bytes of addresses and topics, and one \
         client at most half of what the others leave"
    )]
    OutOfMemory(usize),
    /// The block of the last poll is no longer canonical and no longer stored, so the removed logs cannot be
    /// determined.
    #[error("block {0}, up to which the filter has reported, is no longer stored; install a new filter")]
    CursorForgotten(BlockRef),
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// Why the changes since a cursor cannot be determined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangesError {
    /// The block of the cursor is no longer canonical and no longer stored, so the removed logs cannot be determined.
    #[error("block {0}, up to which everything was reported, is no longer stored")]
    CursorForgotten(BlockRef),
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl From<ChangesError> for FilterError {
    fn from(error: ChangesError) -> Self {
        match error {
            ChangesError::CursorForgotten(block) => Self::CursorForgotten(block),
            ChangesError::Backend(error) => Self::Backend(error),
        }
    }
}
