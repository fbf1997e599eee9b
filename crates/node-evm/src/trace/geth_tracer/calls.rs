//! The tree of calls: callTracer.

use super::budget::Budget;
use super::erc7562::Operations;
use super::json::{self, Data, Hex};
use super::recorder::{Entry, Exit, Failure, FrameKind, Recorder};
use super::revert;
use crate::trace::tracer::Finished;
use node_core::executor::TraceError;
use node_types::buffer::JsonBuffer;
use revm::primitives::{Address, B256, Bytes, Log, U256};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The options of callTracer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CallOptions {
    pub(super) only_top_call: bool,
    pub(super) with_log: bool,
}

/// A call and the calls that it made.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallFrame {
    #[serde(rename = "type")]
    pub(super) kind: FrameKind,
    pub(super) from: Hex<Address>,
    pub(super) gas: Hex<u64>,
    pub(super) gas_used: Hex<u64>,
    /// `None` for a creation that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<Hex<Address>>,
    pub(super) input: Data,
    #[serde(skip_serializing_if = "Data::is_empty")]
    pub(super) output: Data,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revert_reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<CallFrame>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logs: Vec<CallLog>,
    /// `None` for a static call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Hex<U256>>,
    /// `None` except for erc7562Tracer.
    #[serde(flatten)]
    pub(super) operations: Option<Box<Operations>>,
    #[serde(skip)]
    pub(super) is_precompile: bool,
    #[serde(skip)]
    pub(super) failure: Option<Failure>,
}

/// A log of a call.
#[derive(Debug, Serialize)]
pub(super) struct CallLog {
    address: Hex<Address>,
    topics: Vec<Hex<B256>>,
    data: Data,
    /// Its position among the logs of the block; before the end, among those of the transaction.
    index: Hex<u64>,
    /// Number of calls that the frame made before.
    position: Hex<usize>,
}

impl CallFrame {
    fn new(entry: &Entry<'_>) -> Self {
        Self {
            kind: entry.kind,
            from: Hex(entry.from),
            gas: Hex(entry.gas),
            gas_used: Hex(0),
            to: Some(Hex(entry.to)),
            input: Data(Bytes::copy_from_slice(entry.input)),
            output: Data::default(),
            error: None,
            revert_reason: None,
            calls: Vec::new(),
            logs: Vec::new(),
            value: (entry.kind != FrameKind::StaticCall).then_some(Hex(entry.value)),
            operations: None,
            is_precompile: entry.is_precompile,
            failure: None,
        }
    }

    fn end(&mut self, exit: &Exit<'_>) {
        self.gas_used = Hex(exit.gas_used);
        self.failure.clone_from(&exit.failure);
        let Some(failure) = &exit.failure else {
            self.output = Data(exit.output.clone());
            return;
        };
        self.error = Some(failure.text());
        if self.kind.is_creation() {
            self.to = None;
        }
        if failure.is_revert() {
            self.output = Data(exit.output.clone());
            self.revert_reason = revert::reason(exit.output);
        }
    }

    /// Removes the logs that were reverted, and counts the others from the first of the block.
    fn settle_logs(&mut self, first: u64) {
        let mut frames = vec![(self, false)];
        while let Some((frame, reverted)) = frames.pop() {
            let reverted = reverted || frame.failure.is_some();
            if reverted {
                frame.logs.clear();
            }
            frame.logs.iter_mut().for_each(|log| log.index.0 += first);
            frames.extend(frame.calls.iter_mut().map(|call| (call, reverted)));
        }
    }
}

/// Size of an item of a growing list, in items: a list has up to twice the capacity that it needs.
const IN_LIST: usize = 2;

/// Records the tree of calls.
#[derive(Debug, Default)]
pub(super) struct CallTree {
    options: CallOptions,
    /// The active frames, outermost first, each with the number of logs that were in force when it began.
    active: Vec<(CallFrame, u64)>,
    outermost: Option<CallFrame>,
    /// Number of logs in force: those of frames that failed do not count.
    logs: u64,
}

