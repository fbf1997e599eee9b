//! Displaying errors with their sources.

use std::error::Error;
use std::fmt;

/// Displays an error followed by all its sources, on one line, for logs.
///
/// # Examples
/// ```
/// use node_core::backend::BackendError;
/// use node_core::sources::Sources;
///
/// let error = BackendError::Storage("no space left on device".into());
/// assert_eq!(Sources(&error).to_string(), "storage failure: no space left on device");
/// ```
#[derive(Debug)]
pub struct Sources<'a>(pub &'a dyn Error);

impl fmt::Display for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}
