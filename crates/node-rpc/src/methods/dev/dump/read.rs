//! Reading of dumps.

use crate::wire::{AccessListItem, Authorization, Loose, Withdrawal};
use flate2::read::GzDecoder;
use node_core::block::RecoveredTransaction;
use node_core::executor::Call;
use node_core::producer::{LoadedBlock, ProducerError, WholeAccount};
use node_core::protocol::Fork;
use node_core::protocol::gas::BLOCK_GAS_LIMITS;
use node_types::consensus::{
    Bloom, Header, Log, Receipt, ReceiptOutcome, Signature, Transaction, TransactionBody, TransactionType,
};
use node_types::wire::{AddressData, BytesData, HashData, StorageKey};
use node_types::{Address, H256, U256};
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Maximum estimated memory of the accounts of a dump in bytes. A test reaches a smaller one in less time.
const MAX_MEMORY: usize = if cfg!(test) { 1 << 20 } else { 512 << 20 };

/// Estimated memory of an account in bytes, without code and storage.
const ACCOUNT: usize = 256;

/// Estimated memory of a slot in bytes.
const SLOT: usize = 96;

/// Number of bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// The byte order mark that some editors put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How compressed data begins (RFC 1952).
const GZIP: &[u8] = b"\x1f\x8b";

/// The content of a dump.
#[derive(Clone, Debug, Default)]
pub struct Dump {
    pub accounts: BTreeMap<Address, WholeAccount>,
    /// The timestamp of block 0 in Unix seconds, or one before the first block of the dump; `None` without blocks.
    pub first_timestamp: Option<u64>,
    /// From block 1 on, without gaps; empty if the dump has no such blocks.
    pub blocks: Vec<LoadedBlock>,
    /// What the dump has and cannot be loaded, for messages.
    pub not_loaded: Vec<String>,
}

/// The parts of a dump that are read.
#[derive(Default)]
struct Loaded {
    block: Option<Box<RawValue>>,
    accounts: Option<Accounts>,
    blocks: Vec<ReadBlock>,
    transactions: Vec<ReadMined>,
    best_block_number: Option<Loose<u64>>,
    historical_states: Option<IgnoredAny>,
    /// The names of the others. Their values are not kept in memory, as a flattened field would be.
    unknown: Vec<String>,
}

impl<'de> Deserialize<'de> for Loaded {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(LoadedVisitor)
    }
}

struct LoadedVisitor;

impl<'de> Visitor<'de> for LoadedVisitor {
    type Value = Loaded;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a state dump")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loaded, A::Error> {
        let mut loaded = Loaded::default();
        while let Some(name) = map.next_key::<String>()? {
            match &*name {
                "block" => loaded.block = map.next_value()?,
                "accounts" => loaded.accounts = Some(map.next_value()?),
                "blocks" => loaded.blocks = map.next_value()?,
                "transactions" => loaded.transactions = map.next_value()?,
                "best_block_number" => loaded.best_block_number = map.next_value()?,
                "historical_states" => loaded.historical_states = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    loaded.unknown.push(name);
                }
            }
        }
        Ok(loaded)
    }
}

/// The accounts of a dump, of at most [`MAX_MEMORY`].
struct Accounts(BTreeMap<Address, WholeAccount>);

impl<'de> Deserialize<'de> for Accounts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(AccountsVisitor)
    }
}

struct AccountsVisitor;

impl<'de> Visitor<'de> for AccountsVisitor {
    type Value = Accounts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("accounts by their addresses")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Accounts, A::Error> {
        let (mut accounts, mut memory) = (BTreeMap::new(), 0);
        while let Some((address, account)) = map.next_entry::<AddressData, LoadedAccount>()? {
            let LoadedAccount { nonce, balance, code, storage: Slots(storage) } = account;
            let code = code.unwrap_or_default().0;
            memory += ACCOUNT + code.len() + storage.len() * SLOT;
            check_memory(memory)?;
            accounts.insert(address.0, WholeAccount { nonce: nonce.0, balance: balance.0, code, storage });
        }
        Ok(Accounts(accounts))
    }
}

