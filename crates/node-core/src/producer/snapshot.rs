//! Development snapshots, to which the chain can be reverted.
//!
//! The key of a snapshot's record is its number, 8 bytes big-endian. The value is an RLP list of the head's hash and
//! number, the offset of the chain's clock from the system clock in milliseconds (two's complement in 64 bits), the
//! pending edits, and the hashes of the pool's transactions. The value is empty if the snapshot is deleted; such a
//! record remains of the last one, so that its number is not used again after a restart.

use super::{BlockRef, H256, Producer, ProducerError, ProducerParts};
use crate::backend::{BackendError, Branch, Record, RecordKind, RecordWrite, StateBackend};
use crate::edits;
use crate::pool::{DropReason, Effects};
use crate::state::StateChanges;
use rlp::{DecoderError, Rlp, RlpStream};
use std::collections::{BTreeMap, HashSet};

/// Maximum memory of all snapshots in bytes. It is estimated, and their records have fewer bytes.
const MAX_BYTES: usize = 64 << 20;

/// Estimated memory in bytes of a snapshot without edits and transactions.
const EMPTY: usize = 256;

/// The state of a node at one moment, without the blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DevSnapshot {
    head: BlockRef,
    /// How far the chain's clock was ahead of the system clock, in milliseconds.
    offset: i64,
    /// Pending edits.
    edits: StateChanges,
    pool: Vec<H256>,
}

pub(super) struct Snapshots {
    kept: BTreeMap<u64, DevSnapshot>,
    /// The memory that they take.
    memory: usize,
    /// The number of the deleted snapshot whose record remains, if there is one.
    deleted: Option<u64>,
    /// The number of the next one. Numbers of deleted snapshots are not used again: a client that still has one would
    /// revert to another state.
    next: u64,
}

impl Snapshots {
    pub(super) fn open(backend: &dyn StateBackend) -> Result<Self, BackendError> {
        let records = backend.records(RecordKind::Snapshot)?;
        let damaged = |error: DecoderError| BackendError::Storage(Box::new(error));
        let (mut kept, mut deleted) = (BTreeMap::new(), None);
        for record in &records {
            let id = number(record).map_err(damaged)?;
            if record.value.is_empty() {
                deleted = Some(id);
            } else {
                kept.insert(id, DevSnapshot::decode(record).map_err(damaged)?.1);
            }
        }
        let last = kept.keys().copied().last().max(deleted);
        let memory = kept.values().map(DevSnapshot::memory).sum();
        Ok(Self { kept, memory, deleted, next: last.map_or(1, |last| last + 1) })
    }

    /// Stores a snapshot under the next number, and returns the number.
    fn add(&mut self, backend: &dyn StateBackend, snapshot: DevSnapshot) -> Result<u64, ProducerError> {
        let memory = self.memory + snapshot.memory();
        if memory > MAX_BYTES {
            return Err(ProducerError::SnapshotsTooLarge(MAX_BYTES));
        }
        let id = self.next;
        let value = snapshot.encode();
        let deletion = self.deleted.map(|id| RecordWrite::Delete(RecordKind::Snapshot, key(id)));
        let record = RecordWrite::Put(RecordKind::Snapshot, Record { key: key(id), value });
        let writes: Vec<_> = deletion.into_iter().chain([record]).collect();
        backend.write_records(&writes)?;
        self.kept.insert(id, snapshot);
        (self.deleted, self.next, self.memory) = (None, id + 1, memory);
        Ok(id)
    }

    /// Returns the writes that delete a snapshot and all later ones.
    pub(super) fn deletions_from(&self, id: u64) -> Vec<RecordWrite> {
        if self.kept.range(id..).next().is_none() {
            return Vec::new();
        }
        let last = self.next - 1;
        let gone = self.kept.range(id..).map(|(id, _)| *id).chain(self.deleted).filter(|id| *id != last);
        let deletions = gone.map(|id| RecordWrite::Delete(RecordKind::Snapshot, key(id)));
        let remains = RecordWrite::Put(RecordKind::Snapshot, Record { key: key(last), value: Vec::new() });
        deletions.chain([remains]).collect()
    }

    /// Forgets a snapshot and all later ones, after their records were deleted.
    pub(super) fn forget_from(&mut self, id: u64) {
        let gone = self.kept.split_off(&id);
        if !gone.is_empty() {
            self.memory -= gone.values().map(DevSnapshot::memory).sum::<usize>();
            self.deleted = Some(self.next - 1);
        }
    }
}

impl DevSnapshot {
    fn memory(&self) -> usize {
        EMPTY + self.edits.memory() + self.pool.len() * size_of::<H256>()
    }

    fn encode(&self) -> Vec<u8> {
        let mut stream = RlpStream::new_list(5);
        stream.append(&self.head.hash).append(&self.head.number).append(&self.offset.cast_unsigned());
        stream.append(&edits::encode_changes(&self.edits)).append_list(&self.pool);
        stream.out().to_vec()
    }

    fn decode(record: &Record) -> Result<(u64, Self), DecoderError> {
        let id = number(record)?;
        let rlp = Rlp::new(&record.value);
        let snapshot = Self {
            head: BlockRef { hash: rlp.val_at(0)?, number: rlp.val_at(1)? },
            offset: rlp.val_at::<u64>(2)?.cast_signed(),
            edits: edits::decode_changes(&Rlp::new(rlp.at(3)?.data()?))?,
            pool: rlp.list_at(4)?,
        };
        Ok((id, snapshot))
    }
}

