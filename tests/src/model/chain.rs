//! The chain as the model sees it: the content and the effects of each block.

use super::filters::Filter;
use super::pool::{Pool, Status, Waiting, may_not_sign};
use super::state::{Outcome, State};
use super::transaction::Sent;
use crate::oracle::{self, Departures};
use alloy_eips::eip1559::{BaseFeeParams, calc_next_block_base_fee};
use alloy_eips::eip7840::BlobParams;
use node_core::backend::View;
use node_core::block::SealedHeader;
use node_core::filters::FilterId;
use node_core::pool::TransactionOrder;
use node_core::producer::Mining;
use node_types::consensus::{Header, Log, ReceiptOutcome, Withdrawal};
use node_types::{Address, BlockNumber, H256, U256, keccak256};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// A block, canonical or not.
pub(super) struct Block {
    /// The header that the node produced.
    pub(super) header: Arc<SealedHeader>,
    /// Its transactions.
    pub(super) transactions: Vec<Rc<Sent>>,
    /// Its logs, with the index of the transaction of each.
    pub(super) logs: Vec<(usize, Log)>,
    /// The state after it.
    pub(super) state: State,
    /// Whether it includes edits of the state.
    pub(super) edited: bool,
    /// Whether its base fee was set.
    pub(super) chosen_base_fee: bool,
}

impl Block {
    /// Whether it contains a transaction without a signature.
    pub(super) fn is_unsigned(&self) -> bool {
        self.transactions.iter().any(|sent| sent.unsigned)
    }

    /// Number of the block.
    pub(super) fn number(&self) -> BlockNumber {
        self.header.header.number
    }
}

/// A development snapshot, which can be reverted to.
#[derive(Clone)]
struct ModelSnapshot {
    head: H256,
    offset: i64,
    state: State,
    edited: bool,
    pool: BTreeSet<H256>,
}

/// Everything that the node should know.
pub(super) struct Model {
    /// All blocks, canonical or not.
    pub(super) blocks: HashMap<H256, Rc<Block>>,
    /// Hashes of the canonical blocks, starting with genesis.
    pub(super) canonical: Vec<H256>,
    /// Positions of the transactions of the canonical chain.
    pub(super) positions: HashMap<H256, (BlockNumber, usize)>,
    /// The state at the head, including the edits since.
    pub(super) state: State,
    /// Whether there are edits since the head.
    pub(super) edited: bool,
    /// The transaction pool.
    pub(super) pool: Pool,
    /// Recently mined blob transactions, whose blobs the node still has.
    pub(super) mined_blobs: BTreeSet<H256>,
    /// Filters by id.
    pub(super) filters: BTreeMap<FilterId, Filter>,
    /// Impersonated accounts.
    pub(super) impersonated: BTreeSet<Address>,
    /// Mining mode.
    pub(super) mining: Mining,
    /// Milliseconds since the Unix epoch.
    pub(super) clock: u64,
    /// Offset of the chain's time from the clock, in milliseconds.
    pub(super) offset: i64,
    /// Timestamp set for the next block, in Unix seconds.
    pub(super) wished_time: Option<u64>,
    /// Base fee set for the next block.
    pub(super) wished_fee: Option<u64>,
    order: TransactionOrder,
    coinbase: Address,
    snapshots: BTreeMap<u64, ModelSnapshot>,
    /// The number of the next snapshot.
    next_snapshot: u64,
}

impl Model {
    /// A chain that consists of its genesis block.
    pub(super) fn new(
        genesis: Arc<SealedHeader>,
        state: State,
        order: TransactionOrder,
        coinbase: Address,
        clock: u64,
    ) -> Self {
        let hash = genesis.hash;
        let block = Block {
            header: genesis,
            transactions: Vec::new(),
            logs: Vec::new(),
            state: state.clone(),
            edited: false,
            chosen_base_fee: false,
        };
        Self {
            blocks: [(hash, Rc::new(block))].into(),
            canonical: vec![hash],
            positions: HashMap::new(),
            state,
            edited: false,
            pool: Pool::default(),
            mined_blobs: BTreeSet::new(),
            filters: BTreeMap::new(),
            impersonated: BTreeSet::new(),
            mining: Mining::Manual,
            clock,
            offset: 0,
            wished_time: None,
            wished_fee: None,
            order,
            coinbase,
            snapshots: BTreeMap::new(),
            next_snapshot: 1,
        }
    }

