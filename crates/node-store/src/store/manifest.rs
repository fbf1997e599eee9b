//! The manifest: the list of the runs of a store, and data about the chain in them.
//!
//! It is replaced as a whole by a file with a higher number. An older one is removed only when the new one is
//! durable, so there is an intact one at any time. Each file has two copies of its content.

use crate::codec::{Malformed, Reader, put_bytes, put_varint};
use crate::error::StoreError;
use crate::files::{Folder, damage, naming, read_whole};
use crate::runs::RunId;
use crate::wal::Sequence;
use node_core::block::BlockRef;
use node_types::{BlockNumber, H256};
use std::io;
use twox_hash::XxHash3_64;

/// Version of the layout: of all files of a folder and their content. docs/storage.md specifies when to increase it.
pub(super) const LAYOUT: u64 = 1;

/// Version of the layout of a folder whose chain has a base. Programs that know only [`LAYOUT`] must not open it: they
/// would take what has no row for absent.
const LAYOUT_WITH_BASE: u64 = 2;

/// Maximum size of a manifest in bytes. It has two copies of a genesis file, and 20 bytes for each run.
const MAX_SIZE: u64 = 256 << 20;

/// Data about a chain besides its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Hash of the first block.
    pub(crate) genesis: H256,
    /// The number of the first block if the chain has a base, which has the state as of it. `None` if the first block is
    /// a genesis block.
    pub(crate) base: Option<BlockNumber>,
    /// The newest block in runs.
    pub(crate) head: BlockRef,
    /// The earliest block whose state is stored.
    pub(crate) earliest: BlockNumber,
    /// The last log entry that is in runs.
    pub(crate) logged: Sequence,
}

impl Meta {
    /// Fails unless the folder is opened with a base if and only if its chain has one.
    pub(super) fn check_base(&self, has_base: bool) -> Result<(), StoreError> {
        match self.base {
            Some(first) if !has_base => Err(StoreError::NeedsBase(first)),
            None if has_base => Err(StoreError::NoBase),
            _ => Ok(()),
        }
    }
}

/// A run of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: RunId,
    /// Length of the file in bytes.
    pub(crate) size: u64,
    /// The last block whose rows are visible.
    pub(crate) limit: BlockNumber,
}

/// The content of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Number of the file.
    pub(crate) number: u64,
    /// A lower bound of the ids of runs that will be written.
    pub(crate) next_run: u64,
    pub(crate) meta: Meta,
    pub(crate) genesis_file: Option<Vec<u8>>,
    /// Runs with the tables whose rows are keyed by block numbers, the oldest first.
    pub(crate) numbered: Vec<Listed>,
    /// Runs with the other tables, the oldest first.
    pub(crate) keyed: Vec<Listed>,
}

const MAGIC: [u8; 8] = *b"NODE-MAN";

fn file_name(number: u64) -> String {
    format!("manifest-{number:012}")
}

/// Returns the number of the manifest whose file has this name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_prefix("manifest-")?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}

impl Manifest {
    /// Reads the newest manifest that was written completely, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::UnsupportedLayout`], and [`StoreError::File`] if there are manifests, but none is intact.
    pub(crate) fn read(folder: &dyn Folder) -> Result<Option<Self>, StoreError> {
        let names = folder.list().map_err(StoreError::File)?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        let mut damaged = None;
        for number in numbers.into_iter().rev() {
            let name = file_name(number);
            let named = |error: io::Error| StoreError::File(naming(&name, &error));
            let file = folder.open(&name).map_err(named)?;
            let bytes = read_whole(&*file, &name, MAX_SIZE).map_err(StoreError::File)?;
            if let Some(content) = intact(number, &bytes) {
                return Ok(Some(Self::decode(number, content)?));
            }
            // If there is an older manifest, this one was not written completely.
            damaged = Some(number);
        }
        match damaged {
            // The first manifest is that of a store whose creation was not completed. Otherwise the log has entries,
            // and opening it detects that.
            None | Some(1) => Ok(None),
            Some(number) => Err(StoreError::File(damage(format_args!("{} is damaged", file_name(number))))),
        }
    }

    /// Writes the manifest durably and removes all others. The names of the runs in it must be durable.
    pub(crate) fn write(&self, folder: &dyn Folder) -> io::Result<()> {
        let name = file_name(self.number);
        let file = folder.create(&name)?;
        file.write_at(0, &self.encode())?;
        file.sync_data()?;
        folder.sync()?;
        let others = folder.list()?;
        others
            .iter()
            .filter(|other| number_of(other).is_some() && **other != name)
            .try_for_each(|other| folder.remove(other))
    }

    fn encode(&self) -> Vec<u8> {
        let mut content = MAGIC.to_vec();
        put_varint(&mut content, if self.meta.base.is_some() { LAYOUT_WITH_BASE } else { LAYOUT });
        put_varint(&mut content, self.next_run);
        let Meta { genesis, base, head, earliest, logged } = self.meta;
        content.extend_from_slice(genesis.as_bytes());
        base.iter().for_each(|first| put_varint(&mut content, *first));
        put_varint(&mut content, head.number);
        content.extend_from_slice(head.hash.as_bytes());
        put_varint(&mut content, earliest);
        put_varint(&mut content, logged.0);
        match &self.genesis_file {
            Some(file) => {
                content.push(1);
                put_bytes(&mut content, file);
            }
            None => content.push(0),
        }
        for runs in [&self.numbered, &self.keyed] {
            put_varint(&mut content, runs.len() as u64);
            for run in runs {
                [run.id.0, run.size, run.limit].into_iter().for_each(|number| put_varint(&mut content, number));
            }
        }
        seal(self.number, content)
    }

