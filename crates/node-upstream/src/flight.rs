//! Requests under way, which callers with the same request share.

use node_core::context::{Context, Interrupted};
use parking_lot::{Condvar, Mutex};
use serde_json::value::RawValue;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Interval at which a waiting caller checks whether its request was cancelled.
const WAIT: Duration = Duration::from_millis(20);

/// Maximum size of the results that are kept for requests which may be repeated, in bytes.
const LATE_BYTES: usize = 32 << 20;

/// A method with its parameters as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) params: String,
    /// The same parameters with the number of the block instead of its hash, for endpoints that refuse hashes. `None`
    /// if the parameters have no hash of a block.
    pub(crate) by_number: Option<String>,
    /// The estimated length of the response in bytes, if it may be long. What is requested together is limited by it.
    pub(crate) response: usize,
}

impl Call {
    /// Returns whether the result is the same at any time, because the parameters contain the hash of a block.
    fn is_constant(&self) -> bool {
        self.by_number.is_some() || self.method == "eth_getBlockByHash"
    }
}

/// A set of endpoints by their indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Endpoints(pub(crate) u64);

impl Endpoints {
    /// The maximum number of endpoints.
    pub(crate) const MAX: usize = 64;

    pub(crate) fn with(self, index: usize) -> Self {
        Self(self.0 | 1 << index)
    }

    pub(crate) fn all_but(index: usize) -> Self {
        Self(!(1 << index))
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn contains(self, index: usize) -> bool {
        self.0 & 1 << index != 0
    }
}

/// A result of a call, and the endpoint that returned it.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) result: Arc<RawValue>,
    pub(crate) endpoint: usize,
}

/// Why no endpoint returned a result.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// No endpoint responded properly; the last reason.
    Unavailable(String),
    /// The endpoint returned an error.
    Refused { endpoint: usize, code: i64, message: String },
    /// The response exceeds the limit of this crate or of the endpoint.
    TooLarge,
}

pub(crate) type Outcome = Result<Answer, Failure>;

/// A request under way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) call: Call,
    /// Endpoints that are not asked.
    pub(crate) avoid: Endpoints,
    state: Mutex<State>,
    finished: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Number of callers that wait for the outcome.
    waiting: usize,
    outcome: Option<Outcome>,
    /// What the first endpoint that refused the call said.
    refusal: Option<Failure>,
    /// Endpoints that refuse the hash of the block, and are asked by number.
    by_number: Endpoints,
}

impl Flight {
    /// Returns the parameters for the endpoint.
    pub(crate) fn params(&self, endpoint: usize) -> &str {
        match &self.call.by_number {
            Some(by_number) if self.is_by_number(endpoint) => by_number,
            _ => &self.call.params,
        }
    }

    /// Returns whether the endpoint is asked with the number of the block instead of its hash.
    pub(crate) fn is_by_number(&self, endpoint: usize) -> bool {
        self.state.lock().by_number.contains(endpoint)
    }

    /// Has the endpoint asked with the number of the block, from now on. Returns `false` if the parameters have no
    /// hash of a block.
    pub(crate) fn ask_by_number(&self, endpoint: usize) -> bool {
        let has_hash = self.call.by_number.is_some();
        if has_hash {
            let mut state = self.state.lock();
            state.by_number = state.by_number.with(endpoint);
        }
        has_hash
    }

    /// Records that an endpoint refused the call.
    pub(crate) fn refused(&self, refusal: Failure) {
        self.state.lock().refusal.get_or_insert(refusal);
    }

    /// Returns the first refusal.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        self.state.lock().refusal.clone()
    }
}

/// A call, and the endpoints that are not asked.
type Key = (Call, Endpoints);

/// All requests under way, and results of requests that took too long. Whoever repeats those gets the results, so that slow
/// endpoints can be read even if they never respond in time.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<All>);

#[derive(Debug, Default)]
struct All {
    under_way: HashMap<Key, Arc<Flight>>,
    /// Oldest first.
    late: VecDeque<(Key, Answer)>,
}

impl All {
    fn keep(&mut self, key: Key, answer: Answer) {
        // Null may be another value later.
        if !key.0.is_constant() || answer.result.get() == "null" {
            return;
        }
        self.late.push_back((key, answer));
        let length = |((call, _), answer): &(Key, Answer)| call.params.len() + answer.result.get().len();
        let mut size: usize = self.late.iter().map(length).sum();
        while size > LATE_BYTES
            && let Some(oldest) = self.late.pop_front()
        {
            size -= length(&oldest);
        }
    }
}

/// A caller that waits for a flight.
pub(crate) struct Passenger(Arc<Flight>);

