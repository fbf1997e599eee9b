//! Tables and the keys of their rows.
//!
//! A key is a prefix that identifies the subject of the row, and in some tables a version: the number of the block that
//! wrote the row. Versions are stored as complements, so that one seek finds the newest row at or before a block. All
//! integers are big-endian.

use node_core::block::{BlockRef, LogPosition};
use node_core::trie::NibblePath;
use node_types::{Address, BlockNumber, H256};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Block numbers have 40 bits in keys, enough for 34,000 years of one block per second.
pub(crate) const MAX_BLOCK: BlockNumber = (1 << 40) - 1;

/// Block numbers of a chain with a base have a bit less: its place in the ids of tries marks those that continue a trie
/// of the base.
pub(crate) const MAX_BLOCK_WITH_BASE: BlockNumber = MAX_BLOCK >> 1;

/// The index of a log in its block has 24 bits.
pub(crate) const MAX_LOGS: u64 = 1 << 24;

node_types::listed_enum! {
    /// A table whose rows belong to blocks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum Table {
        /// Block number to header.
        Headers,
        /// Hash of a canonical block to block number.
        Numbers,
        /// Block number to transactions with senders, ommers and withdrawals.
        Bodies,
        /// Block number to receipts.
        Receipts,
        /// Hash of a transaction to block number and index in the block.
        Transactions,
        /// Hash of an address and version to account.
        Accounts,
        /// Storage trie, hash of a slot and version to value.
        Storage,
        /// Code hash to code.
        Code,
        /// Trie, position and version to node.
        Trie,
        /// Term and last log of a chunk to the chunk.
        Postings,
        /// Block number to the changes of the block.
        Changes,
        /// Block number to the data of the fee history.
        Fees,
        /// Block number and hash to a block that is not canonical.
        SideBlocks,
        /// Kind and key to a record of the layers above.
        Records,
    }
}

/// The part of a key that follows the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suffix {
    /// Nothing: there is one row per prefix.
    None,
    /// The complement of the number of the block that wrote the row.
    Block,
    /// The id of the last log of a chunk.
    Log,
}

impl Suffix {
    /// Returns the length in bytes.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Block => 5,
            Self::Log => size_of::<LogId>(),
        }
    }
}

impl Table {
    /// Returns whether the keys are block numbers. Every block has one row in each of these tables.
    pub(crate) fn is_numbered(self) -> bool {
        matches!(self, Self::Headers | Self::Bodies | Self::Receipts | Self::Changes | Self::Fees)
    }

    /// Returns the table to which a row with this key belongs.
    pub(crate) fn of_key(key: &[u8]) -> Option<Self> {
        Self::ALL.get(usize::from(*key.first()?)).copied()
    }

    /// Returns the name of the table in statistics and errors.
    pub fn name(self) -> &'static str {
        match self {
            Self::Headers => "headers",
            Self::Numbers => "numbers",
            Self::Bodies => "bodies",
            Self::Receipts => "receipts",
            Self::Transactions => "transactions",
            Self::Accounts => "accounts",
            Self::Storage => "storage",
            Self::Code => "code",
            Self::Trie => "trie",
            Self::Postings => "postings",
            Self::Changes => "changes",
            Self::Fees => "fees",
            Self::SideBlocks => "side_blocks",
            Self::Records => "records",
        }
    }

    pub(crate) fn suffix(self) -> Suffix {
        match self {
            Self::Accounts | Self::Storage | Self::Trie => Suffix::Block,
            Self::Postings => Suffix::Log,
            _ => Suffix::None,
        }
    }
}

/// The account trie, or a storage trie.
///
/// A storage trie is identified by the block that created it and a number within that block. An account that is
/// recreated, or whose storage was empty, gets a new storage trie. Therefore the slots of a deleted account need not
/// be deleted one by one.
///
/// In a chain with a base, a trie can continue one of the base: what has no row in it is as in the base. The account
/// trie does. A storage trie does if the storage of its account was never cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TrieId(pub(crate) u64);

impl TrieId {
    /// The account trie.
    pub(crate) const ACCOUNTS: Self = Self(0);

    /// Set in the ids of storage tries that continue one of the base.
    const CONTINUES: u64 = 1 << 63;

    /// The storage trie of an account that is the same as in the base. It has no rows.
    pub(crate) const UNCHANGED: Self = Self(Self::CONTINUES);