fn check_memory<E: serde::de::Error>(memory: usize) -> Result<(), E> {
    if memory <= MAX_MEMORY {
        return Ok(());
    }
    Err(E::custom(format_args!("its accounts take more than {} MiB of memory", MAX_MEMORY >> 20)))
}

/// The storage of an account.
#[derive(Default)]
struct Slots(BTreeMap<H256, U256>);

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(SlotsVisitor)
    }
}

struct SlotsVisitor;

impl<'de> Visitor<'de> for SlotsVisitor {
    type Value = Slots;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values by their slots")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Slots, A::Error> {
        let mut slots = BTreeMap::new();
        while let Some((slot, value)) = map.next_entry::<String, Loose<U256>>()? {
            let key = slot.parse::<StorageKey>();
            let key = key.map_err(|error| serde::de::Error::custom(format_args!("slot {slot}: {error}")))?;
            slots.insert(key.0, value.0);
            check_memory(slots.len() * SLOT)?;
        }
        Ok(Slots(slots))
    }
}

/// The environment of the head.
#[derive(Deserialize)]
struct ReadEnvironment {
    number: Loose<u64>,
    timestamp: Loose<u64>,
}

#[derive(Deserialize)]
struct LoadedAccount {
    nonce: Loose<u64>,
    balance: Loose<U256>,
    #[serde(default)]
    code: Option<BytesData>,
    #[serde(default)]
    storage: Slots,
}

