//! A small chain on the reference backend for the tests of the pool and the filters.
//!
//! Nothing is executed: the transactions of a block only increment their senders' nonces. A signature's `r` is the
//! address of the signer.

use crate::assembly::ProtocolHeader;
use crate::backend::{
    BackendError, BackendHealth, CacheUse, HeadChange, HeadListener, MemoryBackend, Record, RecordKind, RecordWrite,
    StateBackend, View,
};
use crate::block::{BlockRef, Body, ExecutedBlock, RecoveredTransaction, SealedHeader};
use crate::clock::ManualClock;
use crate::crypto::{BlobError, BlobVerifier, SenderRecovery, SignatureError};
use crate::pool::{Pool, PoolLimits, PoolParts, TransactionOrder};
use crate::protocol::{ChainSpec, Fork};
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::consensus::{
    BlobSidecar, DynamicFeeTransaction, Header, Log, Receipt, ReceiptOutcome, Signature, Transaction, TransactionBody,
    TransactionType,
};
use node_types::{Address, BlockNumber, Bytes, H256, U256, keccak256};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

pub(crate) const CHAIN_ID: u64 = 1;
pub(crate) const GAS_LIMIT: u64 = 30_000_000;
pub(crate) const BASE_FEE: u64 = 1_000;
/// Balance of [`account`]s in wei.
pub(crate) const BALANCE: u64 = 10_000_000_000_000_000_000;
/// Accounts with a balance.
pub(crate) const ACCOUNTS: u8 = 40;
/// An account with 1,000 wei.
pub(crate) const POOR: u8 = 50;
/// An account with a contract.
pub(crate) const CONTRACT: u8 = 51;
/// An account that delegates to code.
pub(crate) const DELEGATED: u8 = 52;

pub(crate) fn account(number: u8) -> Address {
    Address::repeat_byte(number)
}

pub(crate) struct World {
    pub(crate) backend: Arc<FailingBackend>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) spec: Arc<ChainSpec>,
    follower: Arc<Follower>,
}

/// A reference backend that fails to write durable records while `fails` is set.
pub(crate) struct FailingBackend {
    inner: MemoryBackend,
    pub(crate) fails: AtomicBool,
    /// The next call of `view` waits for this receiver.
    stall: Mutex<Option<mpsc::Receiver<()>>>,
}

impl FailingBackend {
    /// Makes the next call of `view` wait until the returned sender sends a message or is dropped.
    pub(crate) fn stall(&self) -> mpsc::Sender<()> {
        let (sender, receiver) = mpsc::channel();
        *self.stall.lock() = Some(receiver);
        sender
    }

    /// Returns whether `view` was called since [`stall`](Self::stall).
    pub(crate) fn has_stalled(&self) -> bool {
        self.stall.lock().is_none()
    }
}

impl StateBackend for FailingBackend {
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        let stall = self.stall.lock().take();
        if let Some(stall) = stall {
            // The wait also ends when the sender is dropped.
            let _ = stall.recv();
        }
        self.inner.view()
    }

    fn append_recording(&self, block: ExecutedBlock, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.inner.append_recording(block, writes)
    }

    fn switch_recording(
        &self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
        writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        self.inner.switch_recording(ancestor, branch, writes)
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        self.inner.keep_side_block(block)
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.inner.subscribe(listener);
    }

    fn proves_quickly(&self) -> bool {
        self.inner.proves_quickly()
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(BackendError::Storage("the disk is full".into()));
        }
        self.inner.write_records_unsynced(writes)
    }

    fn sync_records(&self) -> Result<(), BackendError> {
        self.inner.sync_records()
    }

    fn caches(&self) -> Vec<CacheUse> {
        self.inner.caches()
    }

    fn health(&self) -> BackendHealth {
        self.inner.health()
    }

    fn write_records(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.write_records_unsynced(writes)
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.inner.record(kind, key)
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        self.inner.records(kind)
    }
}

/// Notifies only the newest pool, as after a restart.
#[derive(Default)]
struct Follower(Mutex<Option<Arc<Pool>>>);

impl HeadListener for Follower {
    fn head_changed(&self, change: &HeadChange) {
        if let Some(pool) = &*self.0.lock() {
            pool.on_head_change(change).unwrap();
        }
    }
}

