//! A medium that fails, loses answers, tears reads and lists old names. The same seed yields the same faults.

use super::objects::{Creation, Fault, Objects, ObjectsError};
use crate::files::Object;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How often faults happen, in percent of the operations that they can affect.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// The operation fails without an effect, as if the medium refused it because of too many requests.
    pub failed: u64,
    /// The operation takes effect, but fails.
    pub lost: u64,
    /// A read of a whole object returns only its beginning.
    pub torn: u64,
    /// A listing is the one that was returned the last time.
    pub stale: u64,
}

/// Objects with faults.
#[derive(Debug)]
pub struct FaultyObjects {
    objects: Arc<dyn Objects>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    random: u64,
    rates: Rates,
    /// How long each operation takes.
    delay: Duration,
    listings: BTreeMap<(String, Option<String>), Vec<String>>,
}

impl State {
    fn happens(&mut self, percent: u64) -> bool {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % 100 < percent
    }
}

impl FaultyObjects {
    /// Returns `objects` with faults.
    pub fn new(objects: Arc<dyn Objects>, seed: u64, rates: Rates) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { objects, state: Mutex::new(State { random, rates, delay: Duration::ZERO, listings: BTreeMap::new() }) }
    }

    /// Changes how often faults happen.
    pub fn set_rates(&self, rates: Rates) {
        self.state.lock().rates = rates;
    }

    /// Makes each operation take this long.
    pub fn set_delay(&self, delay: Duration) {
        self.state.lock().delay = delay;
    }

    fn operate<T>(
        &self,
        action: &'static str,
        name: &str,
        operation: impl FnOnce() -> Result<T, ObjectsError>,
    ) -> Result<T, ObjectsError> {
        let (failed, lost, delay) = {
            let mut state = self.state.lock();
            let Rates { failed, lost, .. } = state.rates;
            (state.happens(failed), state.happens(lost), state.delay)
        };
        thread::sleep(delay);
        if failed {
            return Err(ObjectsError::new(Fault::Transient, action, name, "503 Slow Down"));
        }
        let done = operation()?;
        if lost {
            return Err(ObjectsError::new(Fault::Transient, action, name, "the connection was closed"));
        }
        Ok(done)
    }
}

impl Objects for FaultyObjects {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, ObjectsError> {
        self.operate("create", name, || self.objects.create(name, bytes))
    }

    fn upload(&self, name: &str, content: &dyn Object) -> Result<(), ObjectsError> {
        self.operate("upload", name, || self.objects.upload(name, content))
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectsError> {
        let mut content = self.operate("read", name, || self.objects.get(name))?;
        let mut state = self.state.lock();
        let torn = state.rates.torn;
        if state.happens(torn)
            && let Some(bytes) = &mut content
        {
            bytes.truncate(bytes.len() / 2);
        }
        Ok(content)
    }

    fn get_many(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, ObjectsError> {
        thread::scope(|scope| {
            let gets: Vec<_> = names.iter().map(|name| scope.spawn(|| self.get(name))).collect();
            gets.into_iter().map(|get| get.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        })
    }

    fn read(&self, name: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<Vec<u8>>>, ObjectsError> {
        self.operate("read", name, || self.objects.read(name, ranges))
    }

    fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError> {
        self.operate("read", name, || self.objects.size(name))
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, ObjectsError> {
        let names = self.operate("list", folder, || self.objects.list(folder, after))?;
        let mut state = self.state.lock();
        let key = (folder.to_owned(), after.map(str::to_owned));
        let stale = state.rates.stale;
        if state.happens(stale)
            && let Some(earlier) = state.listings.get(&key)
        {
            return Ok(earlier.clone());
        }
        state.listings.insert(key, names.clone());
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<(), ObjectsError> {
        self.operate("delete", name, || self.objects.delete(name))
    }
}
