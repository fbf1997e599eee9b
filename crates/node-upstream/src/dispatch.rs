//! Sending requests: in batches, to the endpoints in turn, again after failures.

use crate::endpoint::{Broken, Endpoint};
use crate::flight::{Answer, Call, Endpoints, Failure, Flight, Flights, Passenger};
use crate::message::{self, Fault, Meaning, Reply};
use crate::options::UpstreamOptions;
use crate::pace;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum time between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Interval at which a waiting request checks whether anyone still needs it.
const PAUSE: Duration = Duration::from_millis(50);

/// The endpoints, and the requests under way.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) options: UpstreamOptions,
    pub(crate) flights: Flights,
    /// The endpoint whose turn it is if all are ready.
    turn: AtomicUsize,
    /// Number of requests that may still be sent at once.
    free: Mutex<usize>,
    freed: Condvar,
    /// Number of rounds after the first one of all messages.
    pub(crate) retries: AtomicU64,
    /// Whether no endpoint has eth_getMultiProof.
    pub(crate) lacks_multi_proofs: AtomicBool,
}

/// The attempts to settle some flights.
#[derive(Default)]
struct Attempts {
    /// Endpoints that failed in this round.
    failed: Endpoints,
    rounds: u32,
    /// The last failure.
    reason: String,
}

/// Ends flights that their thread has left, by a panic for instance, so that nobody waits for them.
struct Landing<'a>(&'a Flights, Vec<Arc<Flight>>);

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        for flight in &self.1 {
            self.0.finish(flight, Err(Failure::Unavailable("its thread ended".to_owned())));
        }
    }
}

impl Dispatcher {
    pub(crate) fn new(endpoints: Vec<Endpoint>, options: UpstreamOptions) -> Self {
        Self {
            endpoints,
            free: Mutex::new(options.connections.max(1)),
            options,
            flights: Flights::default(),
            turn: AtomicUsize::new(0),
            freed: Condvar::new(),
            retries: AtomicU64::new(0),
            lacks_multi_proofs: AtomicBool::new(false),
        }
    }

    /// Sends calls that are not under way yet, and returns a passenger for each call. They are sent on a thread of
    /// their own: other callers may join them, and a caller that is interrupted leaves at once.
    pub(crate) fn send(self: &Arc<Self>, calls: Vec<(Call, Endpoints)>) -> Vec<Passenger> {
        let (passengers, begun) = self.flights.join(calls);
        let mut groups: BTreeMap<Endpoints, Vec<Arc<Flight>>> = BTreeMap::new();
        for flight in begun {
            groups.entry(flight.avoid).or_default().push(flight);
        }
        for (avoid, flights) in groups {
            let (dispatcher, group) = (Arc::clone(self), flights.clone());
            let thread = thread::Builder::new().name("upstream".to_owned()).spawn(move || {
                let _landing = Landing(&dispatcher.flights, group.clone());
                dispatcher.settle_all(dispatcher.pieces(group, dispatcher.options.batch), avoid);
            });
            if let Err(error) = thread {
                self.finish_all(&flights, &Failure::Unavailable(error.to_string()));
            }
        }
        passengers
    }

    /// Splits flights into batches of at most `count`, each of at most as many bytes as the options allow, with responses that
    /// are probably well below the limit.
    fn pieces(&self, flights: Vec<Arc<Flight>>, count: usize) -> Vec<Vec<Arc<Flight>>> {
        let mut pieces: Vec<Vec<Arc<Flight>>> = Vec::new();
        let (mut bytes, mut response) = (0, 0);
        for flight in flights {
            let length = flight.call.params.len() + flight.call.method.len() + 64;
            let is_short = bytes + length <= self.options.batch_bytes
                && response + flight.call.response <= self.options.response_bytes / 4;
            match pieces.last_mut() {
                Some(piece) if piece.len() < count && is_short => {
                    bytes += length;
                    response += flight.call.response;
                    piece.push(flight);
                }
                _ => {
                    (bytes, response) = (length, flight.call.response);
                    pieces.push(vec![flight]);
                }
            }
        }
        pieces
    }

