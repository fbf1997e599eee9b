//! Writing of dumps.

use crate::wire::{Header, Hex, Transaction, Withdrawal};
use node_core::backend::{BackendError, View};
use node_core::block::{Body, RecoveredTransaction, SealedHeader};
use node_core::context::Context;
use node_core::producer::{ProducerError, WholeAccounts, WholeChain};
use node_core::state::AccountState;
use node_types::U256;
use node_types::buffer::BufferFull;
use node_types::consensus::{Bloom, Log, Receipt, ReceiptOutcome};
use node_types::wire::{AddressData, BytesData, Data, HashData, Word};
use serde::ser::{Error, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Arc;

/// A dump. Anvil requires the fields to be present.
#[derive(Serialize)]
struct Written<'a> {
    block: Environment,
    accounts: Accounts<'a>,
    best_block_number: u64,
    #[serde(serialize_with = "write_blocks")]
    blocks: &'a dyn View,
    #[serde(serialize_with = "write_transactions")]
    transactions: &'a dyn View,
    /// Older states, which are not written.
    historical_states: Option<()>,
}

/// The environment of the head.
#[derive(Serialize)]
struct Environment {
    number: Hex<u64>,
    beneficiary: AddressData,
    timestamp: Hex<u64>,
    gas_limit: u64,
    basefee: u64,
    difficulty: Hex<U256>,
    prevrandao: HashData,
    blob_excess_gas_and_price: Option<BlobPrice>,
    slot_num: u64,
}

#[derive(Serialize)]
struct BlobPrice {
    excess_blob_gas: u64,
    blob_gasprice: u64,
}

/// The accounts, which are written while they are read. Serializers have no errors but their own, so the first failure of a
/// read is kept here.
struct Accounts<'a> {
    all: RefCell<WholeAccounts<'a>>,
    failure: &'a RefCell<Option<ProducerError>>,
}

impl<'a> Accounts<'a> {
    fn read<T, E: Error>(&self, read: impl FnOnce(&mut WholeAccounts<'a>) -> Result<T, ProducerError>) -> Result<T, E> {
        read(&mut self.all.borrow_mut()).map_err(|error| {
            let text = E::custom(&error);
            self.failure.replace(Some(error));
            text
        })
    }
}

impl Serialize for Accounts<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        while let Some((address, account)) = self.read(WholeAccounts::next_account)? {
            let AccountState { nonce, balance, code_hash } = account;
            let code = Data(self.read(|all| all.code(code_hash))?);
            map.serialize_entry(&Data(address), &Account { nonce, balance: Hex(balance), code, storage: Slots(self) })?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Account<'s, 'a> {
    nonce: u64,
    balance: Hex<U256>,
    code: BytesData,
    storage: Slots<'s, 'a>,
}

/// The slots of the account that was read last.
struct Slots<'s, 'a>(&'s Accounts<'a>);

impl Serialize for Slots<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        while let Some((slot, value)) = self.0.read(WholeAccounts::next_slot)? {
            map.serialize_entry(&Data(slot), &Word(value))?;
        }
        map.end()
    }
}

/// A block of a chain.
struct StoredBlock {
    header: Arc<SealedHeader>,
    body: Arc<Body>,
    receipts: Arc<Vec<Receipt>>,
}

impl StoredBlock {
    fn read(view: &dyn View, number: u64) -> Result<Self, BackendError> {
        let (header, body) = (view.header(number.into())?, view.body(number.into())?);
        match (header, body, view.receipts(number.into())?) {
            (Some(header), Some(body), Some(receipts)) => Ok(Self { header, body, receipts }),
            _ => Err(BackendError::UnknownBlock(number)),
        }
    }
}

fn write_blocks<S: Serializer>(view: &&dyn View, to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(None)?;
    for number in view.first()..=view.head().number {
        let block = StoredBlock::read(*view, number).map_err(S::Error::custom)?;
        list.serialize_element(&WrittenBlock::of(&block))?;
    }
    list.end()
}

fn write_transactions<S: Serializer>(view: &&dyn View, to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(None)?;
    for number in view.first()..=view.head().number {
        let block = StoredBlock::read(*view, number).map_err(S::Error::custom)?;
        mined(&block).iter().try_for_each(|transaction| list.serialize_element(transaction))?;
    }
    list.end()
}

#[derive(Serialize)]
struct WrittenBlock {
    header: Header,
    transactions: Vec<Envelope>,
    ommers: Vec<Header>,
    withdrawals: Option<Vec<Withdrawal>>,
}

#[derive(Serialize)]
struct Envelope {
    transaction: Transaction,
    impersonated_sender: Option<AddressData>,
}

#[derive(Serialize)]
struct MinedTransaction {
    info: Info,
    receipt: WrittenReceipt,
    block_hash: HashData,
    block_number: u64,
}

