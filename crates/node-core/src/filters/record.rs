//! Filters as durable records.
//!
//! The key is the filter's id; the value an RLP list that begins with the kind, the time of the last use in
//! milliseconds since the Unix epoch, and the cursor.

use super::state::{Cursor, FilterState};
use super::{FilterCriteria, FilterId, LogCriteria};
use crate::backend::{LogFilter, Record, RecordKind, RecordWrite};
use crate::block::BlockRef;
use node_types::H256;
use rlp::{DecoderError, Rlp, RlpStream};

const LOGS: u8 = 0;
const BLOCKS: u8 = 1;
const PENDING_TRANSACTIONS: u8 = 2;

/// Keeps a filter.
pub(super) fn put(id: FilterId, state: &FilterState, last_used: u64) -> RecordWrite {
    RecordWrite::Put(RecordKind::Filter, Record { key: id.0.to_vec(), value: encode(state, last_used) })
}

/// Gives up a filter.
pub(super) fn delete(key: Vec<u8>) -> RecordWrite {
    RecordWrite::Delete(RecordKind::Filter, key)
}

fn encode(state: &FilterState, last_used: u64) -> Vec<u8> {
    let kind = match &state.criteria {
        FilterCriteria::Logs(_) => LOGS,
        FilterCriteria::Blocks => BLOCKS,
        FilterCriteria::PendingTransactions => PENDING_TRANSACTIONS,
    };
    let mut stream = RlpStream::new();
    stream.begin_unbounded_list();
    stream.append(&kind).append(&last_used);
    match state.cursor {
        Cursor::Block(block) => stream.append(&block.number).append(&block.hash),
        Cursor::Arrival(number) => stream.append(&number),
    };
    if let FilterCriteria::Logs(LogCriteria { filter, from, to }) = &state.criteria {
        stream.append(from);
        stream.append_list::<u64, u64>(to.as_slice());
        stream.append_list(&filter.addresses);
        stream.begin_list(filter.topics.len());
        for words in &filter.topics {
            stream.append_list(words);
        }
    }
    stream.finalize_unbounded_list();
    stream.out().to_vec()
}

/// The filter that a record holds, with the time of its last use.
pub(super) fn decode(record: &Record) -> Result<(FilterId, FilterState, u64), DecoderError> {
    let id = FilterId(record.key.as_slice().try_into().map_err(|_| DecoderError::RlpInvalidLength)?);
    let rlp = Rlp::new(&record.value);
    let block = || -> Result<Cursor, DecoderError> {
        Ok(Cursor::Block(BlockRef { number: rlp.val_at(2)?, hash: rlp.val_at(3)? }))
    };
    let (criteria, cursor) = match rlp.val_at(0)? {
        LOGS => (FilterCriteria::Logs(decode_criteria(&rlp)?), block()?),
        BLOCKS => (FilterCriteria::Blocks, block()?),
        PENDING_TRANSACTIONS => (FilterCriteria::PendingTransactions, Cursor::Arrival(rlp.val_at(2)?)),
        _ => return Err(DecoderError::Custom("unknown kind of filter")),
    };
    Ok((id, FilterState { criteria, cursor }, rlp.val_at(1)?))
}

fn decode_criteria(rlp: &Rlp<'_>) -> Result<LogCriteria, DecoderError> {
    let topics: Result<Vec<Vec<H256>>, _> = rlp.at(7)?.iter().map(|words| words.as_list()).collect();
    Ok(LogCriteria {
        from: rlp.val_at(4)?,
        to: rlp.list_at::<u64>(5)?.first().copied(),
        filter: LogFilter { addresses: rlp.list_at(6)?, topics: topics? },
    })
}
