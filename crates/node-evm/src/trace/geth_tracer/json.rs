//! Values in the format of geth's traces.

use crate::trace::defect;
use node_core::executor::TraceError;
use node_types::buffer::JsonBuffer;
use node_types::wire::append_json;
use revm::primitives::{B256, Bytes};
use serde::{Serialize, Serializer};
use std::fmt::LowerHex;

/// A number, an address or a word as hex digits with `0x`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hex<T>(pub(super) T);

impl<T: LowerHex> Serialize for Hex<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

/// A byte string as hex digits with `0x`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Data(pub(super) Bytes);

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // [`append_json`] writes bytes as hex digits.
        serializer.serialize_bytes(&self.0)
    }
}

impl Data {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Memory as a list of words of 32 bytes. The last one is filled up with zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(pub(super) Bytes);

impl Words {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.chunks(32).map(|bytes| Hex(B256::right_padding_from(bytes))))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Appends a trace to `out`.
pub(super) fn write(out: &mut JsonBuffer, trace: &impl Serialize) -> Result<(), TraceError> {
    append_json(out, trace).map_err(|error| match out.full() {
        Some(full) => full.into(),
        None => defect(error).into(),
    })
}
