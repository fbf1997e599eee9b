//! Headers, bodies and receipts.

use crate::codec::{Malformed, Reader, put_bytes, put_u256, put_varint};
use crate::error::StoreError;
use node_core::block::{BlockLogs, BlockLogsBuilder, Body, LogRef, RecoveredTransaction, SealedHeader};
use node_types::H256;
use node_types::consensus::{Bloom, Header, Receipt, ReceiptOutcome, Transaction, TransactionType, Withdrawal};

/// Encodes hash, total difficulty, size and RLP of a header.
pub(crate) fn encode_header(header: &SealedHeader) -> Vec<u8> {
    let mut out = Vec::with_capacity(768);
    out.extend_from_slice(header.hash.as_bytes());
    put_u256(&mut out, header.total_difficulty);
    put_varint(&mut out, header.size);
    out.extend_from_slice(&header.header.encode());
    out
}

pub(crate) fn decode_header(value: &[u8]) -> Result<SealedHeader, StoreError> {
    let mut reader = Reader::new(value, "a header");
    let (hash, total_difficulty, size) = (reader.h256()?, reader.u256()?, reader.varint()?);
    Ok(SealedHeader { hash, header: Header::decode(reader.remainder())?, total_difficulty, size })
}

/// Decodes only the hash and the timestamp of an encoded header.
fn hash_and_timestamp(value: &[u8]) -> Result<(H256, u64), Malformed> {
    let mut reader = Reader::new(value, "a header");
    let (hash, _total_difficulty, _size) = (reader.h256()?, reader.u256()?, reader.varint()?);
    // The timestamp is item 11 of a header (Yellow Paper, section 4.3).
    let timestamp = rlp::Rlp::new(reader.remainder()).val_at(11).map_err(|_| reader.malformed())?;
    Ok((hash, timestamp))
}

/// Decodes only the hash of an encoded header.
pub(crate) fn header_hash(value: &[u8]) -> Result<H256, Malformed> {
    Reader::new(value, "a header").h256()
}

/// Encodes the transactions with hash, sender and canonical encoding; the RLP of ommers; the withdrawals.
pub(crate) fn encode_body(body: &Body) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + 256 * body.transactions.len());
    put_varint(&mut out, body.transactions.len() as u64);
    for transaction in &body.transactions {
        out.extend_from_slice(transaction.hash.as_bytes());
        out.extend_from_slice(transaction.sender.as_bytes());
        put_bytes(&mut out, &transaction.transaction.encode());
    }
    put_varint(&mut out, body.ommers.len() as u64);
    body.ommers.iter().for_each(|ommer| put_bytes(&mut out, &ommer.encode()));
    // The number of withdrawals plus one; 0 if there is no list, which differs from an empty list.
    let withdrawals = body.withdrawals.as_deref();
    put_varint(&mut out, withdrawals.map_or(0, |withdrawals| 1 + withdrawals.len() as u64));
    for withdrawal in withdrawals.unwrap_or_default() {
        put_varint(&mut out, withdrawal.index);
        put_varint(&mut out, withdrawal.validator_index);
        out.extend_from_slice(withdrawal.address.as_bytes());
        put_varint(&mut out, withdrawal.amount);
    }
    out
}

pub(crate) fn decode_body(value: &[u8]) -> Result<Body, StoreError> {
    let mut reader = Reader::new(value, "a body");
    let mut body = Body::default();
    for _ in 0..reader.count(53)? {
        let (hash, sender) = (reader.h256()?, reader.address()?);
        let transaction = Transaction::decode(reader.bytes()?)?;
        body.transactions.push(RecoveredTransaction { transaction, hash, sender });
    }
    for _ in 0..reader.count(1)? {
        body.ommers.push(Header::decode(reader.bytes()?)?);
    }
    body.withdrawals = match reader.varint()? {
        0 => None,
        count => Some((1..count).map(|_| decode_withdrawal(&mut reader)).collect::<Result<_, _>>()?),
    };
    reader.finish()?;
    Ok(body)
}

/// Decodes only what readers of logs need from the rows of a block: its header, body and receipts.
pub(crate) fn decode_block_logs(header: &[u8], body: &[u8], receipts: &[u8]) -> Result<BlockLogs, StoreError> {
    let (hash, timestamp) = hash_and_timestamp(header)?;
    let (mut body, mut receipts) = (Reader::new(body, "a body"), Reader::new(receipts, "receipts"));
    body.count(53)?;
    let mut logs = BlockLogsBuilder::default();
    for transaction_index in 0..receipts.count(5)? {
        let (transaction_hash, _sender, _encoding) = (body.h256()?, body.address()?, body.bytes()?);
        read_outcome(&mut receipts)?;
        skip_bloom(&mut receipts)?;
        for _ in 0..receipts.count(22)? {
            let log = read_log(&mut receipts)?;
            logs.push(transaction_index, transaction_hash, log.address, log.topics.iter(), log.data);
        }
    }
    receipts.finish()?;
    Ok(logs.finish(hash, timestamp))
}

