//! Hashing of several messages at once with vector instructions: each lane of a vector holds a word of a different
//! Keccak state, and all states are permuted together. Also hashing of one message, with the instructions that most
//! processors have beyond the portable ones.

use primitive_types::H256;
use std::arch::is_x86_feature_detected;
use std::arch::x86_64::*;

/// Bytes that one permutation absorbs (the rate of Keccak-256).
const RATE: usize = 136;

/// The same in words.
const RATE_WORDS: usize = RATE / 8;

/// Hashes one message. Returns `None` if the processor has nothing that is faster than portable code.
pub(crate) fn keccak256(message: &[u8]) -> Option<H256> {
    if !is_x86_feature_detected!("bmi1") || !is_x86_feature_detected!("bmi2") {
        return None;
    }
    let mut hash = H256::zero();
    #[expect(unsafe_code, reason = "the machine has the features for which the function is compiled")]
    unsafe {
        bmi::hash(&[message], &mut |_, done| hash = H256(done));
    }
    Some(hash)
}

/// Hashes with the widest vectors that the processor supports. Returns `None` if it supports none, or if there is
/// only one message.
pub(crate) fn keccak256_all<T: AsRef<[u8]>>(messages: &[T]) -> Option<Vec<H256>> {
    let (eight, four) = (is_x86_feature_detected!("avx512f"), is_x86_feature_detected!("avx2"));
    if messages.len() < 2 || !eight && !four {
        return None;
    }
    // Messages of the same number of blocks next to each other.
    let mut order: Vec<usize> = (0..messages.len()).collect();
    order.sort_by_key(|index| messages[*index].as_ref().len() / RATE);
    let sorted: Vec<&[u8]> = order.iter().map(|index| messages[*index].as_ref()).collect();
    // One message is hashed faster without vectors.
    let left = sorted.len() % if eight { 8 } else { 4 };
    let (together, alone) = sorted.split_at(sorted.len() - usize::from(left == 1));
    let mut hashes = vec![H256::zero(); messages.len()];
    let mut done = |index: usize, hash| hashes[order[index]] = H256(hash);
    #[expect(unsafe_code, reason = "the machine has the features for which the functions are compiled")]
    if eight {
        unsafe { avx512::hash(together, &mut done) };
    } else {
        unsafe { avx2::hash(together, &mut done) };
    }
    alone.iter().for_each(|message| done(together.len(), crate::keccak256(message).0));
    Some(hashes)
}

/// Returns the block of `message` that begins at `offset`, with padding if it is the last one.
fn block(message: &[u8], offset: usize) -> [u64; RATE_WORDS] {
    let rest = message.get(offset..).unwrap_or_default();
    let words = |bytes: &[u8; RATE]| {
        let (words, _) = bytes.as_chunks();
        std::array::from_fn(|index| u64::from_le_bytes(words[index]))
    };
    if let Some(whole) = rest.first_chunk() {
        return words(whole);
    }
    let mut bytes = [0; RATE];
    bytes[..rest.len()].copy_from_slice(rest);
    bytes[rest.len()] = 1;
    bytes[RATE - 1] |= 0x80;
    words(&bytes)
}

const ROUND_CONSTANTS: [u64; 24] = [
    0x0000_0000_0000_0001,
    0x0000_0000_0000_8082,
    0x8000_0000_0000_808a,
    0x8000_0000_8000_8000,
    0x0000_0000_0000_808b,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8009,
    0x0000_0000_0000_008a,
    0x0000_0000_0000_0088,
    0x0000_0000_8000_8009,
    0x0000_0000_8000_000a,
    0x0000_0000_8000_808b,
    0x8000_0000_0000_008b,
    0x8000_0000_0000_8089,
    0x8000_0000_0000_8003,
    0x8000_0000_0000_8002,
    0x8000_0000_0000_0080,
    0x0000_0000_0000_800a,
    0x8000_0000_8000_000a,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8080,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8008,
];

