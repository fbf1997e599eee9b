//! Runs on another machine: reads wait for few steps.

use super::small;
use crate::caches::Caches;
use crate::chain::ChainVersion;
use crate::files::Folder;
use crate::files::faults::FaultyDisk;
use crate::rows::{Part, Tables};
use crate::runs::{Run, RunsShared};
use crate::shared::{Epoch, MemoryObjects, Objects, RunName, RunObject, SharedRun, ending};
use crate::side_blocks::SideBlocks;
use crate::store::Manifest;
use crate::{Store, SyncPolicy};
use node_core::backend::suite::{Random, TestChain, check_view};
use node_core::backend::{StateBackend, View};
use node_core::remote::{RemoteReads, reads_of};
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_core::waiting::without_waiting;
use node_types::{Address, H256, keccak256};
use std::sync::Arc;

const BLOCKS: u64 = 60;

/// Caches that hold everything, but nothing of another snapshot.
const CACHE: u64 = 64 << 20;

fn address(number: u64) -> Address {
    Address::from_slice(&keccak256(number.to_be_bytes()).0[12..])
}

/// Returns a chain with 4,000 accounts, of which number 0 has 2,000 slots. Some of them change in each block.
fn chain() -> TestChain {
    let random = &mut Random(1);
    let mut accounts = StateChanges::default();
    for number in 0..4_000 {
        let account = AccountState { balance: (number + 1).into(), ..AccountState::default() };
        let slots =
            (1..=if number == 0 { 2_000 } else { 0 }).map(|slot: u64| (H256::from_low_u64_be(slot), slot.into()));
        let change = AccountChange { account: Some(account), storage_cleared: false, storage: slots.collect() };
        accounts.accounts.insert(address(number), change);
    }
    let mut first = random.content(&Default::default());
    first.changes.accounts.extend(accounts.accounts);
    let mut chain = TestChain::new(first);
    for number in 1..=BLOCKS {
        let mut content = random.content(chain.state(number - 1));
        for changed in 0..20 {
            let account = AccountState { balance: (number * 1_000 + changed).into(), ..AccountState::default() };
            let slot = H256::from_low_u64_be(1 + random.below(2_000));
            let of = if changed == 0 { 0 } else { random.below(4_000) };
            let storage = (of == 0).then(|| (slot, number.into())).into_iter().collect();
            let change = AccountChange { account: Some(account), storage_cleared: false, storage };
            content.changes.accounts.insert(address(of), change);
        }
        chain.push(content);
    }
    chain
}

/// Returns the chain in the runs of a folder, as copied to another machine, without anything in caches.
fn remote(folder: &dyn Folder, objects: &Arc<dyn Objects>) -> ChainVersion {
    let manifest = Manifest::read(folder).unwrap().unwrap();
    let shared = RunsShared::new(CACHE);
    let parts = |family: &[crate::store::Listed]| -> Vec<Part> {
        let part = |listed: &crate::store::Listed| {
            let file = folder.open(&listed.id.file_name()).unwrap();
            let name = RunName { epoch: Epoch(1), id: listed.id.0 };
            objects.upload(&name.object(), &*file).unwrap();
            let ending = ending(&*file, listed.id.0).unwrap();
            let run = SharedRun { name, size: listed.size, limit: listed.limit, ending };
            let object = Arc::new(RunObject::new(Arc::clone(objects), &run));
            let run = Run::read(object, listed.id, Arc::clone(&shared)).unwrap();
            Part { run: Arc::new(run), limit: listed.limit }
        };
        family.iter().map(part).collect()
    };
    let tables = Arc::new(Tables::new(parts(&manifest.numbered), parts(&manifest.keyed)));
    let side_blocks = SideBlocks::read(&tables).unwrap();
    let meta = manifest.meta;
    ChainVersion::in_runs(meta.head, meta.earliest, tables, side_blocks, Arc::new(Caches::new(CACHE)))
}

#[test]
fn what_is_read_together_takes_few_steps() {
    let chain = chain();
    let folder: Arc<dyn Folder> = FaultyDisk::new().folder();
    let options = small(4, SyncPolicy::Always);
    let store = Store::open_in(folder.clone(), chain.blocks()[0].clone(), options).unwrap();
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    store.flush().unwrap();
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    check_view(&remote(&*folder, &objects), &chain);

    let expected = store.view().unwrap();
    let (at, slot) = (BLOCKS / 2, H256::from_low_u64_be(77));
    // Reads the same from both chains. Nothing is cached at first; then the indexes and filters are.
    let steps = |read: &dyn Fn(&dyn View, bool)| {
        let cold = remote(&*folder, &objects);
        let (_, first) = reads_of(|| read(&cold, true));
        // Other rows of the same tables.
        let warm = remote(&*folder, &objects);
        read(&warm, false);
        let (_, second) = reads_of(|| read(&warm, true));
        assert!(without_waiting(|| read(&warm, true)).is_some(), "all is cached");
        [first, second].map(|RemoteReads { steps, .. }| steps)
    };
    let proof = |view: &dyn View, it: bool| {
        let (address, slot) = if it { (address(0), slot) } else { (address(9), H256::zero()) };
        let proof = |view: &dyn View| view.state(at).unwrap().proof(address, &[slot]).unwrap();
        assert_eq!(proof(view), proof(&*expected));
    };
    let storage = |view: &dyn View, it: bool| {
        let slot = if it { slot } else { H256::from_low_u64_be(5) };
        let storage = |view: &dyn View| view.state(at).unwrap().storage(address(0), slot).unwrap();
        assert_eq!(storage(view), storage(&*expected));
    };
    let logs = |view: &dyn View, _: bool| {
        let numbers: Vec<u64> = (1..BLOCKS).step_by(7).collect();
        assert_eq!(view.logs(&numbers).unwrap().len(), expected.logs(&numbers).unwrap().len());
    };
    let fees = |view: &dyn View, _: bool| {
        assert_eq!(view.fee_rows(3..=BLOCKS).unwrap().len(), expected.fee_rows(3..=BLOCKS).unwrap().len());
    };
    let [proof, storage, logs, fees] = [steps(&proof), steps(&storage), steps(&logs), steps(&fees)];
    // An index has one level here, of which the manifest has the upper part: filters and indexes, rows, and older rows.
    assert!(proof[0] <= 5 && proof[1] <= 4, "{proof:?}");
    assert!(storage[0] <= 4 && storage[1] <= 2, "{storage:?}");
    assert!(logs[0] <= 2 && fees[0] <= 4, "{logs:?}, {fees:?}");
}