fn decode_withdrawal(reader: &mut Reader<'_>) -> Result<Withdrawal, Malformed> {
    Ok(Withdrawal {
        index: reader.varint()?,
        validator_index: reader.varint()?,
        address: reader.address()?,
        amount: reader.varint()?,
    })
}

/// Encodes type, outcome, gas, bloom filter and logs of each receipt.
pub(crate) fn encode_receipts(receipts: &[Receipt]) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + 64 * receipts.len());
    put_varint(&mut out, receipts.len() as u64);
    for receipt in receipts {
        out.push(receipt.transaction_type as u8);
        match receipt.outcome {
            ReceiptOutcome::Success(success) => out.push(u8::from(success)),
            ReceiptOutcome::StateRoot(root) => {
                out.push(2);
                out.extend_from_slice(root.as_bytes());
            }
        }
        put_varint(&mut out, receipt.cumulative_gas_used);
        put_bloom(&mut out, &receipt.logs_bloom);
        put_varint(&mut out, receipt.logs.len() as u64);
        for log in &receipt.logs {
            out.extend_from_slice(log.address.as_bytes());
            put_varint(&mut out, log.topics.len() as u64);
            log.topics.iter().for_each(|topic| out.extend_from_slice(topic.as_bytes()));
            put_bytes(&mut out, &log.data);
        }
    }
    out
}

pub(crate) fn decode_receipts(value: &[u8]) -> Result<Vec<Receipt>, StoreError> {
    let mut reader = Reader::new(value, "receipts");
    let mut receipts = Vec::new();
    for _ in 0..reader.count(5)? {
        let (transaction_type, outcome, cumulative_gas_used) = read_outcome(&mut reader)?;
        receipts.push(Receipt {
            transaction_type,
            outcome,
            cumulative_gas_used,
            logs_bloom: read_bloom(&mut reader)?,
            logs: (0..reader.count(22)?)
                .map(|_| Ok(read_log(&mut reader)?.to_log()))
                .collect::<Result<_, Malformed>>()?,
        });
    }
    reader.finish()?;
    Ok(receipts)
}

/// Reads the parts of a receipt before its bloom filter.
fn read_outcome(reader: &mut Reader<'_>) -> Result<(TransactionType, ReceiptOutcome, u64), StoreError> {
    let transaction_type = TransactionType::try_from(reader.byte()?)?;
    let outcome = match reader.byte()? {
        0 => ReceiptOutcome::Success(false),
        1 => ReceiptOutcome::Success(true),
        2 => ReceiptOutcome::StateRoot(reader.h256()?),
        _ => return Err(reader.malformed().into()),
    };
    Ok((transaction_type, outcome, reader.varint()?))
}

fn read_log<'a>(reader: &mut Reader<'a>) -> Result<LogRef<'a>, Malformed> {
    let address = reader.address()?;
    let topics = reader.count(32)?;
    Ok(LogRef { address, topics: reader.take(32 * topics)?.as_chunks().0, data: reader.bytes()? })
}

/// Filters with more than this many bytes set are stored whole.
const SPARSE: usize = 127;

/// Appends the nonzero bytes of a bloom filter, each preceded by its index. The filter of a single receipt has few of
/// them.
fn put_bloom(out: &mut Vec<u8>, bloom: &Bloom) {
    let set = || bloom.0.iter().enumerate().filter(|(_, byte)| **byte != 0);
    let count = set().count();
    if count > SPARSE {
        out.push(u8::MAX);
        out.extend_from_slice(&bloom.0);
    } else {
        out.push(count as u8);
        set().for_each(|(index, byte)| out.extend_from_slice(&[index as u8, *byte]));
    }
}

fn skip_bloom(reader: &mut Reader<'_>) -> Result<(), Malformed> {
    let count = reader.byte()?;
    reader.take(if count == u8::MAX { Bloom::ZERO.0.len() } else { 2 * usize::from(count) })?;
    Ok(())
}

fn read_bloom(reader: &mut Reader<'_>) -> Result<Bloom, Malformed> {
    let count = reader.byte()?;
    if count == u8::MAX {
        return reader.array().map(Bloom);
    }
    let mut bloom = Bloom::ZERO;
    for _ in 0..count {
        let [index, byte] = reader.array()?;
        bloom.0[usize::from(index)] = byte;
    }
    Ok(bloom)
}