/// The contents of a block.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    /// Distinguishes the block from others with the same number.
    pub(crate) salt: u64,
    pub(crate) transactions: Vec<RecoveredTransaction>,
    /// Logs emitted by an additional transaction.
    pub(crate) logs: Vec<Log>,
    /// Balances to set, in wei.
    pub(crate) balances: Vec<(Address, u64)>,
}

impl World {
    /// Creates a chain with only a genesis block, and all forks up to `fork` active.
    pub(crate) fn new(fork: Fork) -> Self {
        let spec = ChainSpec::at_genesis(CHAIN_ID, fork);
        let contract = Bytes::from(vec![0x60, 0x00]);
        let delegation = Bytes::from([&[0xef, 0x01, 0x00][..], account(9).as_bytes()].concat());
        let mut changes = StateChanges::default();
        for (number, balance, code) in (1..=ACCOUNTS).map(|number| (number, BALANCE, None)).chain([
            (POOR, 1_000, None),
            (CONTRACT, BALANCE, Some(contract)),
            (DELEGATED, BALANCE, Some(delegation)),
        ]) {
            let code_hash = keccak256(code.clone().unwrap_or_default());
            let state = AccountState { balance: balance.into(), code_hash, ..Default::default() };
            changes.accounts.insert(account(number), AccountChange { account: Some(state), ..Default::default() });
            changes.code.extend(code.map(|code| (code_hash, code)));
        }
        let genesis = |state_root| sealed(&Plan::default(), None, state_root, changes.clone());
        let state_root = match MemoryBackend::new(genesis(H256::zero())) {
            Err(BackendError::StateRootMismatch { computed, .. }) => computed,
            _ => unreachable!("no state has the root zero"),
        };
        let backend = MemoryBackend::new(genesis(state_root)).unwrap();
        let backend =
            Arc::new(FailingBackend { inner: backend, fails: AtomicBool::default(), stall: Mutex::default() });
        let follower = Arc::new(Follower::default());
        backend.subscribe(follower.clone());
        Self { backend, clock: Arc::new(ManualClock::at(1_700_000_000_000)), spec: Arc::new(spec), follower }
    }

    /// Opens a pool that follows the chain from now on, instead of any other.
    pub(crate) fn pool(&self, limits: PoolLimits) -> Arc<Pool> {
        let parts = PoolParts {
            spec: self.spec.clone(),
            order: TransactionOrder::Fees,
            next_header: Arc::new(ProtocolHeader { spec: self.spec.clone(), clock: self.clock.clone() }),
            backend: self.backend.clone(),
            recovery: Arc::new(NamedSigner),
            blobs: Arc::new(CountedBlobs),
            clock: self.clock.clone(),
        };
        let pool = Arc::new(Pool::open(parts, limits).unwrap());
        *self.follower.0.lock() = Some(pool.clone());
        pool
    }

    pub(crate) fn head(&self) -> BlockRef {
        self.backend.view().unwrap().head()
    }

    /// Appends a block.
    pub(crate) fn mine(&self, plan: Plan) -> BlockRef {
        self.reorganize(self.head().number, vec![plan]).added[0]
    }

    /// Replaces all blocks above `ancestor`.
    pub(crate) fn reorganize(&self, ancestor: BlockNumber, plans: Vec<Plan>) -> HeadChange {
        let view = self.backend.view().unwrap();
        let mut parent = view.header(ancestor.into()).unwrap().unwrap();
        let mut all = StateChanges::default();
        let mut branch = Vec::new();
        for plan in plans {
            let mut changes = StateChanges::default();
            let state = |address: Address, changes: &StateChanges| {
                let changed = [changes, &all].into_iter().find_map(|changes| changes.accounts.get(&address)?.account);
                changed.unwrap_or_else(|| view.state(ancestor).unwrap().account(address).unwrap().unwrap_or_default())
            };
            for transaction in &plan.transactions {
                let nonce = transaction.transaction.body.nonce() + 1;
                let after = AccountState { nonce, ..state(transaction.sender, &changes) };
                changes.accounts.entry(transaction.sender).or_default().account = Some(after);
            }
            for (address, balance) in &plan.balances {
                let after = AccountState { balance: (*balance).into(), ..state(*address, &changes) };
                changes.accounts.entry(*address).or_default().account = Some(after);
            }
            all.merge(&changes);
            let state_root = view.state(ancestor).unwrap().root_after(&all).unwrap();
            let block = sealed(&plan, Some(&parent), state_root, changes);
            parent = block.header.clone();
            branch.push(block);
        }
        self.backend.switch(ancestor, branch).unwrap()
    }
}

