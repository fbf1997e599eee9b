//! The selectors of called functions: 4byteTracer.

use super::budget::Budget;
use super::json;
use super::recorder::{Entry, FrameKind, Recorder};
use crate::trace::tracer::Finished;
use node_core::executor::TraceError;
use node_types::buffer::JsonBuffer;
use revm::primitives::FixedBytes;
use std::collections::BTreeMap;

/// Counts calls by selector and length of the arguments.
#[derive(Debug, Default)]
pub(super) struct Selectors(BTreeMap<(FixedBytes<4>, usize), u64>);

/// Estimated size in bytes of the record of one selector, and of its name at the end.
const SELECTOR_BYTES: usize = 192;

impl Recorder for Selectors {
    fn enter(&mut self, entry: &Entry<'_>, budget: &mut Budget) {
        let is_call = !entry.kind.is_creation() && entry.kind != FrameKind::SelfDestruct;
        if let Some((selector, arguments)) = entry.input.split_first_chunk::<4>()
            && is_call
            && !entry.is_precompile
        {
            let key = (FixedBytes(*selector), arguments.len());
            if self.0.contains_key(&key) || budget.spend(SELECTOR_BYTES) {
                *self.0.entry(key).or_default() += 1;
            }
        }
    }

    fn finish(&mut self, _: &mut Finished<'_, '_>, _: &mut Budget, out: &mut JsonBuffer) -> Result<(), TraceError> {
        let named = self.0.iter().map(|((selector, length), count)| (format!("{selector:#x}-{length}"), count));
        json::write(out, &named.collect::<BTreeMap<_, _>>())
    }
}