#[derive(Deserialize)]
struct ReadBlock {
    header: ReadHeader,
    /// As text, which takes less memory than values. One at a time is decoded.
    #[serde(default)]
    transactions: Vec<Box<RawValue>>,
    #[serde(default)]
    ommers: Vec<IgnoredAny>,
    #[serde(default)]
    withdrawals: Option<Vec<Withdrawal>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadHeader {
    number: Loose<u64>,
    miner: AddressData,
    timestamp: Loose<u64>,
    gas_limit: Loose<u64>,
    gas_used: Loose<u64>,
    #[serde(default)]
    difficulty: Loose<U256>,
    #[serde(default)]
    extra_data: Option<BytesData>,
    #[serde(default)]
    mix_hash: Option<HashData>,
    #[serde(default)]
    base_fee_per_gas: Option<Loose<u64>>,
    #[serde(default)]
    withdrawals_root: Option<HashData>,
    #[serde(default)]
    blob_gas_used: Option<Loose<u64>>,
    #[serde(default)]
    excess_blob_gas: Option<Loose<u64>>,
    #[serde(default)]
    parent_beacon_block_root: Option<HashData>,
    #[serde(default)]
    requests_hash: Option<HashData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadTransaction {
    #[serde(rename = "type", default)]
    transaction_type: Option<Loose<u64>>,
    #[serde(default)]
    chain_id: Option<Loose<u64>>,
    nonce: Loose<u64>,
    #[serde(alias = "gasLimit")]
    gas: Loose<u64>,
    #[serde(default)]
    gas_price: Option<Loose<U256>>,
    #[serde(default)]
    max_fee_per_gas: Option<Loose<U256>>,
    #[serde(default)]
    max_priority_fee_per_gas: Option<Loose<U256>>,
    #[serde(default)]
    max_fee_per_blob_gas: Option<Loose<U256>>,
    #[serde(default)]
    to: Option<AddressData>,
    value: Loose<U256>,
    #[serde(alias = "data")]
    input: BytesData,
    #[serde(default)]
    access_list: Vec<AccessListItem>,
    #[serde(default)]
    blob_versioned_hashes: Vec<HashData>,
    #[serde(default)]
    authorization_list: Vec<Authorization>,
    r: Loose<U256>,
    s: Loose<U256>,
    #[serde(default)]
    v: Option<Loose<U256>>,
    #[serde(default)]
    y_parity: Option<Loose<u64>>,
}

/// A transaction with its receipt.
#[derive(Deserialize)]
struct ReadMined {
    info: Info,
    receipt: ReadReceipt,
    block_number: Loose<u64>,
}

#[derive(Deserialize)]
struct Info {
    transaction_index: Loose<u64>,
    from: AddressData,
    #[serde(default)]
    traces: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadReceipt {
    #[serde(rename = "type", default)]
    transaction_type: Loose<u64>,
    #[serde(default)]
    status: Option<Box<RawValue>>,
    #[serde(default)]
    root: Option<HashData>,
    cumulative_gas_used: Loose<u64>,
    logs: Vec<ReadLog>,
}

#[derive(Deserialize)]
struct ReadLog {
    address: AddressData,
    topics: Vec<HashData>,
    data: BytesData,
}

/// The bytes are not a valid dump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a state dump: {0}")]
pub struct InvalidDump(String);

impl From<serde_json::Error> for InvalidDump {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

/// Decodes a dump, which may be compressed with gzip, while it is read. It may have `limit` bytes of decompressed JSON.
///
/// # Errors
/// [`InvalidDump`] if `dump` is not a dump, cannot be read, is too long, or if its accounts take too much memory.
pub fn read_dump(mut dump: impl Read, limit: u64) -> Result<Dump, InvalidDump> {
    let unreadable = |error: io::Error| InvalidDump(error.to_string());
    let mut start = Vec::new();
    dump.by_ref().take(GZIP.len() as u64).read_to_end(&mut start).map_err(unreadable)?;
    // Files, and older versions of anvil, are not compressed.
    let is_compressed = start == GZIP;
    let whole = Cursor::new(start).chain(dump);
    let unpacked: Box<dyn Read + '_> =
        if is_compressed { Box::new(GzDecoder::new(BufReader::with_capacity(PIECE, whole))) } else { Box::new(whole) };
    let mut json = BufReader::with_capacity(PIECE, Limited { from: unpacked, left: limit, limit });
    let failed = |error: io::Error| {
        let is_long = error.get_ref().is_some_and(|error| error.is::<TooLong>());
        let reason = if is_compressed && !is_long { "it is compressed with gzip, and damaged: " } else { "" };
        InvalidDump(format!("{reason}{error}"))
    };
    match first_byte(&mut json).map_err(failed)? {
        Some(b'{') => {}
        found => {
            let found = if found.is_none() { "it is empty" } else { "it is something else" };
            return Err(InvalidDump(format!("expected a JSON object, which may be compressed with gzip, but {found}")));
        }
    }
    let loaded = serde_json::from_reader(json).map_err(|error| match error.is_io() {
        true => failed(error.into()),
        false => error.into(),
    });
    let Loaded { block, accounts, blocks, transactions, best_block_number, historical_states, unknown } = loaded?;
    let Some(Accounts(accounts)) = accounts else { return Err(InvalidDump("it has no accounts".to_owned())) };
    let mut not_loaded = Vec::new();
    if historical_states.is_some() {
        not_loaded.push("the states of earlier blocks, which read as pruned".to_owned());
    }
    if transactions.iter().any(|mined| mined.info.traces.as_ref().is_some_and(|traces| !traces.is_empty())) {
        not_loaded.push("the calls of its transactions (traces)".to_owned());
    }
    if !unknown.is_empty() {
        not_loaded.push(format!("fields that are not known: {}", unknown.join(", ")));
    }
    blocks.iter().try_for_each(|block| block.header.check())?;
    let first = blocks.iter().map(|block| &block.header).min_by_key(|header| header.number.0);
    let first_timestamp = first.map(|first| first.timestamp.0.saturating_sub(first.number.0.min(1)));
    let blocks = chain(blocks, transactions, &mut not_loaded).unwrap_or_else(|reason| {
        not_loaded.push(format!("the blocks: {reason}"));
        Vec::new()
    });
    let environment = block.and_then(|block| {
        let environment = parsed::<ReadEnvironment>(&block);
        environment.map_err(|error| not_loaded.push(format!("the field block: {error}"))).ok()
    });
    not_loaded.extend(contradictions(blocks.last(), environment.as_ref(), best_block_number));
    Ok(Dump { accounts, first_timestamp, blocks, not_loaded })
}

/// Skips a byte order mark and white space. Returns the byte that follows, or `None` at the end.
fn first_byte(json: &mut impl BufRead) -> io::Result<Option<u8>> {
    let is_skipped = |byte: &u8| byte.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(byte);
    loop {
        let bytes = json.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let skipped = bytes.iter().take_while(|byte| is_skipped(byte)).count();
        let first = bytes.get(skipped).copied();
        json.consume(skipped);
        if first.is_some() {
            return Ok(first);
        }
    }
}

/// Reads at most a number of bytes, and fails if there are more.
struct Limited<R> {
    from: R,
    left: u64,
    limit: u64,
}

/// What is read has more bytes than it may have.
#[derive(Debug, thiserror::Error)]
#[error("it has more than {0} bytes")]
struct TooLong(u64);

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| io::Error::other(TooLong(self.limit)))?;
        Ok(read)
    }
}

/// Returns what a dump says about its head that is not true of its `last` block.
fn contradictions(
    last: Option<&LoadedBlock>,
    environment: Option<&ReadEnvironment>,
    best_block_number: Option<Loose<u64>>,
) -> Vec<String> {
    let environment = environment.map(|found| (found.number.0, found.timestamp.0));
    let number = best_block_number.map(|Loose(number)| number);
    let Some(last) = last else {
        let number = number.or(environment.map(|(number, _)| number)).filter(|number| *number > 0);
        let lost = |number| format!("its block number {number} and its time, because none of its blocks is loaded");
        return number.map(lost).into_iter().collect();
    };
    let Header { number: head, timestamp, .. } = last.header;
    let found = [
        ("best_block_number", number, head),
        ("the number of the field block", environment.map(|(number, _)| number), head),
        ("the timestamp of the field block", environment.map(|(_, timestamp)| timestamp), timestamp),
    ];
    let differs = |(name, found, expected): (&str, Option<u64>, u64)| {
        let found = found.filter(|found| *found != expected)?;
        Some(format!("{name}, {found}, which is {expected} in its last block"))
    };
    found.into_iter().filter_map(differs).collect()
}

/// Returns the blocks after the genesis block, in order, or why they cannot be loaded. Adds to `not_loaded` what belongs
/// to none of them.
fn chain(
    mut blocks: Vec<ReadBlock>,
    transactions: Vec<ReadMined>,
    not_loaded: &mut Vec<String>,
) -> Result<Vec<LoadedBlock>, String> {
    let mut mined: HashMap<(u64, u64), ReadMined> =
        transactions.into_iter().map(|mined| ((mined.block_number.0, mined.info.transaction_index.0), mined)).collect();
    blocks.retain(|block| block.header.number.0 > 0);
    blocks.sort_by_key(|block| block.header.number.0);
    let mut chain = Vec::new();
    for (expected, block) in (1..).zip(blocks) {
        let number = block.header.number.0;
        if number != expected {
            let is_missing = number > expected;
            return Err(if is_missing {
                format!("block {expected} is missing")
            } else {
                format!("block {number} is there twice")
            });
        }
        if !block.ommers.is_empty() {
            return Err(format!("block {number} has ommers"));
        }
        let mut loaded = LoadedBlock {
            header: block.header.into(),
            withdrawals: block.withdrawals.map(Withdrawal::read_all),
            ..LoadedBlock::default()
        };
        for (index, transaction) in (0..).zip(block.transactions) {
            let at = |error: String| format!("transaction {index} of block {number}: {error}");
            let mined = mined.remove(&(number, index)).ok_or_else(|| at("it has no receipt".to_owned()))?;
            loaded.transactions.push(recovered(&transaction, mined.info.from.0).map_err(at)?);
            loaded.receipts.push(mined.receipt.read().map_err(at)?);
        }
        chain.push(loaded);
    }
    if !mined.is_empty() {
        not_loaded.push(format!("{} receipts of transactions that none of its blocks has", mined.len()));
    }
    Ok(chain)
}

impl ReadHeader {
    /// Refuses values that no block here has, and after which no block could follow.
    fn check(&self) -> Result<(), InvalidDump> {
        let Self { number: Loose(number), timestamp: Loose(timestamp), gas_limit: Loose(gas_limit), .. } = self;
        let last = ProducerError::LAST_TIMESTAMP;
        if *timestamp > last {
            return Err(InvalidDump(format!("timestamp {timestamp} of block {number} is above {last}")));
        }
        // The genesis block is not loaded.
        if *number > 0 && !BLOCK_GAS_LIMITS.contains(gas_limit) {
            let (least, most) = (BLOCK_GAS_LIMITS.start(), BLOCK_GAS_LIMITS.end());
            return Err(InvalidDump(format!(
                "gasLimit {gas_limit} of block {number} is not between {least} and {most}"
            )));
        }
        Ok(())
    }
}

impl From<ReadHeader> for Header {
    fn from(header: ReadHeader) -> Self {
        Self {
            number: header.number.0,
            beneficiary: header.miner.0,
            timestamp: header.timestamp.0,
            gas_limit: header.gas_limit.0,
            gas_used: header.gas_used.0,
            difficulty: header.difficulty.0,
            extra_data: header.extra_data.unwrap_or_default().0,
            mix_hash: header.mix_hash.map(|hash| hash.0).unwrap_or_default(),
            base_fee_per_gas: header.base_fee_per_gas.map(|fee| fee.0),
            withdrawals_root: header.withdrawals_root.map(|root| root.0),
            blob_gas_used: header.blob_gas_used.map(|gas| gas.0),
            excess_blob_gas: header.excess_blob_gas.map(|gas| gas.0),
            parent_beacon_block_root: header.parent_beacon_block_root.map(|root| root.0),
            requests_hash: header.requests_hash.map(|hash| hash.0),
            ..Self::default()
        }
    }
}

/// Converts a transaction of a block, which older versions of anvil wrote without an envelope. One that was sent by
/// impersonation has no signature, and gets the hash that it would have here.
fn recovered(envelope: &RawValue, sender: Address) -> Result<RecoveredTransaction, String> {
    let mut envelope: Value = parsed(envelope)?;
    let impersonated = envelope.get("impersonated_sender").is_some_and(|sender| !sender.is_null());
    let inner = envelope.get_mut("transaction").filter(|inner| inner.is_object()).map(Value::take);
    let transaction: ReadTransaction =
        serde_json::from_value(inner.unwrap_or(envelope)).map_err(|error| error.to_string())?;
    let (r, s) = (transaction.r.0, transaction.s.0);
    let y_parity = transaction.is_odd();
    let body = transaction.body()?;
    if impersonated {
        return Ok(RecoveredTransaction::impersonating(sender, body));
    }
    let transaction = Transaction { body, signature: Signature { r, s, y_parity } };
    Ok(RecoveredTransaction { hash: transaction.hash(), transaction, sender })
}

/// Returns the type with this number (EIP-2718), or `None` if it is not supported.
fn type_of(number: u64) -> Option<TransactionType> {
    Some(match number {
        0 => TransactionType::Legacy,
        1 => TransactionType::AccessList,
        2 => TransactionType::DynamicFee,
        3 => TransactionType::Blob,
        4 => TransactionType::SetCode,
        _ => return None,
    })
}

fn parsed<T: DeserializeOwned>(value: &RawValue) -> Result<T, String> {
    serde_json::from_str(value.get()).map_err(|error| error.to_string())
}

impl ReadTransaction {
    /// Returns whether the y coordinate of the signature's point is odd.
    fn is_odd(&self) -> bool {
        match (self.y_parity, self.v) {
            (Some(parity), _) => parity.0 == 1,
            // 27 and 28 without replay protection, and otherwise from 35 on (EIP-155).
            (None, Some(v)) if v.0 >= 35.into() => !v.0.bit(0),
            (None, Some(v)) => v.0 == 28.into() || v.0 == 1.into(),
            (None, None) => false,
        }
    }

