//! Filters as durable records.
//!
//! A filter has a record with its criteria, whose key is its identifier, and, once it has reported something, one with
//! its cursor, so that a poll writes few bytes. The value of the first is an RLP list that starts with the kind, the
//! time of the installation in milliseconds since the Unix epoch, and the cursor at that time. The key of the second is
//! the identifier and [`POSITION`], and its value is a list with the cursor. The cursor of log and block filters is the
//! number and hash of a block, and a list with the index of its last reported log, which is empty if the whole block
//! was reported.

use super::kept::FilterMemory;
use super::{ChainPosition, Cursor, FilterCriteria, FilterId, LogCriteria, Subscription};
use crate::backend::{LogFilter, Record, RecordKind, RecordWrite};
use crate::block::BlockRef;
use node_types::H256;
use rlp::{DecoderError, Rlp, RlpStream};
use std::sync::Arc;

const LOGS: u8 = 0;
const BLOCKS: u8 = 1;
const PENDING_TRANSACTIONS: u8 = 2;

/// The end of the key of a record with a cursor.
const POSITION: u8 = 1;

/// What a record contains.
#[derive(Debug, PartialEq)]
pub(super) enum Decoded {
    Filter(FilterId, Subscription),
    Position(FilterId, Cursor),
}

/// Returns the write that stores a filter, with the time of its installation.
pub(super) fn put(id: FilterId, state: &Subscription, installed: u64) -> RecordWrite {
    RecordWrite::Put(RecordKind::Filter, Record { key: id.0.to_vec(), value: encode(state, installed) })
}

/// Returns the write that stores the cursor of a filter.
pub(super) fn put_position(id: FilterId, cursor: Cursor) -> RecordWrite {
    let mut stream = RlpStream::new();
    stream.begin_unbounded_list();
    append_cursor(&mut stream, cursor);
    stream.finalize_unbounded_list();
    RecordWrite::Put(RecordKind::Filter, Record { key: position_key(id), value: stream.out().to_vec() })
}

/// Returns the writes that delete the records of a filter.
pub(super) fn delete_filter(id: FilterId) -> [RecordWrite; 2] {
    [delete(id.0.to_vec()), delete(position_key(id))]
}

fn position_key(id: FilterId) -> Vec<u8> {
    [&id.0[..], &[POSITION]].concat()
}

pub(super) fn delete(key: Vec<u8>) -> RecordWrite {
    RecordWrite::Delete(RecordKind::Filter, key)
}

fn append_cursor(stream: &mut RlpStream, cursor: Cursor) {
    match cursor {
        Cursor::Chain(ChainPosition { block, log_index }) => {
            stream.append(&block.number).append(&block.hash);
            stream.append_list::<u64, u64>(log_index.as_slice());
        }
        Cursor::Arrival(number) => drop(stream.append(&number)),
    }
}

/// Decodes the cursor on a chain that starts at `index` of a list.
fn decode_position(rlp: &Rlp<'_>, index: usize) -> Result<Cursor, DecoderError> {
    let block = BlockRef { number: rlp.val_at(index)?, hash: rlp.val_at(index + 1)? };
    Ok(Cursor::Chain(ChainPosition { block, log_index: optional(rlp, index + 2)? }))
}

fn encode(state: &Subscription, installed: u64) -> Vec<u8> {
    let kind = match &state.criteria {
        FilterCriteria::Logs(_) => LOGS,
        FilterCriteria::Blocks => BLOCKS,
        FilterCriteria::PendingTransactions => PENDING_TRANSACTIONS,
    };
    let mut stream = RlpStream::new();
    stream.begin_unbounded_list();
    stream.append(&kind).append(&installed);
    append_cursor(&mut stream, state.cursor);
    if let FilterCriteria::Logs(LogCriteria { filter, from, open_below, to }) = &state.criteria {
        stream.append(from);
        stream.append_list::<u64, u64>(to.as_slice());
        stream.append_list(&filter.addresses);
        stream.begin_list(filter.topics.len());
        for words in &filter.topics {
            stream.append_list(words);
        }
        // Versions that did not have this field wrote filters without it.
        if *open_below {
            stream.append(open_below);
        }
    }
    stream.finalize_unbounded_list();
    stream.out().to_vec()
}

