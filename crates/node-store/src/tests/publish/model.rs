//! Random histories of several folders of which one at a time publishes to a shared store that fails: crashes, takeovers
//! by restored folders and by folders that were the writer before, while the old writer is alive.

use super::{open, quick};
use crate::files::faults::FaultyDisk;
use crate::shared::faults::{FaultyObjects, Rates};
use crate::shared::{MemoryObjects, Objects, RetryPolicy, SharedError};
use crate::tests::cases;
use crate::tests::crashes::{self, Expected};
use crate::{PublishOptions, Store, StoreError};
use node_core::backend::suite::Random;
use node_core::backend::{BackendError, StateBackend};
use node_core::block::ExecutedBlock;
use node_core::context::Context;
use proptest::prelude::*;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often folders that were the writer before have become it again, or were refused because they had diverged.
static RETURNED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// A folder that publishes, or has published.
struct Folder {
    disk: FaultyDisk,
    medium: Arc<FaultyObjects>,
    /// The states that it may have on its own.
    own: Vec<Expected>,
    /// Whether another folder has acknowledged changes since this one was the writer.
    is_outdated: bool,
}

struct World {
    random: Random,
    genesis: ExecutedBlock,
    objects: Arc<dyn Objects>,
    sync: bool,
    /// What the store may have: with `sync`, everything acknowledged. Otherwise, what was acknowledged since a takeover,
    /// and each state before that.
    history: Vec<Expected>,
    others: Vec<Folder>,
}

impl World {
    fn medium(&mut self) -> Arc<FaultyObjects> {
        let rates = Rates { failed: 8, lost: 8, torn: 4, stale: 10 };
        Arc::new(FaultyObjects::new(Arc::clone(&self.objects), self.random.below(u64::MAX), rates))
    }

    /// Starts the server of a folder.
    fn start(&mut self, folder: &mut Folder) -> Result<Store, BackendError> {
        folder.medium = self.medium();
        let store = open(&folder.disk, &self.genesis);
        let keep_for = Duration::from_millis([300, 3_600_000][self.random.below(2) as usize]);
        let quick = quick(self.sync);
        // So that a thread which had to wait for a processor has more than one attempt.
        let retry = RetryPolicy { deadline: Duration::from_secs(20), ..quick.retry };
        let options = PublishOptions { keep_for, closing: Duration::ZERO, retry, ..quick };
        store.publish(Arc::clone(&folder.medium) as _, options)?;
        Ok(store)
    }

    /// Makes changes, all of which must succeed.
    fn work(&mut self, store: &Store, folder: &mut Folder) {
        for _ in 0..self.random.below(12) {
            let expected = self.history.last().unwrap().clone();
            let (next, done) = change(store, &mut self.random, expected);
            done.unwrap();
            if self.sync {
                self.history.clear();
                self.others.iter_mut().for_each(|other| other.is_outdated = true);
            }
            self.history.push(next);
        }
        folder.own = vec![self.history.last().unwrap().clone()];
    }

