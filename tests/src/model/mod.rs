//! A model of the whole node, and random steps that compare the two: transactions of all types, blocks, polls,
//! reorganizations, edits, snapshots, restarts.
//!
//! The model computes the effect of each step on states, logs, filters and the pool. Only the gas used by code is taken
//! from receipts. The [oracle](crate::oracle::check_blocks) recomputes what headers commit to.

mod chain;
pub mod code;
mod compare;
mod filters;
mod generate;
mod pool;
mod random;
mod state;
mod steps;
mod transaction;
mod world;

pub use generate::{blob_hash, sidecar};
pub use world::World;

use crate::oracle;
use crate::wallet::accounts;
use chain::Model;
use generate::Generator;
use node_chain::genesis::GenesisAccount;
use node_chain::{Genesis, dev_genesis};
use node_core::edits::{edited_blocks, first_edited_block};
use node_core::pool::TransactionOrder;
use node_core::producer::Mining;
use node_types::{Address, H256, U256};
pub(crate) use random::Random;
use state::State;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use transaction::Sent;

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of steps.
    pub steps: u64,
    /// Seed of the steps.
    pub seed: u64,
    /// Whether the chain is stored in a folder.
    pub in_folder: bool,
    /// Whether steps include edits, chosen base fees and impersonated senders.
    pub edits: bool,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Transactions that were accepted.
    pub accepted: u64,
    /// Transactions that were refused.
    pub refused: u64,
    /// Blocks, canonical or not.
    pub blocks: usize,
    /// Canonical blocks at the end.
    pub canonical: u64,
    /// Transactions in canonical blocks at the end.
    pub mined: usize,
    /// Changes that filters reported.
    pub reported: usize,
    /// Number of times that the head moved back or to another branch.
    pub reorganizations: u64,
    /// Number of restarts.
    pub restarts: u64,
    /// Number of edits.
    pub edits: u64,
    /// Number of filters created.
    pub filters: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted, refused, blocks, canonical, mined, reported, reorganizations, restarts, edits, filters } =
            self;
        write!(f, "{accepted} transactions accepted, {refused} refused, {mined} in {canonical} blocks at the end; ")?;
        write!(f, "{blocks} blocks in all, {reorganizations} reorganizations, {edits} edits, {restarts} restarts, ")?;
        write!(f, "{reported} changes reported by {filters} filters")
    }
}

/// Runs the steps of a seed, and compares after each. `progress` is called before each step.
///
/// # Panics
/// If the node and the model differ; the seed and the step are printed.
pub fn run(options: Options, mut progress: impl FnMut(u64)) -> Summary {
    let mut run = Run::new(options);
    for step in 0..options.steps {
        progress(step);
        run.at.step = step;
        run.step();
        if step % 50 == 49 {
            run.compare_all();
        }
    }
    run.compare_all();
    run.finish();
    run.summary
}

/// A run: the node, the model, and the transactions that were sent.
struct Run {
    /// Dropped first, so that a failure reports the step.
    at: At,
    options: Options,
    random: Random,
    world: World,
    model: Model,
    generator: Generator,
    sent: Vec<Rc<Sent>>,
    snapshots: Vec<u64>,
    summary: Summary,
}

/// Prints on a panic how to reproduce it.
struct At {
    options: Options,
    step: u64,
    what: &'static str,
}

impl Drop for At {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Options { seed, in_folder, edits, .. } = self.options;
            let store = if in_folder { " --store" } else { "" };
            let without_edits = if edits { "" } else { " --without-edits" };
            eprintln!("the model and the node differ at step {}: {}", self.step, self.what);
            eprintln!("again: model --steps {} --seed {seed}{store}{without_edits}", self.step + 1);
        }
    }
}

/// Start of the chain, in milliseconds since the Unix epoch.
const BEGINNING: u64 = 1_750_000_000_000;

impl Run {
    fn new(options: Options) -> Self {
        let others: Vec<_> = (1..=6u64).map(|index| Address::from_low_u64_be(0xc0_0000 + index)).collect();
        let contract = Address::from_low_u64_be(0xcc_0000);
        let mut genesis = dev_genesis();
        // A block is full after about twelve calls.
        genesis.header.gas_limit = 2_000_000;
        let store = GenesisAccount { nonce: 1, code: code::STORE[..].into(), ..GenesisAccount::default() };
        genesis.alloc.insert(contract, store);
        genesis
            .alloc
            .insert(others[0], GenesisAccount { nonce: 1, code: code::REVERT[..].into(), ..GenesisAccount::default() });
        let order = if options.seed.is_multiple_of(3) { TransactionOrder::Fifo } else { TransactionOrder::Fees };
        let coinbase = others[1];
        let state = genesis_state(&genesis);
        let block = genesis.block();
        let mut world = World::new(genesis, BEGINNING, options.in_folder, order, coinbase);
        world.open(Mining::Manual);
        Self {
            at: At { options, step: 0, what: "" },
            options,
            random: Random::new(options.seed),
            world,
            model: Model::new(block.header, state, order, coinbase, BEGINNING),
            generator: Generator { accounts: accounts(), others, contract },
            sent: Vec::new(),
            snapshots: Vec::new(),
            summary: Summary::default(),
        }
    }

    /// Checks the whole chain.
    fn finish(&mut self) {
        self.at.what = "the whole chain";
        let view = self.world.view();
        let head = self.model.head_number();
        if head > 0 {
            oracle::check_blocks(&*view, 1..=head, &self.model.departures(1));
        }
        let backend = &**self.world.node().backend();
        let expected = self.model.edited_blocks();
        let edited = edited_blocks(backend).expect("readable");
        let edited: BTreeSet<_> = edited.iter().map(|(block, _)| (block.number, block.hash)).collect();
        let differing: Vec<_> = edited.symmetric_difference(&expected).collect();
        assert!(differing.is_empty(), "only the node or only the model has these edited blocks: {differing:?}");
        let first =
            expected.into_iter().find(|(number, hash)| self.model.canonical.get(*number as usize) == Some(hash));
        let actual = first_edited_block(backend, head).expect("readable").map(|block| (block.number, block.hash));
        assert_eq!(actual, first, "first edited block of the chain");
        if first.is_none() {
            oracle::import_again(&self.world.genesis, &*view);
        }
        self.summary.blocks = self.model.blocks.len();
        self.summary.canonical = head;
        self.summary.mined = self.model.positions.len();
    }
}

fn genesis_state(genesis: &Genesis) -> State {
    let mut state = State::default();
    for (address, account) in &genesis.alloc {
        state.change(*address, |changed| {
            (changed.nonce, changed.balance, changed.code) = (account.nonce, account.balance, account.code.clone());
            for (slot, value) in &account.storage {
                changed.set_slot(*slot, *value);
            }
        });
    }
    state
}

/// Returns a word as a hash.
fn word(number: u64) -> H256 {
    H256(U256::from(number).to_big_endian())
}
