//! Manifests: which runs the chain consists of, and what may be deleted.

use super::error::FormatError;
use super::log::LAYOUT;
use super::names::{Epoch, LogNumber, ManifestName, RunName};
use crate::codec::{Malformed, Reader, put_bytes, put_varint};
use crate::wal::Sequence;
use node_core::block::BlockRef;
use node_types::{BlockNumber, H256};
use std::sync::Arc;
use twox_hash::XxHash3_64;

const MAGIC: [u8; 8] = *b"NODE-SMF";

/// A manifest of a shared store. Valid from the object of the log that announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub name: ManifestName,
    pub content: Content,
    /// The first object of the log that the runs do not contain completely: all entries after
    /// [`logged`](Content::logged) are in it and later ones.
    pub start: LogNumber,
    /// The checksum of the object before `start`.
    pub before: u64,
    /// Runs that earlier manifests list and this one does not, until they are deleted: each with the last manifest that
    /// lists it.
    pub dropped: Vec<(RunName, ManifestName)>,
    /// The manifests before this one that are not deleted, the oldest first.
    pub history: Vec<Past>,
    /// Objects of the log below this number are being deleted, except fences.
    pub boundary: LogNumber,
    /// The fences from `boundary` on.
    pub fences: Vec<LogNumber>,
}

/// The part of a manifest that the publisher chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The chain in the runs, or `None` until the first upload is complete.
    pub chain: Option<Chain>,
    /// The last entry of the log that is in the runs.
    pub logged: Sequence,
    /// Runs with the tables whose rows are keyed by block numbers, the oldest first.
    pub numbered: Vec<SharedRun>,
    /// Runs with the other tables, the oldest first.
    pub keyed: Vec<SharedRun>,
    /// Runs that were uploaded for a later manifest, which an interrupted upload need not repeat.
    pub pending: Vec<RunName>,
}

/// Data about a chain besides its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Hash of the genesis block.
    pub genesis: H256,
    /// The newest block in runs.
    pub head: BlockRef,
    /// The earliest block whose state is stored.
    pub earliest: BlockNumber,
    pub genesis_file: Option<Arc<[u8]>>,
}

/// A run in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedRun {
    pub name: RunName,
    /// Length in bytes.
    pub size: u64,
    /// The last block whose rows are visible.
    pub limit: BlockNumber,
    /// The last bytes of the run: its root, properties and footer, with which it is opened. Empty if they are longer
    /// than [`MAX_ENDING`](crate::shared::MAX_ENDING).
    pub ending: Arc<[u8]>,
}

/// A manifest that was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    pub name: ManifestName,
    /// The first object of the log that readers of it need.
    pub start: LogNumber,
    /// A time at or after its announcement, in milliseconds since the Unix epoch.
    pub announced: u64,
}

impl Content {
    /// Returns all runs in it.
    pub fn runs(&self) -> impl Iterator<Item = RunName> + '_ {
        let listed = self.numbered.iter().chain(&self.keyed).map(|run| run.name);
        listed.chain(self.pending.iter().copied())
    }
}

fn put_name(out: &mut Vec<u8>, name: ManifestName) {
    put_varint(out, name.position.0);
    put_varint(out, name.epoch.0);
}

fn read_name(reader: &mut Reader<'_>) -> Result<ManifestName, Malformed> {
    Ok(ManifestName { position: LogNumber(reader.varint()?), epoch: Epoch(reader.varint()?) })
}

fn put_run(out: &mut Vec<u8>, run: RunName) {
    put_varint(out, run.epoch.0);
    put_varint(out, run.id);
}

fn read_run(reader: &mut Reader<'_>) -> Result<RunName, Malformed> {
    Ok(RunName { epoch: Epoch(reader.varint()?), id: reader.varint()? })
}

/// Reads a list whose items have at least `size` bytes each.
fn list<'a, T>(
    reader: &mut Reader<'a>,
    size: usize,
    item: impl Fn(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    (0..reader.count(size)?).map(|_| item(reader)).collect()
}

