//! Hashing of several messages at once with vector instructions. Each lane of a vector holds a word of a different
//! Keccak state, and all states are permuted together.

use primitive_types::H256;
use std::arch::is_x86_feature_detected;

/// Bytes that one permutation absorbs (the rate of Keccak-256).
const RATE: usize = 136;

/// The same in words.
const RATE_WORDS: usize = RATE / 8;

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
    let mut hashes = vec![H256::zero(); messages.len()];
    let mut done = |index: usize, hash| hashes[order[index]] = H256(hash);
    #[expect(unsafe_code, reason = "the machine has the features for which the functions are compiled")]
    if eight {
        unsafe { avx512::hash(&sorted, &mut done) };
    } else {
        unsafe { avx2::hash(&sorted, &mut done) };
    }
    Some(hashes)
}

/// Returns the block of `message` that begins at `offset`, with padding if it is the last one.
fn block(message: &[u8], offset: usize) -> [u64; RATE_WORDS] {
    let rest = message.get(offset..).unwrap_or_default();
    let mut bytes = [0; RATE];
    let length = rest.len().min(RATE);
    bytes[..length].copy_from_slice(&rest[..length]);
    if length < RATE {
        bytes[length] = 1;
        bytes[RATE - 1] |= 0x80;
    }
    let (words, _) = bytes.as_chunks();
    std::array::from_fn(|index| u64::from_le_bytes(words[index]))
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

/// The words in the order in which `pi` moves them, each with its rotation by `rho`.
const MOVES: [(usize, i64); 24] = [
    (10, 1),
    (7, 3),
    (11, 6),
    (17, 10),
    (18, 15),
    (3, 21),
    (5, 28),
    (16, 36),
    (8, 45),
    (21, 55),
    (24, 2),
    (4, 14),
    (15, 27),
    (23, 41),
    (19, 56),
    (13, 8),
    (12, 25),
    (2, 43),
    (20, 62),
    (14, 18),
    (22, 39),
    (9, 61),
    (6, 20),
    (1, 44),
];

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
            use std::arch::x86_64::*;

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
            fn rotate($ra: $vector, $bits: i64) -> $vector {
                $rotate
            }

            #[target_feature(enable = $feature)]
            fn chi($ca: $vector, $cb: $vector, $cc: $vector) -> $vector {
                $chi
            }

            #[target_feature(enable = $feature)]
            fn permute(state: &mut [$vector; 25]) {
                for constant in ROUND_CONSTANTS {
                    let mut columns = [state[0]; 5];
                    for x in 0..5 {
                        let upper = xor(xor(state[x], state[x + 5]), state[x + 10]);
                        columns[x] = xor(xor(upper, state[x + 15]), state[x + 20]);
                    }
                    for x in 0..5 {
                        let change = xor(columns[(x + 4) % 5], rotate(columns[(x + 1) % 5], 1));
                        for y in 0..5 {
                            state[5 * y + x] = xor(state[5 * y + x], change);
                        }
                    }
                    let mut moving = state[1];
                    for (to, bits) in MOVES {
                        let next = state[to];
                        state[to] = rotate(moving, bits);
                        moving = next;
                    }
                    for y in 0..5 {
                        let mut row = [state[0]; 5];
                        row.copy_from_slice(&state[5 * y..5 * y + 5]);
                        for x in 0..5 {
                            state[5 * y + x] = chi(row[x], row[(x + 1) % 5], row[(x + 2) % 5]);
                        }
                    }
                    state[0] = xor(state[0], broadcast(constant as i64));
                }
            }

            /// Hashes messages, which should be ascending by their number of blocks. Calls `done` with the index and the
            /// hash of each.
            #[target_feature(enable = $feature)]
            pub(super) fn hash(messages: &[&[u8]], done: &mut dyn FnMut(usize, [u8; 32])) {
                for (group, messages) in messages.chunks($count).enumerate() {
                    let blocks = messages.iter().map(|message| message.len() / RATE + 1).max().unwrap_or_default();
                    let mut state = [broadcast(0); 25];
                    for number in 0..blocks {
                        let mut absorbed = [[0; $count]; RATE_WORDS];
                        for (lane, message) in messages.iter().enumerate() {
                            for (words, word) in absorbed.iter_mut().zip(block(message, number * RATE)) {
                                words[lane] = word as i64;
                            }
                        }
                        for (word, words) in state.iter_mut().zip(absorbed) {
                            *word = xor(*word, load(words));
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
    |a, bits| _mm512_rolv_epi64(a, _mm512_set1_epi64(bits)),
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
    |a, bits| {
        let (left, right) = (_mm256_set1_epi64x(bits), _mm256_set1_epi64x(64 - bits));
        _mm256_or_si256(_mm256_sllv_epi64(a, left), _mm256_srlv_epi64(a, right))
    },
    |a, b, c| _mm256_xor_si256(a, _mm256_andnot_si256(b, c)),
);

#[cfg(test)]
mod tests {
    use super::*;

    /// On a machine that has both, [`keccak256_all`] only uses the wider one.
    #[test]
    #[expect(unsafe_code, reason = "only if the machine has the feature")]
    fn narrow_vectors_return_the_same() {
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        let messages: Vec<Vec<u8>> = (0..600).map(|length| vec![length as u8; length]).collect();
        let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let mut count = 0;
        unsafe {
            avx2::hash(&slices, &mut |index, hash| {
                assert_eq!(H256(hash), crate::keccak256(slices[index]), "{index}");
                count += 1;
            });
        }
        assert_eq!(count, slices.len());
    }
}