    /// Number of the head.
    pub(super) fn head_number(&self) -> BlockNumber {
        self.canonical.len() as u64 - 1
    }

    /// The canonical block with a number.
    pub(super) fn block(&self, number: BlockNumber) -> &Rc<Block> {
        &self.blocks[&self.canonical[number as usize]]
    }

    /// The head.
    pub(super) fn head(&self) -> &Rc<Block> {
        self.block(self.head_number())
    }

    /// The position of a transaction.
    pub(super) fn status(&self, sent: &Sent) -> Status {
        if self.positions.contains_key(&sent.hash) { Status::Mined } else { self.pool.status(sent, &self.state) }
    }

    /// The chain's time in Unix seconds.
    pub(super) fn now(&self) -> u64 {
        self.clock.saturating_add_signed(self.offset) / 1_000
    }

    /// The base fee of the next block by EIP-1559.
    pub(super) fn base_fee_by_rules(&self) -> u64 {
        let header = &self.head().header.header;
        let base_fee = header.base_fee_per_gas.expect("since London");
        calc_next_block_base_fee(header.gas_used, header.gas_limit, base_fee, BaseFeeParams::ethereum())
    }

    /// The header of the next block, as far as it is known before execution.
    pub(super) fn next_header(&self) -> Header {
        let time = self.wished_time.unwrap_or_else(|| self.now());
        self.header_with(time, self.wished_fee.unwrap_or_else(|| self.base_fee_by_rules()))
    }

    fn header_with(&self, time: u64, base_fee: u64) -> Header {
        let parent = &self.head().header;
        let excess = BlobParams::bpo2().next_block_excess_blob_gas_osaka(
            parent.header.excess_blob_gas.expect("since Cancun"),
            parent.header.blob_gas_used.expect("since Cancun"),
            parent.header.base_fee_per_gas.expect("since London"),
        );
        Header {
            number: parent.header.number + 1,
            parent_hash: parent.hash,
            timestamp: time.max(parent.header.timestamp + 1),
            base_fee_per_gas: Some(base_fee),
            gas_limit: parent.header.gas_limit,
            beneficiary: self.coinbase,
            mix_hash: keccak256(parent.hash),
            excess_blob_gas: Some(excess),
            ..Header::default()
        }
    }

