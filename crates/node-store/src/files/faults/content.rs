//! The contents of a file before and after a power failure.

use crate::files::memory::Content;

/// The unit in which a torn write reaches the disk.
const SECTOR: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Contents {
    seen: Content,
    /// The bytes that a power failure certainly preserves.
    durable: Content,
    /// The changes that lead from the durable contents to the visible contents, in order, unless a sync failed.
    unsynced: Vec<Change>,
}

#[derive(Debug)]
pub(super) enum Change {
    Write { offset: usize, data: Vec<u8> },
    SetLen(usize),
}

impl Change {
    fn apply(&self, content: &mut Content) {
        match self {
            Self::Write { offset, data } => content.write(*offset, data),
            Self::SetLen(size) => content.resize(*size),
        }
    }
}

impl Contents {
    pub(super) fn durable(bytes: &[u8]) -> Self {
        let mut seen = Content::default();
        seen.write(0, bytes);
        Self { durable: seen.clone(), seen, unsynced: Vec::new() }
    }

    /// Returns the visible contents.
    pub(super) fn seen(&self) -> &Content {
        &self.seen
    }

    /// A sync that fails: neither it nor a later sync makes the changes durable, but reads still return them.
    pub(super) fn fail_sync(&mut self) {
        self.unsynced.clear();
    }

    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    pub(super) fn crash(&mut self, fate: Fate, random: &mut Random) {
        for change in self.unsynced.drain(..) {
            match &change {
                Change::Write { offset, data } if fate.tears(random) => tear(&mut self.durable, *offset, data, random),
                change if fate.keeps(random) => change.apply(&mut self.durable),
                _ => {}
            }
        }
        self.seen.clone_from(&self.durable);
    }
}

fn tear(content: &mut Content, offset: usize, data: &[u8], random: &mut Random) {
    if random.below(2) == 0 {
        let cut = random.below(data.len() + 1);
        return content.write(offset, &data[..cut]);
    }
    let mut at = 0;
    while at < data.len() {
        let end = data.len().min(at + SECTOR - (offset + at) % SECTOR);
        if random.below(2) == 0 {
            content.write(offset + at, &data[at..end]);
        }
        at = end;
    }
}

/// What happens to most unsynced changes in a power failure.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Lost,
    Kept,
    Mixed,
}

impl Fate {
    pub(super) fn choose(random: &mut Random) -> Self {
        [Self::Lost, Self::Kept, Self::Mixed, Self::Mixed][random.below(4)]
    }

    pub(super) fn keeps(self, random: &mut Random) -> bool {
        match self {
            Self::Lost => random.below(16) == 0,
            Self::Kept => random.below(16) != 0,
            Self::Mixed => random.below(2) == 0,
        }
    }

    fn tears(self, random: &mut Random) -> bool {
        matches!(self, Self::Mixed) && random.below(3) == 0
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    /// Returns a number below `bound`, which must not be zero.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}
