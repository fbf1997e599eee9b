//! Objects of the log. All integers are big-endian.

use super::error::FormatError;
use super::names::{Epoch, LogNumber, ManifestName};
use crate::codec::{Malformed, Reader};
use crate::wal::{Entry, MAX_PAYLOAD, Sequence};
use twox_hash::XxHash3_64;

/// Version of the layout of all objects but the runs, which have that of the files.
pub(super) const LAYOUT: u32 = 1;

const MAGIC: [u8; 8] = *b"NODE-LOG";

/// The header of an object of the log. docs/storage.md lists its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHeader {
    pub number: LogNumber,
    /// The epoch of its writer.
    pub epoch: Epoch,
    /// A random number that distinguishes the writer from others that try to begin the same epoch.
    pub writer: u64,
    /// The [checksum](Self::sum) of the previous object, 0 for the first.
    pub previous: u64,
    /// The newest manifest. If the previous object has another one, this object announces it.
    pub manifest: Option<ManifestName>,
    /// When it was written, in milliseconds since the Unix epoch, by its writer's clock. Never before the previous one.
    pub time: u64,
    /// The sequence of the first entry, or of the next one if there are none.
    pub first: Sequence,
    /// Number of entries.
    pub count: u32,
    /// Whether it is the first object of its epoch. It has no entries, and is never deleted.
    pub is_fence: bool,
    body: u64,
    body_sum: u64,
    sum: u64,
}

/// A position in the log of a store: after one of its objects. The checksums make it unique among all logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub number: LogNumber,
    /// The [checksum](LogHeader::sum) of the object.
    pub sum: u64,
    /// The epoch of its writer.
    pub epoch: Epoch,
    /// The random number of its writer.
    pub writer: u64,
    /// The last entry up to this position.
    pub last: Sequence,
}

/// An object of the log: what one commit added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogObject {
    pub header: LogHeader,
    pub entries: Vec<Entry>,
}

impl LogHeader {
    /// Length in bytes.
    pub(super) const SIZE: usize = 108;

    /// Returns the checksum of the header, which contains that of the entries: it identifies the object.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the sequence of the entry after the last one.
    pub fn end(&self) -> Sequence {
        Sequence(self.first.0.saturating_add(self.count.into()))
    }

    /// Returns the position after this object.
    pub fn position(&self) -> Position {
        let Self { number, epoch, writer, sum, .. } = *self;
        Position { number, sum, epoch, writer, last: self.end().previous() }
    }

    /// Decodes the header of the object `number`, which may be followed by other bytes.
    pub(super) fn decode(number: LogNumber, bytes: &[u8]) -> Result<Self, FormatError> {
        let name = || number.object();
        let damaged = |_: Malformed| FormatError::Damaged { name: name() };
        let header = bytes.get(..Self::SIZE).ok_or_else(|| FormatError::Damaged { name: name() })?;
        let mut reader = Reader::new(header, "an object of the log");
        // Any version can distinguish a newer layout from damage.
        if reader.array().map_err(damaged)? != MAGIC {
            return Err(FormatError::Foreign { name: name() });
        }
        let found = u32::from_be_bytes(reader.array().map_err(damaged)?);
        if found != LAYOUT {
            return Err(FormatError::UnsupportedLayout { name: name(), found, supported: LAYOUT });
        }
        let read = |reader: &mut Reader<'_>| {
            let mut number = || reader.array().map(u64::from_be_bytes);
            let (at, epoch, writer, previous) = (LogNumber(number()?), Epoch(number()?), number()?, number()?);
            let manifest = ManifestName { position: LogNumber(number()?), epoch: Epoch(number()?) };
            let (time, first) = (number()?, Sequence(number()?));
            let count = u32::from_be_bytes(reader.array()?);
            let kind = u32::from_be_bytes(reader.array()?);
            let mut number = || reader.array().map(u64::from_be_bytes);
            let (body, body_sum, sum) = (number()?, number()?, number()?);
            let is_fence = kind == FENCE;
            if kind > FENCE || is_fence && count > 0 || u64::from(count) > body / 4 {
                return Err(reader.malformed());
            }
            let manifest = (manifest.position.0 > 0).then_some(manifest);
            Ok(Self {
                number: at,
                epoch,
                writer,
                previous,
                manifest,
                time,
                first,
                count,
                is_fence,
                body,
                body_sum,
                sum,
            })
        };
        let decoded = read(&mut reader).map_err(damaged)?;
        if XxHash3_64::oneshot(&header[..Self::SIZE - 8]) != decoded.sum {
            return Err(FormatError::Damaged { name: name() });
        }
        if decoded.number != number {
            return Err(FormatError::Misplaced { name: name() });
        }
        Ok(decoded)
    }
}