#[derive(Serialize)]
struct Info {
    transaction_hash: HashData,
    transaction_index: u64,
    from: AddressData,
    to: Option<AddressData>,
    contract_address: Option<AddressData>,
    /// Calls, which are not written.
    traces: [(); 0],
    exit: &'static str,
    out: Option<BytesData>,
    nonce: u64,
    gas_used: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenReceipt {
    #[serde(rename = "type")]
    transaction_type: Hex<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Hex<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<HashData>,
    cumulative_gas_used: Hex<u64>,
    logs: Vec<WrittenLog>,
    logs_bloom: Data<Bloom>,
}

#[derive(Serialize)]
struct WrittenLog {
    address: AddressData,
    topics: Vec<HashData>,
    data: BytesData,
}

/// Why a dump was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteDumpError {
    /// The chain cannot be read, or may not.
    #[error(transparent)]
    Chain(ProducerError),
    /// The output does not take it.
    #[error(transparent)]
    Output(io::Error),
}

/// Writes a chain as the JSON of a dump, while it is read: `grant` is asked for memory as for
/// [`accounts`](WholeChain::accounts). Older states and the calls of transactions are left out. Of a chain that continues
/// another one, the accounts and slots are written that were read or changed, and the blocks from its first one on.
///
/// # Errors
/// [`WriteDumpError`].
pub fn write_dump(
    out: impl Write,
    chain: &WholeChain,
    context: &Context,
    grant: impl FnMut(usize) -> Result<(), BufferFull>,
) -> Result<(), WriteDumpError> {
    let view = &**chain.view();
    let failure = RefCell::default();
    let chain_error = |error: BackendError| WriteDumpError::Chain(error.into());
    let head = StoredBlock::read(view, view.head().number).map_err(chain_error)?;
    let accounts = chain.accounts(context, grant).map_err(WriteDumpError::Chain)?;
    let dump = Written {
        block: Environment::of(&head),
        accounts: Accounts { all: RefCell::new(accounts), failure: &failure },
        best_block_number: head.header.header.number,
        blocks: view,
        transactions: view,
        historical_states: None,
    };
    let written = serde_json::to_writer(out, &dump);
    match failure.take() {
        Some(error) => Err(WriteDumpError::Chain(error)),
        None => written.map_err(|error| WriteDumpError::Output(error.into())),
    }
}

impl Environment {
    fn of(block: &StoredBlock) -> Self {
        let header = &block.header.header;
        Self {
            number: Hex(header.number),
            beneficiary: Data(header.beneficiary),
            timestamp: Hex(header.timestamp),
            gas_limit: header.gas_limit,
            basefee: header.base_fee_per_gas.unwrap_or_default(),
            difficulty: Hex(header.difficulty),
            prevrandao: Data(header.mix_hash),
            // Anvil computes the price from the gas.
            blob_excess_gas_and_price: header
                .excess_blob_gas
                .map(|excess_blob_gas| BlobPrice { excess_blob_gas, blob_gasprice: 1 }),
            slot_num: 0,
        }
    }
}

impl WrittenBlock {
    fn of(block: &StoredBlock) -> Self {
        let StoredBlock { header, body, .. } = block;
        let envelope = |(index, recovered): (usize, &RecoveredTransaction)| Envelope {
            transaction: Transaction::mined(header, index, recovered),
            impersonated_sender: recovered.is_impersonating().then_some(Data(recovered.sender)),
        };
        Self {
            header: Header::of(header),
            transactions: body.transactions.iter().enumerate().map(envelope).collect(),
            ommers: body.ommers.iter().map(Header::of_ommer).collect(),
            withdrawals: body.withdrawals.as_ref().map(|all| all.iter().map(Withdrawal::of).collect()),
        }
    }
}

/// Returns the transactions of a block with their receipts.
fn mined(block: &StoredBlock) -> Vec<MinedTransaction> {
    let StoredBlock { header, body, receipts } = block;
    let mut used = 0;
    let all = body.transactions.iter().zip(&**receipts).enumerate();
    let mined = all.map(|(index, (recovered, receipt))| {
        let body = &recovered.transaction.body;
        let gas_used = receipt.cumulative_gas_used - used;
        used = receipt.cumulative_gas_used;
        let failed = receipt.outcome == ReceiptOutcome::Success(false);
        MinedTransaction {
            info: Info {
                transaction_hash: Data(recovered.hash),
                transaction_index: index as u64,
                from: Data(recovered.sender),
                to: body.to().map(Data),
                contract_address: body.to().is_none().then(|| Data(recovered.created_address())),
                traces: [],
                exit: if failed { "Revert" } else { "Stop" },
                out: None,
                nonce: body.nonce(),
                gas_used,
            },
            receipt: WrittenReceipt::of(receipt),
            block_hash: Data(header.hash),
            block_number: header.header.number,
        }
    });
    mined.collect()
}

impl WrittenReceipt {
    fn of(receipt: &Receipt) -> Self {
        let (status, root) = match receipt.outcome {
            ReceiptOutcome::Success(succeeded) => (Some(Hex(succeeded.into())), None),
            ReceiptOutcome::StateRoot(root) => (None, Some(Data(root))),
        };
        let log = |log: &Log| WrittenLog {
            address: Data(log.address),
            topics: log.topics.iter().copied().map(Data).collect(),
            data: Data(log.data.clone()),
        };
        Self {
            transaction_type: Hex(receipt.transaction_type as u64),
            status,
            root,
            cumulative_gas_used: Hex(receipt.cumulative_gas_used),
            logs: receipt.logs.iter().map(log).collect(),
            logs_bloom: Data(receipt.logs_bloom),
        }
    }
}
