//! Why a fork could not be opened.

use super::{ForkPoint, InvalidForkUrl};
use node_core::backend::BackendError;
use node_store::files::FolderError;
use node_types::{BlockNumber, H256};
use node_upstream::{InvalidUrl, UpstreamError};
use std::io;
use std::path::PathBuf;

/// Why a fork could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenForkError {
    #[error("`fork-url`")]
    Url(#[from] InvalidForkUrl),
    #[error("`fork-url`")]
    Urls(#[from] InvalidUrl),
    #[error(
        "there is no fork in the folder yet, and a new one has to read the other chain (`fork-url`, without `offline`)"
    )]
    NoFork,
    #[error(
        "offline, only a fork in a folder can be continued, one that was begun before without `offline` (`data-dir`)"
    )]
    NoFolder,
    #[error("a fork begins with one block, and two are given: {first}, and {second}")]
    TwoPoints { first: ForkPoint, second: ForkPoint },
    #[error("the pending block has no hash, so nothing can be proven about its state")]
    Pending,
    #[error("the newest block is {head}, there is none {blocks} blocks before it")]
    BeforeGenesis { head: BlockNumber, blocks: u64 },
    #[error("no block contains transaction {0:#x}")]
    NotMined(H256),
    #[error("the fork in the folder begins with block {found} ({hash:#x}), not with {wanted}; use another folder")]
    OtherBlock { found: BlockNumber, hash: H256, wanted: ForkPoint },
    #[error("the fork in the folder has other rules, or another chain id; use another folder")]
    OtherRules,
    #[error("the fork in the folder was begun with proofs of the state (without `fork-trust`); use another folder")]
    Verified,
    #[error("no server proves the state of the block that the fork begins with; `fork-trust` reads it without proofs")]
    NoProofs(#[source] BackendError),
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("cannot open what was fetched")]
    Contents(#[source] io::Error),
    #[error("{}", path.display())]
    Record { path: PathBuf, source: io::Error },
    #[error("a thread panicked")]
    Panicked,
}

impl OpenForkError {
    /// Returns whether the fork cannot be opened with these options at any time.
    pub fn is_mistake(&self) -> bool {
        match self {
            Self::Url(_)
            | Self::Urls(_)
            | Self::NoFork
            | Self::NoFolder
            | Self::TwoPoints { .. }
            | Self::Pending
            | Self::OtherBlock { .. }
            | Self::OtherRules
            | Self::Verified => true,
            Self::BeforeGenesis { .. } | Self::NotMined(_) | Self::Upstream(_) | Self::Backend(_) | Self::Folder(_) => {
                false
            }
            Self::NoProofs(_) | Self::Contents(_) | Self::Record { .. } | Self::Panicked => false,
        }
    }
}
