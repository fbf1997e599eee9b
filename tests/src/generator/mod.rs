//! Generates chains of any size on the development genesis. The same [`Shape`] produces the same chain.
//!
//! The first transaction deploys a contract. The first transaction of every other block stores a word in it, which
//! emits a log; the accounts of the development chain take turns. The other transactions first deploy *holders*: copies
//! of the contract, each with a different word. After that, each transfers one wei or stores a word, in a holder if
//! there are any, else in the contract.
//!
//! With accounts in the genesis, transfers go to them and words to those that are holders: most to a few of them, some
//! to any.

mod accounts;
mod contract;

pub use contract::{CONTRACT, EVENT, slot_key};

use crate::wallet::{self, CHAIN_ID};
use accounts::GenesisAccounts;
use node_chain::genesis::{DEV_GENESIS, LargeGenesis};
use node_chain::{ExportError, GenesisError, dev_genesis, export_blocks};
use node_core::assembly::{assemble, next_header};
use node_core::backend::{BackendError, MemoryBackend, StateBackend};
use node_core::block::{ExecutedBlock, RecoveredTransaction};
use node_core::context::Context;
use node_core::executor::ExecutionError;
use node_core::protocol::ChainSpec;
use node_dev::DevAccount;
use node_evm::EvmExecutor;
use node_store::files::DiskFolder;
use node_store::{Options, Store};
use node_types::consensus::{DynamicFeeTransaction, TransactionBody};
use node_types::{Address, BlockNumber, Bytes, H256, U256, keccak256};
use std::io::{self, Read, Write};
use std::sync::Arc;
use tempfile::TempDir;

/// Maximum transactions per block: they use less than half of the gas limit, so that the base fee falls to its minimum.
/// With more, it would grow from block to block until the accounts are empty.
pub const MAX_TRANSACTIONS_PER_BLOCK: usize = 200;

/// Maximum deployments of holders per block, which use more gas.
const MAX_DEPLOYMENTS: u64 = 120;

/// Time between blocks, in seconds.
const BLOCK_TIME: u64 = 12;

/// Gas limit of each transaction but the first: writing to an empty slot uses about 45,000.
const GAS_LIMIT: u64 = 60_000;

/// Gas limit of the first transaction.
const DEPLOY_GAS_LIMIT: u64 = 200_000;

/// The parameters of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of senders, 1 to 10.
    pub accounts: usize,
    /// Number of storage slots of the contract that are written, at least 1.
    pub slots: u64,
    /// Number of accounts with a storage slot, not counting the contract. A block of n transactions deploys n - 1 of
    /// them, at most 120.
    pub holders: u64,
    /// Number of receivers of transfers, at least 1.
    pub recipients: u64,
    /// Number of accounts in the genesis besides those of the development chain. Every tenth is a holder with four
    /// slots.
    pub genesis_accounts: u64,
    /// Transactions per block, including the deployment; at most [`MAX_TRANSACTIONS_PER_BLOCK`].
    pub transactions_per_block: usize,
    /// Selects one of the chains with otherwise equal parameters.
    pub seed: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            accounts: 10,
            slots: 10_000,
            holders: 0,
            recipients: u64::MAX,
            genesis_accounts: 0,
            transactions_per_block: 2,
            seed: 0,
        }
    }
}

/// Why a chain could not be generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// A block could not be assembled.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// A block could not be appended.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A block could not be written.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The genesis could not be written or read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The genesis is not one.
    #[error(transparent)]
    Genesis(#[from] GenesisError),
}

impl Shape {
    fn genesis(&self) -> GenesisAccounts {
        GenesisAccounts { seed: self.seed, count: self.genesis_accounts }
    }

    /// Writes the genesis file in geth's JSON format.
    pub fn write_genesis(&self, out: &mut impl Write) -> io::Result<()> {
        match self.genesis_accounts {
            0 => out.write_all(DEV_GENESIS.as_bytes()),
            _ => self.genesis().write(out),
        }
    }

    /// Returns up to `count` holders of the genesis.
    pub fn genesis_holders(&self, count: u64) -> impl Iterator<Item = Address> {
        let (accounts, all) = (self.genesis(), self.genesis().holders());
        (0..count.min(all)).map(move |index| accounts.holder(index * (all / count.min(all))))
    }
}

/// Generates the blocks of a chain one by one. Only the backend grows.
pub struct Generator {
    spec: Arc<ChainSpec>,
    backend: Arc<dyn StateBackend>,
    /// The folder of a chain that is not in memory.
    _folder: Option<TempDir>,
    executor: EvmExecutor,
    transactions: Transactions,
}

