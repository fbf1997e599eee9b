//! Repeating operations that failed for a while.

use super::objects::{Creation, Fault, Objects, ObjectsError};
use super::random;
use crate::files::Object;
use node_core::context::Context;
use parking_lot::{Condvar, Mutex};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often and how long failed operations are repeated.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Pause after the first failure. Each further pause is twice as long, of which up to half is left out at random,
    /// so that many processes do not return at the same moment.
    pub first: Duration,
    /// Maximum pause.
    pub longest: Duration,
    /// Time after which an operation fails.
    pub deadline: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { first: Duration::from_millis(50), longest: Duration::from_secs(5), deadline: Duration::from_secs(60) }
    }
}

/// Time between two looks whether the context of an operation was cancelled.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// Ends all operations that share it.
#[derive(Debug, Default)]
pub struct Cancel {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    cancelled: bool,
    context: Option<Context>,
}

impl Cancel {
    /// Also ends the operations when `context` is cancelled, until [`release`](Self::release) is called.
    pub fn with(context: &Context) -> Self {
        let state = State { cancelled: false, context: Some(context.clone()) };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Makes operations continue when the context is cancelled.
    pub fn release(&self) {
        self.state.lock().context = None;
    }

    /// Makes all operations fail that would be repeated from now on, and those that wait for a request.
    pub fn cancel(&self) {
        self.state.lock().cancelled = true;
        self.changed.notify_all();
    }

    /// Returns whether operations must end.
    pub fn is_cancelled(&self) -> bool {
        self.state.lock().is_cancelled()
    }

    /// Waits for `pause`. Returns whether the operation was cancelled.
    fn wait(&self, pause: Duration) -> bool {
        let deadline = Instant::now() + pause;
        let mut state = self.state.lock();
        while !state.is_cancelled() && Instant::now() < deadline {
            let until = if state.context.is_some() { deadline.min(Instant::now() + LOOK) } else { deadline };
            self.changed.wait_until(&mut state, until);
        }
        state.is_cancelled()
    }
}

impl State {
    fn is_cancelled(&self) -> bool {
        self.cancelled || self.context.as_ref().is_some_and(|context| context.check().is_err())
    }
}

/// Objects whose operations are repeated after [transient](Fault::Transient) failures.
///
/// A creation that took effect although it appeared to fail returns [`Creation::Exists`] when it is repeated.
#[derive(Debug)]
pub struct Retrying {
    objects: Arc<dyn Objects>,
    policy: RetryPolicy,
    cancel: Arc<Cancel>,
    outage: Mutex<Option<Outage>>,
}

/// Operations fail at present.
#[derive(Clone, Debug)]
pub struct Outage {
    /// When the first one failed.
    pub since: Instant,
    /// The last failure, with its causes.
    pub reason: String,
}

impl Retrying {
    /// Repeats operations on `objects` until `cancel` is cancelled.
    pub fn new(objects: Arc<dyn Objects>, policy: RetryPolicy, cancel: Arc<Cancel>) -> Self {
        objects.end_with(&cancel);
        Self { objects, policy, cancel, outage: Mutex::default() }
    }

    /// Returns the present outage: no operation has succeeded since the last failure.
    pub fn outage(&self) -> Option<Outage> {
        self.outage.lock().clone()
    }

    fn repeat<T>(&self, mut operation: impl FnMut() -> Result<T, ObjectsError>) -> Result<T, ObjectsError> {
        let begun = Instant::now();
        let mut pause = self.policy.first;
        loop {
            let error = match operation() {
                Ok(done) => {
                    *self.outage.lock() = None;
                    return Ok(done);
                }
                Err(error) => error,
            };
            self.note(&error);
            let left = self.policy.deadline.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
            let Some(left) = left.filter(|_| error.fault == Fault::Transient) else { return Err(error) };
            let jitter = pause.mul_f64((random() % 1024) as f64 / 2048.0);
            if self.cancel.wait((pause - jitter).min(left)) {
                return Err(ObjectsError { fault: Fault::Cancelled, ..error });
            }
            pause = (2 * pause).min(self.policy.longest);
        }
    }

    fn note(&self, error: &ObjectsError) {
        let reason = node_core::sources::Sources(error).to_string();
        let mut outage = self.outage.lock();
        let since = outage.as_ref().map_or_else(Instant::now, |outage| outage.since);
        *outage = Some(Outage { since, reason });
    }
}

impl Objects for Retrying {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, ObjectsError> {
        self.repeat(|| self.objects.create(name, bytes))
    }

    fn upload(&self, name: &str, content: &dyn Object) -> Result<(), ObjectsError> {
        self.repeat(|| self.objects.upload(name, content))
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectsError> {
        self.repeat(|| self.objects.get(name))
    }

    fn get_many(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, ObjectsError> {
        // If one of many reads fails now and then, all of them at once hardly ever succeed.
        match self.objects.get_many(names) {
            Ok(found) => Ok(found),
            Err(error) => {
                self.note(&error);
                names.iter().map(|name| self.get(name)).collect()
            }
        }
    }

    fn read(&self, name: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<Vec<u8>>>, ObjectsError> {
        self.repeat(|| self.objects.read(name, ranges))
    }

    fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError> {
        self.repeat(|| self.objects.size(name))
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, ObjectsError> {
        self.repeat(|| self.objects.list(folder, after))
    }

    fn delete(&self, name: &str) -> Result<(), ObjectsError> {
        self.repeat(|| self.objects.delete(name))
    }
}