    fn decode(number: u64, content: &[u8]) -> Result<Self, StoreError> {
        let mut reader = Reader::new(content, "the manifest");
        if reader.array()? != MAGIC {
            return Err(StoreError::Foreign);
        }
        let layout = reader.varint()?;
        if ![LAYOUT, LAYOUT_WITH_BASE].contains(&layout) {
            return Err(StoreError::UnsupportedLayout { found: layout, supported: LAYOUT });
        }
        let next_run = reader.varint()?;
        let meta = Meta {
            genesis: reader.h256()?,
            base: (layout == LAYOUT_WITH_BASE).then(|| reader.varint()).transpose()?,
            head: BlockRef { number: reader.varint()?, hash: reader.h256()? },
            earliest: reader.varint()?,
            logged: Sequence(reader.varint()?),
        };
        let genesis_file = if reader.byte()? == 0 { None } else { Some(reader.bytes()?.to_vec()) };
        let mut runs = || -> Result<Vec<Listed>, Malformed> {
            let count = reader.count(3)?;
            let run = |_| Ok(Listed { id: RunId(reader.varint()?), size: reader.varint()?, limit: reader.varint()? });
            (0..count).map(run).collect()
        };
        let (numbered, keyed) = (runs()?, runs()?);
        reader.finish()?;
        Ok(Self { number, next_run, meta, genesis_file, numbered, keyed })
    }
}

/// Returns the file of a content: two copies with checksums.
pub(crate) fn seal(number: u64, mut content: Vec<u8>) -> Vec<u8> {
    let sum = XxHash3_64::oneshot_with_seed(number, &content);
    content.extend_from_slice(&sum.to_be_bytes());
    content.repeat(2)
}

/// Returns the content of the first intact copy, without its checksum.
fn intact(number: u64, bytes: &[u8]) -> Option<&[u8]> {
    let (first, second) = bytes.split_at_checked(bytes.len() / 2)?;
    // If the file is truncated, what remains of the second copy is the beginning of the first one.
    let ends = (bytes.len() / 2 + 1..=bytes.len()).filter(|end| bytes.starts_with(&bytes[*end..]));
    [first, second].into_iter().chain(ends.map(|end| &bytes[..end])).find_map(|copy| {
        let (content, sum) = copy.split_last_chunk()?;
        (XxHash3_64::oneshot_with_seed(number, content) == u64::from_be_bytes(*sum)).then_some(content)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::faults::FaultyDisk;

    fn manifest(number: u64) -> Manifest {
        let head = BlockRef { number: 7 * number, hash: H256::repeat_byte(number as u8) };
        let listed = |id| Listed { id: RunId(id), size: 1000 * id, limit: 10 * id };
        Manifest {
            number,
            next_run: 3 * number,
            meta: Meta {
                genesis: H256::repeat_byte(1),
                base: number.is_multiple_of(3).then_some(5 * number),
                head,
                earliest: number,
                logged: Sequence(number),
            },
            genesis_file: number.is_multiple_of(2).then(|| vec![7; number as usize]),
            numbered: (0..number).map(listed).collect(),
            keyed: (number..3 * number).map(listed).collect(),
        }
    }

    #[test]
    fn programs_that_know_no_bases_refuse_chains_with_one() {
        for number in 1..5 {
            let manifest = manifest(number);
            let layout = if manifest.meta.base.is_some() { 2 } else { 1 };
            assert_eq!(manifest.encode()[..10], [b"NODE-MAN", &[layout, 3 * number as u8][..]].concat());
            let disk = FaultyDisk::new();
            manifest.write(&*disk.folder()).unwrap();
            assert_eq!(Manifest::read(&*disk.folder()).unwrap(), Some(manifest));
        }
    }

    /// Whatever operation fails, and however the power is cut, the newest durable manifest or a later one is found.
    #[test]
    fn survives_failures_and_power_cuts() {
        for seed in 0..400u64 {
            let disk = FaultyDisk::new();
            manifest(1).write(&*disk.folder()).unwrap();
            let mut durable = 1;
            disk.fail_operation(seed % 12);
            for number in 2..6 {
                if manifest(number).write(&*disk.folder()).is_ok() {
                    durable = number;
                }
            }
            disk.crash(seed);
            let found = Manifest::read(&*disk.folder()).unwrap().unwrap();
            assert!((durable..6).contains(&found.number), "{} after {durable}", found.number);
            assert_eq!(found, manifest(found.number));
        }
    }

    #[test]
    fn one_of_the_copies_may_be_damaged() {
        let disk = FaultyDisk::new();
        manifest(4).write(&*disk.folder()).unwrap();
        let name = file_name(4);
        let length = disk.content(&name).unwrap().len();
        for bit in (0..8 * length).step_by(5) {
            disk.flip_bit(&name, bit);
            assert_eq!(Manifest::read(&*disk.folder()).unwrap(), Some(manifest(4)));
            let other = (bit + 4 * length) % (8 * length);
            disk.flip_bit(&name, other);
            Manifest::read(&*disk.folder()).unwrap_err();
            disk.flip_bit(&name, bit);
            disk.flip_bit(&name, other);
        }
        for left in (0..length).rev() {
            disk.truncate(&name, left);
            match Manifest::read(&*disk.folder()) {
                Ok(found) => assert!(found == Some(manifest(4)) && left >= length / 2, "{left} of {length}"),
                Err(error) => assert!(left < length / 2, "{left} of {length}: {error}"),
            }
        }
        assert_eq!(Manifest::read(&*FaultyDisk::new().folder()).unwrap(), None);
    }
}