    /// Returns the id of storage trie `index` among those that `block` creates.
    pub(crate) fn storage(block: BlockNumber, index: u32) -> Self {
        Self((block << 24 | u64::from(index)) + 1)
    }

    /// Returns the id of the storage trie that is [`UNCHANGED`](Self::UNCHANGED) up to the change with this number in
    /// `block`. The block must be at most [`MAX_BLOCK_WITH_BASE`].
    pub(crate) fn continuing(block: BlockNumber, index: u32) -> Self {
        Self(Self::CONTINUES | Self::storage(block, index).0)
    }

    /// Returns whether the trie continues one of the base. The chain must have a base.
    pub(crate) fn continues_base(self) -> bool {
        self == Self::ACCOUNTS || self.0 & Self::CONTINUES != 0
    }

    /// Appends a length byte and the significant bytes. No encoding is a prefix of another.
    fn append(self, key: &mut Key) {
        let bytes = self.0.to_be_bytes();
        let significant = &bytes[self.0.leading_zeros() as usize / 8..];
        key.push(significant.len() as u8);
        key.extend(significant);
    }
}

/// Position of a log as one integer: the block number, then the index in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogId(pub(crate) u64);

impl LogId {
    /// Returns the id of the first log of `block`, whether or not the block has logs.
    pub(crate) fn first_of(block: BlockNumber) -> Self {
        Self(block << 24)
    }

    /// Returns the first id at or after `position`, or `None` if it would exceed the range of ids.
    pub(crate) fn at_or_after(position: LogPosition) -> Option<Self> {
        match position {
            LogPosition { block, .. } if block > MAX_BLOCK => None,
            LogPosition { block, log_index } if log_index < MAX_LOGS => Some(Self(block << 24 | log_index)),
            LogPosition { block, .. } => (block < MAX_BLOCK).then(|| Self::first_of(block + 1)),
        }
    }

    pub(crate) fn position(self) -> LogPosition {
        LogPosition { block: self.0 >> 24, log_index: self.0 & (MAX_LOGS - 1) }
    }
}

/// A property by which the index finds logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    /// Every log.
    Any,
    Address(Address),
    /// The topic at a position.
    Topic(u8, H256),
    /// The address and the first topic.
    AddressTopic(Address, H256),
}

/// A table and the prefix of a key in it. The bytes are stored inline, because hundreds of thousands of keys are in
/// memory.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    length: u8,
    bytes: [u8; Self::CAPACITY],
}

impl Key {
    /// The longest prefix is an address with a topic.
    const CAPACITY: usize = 1 + 1 + 20 + 32;

    fn new(table: Table, prefix: &[u8]) -> Self {
        let mut key = Self { length: 0, bytes: [0; Self::CAPACITY] };
        key.push(table as u8);
        key.extend(prefix);
        key
    }

    /// Returns the key of a row about the canonical block `number`.
    pub(crate) fn of_block(table: Table, number: BlockNumber) -> Self {
        Self::new(table, &number.to_be_bytes()[3..])
    }

    /// Returns the key of a row about the block, transaction, code or address with the hash `hash`.
    pub(crate) fn of_hash(table: Table, hash: H256) -> Self {
        Self::new(table, hash.as_bytes())
    }

    /// Returns the key of a block that is not canonical.
    pub(crate) fn of_side_block(block: BlockRef) -> Self {
        let mut key = Self::new(Table::SideBlocks, &block.number.to_be_bytes());
        key.extend(block.hash.as_bytes());
        key
    }

    /// Returns the key of a storage slot.
    pub(crate) fn of_slot(trie: TrieId, slot_hash: H256) -> Self {
        let mut key = Self::new(Table::Storage, &[]);
        trie.append(&mut key);
        key.extend(slot_hash.as_bytes());
        key
    }

    /// Returns the key by which a slot of the base is cached. No row has it.
    pub(crate) fn of_base_slot(account: Address, slot_hash: H256) -> Self {
        let mut key = Self::new(Table::Storage, account.as_bytes());
        key.extend(slot_hash.as_bytes());
        key
    }

