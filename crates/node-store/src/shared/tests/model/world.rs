//! The schedule, the clock and the medium of a history.

use super::oracle::{Counts, Oracle};
use crate::files::Object;
use crate::shared::objects::{PAGE, parts};
use crate::shared::{Creation, Epoch, Fault, LogNumber, Objects, ObjectsError};
use crate::wal::Entry;
use node_core::clock::Clock;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// For how long replaced manifests and their objects are kept, in milliseconds.
pub(super) const KEEP: u64 = 5_000;

/// Number of operations after which nothing new is begun, and the number after which a history hangs.
const LENGTH: u64 = 1_500;
const LIMIT: u64 = 60_000;

/// A rule of the protocol that a history breaks, to show that this would be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sabotage {
    None,
    /// Fences are deleted with the rest of the log.
    DeletedFences,
    /// Deleted manifests seem to exist.
    NoWitness,
    /// Manifests are deleted long after the log that they need.
    LogBeforeManifests,
    /// Objects are not kept for readers.
    NoKeeping,
}

pub(super) struct World {
    state: Mutex<State>,
    /// One for each actor, notified when it is its turn.
    turns: Vec<Condvar>,
    pub(super) sabotage: Sabotage,
}

pub(super) struct State {
    random: u64,
    pub(super) clock: u64,
    steps: u64,
    turn: usize,
    /// For each actor, the step before which it does not continue; `None` after it has ended.
    actors: Vec<Option<u64>>,
    /// Number of actors that wait for their first turn.
    begun: usize,
    pub(super) objects: BTreeMap<String, Arc<[u8]>>,
    /// Names as they were a while ago.
    listed: Vec<String>,
    /// Creations that appeared to fail, and that the medium has not carried out yet.
    late: Vec<(String, Arc<[u8]>)>,
    /// Deleted objects, for sabotage.
    removed: BTreeMap<String, Arc<[u8]>>,
    pub(super) oracle: Oracle,
    failure: Option<String>,
}

impl State {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }

    fn is_ending(&self) -> bool {
        self.steps >= LENGTH || self.failure.is_some()
    }

    pub(super) fn fail(&mut self, failure: String) {
        self.failure.get_or_insert(failure);
    }

    /// Creates an object, unless it exists.
    fn create(&mut self, name: &str, bytes: Arc<[u8]>) -> Creation {
        if self.objects.contains_key(name) {
            return Creation::Exists;
        }
        self.objects.insert(name.to_owned(), Arc::clone(&bytes));
        if let Err(failure) = self.oracle.created(name, &bytes, self.clock, &self.objects) {
            self.fail(failure);
        }
        Creation::Created
    }

    /// Chooses who continues.
    fn choose(&mut self) {
        self.steps += 1;
        self.clock += 1 + self.below(20);
        let jumps = self.below(25) == 0;
        // No request takes effect after objects may have been deleted.
        if jumps || self.is_ending() || self.below(30) == 0 {
            for (name, bytes) in std::mem::take(&mut self.late) {
                self.create(&name, bytes);
            }
        }
        if jumps {
            self.clock += KEEP / 2 + self.below(KEEP);
        }
        if self.steps > LIMIT {
            self.fail("the history does not end".to_owned());
        }
        let current = self.turn;
        // The stall of one who is in the middle of an operation, while the others go on.
        if !self.is_ending() && self.below(40) == 0 {
            let length = 20 + self.below(400);
            let steps = self.steps;
            if let Some(until) = &mut self.actors[current] {
                *until = steps + length;
            }
        }
        let (steps, ending) = (self.steps, self.is_ending());
        let ready = |until: &Option<u64>| until.is_some_and(|until| ending || until <= steps);
        let mut able: Vec<_> = (0..self.actors.len()).filter(|actor| ready(&self.actors[*actor])).collect();
        if able.is_empty() {
            able = (0..self.actors.len()).filter(|actor| self.actors[*actor].is_some()).collect();
        }
        if !able.is_empty() {
            self.turn = able[self.below(able.len() as u64) as usize];
        }
    }
}

impl World {
    pub(super) fn new(seed: u64, actors: usize, sabotage: Sabotage) -> Self {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995;
        for _ in 0..4 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        }
        let state = State {
            random,
            clock: 1_000_000,
            steps: 0,
            turn: 0,
            actors: vec![Some(0); actors],
            begun: 0,
            objects: BTreeMap::new(),
            listed: Vec::new(),
            late: Vec::new(),
            removed: BTreeMap::new(),
            oracle: Oracle::default(),
            failure: None,
        };
        let turns = (0..actors).map(|_| Condvar::new()).collect();
        Self { state: Mutex::new(state), turns, sabotage }
    }

    pub(super) fn finish(&self) -> Result<Counts, String> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let found = state.oracle.finish(&state.objects);
        match state.failure.take() {
            Some(failure) => Err(failure),
            None => found,
        }
    }
}

/// The medium and the clock of an actor.
#[derive(Clone)]
pub(super) struct Medium {
    world: Arc<World>,
    pub(super) actor: usize,
}

impl std::fmt::Debug for Medium {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the medium of actor {}", self.actor)
    }
}

impl Medium {
    pub(super) fn new(world: Arc<World>, actor: usize) -> Self {
        Self { world, actor }
    }

    /// Waits for the first turn.
    pub(super) fn begin(&self) {
        let mut state = self.world.state.lock();
        state.begun += 1;
        if state.begun == self.world.turns.len() {
            self.world.turns[state.turn].notify_one();
        }
        while state.turn != self.actor || state.begun < self.world.turns.len() {
            self.world.turns[self.actor].wait(&mut state);
        }
    }

