//! Tables and the keys of their rows.
//!
//! A key is a prefix that says what the row is about, and in most tables a version: the block that wrote it. Versions
//! are stored as complements, so that one seek finds the newest row at or before a block. All integers are big-endian.

use node_core::block::LogPosition;
use node_types::{Address, BlockNumber, H256};
use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Blocks are numbered with 40 bits in keys: enough for 34,000 years of a block a second.
pub(crate) const MAX_BLOCK: BlockNumber = (1 << 40) - 1;

/// Logs of one block are numbered with 24 bits.
pub(crate) const MAX_LOGS: u64 = 1 << 24;

/// A table whose rows belong to blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Table {
    /// Number to header.
    Headers,
    /// Hash of a canonical block to its number.
    Numbers,
    /// Number to transactions with senders, ommers, withdrawals.
    Bodies,
    /// Number to receipts.
    Receipts,
    /// Hash of a transaction to block and index.
    Transactions,
    /// Hash of an address and version to an account.
    Accounts,
    /// Storage trie, hash of a slot and version to a value.
    Storage,
    /// Hash to code.
    Code,
    /// Trie, position and version to a node.
    Trie,
    /// Term and first log to a chunk of logs.
    Postings,
    /// Number to what a block changed.
    Changes,
    /// Number to what the fee history needs.
    Fees,
}

/// What follows the prefix in a key of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suffix {
    /// Nothing: there is one row a prefix.
    None,
    /// The complement of the number of the block that wrote the row.
    Block,
    /// The first log of a chunk.
    Log,
}

impl Suffix {
    /// Its length in bytes.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Block => 5,
            Self::Log => size_of::<LogId>(),
        }
    }
}

impl Table {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 12] = [
        Self::Headers,
        Self::Numbers,
        Self::Bodies,
        Self::Receipts,
        Self::Transactions,
        Self::Accounts,
        Self::Storage,
        Self::Code,
        Self::Trie,
        Self::Postings,
        Self::Changes,
        Self::Fees,
    ];

    /// Its name in the database.
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

/// A trie: that of the accounts, or one of storage.
///
/// A storage trie is named by the block that began it and a number within that block. An account that is recreated, or
/// whose storage was empty, begins a new one, so that nothing has to be swept away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TrieId(pub(crate) u64);

impl TrieId {
    /// The trie of the accounts.
    pub(crate) const ACCOUNTS: Self = Self(0);

    /// The storage trie number `index` of those that `block` begins.
    pub(crate) fn storage(block: BlockNumber, index: u32) -> Self {
        Self((block << 24 | u64::from(index)) + 1)
    }

    /// Appends a length byte and the significant bytes: no encoding is a prefix of another.
    fn append(self, key: &mut Key) {
        let bytes = self.0.to_be_bytes();
        let significant = &bytes[self.0.leading_zeros() as usize / 8..];
        key.push(significant.len() as u8);
        key.extend(significant);
    }
}

/// Position of a log as one integer: block number, then position in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogId(pub(crate) u64);

impl LogId {
    /// The first log of `block`, had it any.
    pub(crate) fn first_of(block: BlockNumber) -> Self {
        Self(block << 24)
    }

    /// The first that is not before `position`; none if nothing can be there.
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

/// What a log is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    /// Being a log.
    Any,
    /// Its address.
    Address(Address),
    /// The topic at a position.
    Topic(u8, H256),
    /// Its address and its first topic.
    AddressTopic(Address, H256),
}

/// A table and the prefix of a key in it. Kept inline, for there are hundreds of thousands of them in memory.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    length: u8,
    bytes: [u8; Self::CAPACITY],
}

impl Key {
    /// The longest is that of an address with a topic.
    const CAPACITY: usize = 1 + 1 + 20 + 32;

    fn new(table: Table, prefix: &[u8]) -> Self {
        let mut key = Self { length: 0, bytes: [0; Self::CAPACITY] };
        key.push(table as u8);
        key.extend(prefix);
        key
    }

    /// A row about the canonical block `number`.
    pub(crate) fn of_block(table: Table, number: BlockNumber) -> Self {
        Self::new(table, &number.to_be_bytes()[3..])
    }

    /// A row about what has the hash `hash`: a block, a transaction, code, or an address.
    pub(crate) fn of_hash(table: Table, hash: H256) -> Self {
        Self::new(table, hash.as_bytes())
    }

    /// A slot by its hash.
    pub(crate) fn of_slot(trie: TrieId, slot_hash: H256) -> Self {
        let mut key = Self::new(Table::Storage, &[]);
        trie.append(&mut key);
        key.extend(slot_hash.as_bytes());
        key
    }

    /// A position in a trie: so many nibbles of `path`, in whole bytes, what is left of the last one zero.
    pub(crate) fn of_node(trie: TrieId, nibbles: u8, path: &[u8]) -> Self {
        let mut key = Self::new(Table::Trie, &[]);
        trie.append(&mut key);
        key.push(nibbles);
        key.extend(path);
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

    /// The block that a key of [`Self::of_block`] is about.
    pub(crate) fn block_number(&self) -> BlockNumber {
        self.prefix().iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    pub(crate) fn table(&self) -> Table {
        Table::ALL[usize::from(self.bytes[0])]
    }

    /// The key without the table.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.as_slice()[1..]
    }

    /// The key in the database of the row with this prefix and `version`.
    pub(crate) fn versioned(&self, version: u64) -> DatabaseKey {
        let mut key = DatabaseKey { length: 0, bytes: [0; DatabaseKey::CAPACITY] };
        key.extend(self.prefix());
        match self.table().suffix() {
            Suffix::None => {}
            Suffix::Block => key.extend(&(MAX_BLOCK - version.min(MAX_BLOCK)).to_be_bytes()[3..]),
            Suffix::Log => key.extend(&version.to_be_bytes()),
        }
        key
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn push(&mut self, byte: u8) {
        self.extend(&[byte]);
    }

    /// Every caller stays within the capacity: hashes, addresses and integers have fixed lengths, and a path at most 32
    /// bytes.
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

/// A key as the database has it.
#[derive(Clone, Copy)]
pub(crate) struct DatabaseKey {
    length: u8,
    bytes: [u8; Self::CAPACITY],
}

impl DatabaseKey {
    const CAPACITY: usize = Key::CAPACITY + 8;

    fn extend(&mut self, bytes: &[u8]) {
        let start = usize::from(self.length);
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len() as u8;
    }
}

impl std::ops::Deref for DatabaseKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The version at the end of a key of the database.
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

/// The trie in a key of `storage` or `trie`.
pub(crate) fn trie_of(key: &[u8]) -> Option<TrieId> {
    let (length, rest) = key.split_first()?;
    let significant = rest.get(..usize::from(*length)).filter(|bytes| bytes.len() <= 8)?;
    Some(TrieId(significant.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))))
}