impl Drop for Passenger {
    fn drop(&mut self) {
        self.0.state.lock().waiting -= 1;
    }
}

impl Passenger {
    /// Waits for the outcome.
    ///
    /// # Errors
    /// If the caller's request is interrupted.
    pub(crate) fn wait(&self, context: &Context) -> Result<Outcome, Interrupted> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(outcome) = &state.outcome {
                return Ok(outcome.clone());
            }
            context.check()?;
            self.0.finished.wait_for(&mut state, WAIT);
        }
    }
}

impl Flights {
    /// Joins flights with these calls. Returns a passenger for each call, and the flights that begin with it.
    pub(crate) fn join(&self, calls: Vec<(Call, Endpoints)>) -> (Vec<Passenger>, Vec<Arc<Flight>>) {
        let mut begun = Vec::new();
        let All { under_way, late } = &mut *self.0.lock();
        let new = |(call, avoid): Key, outcome| {
            let state = Mutex::new(State { outcome, ..State::default() });
            Arc::new(Flight { call, avoid, state, finished: Condvar::new() })
        };
        let passengers = calls.into_iter().map(|key| {
            let flight = match late.iter().position(|(late, _)| *late == key).and_then(|index| late.remove(index)) {
                Some((key, answer)) => new(key, Some(Ok(answer))),
                None => Arc::clone(under_way.entry(key).or_insert_with_key(|key| {
                    let flight = new(key.clone(), None);
                    begun.push(Arc::clone(&flight));
                    flight
                })),
            };
            flight.state.lock().waiting += 1;
            Passenger(flight)
        });
        (passengers.collect(), begun)
    }

    /// Keeps a result that could not be used in time.
    pub(crate) fn keep(&self, key: Key, answer: Answer) {
        self.0.lock().keep(key, answer);
    }

    /// Ends a flight. Later outcomes of the same flight are ignored.
    pub(crate) fn finish(&self, flight: &Flight, outcome: Outcome) {
        let mut all = self.0.lock();
        let mut state = flight.state.lock();
        if state.outcome.is_none() {
            let key = (flight.call.clone(), flight.avoid);
            all.under_way.remove(&key);
            if let (0, Ok(answer)) = (state.waiting, &outcome) {
                all.keep(key, answer.clone());
            }
            state.outcome = Some(outcome);
            flight.finished.notify_all();
        }
    }

    /// Returns whether anyone waits for the flight. If nobody does, it is ended.
    pub(crate) fn is_wanted(&self, flight: &Flight) -> bool {
        let mut all = self.0.lock();
        let mut state = flight.state.lock();
        if state.waiting == 0 && state.outcome.is_none() {
            all.under_way.remove(&(flight.call.clone(), flight.avoid));
            state.outcome = Some(Err(Failure::Unavailable("nobody waits for it".to_owned())));
        }
        state.outcome.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(method: &str) -> Key {
        let call = Call { method: method.to_owned(), params: "[]".to_owned(), by_number: None, response: 0 };
        (call, Endpoints::default())
    }

    fn answer(json: String) -> Answer {
        Answer { result: RawValue::from_string(json).unwrap().into(), endpoint: 0 }
    }

    /// Finishes a flight that nobody waits for, and returns whether the same call begins another one.
    fn begins_again(flights: &Flights, key: &Key, answer: Answer) -> bool {
        let (passengers, mut begun) = flights.join(vec![key.clone()]);
        drop(passengers);
        flights.finish(&begun.remove(0), Ok(answer));
        let (passengers, begun) = flights.join(vec![key.clone()]);
        assert!(!begun.is_empty() || passengers[0].wait(&Context::unbounded()).unwrap().is_ok());
        !begun.is_empty()
    }

    #[test]
    fn results_that_cannot_change_are_kept_once() {
        for (method, json, expected) in [
            ("eth_getBlockByHash", "{}", false),
            ("eth_getBlockByHash", "null", true),
            ("eth_getBlockByNumber", "{}", true),
        ] {
            let (flights, key) = (Flights::default(), key(method));
            assert_eq!(begins_again(&flights, &key, answer(json.to_owned())), expected, "{method} {json}");
            assert!(flights.0.lock().late.is_empty());
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let flights = Flights::default();
        for _ in 0..5 {
            flights.keep(key("eth_getBlockByHash"), answer(format!("\"{}\"", "x".repeat(LATE_BYTES / 2 - 10))));
        }
        assert_eq!(flights.0.lock().late.len(), 2);
        flights.keep(key("eth_getBlockByHash"), answer(format!("\"{}\"", "x".repeat(LATE_BYTES))));
        assert!(flights.0.lock().late.is_empty());
    }
}
