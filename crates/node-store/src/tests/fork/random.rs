//! Random chains on a store with all of their states, and from some block on, on one that continues that state.

use super::{TestBase, fork_at};
use crate::files::faults::FaultyDisk;
use crate::tests::{OneSender, small};
use crate::{Store, SyncPolicy, Table, VerifyOptions};
use node_core::backend::suite::{Content, ModelState, Random, TestChain};
use node_core::backend::{BackendError, LogFilter, LogSearch, StateBackend, View};
use node_core::block::{ExecutedBlock, LogPosition};
use node_core::context::Context;
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_types::{Address, BlockNumber, Bytes, H256, U256, keccak256};
use proptest::prelude::*;
use std::sync::Arc;

/// The addresses and slots of a chain: few, whose hashes have common prefixes.
struct Keys {
    addresses: Vec<Address>,
    slots: Vec<H256>,
}

/// Returns `count` of the first 2,000 numbers in groups that are close by their hashes.
fn close(random: &mut Random, count: usize, hash: impl Fn(u64) -> H256) -> Vec<u64> {
    let mut numbers: Vec<_> = (0..2_000).map(|number| (hash(number), number)).collect();
    numbers.sort();
    let mut chosen = Vec::new();
    while chosen.len() < count {
        let first = random.below(1_990) as usize;
        let group = 1 + random.below(4) as usize;
        chosen.extend(numbers[first..first + group].iter().map(|(_, number)| *number));
    }
    chosen.truncate(count);
    chosen
}

impl Keys {
    fn new(random: &mut Random) -> Self {
        let (accounts, slots) = (1 + random.below(8) as usize, 1 + random.below(8) as usize);
        let addresses = close(random, accounts, |number| keccak256(Address::from_low_u64_be(number)));
        let slots = close(random, slots, |number| keccak256(H256::from_low_u64_be(number)));
        Self {
            addresses: addresses.into_iter().map(Address::from_low_u64_be).collect(),
            slots: slots.into_iter().map(H256::from_low_u64_be).collect(),
        }
    }

    fn changes(&self, random: &mut Random, state: &ModelState) -> StateChanges {
        let mut changes = StateChanges::default();
        for _ in 0..random.below(4) {
            let address = self.addresses[random.below(self.addresses.len() as u64) as usize];
            changes.accounts.insert(address, self.change(random, state, address));
        }
        for account in changes.accounts.values_mut().filter_map(|change| change.account.as_mut()) {
            if random.once_in(4) {
                let code = Bytes::from(vec![random.below(4) as u8; 3]);
                account.code_hash = keccak256(&code);
                changes.code.insert(account.code_hash, code);
            }
        }
        changes
    }

    fn change(&self, random: &mut Random, state: &ModelState, address: Address) -> AccountChange {
        if random.once_in(4) {
            return AccountChange { account: None, storage_cleared: random.once_in(2), ..AccountChange::default() };
        }
        let old = state.get(&address).map(|model| model.account).unwrap_or_default();
        // Sometimes only the storage changes.
        let more = random.below(2);
        let account = AccountState { nonce: old.nonce + more, balance: old.balance + more, ..old };
        let slot = |random: &mut Random| self.slots[random.below(self.slots.len() as u64) as usize];
        let storage = (0..random.below(5)).map(|_| (slot(random), word(random))).collect();
        AccountChange { account: Some(account), storage_cleared: random.once_in(8), storage }
    }

    fn extend(&self, random: &mut Random, chain: &mut TestChain, count: u64) {
        for _ in 0..count {
            let state = chain.state(chain.head().header.header.number).clone();
            let changes = self.changes(random, &state);
            chain.push(Content { changes, ..random.content(&state) });
        }
    }
}

fn word(random: &mut Random) -> U256 {
    match random.below(4) {
        0 | 1 => U256::zero(),
        2 => (1 + random.below(3)).into(),
        _ => U256::MAX - random.below(3),
    }
}

/// A chain, a store with all of it, and one with the blocks from `first` on.
struct Play {
    random: Random,
    keys: Keys,
    chain: TestChain,
    full: Store,
    fork: Option<Store>,
    disk: FaultyDisk,
    base: TestBase,
    first: ExecutedBlock,
    blocks_in_memory: u64,
}

