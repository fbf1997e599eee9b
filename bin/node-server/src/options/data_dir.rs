//! The folder that stores a chain.

use crate::error::CommandError;
use clap::builder::{PathBufValueParser, TypedValueParser};
use node_types::H256;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// The value of `--data-dir`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DataDir {
    /// `:memory:`.
    Memory,
    /// A folder.
    Folder(PathBuf),
}

impl DataDir {
    /// Returns the parser for the command line.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        PathBufValueParser::new().map(Self::from)
    }
}

impl From<PathBuf> for DataDir {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == ":memory:" { Self::Memory } else { Self::Folder(path) }
    }
}

/// Returns the default folder of the chain with this genesis hash, in the user's data folder of the XDG Base
/// Directory Specification.
pub(crate) fn default_folder(genesis: H256) -> Result<PathBuf, CommandError> {
    let data = data_home(env::var_os("XDG_DATA_HOME"), env::var_os("HOME")).ok_or(CommandError::NoHome)?;
    Ok(data.join("ethnode").join(format!("{genesis:#x}")))
}

/// Returns the user's data folder. The specification requires relative paths to be ignored.
fn data_home(xdg_data_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(xdg_data_home).or_else(|| Some(absolute(home)?.join(".local/share")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_follows_the_xdg_specification() {
        let cases = [
            (Some("/data"), Some("/home/me"), Some("/data")),
            (Some("data"), Some("/home/me"), Some("/home/me/.local/share")),
            (Some(""), Some("/home/me"), Some("/home/me/.local/share")),
            (None, Some("/home/me"), Some("/home/me/.local/share")),
            (None, Some(""), None),
            (None, None, None),
        ];
        for (xdg, home, expected) in cases {
            let got = data_home(xdg.map(OsString::from), home.map(OsString::from));
            assert_eq!(got, expected.map(PathBuf::from), "{xdg:?} {home:?}");
        }
    }
}