    /// Adds a block that was sealed on top of the head, and checks it against the expected one.
    pub(super) fn sealed(&mut self, view: &dyn View, withdrawals: &[Withdrawal]) {
        let expected = self.next_header();
        let by_rules = self.base_fee_by_rules();
        let number = expected.number;
        let header =
            view.header(number.into()).expect("readable").unwrap_or_else(|| panic!("block {number} does not exist"));
        assert_known(&header.header, &expected);
        let body = view.body(number.into()).expect("readable").expect("a body");
        let receipts = view.receipts(number.into()).expect("readable").expect("receipts");
        assert_eq!(body.transactions.len(), receipts.len(), "block {number}: receipts");

        let mut state = self.state.clone();
        state.begin_block(&header.header);
        let gas_used = |index: usize, sent: &Sent| {
            let hash = body.transactions.get(index).map(|transaction| transaction.hash);
            assert_eq!(hash, Some(sent.hash), "block {number}: transaction {index}");
            let before = if index == 0 { 0 } else { receipts[index - 1].cumulative_gas_used };
            receipts[index].cumulative_gas_used - before
        };
        let done = self.fill(&mut state, &header.header, gas_used);
        assert_eq!(done.len(), body.transactions.len(), "block {number}: number of transactions");
        let mut logs = Vec::new();
        for (index, ((sent, outcome), receipt)) in done.iter().zip(&*receipts).enumerate() {
            let hash = sent.hash;
            assert_eq!(receipt.outcome, ReceiptOutcome::Success(outcome.success), "block {number}: status of {sent:?}");
            assert_eq!(receipt.logs, outcome.logs, "block {number}: logs of {hash:#x}");
            logs.extend(outcome.logs.iter().map(|log| (index, log.clone())));
        }
        for withdrawal in withdrawals {
            state.change(withdrawal.address, |account| {
                account.balance += U256::from(withdrawal.amount) * 1_000_000_000u64;
            });
        }
        assert_eq!(body.withdrawals.as_deref(), Some(withdrawals), "block {number}: withdrawals");
        let chosen_base_fee = header.header.base_fee_per_gas != Some(by_rules);
        let transactions = done.into_iter().map(|(sent, _)| sent).collect();
        let edited = self.edited;
        if self.wished_time.take().is_some() {
            self.offset = header.header.timestamp as i64 * 1_000 - self.clock as i64;
        }
        self.wished_fee = None;
        self.push(Block { header, transactions, logs, state, edited, chosen_base_fee });
        self.check_newest(view, 1);
        self.follow(Vec::new(), |_| true);
    }

    /// Executes the pool's transactions in a block, best first, while they fit. `gas_used` returns the gas that each
    /// used.
    fn fill(
        &self,
        state: &mut State,
        header: &Header,
        mut gas_used: impl FnMut(usize, &Sent) -> u64,
    ) -> Vec<(Rc<Sent>, Outcome)> {
        let base_fee = header.base_fee_per_gas.expect("since London");
        let blob_base_fee = BlobParams::bpo2().calc_blob_fee(header.excess_blob_gas.expect("since Cancun"));
        let mut runs: Vec<std::collections::VecDeque<Waiting>> = self
            .pool
            .senders()
            .iter()
            .map(|sender| self.pool.pending(*sender, &self.state.account(*sender)).into())
            .collect();
        let mut done: Vec<(Rc<Sent>, Outcome)> = Vec::new();
        let (mut gas, mut blobs) = (0, 0);
        while gas + 21_000 <= header.gas_limit {
            let pays = |waiting: &Waiting| {
                let blobs_paid = !waiting.sent.is_blob() || waiting.sent.blob_fee_cap() >= blob_base_fee.into();
                let tip = waiting.sent.body().effective_tip(Some(base_fee)).filter(|_| blobs_paid)?;
                let tip = if self.order == TransactionOrder::Fees { tip } else { U256::zero() };
                Some((tip, Reverse(waiting.arrival)))
            };
            let best = runs.iter_mut().filter_map(|run| Some((pays(run.front()?)?, run))).max_by_key(|(key, _)| *key);
            let Some((_, run)) = best else { break };
            let sent = run.front().expect("it is not empty").sent.clone();
            let body = sent.body();
            let count = body.blob_versioned_hashes().len() as u64;
            let account = state.account(sent.sender);
            let refused = body.gas_limit() > header.gas_limit - gas
                || blobs + count > BlobParams::bpo2().max_blob_count
                || account.nonce != body.nonce()
                || sent.cost().is_none_or(|cost| cost > account.balance)
                || may_not_sign(&sent, &account);
            if refused {
                run.clear();
                continue;
            }
            run.pop_front();
            let used = gas_used(done.len(), &sent);
            let outcome = state.run(&sent, header, blob_base_fee, used);
            let hash = sent.hash;
            assert_eq!(outcome.gas.unwrap_or(used), used, "block {}: gas used by {hash:#x}", header.number);
            assert!((21_000..=body.gas_limit()).contains(&used), "gas used by {hash:#x}: {used}");
            gas += used;
            blobs += count;
            done.push((sent, outcome));
        }
        done
    }