impl Play {
    fn new(seed: u64, blocks_in_memory: u64) -> Self {
        let mut random = Random(seed);
        let keys = Keys::new(&mut random);
        let changes = keys.changes(&mut random, &ModelState::new());
        let mut chain = TestChain::new(Content { changes, ..Content::default() });
        let length = random.below(12);
        keys.extend(&mut random, &mut chain, length);
        let full = Store::in_memory(chain.blocks()[0].clone(), small(5, SyncPolicy::OnDemand)).unwrap();
        chain.above(0).into_iter().for_each(|block| full.append(block).unwrap());
        let (base, first) = fork_at(&chain, length);
        let mut play =
            Self { random, keys, chain, full, fork: None, disk: FaultyDisk::new(), base, first, blocks_in_memory };
        play.open();
        play
    }

    fn open(&mut self) {
        // Whatever is still lacking can be fetched when the log is applied again.
        self.base.known().fails = None;
        let options = small(self.blocks_in_memory, SyncPolicy::Always);
        let base = Arc::new(self.base.clone());
        self.fork = Some(Store::open_fork_in(self.disk.folder(), self.first.clone(), base, options).unwrap());
    }

    fn fork(&self) -> &Store {
        self.fork.as_ref().unwrap()
    }

    /// Repeats a change until nothing fails.
    fn repeat<T>(&self, change: impl Fn(&Store) -> Result<T, BackendError>) -> T {
        let before = self.fork().view().unwrap().head();
        loop {
            match change(self.fork()) {
                Ok(done) => return done,
                Err(BackendError::Upstream(_)) => assert_eq!(self.fork().view().unwrap().head(), before),
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    fn step(&mut self) {
        let fails = self.random.once_in(2).then(|| (2, Random(self.random.below(u64::MAX))));
        self.base.known().fails = fails;
        let (head, floor) = (self.head(), self.fork().view().unwrap().earliest_state());
        match self.random.below(12) {
            0..=5 => {
                let count = 1 + self.random.below(4);
                self.keys.extend(&mut self.random, &mut self.chain, count);
                for block in self.chain.above(head) {
                    if self.random.once_in(2) {
                        let root = self
                            .repeat(|fork| fork.view()?.state(fork.view()?.head().number)?.root_after(&block.changes));
                        assert_eq!(root, block.header.header.state_root);
                    }
                    self.repeat(|fork| fork.append(block.clone()));
                    self.full.append(block).unwrap();
                }
            }
            6 | 7 => {
                let ancestor = floor + self.random.below(head - floor + 1);
                let mut branch = self.chain.up_to(ancestor);
                let count = self.random.below(6);
                self.keys.extend(&mut self.random, &mut branch, count);
                let expected = self.full.switch(ancestor, branch.above(ancestor)).unwrap();
                assert_eq!(self.repeat(|fork| fork.switch(ancestor, branch.above(ancestor))), expected);
                self.chain = branch;
            }
            8 => {
                let mut side = self.chain.up_to(floor + self.random.below(head - floor + 1));
                self.keys.extend(&mut self.random, &mut side, 1);
                self.repeat(|fork| fork.keep_side_block(side.head().clone()));
                self.full.keep_side_block(side.head().clone()).unwrap();
                let view = self.fork().view().unwrap();
                let found = view.side_block(side.head().header.hash).unwrap().map(|block| block.changes);
                assert_eq!(found.as_ref(), Some(&side.head().changes));
            }
            9 => self.fork().flush().unwrap(),
            10 => {
                let floor = floor + self.random.below(head - floor + 1);
                self.fork().prune_before(floor).unwrap();
            }
            _ => {
                let seed = self.random.below(u64::MAX);
                match self.random.below(3) {
                    0 => {}
                    1 => self.disk.kill(),
                    _ => self.disk.crash(seed),
                }
                self.fork = None;
                self.disk.kill();
                self.open();
            }
        }
        self.base.known().fails = None;
    }

    fn head(&self) -> BlockNumber {
        self.chain.head().header.header.number
    }

    fn compare(&mut self) {
        let (fork, full) = (self.fork().view().unwrap(), self.full.view().unwrap());
        assert_eq!(fork.head(), full.head());
        let (first, head, earliest) = (self.first.header.header.number, self.head(), fork.earliest_state());
        for number in first..=head {
            compare_block(&*fork, &*full, number);
        }
        compare_logs(&*fork, &*full, first, head);
        let random = &mut self.random;
        for at in [earliest, head, earliest + random.below(head - earliest + 1)] {
            let (got, expected) = (fork.state(at).unwrap(), full.state(at).unwrap());
            for address in &self.keys.addresses {
                if random.once_in(2) {
                    // Before the values are read one by one.
                    let slots = &self.keys.slots;
                    let [got, expected] = [&got, &expected].map(|state| state.proof(*address, slots).unwrap());
                    assert_eq!(got, expected, "{address:#x} as of {at}");
                }
                let [a, b] = [&got, &expected].map(|state| state.account(*address).unwrap());
                assert_eq!(a, b, "{address:#x} as of {at}");
                let code = a.map(|account| account.code_hash);
                let [a, b] = [&got, &expected].map(|state| code.map(|code| state.code(code).unwrap()));
                assert_eq!(a, b, "code of {address:#x} as of {at}");
                let [a, b] = [&got, &expected].map(|state| state.has_storage(*address).unwrap());
                assert_eq!(a, b, "{address:#x} as of {at}");
                for slot in &self.keys.slots {
                    let [a, b] = [&got, &expected].map(|state| state.storage(*address, *slot).unwrap());
                    assert_eq!(a, b, "slot {slot:#x} of {address:#x} as of {at}");
                }
            }
            let changes = self.keys.changes(random, self.chain.state(at));
            let [got, expected] = [got, expected].map(|state| state.root_after(&changes).unwrap());
            assert_eq!(got, expected, "root after changes to {at}");
        }
    }

    fn verify(&mut self) {
        let fork = self.fork.as_mut().unwrap();
        let verified = fork.verify(VerifyOptions::default(), &Context::unbounded(), &OneSender, |_| {}).unwrap();
        assert_eq!(verified.difference.map(|difference| difference.to_string()), None);
    }
}

/// The random chains have what is special about forks.
#[test]
fn some_fetches_fail_and_some_branches_are_opaque() {
    let (mut failures, mut resolved, mut opaque) = (0, 0, 0);
    for seed in 0..40 {
        let mut play = Play::new(seed, 5);
        (0..20).for_each(|_| play.step());
        play.fork().flush().unwrap();
        play.fork().for_each_row(|table, _, value| opaque += u64::from(table == Table::Trie && value[0] == 5));
        failures += play.base.known().failures;
        resolved += play.base.known().resolved;
    }
    assert!(failures > 50 && resolved > 10 && opaque > 0, "{failures}, {resolved}, {opaque}");
}

fn compare_block(fork: &dyn View, full: &dyn View, number: BlockNumber) {
    let id = number.into();
    assert_eq!(fork.header(id).unwrap(), full.header(id).unwrap());
    assert_eq!(fork.receipts(id).unwrap(), full.receipts(id).unwrap());
    let body = fork.body(id).unwrap().unwrap();
    assert_eq!(Some(&body), full.body(id).unwrap().as_ref());
    for transaction in &body.transactions {
        let position = fork.transaction_position(transaction.hash).unwrap();
        assert_eq!(position, full.transaction_position(transaction.hash).unwrap());
    }
}

fn compare_logs(fork: &dyn View, full: &dyn View, first: BlockNumber, head: BlockNumber) {
    let numbers: Vec<_> = (first..=head).collect();
    assert_eq!(fork.logs(&numbers).unwrap(), full.logs(&numbers).unwrap());
    assert_eq!(fork.fee_rows(first..=head).unwrap(), full.fee_rows(first..=head).unwrap());
    let filter = LogFilter::default();
    let from = LogPosition { block: first, log_index: 0 };
    let search = LogSearch { filter: &filter, from, to: head, limit: 100 };
    let [got, expected] = [fork, full].map(|view| view.log_candidates(&Context::unbounded(), search).unwrap());
    assert_eq!(got, expected);
}

proptest! {
    #![proptest_config(crate::tests::cases(150))]

    #[test]
    fn a_fork_equals_the_chain_that_it_continues(seed: u64, blocks_in_memory in 1u64..30) {
        let mut play = Play::new(seed, blocks_in_memory);
        play.compare();
        for _ in 0..25 {
            play.step();
            play.compare();
        }
        play.verify();
        // Recovery of what was not in runs, with a base that has forgotten nothing.
        play.fork = None;
        play.open();
        play.compare();
        play.verify();
    }
}