    fn body(self) -> Result<TransactionBody, String> {
        let number = self.transaction_type.map_or(0, |number| number.0);
        // A legacy transaction without a chain id is one from before EIP-155.
        let (fork, chain_id) = match self.chain_id {
            Some(Loose(id)) => (Fork::SpuriousDragon, id),
            None if number == 0 => (Fork::Frontier, 0),
            None => return Err("it has no chain id".to_owned()),
        };
        let transaction_type =
            type_of(number).ok_or_else(|| format!("transactions of type {number:#x} are not supported"))?;
        let price = |price: Option<Loose<U256>>| price.map(|price| price.0).unwrap_or_default();
        let has_tip = !matches!(transaction_type, TransactionType::Legacy | TransactionType::AccessList);
        let call = Call {
            to: self.to.map(|to| to.0),
            gas_price: price(if has_tip { self.max_fee_per_gas } else { self.gas_price }),
            max_priority_fee_per_gas: Some(price(self.max_priority_fee_per_gas)),
            value: self.value.0,
            input: self.input.0,
            access_list: self.access_list.into_iter().map(AccessListItem::read).collect(),
            max_fee_per_blob_gas: price(self.max_fee_per_blob_gas),
            blob_versioned_hashes: self.blob_versioned_hashes.into_iter().map(|hash| hash.0).collect(),
            authorization_list: self.authorization_list.into_iter().map(Authorization::read).collect(),
            ..Call::default()
        };
        let body = call.into_body_of(transaction_type, fork, chain_id, self.nonce.0, self.gas.0);
        body.ok_or_else(|| "it has no recipient".to_owned())
    }
}

impl ReadReceipt {
    fn read(self) -> Result<Receipt, String> {
        let number = self.transaction_type.0;
        let transaction_type =
            type_of(number).ok_or_else(|| format!("receipts of type {number:#x} are not supported"))?;
        let outcome = match (self.status, self.root) {
            (Some(status), _) if let Ok(succeeded) = parsed::<bool>(&status) => ReceiptOutcome::Success(succeeded),
            (Some(status), _) => ReceiptOutcome::Success(parsed::<Loose<u64>>(&status)?.0 == 1),
            (None, Some(root)) => ReceiptOutcome::StateRoot(root.0),
            (None, None) => return Err("its receipt has no status".to_owned()),
        };
        let log = |log: ReadLog| Log {
            address: log.address.0,
            topics: log.topics.into_iter().map(|topic| topic.0).collect::<Vec<H256>>(),
            data: log.data.0,
        };
        let logs: Vec<_> = self.logs.into_iter().map(log).collect();
        let logs_bloom = logs.iter().collect::<Bloom>();
        let cumulative_gas_used = self.cumulative_gas_used.0;
        Ok(Receipt { transaction_type, outcome, cumulative_gas_used, logs_bloom, logs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    /// Written by anvil 1.7.1, without most accounts, bloom filters and traces.
    const ANVIL: &str = include_str!("anvil.json");

    fn read_dump(dump: &[u8]) -> Result<Dump, InvalidDump> {
        super::read_dump(dump, 1 << 20)
    }

    #[test]
    fn reads_what_anvil_writes() {
        let Dump { accounts, first_timestamp, blocks, not_loaded } = read_dump(ANVIL.as_bytes()).unwrap();
        assert_eq!((accounts.len(), first_timestamp, not_loaded.len()), (3, Some(0x6b0a_aa2d), 0));
        assert_eq!(blocks.iter().map(|block| block.header.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
        let hashes: Vec<_> = blocks.iter().flat_map(|block| &block.transactions).map(|found| found.hash).collect();
        // Those of anvil, so every field was read.
        let expected = [
            "0x7fed5402a9c91182b4528c3e8fe4be6df44cbcdcfb2f2c704bff5a0c05ab202c",
            "0xbe5cfa1b95abfb1cdec7b70fa6519f6450624b3601f1ba20166cbe86203442f9",
            "0xfc0f6ca96b5ac9e66bd16d8f3df8b0a59279a7cb805b976323f48c734531f5cb",
        ];
        assert_eq!(hashes, expected.map(|hash| hash.parse::<H256>().unwrap()));
        let outcomes: Vec<_> = blocks.iter().flat_map(|block| &block.receipts).map(|receipt| receipt.outcome).collect();
        assert_eq!(outcomes, [true, false, true].map(ReceiptOutcome::Success));
        assert_eq!(blocks[2].receipts[0].logs[0].topics.len(), 2);
    }

    #[test]
    fn blocks_that_cannot_be_loaded_are_left_out_with_a_reason() {
        let reason = |from: &str, to: &str| {
            let dump = read_dump(ANVIL.replace(from, to).as_bytes()).unwrap();
            assert!(dump.blocks.is_empty() && dump.accounts.len() == 3);
            dump.not_loaded.join(", ")
        };
        assert!(reason("\"number\":\"0x2\"", "\"number\":\"0x7\"").contains("block 2 is missing"));
        assert!(reason("\"type\":\"0x2\",\"chainId\"", "\"type\":\"0x7e\",\"chainId\"").contains("type 0x7e"));
        assert!(reason("\"number\":\"0x2\"", "\"number\":\"0x7\"").contains("block number 4 and its time"));
        assert!(reason("\"block_number\":3", "\"block_number\":9").contains("block 3: it has no receipt"));
        let more = ANVIL.replace("\"historical_states\":null", "\"historical_states\":[]");
        assert!(read_dump(more.as_bytes()).unwrap().not_loaded[0].contains("states of earlier blocks"));
    }

    #[test]
    fn what_is_not_loaded_is_said() {
        let said = |from: &str, to: &str| {
            let dump = read_dump(ANVIL.replace(from, to).as_bytes()).unwrap();
            assert_eq!(dump.blocks.len(), 4, "{to}");
            dump.not_loaded.join(", ")
        };
        assert_eq!(
            said("{\"block\":", "{\"more\":[7],\"traces\":{},\"block\":"),
            "fields that are not known: more, traces"
        );
        assert_eq!(
            said("\"block\":{\"number\":\"0x4\"", "\"block\":{\"number\":\"0x9\""),
            "the number of the field block, 9, which is 4 in its last block"
        );
        assert!(
            said("\"timestamp\":\"0x6b0aaa2e\",\"gas_limit\"", "\"timestamp\":\"0x6b0aaa2f\",\"gas_limit\"")
                .starts_with("the timestamp of the field block, 1795861039, ")
        );
        assert_eq!(
            said("\"best_block_number\":4", "\"best_block_number\":3"),
            "best_block_number, 3, which is 4 in its last block"
        );
        assert!(
            said("\"block\":{\"number\":\"0x4\"", "\"block\":{\"number\":\"four\"").starts_with("the field block: ")
        );
        assert_eq!(said("\"traces\":[]", "\"traces\":[{\"parent\":null}]"), "the calls of its transactions (traces)");
    }

    #[test]
    fn the_genesis_block_is_older_than_the_first_block() {
        let dump =
            br#"{"accounts":{},"blocks":[{"header":{"number":1,"miner":"0x0000000000000000000000000000000000000000",
            "timestamp":"0x64","gasLimit":30000000,"gasUsed":0}}],"block":{"number":7,"timestamp":9}}"#;
        let read = read_dump(dump).unwrap();
        assert_eq!((read.first_timestamp, read.blocks.len()), (Some(99), 1));
        let without = br#"{"accounts":{},"block":{"number":"0x7","timestamp":"0x9"}}"#;
        assert!(read_dump(without).unwrap().not_loaded[0].starts_with("its block number 7 and its time"));
    }

    #[test]
    fn other_files_are_refused_with_what_was_expected() {
        let marked = [BYTE_ORDER_MARK, b"\r\n", ANVIL.as_bytes()].concat();
        assert_eq!(read_dump(&marked).unwrap().blocks.len(), 4);
        for (dump, expected) in [
            (&b""[..], "it is empty"),
            (b"\xef\xbb\xbf", "it is empty"),
            (b"0x1f8b08", "expected a JSON object"),
            (b"[]", "expected a JSON object"),
            (b"\x1f\x8b\x08", "it is compressed with gzip, and damaged"),
            (b"{\"accounts\":7}", "line 1 column 14"),
            (
                br#"{"accounts":{"0x00000000000000000000000000000000000000cc":{"nonce":0,"balance":"zz"}}}"#,
                "expected a number, decimal or 0x hex",
            ),
            (br#"{"accounts":{"0xzz":{"nonce":0,"balance":"0x0"}}}"#, "hex"),
        ] {
            let error = read_dump(dump).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn headers_that_no_block_can_follow_are_refused() {
        for (from, to, field) in [
            (
                "\"timestamp\":\"0x6b0aaa2e\",\"extraData\"",
                "\"timestamp\":\"0x7dba8218001\",\"extraData\"",
                "timestamp ",
            ),
            ("\"gasLimit\":\"0x1c9c380\"", "\"gasLimit\":\"0x0\"", "gasLimit 0 "),
            ("\"gasLimit\":\"0x1c9c380\"", "\"gasLimit\":\"0x8000000000000000\"", "gasLimit 9223372036854775808 "),
        ] {
            let error = read_dump(ANVIL.replace(from, to).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(field) && error.contains("of block "), "{error}");
        }
    }

    fn gzipped(pieces: impl Iterator<Item = String>) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        pieces.for_each(|piece| encoder.write_all(piece.as_bytes()).unwrap());
        encoder.finish().unwrap()
    }

    #[test]
    fn what_unpacks_to_more_than_the_limit_is_refused() {
        let dump =
            |bytes: usize| gzipped(["{\"accounts\":{}".to_owned(), " ".repeat(bytes), "}".to_owned()].into_iter());
        assert!(read_dump(&dump(1_000)).unwrap().accounts.is_empty());
        let long = dump(64 << 20);
        assert!(long.len() < 1 << 20);
        assert_eq!(read_dump(&long).unwrap_err().to_string(), "not a state dump: it has more than 1048576 bytes");
        for (field, nested) in [("x", "["), ("accounts", "{\"0x\":"), ("block", "["), ("blocks", "[")] {
            let dump = gzipped([format!("{{\"{field}\":"), nested.repeat(1 << 17)].into_iter());
            read_dump(&dump).unwrap_err();
        }
    }

    #[test]
    fn accounts_that_take_too_much_memory_are_refused() {
        let slots = (0..=MAX_MEMORY / SLOT).map(|slot| format!("\"{slot:#x}\":1,"));
        let before =
            "{\"accounts\":{\"0x00000000000000000000000000000000000000cc\":{\"nonce\":0,\"balance\":0,\"storage\":{";
        let dump = gzipped([before.to_owned()].into_iter().chain(slots));
        let error = super::read_dump(&*dump, u64::MAX).unwrap_err().to_string();
        assert!(error.contains("more than 1 MiB of memory"), "{error}");
    }
}
