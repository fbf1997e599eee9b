//! Mutation of inputs.

use super::structure;

/// Most bytes of an input.
const MAX_LENGTH: usize = 1 << 16;

/// Most accepted inputs that are mutated further.
const MAX_LEARNED: usize = 512;

/// Bytes at the edges of RLP, JSON, hexadecimal and variable-length integers.
const EDGES: &[u8] =
    &[0, 1, 0x7f, 0x80, 0x81, 0xb7, 0xb8, 0xbf, 0xc0, 0xc1, 0xf7, 0xf8, 0xff, b'"', b'{', b'[', b',', b':', b'-', b'0'];

/// The structure of inputs. Half of the mutations change bytes, the others parts of the structure, so that lengths and
/// quotes still match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// No structure.
    Bytes,
    /// RLP items, one after another.
    Rlp,
    /// A JSON text.
    Json,
    /// A line and a JSON text.
    Request,
}

/// Returns mutated inputs.
#[derive(Debug)]
pub struct Mutator {
    random: Random,
    format: Format,
    seeds: usize,
    /// Seeds, then accepted inputs.
    inputs: Vec<Vec<u8>>,
}

impl Mutator {
    /// Creates a mutator. There must be at least one input among `seeds`.
    pub fn new(seed: u64, format: Format, seeds: Vec<Vec<u8>>) -> Self {
        assert!(!seeds.is_empty());
        Self { random: Random(seed), format, seeds: seeds.len(), inputs: seeds }
    }

    /// Returns the next input: a known one after up to eight changes, most often after few.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.random.choose(&self.inputs).clone();
        self.change_up_to_eight_times(&mut input);
        input
    }

    /// Returns `input`, or sometimes a known input, after up to eight changes. All choices depend on `seed`.
    pub fn mutate(&mut self, seed: u64, input: &[u8]) -> Vec<u8> {
        self.random = Random(seed);
        if self.random.below(64) == 0 {
            return self.next_input();
        }
        let mut input = input.to_vec();
        self.change_up_to_eight_times(&mut input);
        input
    }

    /// Uses an accepted input for later mutations, or sometimes does.
    pub fn learn(&mut self, input: Vec<u8>) {
        if self.random.below(16) != 0 {
            return;
        }
        if self.inputs.len() < self.seeds + MAX_LEARNED {
            self.inputs.push(input);
        } else {
            let place = self.seeds + self.random.below(MAX_LEARNED);
            self.inputs[place] = input;
        }
    }

    fn change_up_to_eight_times(&mut self, input: &mut Vec<u8>) {
        let changes = self.random.below(9).min(self.random.below(9));
        for _ in 0..=changes {
            self.change(input);
            input.truncate(MAX_LENGTH);
        }
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let random = &mut self.random;
        let other = random.choose(&self.inputs);
        if self.format == Format::Bytes || random.below(2) == 0 {
            change_bytes(random, input, other);
            return;
        }
        let changed = match self.format {
            Format::Rlp => structure::change_rlp(random, input, other),
            Format::Json => structure::change_json(random, input, other),
            _ => structure::change_request(random, input, other),
        };
        match changed {
            Some(changed) => *input = changed,
            None => change_bytes(random, input, other),
        }
    }
}

/// Changes a few bytes.
pub(super) fn change_bytes(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(input.len() + 1);
    let end = at + random.below(input.len() - at + 1).min(random.below(64));
    match random.below(9) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = *random.choose(EDGES),
        2 => input.insert(at, *random.choose(EDGES)),
        3 => drop(input.drain(at..end)),
        4 => {
            let copied = input[at..end].to_vec();
            let to = random.below(input.len() + 1);
            input.splice(to..to, copied);
        }
        5 => input.truncate(at),
        6 => {
            let from = random.below(other.len() + 1);
            let length = random.below(other.len() - from + 1);
            input.splice(at..end, other[from..from + length].iter().copied());
        }
        7 if at < input.len() => input[at] = input[at].wrapping_add(if random.below(2) == 0 { 1 } else { 0xff }),
        _ => {
            let byte = random.below(256) as u8;
            let count = random.below(40);
            input.splice(at..end, std::iter::repeat_n(byte, count));
        }
    }
}

/// Random numbers (SplitMix64).
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Returns a number below `bound`, which must not be 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    /// Returns one of `values`, of which there must be one.
    pub(super) fn choose<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len())]
    }
}
