//! Operations that control a chain, each with a failure of every single operation of the disk: afterwards the chain is
//! as before or as after the operation, in memory and on the disk.

use node_chain::Genesis;
use node_core::block::BlockRef;
use node_core::context::Context;
use node_core::edits::edited_blocks;
use node_core::node::{NodeError, ReplacementTransaction, TransactionRequest};
use node_core::pool::{DropReason, PoolStatus};
use node_core::producer::{Mining, Producer, WholeAccount};
use node_dev::DevNode;
use node_store::files::faults::FaultyDisk;
use node_store::{Options, Store};
use node_types::consensus::Header;
use node_types::{Address, Bytes, H256, U256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The deposit contract of the development chain (EIP-6110).
const DEPOSITS: &str = "0x00000000219ab540356cbb839cbe05303d7705fa";

/// Logs a deposit event without data: PUSH32 of its topic, PUSH0 twice, LOG1.
const EMPTY_DEPOSIT: &str = "7f649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c55f5fa1";

/// A chain on a simulated disk, with the numbers and hashes that operations refer to.
struct World {
    disk: FaultyDisk,
    genesis: Genesis,
    chain: DevNode,
    /// A snapshot below the head.
    below: u64,
    /// A snapshot at the head, before its edits.
    at_head: u64,
    /// A transaction of the pool.
    waiting: H256,
}

/// What a restart keeps.
#[derive(Debug, PartialEq)]
struct Durable {
    chain: Vec<BlockRef>,
    accounts: BTreeMap<Address, WholeAccount>,
    edited: Vec<BlockRef>,
    pool: BTreeSet<H256>,
    snapshots: Vec<(u64, BlockRef)>,
}

/// What is only in memory.
#[derive(Debug, PartialEq)]
struct Volatile {
    next: Header,
    mining: Mining,
    impersonated: Vec<Address>,
    waiting: PoolStatus,
    obstacle: Option<String>,
}

fn context() -> Context {
    Context::unbounded()
}

fn open(disk: &FaultyDisk, genesis: &Genesis) -> DevNode {
    let store = Store::open_in(disk.folder(), genesis.block(), Options::default()).unwrap();
    let builder = DevNode::builder().genesis(genesis.clone()).mining(Mining::Manual);
    builder.backend(Arc::new(store)).spawn().unwrap()
}

fn somebody() -> Address {
    Address::repeat_byte(0xab)
}

fn transfer(chain: &DevNode, from: usize) -> TransactionRequest {
    let from = chain.accounts()[from].address();
    TransactionRequest { from, to: Some(somebody()), value: U256::one(), ..TransactionRequest::default() }
}

fn send(chain: &DevNode, request: TransactionRequest) -> H256 {
    chain.send_transaction(&context(), request).unwrap()
}

impl World {
    /// Makes three blocks, two snapshots and edits; in the pool there are transactions, one of which makes its block
    /// invalid.
    fn new() -> Self {
        let (disk, genesis) = (FaultyDisk::new(), DevNode::spawn().unwrap().genesis().clone());
        let chain = open(&disk, &genesis);
        let producer = chain.producer().unwrap().clone();
        let mine = || producer.mine(1, None, Vec::new()).unwrap();
        let code = alloy_primitives::hex::decode(EMPTY_DEPOSIT).unwrap();
        producer.set_code(DEPOSITS.parse().unwrap(), code.into()).unwrap();
        mine();
        send(&chain, transfer(&chain, 0));
        let below = producer.snapshot().unwrap();
        mine();
        send(&chain, transfer(&chain, 1));
        mine();
        let at_head = producer.snapshot().unwrap();
        producer.set_balance(somebody(), 7.into()).unwrap();
        producer.set_nonce(somebody(), 3).unwrap();
        let invalid =
            TransactionRequest { to: Some(DEPOSITS.parse().unwrap()), gas: Some(100_000), ..transfer(&chain, 2) };
        send(&chain, invalid);
        let waiting = send(&chain, transfer(&chain, 3));
        send(&chain, transfer(&chain, 3));
        Self { disk, genesis, chain, below, at_head, waiting }
    }

    fn producer(&self) -> &Arc<Producer> {
        self.chain.producer().unwrap()
    }

    fn volatile(&self) -> Volatile {
        let producer = self.producer();
        Volatile {
            next: producer.next_header().unwrap(),
            mining: producer.mining(),
            impersonated: producer.impersonated(),
            waiting: self.chain.pool().status(self.waiting),
            obstacle: producer.obstacle(),
        }
    }
}

fn durable(chain: &DevNode) -> Durable {
    let view = chain.backend().view().unwrap();
    let block = |number| BlockRef { number, hash: view.canonical_hash(number).unwrap().unwrap() };
    let producer = chain.producer().unwrap();
    Durable {
        chain: (0..=view.head().number).map(block).collect(),
        accounts: producer.dump(&context(), |_| Ok(())).unwrap(),
        edited: edited_blocks(&**chain.backend()).unwrap().into_iter().map(|(block, _)| block).collect(),
        pool: chain.pool().hashes().into_iter().collect(),
        snapshots: producer.snapshots(),
    }
}

type Operation = (&'static str, fn(&World) -> Result<(), NodeError>);

fn operations() -> Vec<Operation> {
    vec![
        ("snapshot", |world| Ok(world.producer().snapshot().map(drop)?)),
        ("revert to the head", |world| Ok(world.producer().revert(world.at_head)?)),
        ("revert", |world| Ok(world.producer().revert(world.below)?)),
        ("reset", |world| Ok(world.producer().reset().map(drop)?)),
        ("rollback", |world| Ok(world.producer().rollback(2).map(drop)?)),
        ("reorganize", |world| Ok(world.producer().reorganize(&context(), 2).map(drop)?)),
        ("reorganize with a transaction", |world| {
            let request = TransactionRequest { gas: Some(21_000), ..transfer(&world.chain, 4) };
            let transactions = vec![(1, ReplacementTransaction::Request(request))];
            world.chain.reorganize_with(&context(), 2, transactions)
        }),
        ("set a balance", |world| Ok(world.producer().set_balance(somebody(), 9.into())?)),
        ("add to a balance", |world| Ok(world.producer().add_balance(somebody(), 9.into()).map(drop)?)),
        ("set a balance below what waits", |world| {
            Ok(world.producer().set_balance(world.chain.accounts()[3].address(), U256::zero())?)
        }),
        ("set a nonce", |world| Ok(world.producer().set_nonce(world.chain.accounts()[3].address(), 1)?)),
        ("set code", |world| Ok(world.producer().set_code(somebody(), Bytes::from(&[0x60, 0][..]))?)),
        ("set a slot", |world| Ok(world.producer().set_storage(somebody(), H256::zero(), U256::one())?)),
        ("load accounts", |world| {
            let account = WholeAccount { nonce: 8, ..WholeAccount::default() };
            Ok(world.producer().load([(somebody(), account)].into())?)
        }),
        ("mine", |world| Ok(world.producer().mine(1, None, Vec::new()).map(drop)?)),
        ("mine at a time", |world| Ok(world.producer().mine_at(&context(), 1, 4_000_000_000).map(drop)?)),
        ("send", |world| world.chain.send_transaction(&context(), transfer(&world.chain, 5)).map(drop)),
        ("drop a transaction", |world| world.chain.drop_transaction(&context(), world.waiting).map(drop)),
        ("drop all transactions", |world| {
            world.chain.pool().drop_where(DropReason::Requested, |_| true).map(drop).map_err(NodeError::from)
        }),
        ("mine at once", |world| Ok(world.producer().set_automine(true)?)),
        ("mine at intervals", |world| Ok(world.producer().set_interval_mining(Duration::from_secs(3_600))?)),
        ("impersonate", |world| Ok(world.producer().impersonate(somebody(), true).map(drop)?)),
        ("set the next timestamp", |world| Ok(world.producer().set_next_timestamp(4_000_000_000)?)),
        ("increase the time", |world| Ok(world.producer().increase_time(1_000).map(drop)?)),
        ("set the next base fee", |world| Ok(world.producer().set_next_base_fee(7)?)),
        ("set the gas limit", |world| Ok(world.producer().set_gas_limit(20_000_000)?)),
    ]
}

#[test]
fn a_failure_of_the_disk_leaves_the_state_before_or_after() {
    let before = World::new();
    let before = (durable(&before.chain), before.volatile());
    let mut refused = BTreeSet::new();
    for (name, operate) in operations() {
        let after = World::new();
        operate(&after).unwrap();
        let after = (durable(&after.chain), after.volatile());
        for failing in 0.. {
            let world = World::new();
            world.disk.fail_operation(failing);
            let outcome = operate(&world);
            let has_failed = !world.disk.fail_nothing();
            let expected = if outcome.is_ok() { &after } else { &before };
            let case = format!("{name}, disk operation {failing}: {outcome:?}");
            assert_eq!(durable(&world.chain), expected.0, "{case}");
            assert_eq!(world.volatile(), expected.1, "{case}");
            let World { disk, genesis, chain, .. } = world;
            disk.crash(failing);
            drop(chain);
            let chain = open(&disk, &genesis);
            assert_eq!(durable(&chain), expected.0, "{case}, after a restart");
            refused.extend(outcome.is_err().then_some(name));
            if !has_failed {
                break;
            }
        }
    }
    let durable = operations().into_iter().map(|(name, _)| name).filter(|name| !refused.contains(name));
    let in_memory = [
        "mine at intervals",
        "impersonate",
        "set the next timestamp",
        "increase the time",
        "set the next base fee",
        "set the gas limit",
    ];
    assert_eq!(durable.collect::<Vec<_>>(), in_memory, "operations that need no disk");
}
