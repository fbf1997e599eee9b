//! The output of `dev` in a terminal or a pipe: several lines for each transaction, the reasons of failed requests, and the
//! number of other requests.
//!
//! A separate thread prints, and executes blocks again to see their calls, so neither requests nor block production
//! wait for the terminal. If it is too slow, it skips blocks and reports how many.

mod abi;
mod call_frame;
mod console_format;
mod console_log;
mod custom_errors;
mod escape;
mod requests;
mod signatures;
mod transaction;

use crate::logging::RequestLayer;
use call_frame::CallFrame;
use node_core::backend::{HeadChange, HeadListener};
use node_core::block::BlockRef;
use node_core::context::Context;
use node_core::executor::Call;
use node_core::node::{FoundReceipts, Node, NodeError, TraceOptions};
use node_dev::Checksummed;
use node_types::BlockId;
use node_types::buffer::JsonBuffer;
use requests::{Failed, RequestCounts};
use serde_json::value::RawValue;
use std::cell::Cell;
use std::convert::Infallible;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::time::{Duration, Instant};
use std::{env, thread};
use transaction::{TransactionLines, in_red, indented};

/// Maximum number of changes and failures that wait to be printed.
const MAX_QUEUED: usize = 1_024;

/// Maximum number of calls that wait to be executed again for their `console.log` lines. The lines of further calls
/// are not shown.
const MAX_QUEUED_CALLS: usize = 64;

/// How long requests are counted before the numbers are printed, if nothing else is printed.
const COUNT_INTERVAL: Duration = Duration::from_secs(2);

/// How long blocks without transactions are collected, to be printed as one line.
const EMPTY_INTERVAL: Duration = Duration::from_millis(300);

/// How long the exit of the process waits for the terminal.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// The options of the tracer whose results [`CallFrame`] reads.
const CALL_TRACER: &str = r#"{"tracer":"callTracer","tracerConfig":{"withLog":true}}"#;

/// The transactions that are printed with their calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traces {
    None,
    Failed,
    All,
}

impl Traces {
    fn includes(self, is_failed: bool) -> bool {
        self == Self::All || self == Self::Failed && is_failed
    }
}

/// The events that the printing thread receives.
enum Event {
    Changed(HeadChange),
    /// A call or an estimate ran. If it failed, [`Failed`](Self::Failed) of its request follows.
    Called(Box<Call>, BlockId),
    Failed(Failed),
    Stop,
}

/// A terminal to which nothing has been printed yet.
pub(crate) struct Terminal {
    traces: Traces,
    /// Whether lines of `console.log` are shown.
    console: bool,
    counts: Arc<RequestCounts>,
    events: SyncSender<Event>,
    received: Receiver<Event>,
}

impl Terminal {
    pub(crate) fn new(traces: Traces, console: bool) -> Self {
        let (events, received) = sync_channel(MAX_QUEUED);
        Self { traces, console, counts: Arc::default(), events, received }
    }

    /// Returns the layer of the log that observes requests.
    pub(crate) fn layer(&self) -> RequestLayer {
        let (counts, events) = (self.counts.clone(), self.events.clone());
        RequestLayer::new(move |request| {
            if let Some(failed) = counts.count(request) {
                // Skipped while too many events are waiting.
                let _ = events.try_send(Event::Failed(failed));
            }
        })
    }

    /// Prints the events of the chain of `node` until the returned value is dropped.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn follow(self, node: Arc<Node>) -> io::Result<Following> {
        let Self { traces, console, counts, events, received } = self;
        let missed = Arc::new(AtomicUsize::new(0));
        let waiting_calls = Arc::new(AtomicUsize::new(0));
        node.backend().subscribe(Arc::new(Listener { events: events.clone(), missed: missed.clone() }));
        let (calls, waiting) = (events.clone(), waiting_calls.clone());
        node.observe_calls(move |call, block| {
            if waiting.fetch_add(1, Ordering::Relaxed) >= MAX_QUEUED_CALLS
                || calls.try_send(Event::Called(call.clone().into(), block)).is_err()
            {
                waiting.fetch_sub(1, Ordering::Relaxed);
            }
        });
        // https://no-color.org
        let colors = io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let printer = Printer {
            node,
            traces,
            console,
            colors,
            counts,
            missed,
            waiting_calls,
            empty: None,
            explained: None,
            is_closed: Cell::default(),
        };
        let (running, finished) = channel();
        thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            printer.run(&received);
            drop(running);
        })?;
        Ok(Following { events, finished })
    }
}

