//! The difficulty of proof-of-work blocks (Yellow Paper, section 4.3.4, and the EIPs below).

use crate::protocol::Fork;
use node_types::consensus::{EMPTY_OMMERS_HASH, Header};
use node_types::{BlockNumber, U256};

/// Minimum difficulty of a block.
const MINIMUM: u64 = 131_072;

/// The parent's difficulty divided by this is the step in which the difficulty changes.
const BOUND_DIVISOR: u64 = 2048;

/// Number of blocks in which the difficulty bomb doubles.
const BOMB_PERIOD: u64 = 100_000;

/// Returns the difficulty that a child of `parent` must have under the rules of `fork`. `timestamp` is the child's
/// timestamp in Unix seconds.
pub fn expected_difficulty(fork: Fork, timestamp: u64, parent: &Header) -> U256 {
    let step = parent.difficulty / BOUND_DIVISOR;
    let elapsed = timestamp.saturating_sub(parent.timestamp);
    // The numbers of steps up and down; one of them is zero.
    let (up, down) = match fork {
        Fork::Frontier => {
            if elapsed < 13 {
                (1, 0)
            } else {
                (0, 1)
            }
        }
        // EIP-2.
        Fork::Homestead | Fork::TangerineWhistle | Fork::SpuriousDragon => difference(1, elapsed / 10),
        // EIP-100.
        _ if parent.ommers_hash == EMPTY_OMMERS_HASH => difference(1, elapsed / 9),
        _ => difference(2, elapsed / 9),
    };
    let raised = parent.difficulty.saturating_add(step * U256::from(up));
    let difficulty = raised.saturating_sub(step * U256::from(down)).max(MINIMUM.into());
    difficulty.saturating_add(bomb(parent.number.saturating_add(1).saturating_sub(bomb_delay(fork))))
}

/// Returns `a - b` as a number of steps up and a number of steps down, at most 99.
fn difference(a: u64, b: u64) -> (u64, u64) {
    (a.saturating_sub(b), b.saturating_sub(a).min(99))
}

/// Returns the amount that the difficulty bomb adds at a block number from which the delay has been subtracted.
fn bomb(number: BlockNumber) -> U256 {
    match (number / BOMB_PERIOD).checked_sub(2) {
        None => U256::zero(),
        Some(exponent) if exponent < 256 => U256::one() << exponent,
        Some(_) => U256::MAX,
    }
}

/// Returns the delay of the difficulty bomb in blocks.
fn bomb_delay(fork: Fork) -> u64 {
    match fork {
        Fork::Frontier | Fork::Homestead | Fork::TangerineWhistle | Fork::SpuriousDragon => 0,
        // EIP-649.
        Fork::Byzantium => 3_000_000,
        // EIP-1234.
        Fork::Constantinople | Fork::Petersburg | Fork::Istanbul => 5_000_000,
        // EIP-2384.
        Fork::MuirGlacier | Fork::Berlin => 9_000_000,
        // EIP-3554.
        Fork::London => 9_700_000,
        // EIP-4345.
        Fork::ArrowGlacier => 10_700_000,
        // EIP-5133, the last one: blocks after the merge have no difficulty.
        _ => 11_400_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::H256;

    #[test]
    fn difficulty_of_mainnet_blocks() {
        // Fork; number, timestamp and difficulty of the parent and whether it has ommers; timestamp and difficulty of
        // the block. The first rows are blocks of mainnet.
        let cases: [(Fork, u64, u64, u64, bool, u64, u64); 9] = [
            // Block 1 came a year after genesis.
            (Fork::Frontier, 0, 0, 17_179_869_184, false, 1_438_269_988, 17_171_480_576),
            (Fork::Frontier, 1, 1_438_269_988, 17_171_480_576, false, 1_438_270_017, 17_163_096_064),
            (Fork::Frontier, 2, 1_438_270_017, 17_163_096_064, false, 1_438_270_048, 17_154_715_646),
            (Fork::Frontier, 1, 100, 2_048_000, false, 112, 2_049_000),
            (Fork::Homestead, 1, 100, 2_048_000, false, 109, 2_049_000),
            (Fork::Homestead, 1, 100, 2_048_000, false, 119, 2_048_000),
            (Fork::Homestead, 1, 100, 2_048_000, false, 100 + 10_000, 1_949_000),
            (Fork::Byzantium, 1, 100, 2_048_000, true, 108, 2_050_000),
            (Fork::Byzantium, 1, 100, 2_048_000, false, 127, 2_046_000),
        ];
        for (fork, number, parent_time, parent_difficulty, ommers, timestamp, expected) in cases {
            let parent = Header {
                number,
                timestamp: parent_time,
                difficulty: parent_difficulty.into(),
                ommers_hash: if ommers { H256::zero() } else { EMPTY_OMMERS_HASH },
                ..Header::default()
            };
            let got = expected_difficulty(fork, timestamp, &parent);
            assert_eq!(got, expected.into(), "{fork:?} on {number} after {} s", timestamp - parent_time);
        }
    }

    #[test]
    fn the_bomb_ticks_and_is_delayed() {
        // Fork, number of the block, what the bomb adds.
        let cases: [(Fork, u64, U256); 12] = [
            (Fork::Frontier, 199_999, 0.into()),
            (Fork::Frontier, 200_000, 1.into()),
            (Fork::Homestead, 1_920_000, (1u64 << 17).into()),
            (Fork::SpuriousDragon, 4_369_999, (1u64 << 41).into()),
            (Fork::Byzantium, 4_370_000, (1u64 << 11).into()),
            (Fork::Constantinople, 7_280_000, (1u64 << 20).into()),
            (Fork::MuirGlacier, 9_200_000, 1.into()),
            (Fork::London, 12_965_000, (1u64 << 30).into()),
            (Fork::ArrowGlacier, 13_773_000, (1u64 << 28).into()),
            (Fork::GrayGlacier, 15_050_000, (1u64 << 34).into()),
            (Fork::Frontier, 25_700_000, U256::one() << 255),
            (Fork::Frontier, u64::MAX, U256::MAX),
        ];
        for (fork, number, expected) in cases {
            // Twenty seconds leave the rest of the formula at or below the minimum.
            let parent = Header { number: number - 1, ommers_hash: EMPTY_OMMERS_HASH, ..Header::default() };
            let got = expected_difficulty(fork, 20, &parent);
            assert_eq!(got, expected.saturating_add(MINIMUM.into()), "{fork:?} block {number}");
        }
    }
}
