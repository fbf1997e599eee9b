//! A store that many servers share: the runs, the log and the manifests of an archive as objects of a bucket or files of
//! a folder.
//!
//! One server writes, any number of others read. [`Store::publish`](crate::Store::publish) is the writer. `docs/storage.md` describes the objects and the protocol, and argues
//! why no two servers write at the same time.
//!
//! | To | use |
//! |---|---|
//! | reach a medium | [`open`] with its URL, or an own implementation of [`Objects`]; in each case [`Retrying`] |
//! | become the writer | [`Claim::acquire`], then [`Claim::into_writer`] |
//! | write | [`Writer::commit`]; [`Objects::upload`] for runs, then [`Writer::draft`], [`Draft::upload`], [`Writer::announce`] |
//! | delete what is no longer needed | [`Writer::collection`], [`Collection::run`], [`Writer::collected`]; [`Writer::sweep`] |
//! | notice that the store has disappeared, or lacks runs | [`Writer::witness`]; [`check_runs`] |
//! | read | [`Reader::open`], [`Reader::poll`]; [`RunObject`] for the rows of runs |

#[cfg(feature = "object-store")]
mod cloud;
mod collector;
mod counted;
mod disk_cache;
mod error;
#[cfg(any(test, feature = "test-faults"))]
pub mod faults;
mod fence;
mod folder;
mod inventory;
mod log;
mod manifest;
mod memory;
mod names;
mod objects;
mod place;
mod reader;
mod reads;
mod retry;
mod run;
mod sweep;
#[cfg(test)]
mod tests;
mod url;
mod witness;
mod writer;

#[cfg(feature = "object-store")]
#[cfg_attr(docsrs, doc(cfg(feature = "object-store")))]
pub use cloud::CloudObjects;
pub use collector::Collection;
pub use counted::{Counted, RequestCounts};
pub(crate) use disk_cache::CacheFolder;
pub use error::{FormatError, SharedError};
pub use folder::FolderObjects;
pub use inventory::{RunFault, check_runs, run_faults};
pub use log::{LogHeader, LogObject, Position};
pub use manifest::{Chain, Content, Manifest, Past, SharedRun};
pub use memory::MemoryObjects;
pub use names::{Epoch, LogNumber, ManifestName, RunName};
pub use objects::{Creation, Fault, Objects, ObjectsError, PAGE};
pub use reader::{Reader, Step};
pub(crate) use reads::{RunReads, UNAVAILABLE};
pub use retry::{Cancel, Outage, RetryPolicy, Retrying};
pub use run::{MAX_ENDING, RunObject, ending};
pub use sweep::Sweep;
pub use url::{folder, open};
pub use witness::Witness;
pub use writer::{Claim, Draft, Uploaded, Writer};

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Returns a random number. The keys of its hasher are the standard library's only source of them.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