    /// Checks that an old writer acknowledges nothing.
    fn refuse(&mut self, old: &Store, folder: &mut Folder) {
        let begun = Instant::now();
        loop {
            let before = folder.own.last().unwrap().clone();
            let (next, done) = change(old, &mut self.random, before.clone());
            match done {
                Err(BackendError::NotWriter(error)) => {
                    let error: &StoreError = error.downcast_ref().unwrap();
                    assert!(matches!(error, StoreError::Fenced { .. }), "{error:?}");
                    // It may be in the log.
                    folder.own.push(next);
                    return;
                }
                Err(error) => panic!("{error:?}"),
                // Without a change, or before it is noticed.
                Ok(()) if self.sync => assert_eq!((next.head(), next.record), (before.head(), before.record)),
                Ok(()) => assert!(begun.elapsed() < Duration::from_secs(20)),
            }
            folder.own.push(next);
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends the server of a folder at once.
    fn kill(&mut self, store: Store, folder: &Folder) {
        folder.medium.set_rates(Rates { failed: 100, ..Rates::default() });
        folder.disk.kill();
        drop(store);
        if self.random.once_in(2) {
            folder.disk.crash(self.random.below(u64::MAX));
        }
    }

    /// Replaces the writer by a restored folder.
    fn replace(&mut self) -> (Store, Folder) {
        for _ in 0..20 {
            let medium = self.medium();
            let mut folder = Folder { disk: FaultyDisk::new(), medium, own: Vec::new(), is_outdated: false };
            let medium = Arc::clone(&folder.medium) as _;
            let restored = Store::restore_in(&folder.disk.folder(), medium, &Context::unbounded(), drop);
            match restored.and_then(|_| self.start(&mut folder)) {
                Ok(store) => {
                    self.check(&store, &[]);
                    // It came from the store.
                    self.history = self.history.pop().into_iter().collect();
                    return (store, folder);
                }
                Err(BackendError::Storage(error)) if was_too_late(&*error) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        panic!("what was restored is always outdated");
    }

    /// Checks that a folder which is the writer again has what the store must have, or one of the states in `own`. That
    /// may not be in the store yet.
    fn check(&mut self, store: &Store, own: &[Expected]) {
        let candidates: Vec<_> = self.history.iter().rev().chain(own).collect();
        let found = crashes::check(store, &candidates);
        self.history.push(found);
    }
}

/// Returns whether the store has deleted what was being restored, which it keeps for a very short time.
fn was_too_late(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    let collected = |error: &SharedError| matches!(error, SharedError::Collected(_) | SharedError::Restless { .. });
    match error.downcast_ref() {
        Some(StoreError::Outdated) => true,
        Some(StoreError::Shared(error)) => collected(error),
        _ => false,
    }
}

/// Makes a random change. Returns the state after it.
fn change(store: &Store, random: &mut Random, mut next: Expected) -> (Expected, Result<(), BackendError>) {
    let head = next.head().number;
    let done = match random.below(10) {
        0 | 1 => store.write_records(&next.note(random)),
        2 => {
            let ancestor = head - random.below(head.min(20) + 1);
            next.chain = next.chain.up_to(ancestor);
            let count = random.below(6);
            random.extend(&mut next.chain, count);
            let writes = next.note(random);
            store.switch_recording(ancestor, next.chain.above(ancestor), &writes).map(drop)
        }
        3 => store.flush(),
        _ => {
            random.extend(&mut next.chain, 1);
            let writes = next.note(random);
            store.append_recording(next.chain.head().clone(), &writes)
        }
    };
    (next, done)
}

fn play(seed: u64, sync: bool) {
    let mut random = Random(seed);
    let expected = Expected { chain: random.chain(0), record: None, earliest: 0 };
    let genesis = expected.chain.head().clone();
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut world = World { random, genesis, objects, sync, history: vec![expected], others: Vec::new() };
    let mut folder = Folder { disk: FaultyDisk::new(), medium: world.medium(), own: Vec::new(), is_outdated: false };
    let mut store = world.start(&mut folder).unwrap();
    // Until then, there is nothing to take over.
    store.wait_until_published(&Context::unbounded(), drop).unwrap();
    for _ in 0..8 {
        world.work(&store, &mut folder);
        match world.random.below(4) {
            // It starts again.
            0 => {
                world.kill(store, &folder);
                store = world.start(&mut folder).unwrap();
                // Everything acknowledged is in the folder.
                let found = crashes::check(&store, &[folder.own.last().unwrap()]);
                world.history.push(found);
            }
            action => {
                // Half of the time, the old writer is alive.
                let mut old = Some(store);
                if world.random.once_in(2) {
                    old.take().into_iter().for_each(|store| world.kill(store, &folder));
                }
                let returning = (action == 1 && !world.others.is_empty()).then(|| world.others.swap_remove(0));
                let returned = returning.and_then(|mut folder| match world.start(&mut folder) {
                    Ok(store) => Some((store, folder)),
                    Err(BackendError::Storage(error)) => {
                        let is_diverged = matches!(error.downcast_ref(), Some(StoreError::Diverged));
                        assert!(is_diverged || was_too_late(&*error), "{error:?}");
                        REFUSED.fetch_add(1, Ordering::Relaxed);
                        None
                    }
                    Err(error) => panic!("{error:?}"),
                });
                let (successor, mut new) = match returned {
                    Some((successor, new)) => {
                        RETURNED.fetch_add(1, Ordering::Relaxed);
                        world.check(&successor, if new.is_outdated { &[] } else { &new.own });
                        (successor, new)
                    }
                    None => world.replace(),
                };
                new.is_outdated = false;
                if let Some(old) = old {
                    world.refuse(&old, &mut folder);
                    world.kill(old, &folder);
                }
                store = successor;
                world.others.push(std::mem::replace(&mut folder, new));
            }
        }
    }
    store.wait_until_published(&Context::unbounded(), drop).unwrap();
    drop(world.replace());
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn nothing_acknowledged_is_lost_if_the_store_is_waited_for(seed: u64) {
        play(seed, true);
    }

    #[test]
    fn a_new_writer_has_a_state_that_the_old_one_has_acknowledged(seed: u64) {
        play(seed, false);
    }
}

#[test]
fn folders_return_and_are_refused() {
    for seed in 0..12 {
        play(seed, seed % 2 == 0);
    }
    let counts = [&RETURNED, &REFUSED].map(|count| count.load(Ordering::Relaxed));
    assert!(counts.iter().all(|count| *count > 3), "{counts:?}");
}