/// The kind of the first object of an epoch; that of all others is 0.
const FENCE: u32 = 1;

/// The fields of a new object, besides its entries.
pub(super) struct NewObject {
    pub(super) number: LogNumber,
    pub(super) epoch: Epoch,
    pub(super) writer: u64,
    pub(super) previous: u64,
    pub(super) manifest: Option<ManifestName>,
    pub(super) time: u64,
    pub(super) first: Sequence,
    pub(super) is_fence: bool,
}

impl NewObject {
    /// Encodes the object with the payloads of its entries.
    pub(super) fn encode<'a>(&self, payloads: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut bytes = vec![0; LogHeader::SIZE];
        let mut count = 0u32;
        for payload in payloads {
            // An entry of the write-ahead log is not longer than MAX_PAYLOAD.
            bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes());
            bytes.extend_from_slice(payload);
            count += 1;
        }
        let body = (bytes.len() - LogHeader::SIZE) as u64;
        let body_sum = XxHash3_64::oneshot(&bytes[LogHeader::SIZE..]);
        let manifest = self.manifest.map_or((0, 0), |manifest| (manifest.position.0, manifest.epoch.0));
        let kind = if self.is_fence { FENCE } else { 0 };
        let mut header = Vec::with_capacity(LogHeader::SIZE);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&LAYOUT.to_be_bytes());
        let numbers = [self.number.0, self.epoch.0, self.writer, self.previous, manifest.0, manifest.1, self.time];
        numbers.into_iter().for_each(|number| header.extend_from_slice(&number.to_be_bytes()));
        header.extend_from_slice(&self.first.0.to_be_bytes());
        header.extend_from_slice(&count.to_be_bytes());
        header.extend_from_slice(&kind.to_be_bytes());
        header.extend_from_slice(&body.to_be_bytes());
        header.extend_from_slice(&body_sum.to_be_bytes());
        header.extend_from_slice(&XxHash3_64::oneshot(&header).to_be_bytes());
        bytes[..LogHeader::SIZE].copy_from_slice(&header);
        bytes
    }
}

