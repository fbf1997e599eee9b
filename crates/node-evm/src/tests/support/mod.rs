//! A chain with a genesis block, on which tests execute blocks and calls.

pub(super) mod system_code;

use crate::EvmExecutor;
use node_core::backend::{BackendError, MemoryBackend, StateBackend, View};
use node_core::block::{ExecutedBlock, RecoveredTransaction, SealedHeader};
use node_core::context::Context;
use node_core::executor::{
    BlockOutcome, Call, CallOutcome, EstimateOutcome, ExecutionError, Executor, TransactionError,
};
use node_core::protocol::fees::next_base_fee;
use node_core::protocol::{ChainSpec, Fork};
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_types::consensus::{Header, LegacyTransaction, Receipt, Signature, Transaction, TransactionBody, Withdrawal};
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use std::sync::Arc;

pub(crate) const CHAIN_ID: u64 = 1337;
pub(crate) const ETHER: u64 = 1_000_000_000_000_000_000;
pub(crate) const BASE_FEE: u64 = 7;
pub(crate) const GAS_LIMIT: u64 = 60_000_000;
pub(crate) const DEPOSIT_CONTRACT: Address = node_types::H160([0xdd; 20]);

/// An account with 1,000 ether, which sends most transactions.
pub(crate) const ALICE: Address = node_types::H160([0xa1; 20]);
/// An account that does not exist at genesis.
pub(crate) const BOB: Address = node_types::H160([0xb0; 20]);
/// The account to which tests deploy code.
pub(crate) const CONTRACT: Address = node_types::H160([0xc0; 20]);
pub(crate) const MINER: Address = node_types::H160([0x3e; 20]);

/// Parses bytes from hex digits. Whitespace is skipped.
pub(crate) fn hex(digits: &str) -> Bytes {
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect::<Vec<_>>().into()
}

pub(crate) fn wei(amount: u64) -> U256 {
    U256::from(amount)
}

pub(crate) fn slot(number: u64) -> H256 {
    H256(U256::from(number).to_big_endian())
}

/// The genesis of a test chain.
pub(crate) struct Genesis {
    pub(crate) spec: ChainSpec,
    pub(crate) fork: Fork,
    pub(crate) state: StateChanges,
}

impl Genesis {
    /// Creates a genesis with all forks up to `fork` active, where Alice has 1,000 ether and system contracts are
    /// deployed.
    pub(crate) fn at(fork: Fork) -> Self {
        let spec = ChainSpec { deposit_contract: Some(DEPOSIT_CONTRACT), ..ChainSpec::at_genesis(CHAIN_ID, fork) };
        let mut genesis = Self { spec, fork, state: StateChanges::default() };
        genesis = genesis.balance(ALICE, wei(1000) * wei(ETHER));
        if fork >= Fork::Cancun {
            genesis = genesis.code(crate::BEACON_ROOTS_ADDRESS, system_code::BEACON_ROOTS);
        }
        if fork >= Fork::Prague {
            genesis = genesis
                .code(crate::HISTORY_STORAGE_ADDRESS, system_code::HISTORY_STORAGE)
                .code(crate::WITHDRAWAL_REQUESTS_ADDRESS, system_code::WITHDRAWAL_REQUESTS)
                .code(crate::CONSOLIDATION_REQUESTS_ADDRESS, system_code::CONSOLIDATION_REQUESTS);
        }
        genesis
    }

    pub(crate) fn account(&mut self, address: Address) -> &mut AccountChange {
        let change = self.state.accounts.entry(address).or_default();
        change.account.get_or_insert_default();
        change
    }

    fn with(mut self, address: Address, change: impl FnOnce(&mut AccountState)) -> Self {
        change(self.account(address).account.as_mut().unwrap());
        self
    }

    pub(crate) fn balance(self, address: Address, balance: U256) -> Self {
        self.with(address, |account| account.balance = balance)
    }

    pub(crate) fn nonce(self, address: Address, nonce: u64) -> Self {
        self.with(address, |account| account.nonce = nonce)
    }

    pub(crate) fn code(self, address: Address, code: &str) -> Self {
        self.bytecode(address, hex(code))
    }

    pub(crate) fn bytecode(mut self, address: Address, code: Bytes) -> Self {
        let hash = keccak256(&code);
        self.state.code.insert(hash, code);
        self.with(address, |account| account.code_hash = hash)
    }

    pub(crate) fn slot(mut self, address: Address, number: u64, value: u64) -> Self {
        self.account(address).storage.insert(slot(number), wei(value));
        self
    }

    pub(crate) fn without(mut self, address: Address) -> Self {
        self.state.accounts.remove(&address);
        self
    }

    pub(crate) fn build(self) -> World {
        let mut header = Header { gas_limit: GAS_LIMIT, difficulty: difficulty(self.fork), ..Header::default() };
        let backend = match MemoryBackend::new(executed(&header, self.state.clone())) {
            Err(BackendError::StateRootMismatch { computed, .. }) => {
                header.state_root = computed;
                MemoryBackend::new(executed(&header, self.state)).unwrap()
            }
            other => other.unwrap(),
        };
        let spec = Arc::new(self.spec);
        let executor = EvmExecutor::new(Arc::clone(&spec));
        World { view: backend.view().unwrap(), backend, executor, spec, fork: self.fork }
    }
}

fn difficulty(fork: Fork) -> U256 {
    if fork >= Fork::Paris { U256::zero() } else { U256::from(0x20000) }
}

/// Hashes of headers in these tests are not those of the protocol.
fn hash(header: &Header) -> H256 {
    keccak256(header.number.to_be_bytes())
}

