//! Options for reading the store that many servers share.

use crate::error::CommandError;
use clap::Args;
use node_core::values;
use node_store::Store;
use node_store::shared::{self, Objects};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A shared store, for commands that serve it.
#[derive(Args, Debug)]
#[command(next_help_heading = "Shared store")]
pub(crate) struct ServedStore {
    /// Shared store from which to serve the chain that another server publishes there: s3://BUCKET/PREFIX, gs://…, az://…
    /// or file:///FOLDER
    #[arg(long, value_name = "URL")]
    pub(crate) store: String,
    /// Folder for copies of what was read, which the next start uses [default: none, but only memory]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Size of this folder, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 10_240)]
    cache_disk_mb: u32,
    /// Age of the newest change in the store above which /ready returns 503; without changes, the writer shows every few
    /// seconds that it runs [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) max_lag: Option<Duration>,
    /// Time between two looks for newer changes; each is one request
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "100ms")]
    pub(crate) poll_interval: Duration,
}

impl ServedStore {
    pub(crate) fn cache_disk_bytes(&self) -> u64 {
        u64::from(self.cache_disk_mb) << 20
    }
}

/// A shared store, for commands that otherwise read a folder.
#[derive(Args, Debug)]
#[command(next_help_heading = "Shared store")]
pub(crate) struct StoreInstead {
    /// Shared store to read instead of a folder
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
}

/// Opens the store at a URL. Makes no request.
pub(crate) fn open(url: &str) -> Result<Arc<dyn Objects>, CommandError> {
    let url = url.to_owned();
    match folder(&url)? {
        Some(folder) if Store::exists(&folder) => Err(CommandError::DataFolder { url, folder }),
        _ => shared::open(&url).map_err(|source| CommandError::SharedStore { url, source: Box::new(source) }),
    }
}

fn folder(url: &str) -> Result<Option<PathBuf>, CommandError> {
    shared::folder(url).map_err(|source| CommandError::SharedStore { url: url.to_owned(), source: Box::new(source) })
}

/// Checks that neither the store at `url` nor the file or folder at `path` contains the other one.
pub(crate) fn check_apart(url: &str, path: &Path) -> Result<(), CommandError> {
    let Some(store) = folder(url)? else { return Ok(()) };
    let (store, other) = (resolved(&store), resolved(path));
    if store.starts_with(&other) || other.starts_with(&store) {
        return Err(CommandError::Nested { url: url.to_owned(), path: path.to_owned() });
    }
    Ok(())
}

/// Returns the absolute path without the symbolic links of the part that exists.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // Where a folder does not exist, `..` leads back from it.
    let path = path.components().fold(PathBuf::new(), |mut folded, component| {
        match component {
            Component::ParentDir if !folded.exists() => drop(folded.pop()),
            component => folded.push(component),
        }
        folded
    });
    let existing = path.ancestors().find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    let resolved = existing.and_then(|(ancestor, real)| Some(real.join(path.strip_prefix(ancestor).ok()?)));
    resolved.unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_and_another_folder_must_not_contain_each_other() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path();
        std::fs::create_dir_all(root.join("data/sub")).unwrap();
        std::os::unix::fs::symlink(root.join("data"), root.join("link")).unwrap();
        let check = |store: &str, path: &str| {
            let url = format!("file://{}", root.join(store).display());
            check_apart(&url, &root.join(path)).is_ok()
        };
        for (store, path) in [
            ("none/../data/x", "data"),
            ("data", "data"),
            ("data/store/a", "data"),
            ("a", "a/b/c"),
            ("link/store", "data"),
            ("data", "link/sub/x"),
        ] {
            assert!(!check(store, path), "{store} {path}");
        }
        for (store, path) in [("store", "data"), ("data-store", "data"), ("link", "other"), ("data/a", "data/b")] {
            assert!(check(store, path), "{store} {path}");
        }
        check_apart("s3://bucket/data", root).unwrap();
    }
}
