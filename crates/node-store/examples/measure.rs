//! Measures a store on generated chains: time, memory and disk space of appending, and time of reading.
//!
//! `cargo run --release -p node-store --example measure -- ACCOUNTS BLOCKS CHANGES [FOLDER]` creates a chain of
//! ACCOUNTS accounts and appends BLOCKS blocks that change CHANGES of them each.

use node_core::backend::StateBackend;
use node_core::block::{Body, ExecutedBlock, RecoveredTransaction, SealedHeader};
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_core::trie::Trie;
use node_store::{Options, Store};
use node_types::consensus::{
    Account, EMPTY_ROOT, Header, LegacyTransaction, Log, Receipt, ReceiptOutcome, Signature, Transaction,
    TransactionBody, TransactionType,
};
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [accounts, blocks, changes] = [(0, 100_000), (1, 1_000), (2, 100)]
        .map(|(index, default)| arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(default));
    let temporary = std::env::temp_dir().join(format!("node-store-measure-{}", std::process::id()));
    let folder = arguments.get(3).map_or(temporary, Into::into);

    let mut world = World { random: 1, trie: Trie::new(), head: None, nonces: vec![0; accounts as usize] };
    let genesis = world.block((0..accounts).collect(), 0);
    let open = || Store::open(&folder, genesis.clone(), Options::for_import());
    let store = open()?;
    let before = trie_bytes(&store)?;

    let mut spent = Duration::ZERO;
    let mut longest = Duration::ZERO;
    let mut leaves = 0;
    for _ in 0..blocks {
        let touched: Vec<u64> = (0..changes).map(|_| world.below(accounts)).collect();
        let block = world.block(touched, changes.div_ceil(3));
        leaves += block.changes.accounts.len() as u64;
        let start = Instant::now();
        store.append(block)?;
        longest = longest.max(start.elapsed());
        spent += start.elapsed();
    }
    let start = Instant::now();
    store.sync()?;
    spent += start.elapsed();
    println!("append: {blocks} blocks, {leaves} changed accounts in {spent:?}, {:?} a block", spent / blocks as u32);
    println!("longest append: {longest:?}");
    let start = Instant::now();
    store.flush()?;
    println!("flush at the end: {:?}", start.elapsed());
    println!("peak memory: {}", peak_memory());

    let added = trie_bytes(&store)? - before;
    println!("trie rows: {} bytes a changed leaf", added / leaves.max(1));
    for table in store.stats()?.tables {
        println!("  {:13} {:>9} rows {:>11} bytes", table.name, table.rows, table.stored_bytes);
    }
    let mut bytes = 0;
    for entry in std::fs::read_dir(&folder)? {
        bytes += entry?.metadata()?.len();
    }
    println!("folder: {} MB", bytes / 1_000_000);

    for (name, at) in [("head", blocks), ("middle", blocks / 2), ("first block", 1.min(blocks))] {
        let view = store.view()?;
        let count = 20_000;
        let addresses: Vec<_> = (0..count).map(|_| address(world.below(accounts))).collect();
        let start = Instant::now();
        for address in &addresses {
            std::hint::black_box(view.state(at)?.proof(*address, &[])?);
        }
        let proof = start.elapsed() / count;
        let start = Instant::now();
        for address in &addresses {
            std::hint::black_box(view.state(at)?.account(*address)?);
        }
        println!("as of the {name}: proof {proof:?}, account {:?}", start.elapsed() / count);
    }
    drop(store);
    let start = Instant::now();
    drop(open()?);
    println!("open after a clean stop: {:?}", start.elapsed());
    if arguments.get(3).is_none() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

/// The generated chain with its state.
struct World {
    random: u64,
    trie: Trie,
    head: Option<Arc<SealedHeader>>,
    nonces: Vec<u64>,
}

impl World {
    /// Returns a number below `bound` (SplitMix64).
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.random;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }

    /// Returns the next block. It changes the accounts `touched` and has `transactions` transactions with one log each.
    fn block(&mut self, touched: Vec<u64>, transactions: u64) -> ExecutedBlock {
        let mut changes = StateChanges::default();
        for index in touched {
            self.nonces[index as usize] += 1;
            let nonce = self.nonces[index as usize];
            let balance = U256::from(10).pow(18.into()) + nonce * 21_000;
            let state = AccountState { nonce, balance, code_hash: KECCAK_EMPTY };
            let leaf = Account { nonce, balance, storage_root: EMPTY_ROOT, code_hash: KECCAK_EMPTY };
            self.trie.insert(keccak256(address(index)).as_bytes(), leaf.encode());
            changes.accounts.insert(address(index), AccountChange { account: Some(state), ..AccountChange::default() });
        }
        let number = self.head.as_ref().map_or(0, |head| head.header.number + 1);
        let (mut body, mut receipts) = (Body::default(), Vec::new());
        for index in 0..transactions {
            let transaction = transaction(number * 1000 + index);
            let hash = transaction.hash();
            body.transactions.push(RecoveredTransaction { transaction, hash, sender: address(index) });
            let topics = vec![H256::repeat_byte(1), keccak256(index.to_be_bytes()), H256::from_low_u64_be(number)];
            let log = Log { address: address(index % 10), topics, data: Bytes::from(vec![7; 32]) };
            receipts.push(Receipt {
                transaction_type: TransactionType::Legacy,
                outcome: ReceiptOutcome::Success(true),
                cumulative_gas_used: 21_000 * (index + 1),
                logs_bloom: [&log].into_iter().collect(),
                logs: vec![log],
            });
        }
        let logs_bloom = receipts.iter().map(|receipt| &receipt.logs_bloom).collect();
        let parent_hash = self.head.as_ref().map(|head| head.hash).unwrap_or_default();
        let header = Header { number, parent_hash, state_root: self.trie.root(), logs_bloom, ..Header::default() };
        let sealed = SealedHeader { hash: header.hash(), header, total_difficulty: U256::zero(), size: 1000 };
        let header = Arc::new(sealed);
        self.head = Some(Arc::clone(&header));
        ExecutedBlock { header, body: Arc::new(body), receipts: Arc::new(receipts), changes: Arc::new(changes) }
    }
}

fn address(index: u64) -> Address {
    Address::from_low_u64_be(index)
}

fn transaction(nonce: u64) -> Transaction {
    let body = LegacyTransaction {
        chain_id: Some(1),
        nonce,
        gas_price: 7.into(),
        gas_limit: 21_000,
        to: Some(address(nonce)),
        value: 1.into(),
        input: Bytes::from(vec![3; 68]),
    };
    let signature = Signature { r: U256::MAX - nonce, s: U256::MAX / 3, y_parity: false };
    Transaction { body: TransactionBody::Legacy(body), signature }
}

fn trie_bytes(store: &Store) -> Result<u64, Box<dyn Error>> {
    let stats = store.stats()?;
    Ok(stats.tables.iter().find(|table| table.name == "trie").map_or(0, |table| table.stored_bytes))
}

/// Returns the peak memory of the process with its unit, or "unknown" if the system does not report it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim().to_owned()
}