    /// Leaves the history.
    pub(super) fn end(&self, panicked: bool) {
        let mut state = self.world.state.lock();
        if panicked {
            state.fail(format!("actor {} panicked", self.actor));
        }
        state.actors[self.actor] = None;
        state.choose();
        self.world.turns[state.turn].notify_one();
    }

    /// Lets others continue, and waits for the next turn.
    fn pass(&self) -> MutexGuard<'_, State> {
        let mut state = self.world.state.lock();
        state.choose();
        if state.turn != self.actor {
            self.world.turns[state.turn].notify_one();
            while state.turn != self.actor {
                self.world.turns[self.actor].wait(&mut state);
            }
        }
        state
    }

    pub(super) fn below(&self, bound: u64) -> u64 {
        self.world.state.lock().below(bound)
    }

    /// Returns whether nothing new must be begun.
    pub(super) fn is_ending(&self) -> bool {
        self.world.state.lock().is_ending()
    }

    pub(super) fn keep(&self) -> u64 {
        if self.world.sabotage == Sabotage::NoKeeping { 0 } else { KEEP }
    }

    pub(super) fn check(&self, check: impl FnOnce(&mut Oracle, u64) -> Result<(), String>) {
        let mut state = self.world.state.lock();
        let state = &mut *state;
        if let Err(failure) = check(&mut state.oracle, state.clock) {
            state.fail(format!("actor {}: {failure}", self.actor));
        }
    }

    /// Checks that entries are in the log, before the fence of any later writer.
    pub(super) fn acknowledge(&self, epoch: Epoch, number: LogNumber, entries: &[Entry]) {
        self.check(|oracle, _| oracle.acknowledge(epoch, number, entries));
    }

    /// Deletes fences among the objects of a collection, which no rule allows.
    pub(super) fn delete_fences(&self, log: Range<LogNumber>) {
        if self.world.sabotage == Sabotage::DeletedFences {
            let mut state = self.world.state.lock();
            (log.start.0..log.end.0).for_each(|number| drop(state.objects.remove(&LogNumber(number).object())));
        }
    }

    fn operate<T>(
        &self,
        action: &'static str,
        name: &str,
        operation: impl FnOnce(&mut State) -> Result<T, ObjectsError>,
    ) -> Result<T, ObjectsError> {
        let mut state = self.pass();
        if state.failure.is_some() {
            return Err(ObjectsError::new(Fault::Cancelled, action, name, "the history has failed"));
        }
        let faults = !state.is_ending();
        let transient = |reason: &str| Err(ObjectsError::new(Fault::Transient, action, name, reason.to_owned()));
        if faults && state.below(30) == 0 {
            return transient("503 Slow Down");
        }
        let done = operation(&mut state);
        let lost = faults && state.below(25) == 0;
        drop(state);
        // Others may act before the answer arrives.
        drop(self.pass());
        if lost { transient("the connection was closed") } else { done }
    }
}

impl Clock for Medium {
    fn now_millis(&self) -> u64 {
        self.steady_millis()
    }

    fn steady_millis(&self) -> u64 {
        // The clocks of the machines differ.
        self.world.state.lock().clock + 10 * self.actor as u64
    }
}

impl Objects for Medium {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, ObjectsError> {
        self.operate("create", name, |state| {
            // Some services report a conflict of two simultaneous creations like this, although neither succeeds.
            if state.below(100) == 0 {
                return Ok(Creation::Exists);
            }
            if !state.is_ending() && state.below(40) == 0 {
                state.late.push((name.to_owned(), bytes.into()));
                return Err(ObjectsError::new(Fault::Transient, "create", name, "the request timed out"));
            }
            Ok(state.create(name, bytes.into()))
        })
    }

    fn upload(&self, name: &str, content: &dyn Object) -> Result<(), ObjectsError> {
        let mut bytes = vec![0; content.size().unwrap() as usize];
        content.read_at(0, &mut bytes).unwrap();
        self.operate("upload", name, |state| {
            state.objects.entry(name.to_owned()).or_insert_with(|| bytes.into());
            Ok(())
        })
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectsError> {
        let sabotage = self.world.sabotage;
        self.operate("read", name, |state| {
            let removed = || state.removed.get(name).filter(|_| sabotage == Sabotage::NoWitness);
            let mut bytes = state.objects.get(name).or_else(removed).map(|bytes| bytes.to_vec());
            if state.below(50) == 0
                && let Some(bytes) = &mut bytes
            {
                bytes.truncate(bytes.len() / 2);
            }
            Ok(bytes)
        })
    }

    fn read(&self, name: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<Vec<u8>>>, ObjectsError> {
        self.operate("read", name, |state| state.objects.get(name).map(|bytes| parts(name, bytes, ranges)).transpose())
    }

    fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError> {
        self.operate("read", name, |state| Ok(state.objects.get(name).map(|bytes| bytes.len() as u64)))
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, ObjectsError> {
        self.operate("list", folder, |state| {
            // A listing shows what existed at some time since the last listing.
            if state.is_ending() || state.below(3) > 0 {
                state.listed = state.objects.keys().cloned().collect();
            }
            let names = state.listed.iter().filter(|name| name.starts_with(&format!("{folder}/")));
            let names = names.filter(|name| after.is_none_or(|after| name.as_str() > after));
            Ok(names.take(PAGE).cloned().collect())
        })
    }

    fn delete(&self, name: &str) -> Result<(), ObjectsError> {
        let sabotage = self.world.sabotage;
        self.operate("delete", name, |state| {
            if sabotage == Sabotage::LogBeforeManifests && name.starts_with("manifests/") {
                return Ok(());
            }
            if let Some(bytes) = state.objects.remove(name) {
                state.removed.insert(name.to_owned(), bytes);
                if let Err(failure) = state.oracle.deleted(name, state.clock) {
                    state.fail(failure);
                }
            }
            Ok(())
        })
    }
}
