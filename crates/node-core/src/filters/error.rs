//! Why a filter did not answer.

use super::FilterId;
use crate::backend::BackendError;
use crate::block::BlockRef;

/// A filter did not answer, or was not made. Its cursor has not moved.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// There is no such filter, or it was not used for too long.
    #[error("there is no filter {0}")]
    NotFound(FilterId),
    /// Only a log filter has logs.
    #[error("filter {0} is not a log filter")]
    NotALogFilter(FilterId),
    /// There are as many filters as may be.
    #[error("there are {0} filters already, which is all there may be")]
    TooMany(usize),
    /// The block of the last poll was reorganized away and is not kept any more, so that what was removed cannot be
    /// told.
    #[error("block {0}, up to which the filter has reported, is not kept any more; install a new filter")]
    CursorForgotten(BlockRef),
    /// The backend did not answer.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// What happened behind a cursor cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The block of the cursor was reorganized away and is not kept any more, so that what was removed cannot be told.
    #[error("block {0}, up to which all was told, is not kept any more")]
    CursorForgotten(BlockRef),
    /// The backend did not answer.
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
