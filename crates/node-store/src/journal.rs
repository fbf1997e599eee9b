//! Entries of the write-ahead log: one per change of a store.

use crate::block_bytes::{BlockBytes, decode_block};
use crate::codec::{Malformed, Reader, put_bytes, put_varint};
use crate::error::StoreError;
use node_core::backend::{Record, RecordKind, RecordWrite};
use node_core::block::ExecutedBlock;
use node_types::{BlockNumber, H256};

const APPEND: u8 = 1;
const SWITCH: u8 = 2;
const SIDE_BLOCK: u8 = 3;
const RECORDS: u8 = 4;
const SWITCH_TO: u8 = 5;

/// A logged change, which is applied again after a crash.
#[derive(Debug)]
pub(crate) enum LoggedChange {
    Append(ExecutedBlock, Vec<RecordWrite>),
    Switch(BlockNumber, Vec<ExecutedBlock>, Vec<RecordWrite>),
    SideBlock(ExecutedBlock),
    Records(Vec<RecordWrite>),
    /// A switch to side blocks, by their hashes.
    SwitchTo(BlockNumber, Vec<H256>, Vec<RecordWrite>),
}

pub(crate) fn append(block: &ExecutedBlock, bytes: &BlockBytes, writes: &[RecordWrite]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 64);
    out.push(APPEND);
    bytes.append(block, &mut out);
    put_writes(&mut out, writes);
    out
}

pub(crate) fn switch(ancestor: BlockNumber, branch: &[(ExecutedBlock, BlockBytes)], writes: &[RecordWrite]) -> Vec<u8> {
    let mut out = vec![SWITCH];
    put_varint(&mut out, ancestor);
    put_varint(&mut out, branch.len() as u64);
    branch.iter().for_each(|(block, bytes)| bytes.append(block, &mut out));
    put_writes(&mut out, writes);
    out
}

pub(crate) fn switch_to(ancestor: BlockNumber, branch: &[ExecutedBlock], writes: &[RecordWrite]) -> Vec<u8> {
    let mut out = vec![SWITCH_TO];
    put_varint(&mut out, ancestor);
    put_varint(&mut out, branch.len() as u64);
    branch.iter().for_each(|block| out.extend_from_slice(block.header.hash.as_bytes()));
    put_writes(&mut out, writes);
    out
}

pub(crate) fn side_block(block: &ExecutedBlock) -> Vec<u8> {
    let mut out = vec![SIDE_BLOCK];
    BlockBytes::encode(block).append(block, &mut out);
    out
}

pub(crate) fn records(writes: &[RecordWrite]) -> Vec<u8> {
    let mut out = vec![RECORDS];
    put_writes(&mut out, writes);
    out
}

fn put_writes(out: &mut Vec<u8>, writes: &[RecordWrite]) {
    put_varint(out, writes.len() as u64);
    for write in writes {
        match write {
            RecordWrite::Put(kind, Record { key, value }) => {
                out.extend_from_slice(&[1, kind_byte(*kind)]);
                put_bytes(out, key);
                put_bytes(out, value);
            }
            RecordWrite::Delete(kind, key) => {
                out.extend_from_slice(&[0, kind_byte(*kind)]);
                put_bytes(out, key);
            }
        }
    }
}

impl LoggedChange {
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, StoreError> {
        let mut reader = Reader::new(payload, "an entry of the log");
        let entry = match reader.byte()? {
            APPEND => Self::Append(decode_block(&mut reader)?, decode_writes(&mut reader)?),
            SWITCH => {
                let ancestor = reader.varint()?;
                let branch = (0..reader.count(1)?).map(|_| decode_block(&mut reader)).collect::<Result<_, _>>()?;
                Self::Switch(ancestor, branch, decode_writes(&mut reader)?)
            }
            SWITCH_TO => {
                let ancestor = reader.varint()?;
                let branch = (0..reader.count(32)?).map(|_| reader.h256()).collect::<Result<_, _>>()?;
                Self::SwitchTo(ancestor, branch, decode_writes(&mut reader)?)
            }
            SIDE_BLOCK => Self::SideBlock(decode_block(&mut reader)?),
            RECORDS => Self::Records(decode_writes(&mut reader)?),
            _ => return Err(reader.malformed().into()),
        };
        reader.finish()?;
        Ok(entry)
    }
}

fn decode_writes(reader: &mut Reader<'_>) -> Result<Vec<RecordWrite>, Malformed> {
    (0..reader.count(3)?).map(|_| decode_write(reader)).collect()
}

fn decode_write(reader: &mut Reader<'_>) -> Result<RecordWrite, Malformed> {
    let put = reader.byte()? != 0;
    let kind = kind_of(reader.byte()?).ok_or(reader.malformed())?;
    let key = reader.bytes()?.to_vec();
    Ok(if put {
        RecordWrite::Put(kind, Record { key, value: reader.bytes()?.to_vec() })
    } else {
        RecordWrite::Delete(kind, key)
    })
}

/// Returns the byte that represents the kind of a record in the log and in runs.
pub(crate) fn kind_byte(kind: RecordKind) -> u8 {
    match kind {
        RecordKind::PoolTransaction => 0,
        RecordKind::Filter => 1,
        RecordKind::PendingEdit => 2,
        RecordKind::EditedBlock => 3,
        RecordKind::Snapshot => 4,
        RecordKind::ChainId => 5,
        RecordKind::ImportedFile => 6,
    }
}

pub(crate) fn kind_of(byte: u8) -> Option<RecordKind> {
    RecordKind::ALL.into_iter().find(|kind| kind_byte(*kind) == byte)
}
