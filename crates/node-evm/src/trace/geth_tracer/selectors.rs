//! The selectors of called functions: 4byteTracer.

use super::budget::Budget;
use super::json;
use super::recorder::{Entry, FrameKind, Recorder};
use crate::trace::tracer::Finished;
use node_core::executor::{Trace, TraceError};
use revm::primitives::FixedBytes;
use std::collections::BTreeMap;

/// Counts calls by selector and length of the arguments.
#[derive(Debug, Default)]
pub(super) struct Selectors(BTreeMap<(FixedBytes<4>, usize), u64>);

impl Recorder for Selectors {
    fn enter(&mut self, entry: &Entry<'_>, _: &mut Budget) {
        let is_call = !entry.kind.is_creation() && entry.kind != FrameKind::SelfDestruct;
        if let Some((selector, arguments)) = entry.input.split_first_chunk::<4>()
            && is_call
            && !entry.is_precompile
        {
            *self.0.entry((FixedBytes(*selector), arguments.len())).or_default() += 1;
        }
    }

    fn finish(&mut self, _: &mut Finished<'_, '_>, _: &mut Budget) -> Result<Trace, TraceError> {
        let named = self.0.iter().map(|((selector, length), count)| (format!("{selector:#x}-{length}"), count));
        Ok(json::to_trace(&named.collect::<BTreeMap<_, _>>())?)
    }
}