    /// Adds the blocks that were mined until no transaction was left that a block could include.
    pub(super) fn mined_waiting(&mut self, view: &dyn View) {
        while view.head().number > self.head_number() {
            self.sealed(view, &[]);
            assert!(!self.head().transactions.is_empty(), "block {} need not have been made", self.head_number());
        }
        let header = self.next_header();
        let mut state = self.state.clone();
        state.begin_block(&header);
        self.fill(&mut state, &header, |_, sent| panic!("{:#x} waits but could be in a block", sent.hash));
    }

    /// Like [`mined_waiting`](Self::mined_waiting) with instant mining; otherwise does nothing.
    pub(super) fn changed(&mut self, view: &dyn View) {
        if self.mining.is_instant() {
            self.mined_waiting(view);
        }
    }

    /// Replaces the newest blocks by the same number of empty ones.
    pub(super) fn reorganized(&mut self, view: &dyn View, count: u64) {
        let removed = self.pop(self.head_number() - count);
        for replaced in &removed {
            let number = self.head_number() + 1;
            let header = view.header(number.into()).expect("readable").expect("a new block");
            let unwished = self.header_with(self.now(), self.base_fee_by_rules());
            let expected = Header { extra_data: replaced.as_bytes().into(), ..unwished };
            assert_known(&header.header, &expected);
            assert_eq!(view.body(number.into()).expect("readable").expect("a body").transactions, []);
            let mut state = self.state.clone();
            state.begin_block(&header.header);
            let (transactions, logs) = (Vec::new(), Vec::new());
            self.push(Block { header, transactions, logs, state, edited: false, chosen_base_fee: false });
        }
        self.check_newest(view, count);
        self.follow(removed, |_| true);
    }

    /// Removes blocks down to the block `ancestor` from the chain. Returns their hashes, oldest first.
    fn pop(&mut self, ancestor: BlockNumber) -> Vec<H256> {
        let removed = self.canonical.split_off(ancestor as usize + 1);
        for hash in &removed {
            for sent in &self.blocks[hash].transactions {
                self.positions.remove(&sent.hash);
            }
        }
        self.state = self.head().state.clone();
        self.edited = false;
        removed
    }

    /// Appends a block. It replaces a side block with the same hash, which may include edits that had no effect.
    fn push(&mut self, block: Block) {
        self.push_known(block.header.hash, Rc::new(block));
    }

    fn push_known(&mut self, hash: H256, block: Rc<Block>) {
        for (index, sent) in block.transactions.iter().enumerate() {
            let twice = self.positions.insert(sent.hash, (block.number(), index));
            assert_eq!(twice, None, "{:#x} is on the chain twice", sent.hash);
        }
        self.state = block.state.clone();
        self.edited = false;
        self.canonical.push(hash);
        self.blocks.insert(hash, block);
    }

    /// Checks the newest blocks with the oracle.
    fn check_newest(&self, view: &dyn View, count: u64) {
        if count > 0 {
            let head = self.head_number();
            oracle::check_blocks(view, head + 1 - count..=head, &self.departures(head + 1 - count));
        }
    }

    /// The departures from consensus rules in the canonical blocks from `first` on.
    pub(super) fn departures(&self, first: BlockNumber) -> Departures {
        let blocks = || (first..=self.head_number()).map(|number| self.block(number));
        Departures {
            base_fees: blocks().filter(|block| block.chosen_base_fee).map(|block| block.number()).collect(),
            unsigned: blocks().filter(|block| block.is_unsigned()).map(|block| block.number()).collect(),
        }
    }

    /// Blocks, canonical or not, that another node would refuse, ascending.
    pub(super) fn edited_blocks(&self) -> BTreeSet<(BlockNumber, H256)> {
        let edited = self.blocks.values().filter(|block| block.edited || block.chosen_base_fee || block.is_unsigned());
        edited.map(|block| (block.number(), block.header.hash)).collect()
    }