fn sealed(plan: &Plan, parent: Option<&SealedHeader>, state_root: H256, changes: StateChanges) -> ExecutedBlock {
    let number = parent.map_or(0, |parent| parent.header.number + 1);
    let parent_hash = parent.map_or(H256::zero(), |parent| parent.hash);
    let mut transactions = plan.transactions.clone();
    let mut receipts = vec![receipt(Vec::new()); transactions.len()];
    if !plan.logs.is_empty() {
        let transaction = signed(TransactionBody::DynamicFee(transfer(0)), account(99));
        let hash = keccak256([&plan.salt.to_be_bytes()[..], &number.to_be_bytes()].concat());
        transactions.push(RecoveredTransaction { transaction, hash, sender: account(99) });
        receipts.push(receipt(plan.logs.clone()));
    }
    let header = Header {
        parent_hash,
        state_root,
        number,
        gas_limit: GAS_LIMIT,
        gas_used: GAS_LIMIT / 2,
        timestamp: 12 * number,
        logs_bloom: plan.logs.iter().collect(),
        base_fee_per_gas: Some(BASE_FEE),
        blob_gas_used: Some(0),
        excess_blob_gas: Some(0),
        ..Default::default()
    };
    let hash = keccak256([parent_hash.as_bytes(), &plan.salt.to_be_bytes(), &number.to_be_bytes()].concat());
    ExecutedBlock {
        header: Arc::new(SealedHeader { hash, header, total_difficulty: U256::zero(), size: 0 }),
        body: Arc::new(Body { transactions, ommers: Vec::new(), withdrawals: None }),
        receipts: Arc::new(receipts),
        changes: Arc::new(changes),
    }
}

fn receipt(logs: Vec<Log>) -> Receipt {
    Receipt {
        transaction_type: TransactionType::DynamicFee,
        outcome: ReceiptOutcome::Success(true),
        cumulative_gas_used: 0,
        logs_bloom: logs.iter().collect(),
        logs,
    }
}

/// Returns a valid transaction.
pub(crate) fn transfer(nonce: u64) -> DynamicFeeTransaction {
    DynamicFeeTransaction {
        chain_id: CHAIN_ID,
        nonce,
        max_priority_fee_per_gas: 100.into(),
        max_fee_per_gas: 10_000.into(),
        gas_limit: 21_000,
        to: Some(account(9)),
        value: 1.into(),
        ..Default::default()
    }
}

pub(crate) fn signed(body: TransactionBody, sender: Address) -> Transaction {
    let r = U256::from_big_endian(sender.as_bytes());
    Transaction { body, signature: Signature { r, s: U256::one(), y_parity: false } }
}

/// Recovers the signer from `r`, and treats 2^255 as half the order of the curve.
struct NamedSigner;

impl SenderRecovery for NamedSigner {
    fn recover(&self, _message: H256, signature: &Signature, low_s: bool) -> Result<Address, SignatureError> {
        if signature.r.is_zero() {
            return Err(SignatureError::OutOfRange);
        }
        if low_s && signature.s.bit(255) {
            return Err(SignatureError::HighS);
        }
        Ok(Address::from_slice(&signature.r.to_big_endian()[12..]))
    }
}

/// Accepts all blobs if there is one for each hash.
struct CountedBlobs;

impl BlobVerifier for CountedBlobs {
    fn verify(&self, versioned_hashes: &[H256], sidecar: &BlobSidecar) -> Result<(), BlobError> {
        let (BlobSidecar::V0 { blobs, .. } | BlobSidecar::V1 { blobs, .. }) = sidecar;
        let (got, expected) = (blobs.len(), versioned_hashes.len());
        if got == expected { Ok(()) } else { Err(BlobError::Count { what: "blobs", got, expected }) }
    }

    fn with_cell_proofs(&self, sidecar: BlobSidecar) -> Result<BlobSidecar, BlobError> {
        match sidecar {
            BlobSidecar::V0 { blobs, commitments, proofs } => {
                let cell_proofs = proofs.iter().flat_map(|proof| vec![proof.clone(); 128]).collect();
                Ok(BlobSidecar::V1 { blobs, commitments, cell_proofs })
            }
            done => Ok(done),
        }
    }
}