/// Decodes a record. The filter in it counts as held in `memory`.
pub(super) fn decode(record: &Record, memory: &Arc<FilterMemory>) -> Result<Decoded, DecoderError> {
    let rlp = Rlp::new(&record.value);
    if let [id @ .., POSITION] = &record.key[..]
        && let Ok(id) = id.try_into()
    {
        let cursor = match rlp.item_count()? {
            1 => Cursor::Arrival(rlp.val_at(0)?),
            _ => decode_position(&rlp, 0)?,
        };
        return Ok(Decoded::Position(FilterId(id), cursor));
    }
    let id = FilterId(record.key.as_slice().try_into().map_err(|_| DecoderError::RlpInvalidLength)?);
    // Its time is needed only by versions that had no record of the cursor.
    rlp.val_at::<u64>(1)?;
    let (criteria, cursor) = match rlp.val_at(0)? {
        LOGS => (FilterCriteria::Logs(decode_criteria(&rlp, memory)?), decode_position(&rlp, 2)?),
        BLOCKS => (FilterCriteria::Blocks, decode_position(&rlp, 2)?),
        PENDING_TRANSACTIONS => (FilterCriteria::PendingTransactions, Cursor::Arrival(rlp.val_at(2)?)),
        _ => return Err(DecoderError::Custom("unknown kind of filter")),
    };
    Ok(Decoded::Filter(id, Subscription { criteria, cursor }))
}

fn decode_criteria(rlp: &Rlp<'_>, memory: &Arc<FilterMemory>) -> Result<LogCriteria, DecoderError> {
    let topics: Result<Vec<Vec<H256>>, _> = rlp.at(8)?.iter().map(|words| words.as_list()).collect();
    let (addresses, topics) = (rlp.list_at(7)?, topics?);
    Ok(LogCriteria {
        from: rlp.val_at(5)?,
        open_below: rlp.item_count()? > 9 && rlp.val_at(9)?,
        to: optional(rlp, 6)?,
        filter: memory.restore(LogFilter { addresses, topics }),
    })
}