impl Generator {
    /// Returns a chain in memory that consists of the development genesis.
    ///
    /// # Panics
    /// If a value of `shape` is out of range.
    pub fn new(shape: Shape) -> Self {
        assert_eq!(shape.genesis_accounts, 0, "a large genesis is read from a file");
        let genesis = dev_genesis();
        let backend = MemoryBackend::new(genesis.block()).expect("the built-in genesis begins a chain");
        Self::on(shape, Arc::new(backend), None, genesis.spec)
    }

    /// Returns a chain in a temporary folder that consists of a genesis file that [`Shape::write_genesis`] has written.
    /// Memory stays bounded, however long the chain gets.
    pub fn on_genesis(shape: Shape, file: impl Read) -> Result<Self, GenerateError> {
        let genesis = LargeGenesis::read(file, &Context::unbounded(), tempfile::tempfile)?;
        let folder = tempfile::tempdir()?;
        let state = genesis.state().map(|part| part.map_err(|error| BackendError::Storage(error.into())));
        let disk = DiskFolder::open(folder.path()).map_err(|error| BackendError::Storage(error.into()))?;
        let options = Options::for_import();
        let store = Store::open_large_in(Arc::new(disk), genesis.genesis().block(), state, options)?;
        Ok(Self::on(shape, Arc::new(store), Some(folder), genesis.genesis().spec.clone()))
    }

    fn on(shape: Shape, backend: Arc<dyn StateBackend>, folder: Option<TempDir>, spec: ChainSpec) -> Self {
        let Shape { accounts, slots, recipients, transactions_per_block, .. } = shape;
        assert!((1..=wallet::accounts().len()).contains(&accounts), "accounts: {accounts}");
        assert!(slots > 0, "slots: 0");
        assert!(recipients > 0, "recipients: 0");
        assert!(transactions_per_block <= MAX_TRANSACTIONS_PER_BLOCK, "transactions a block: {transactions_per_block}");
        let spec = Arc::new(spec);
        Self {
            executor: EvmExecutor::new(spec.clone()),
            backend,
            _folder: folder,
            spec,
            transactions: Transactions {
                shape,
                senders: &wallet::accounts()[..accounts],
                holders: Vec::new(),
                transfers: 0,
                made: 0,
            },
        }
    }

    /// The chain generated so far.
    pub fn backend(&self) -> Arc<dyn StateBackend> {
        self.backend.clone()
    }

    /// The holders. Each has storage slot 0.
    pub fn holders(&self) -> &[Address] {
        &self.transactions.holders
    }

    /// The rules of the chain.
    pub fn spec(&self) -> &Arc<ChainSpec> {
        &self.spec
    }

    /// Generates the next block and appends it.
    pub fn next_block(&mut self) -> Result<ExecutedBlock, GenerateError> {
        let view = self.backend.view()?;
        let head = view.head().number;
        let parent = view.header(head.into())?.ok_or(BackendError::UnknownBlock(head))?;
        let header = next_header(&self.spec, &parent, parent.header.timestamp + BLOCK_TIME);
        let base_fee = header.base_fee_per_gas.unwrap_or_default();
        let transactions = &mut self.transactions;
        let per_block = transactions.shape.transactions_per_block;
        let assembled = assemble(&Context::unbounded(), &self.executor, &*view, header, Vec::new(), |execution| {
            let mut done = Vec::with_capacity(per_block);
            for _ in 0..per_block {
                let transaction = transactions.next(base_fee);
                execution.transact(&transaction)?;
                done.push(transaction);
            }
            Ok(done)
        })?;
        self.backend.append(assembled.block.clone())?;
        Ok(assembled.block)
    }

    /// Generates `blocks` blocks, and writes them in the format of chain files.
    pub fn write(&mut self, blocks: u64, writer: &mut impl Write) -> Result<(), GenerateError> {
        for _ in 0..blocks {
            let number: BlockNumber = self.next_block()?.header.header.number;
            export_blocks(&*self.backend.view()?, number..=number, writer)?;
        }
        Ok(())
    }
}

/// The transactions of a chain, in order.
struct Transactions {
    shape: Shape,
    senders: &'static [DevAccount],
    /// Number of holders deployed so far.
    holders: Vec<Address>,
    /// Number of transfers so far.
    transfers: u64,
    /// Number of transactions so far. As senders take turns, it determines the nonces.
    made: u64,
}