impl CallTree {
    pub(super) fn new(options: CallOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Returns the outermost frame, with the gas of that call alone.
    pub(super) fn take(&mut self, run: &Finished<'_, '_>) -> CallFrame {
        // revm calls no hook if gas that the transaction owes besides its intrinsic gas exceeds the limit.
        self.outermost.take().unwrap_or_else(|| unstarted(run))
    }

    /// Returns the outermost frame as geth shows it: with all gas of the transaction.
    pub(super) fn take_whole(&mut self, run: &Finished<'_, '_>) -> CallFrame {
        let mut frame = self.take(run);
        frame.gas = Hex(run.transaction.gas_limit);
        frame.gas_used = Hex(run.outcome.result.tx_gas_used());
        frame.settle_logs(run.place.first_log);
        frame
    }

    /// Returns the innermost frame, and its depth from 0.
    pub(super) fn innermost(&mut self) -> Option<(&mut CallFrame, usize)> {
        let depth = self.active.len().checked_sub(1)?;
        self.active.last_mut().map(|(frame, _)| (frame, depth))
    }
}

impl CallTree {
    /// Returns the operations of the innermost frame, if they are recorded.
    pub(super) fn operations(&mut self) -> Option<&mut Operations> {
        self.innermost().and_then(|(frame, _)| frame.operations.as_deref_mut())
    }
}

impl Recorder for CallTree {
    fn enter(&mut self, entry: &Entry<'_>, budget: &mut Budget) {
        let is_shown = !self.options.only_top_call || self.active.is_empty();
        let input = if is_shown { entry.input } else { &[] };
        if !budget.spend(IN_LIST * size_of::<CallFrame>() + input.len()) {
            return;
        }
        self.active.push((CallFrame::new(&Entry { input, ..*entry }), self.logs));
    }

    fn exit(&mut self, exit: &Exit<'_>, budget: &mut Budget) {
        let Some((mut frame, logs)) = self.active.pop() else { return };
        if exit.failure.is_some() {
            self.logs = logs;
        }
        let is_shown = !self.options.only_top_call || self.active.is_empty();
        if !is_shown || !budget.spend(exit.output.len()) {
            return;
        }
        frame.end(exit);
        // Even a single item would leave room for more.
        frame.calls.shrink_to_fit();
        frame.logs.shrink_to_fit();
        match self.innermost() {
            Some((caller, _)) => caller.calls.push(frame),
            None => self.outermost = Some(frame),
        }
    }

    fn log(&mut self, log: &Log, budget: &mut Budget) {
        if !self.options.with_log {
            return;
        }
        let index = Hex(self.logs);
        self.logs += 1;
        let only_top = self.options.only_top_call;
        let topics = log.data.topics();
        let bytes = IN_LIST * size_of::<CallLog>() + size_of_val(topics) + log.data.data.len();
        let Some((frame, depth)) = self.innermost() else { return };
        if (only_top && depth > 0) || !budget.spend(bytes) {
            return;
        }
        frame.logs.push(CallLog {
            address: Hex(log.address),
            topics: topics.iter().copied().map(Hex).collect(),
            data: Data(log.data.data.clone()),
            index,
            position: Hex(frame.calls.len()),
        });
    }

    fn finish(&mut self, run: &mut Finished<'_, '_>, _: &mut Budget, out: &mut JsonBuffer) -> Result<(), TraceError> {
        json::write(out, &self.take_whole(run))
    }
}

/// Returns the frame of a transaction that failed before its code began.
fn unstarted(run: &Finished<'_, '_>) -> CallFrame {
    let transaction = run.transaction;
    let (kind, to) = match transaction.kind.to() {
        Some(to) => (FrameKind::Call, *to),
        None => (FrameKind::Create, transaction.caller.create(transaction.nonce)),
    };
    let entry = Entry {
        kind,
        from: transaction.caller,
        to,
        input: &transaction.data,
        gas: 0,
        value: transaction.value,
        is_precompile: false,
    };
    let mut frame = CallFrame::new(&entry);
    let failure = Failure::of(revm::interpreter::InstructionResult::OutOfGas, None);
    frame.end(&Exit { gas_used: 0, output: &Bytes::new(), failure });
    frame
}
