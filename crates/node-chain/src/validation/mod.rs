//! The rules for a valid block under each fork. Proof-of-work seals are not checked.
//!
//! Before execution: [`validate_header`] against the parent, [`validate_ommers`] against the ancestors,
//! [`validate_body`] against the header. After it: [`validate_outcome`].

mod body;
mod error;
mod header;
mod ommers;
mod outcome;

pub use body::validate_body;
pub use error::BlockError;
pub use header::validate_header;
pub use ommers::{Ancestor, MAX_OMMER_DEPTH, validate_ommers};
pub use outcome::validate_outcome;

#[cfg(test)]
mod tests;