    /// Updates the pool after `removed` blocks left the chain. Their transactions return if `may_return` allows.
    fn follow(&mut self, removed: Vec<H256>, may_return: impl Fn(H256) -> bool) {
        let mut returning = Vec::new();
        for sent in removed.iter().flat_map(|hash| &self.blocks[hash].transactions) {
            if self.positions.contains_key(&sent.hash) {
                continue;
            }
            if may_return(sent.hash) {
                returning.push((sent.clone(), self.mined_blobs.remove(&sent.hash)));
            } else {
                self.pool.set_back(sent.hash);
            }
        }
        let mined = self.pool.follow(&self.state, |hash| self.positions.contains_key(&hash));
        self.mined_blobs.extend(mined.iter().filter(|sent| sent.is_blob()).map(|sent| sent.hash));
        for (sent, has_blobs) in returning {
            self.pool.add_again(sent, &self.state, has_blobs);
        }
        self.pool.drop_signed(&self.state);
        self.pool.enforce(&self.state);
    }

    /// Edits the state at the head.
    pub(super) fn edit(&mut self, address: Address, change: impl FnOnce(&mut super::state::Account)) {
        self.state.change(address, change);
        self.edited = true;
        self.follow(Vec::new(), |_| true);
    }

    /// Takes a snapshot.
    pub(super) fn snapshot(&mut self, id: u64) {
        let snapshot = ModelSnapshot {
            head: self.head().header.hash,
            offset: self.offset,
            state: self.state.clone(),
            edited: self.edited,
            pool: self.pool.all().map(|waiting| waiting.sent.hash).collect(),
        };
        assert_eq!(id, self.next_snapshot, "number of the snapshot");
        self.next_snapshot += 1;
        self.snapshots.insert(id, snapshot);
    }

    /// Reverts to a snapshot. Returns false if it does not exist.
    pub(super) fn revert(&mut self, id: u64) -> bool {
        let Some(snapshot) = self.snapshots.get(&id).cloned() else { return false };
        self.snapshots.split_off(&id);
        self.pool.retain(&snapshot.pool);
        if self.head().header.hash != snapshot.head {
            let mut branch = Vec::new();
            let mut hash = snapshot.head;
            while self.canonical.get(self.blocks[&hash].number() as usize) != Some(&hash) {
                branch.push(hash);
                hash = self.blocks[&hash].header.header.parent_hash;
            }
            let removed = self.pop(self.blocks[&hash].number());
            for hash in branch.into_iter().rev() {
                self.push_known(hash, self.blocks[&hash].clone());
            }
            (self.state, self.edited) = (snapshot.state, snapshot.edited);
            self.follow(removed, |hash| snapshot.pool.contains(&hash));
        } else {
            (self.state, self.edited) = (snapshot.state, snapshot.edited);
        }
        self.follow(Vec::new(), |_| true);
        (self.offset, self.wished_time, self.wished_fee) = (snapshot.offset, None, None);
        true
    }

    /// Drops what does not survive a restart, and switches to another mining mode.
    pub(super) fn restart(&mut self, mining: Mining) {
        self.pool.restart();
        self.mined_blobs.clear();
        self.impersonated.clear();
        (self.offset, self.wished_time, self.wished_fee) = (0, None, None);
        self.mining = mining;
    }
}

/// Compares the fields that are known before a block is executed.
fn assert_known(actual: &Header, expected: &Header) {
    let known = |header: &Header| Header {
        number: header.number,
        parent_hash: header.parent_hash,
        timestamp: header.timestamp,
        base_fee_per_gas: header.base_fee_per_gas,
        gas_limit: header.gas_limit,
        beneficiary: header.beneficiary,
        mix_hash: header.mix_hash,
        excess_blob_gas: header.excess_blob_gas,
        extra_data: header.extra_data.clone(),
        ..Header::default()
    };
    assert_eq!(known(actual), known(expected), "header of block {}", expected.number);
}