    /// Settles batches side by side.
    fn settle_all(&self, mut pieces: Vec<Vec<Arc<Flight>>>, avoid: Endpoints) {
        let Some(last) = pieces.pop() else { return };
        let threads = pieces.len().min(self.options.connections);
        let pieces = Mutex::new(pieces);
        let work = || {
            while let Some(piece) = { pieces.lock().pop() } {
                self.settle(piece, avoid, None);
            }
        };
        thread::scope(|scope| {
            for _ in 0..threads {
                // Without a thread, this one does all of the work.
                let _ = thread::Builder::new().name("upstream".to_owned()).spawn_scoped(scope, work);
            }
            self.settle(last, avoid, None);
            work();
        });
    }

    /// Asks endpoints outside `avoid` until each flight has an outcome; first `preferred`.
    fn settle(&self, mut piece: Vec<Arc<Flight>>, avoid: Endpoints, mut preferred: Option<usize>) {
        let mut attempts = Attempts::default();
        loop {
            piece.retain(|flight| self.flights.is_wanted(flight));
            if piece.is_empty() {
                return;
            }
            let Some(index) = preferred.take().or_else(|| self.choose(avoid.and(attempts.failed))) else {
                if !self.begin_round(&mut attempts, &piece, avoid) {
                    return;
                }
                continue;
            };
            let endpoint = &self.endpoints[index];
            if piece.len() > endpoint.batch() {
                return self.settle_all(self.pieces(piece, endpoint.batch()), avoid);
            }
            self.pause(endpoint.ready_in(), &piece);
            match self.exchange(index, &piece) {
                Ok(replies) => piece = self.sort(index, piece, replies, avoid, &mut attempts),
                Err(Broken::TooLarge) => match piece.len() {
                    1 => return self.finish_all(&piece, &Failure::TooLarge),
                    length => return self.settle_all(self.pieces(piece, length.div_ceil(2)), avoid),
                },
                Err(Broken::Batch(Fault { meaning: Meaning::TooFast(wait), message, .. })) => {
                    self.too_fast(index, wait, message, &mut attempts);
                }
                Err(Broken::Batch(fault)) => endpoint.batch_refused(piece.len(), &fault),
                Err(Broken::Failed { reason, wait }) => self.failed(index, wait, reason, &mut attempts),
            }
        }
    }

    /// Returns an endpoint outside `avoid`: the first that may be asked, preferably one that works, in turn.
    fn choose(&self, avoid: Endpoints) -> Option<usize> {
        let count = self.endpoints.len();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let candidates = (0..count).map(|step| turn.wrapping_add(step) % count);
        let rank = |index: &usize| (self.endpoints[*index].ready_in(), self.endpoints[*index].avoided_for());
        candidates.filter(|index| !avoid.contains(*index)).min_by_key(rank)
    }

    /// Begins another round of attempts, after all endpoints have failed. Returns `false` if there are no more, after
    /// ending the flights.
    fn begin_round(&self, attempts: &mut Attempts, piece: &[Arc<Flight>], avoid: Endpoints) -> bool {
        if attempts.rounds == self.options.retries || self.choose(avoid).is_none() {
            for flight in piece {
                let unavailable = || Failure::Unavailable(attempts.reason.clone());
                // A refusal says more than the failure of another endpoint.
                self.flights.finish(flight, Err(flight.refusal().unwrap_or_else(unavailable)));
            }
            return false;
        }
        self.pause(self.backoff(attempts.rounds), piece);
        attempts.rounds += 1;
        self.retries.fetch_add(1, Ordering::Relaxed);
        attempts.failed = Endpoints::default();
        true
    }

    /// Returns the time to wait after a number of rounds, which is random, so that clients do not return together.
    fn backoff(&self, rounds: u32) -> Duration {
        let longest = self.options.retry_backoff.saturating_mul(1u32.checked_shl(rounds).unwrap_or(u32::MAX));
        let random = getrandom::u32().unwrap_or(u32::MAX);
        longest.min(MAX_BACKOFF).mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
    }