/// Returns the number of a record's snapshot.
fn number(record: &Record) -> Result<u64, DecoderError> {
    let key = <[u8; 8]>::try_from(&*record.key).map_err(|_| DecoderError::RlpInvalidLength)?;
    Ok(u64::from_be_bytes(key))
}

fn key(id: u64) -> Vec<u8> {
    id.to_be_bytes().to_vec()
}

impl Producer {
    /// Takes a snapshot of the chain, its edits, its clock and the transactions of the pool. Returns its number. The
    /// snapshot is durable when this returns.
    ///
    /// # Errors
    /// [`ProducerError::SnapshotsTooLarge`], and failures of the backend.
    pub fn snapshot(&self) -> Result<u64, ProducerError> {
        let _sealing = self.lock()?;
        let mut snapshots = self.snapshots.lock();
        let snapshot = DevSnapshot {
            head: self.parts.backend.view()?.head(),
            offset: self.settings.offset(),
            edits: self.parts.backend.pending_edits()?,
            pool: self.parts.pool.hashes(),
        };
        snapshots.add(&*self.parts.backend, snapshot)
    }

    /// Returns the numbers of all snapshots, each with the head that it recorded.
    pub fn snapshots(&self) -> Vec<(u64, BlockRef)> {
        self.snapshots.lock().kept.iter().map(|(id, snapshot)| (*id, snapshot.head)).collect()
    }

    /// Reverts the chain and the pool to a snapshot, and deletes it and all later ones, in one durable write. On an error
    /// nothing has changed.
    ///
    /// # Errors
    /// [`ProducerError::UnknownSnapshot`], [`ProducerError::SnapshotLost`], and failures of the backend.
    pub fn revert(&self, id: u64) -> Result<(), ProducerError> {
        let _sealing = self.lock()?;
        let mut snapshots = self.snapshots.lock();
        let snapshot = snapshots.kept.get(&id).ok_or(ProducerError::UnknownSnapshot(id))?;
        let ProducerParts { backend, pool, .. } = &self.parts;
        let view = backend.view()?;
        let returning: HashSet<_> = snapshot.pool.iter().copied().collect();
        let lost = ProducerError::SnapshotLost(snapshot.head.number);
        let Branch { ancestor, blocks } = Branch::to(&*view, snapshot.head.hash)?.ok_or(lost)?;
        let mut writes = pool.record_leaving(&*view, ancestor, |hash| returning.contains(&hash))?;
        drop(view);
        let dropped = pool.hashes().into_iter().filter(|hash| !returning.contains(hash));
        let dropped = dropped.map(|hash| (hash, DropReason::Reverted)).collect();
        let effects = Effects { returning: Some((returning, DropReason::Reverted)), dropped };
        writes.extend(effects.deletions());
        writes.extend(snapshots.deletions_from(id));
        pool.change_chain(effects, || backend.switch_edited(ancestor, blocks, &snapshot.edits, &writes))?;
        self.settings.revert_offset(snapshot.offset);
        snapshots.forget_from(id);
        self.refresh_pool();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::hex;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_round_trip(id: u64, number: u64, hash: [u8; 32], offset: i64, pool: Vec<[u8; 32]>) {
            let pool = pool.into_iter().map(H256::from).collect();
            let head = BlockRef { number, hash: hash.into() };
            let snapshot = DevSnapshot { head, offset, edits: StateChanges::default(), pool };
            let record = Record { key: key(id), value: snapshot.encode() };
            prop_assert_eq!(DevSnapshot::decode(&record).unwrap(), (id, snapshot));
        }

        #[test]
        fn damaged_records_do_not_panic(key: Vec<u8>, value: Vec<u8>) {
            let _ = DevSnapshot::decode(&Record { key, value });
        }
    }

    // Part of the layout on the disk: see docs/storage.md.
    #[test]
    fn keeps_the_encoding() {
        let value = hex!(
            "f9011ba0abababababababababababababababababababababababababababababababab82012c88fffffffffffffa24b8a8f8a6"
            "f8a0f885940101010101010101010101010101010101010101e5078203e8a0cccccccccccccccccccccccccccccccccccccccccc"
            "cccccccccccccccccccccc80f847e3a0020202020202020202020202020202020202020202020202020202020202020281ffe2a0"
            "030303030303030303030303030303030303030303030303030303030303030380d8940404040404040404040404040404040404"
            "040404c001c0c3826000f842a00606060606060606060606060606060606060606060606060606060606060606a0070707070707"
            "0707070707070707070707070707070707070707070707070707"
        );
        let record = Record { key: vec![0, 0, 0, 0, 0, 0, 0, 4], value: value.to_vec() };
        let (id, snapshot) = DevSnapshot::decode(&record).unwrap();
        assert_eq!((id, snapshot.offset), (4, -1500));
        assert_eq!(snapshot.head, BlockRef { number: 300, hash: H256::repeat_byte(0xab) });
        assert_eq!(snapshot.edits.accounts.len(), 2);
        assert_eq!(snapshot.pool, [6, 7].map(H256::repeat_byte));
        assert_eq!(snapshot.encode(), record.value);
    }
}
