//! A model of the whole node, and random steps that compare the two: sends of all types, blocks, polls, reorganizations,
//! edits, snapshots, restarts.
//!
//! The model knows what each step does to states, logs, filters and the pool. Only the gas that code uses it takes from
//! the receipts. What headers commit to is recomputed by the [oracle](crate::oracle::check_blocks).

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
use node_core::backend::{edited_blocks, first_edited_block};
use node_core::pool::TransactionOrder;
use node_core::producer::Mining;
use node_types::{Address, H256, U256};
use random::Random;
use state::State;
use std::fmt;
use std::rc::Rc;
use transaction::Sent;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Steps.
    pub steps: u64,
    /// Chooses them.
    pub seed: u64,
    /// Whether the chain is in a folder.
    pub in_folder: bool,
    /// Whether states are edited, base fees chosen and senders impersonated.
    pub edits: bool,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Transactions that were accepted.
    pub accepted: u64,
    /// Transactions that were refused.
    pub refused: u64,
    /// Blocks that there ever were.
    pub blocks: usize,
    /// Canonical blocks at the end.
    pub canonical: u64,
    /// Transactions that were mined and stayed so.
    pub mined: usize,
    /// Changes that filters told.
    pub told: usize,
    /// How often the head moved back or to another branch.
    pub reorganizations: u64,
    /// Times that the node was opened again.
    pub restarts: u64,
    /// Edits of the state.
    pub edits: u64,
    /// Filters that were made.
    pub filters: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted, refused, blocks, canonical, mined, told, reorganizations, restarts, edits, filters } =
            self;
        write!(f, "{accepted} transactions accepted, {refused} refused, {mined} in {canonical} blocks at the end; ")?;
        write!(f, "{blocks} blocks in all, {reorganizations} reorganizations, {edits} edits, {restarts} restarts, ")?;
        write!(f, "{told} changes told by {filters} filters")
    }
}

/// Runs the steps of a seed, and compares after each. `progress` hears of each before it is made.
///
/// # Panics
/// When the node and the model differ; the seed and the step are printed then.
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

/// A run: the node, the model, and what was sent.
struct Run {
    /// Dropped first, so that a failure tells where it is.
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

/// Tells on a panic how to come here again.
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

/// When the chain begins, in milliseconds since the Unix epoch.
const BEGINNING: u64 = 1_750_000_000_000;

impl Run {
    fn new(options: Options) -> Self {
        let others: Vec<_> = (1..=6u64).map(|index| Address::from_low_u64_be(0xc0_0000 + index)).collect();
        let contract = Address::from_low_u64_be(0xcc_0000);
        let mut genesis = dev_genesis();
        // The block is full after some twelve calls.
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

    /// Looks at the whole chain.
    fn finish(&mut self) {
        self.at.what = "the whole chain";
        let view = self.world.view();
        let head = self.model.head_number();
        if head > 0 {
            oracle::check_blocks(&*view, 1..=head, &self.model.liberties(1));
        }
        let backend = &**self.world.node().backend();
        let expected = self.model.edited_blocks();
        let edited = edited_blocks(backend).expect("readable");
        let edited = edited.iter().map(|(block, _)| (block.number, block.hash));
        assert!(edited.eq(expected.iter().copied()), "edited blocks: {expected:?}");
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

/// A word as a hash.
fn word(number: u64) -> H256 {
    H256(U256::from(number).to_big_endian())
}