    /// Waits, unless nobody needs the flights any more.
    fn pause(&self, time: Duration, piece: &[Arc<Flight>]) {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !piece.iter().any(|flight| self.flights.is_wanted(flight)) {
                return;
            }
            thread::sleep(left.min(PAUSE));
        }
    }

    fn exchange(&self, index: usize, piece: &[Arc<Flight>]) -> Result<Vec<Reply>, Broken> {
        let endpoint = &self.endpoints[index];
        if endpoint.refuses_hashes() {
            for flight in piece {
                flight.ask_by_number(index);
            }
        }
        let calls = piece.iter().map(|flight| (flight.call.method.as_str(), flight.params(index)));
        let body = message::requests(calls);
        let units = piece.iter().map(|flight| pace::cost(&flight.call.method)).sum();
        let _slot = self.slot();
        endpoint.pace.take(units, Instant::now());
        endpoint.exchange(&body, piece.len())
    }

    /// Waits until a request may be sent, and returns what counts it.
    fn slot(&self) -> Slot<'_> {
        let mut free = self.free.lock();
        while *free == 0 {
            self.freed.wait(&mut free);
        }
        *free -= 1;
        Slot(self)
    }

    /// Ends the flights with results. Asks again, in another form or elsewhere, for those that were refused, and
    /// returns those that failed.
    fn sort(
        &self,
        index: usize,
        piece: Vec<Arc<Flight>>,
        replies: Vec<Reply>,
        avoid: Endpoints,
        attempts: &mut Attempts,
    ) -> Vec<Arc<Flight>> {
        let endpoint = &self.endpoints[index];
        let length = piece.len();
        // geth reports that a batch is too long in the response to one of its requests, and omits the others.
        let too_large = replies.iter().find_map(|reply| match reply {
            Reply::Error(fault) if fault.meaning == Meaning::TooLarge && length > 1 => Some(fault.clone()),
            _ => None,
        });
        if let Some(fault) = too_large.as_ref().filter(|fault| fault.message.to_ascii_lowercase().contains("batch")) {
            endpoint.batch_refused(length, fault);
        }
        let (mut again, mut smaller, mut by_number, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (flight, reply) in piece.into_iter().zip(replies) {
            match reply {
                Reply::Result(result) => {
                    endpoint.record_response();
                    if flight.is_by_number(index) {
                        endpoint.record_that_it_refuses_hashes();
                    }
                    self.flights.finish(&flight, Ok(Answer { result: result.into(), endpoint: index }));
                }
                Reply::Missing if too_large.is_some() => smaller.push(flight),
                Reply::Missing => {
                    self.failed(index, None, format!("{}: a batch lacks a response", endpoint.name()), attempts);
                    again.push(flight);
                }
                Reply::Error(Fault { meaning: Meaning::TooFast(wait), message, .. }) => {
                    self.too_fast(index, wait, message, attempts);
                    again.push(flight);
                }
                Reply::Error(Fault { meaning: Meaning::TooLarge, .. }) if length == 1 => {
                    self.flights.finish(&flight, Err(Failure::TooLarge));
                }
                Reply::Error(Fault { meaning: Meaning::TooLarge, .. }) => smaller.push(flight),
                Reply::Error(Fault { code, message, meaning }) => {
                    let could_be_the_hash = meaning == Meaning::Refused && !flight.is_by_number(index);
                    let refusal = Failure::Refused { endpoint: index, code, message };
                    if meaning == Meaning::Failed {
                        self.flights.finish(&flight, Err(refusal));
                        continue;
                    }
                    flight.refused(refusal);
                    if could_be_the_hash && flight.ask_by_number(index) {
                        by_number.push(flight);
                    } else {
                        elsewhere.push(flight);
                    }
                }
            }
        }
        if !smaller.is_empty() {
            self.settle_all(self.pieces(smaller, length.div_ceil(2)), avoid);
        }
        if !by_number.is_empty() {
            self.settle(by_number, avoid, Some(index));
        }
        if !elsewhere.is_empty() {
            self.settle(elsewhere, avoid.with(index), None);
        }
        again
    }

    fn too_fast(&self, index: usize, wait: Option<Duration>, message: String, attempts: &mut Attempts) {
        self.endpoints[index].pace.slow_down();
        self.failed(index, wait, format!("{}: {message}", self.endpoints[index].name()), attempts);
    }

    fn failed(&self, index: usize, wait: Option<Duration>, reason: String, attempts: &mut Attempts) {
        tracing::debug!(reason, "a request to the upstream failed");
        if let Some(wait) = wait {
            self.endpoints[index].rest(wait);
        }
        self.endpoints[index].record_failure(|failures| self.backoff(failures));
        attempts.failed = attempts.failed.with(index);
        attempts.reason = reason;
    }

    fn finish_all(&self, piece: &[Arc<Flight>], failure: &Failure) {
        piece.iter().for_each(|flight| self.flights.finish(flight, Err(failure.clone())));
    }
}

/// A request that is being sent.
struct Slot<'a>(&'a Dispatcher);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.freed.notify_one();
    }
}
