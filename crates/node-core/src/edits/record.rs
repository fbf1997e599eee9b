//! Edits as durable records.
//!
//! Each pending edit is a record. The next block includes all pending edits in its changes, and a record of that
//! block then states which of its parts do not follow from the protocol's rules.

use crate::backend::{BackendError, Record, RecordKind, RecordWrite, StateBackend};
use crate::block::BlockRef;
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::{Address, BlockNumber, Bytes, H256, U256};
use rlp::{DecoderError, Rlp, RlpStream};
use std::collections::BTreeMap;

/// The properties of a block that make it invalid for other nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// Edits to the parent's state that the block includes.
    pub state: StateChanges,
    /// Whether the block's base fee was set by a request.
    pub base_fee: bool,
    /// Whether the block contains a transaction that its sender did not sign.
    pub unsigned: bool,
    /// Whether the block's gas limit was set by a request and differs from its parent's by more than the rules allow.
    pub gas_limit: bool,
    /// Whether the block comes from a dump: it was not executed, and the states before the newest such block are not
    /// known.
    pub loaded: bool,
}

impl Edits {
    /// Returns whether there are no edits, so that other nodes would accept the block.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns all edited blocks, canonical or not, in ascending order.
///
/// # Errors
/// Failures of the backend.
pub fn edited_blocks(backend: &dyn StateBackend) -> Result<Vec<(BlockRef, Edits)>, BackendError> {
    let records = backend.records(RecordKind::EditedBlock)?;
    records.iter().map(|record| decode_block(record).map_err(unreadable)).collect()
}

/// Returns the first edited block on the canonical chain up to and including block `to`, or `None` if no such block was
/// edited.
///
/// # Errors
/// Failures of the backend.
pub fn first_edited_block(backend: &dyn StateBackend, to: BlockNumber) -> Result<Option<BlockRef>, BackendError> {
    let view = backend.view()?;
    for (block, _) in edited_blocks(backend)? {
        if block.number <= to && view.canonical_hash(block.number)? == Some(block.hash) {
            return Ok(Some(block));
        }
    }
    Ok(None)
}

/// Returns the number of edits of the head that no block includes yet. Records of edits to other blocks do not count: a
/// command may have changed the head without deleting them.
///
/// # Errors
/// Failures of the backend.
pub fn count_pending_edits(backend: &dyn StateBackend) -> Result<usize, BackendError> {
    let head = backend.view()?.head().hash;
    let records = backend.records(RecordKind::PendingEdit)?;
    Ok(records.iter().filter(|record| record.key.starts_with(head.as_bytes())).count())
}

/// Returns the edits of the block `head` that no block includes yet, from the records of a backend; `None` if there are none.
///
/// # Errors
/// If a record cannot be decoded.
pub fn pending_changes(records: &[Record], head: H256) -> Result<Option<StateChanges>, BackendError> {
    let mut pending: Option<StateChanges> = None;
    for record in records.iter().filter(|record| record.key.starts_with(head.as_bytes())) {
        let (_, changes) = decode_pending(record)?;
        pending.get_or_insert_default().merge(&changes);
    }
    Ok(pending)
}

/// Returns the state edits that `block` includes, if any.
pub(super) fn state_edits(backend: &dyn StateBackend, block: BlockRef) -> Result<Option<StateChanges>, BackendError> {
    let Some(value) = block_record(backend, block)? else { return Ok(None) };
    let edits = decode_edits(&value).map_err(unreadable)?;
    Ok((edits.state != StateChanges::default()).then_some(edits.state))
}

/// Returns the value of the record of `block`, or `None` if it has none because it was not edited.
pub(super) fn block_record(backend: &dyn StateBackend, block: BlockRef) -> Result<Option<Vec<u8>>, BackendError> {
    backend.record(RecordKind::EditedBlock, &block_key(block))
}

/// Returns the write that records what makes `block` invalid for other nodes.
pub(crate) fn block_edits(block: BlockRef, edits: &Edits) -> RecordWrite {
    set_block_record(block, Some(encode_edits(edits)))
}

/// Returns the write that sets the value of the record of `block`, or deletes the record if `value` is `None`.
pub(super) fn set_block_record(block: BlockRef, value: Option<Vec<u8>>) -> RecordWrite {
    match value {
        Some(value) => RecordWrite::Put(RecordKind::EditedBlock, Record { key: block_key(block), value }),
        None => RecordWrite::Delete(RecordKind::EditedBlock, block_key(block)),
    }
}

pub(super) fn encode_edits(edits: &Edits) -> Vec<u8> {
    // The last items are optional: older versions did not write them.
    let more = if edits.loaded { 2 } else { usize::from(edits.gas_limit) };
    let mut stream = RlpStream::new_list(3 + more);
    stream.append(&edits.base_fee);
    stream.append(&edits.unsigned);
    append_changes(&mut stream, &edits.state);
    if more > 0 {
        stream.append(&edits.gas_limit);
    }
    if more > 1 {
        stream.append(&edits.loaded);
    }
    stream.out().to_vec()
}

fn decode_block(record: &Record) -> Result<(BlockRef, Edits), DecoderError> {
    let (number, hash) = record.key.split_at_checked(8).ok_or(DecoderError::RlpInvalidLength)?;
    let number = u64::from_be_bytes(number.try_into().map_err(|_| DecoderError::RlpInvalidLength)?);
    let hash = <[u8; 32]>::try_from(hash).map_err(|_| DecoderError::RlpInvalidLength)?.into();
    Ok((BlockRef { number, hash }, decode_edits(&record.value)?))
}

fn decode_edits(value: &[u8]) -> Result<Edits, DecoderError> {
    let rlp = Rlp::new(value);
    Ok(Edits {
        base_fee: rlp.val_at(0)?,
        unsigned: rlp.val_at(1)?,
        state: decode_changes(&rlp.at(2)?)?,
        gas_limit: rlp.item_count()? > 3 && rlp.val_at(3)?,
        loaded: rlp.item_count()? > 4 && rlp.val_at(4)?,
    })
}

/// Returns the write that records the pending edit number `sequence` of the block `head`.
pub(super) fn pending_record(head: H256, sequence: u64, changes: &StateChanges) -> RecordWrite {
    let value = encode_changes(changes);
    RecordWrite::Put(RecordKind::PendingEdit, Record { key: pending_key(head, sequence), value })
}

pub(super) fn delete_pending(head: H256, sequence: u64) -> RecordWrite {
    RecordWrite::Delete(RecordKind::PendingEdit, pending_key(head, sequence))
}

/// Decodes the block and the changes in the record of a pending edit.
pub(super) fn decode_pending(record: &Record) -> Result<(H256, StateChanges), BackendError> {
    let head = record.key.first_chunk::<32>().ok_or(DecoderError::RlpInvalidLength).map_err(unreadable)?;
    Ok((head.into(), decode_changes(&Rlp::new(&record.value)).map_err(unreadable)?))
}

pub(crate) fn encode_changes(changes: &StateChanges) -> Vec<u8> {
    let mut stream = RlpStream::new();
    append_changes(&mut stream, changes);
    stream.out().to_vec()
}

fn block_key(block: BlockRef) -> Vec<u8> {
    [&block.number.to_be_bytes()[..], block.hash.as_bytes()].concat()
}

fn pending_key(head: H256, sequence: u64) -> Vec<u8> {
    [head.as_bytes(), &sequence.to_be_bytes()].concat()
}

fn unreadable(error: DecoderError) -> BackendError {
    BackendError::Storage(Box::new(error))
}

fn append_changes(stream: &mut RlpStream, changes: &StateChanges) {
    stream.begin_list(2).begin_list(changes.accounts.len());
    for (address, change) in &changes.accounts {
        stream.begin_list(4).append(address);
        match change.account {
            Some(AccountState { nonce, balance, code_hash }) => {
                stream.begin_list(3).append(&nonce).append(&balance).append(&code_hash);
            }
            None => drop(stream.begin_list(0)),
        }
        stream.append(&change.storage_cleared).begin_list(change.storage.len());
        for (slot, value) in &change.storage {
            stream.begin_list(2).append(slot).append(value);
        }
    }
    stream.begin_list(changes.code.len());
    for code in changes.code.values() {
        stream.append(&code.as_ref());
    }
}

/// Decodes changes of a state.
pub(crate) fn decode_changes(rlp: &Rlp<'_>) -> Result<StateChanges, DecoderError> {
    let mut changes = StateChanges::default();
    for item in rlp.at(0)?.iter() {
        let account = item.at(1)?;
        let account = match account.item_count()? {
            0 => None,
            _ => Some(AccountState {
                nonce: account.val_at(0)?,
                balance: account.val_at(1)?,
                code_hash: account.val_at(2)?,
            }),
        };
        let storage: Result<BTreeMap<H256, U256>, DecoderError> =
            item.at(3)?.iter().map(|slot| Ok((slot.val_at(0)?, slot.val_at(1)?))).collect();
        let change = AccountChange { account, storage_cleared: item.val_at(2)?, storage: storage? };
        changes.accounts.insert(item.val_at::<Address>(0)?, change);
    }
    for code in rlp.at(1)?.iter() {
        let code = Bytes::from(code.data()?.to_vec());
        changes.code.insert(node_types::keccak256(&code), code);
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::hex;
    use proptest::prelude::*;

    fn changes() -> impl Strategy<Value = StateChanges> {
        let word = || any::<[u8; 32]>();
        let state = (any::<u64>(), word(), word()).prop_map(|(nonce, balance, code_hash)| AccountState {
            nonce,
            balance: U256::from_big_endian(&balance),
            code_hash: code_hash.into(),
        });
        let slot = (word(), word()).prop_map(|(slot, value)| (H256::from(slot), U256::from_big_endian(&value)));
        let storage = prop::collection::btree_map(word(), slot, 0..4).prop_map(|slots| slots.into_values().collect());
        let account = (prop::option::of(state), any::<bool>(), storage)
            .prop_map(|(account, storage_cleared, storage)| AccountChange { account, storage_cleared, storage });
        let accounts = prop::collection::btree_map(any::<[u8; 20]>().prop_map(Address::from), account, 0..4);
        let code = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..3);
        (accounts, code).prop_map(|(accounts, code)| {
            let code = code.into_iter().map(|code| (node_types::keccak256(&code), Bytes::from(code))).collect();
            StateChanges { accounts, code }
        })
    }

    proptest! {
        #[test]
        fn records_round_trip(
            state in changes(),
            base_fee: bool,
            unsigned: bool,
            gas_limit: bool,
            loaded: bool,
            number: u64,
            hash: [u8; 32],
        ) {
            let RecordWrite::Put(_, record) = pending_record(hash.into(), number, &state) else { panic!() };
            prop_assert_eq!(decode_pending(&record).unwrap(), (hash.into(), state.clone()));
            let block = BlockRef { number, hash: hash.into() };
            let edits = Edits { state, base_fee, unsigned, gas_limit, loaded };
            let record = Record { key: block_key(block), value: encode_edits(&edits) };
            prop_assert_eq!(decode_block(&record).unwrap(), (block, edits));
        }

        #[test]
        fn damaged_records_do_not_panic(key: Vec<u8>, value: Vec<u8>) {
            let record = Record { key, value };
            let _ = (decode_block(&record), decode_pending(&record));
        }
    }

    /// [`golden_changes`], encoded.
    const CHANGES: &[u8] = &hex!(
        "f8a6f8a0f885940101010101010101010101010101010101010101e5078203e8a0cccccccccccccccccccccccccccccccccccccccccc"
        "cccccccccccccccccccccc80f847e3a0020202020202020202020202020202020202020202020202020202020202020281ffe2a00303"
        "03030303030303030303030303030303030303030303030303030303030380d8940404040404040404040404040404040404040404c0"
        "01c0c3826000"
    );

    fn golden_changes() -> StateChanges {
        let state = AccountState { nonce: 7, balance: 1000.into(), code_hash: H256::repeat_byte(0xcc) };
        let slots = [(H256::repeat_byte(2), 255.into()), (H256::repeat_byte(3), U256::zero())];
        let changed = AccountChange { account: Some(state), storage_cleared: false, storage: slots.into() };
        let deleted = AccountChange { account: None, storage_cleared: true, storage: BTreeMap::new() };
        let code = Bytes::from(&[0x60, 0x00][..]);
        StateChanges {
            accounts: [(Address::repeat_byte(1), changed), (Address::repeat_byte(4), deleted)].into(),
            code: [(node_types::keccak256(&code), code)].into(),
        }
    }

    // Part of the layout on the disk: see docs/storage.md.
    #[test]
    fn keeps_the_encoding_of_a_pending_edit() {
        let head = H256::repeat_byte(0xab);
        let key = [head.as_bytes(), &[0, 0, 0, 0, 0, 0, 0, 5]].concat();
        let record = Record { key, value: CHANGES.to_vec() };
        assert_eq!(decode_pending(&record).unwrap(), (head, golden_changes()));
        assert_eq!(pending_record(head, 5, &golden_changes()), RecordWrite::Put(RecordKind::PendingEdit, record));
    }

    #[test]
    fn keeps_the_encoding_of_edited_blocks() {
        let block = BlockRef { number: 300, hash: H256::repeat_byte(0xab) };
        let key = [&[0, 0, 0, 0, 0, 0, 1, 44], block.hash.as_bytes()].concat();
        let state = Edits { state: golden_changes(), base_fee: true, ..Edits::default() };
        let gas_limit = Edits { unsigned: true, gas_limit: true, ..Edits::default() };
        let cases = [(state, [&hex!("f8aa0180")[..], CHANGES].concat()), (gas_limit, hex!("c68001c2c0c001").to_vec())];
        for (edits, value) in cases {
            let record = Record { key: key.clone(), value };
            assert_eq!(decode_block(&record), Ok((block, edits.clone())));
            let write = set_block_record(block, Some(encode_edits(&edits)));
            assert_eq!(write, RecordWrite::Put(RecordKind::EditedBlock, record));
        }
    }
}
