//! Damage of files at rest: of every kind, at every place.

use super::*;

#[test]
fn reports_damage_of_durable_entries_and_removes_torn_tails() {
    use Outcome::{Corrupt, Missing, Recovered, Repeated, UnsupportedLayout};
    type Damage = fn(&FaultyDisk);
    let cases: &[(&str, u64, Damage, Outcome)] = &[
        ("nothing", 0, |_| (), Recovered(9)),
        (
            "a payload bit in a segment that is not the last",
            0,
            |disk| disk.flip_bit(&segment(4), (frame(1) + FrameHeader::SIZE) * 8),
            Corrupt { expected: 5, offset: frame(1) },
        ),
        (
            "a header bit of a segment that is not the last",
            0,
            |disk| disk.flip_bit(&segment(4), 70),
            Corrupt { expected: 4, offset: 0 },
        ),
        (
            "a length beyond the end of the file",
            0,
            |disk| {
                let mut bytes = disk.content(&segment(7)).unwrap();
                bytes[frame(0)..frame(0) + 4].fill(0xff);
                disk.put(&segment(7), bytes);
            },
            Corrupt { expected: 7, offset: frame(0) },
        ),
        (
            "a frame from another place",
            0,
            |disk| {
                let mut bytes = disk.content(&segment(7)).unwrap();
                bytes.copy_within(frame(0)..frame(1), frame(1));
                disk.put(&segment(7), bytes);
            },
            Corrupt { expected: 8, offset: frame(1) },
        ),
        (
            "an entry of the last segment, without the mark: the following frame proves that it was durable",
            0,
            |disk| {
                disk.delete(MARK_NAME);
                disk.flip_bit(&segment(7), frame(1) * 8 - 1);
            },
            Corrupt { expected: 7, offset: frame(0) },
        ),
        (
            "the last entry of a segment, without the mark: the following segment proves that it was durable",
            0,
            |disk| {
                disk.delete(MARK_NAME);
                disk.flip_bit(&segment(4), frame(3) * 8 - 1);
            },
            Corrupt { expected: 6, offset: frame(2) },
        ),
        (
            "the last entry: the mark proves that it was durable",
            0,
            |disk| disk.flip_bit(&segment(7), frame(3) * 8 - 1),
            Corrupt { expected: 9, offset: frame(2) },
        ),
        (
            "the last entry, without the mark: as after a torn write",
            0,
            |disk| {
                disk.delete(MARK_NAME);
                disk.flip_bit(&segment(7), frame(3) * 8 - 1);
            },
            Recovered(8),
        ),
        ("a bit of the newer slot of the mark", 0, |disk| disk.flip_bit(MARK_NAME, 60), Recovered(9)),
        (
            "a last segment cut within an entry",
            0,
            |disk| disk.truncate(&segment(7), frame(2) + 50),
            Corrupt { expected: 9, offset: frame(2) },
        ),
        (
            "a last segment cut between entries",
            0,
            |disk| disk.truncate(&segment(7), frame(1)),
            Missing { from: 8, through: 9 },
        ),
        (
            "a last segment cut within an entry, without the mark",
            0,
            |disk| {
                disk.delete(MARK_NAME);
                disk.truncate(&segment(7), frame(1) + 50);
            },
            Recovered(7),
        ),
        (
            "a last segment cut within its header, without the mark",
            0,
            |disk| {
                disk.delete(MARK_NAME);
                disk.truncate(&segment(7), 20);
            },
            Recovered(6),
        ),
        (
            "a segment that is not the last cut between entries",
            0,
            |disk| disk.truncate(&segment(4), frame(2)),
            Missing { from: 6, through: 6 },
        ),
        (
            "a segment that is not the last cut to nothing",
            0,
            |disk| disk.truncate(&segment(1), 0),
            Missing { from: 1, through: 3 },
        ),
        ("no first segment", 0, |disk| disk.delete(&segment(1)), Missing { from: 1, through: 3 }),
        ("no second segment", 0, |disk| disk.delete(&segment(4)), Missing { from: 4, through: 6 }),
        ("no last segment", 0, |disk| disk.delete(&segment(7)), Missing { from: 7, through: 9 }),
        (
            "no segment at all",
            0,
            |disk| [1, 4, 7].map(segment).iter().for_each(|name| disk.delete(name)),
            Missing { from: 1, through: 9 },
        ),
        ("no first segment, which was flushed", 3, |disk| disk.delete(&segment(1)), Recovered(9)),
        (
            "no second segment, which was flushed, and the first reappeared",
            6,
            |disk| disk.delete(&segment(4)),
            Recovered(9),
        ),
        (
            "no first segment, part of which was flushed",
            2,
            |disk| disk.delete(&segment(1)),
            Missing { from: 3, through: 3 },
        ),
        (
            "a segment of another log between two others",
            0,
            |disk| disk.put(&segment(5), disk.content(&segment(4)).unwrap()),
            Repeated { last: 6 },
        ),
        ("a damaged tail that was flushed", 9, |disk| disk.truncate(&segment(7), frame(1) + 50), Recovered(9)),
        ("more was flushed than the log has", 12, |_| (), Recovered(12)),
        (
            "zeros after the end",
            0,
            |disk| {
                let mut bytes = disk.content(&segment(7)).unwrap();
                bytes.resize(bytes.len() + 5000, 0);
                disk.put(&segment(7), bytes);
            },
            Recovered(9),
        ),
        (
            "noise after the end",
            0,
            |disk| {
                let mut bytes = disk.content(&segment(7)).unwrap();
                bytes.extend((0..5000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8));
                disk.put(&segment(7), bytes);
            },
            Recovered(9),
        ),
        ("a new segment without content", 0, |disk| disk.put(&segment(10), Vec::new()), Recovered(9)),
        (
            "a new segment with a torn header",
            0,
            |disk| disk.put(&segment(10), vec![7; SegmentHeader::SIZE]),
            Recovered(9),
        ),
        (
            "a segment that is none",
            0,
            |disk| disk.put(&segment(10), vec![7; SegmentHeader::SIZE + 1]),
            Corrupt { expected: 10, offset: 0 },
        ),
        (
            "a segment of another place",
            0,
            |disk| disk.put(&segment(10), disk.content(&segment(7)).unwrap()),
            Corrupt { expected: 10, offset: 0 },
        ),
        (
            "a segment of a newer version",
            0,
            |disk| {
                let header = SegmentHeader { layout: 2, first: Sequence(10), salt: 0 };
                disk.put(&segment(10), header.encode().to_vec());
            },
            UnsupportedLayout(2),
        ),
        ("a file of somebody else", 0, |disk| disk.put("wal-10.log", vec![1, 2, 3]), Recovered(9)),
    ];
    for (damage, flushed, apply, expected) in cases {
        let disk = nine_entries();
        apply(&disk);
        assert_eq!(outcome(&disk, *flushed), *expected, "{damage}");
        disk.kill();
        assert_eq!(outcome(&disk, *flushed), *expected, "{damage}, opened again");
    }
}

