//! Histories are bounded.

use crate::pool::DropReason;
use crate::pool::memory::{ArrivalLog, DroppedReasons, MinedBlobs};
use node_types::H256;
use node_types::consensus::BlobSidecar;

fn hash(number: u64) -> H256 {
    H256::from_low_u64_be(number)
}

#[test]
fn keeps_the_newest_drop_reasons() {
    let mut dropped = DroppedReasons::default();
    for number in 0..40_000 {
        dropped.insert(hash(number), DropReason::Evicted);
    }
    let first = (0..40_000).find(|number| dropped.get(hash(*number)).is_some());
    assert_eq!(first, Some(40_000 - 16_384));
    dropped.forget(hash(39_999));
    assert_eq!(dropped.get(hash(39_999)), None);
    // A hash that is dropped repeatedly keeps its newest reason, and displaces older ones.
    for _ in 0..16_384 {
        dropped.insert(hash(1), DropReason::Evicted);
        dropped.forget(hash(1));
    }
    dropped.insert(hash(1), DropReason::Requested);
    assert_eq!(dropped.get(hash(1)), Some(&DropReason::Requested));
    assert!((2..40_000).all(|number| dropped.get(hash(number)).is_none()));
}

#[test]
fn keeps_the_newest_arrivals() {
    let mut log = ArrivalLog::starting_at(7);
    let start = log.next();
    assert_eq!(start, 7_000);
    for number in 0..100_000 {
        log.push(start + number, hash(number));
    }
    let kept = log.since(0, usize::MAX);
    assert_eq!((kept.transactions.len(), kept.next), (65_536, start + 100_000));
    assert_eq!(kept.transactions[0].number, start + 100_000 - 65_536);
    let page = log.since(start + 99_990, 4);
    assert_eq!((page.transactions.len(), page.next), (4, start + 99_994));
}

#[test]
fn keeps_the_newest_blobs() {
    let mut mined = MinedBlobs::default();
    let sidecar = || BlobSidecar::V0 { blobs: vec![], commitments: vec![], proofs: vec![] };
    (0..100).for_each(|number| mined.insert(hash(number), sidecar()));
    assert!((0..36).all(|number| mined.take(hash(number)).is_none()));
    assert!((36..100).all(|number| mined.take(hash(number)).is_some()));
    assert!(mined.take(hash(99)).is_none(), "the blobs were already taken");
}
