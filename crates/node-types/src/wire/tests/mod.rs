//! The JSON encodings of requests and responses.

#![allow(clippy::unwrap_used)]

mod codecs;
mod events;
mod faults;
mod recorded;
mod requests;
mod responses;
#[cfg(feature = "schema")]
mod schemas;
mod strategies;