#[test]
fn no_flipped_bit_or_truncation_loses_an_entry_silently() {
    let check = |damage: &dyn Fn(&FaultyDisk), what: String| {
        let disk = nine_entries();
        damage(&disk);
        if let Outcome::Recovered(last) = outcome(&disk, 0) {
            assert_eq!(last, 9, "{what}");
        }
    };
    let undamaged = nine_entries();
    for name in undamaged.names() {
        let size = undamaged.content(&name).unwrap().len();
        for bit in 0..size * 8 {
            check(&|disk| disk.flip_bit(&name, bit), format!("{name}, bit {bit}"));
        }
        for kept in 0..size {
            check(&|disk| disk.truncate(&name, kept), format!("{name}, cut to {kept} bytes"));
        }
    }
}

#[test]
fn a_later_write_of_a_lost_batch_is_not_damage() {
    let disk = nine_entries();
    let wal = open(&disk, 0).unwrap();
    for number in 10..=12 {
        wal.append(&payload(number)).unwrap();
    }
    wal.sync().unwrap();
    disk.kill();
    // As after a power cut before the sync returned, when only the last entry had reached the disk.
    disk.delete(MARK_NAME);
    let mut bytes = disk.content(&segment(10)).unwrap();
    bytes[frame(0)..frame(2)].fill(0);
    disk.put(&segment(10), bytes);
    assert_eq!(outcome(&disk, 0), Outcome::Recovered(9));
}

#[test]
fn a_payload_cannot_pass_for_a_frame() {
    let disk = nine_entries();
    let wal = open(&disk, 0).unwrap();
    // A frame that claims that entry 10 was durable, as a third party could create it without knowing the salt.
    let planted =
        FrameHeader { length: 0, sequence: Sequence(11), synced: Sequence(10), payload_sum: checksum(0, &[]) };
    wal.append(&planted.encode(0).repeat(5)).unwrap();
    wal.sync().unwrap();
    disk.kill();
    disk.delete(MARK_NAME);
    let size = disk.content(&segment(10)).unwrap().len();
    disk.truncate(&segment(10), size - 1);
    assert_eq!(outcome(&disk, 0), Outcome::Recovered(9));
}

#[test]
fn damage_after_opening_ends_the_entries() {
    let disk = nine_entries();
    let wal = open(&disk, 0).unwrap();
    disk.flip_bit(&segment(4), (frame(1) + 3) * 8);
    let mut entries = wal.entries_after(Sequence(3));
    assert_eq!(entries.next().unwrap().unwrap().payload, payload(4));
    let error = entries.next().unwrap().unwrap_err();
    assert!(matches!(error, WalError::Corrupt { expected: Sequence(5), .. }), "{error}");
    assert!(entries.next().is_none());
}