    /// Returns the key of a position in a trie: the number of nibbles, and the nibbles packed two to a byte.
    pub(crate) fn of_node(trie: TrieId, position: &NibblePath) -> Self {
        let mut key = Self::new(Table::Trie, &[]);
        trie.append(&mut key);
        key.push(position.len() as u8);
        key.extend(position.packed());
        key
    }

    pub(crate) fn of_term(term: Term) -> Self {
        let mut key = Self::new(Table::Postings, &[]);
        match term {
            Term::Any => key.push(0),
            Term::Address(address) => {
                key.push(1);
                key.extend(address.as_bytes());
            }
            Term::AddressTopic(address, topic) => {
                key.push(2);
                key.extend(address.as_bytes());
                key.extend(topic.as_bytes());
            }
            Term::Topic(position, topic) => {
                key.push(3 + position);
                key.extend(topic.as_bytes());
            }
        }
        key
    }

    pub(crate) fn block_number(&self) -> BlockNumber {
        number_of(self.as_slice())
    }

    pub(crate) fn table(&self) -> Table {
        Table::ALL[usize::from(self.bytes[0])]
    }

    /// Returns the key without the table.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.as_slice()[1..]
    }

    /// Returns the key of the row with this prefix and `version`.
    pub(crate) fn versioned(&self, version: u64) -> RowKey {
        let mut key = RowKey { length: 0, bytes: [0; RowKey::CAPACITY] };
        key.extend(self.as_slice());
        match self.table().suffix() {
            Suffix::None => {}
            Suffix::Block => key.extend(&(MAX_BLOCK - version.min(MAX_BLOCK)).to_be_bytes()[3..]),
            Suffix::Log => key.extend(&version.to_be_bytes()),
        }
        key
    }

    /// Returns the number of the table and the prefix, which are the beginning of the keys of the rows.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn push(&mut self, byte: u8) {
        self.extend(&[byte]);
    }

    /// Appends bytes. Callers do not exceed the capacity: hashes, addresses and integers have fixed lengths, and a
    /// path has at most 32 bytes.
    fn extend(&mut self, bytes: &[u8]) {
        let start = usize::from(self.length);
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len() as u8;
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:02x?}", self.table().name(), self.prefix())
    }
}

/// The key of a row: the number of its table, a prefix and, in some tables, a version.
#[derive(Clone, Copy)]
pub(crate) struct RowKey {
    length: u8,
    bytes: [u8; Self::CAPACITY],
}

impl RowKey {
    const CAPACITY: usize = Key::CAPACITY + 8;

    /// Compares the bytes. Faster than comparing slices, because the first sixteen decide most of the time; those after
    /// the last one are zero.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let first = |key: &Self| key.bytes.first_chunk().copied().map(u128::from_be_bytes);
        first(self).cmp(&first(other)).then_with(|| (**self).cmp(other))
    }

    fn extend(&mut self, bytes: &[u8]) {
        let start = usize::from(self.length);
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len() as u8;
    }
}

impl std::ops::Deref for RowKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Returns the block number in the key of a row. [`Table::is_numbered`] must be true for its table.
pub(crate) fn number_of(key: &[u8]) -> BlockNumber {
    key.iter().skip(1).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns the part of a row's key that filters contain: everything except the version. Returns `None` for tables
/// that need no filter, because the block that wrote the row is known.
pub(crate) fn filter_part(key: &[u8]) -> Option<&[u8]> {
    let table = Table::of_key(key).filter(|table| !table.is_numbered())?;
    key.get(..key.len().checked_sub(table.suffix().len())?)
}

/// Returns the version at the end of a key.
pub(crate) fn version_of(suffix: Suffix, key: &[u8]) -> Option<u64> {
    match suffix {
        Suffix::None => None,
        Suffix::Block => {
            let mut bytes = [0; 8];
            bytes[3..].copy_from_slice(key.last_chunk::<5>()?);
            Some(MAX_BLOCK - u64::from_be_bytes(bytes))
        }
        Suffix::Log => key.last_chunk().copied().map(u64::from_be_bytes),
    }
}

/// Returns the trie in the key of a row of `storage` or `trie`.
pub(crate) fn trie_of(key: &[u8]) -> Option<TrieId> {
    let (length, rest) = key.get(1..)?.split_first()?;
    let significant = rest.get(..usize::from(*length)).filter(|bytes| bytes.len() <= 8)?;
    Some(TrieId(significant.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))))
}