impl Chain {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.genesis.as_bytes());
        put_varint(out, self.head.number);
        out.extend_from_slice(self.head.hash.as_bytes());
        put_varint(out, self.earliest);
        match &self.genesis_file {
            Some(file) => {
                out.push(1);
                put_bytes(out, file);
            }
            None => out.push(0),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            genesis: reader.h256()?,
            head: BlockRef { number: reader.varint()?, hash: reader.h256()? },
            earliest: reader.varint()?,
            genesis_file: flag(reader)?.then(|| reader.bytes().map(Arc::from)).transpose()?,
        })
    }
}

fn flag(reader: &mut Reader<'_>) -> Result<bool, Malformed> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(reader.malformed()),
    }
}

impl SharedRun {
    fn put(&self, out: &mut Vec<u8>) {
        put_run(out, self.name);
        put_varint(out, self.size);
        put_varint(out, self.limit);
        put_bytes(out, &self.ending);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let run = Self {
            name: read_run(reader)?,
            size: reader.varint()?,
            limit: reader.varint()?,
            ending: reader.bytes()?.into(),
        };
        if run.ending.len() as u64 <= run.size { Ok(run) } else { Err(reader.malformed()) }
    }
}

impl Manifest {
    /// Encodes the object.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&LAYOUT.to_be_bytes());
        put_name(&mut out, self.name);
        let Content { chain, logged, numbered, keyed, pending } = &self.content;
        out.push(chain.is_some().into());
        chain.iter().for_each(|chain| chain.put(&mut out));
        put_varint(&mut out, logged.0);
        put_varint(&mut out, self.start.0);
        out.extend_from_slice(&self.before.to_be_bytes());
        for runs in [numbered, keyed] {
            put_varint(&mut out, runs.len() as u64);
            runs.iter().for_each(|run| run.put(&mut out));
        }
        put_varint(&mut out, pending.len() as u64);
        pending.iter().for_each(|run| put_run(&mut out, *run));
        put_varint(&mut out, self.dropped.len() as u64);
        for (run, last) in &self.dropped {
            put_run(&mut out, *run);
            put_name(&mut out, *last);
        }
        put_varint(&mut out, self.history.len() as u64);
        for past in &self.history {
            put_name(&mut out, past.name);
            put_varint(&mut out, past.start.0);
            put_varint(&mut out, past.announced);
        }
        put_varint(&mut out, self.boundary.0);
        put_varint(&mut out, self.fences.len() as u64);
        self.fences.iter().for_each(|fence| put_varint(&mut out, fence.0));
        let sum = XxHash3_64::oneshot(&out);
        out.extend_from_slice(&sum.to_be_bytes());
        out
    }

    /// Decodes the manifest `name`.
    ///
    /// # Errors
    /// If the bytes are not those of this manifest.
    pub fn decode(name: ManifestName, bytes: &[u8]) -> Result<Self, FormatError> {
        let damaged = || FormatError::Damaged { name: name.object() };
        let (content, sum) = bytes.split_last_chunk().ok_or_else(damaged)?;
        let mut reader = Reader::new(content, "a manifest");
        // Any version can distinguish a newer layout from damage.
        if reader.array().map_err(|_| damaged())? != MAGIC {
            return Err(FormatError::Foreign { name: name.object() });
        }
        let found = u32::from_be_bytes(reader.array().map_err(|_| damaged())?);
        if found != LAYOUT {
            return Err(FormatError::UnsupportedLayout { name: name.object(), found, supported: LAYOUT });
        }
        if XxHash3_64::oneshot(content) != u64::from_be_bytes(*sum) {
            return Err(damaged());
        }
        let manifest = Self::read(&mut reader).map_err(|_| damaged())?;
        reader.finish().map_err(|_| damaged())?;
        if manifest.name != name {
            return Err(FormatError::Misplaced { name: name.object() });
        }
        Ok(manifest)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let name = read_name(reader)?;
        let chain = flag(reader)?.then(|| Chain::read(reader)).transpose()?;
        let logged = Sequence(reader.varint()?);
        let start = LogNumber(reader.varint()?);
        let before = reader.array().map(u64::from_be_bytes)?;
        let (numbered, keyed) = (list(reader, 5, SharedRun::read)?, list(reader, 5, SharedRun::read)?);
        let pending = list(reader, 2, read_run)?;
        let dropped = list(reader, 4, |reader| Ok((read_run(reader)?, read_name(reader)?)))?;
        let past = |reader: &mut Reader<'_>| {
            Ok(Past { name: read_name(reader)?, start: LogNumber(reader.varint()?), announced: reader.varint()? })
        };
        let history = list(reader, 4, past)?;
        let boundary = LogNumber(reader.varint()?);
        let fences = list(reader, 1, |reader| Ok(LogNumber(reader.varint()?)))?;
        let content = Content { chain, logged, numbered, keyed, pending };
        Ok(Self { name, content, start, before, dropped, history, boundary, fences })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::tests::hex;

    fn manifest() -> Manifest {
        let run = |id, ending: &[u8]| SharedRun {
            name: RunName { epoch: Epoch(2), id },
            size: 1000 * id,
            limit: 10 * id,
            ending: ending.into(),
        };
        let name = |position, epoch| ManifestName { position: LogNumber(position), epoch: Epoch(epoch) };
        Manifest {
            name: name(300, 3),
            content: Content {
                chain: Some(Chain {
                    genesis: H256::repeat_byte(1),
                    head: BlockRef { number: 700, hash: H256::repeat_byte(7) },
                    earliest: 5,
                    genesis_file: Some(b"{}"[..].into()),
                }),
                logged: Sequence(800),
                numbered: vec![run(1, b"end"), run(2, b"")],
                keyed: vec![run(3, b"of")],
                pending: vec![RunName { epoch: Epoch(3), id: 4 }],
            },
            start: LogNumber(290),
            before: 0x0102_0304_0506_0708,
            dropped: vec![(RunName { epoch: Epoch(1), id: 9 }, name(200, 2))],
            history: vec![Past { name: name(250, 2), start: LogNumber(240), announced: 1_700_000_000_000 }],
            boundary: LogNumber(240),
            fences: vec![LogNumber(260)],
        }
    }

    #[test]
    fn the_layout_is_fixed() {
        let bytes = manifest().encode();
        assert_eq!(hex(&bytes), include_str!("tests/manifest.hex").trim());
        assert_eq!(Manifest::decode(manifest().name, &bytes), Ok(manifest()));
        let empty = Manifest { content: Content::default(), dropped: vec![], history: vec![], ..manifest() };
        assert_eq!(Manifest::decode(empty.name, &empty.encode()), Ok(empty));
    }

    #[test]
    fn every_damaged_bit_and_every_other_length_is_noticed() {
        let bytes = manifest().encode();
        let decode = |bytes: &[u8]| Manifest::decode(manifest().name, bytes);
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            decode(&damaged).unwrap_err();
        }
        for length in 0..bytes.len() {
            decode(&bytes[..length]).unwrap_err();
        }
        decode(&[&bytes[..], b"x"].concat()).unwrap_err();
        let other = ManifestName { position: LogNumber(301), ..manifest().name };
        let misplaced = FormatError::Misplaced { name: other.object() };
        assert_eq!(Manifest::decode(other, &bytes), Err(misplaced));
    }

    /// With right checksums: every byte is replaced, so that every count and length is wrong in turn.
    #[test]
    fn hostile_bytes_neither_panic_nor_allocate_without_bound() {
        let bytes = manifest().encode();
        for index in 12..bytes.len() - 8 {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut changed = bytes[..bytes.len() - 8].to_vec();
                changed[index] = byte;
                let sum = XxHash3_64::oneshot(&changed);
                changed.extend_from_slice(&sum.to_be_bytes());
                if let Ok(decoded) = Manifest::decode(manifest().name, &changed) {
                    assert_eq!(decoded.name, manifest().name);
                }
            }
        }
    }
}