/// Decodes a list with at most one number.
fn optional(rlp: &Rlp<'_>, index: usize) -> Result<Option<u64>, DecoderError> {
    let list = rlp.at(index)?;
    if !list.is_list() {
        return Err(DecoderError::RlpExpectedToBeList);
    }
    match list.as_list::<u64>()?[..] {
        [] => Ok(None),
        [number] => Ok(Some(number)),
        _ => Err(DecoderError::RlpIncorrectListLen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::hex;
    use node_types::Address;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    fn decode(record: &Record) -> Result<Decoded, DecoderError> {
        super::decode(record, &FilterMemory::new(0))
    }

    fn words() -> impl Strategy<Value = Vec<H256>> {
        vec(any::<[u8; 32]>().prop_map(H256), 0..4)
    }

    fn log_criteria() -> impl Strategy<Value = LogCriteria> {
        let addresses = vec(any::<[u8; 20]>().prop_map(Address::from), 0..4);
        let range = (any::<u64>(), any::<bool>(), option::of(any::<u64>()));
        (addresses, vec(words(), 0..5), range).prop_map(|(addresses, topics, (from, open_below, to))| LogCriteria {
            filter: LogFilter { addresses, topics }.into(),
            from,
            open_below,
            to,
        })
    }

    fn subscriptions() -> impl Strategy<Value = Subscription> {
        let position = || {
            (any::<u64>(), any::<[u8; 32]>(), option::of(any::<u64>())).prop_map(|(number, hash, log_index)| {
                Cursor::Chain(ChainPosition { block: BlockRef { number, hash: H256(hash) }, log_index })
            })
        };
        let arrival = any::<u64>().prop_map(Cursor::Arrival);
        prop_oneof![
            (log_criteria().prop_map(FilterCriteria::Logs), position()),
            (Just(FilterCriteria::Blocks), position()),
            (Just(FilterCriteria::PendingTransactions), arrival),
        ]
        .prop_map(|(criteria, cursor)| Subscription { criteria, cursor })
    }

    fn record(write: RecordWrite) -> Record {
        match write {
            RecordWrite::Put(RecordKind::Filter, record) => record,
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn records_give_the_filter_back(state in subscriptions(), last_used in any::<u64>(), id in any::<[u8; 16]>()) {
            let record = record(put(FilterId(id), &state, last_used));
            prop_assert_eq!(decode(&record), Ok(Decoded::Filter(FilterId(id), state)));
        }

        #[test]
        fn records_give_the_cursor_back(state in subscriptions(), id in any::<[u8; 16]>()) {
            let record = record(put_position(FilterId(id), state.cursor));
            prop_assert!(record.value.len() < 80, "{}", record.value.len());
            prop_assert_eq!(decode(&record), Ok(Decoded::Position(FilterId(id), state.cursor)));
        }

        /// Any bytes decode to a filter or an error.
        #[test]
        fn damaged_records_are_read_or_refused(
            state in subscriptions(),
            at in any::<prop::sample::Index>(),
            flip in 1..=255u8,
            cut in any::<bool>(),
        ) {
            let mut damaged = record(put(FilterId([7; 16]), &state, 7));
            let at = at.index(damaged.value.len());
            if cut {
                damaged.value.truncate(at);
                prop_assert!(decode(&damaged).is_err(), "cut at {}", at);
            } else {
                damaged.value[at] ^= flip;
                if let Ok(Decoded::Filter(id, read)) = decode(&damaged) {
                    prop_assert_eq!(decode(&record(put(id, &read, 7))), Ok(Decoded::Filter(id, read)));
                }
            }
        }

        #[test]
        fn random_records_do_not_panic(key in vec(any::<u8>(), 0..20), value in vec(any::<u8>(), 0..80)) {
            let length = key.len();
            let decoded = decode(&Record { key, value });
            prop_assert!([16, 17].contains(&length) || decoded.is_err());
        }
    }

    // Part of the layout on the disk: see docs/storage.md.
    #[test]
    fn keeps_the_encoding_of_each_kind() {
        let position = |log_index| {
            Cursor::Chain(ChainPosition { block: BlockRef { number: 300, hash: H256::repeat_byte(0xab) }, log_index })
        };
        let word = H256::repeat_byte;
        let chosen = LogCriteria {
            filter: LogFilter {
                addresses: [1, 2].map(Address::repeat_byte).to_vec(),
                topics: vec![vec![word(3)], vec![], vec![word(4), word(5)]],
            }
            .into(),
            from: 200,
            open_below: false,
            to: Some(400),
        };
        let all = LogCriteria { filter: LogFilter::default().into(), from: 200, open_below: false, to: None };
        let new = LogCriteria { open_below: true, ..all.clone() };
        let cases: [(FilterCriteria, Cursor, &[u8]); 5] = [
            (
                FilterCriteria::Logs(chosen),
                position(Some(5)),
                &hex!(
                    "f8c8808601920000000082012ca0ababababababababababababababababababababababababababababababababc10581c8c3820190"
                    "ea940101010101010101010101010101010101010101940202020202020202020202020202020202020202f867e1a003030303030303"
                    "03030303030303030303030303030303030303030303030303c0f842a004040404040404040404040404040404040404040404040404"
                    "04040404040404a00505050505050505050505050505050505050505050505050505050505050505"
                ),
            ),
            (
                FilterCriteria::Logs(all),
                position(None),
                &hex!(
                    "f2808601920000000082012ca0ababababababababababababababababababababababababababababababababc081c8c0c0c0"
                ),
            ),
            (
                FilterCriteria::Logs(new),
                position(None),
                &hex!(
                    "f3808601920000000082012ca0ababababababababababababababababababababababababababababababababc081c8c0c0c001"
                ),
            ),
            (
                FilterCriteria::Blocks,
                position(None),
                &hex!("ed018601920000000082012ca0ababababababababababababababababababababababababababababababababc0"),
            ),
            (FilterCriteria::PendingTransactions, Cursor::Arrival(77), &hex!("c902860192000000004d")),
        ];
        for (criteria, cursor, value) in cases {
            let (id, state) = (FilterId([7; 16]), Subscription { criteria, cursor });
            let record = Record { key: vec![7; 16], value: value.to_vec() };
            assert_eq!(decode(&record), Ok(Decoded::Filter(id, state.clone())));
            assert_eq!(put(id, &state, 0x0192_0000_0000), RecordWrite::Put(RecordKind::Filter, record));
        }
    }

    #[test]
    fn keeps_the_encoding_of_each_cursor() {
        let block = BlockRef { number: 300, hash: H256::repeat_byte(0xab) };
        let cases: [(Cursor, &[u8]); 2] = [
            (
                Cursor::Chain(ChainPosition { block, log_index: Some(5) }),
                &hex!("e682012ca0ababababababababababababababababababababababababababababababababc105"),
            ),
            (Cursor::Arrival(77), &hex!("c14d")),
        ];
        for (cursor, value) in cases {
            let key = [&[7; 16][..], &[1]].concat();
            let record = Record { key, value: value.to_vec() };
            assert_eq!(put_position(FilterId([7; 16]), cursor), RecordWrite::Put(RecordKind::Filter, record));
        }
    }
}