/// Computes the rows of the next state: each word of a row is a word of this state, changed by its column and rotated
/// (theta, rho and pi), and then combined with the two after it (chi). With all indices and rotations known to the
/// compiler, the words are in registers.
macro_rules! rows {
    ($state:ident, $change:ident, $next:ident; $($row:literal: $($from:literal by $bits:literal),*;)*) => {$(
        let row = [$(rotate::<$bits>(xor($state[$from], $change[$from % 5]))),*];
        for x in 0..5 {
            $next[$row + x] = chi(row[x], row[(x + 1) % 5], row[(x + 2) % 5]);
        }
    )*};
}

/// Defines a module with a function `hash` for vectors of one width, from the operations on them.
macro_rules! lanes {
    (
        $name:ident, $feature:literal, $vector:ty, $count:literal,
        |$all:ident| $broadcast:expr,
        |$words:ident| $load:expr,
        |$from:ident| $store:expr,
        |$xa:ident, $xb:ident| $xor:expr,
        |$ra:ident, $bits:ident| $rotate:expr,
        |$ca:ident, $cb:ident, $cc:ident| $chi:expr $(,)?
    ) => {
        mod $name {
            use super::*;

            #[target_feature(enable = $feature)]
            fn broadcast($all: i64) -> $vector {
                $broadcast
            }

            #[target_feature(enable = $feature)]
            fn load($words: [i64; $count]) -> $vector {
                $load
            }

            #[target_feature(enable = $feature)]
            fn store($from: $vector) -> [i64; $count] {
                $store
            }

            #[target_feature(enable = $feature)]
            fn xor($xa: $vector, $xb: $vector) -> $vector {
                $xor
            }

            #[target_feature(enable = $feature)]
            fn rotate<const $bits: i32>($ra: $vector) -> $vector {
                $rotate
            }

            #[target_feature(enable = $feature)]
            fn chi($ca: $vector, $cb: $vector, $cc: $vector) -> $vector {
                $chi
            }

            #[target_feature(enable = $feature)]
            fn permute(state: &mut [$vector; 25]) {
                for constant in &ROUND_CONSTANTS {
                    let mut columns = [state[0]; 5];
                    for x in 0..5 {
                        let (upper, lower) = (xor(state[x], state[x + 5]), xor(state[x + 15], state[x + 20]));
                        columns[x] = xor(xor(upper, state[x + 10]), lower);
                    }
                    let mut change = columns;
                    for x in 0..5 {
                        change[x] = xor(columns[(x + 4) % 5], rotate::<1>(columns[(x + 1) % 5]));
                    }
                    let mut next = *state;
                    rows! {
                        state, change, next;
                        0: 0 by 0, 6 by 44, 12 by 43, 18 by 21, 24 by 14;
                        5: 3 by 28, 9 by 20, 10 by 3, 16 by 45, 22 by 61;
                        10: 1 by 1, 7 by 6, 13 by 25, 19 by 8, 20 by 18;
                        15: 4 by 27, 5 by 36, 11 by 10, 17 by 15, 23 by 56;
                        20: 2 by 62, 8 by 55, 14 by 39, 15 by 41, 21 by 2;
                    }
                    next[0] = xor(next[0], broadcast(*constant as i64));
                    *state = next;
                }
            }

            /// Hashes messages, which should be ascending by their number of blocks. Calls `done` with the index and
            /// the hash of each.
            #[target_feature(enable = $feature)]
            pub(super) fn hash(messages: &[&[u8]], done: &mut dyn FnMut(usize, [u8; 32])) {
                for (group, messages) in messages.chunks($count).enumerate() {
                    let blocks = messages.iter().map(|message| message.len() / RATE + 1).max().unwrap_or_default();
                    let mut state = [broadcast(0); 25];
                    for number in 0..blocks {
                        let blocks: [_; $count] = std::array::from_fn(|lane| match messages.get(lane) {
                            Some(message) => block(message, number * RATE),
                            None => [0; RATE_WORDS],
                        });
                        for index in 0..RATE_WORDS {
                            state[index] = xor(state[index], load(blocks.each_ref().map(|words| words[index] as i64)));
                        }
                        permute(&mut state);
                        // A lane's result is taken after its last block, so what it absorbs afterwards does not
                        // matter.
                        if messages.iter().any(|message| message.len() / RATE == number) {
                            let words = [0, 1, 2, 3].map(|index| store(state[index]));
                            for (lane, message) in messages.iter().enumerate() {
                                if message.len() / RATE == number {
                                    let mut hash = [0; 32];
                                    for (bytes, words) in hash.as_chunks_mut().0.iter_mut().zip(words) {
                                        *bytes = words[lane].to_le_bytes();
                                    }
                                    done(group * $count + lane, hash);
                                }
                            }
                        }
                    }
                }
            }
        }
    };
}