impl Transactions {
    /// The next transaction, for a block with a base fee of `base_fee` wei per gas.
    fn next(&mut self, base_fee: u64) -> RecoveredTransaction {
        let count = self.senders.len() as u64;
        let index = (self.made % count) as usize;
        let nonce = self.made / count;
        let dice = Dice::throw(self.shape.seed, self.made);
        let tip = dice.tip();
        let (to, value, input) = self.what(&dice, self.senders[index].address(), nonce);
        let transaction = self.senders[index].sign(TransactionBody::DynamicFee(DynamicFeeTransaction {
            chain_id: CHAIN_ID,
            nonce,
            max_priority_fee_per_gas: tip,
            max_fee_per_gas: tip + base_fee,
            gas_limit: if to.is_none() { DEPLOY_GAS_LIMIT } else { GAS_LIMIT },
            to,
            value: value.into(),
            input,
            access_list: Vec::new(),
        }));
        self.made += 1;
        RecoveredTransaction { hash: transaction.hash(), transaction, sender: self.senders[index].address() }
    }

    /// Receiver, value and input of the next transaction, which `sender` signs.
    fn what(&mut self, dice: &Dice, sender: Address, nonce: u64) -> (Option<Address>, u64, Bytes) {
        if self.made == 0 {
            return (None, 0, contract::creation_code());
        }
        let place = self.made % self.shape.transactions_per_block as u64;
        let first_of_block = place == 0;
        if (1..=MAX_DEPLOYMENTS).contains(&place) && (self.holders.len() as u64) < self.shape.holders {
            self.holders.push(created(sender, nonce));
            return (None, 0, contract::holder_creation_code());
        }
        let genesis = self.shape.genesis();
        if !first_of_block && genesis.count > 0 {
            if !dice.stores() {
                return (Some(genesis.address(dice.skewed(genesis.count))), 1, Bytes::new());
            }
            let (holder, key) = (genesis.holder(dice.skewed(genesis.holders())), dice.number() % accounts::SLOTS);
            let store = contract::store(H256::from_low_u64_be(key), dice.value(), tag(self.shape.seed, self.made));
            return (Some(holder), 0, store);
        }
        if !first_of_block && !dice.stores() {
            let recipient = recipient(self.shape.seed, self.transfers % self.shape.recipients);
            self.transfers += 1;
            return (Some(recipient), 1, Bytes::new());
        }
        let (to, key) = if first_of_block || self.holders.is_empty() {
            (CONTRACT, slot_key(dice.number() % self.shape.slots))
        } else {
            (self.holders[(dice.number() % self.holders.len() as u64) as usize], H256::zero())
        };
        (Some(to), 0, contract::store(key, dice.value(), tag(self.shape.seed, self.made)))
    }
}

/// The address of the contract that `sender` creates (Yellow Paper, section 7).
fn created(sender: Address, nonce: u64) -> Address {
    let mut stream = rlp::RlpStream::new_list(2);
    stream.append(&sender).append(&nonce);
    Address::from_slice(&keccak256(stream.out())[12..])
}

fn recipient(seed: u64, index: u64) -> Address {
    Address::from_slice(&keccak256([b"recipient".as_slice(), &seed.to_be_bytes(), &index.to_be_bytes()].concat())[12..])
}

/// The tag of transaction number `index`.
fn tag(seed: u64, index: u64) -> H256 {
    keccak256([b"tag".as_slice(), &seed.to_be_bytes(), &index.to_be_bytes()].concat())
}

/// The random choices of one transaction: a hash of the seed and its index. Each choice uses different bytes.
struct Dice(H256);

impl Dice {
    fn throw(seed: u64, index: u64) -> Self {
        Self(keccak256([seed.to_be_bytes(), index.to_be_bytes()].concat()))
    }

    /// Whether the transaction stores a word.
    fn stores(&self) -> bool {
        self.0[0].is_multiple_of(2)
    }

    /// 0.001 to 0.256 gwei, in wei per gas.
    fn tip(&self) -> U256 {
        U256::from(self.0[1]) * 1_000_000 + 1_000_000
    }

    fn number(&self) -> u64 {
        u64::from_be_bytes(std::array::from_fn(|index| self.0[2 + index]))
    }

    /// A number below `bound`, of a skewed distribution: 0, 1 to 2, 3 to 6, 7 to 14 and so on are equally probable.
    fn skewed(&self, bound: u64) -> u64 {
        let octave = u32::from(self.0[10]) % (bound.ilog2() + 1);
        let within = self.number() % (1 << octave);
        ((1 << octave) + within - 1) % bound
    }

    /// Never zero, because writing zero uses less gas.
    fn value(&self) -> U256 {
        U256::from_big_endian(&self.0[12..]) + 1
    }
}

#[cfg(test)]
mod tests;
