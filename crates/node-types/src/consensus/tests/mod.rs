//! Tests of the encodings: round trips, another implementation as oracle, hostile bytes, a recorded chain.

#![allow(clippy::unwrap_used)]

mod chain_file;
mod hostile;
mod oracle;
mod round_trip;
mod strict;
