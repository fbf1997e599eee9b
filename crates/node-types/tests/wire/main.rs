//! The JSON encodings of requests and answers.

#![allow(clippy::unwrap_used)]

mod answers;
mod codecs;
mod events;
mod faults;
mod recorded;
mod requests;
#[cfg(feature = "schema")]
mod schemas;
mod strategies;