fn executed(header: &Header, changes: StateChanges) -> ExecutedBlock {
    ExecutedBlock {
        header: Arc::new(SealedHeader {
            hash: hash(header),
            header: header.clone(),
            total_difficulty: U256::zero(),
            size: 0,
        }),
        body: Arc::default(),
        receipts: Arc::default(),
        changes: Arc::new(changes),
    }
}

/// A chain with its executor.
pub(crate) struct World {
    pub(crate) backend: MemoryBackend,
    pub(crate) view: Arc<dyn View>,
    pub(crate) executor: EvmExecutor,
    pub(crate) spec: Arc<ChainSpec>,
    pub(crate) fork: Fork,
}

impl World {
    /// Returns the header of a child of the head.
    pub(crate) fn next_header(&self) -> Header {
        let parent = self.head();
        let number = parent.number + 1;
        let fork = self.fork;
        Header {
            parent_hash: hash(&parent),
            number,
            timestamp: 12 * number,
            gas_limit: GAS_LIMIT,
            beneficiary: MINER,
            difficulty: difficulty(fork),
            mix_hash: H256::repeat_byte(0x99),
            base_fee_per_gas: next_base_fee(&self.spec, &parent).map(|_| BASE_FEE),
            excess_blob_gas: (fork >= Fork::Cancun).then_some(0),
            parent_beacon_block_root: (fork >= Fork::Cancun).then(|| H256::repeat_byte(0x88)),
            ..Header::default()
        }
    }

    pub(crate) fn head(&self) -> Header {
        let head = self.view.head();
        self.view.header(head.number.into()).unwrap().unwrap().header.clone()
    }

    /// Executes a child of the head.
    pub(crate) fn execute(&self, transactions: &[RecoveredTransaction]) -> Result<BlockOutcome, ExecutionError> {
        self.execute_with(&self.next_header(), transactions, &[], None)
    }

    pub(crate) fn execute_with(
        &self,
        header: &Header,
        transactions: &[RecoveredTransaction],
        ommers: &[Header],
        withdrawals: Option<&[Withdrawal]>,
    ) -> Result<BlockOutcome, ExecutionError> {
        let context = Context::unbounded();
        let mut block = self.executor.begin_block(&context, &*self.view, header)?;
        for transaction in transactions {
            block.transact(transaction)?;
        }
        block.finish(ommers, withdrawals)
    }

    /// Executes a child of the head and appends it.
    pub(crate) fn extend(&mut self, transactions: &[RecoveredTransaction]) -> BlockOutcome {
        let mut header = self.next_header();
        let outcome = self.execute_with(&header, transactions, &[], None).unwrap();
        header.state_root = self.view.state(header.number - 1).unwrap().root_after(&outcome.changes).unwrap();
        self.backend.append(executed(&header, outcome.changes.clone())).unwrap();
        self.view = self.backend.view().unwrap();
        outcome
    }

    /// Executes a block with one transaction and returns why it was refused.
    pub(crate) fn refusal(&self, transaction: RecoveredTransaction) -> Option<TransactionError> {
        match self.execute(&[transaction]) {
            Ok(_) => None,
            Err(ExecutionError::Refused(error)) => Some(error),
            Err(error) => panic!("{error:?}"),
        }
    }

    pub(crate) fn call(&self, call: &Call) -> Result<CallOutcome, ExecutionError> {
        self.call_within(&Context::unbounded().with_gas_budget(50_000_000), call)
    }

    pub(crate) fn call_within(&self, context: &Context, call: &Call) -> Result<CallOutcome, ExecutionError> {
        let header = Header { base_fee_per_gas: Some(BASE_FEE), beneficiary: MINER, ..self.head() };
        self.executor.call(context, &*self.view, &header, call)
    }

    pub(crate) fn estimate(&self, call: &Call) -> Result<EstimateOutcome, ExecutionError> {
        let context = Context::unbounded().with_gas_budget(50_000_000);
        let header = Header { base_fee_per_gas: Some(BASE_FEE), beneficiary: MINER, ..self.head() };
        self.executor.estimate(&context, &*self.view, &header, call)
    }
}

/// Returns the only receipt of a block.
pub(crate) fn receipt(outcome: &BlockOutcome) -> &Receipt {
    assert_eq!(outcome.receipts.len(), 1);
    &outcome.receipts[0]
}

pub(crate) fn word(bytes: &[u8]) -> U256 {
    assert_eq!(bytes.len(), 32, "{bytes:02x?}");
    U256::from_big_endian(bytes)
}

/// Returns a transaction from Alice to the contract with enough gas.
pub(crate) fn legacy() -> LegacyTransaction {
    LegacyTransaction { gas_price: wei(10), gas_limit: 1_000_000, to: Some(CONTRACT), ..LegacyTransaction::default() }
}

/// Returns a transaction as if `sender` had signed it.
pub(crate) fn signed_by(sender: Address, body: TransactionBody) -> RecoveredTransaction {
    let signature = Signature { r: U256::one(), s: U256::one(), y_parity: false };
    RecoveredTransaction { transaction: Transaction { body, signature }, hash: H256::zero(), sender }
}

pub(crate) fn signed(body: TransactionBody) -> RecoveredTransaction {
    signed_by(ALICE, body)
}

pub(crate) fn send(transaction: LegacyTransaction) -> RecoveredTransaction {
    signed(TransactionBody::Legacy(transaction))
}

/// Returns an account that has only a balance.
pub(crate) fn holder(balance: U256) -> AccountState {
    AccountState { nonce: 0, balance, code_hash: KECCAK_EMPTY }
}
