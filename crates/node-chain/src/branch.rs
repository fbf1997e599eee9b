//! Fork choice.

use node_core::block::SealedHeader;

/// Returns whether the branch that ends in `block` replaces the canonical branch, which ends in `head`.
///
/// Before the merge the branch with the higher total difficulty is preferred (Yellow Paper, section 10). After the
/// merge a consensus client would decide; since there is none, the longer branch is preferred. A branch after the
/// merge is preferred to one before it. In a tie the canonical branch stays.
pub(crate) fn is_preferred(block: &SealedHeader, head: &SealedHeader) -> bool {
    let merged = |header: &SealedHeader| header.header.difficulty.is_zero();
    match (merged(block), merged(head)) {
        (true, true) => block.header.number > head.header.number,
        (false, false) => block.total_difficulty > head.total_difficulty,
        (block_merged, _) => block_merged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::H256;
    use node_types::consensus::Header;

    #[test]
    fn prefers_the_heavier_and_after_the_merge_the_longer_branch() {
        // Number, difficulty and total difficulty of the block, then of the head; whether the block is preferred.
        let cases = [
            ((5, 10, 100), (4, 10, 99), true),
            ((5, 10, 100), (4, 10, 100), false),
            ((5, 10, 99), (9, 10, 98), true),
            ((9, 10, 98), (5, 10, 99), false),
            ((6, 0, 100), (5, 0, 100), true),
            ((5, 0, 100), (5, 0, 100), false),
            ((6, 0, 100), (5, 0, 200), true),
            ((6, 0, 100), (9, 10, 200), true),
            ((9, 10, 200), (6, 0, 100), false),
        ];
        let header = |(number, difficulty, total_difficulty): (u64, u64, u64)| SealedHeader {
            hash: H256::zero(),
            header: Header { number, difficulty: difficulty.into(), ..Header::default() },
            total_difficulty: total_difficulty.into(),
            size: 0,
        };
        for (block, head, expected) in cases {
            assert_eq!(is_preferred(&header(block), &header(head)), expected, "{block:?} against {head:?}");
        }
    }
}
