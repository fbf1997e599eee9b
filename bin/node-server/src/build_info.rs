//! What this program was built from.

/// The version of the release.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, abbreviated; `unknown` if it was not built in a repository.
pub(crate) const COMMIT: &str = env!("COMMIT");

/// Both, for `--version`.
pub(crate) const LONG_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("COMMIT"), ")");
