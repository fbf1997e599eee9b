//! The encoding of segment and frame headers. All integers are big-endian.

use std::fmt;
use std::hash::Hasher;
use twox_hash::XxHash3_64;

/// Version of the layout of the log.
pub(super) const LAYOUT: u32 = 1;

/// Maximum length of a payload in bytes.
pub const MAX_PAYLOAD: usize = 256 << 20;

/// The number of an entry. The first entry has the number 1; 0 precedes all entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

impl Sequence {
    /// Returns the next sequence.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the previous sequence, or 0 for 0.
    #[must_use]
    pub fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

const MAGIC: [u8; 8] = *b"NODE-WAL";

/// The header of a segment. Sizes in bytes: magic number (8), layout (4), first sequence (8), salt (8), checksum of
/// these (8). This format is the same in every layout, so that any version can distinguish a newer segment from a
/// damaged one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) layout: u32,
    /// Sequence of the first entry.
    pub(super) first: Sequence,
    /// The seed of every checksum in this segment. Payloads contain data from third parties, who could otherwise
    /// include bytes that pass for a frame when a torn tail is searched.
    pub(super) salt: u64,
}

impl SegmentHeader {
    pub(super) const SIZE: usize = 36;

    pub(super) fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.layout.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.first.0.to_be_bytes());
        bytes[20..28].copy_from_slice(&self.salt.to_be_bytes());
        let sum = checksum(0, &bytes[..28]);
        bytes[28..].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Decodes a segment header. Returns `None` if the bytes are not a valid header.
    pub(super) fn decode(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let intact = bytes[..8] == MAGIC && u64_at(bytes, 28) == checksum(0, &bytes[..28]);
        intact.then(|| Self { layout: u32_at(bytes, 8), first: Sequence(u64_at(bytes, 12)), salt: u64_at(bytes, 20) })
    }
}

/// The header of a frame. Sizes in bytes: payload length (4), sequence (8), synced (8), checksum of the payload (8),
/// checksum of these (8). The payload follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Length of the payload in bytes.
    pub(super) length: u32,
    pub(super) sequence: Sequence,
    /// All entries up to this one were durable when this frame was created.
    pub(super) synced: Sequence,
    pub(super) payload_sum: u64,
}

impl FrameHeader {
    pub(super) const SIZE: usize = 36;

    pub(super) fn encode(&self, salt: u64) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&self.length.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.sequence.0.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.synced.0.to_be_bytes());
        bytes[20..28].copy_from_slice(&self.payload_sum.to_be_bytes());
        let sum = checksum(salt, &bytes[..28]);
        bytes[28..].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Decodes a frame header. Returns `None` if the bytes are not a valid frame header of a segment with this salt.
    pub(super) fn decode(bytes: &[u8; Self::SIZE], salt: u64) -> Option<Self> {
        let header = Self {
            length: u32_at(bytes, 0),
            sequence: Sequence(u64_at(bytes, 4)),
            synced: Sequence(u64_at(bytes, 12)),
            payload_sum: u64_at(bytes, 20),
        };
        // These checks reject nearly all other bytes before the checksum is computed.
        let plausible = u64::from(header.length) <= MAX_PAYLOAD as u64 && header.synced < header.sequence;
        (plausible && u64_at(bytes, 28) == checksum(salt, &bytes[..28])).then_some(header)
    }
}

/// Returns the name of the segment that starts with `first`. Names sort like their sequences.
pub(super) fn segment_name(first: Sequence) -> String {
    format!("wal-{:020}.log", first.0)
}

/// Returns the first sequence of the segment with this name, or `None` if it is not the name of a segment.
pub(super) fn parse_segment_name(name: &str) -> Option<Sequence> {
    let first = Sequence(name.strip_prefix("wal-")?.strip_suffix(".log")?.parse().ok()?);
    (segment_name(first) == name).then_some(first)
}

/// Returns the XXH3-64 of `bytes`.
pub(super) fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// Computes the same checksum incrementally.
pub(super) struct Checksum(XxHash3_64);

impl Checksum {
    pub(super) fn new(seed: u64) -> Self {
        Self(XxHash3_64::with_seed(seed))
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub(super) fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// Returns the integer at `offset`, which must be within `bytes`.
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut integer = [0; 8];
    integer.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_be_bytes(integer)
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut integer = [0; 4];
    integer.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_be_bytes(integer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn segment_names_round_trip() {
        let cases = [
            ("wal-00000000000000000001.log", Some(1)),
            ("wal-18446744073709551615.log", Some(u64::MAX)),
            ("wal-18446744073709551616.log", None),
            ("wal-1.log", None),
            ("wal-+0000000000000000001.log", None),
            ("wal-synced", None),
            ("wal-.log", None),
            ("", None),
        ];
        for (name, first) in cases {
            assert_eq!(parse_segment_name(name), first.map(Sequence), "{name}");
        }
    }

    proptest! {
        #[test]
        fn headers_return_from_their_bytes(layout: u32, first: u64, salt: u64, length: u32, synced: u64, payload_sum: u64) {
            let segment = SegmentHeader { layout, first: Sequence(first), salt };
            prop_assert_eq!(SegmentHeader::decode(&segment.encode()), Some(segment));
            let length = length % (MAX_PAYLOAD as u32 + 1);
            let (synced, first) = (synced.min(first).saturating_sub(1), synced.max(first).max(1));
            let frame = FrameHeader { length, sequence: Sequence(first), synced: Sequence(synced), payload_sum };
            prop_assert_eq!(FrameHeader::decode(&frame.encode(salt), salt), Some(frame));
            prop_assert_eq!(FrameHeader::decode(&frame.encode(salt), salt ^ 1), None);
        }

        #[test]
        fn a_flipped_bit_is_seen(salt: u64, bit in 0..36 * 8_usize) {
            let mut segment = SegmentHeader { layout: LAYOUT, first: Sequence(7), salt }.encode();
            segment[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(SegmentHeader::decode(&segment), None);
            let frame = FrameHeader { length: 5, sequence: Sequence(7), synced: Sequence(6), payload_sum: 9 };
            let mut frame = frame.encode(salt);
            frame[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(FrameHeader::decode(&frame, salt), None);
        }

        #[test]
        fn pieces_sum_to_the_whole(seed: u64, bytes: Vec<u8>, cut: prop::sample::Index) {
            let (left, right) = bytes.split_at(cut.index(bytes.len() + 1));
            let mut pieces = Checksum::new(seed);
            pieces.add(left);
            pieces.add(right);
            prop_assert_eq!(pieces.finish(), checksum(seed, &bytes));
        }
    }
}
