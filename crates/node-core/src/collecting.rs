//! Collecting what a piece of work lacks, instead of fetching one thing after the other.
//!
//! Code that is executed on a [`BaseState`] finds out only step by step what it reads. [`gather`] executes it first on
//! what is known: an account that is not known does not exist then, and a slot has the value zero. The result of that
//! execution is discarded, and everything that it lacked is fetched together. This is repeated until nothing is lacking. If
//! something [cannot be had](BackendError::Unobtainable), the code is executed for the last time, and its reads fail.

use crate::backend::{BackendError, BaseRead, BaseState};
use crate::executor::Call;
use crate::waiting;
use node_types::{Address, H256};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::LocalKey;

/// Maximum number of executions whose results are discarded. Afterwards, whatever is lacking is fetched when it is read.
const MAX_ROUNDS: usize = 32;

/// Number of executions that lack something before the state is asked what a call reads. Simple calls lack something twice:
/// accounts, and then slots.
const PATIENCE: usize = 2;

/// What one piece of work lacks in one state.
struct Lacking {
    root: H256,
    state: Arc<dyn BaseState>,
    reads: BTreeMap<Address, BTreeSet<H256>>,
}

thread_local! {
    /// `None` unless the work on this thread collects.
    static LACKING: RefCell<Option<Vec<Lacking>>> = const { RefCell::new(None) };
}

thread_local! {
    /// What work on this thread lacked that must not fetch it now. `None` if it may.
    static POSTPONED: RefCell<Option<Vec<Lacking>>> = const { RefCell::new(None) };
}

type Record = LocalKey<RefCell<Option<Vec<Lacking>>>>;