/// The running thread that prints.
pub(super) struct Following {
    events: SyncSender<Event>,
    /// Disconnected once the thread has ended.
    finished: Receiver<Infallible>,
}

/// Prints everything that is queued. A stalled terminal delays this by at most [`MAX_DELAY`].
impl Drop for Following {
    fn drop(&mut self) {
        let deadline = Instant::now() + MAX_DELAY;
        let mut event = Event::Stop;
        while let Err(TrySendError::Full(returned)) = self.events.try_send(event) {
            if Instant::now() >= deadline {
                return;
            }
            event = returned;
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.finished.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

/// Passes changes of the head on to the thread.
struct Listener {
    events: SyncSender<Event>,
    /// Number of changes that were not passed on, because too many were waiting.
    missed: Arc<AtomicUsize>,
}

impl HeadListener for Listener {
    fn head_changed(&self, change: &HeadChange) {
        if self.events.try_send(Event::Changed(change.clone())).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Printer {
    node: Arc<Node>,
    traces: Traces,
    console: bool,
    colors: bool,
    counts: Arc<RequestCounts>,
    missed: Arc<AtomicUsize>,
    /// Number of calls whose `console.log` lines will be printed.
    waiting_calls: Arc<AtomicUsize>,
    /// The first and the last of the empty blocks that have not been printed yet.
    empty: Option<(BlockRef, BlockRef)>,
    /// The failure of a call that was printed, and may be that of the next failed request.
    explained: Option<String>,
    /// Whether the reader has closed the pipe, so that nothing needs to be printed.
    is_closed: Cell<bool>,
}

impl Printer {
    fn run(mut self, received: &Receiver<Event>) {
        loop {
            let patience = if self.empty.is_some() { EMPTY_INTERVAL } else { COUNT_INTERVAL };
            match received.recv_timeout(patience) {
                Ok(Event::Changed(change)) => self.changed(&change),
                Ok(Event::Called(call, block)) => {
                    self.print_call(&call, block);
                    self.waiting_calls.fetch_sub(1, Ordering::Relaxed);
                }
                Ok(Event::Failed(failed)) => {
                    self.print_counts();
                    let explained = self.explained.take().is_some_and(|failure| failed.is_explained_by(&failure));
                    self.print(&if explained { failed.without_reason() } else { failed.to_string() });
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.print_empty();
                    self.print_counts();
                }
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return self.print_empty(),
            }
        }
    }

    fn print(&self, text: &str) {
        if writeln!(io::stdout(), "{text}").is_err() {
            self.is_closed.set(true);
        }
    }

    fn changed(&mut self, change: &HeadChange) {
        if self.is_closed.get() {
            return;
        }
        let missed = self.missed.swap(0, Ordering::Relaxed);
        if missed > 0 {
            self.print_empty();
            self.print(&format!("{missed} changes of the chain came too fast to be shown"));
        }
        if let (Some(newest), Some(oldest)) = (change.removed.first(), change.removed.last()) {
            self.print_empty();
            self.print(&format!("blocks {} to {} left the chain", oldest.number, newest.number));
        }
        // States before the newest block of a dump are not known, and no block before it was sealed here.
        let floor = self.node.backend().view().map_or(0, |view| view.earliest_state());
        let (loaded, sealed) = change.added.split_at(change.added.partition_point(|block| block.number <= floor));
        if let (Some(first), Some(last)) = (loaded.first(), loaded.last()) {
            self.print_empty();
            self.print(&format!("blocks {} to {} were loaded", first.number, last.number));
        }
        for block in sealed {
            match self.lines(*block) {
                Ok(lines) if lines.is_empty() => {
                    let first = self.empty.map_or(*block, |(first, _)| first);
                    self.empty = Some((first, *block));
                }
                Ok(lines) => {
                    self.print_empty();
                    self.print_counts();
                    lines.iter().for_each(|lines| self.print(lines));
                }
                // A later change has removed the block.
                Err(NodeError::BlockNotFound { .. }) => {}
                Err(error) => self.print(&format!("block {} cannot be shown: {error}", block.number)),
            }
        }
    }

    /// Returns the text of each transaction of a block.
    fn lines(&self, block: BlockRef) -> Result<Vec<String>, NodeError> {
        let context = Context::unbounded();
        let found = self.node.get_receipts(&context, block.hash.into())?;
        if found.receipts.is_empty() {
            return Ok(Vec::new());
        }
        let mut frames = Vec::new();
        let traced = self.node.trace_block(&context, block.hash.into(), &call_tracer(), |_, trace| {
            let mut json = JsonBuffer::default();
            trace(&mut json)?;
            frames.push(CallFrame::parse(&json));
            Ok(())
        });
        if traced.is_err() {
            // The calls take too much memory to trace. The rest is shown without them.
            frames.clear();
        }
        Ok(self.texts(&found, frames.into_iter()))
    }

    fn texts(&self, found: &FoundReceipts, frames: impl Iterator<Item = Option<CallFrame>>) -> Vec<String> {
        let frames = frames.chain(std::iter::repeat_with(|| None));
        let lines = found.iter().zip(frames).map(|(receipt, frame)| {
            let header = &found.block.header;
            let Self { traces, console, colors, .. } = *self;
            TransactionLines { header, receipt, frame: frame.as_ref(), traces, console, colors }.to_string()
        });
        lines.collect()
    }

    /// Prints the failure, the `console.log` lines and the trace of a call or an estimate. In tests, a contract is often
    /// only run by calls.
    fn print_call(&mut self, call: &Call, block: BlockId) {
        if self.is_closed.get() {
            return;
        }
        let mut json = JsonBuffer::default();
        let traced = self.node.trace_call(&Context::unbounded(), call, block, None, &call_tracer(), &mut json);
        let Some(frame) = traced.ok().and_then(|()| CallFrame::parse(&json)) else { return };
        let failure = frame.failure();
        let mut lines = Vec::new();
        if let Some(failure) = &failure {
            lines.push(format!("  status  {}", in_red(failure, self.colors)));
        }
        if self.console {
            lines.extend(frame.console_lines().iter().map(|line| format!("  console {}", indented(line))));
        }
        if self.traces.includes(failure.is_some()) {
            lines.push(format!("  trace\n{}", frame.to_string().trim_end()));
        }
        if !lines.is_empty() {
            // Other lines may be printed between this one and that of the request.
            let to = call.to.map_or("that creates".to_owned(), |to| format!("to {}", Checksummed(to)));
            let function = frame.function().map_or_else(String::new, |function| format!(" {function}"));
            self.print(&format!("call {to}{function} from {}\n{}", Checksummed(call.from), lines.join("\n")));
            self.explained = failure;
        }
    }

    fn print_empty(&mut self) {
        match self.empty.take() {
            Some((first, last)) if first == last => self.print(&format!("block {} is empty", first.number)),
            Some((first, last)) => self.print(&format!("blocks {} to {} are empty", first.number, last.number)),
            None => {}
        }
    }

    fn print_counts(&self) {
        if let Some(counts) = self.counts.take() {
            self.print(&counts);
        }
    }
}

fn call_tracer() -> TraceOptions {
    TraceOptions { tracer: RawValue::from_string(CALL_TRACER.to_owned()).ok().map(Arc::from), timeout: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each drop returns, although the thread never ends, and never makes room in its queue.
    #[test]
    fn the_end_does_not_wait_for_a_terminal_that_has_stopped_reading() {
        for queued in [0, 1] {
            let (events, received) = sync_channel(1);
            for _ in 0..queued {
                events.send(Event::Stop).unwrap();
            }
            let (running, finished) = channel();
            drop(Following { events, finished });
            assert_eq!(received.try_iter().count(), 1, "the thread receives the request to end");
            drop(running);
        }
    }
}
