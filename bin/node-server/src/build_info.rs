//! The version and the commit from which this program was built.

/// The version of the release.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The abbreviated commit; `unknown` if the program was not built in a repository.
pub(crate) const COMMIT: &str = env!("COMMIT");

/// Both, for `--version`.
pub(crate) const LONG_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("COMMIT"), ")");