/// Restores the record of the thread, even if the work panics.
struct Restore(&'static Record, Option<Vec<Lacking>>);

impl Drop for Restore {
    fn drop(&mut self) {
        self.0.set(self.1.take());
    }
}

/// Runs `work`, and returns what it has added to a record of the thread, which is empty at first.
fn recording<T>(record: &'static Record, work: impl FnOnce() -> T) -> (T, Vec<Lacking>) {
    let _restore = Restore(record, record.replace(Some(Vec::new())));
    let result = work();
    (result, record.take().unwrap_or_default())
}

/// What work lacked that must not wait for it, for instance because it holds a lock.
pub struct Postponed(Vec<Lacking>);

/// Runs `work`, in which [`gather`] fails instead of fetching.
///
/// # Errors
/// What `work` lacked, if that was anything.
pub fn postponing<T>(work: impl FnOnce() -> T) -> Result<T, Postponed> {
    let (result, lacking) = recording(&POSTPONED, work);
    if lacking.is_empty() { Ok(result) } else { Err(Postponed(lacking)) }
}

impl Postponed {
    /// Fetches what was lacking.
    ///
    /// # Errors
    /// Those of [`BaseState::fetch`].
    pub fn fetch(self) -> Result<(), BackendError> {
        self.0.into_iter().try_for_each(Lacking::fetch)
    }
}

impl Lacking {
    fn fetch(self) -> Result<(), BackendError> {
        let read = |(address, slots): (_, BTreeSet<_>)| BaseRead { address, slots: slots.into_iter().collect() };
        self.state.fetch(&self.reads.into_iter().map(read).collect::<Vec<_>>())
    }
}

/// Runs `work` until it lacks nothing, and returns its last result. All other results are discarded, so `work` must
/// have no effects that a repetition does not undo.
///
/// # Errors
/// Those of the last run, and failures to fetch what a run lacked.
pub fn gather<T, E: From<BackendError>>(work: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    gather_for(None, work)
}

/// Like [`gather`], for work that executes `call`. If that lacks something again and again, because what it reads depends on
/// what it has read, the state is [asked](BaseState::reads_of) what the call reads.
///
/// # Errors
/// Those of [`gather`].
pub fn gather_call<T, E: From<BackendError>>(call: &Call, work: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    gather_for(Some(call), work)
}

fn gather_for<T, E: From<BackendError>>(call: Option<&Call>, mut work: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    if is_collecting() {
        return work();
    }
    for round in 0..MAX_ROUNDS {
        let (result, lacking) = recording(&LACKING, &mut work);
        if lacking.is_empty() {
            return result;
        }
        if POSTPONED.with_borrow(Option::is_some) {
            POSTPONED.set(Some(lacking));
            return Err(BackendError::Storage(waiting::refuse().into()).into());
        }
        for mut lacking in lacking {
            if let Some(call) = call.filter(|_| round == PATIENCE) {
                for BaseRead { address, slots } in lacking.state.reads_of(call) {
                    lacking.reads.entry(address).or_default().extend(slots);
                }
            }
            match lacking.fetch() {
                // Each read that needs it fails for itself, and the work may go on without it.
                Err(BackendError::Unobtainable(_)) => return work(),
                fetched => fetched?,
            }
        }
    }
    work()
}

fn is_collecting() -> bool {
    LACKING.with_borrow(Option::is_some)
}

/// Returns whether the work on this thread has gone on without something, so that its result will be discarded. What it
/// reads must then not be kept in a cache.
pub fn lacks_something() -> bool {
    LACKING.with_borrow(|lacking| lacking.as_ref().is_some_and(|lacking| !lacking.is_empty()))
}

/// Records that an account of a state with this root, or a slot of it, is read but not known. `state` returns that
/// state. Returns whether the work goes on without it; otherwise it must be fetched now.
pub fn record(root: H256, state: impl FnOnce() -> Arc<dyn BaseState>, address: Address, slot: Option<H256>) -> bool {
    // A thread that may not wait cannot fetch it later either.
    if !waiting::is_allowed() {
        return false;
    }
    LACKING.with_borrow_mut(|lacking| {
        let Some(lacking) = lacking else { return false };
        let index = lacking.iter().position(|lacking| lacking.root == root).unwrap_or_else(|| {
            lacking.push(Lacking { root, state: state(), reads: BTreeMap::new() });
            lacking.len() - 1
        });
        lacking[index].reads.entry(address).or_default().extend(slot);
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::consensus::Account;
    use node_types::trie::NibblePath;
    use node_types::{Bytes, U256};
    use parking_lot::Mutex;

    /// A state in which the nonce of each account is the last byte of its address, and each slot has its name as value.
    #[derive(Clone, Debug, Default)]
    struct Distant(Arc<Mutex<Steps>>);

    #[derive(Debug, Default)]
    struct Steps {
        known: BTreeSet<(Address, Option<H256>)>,
        fetched: Vec<Vec<BaseRead>>,
    }

    impl Distant {
        fn lacks(&self, address: Address, slot: Option<H256>) -> Result<bool, BackendError> {
            if self.0.lock().known.contains(&(address, slot)) {
                return Ok(false);
            }
            if record(self.root(), || Arc::new(self.clone()), address, slot) {
                return Ok(true);
            }
            self.fetch(&[BaseRead { address, slots: slot.into_iter().collect() }])?;
            Ok(false)
        }
    }

    impl BaseState for Distant {
        fn root(&self) -> H256 {
            H256::repeat_byte(7)
        }

        fn account(&self, address: Address) -> Result<Option<Account>, BackendError> {
            let account = Account { nonce: address.0[19].into(), ..Account::default() };
            Ok((!self.lacks(address, None)?).then_some(account))
        }

        fn storage(&self, address: Address, slot: H256) -> Result<U256, BackendError> {
            let lacks = self.lacks(address, Some(slot))?;
            Ok(if lacks { U256::zero() } else { U256::from_big_endian(slot.as_bytes()) })
        }

        fn code(&self, _hash: H256) -> Result<Option<Bytes>, BackendError> {
            Ok(None)
        }

        fn note_read(&self, _: Address, _: Option<H256>) -> Result<(), BackendError> {
            Ok(())
        }

        fn fetch(&self, reads: &[BaseRead]) -> Result<(), BackendError> {
            let Steps { known, fetched } = &mut *self.0.lock();
            for BaseRead { address, slots } in reads {
                known.insert((*address, None));
                known.extend(slots.iter().map(|slot| (*address, Some(*slot))));
            }
            fetched.push(reads.to_vec());
            Ok(())
        }

        fn node(&self, _hash: H256) -> Result<Option<Bytes>, BackendError> {
            Ok(None)
        }

        fn reads_of(&self, call: &Call) -> Vec<BaseRead> {
            assert_eq!(call.from, address(7));
            vec![BaseRead { address: address(1), slots: (0..30).map(slot).collect() }]
        }

        fn resolve(&self, _: Option<Address>, _: &NibblePath, _: H256) -> Result<Bytes, BackendError> {
            Ok(Bytes::new())
        }
    }

    fn address(n: u8) -> Address {
        Address::from_low_u64_be(n.into())
    }

    fn slot(n: u64) -> H256 {
        H256::from_low_u64_be(n)
    }

    #[test]
    fn what_does_not_depend_on_other_reads_is_fetched_together() {
        let state = Distant::default();
        let work = || -> Result<u64, BackendError> {
            let nonces: u64 = (1..4)
                .map(|n| Ok(state.account(address(n))?.map_or(0, |account| account.nonce)))
                .sum::<Result<_, BackendError>>()?;
            // Depends on the accounts, and the next on these slots.
            let slots: u64 = (0..nonces)
                .map(|n| Ok(state.storage(address(1), slot(n))?.low_u64()))
                .sum::<Result<_, BackendError>>()?;
            Ok(if slots > 0 { state.storage(address(9), slot(slots))?.low_u64() } else { 0 })
        };
        assert_eq!(gather(work).unwrap(), 15);
        let reads =
            |n, slots: &[u64]| BaseRead { address: address(n), slots: slots.iter().map(|n| slot(*n)).collect() };
        let expected = [
            vec![reads(1, &[]), reads(2, &[]), reads(3, &[])],
            vec![reads(1, &[0, 1, 2, 3, 4, 5])],
            vec![reads(9, &[15])],
        ];
        assert_eq!(state.0.lock().fetched, expected);
        // Nothing is lacking any longer.
        assert_eq!(gather(work).unwrap(), 15);
        assert_eq!(state.0.lock().fetched.len(), 3);
        assert!(!is_collecting() && !lacks_something());
    }

    #[test]
    fn a_call_whose_reads_depend_on_each_other_asks_what_it_reads() {
        let state = Distant::default();
        let call = Call { from: address(7), ..Call::default() };
        let read = gather_call(&call, || {
            (0..20).try_fold(U256::one(), |slot, _| {
                state.storage(address(1), H256(slot.to_big_endian())).map(|value| value + 1)
            })
        });
        assert_eq!(read.unwrap(), U256::from(21));
        // The third time, it asks for all of them.
        assert_eq!(state.0.lock().fetched.len(), 3);
    }

    #[test]
    fn work_that_must_not_wait_says_what_it_lacks() {
        let state = Distant::default();
        let read = || postponing(|| gather(|| state.storage(address(1), slot(5))));
        let Err(lacking) = read() else { panic!("nothing is known") };
        assert!(state.0.lock().fetched.is_empty());
        lacking.fetch().unwrap();
        assert_eq!(read().ok().and_then(Result::ok), Some(U256::from(5)));
        assert_eq!(state.0.lock().fetched.len(), 1);
        assert_eq!(gather(|| state.storage(address(1), slot(6))).unwrap(), U256::from(6));
    }

    #[test]
    fn work_that_always_reads_something_new_ends() {
        let state = Distant::default();
        let mut n = 0;
        let read = gather(|| {
            n += 1;
            state.storage(address(1), slot(n))
        });
        assert_eq!(read.unwrap(), U256::from(MAX_ROUNDS + 1));
    }

    #[test]
    fn threads_that_must_not_wait_do_not_collect() {
        let state = Distant::default();
        let read = waiting::without_waiting(|| gather(|| state.account(address(1))).unwrap());
        assert_eq!(read.flatten().map(|account| account.nonce), Some(1));
    }
}
