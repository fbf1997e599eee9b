//! Conversions between the JSON structures of the interface and the domain values of the node.

pub(crate) mod event;
pub(crate) mod input;
pub(crate) mod output;
