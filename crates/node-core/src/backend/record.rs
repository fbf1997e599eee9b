//! Small durable records that are not part of the chain.

use std::collections::BTreeMap;

node_types::listed_enum! {
    /// The purpose of a durable record. Backends treat all kinds alike.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum RecordKind {
        PoolTransaction,
        Filter,
        /// An edit of the head's state that no block includes yet; see [`edits`](crate::edits).
        PendingEdit,
        /// The reasons why other nodes would reject an edited block; see [`edits`](crate::edits).
        EditedBlock,
        /// A snapshot of a development chain, to which it can be reverted.
        Snapshot,
        /// The chain identifier, which is not part of any block.
        ChainId,
        /// How far a chain file was imported.
        ImportedFile,
    }
}

/// A durable record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Key, unique among the records of one kind.
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// A change to the durable records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordWrite {
    /// Adds or replaces a record.
    Put(RecordKind, Record),
    /// Deletes the record with this key, if it exists.
    Delete(RecordKind, Vec<u8>),
}

/// The values of records in memory, by kind and key.
pub type RecordValues = BTreeMap<(RecordKind, Vec<u8>), Vec<u8>>;

impl RecordWrite {
    /// Returns the kind of the record that is changed.
    pub fn kind(&self) -> RecordKind {
        match self {
            Self::Put(kind, _) | Self::Delete(kind, _) => *kind,
        }
    }

    /// Makes the change in memory.
    pub fn apply(self, values: &mut RecordValues) {
        match self {
            Self::Put(kind, Record { key, value }) => values.insert((kind, key), value),
            Self::Delete(kind, key) => values.remove(&(kind, key)),
        };
    }
}

/// Returns the records of one kind, ascending by their keys.
pub fn records_of_kind(values: &RecordValues, kind: RecordKind) -> Vec<Record> {
    let of_kind = values.range((kind, Vec::new())..).take_while(|((other, _), _)| *other == kind);
    of_kind.map(|((_, key), value)| Record { key: key.clone(), value: value.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::RecordKind;

    #[test]
    fn every_kind_is_listed_once() {
        for (index, kind) in RecordKind::ALL.into_iter().enumerate() {
            // A new kind needs an arm here, and a place in the list.
            let expected = match kind {
                RecordKind::PoolTransaction => 0,
                RecordKind::Filter => 1,
                RecordKind::PendingEdit => 2,
                RecordKind::EditedBlock => 3,
                RecordKind::Snapshot => 4,
                RecordKind::ChainId => 5,
                RecordKind::ImportedFile => 6,
            };
            assert_eq!(index, expected);
        }
    }
}