impl LogObject {
    /// Decodes the object `number`.
    ///
    /// # Errors
    /// If the bytes are not those of this object.
    pub fn decode(number: LogNumber, bytes: &[u8]) -> Result<Self, FormatError> {
        let header = LogHeader::decode(number, bytes)?;
        let damaged = || FormatError::Damaged { name: number.object() };
        let body = &bytes[LogHeader::SIZE..];
        if body.len() as u64 != header.body || XxHash3_64::oneshot(body) != header.body_sum {
            return Err(damaged());
        }
        let mut reader = Reader::new(body, "the entries of an object of the log");
        let mut sequence = header.first;
        let entries = (0..header.count).map(|_| {
            let length = u32::from_be_bytes(reader.array().map_err(|_| damaged())?) as usize;
            let payload = reader.take(length).ok().filter(|_| length <= MAX_PAYLOAD).ok_or_else(damaged)?.to_vec();
            let entry = Entry { sequence, payload };
            sequence = sequence.next();
            Ok(entry)
        });
        let entries = entries.collect::<Result<_, FormatError>>()?;
        reader.finish().map_err(|_| damaged())?;
        Ok(Self { header, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::tests::hex;

    fn object() -> NewObject {
        NewObject {
            number: LogNumber(7),
            epoch: Epoch(2),
            writer: 0x0102_0304_0506_0708,
            previous: 0x1112_1314_1516_1718,
            manifest: Some(ManifestName { position: LogNumber(5), epoch: Epoch(1) }),
            time: 1_700_000_000_000,
            first: Sequence(300),
            is_fence: false,
        }
    }

    #[test]
    fn the_layout_is_fixed() {
        let bytes = object().encode([&b"one"[..], b"", b"three"].into_iter());
        assert_eq!(hex(&bytes), include_str!("tests/log.hex").trim());
        let decoded = LogObject::decode(LogNumber(7), &bytes).unwrap();
        let payloads: Vec<_> = decoded.entries.iter().map(|entry| (entry.sequence.0, &*entry.payload)).collect();
        assert_eq!(payloads, [(300, &b"one"[..]), (301, b""), (302, b"three")]);
        let header = decoded.header;
        assert_eq!((header.epoch, header.writer, header.previous), (Epoch(2), object().writer, object().previous));
        assert_eq!((header.manifest, header.time, header.is_fence), (object().manifest, object().time, false));
        assert_eq!((header.first, header.end()), (Sequence(300), Sequence(303)));
        assert_eq!(LogHeader::decode(LogNumber(7), &bytes[..LogHeader::SIZE]), Ok(header));
    }

    #[test]
    fn every_damaged_bit_and_every_other_length_is_noticed() {
        let bytes = object().encode([&b"one"[..], b"two"].into_iter());
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            LogObject::decode(LogNumber(7), &damaged).unwrap_err();
        }
        for length in 0..bytes.len() {
            LogObject::decode(LogNumber(7), &bytes[..length]).unwrap_err();
        }
        LogObject::decode(LogNumber(7), &[&bytes[..], b"x"].concat()).unwrap_err();
    }

    #[test]
    fn other_objects_are_told_apart() {
        let bytes = object().encode(std::iter::empty());
        let name = || "log/00000000000000000008".to_owned();
        assert_eq!(LogObject::decode(LogNumber(8), &bytes), Err(FormatError::Misplaced { name: name() }));
        let foreign = [&b"PAR1"[..], &[0; 200]].concat();
        assert_eq!(LogObject::decode(LogNumber(8), &foreign), Err(FormatError::Foreign { name: name() }));
        let mut newer = bytes;
        newer[11] = 9;
        let unsupported = FormatError::UnsupportedLayout { name: name(), found: 9, supported: 1 };
        assert_eq!(LogObject::decode(LogNumber(8), &newer), Err(unsupported));
    }

    /// With right checksums, as an attacker would write them.
    #[test]
    fn hostile_counts_and_lengths_are_refused() {
        let seal = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = object().encode([&b"one"[..]].into_iter());
            change(&mut bytes);
            let body_sum = XxHash3_64::oneshot(&bytes[LogHeader::SIZE..]).to_be_bytes();
            bytes[92..100].copy_from_slice(&body_sum);
            let sum = XxHash3_64::oneshot(&bytes[..100]).to_be_bytes();
            bytes[100..108].copy_from_slice(&sum);
            LogObject::decode(LogNumber(7), &bytes)
        };
        assert!(seal(&|_| ()).is_ok());
        type Change<'a> = &'a dyn Fn(&mut Vec<u8>);
        let changes: [Change<'_>; 5] = [
            &|bytes| bytes[76..80].fill(0xff),
            &|bytes| bytes[84..92].fill(0xff),
            &|bytes| bytes[108..112].fill(0xff),
            &|bytes| bytes[76..80].fill(0),
            &|bytes| bytes[83] = 2,
        ];
        for (index, change) in changes.into_iter().enumerate() {
            assert!(matches!(seal(change), Err(FormatError::Damaged { .. })), "change {index}");
        }
    }
}