lanes!(
    avx512,
    "avx512f",
    __m512i,
    8,
    |all| _mm512_set1_epi64(all),
    |words| {
        let [a, b, c, d, e, f, g, h] = words;
        _mm512_set_epi64(h, g, f, e, d, c, b, a)
    },
    |from| {
        let (low, high) = (_mm512_castsi512_si256(from), _mm512_extracti64x4_epi64::<1>(from));
        let [a, b] = [low, high].map(|half| {
            let (low, high) = (_mm256_castsi256_si128(half), _mm256_extractf128_si256::<1>(half));
            [low, high].map(|pair| [_mm_cvtsi128_si64(pair), _mm_cvtsi128_si64(_mm_unpackhi_epi64(pair, pair))])
        });
        [a[0][0], a[0][1], a[1][0], a[1][1], b[0][0], b[0][1], b[1][0], b[1][1]]
    },
    |a, b| _mm512_xor_si512(a, b),
    |a, BITS| _mm512_rolv_epi64(a, _mm512_set1_epi64(BITS.into())),
    // a ^ (!b & c)
    |a, b, c| _mm512_ternarylogic_epi64::<0xd2>(a, b, c),
);

lanes!(
    avx2,
    "avx2",
    __m256i,
    4,
    |all| _mm256_set1_epi64x(all),
    |words| {
        let [a, b, c, d] = words;
        _mm256_set_epi64x(d, c, b, a)
    },
    |from| {
        let (low, high) = (_mm256_castsi256_si128(from), _mm256_extractf128_si256::<1>(from));
        let [a, b] =
            [low, high].map(|pair| [_mm_cvtsi128_si64(pair), _mm_cvtsi128_si64(_mm_unpackhi_epi64(pair, pair))]);
        [a[0], a[1], b[0], b[1]]
    },
    |a, b| _mm256_xor_si256(a, b),
    |a, BITS| {
        let (left, right) = (_mm256_set1_epi64x(BITS.into()), _mm256_set1_epi64x((64 - BITS).into()));
        _mm256_or_si256(_mm256_sllv_epi64(a, left), _mm256_srlv_epi64(a, right))
    },
    |a, b, c| _mm256_xor_si256(a, _mm256_andnot_si256(b, c)),
);

lanes!(
    bmi,
    "bmi1,bmi2",
    u64,
    1,
    |all| all as u64,
    |words| words[0] as u64,
    |from| [from as i64],
    |a, b| a ^ b,
    |a, BITS| a.rotate_left(BITS as u32),
    |a, b, c| a ^ (!b & c),
);

#[cfg(test)]
mod tests {
    use super::*;

    /// On a machine that has several, [`keccak256_all`] only uses the widest.
    #[test]
    #[expect(unsafe_code, reason = "only if the machine has the feature")]
    fn every_width_returns_the_same() {
        let messages: Vec<Vec<u8>> = (0..600).map(|length| vec![length as u8; length]).collect();
        let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let mut count = 0;
        let mut compare = |index: usize, hash| {
            assert_eq!(H256(hash), super::super::portable(slices[index]), "{index}");
            count += 1;
        };
        if is_x86_feature_detected!("avx2") {
            unsafe { avx2::hash(&slices, &mut compare) };
        }
        if is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") {
            unsafe { bmi::hash(&slices, &mut compare) };
        }
        assert!(count % slices.len() == 0);
    }
}
