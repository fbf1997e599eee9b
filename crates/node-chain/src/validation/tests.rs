use super::*;
use crate::PreparedBlock;
use crate::genesis::dev_genesis;
use crate::test_support::{chained, conformance_chain, empty_header, work_genesis};
use node_core::block::SealedHeader;
use node_core::protocol::fees::{blob_base_fee, next_base_fee, next_excess_blob_gas};
use node_core::protocol::{ChainSpec, DaoFork, Fork};
use node_evm::Secp256k1Recovery;
use node_types::consensus::{Block, Header};
use node_types::{Bytes, H256, U256};

fn sealed(header: &Header, total_difficulty: U256) -> SealedHeader {
    SealedHeader { hash: header.hash(), header: header.clone(), total_difficulty, size: 0 }
}

/// Returns the result of `validate_header`, with all sources of an error.
fn verdict(spec: &ChainSpec, header: &Header, parent: &SealedHeader) -> Result<(), String> {
    validate_header(spec, header, parent).map_err(|error| chained(&error))
}

/// A change to a valid header and the expected result.
type Case = (fn(&mut Header), Result<(), &'static str>);

/// Applies each change to a valid child of `parent` and compares the verdict.
fn check(spec: &ChainSpec, parent: &SealedHeader, cases: &[Case]) {
    let child = empty_header(spec, parent, 12);
    assert_eq!(verdict(spec, &child, parent), Ok(()), "the unchanged child");
    for (index, (change, expected)) in cases.iter().enumerate() {
        let mut header = child.clone();
        change(&mut header);
        let expected = expected.map_err(str::to_owned);
        assert_eq!(verdict(spec, &header, parent), expected, "case {index}");
    }
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn accepts_the_headers_of_the_conformance_chain() {
    let (genesis, blocks) = conformance_chain();
    let spec = &genesis.spec;
    let mut parent = genesis.block().header.as_ref().clone();
    for block in &blocks {
        let header = &block.header;
        let number = header.number;
        assert_eq!(verdict(spec, header, &parent), Ok(()), "block {number}");
        assert_eq!(next_base_fee(spec, &parent.header), header.base_fee_per_gas, "base fee of block {number}");
        let excess = next_excess_blob_gas(spec, &parent.header, header.timestamp);
        assert_eq!(excess, header.excess_blob_gas, "excess blob gas of block {number}");
        assert_eq!(blob_base_fee(spec, header).is_some(), excess.is_some(), "blob base fee of block {number}");
        let total_difficulty = parent.total_difficulty + header.difficulty;
        parent = sealed(header, total_difficulty);
    }
    assert_eq!(parent.header.number, 54);
}

#[test]
fn validates_headers_after_the_merge() {
    let genesis = dev_genesis();
    let parent = genesis.block().header;
    check(
        &genesis.spec,
        &parent,
        &[
            (|header| header.number = 2, Err("number 2, expected 1")),
            (|header| header.number = 0, Err("number 0, expected 1")),
            (|header| header.timestamp = 1_735_689_601, Ok(())),
            (
                |header| header.timestamp = 1_735_689_600,
                Err("timestamp 1735689600 is not after the parent's 1735689600"),
            ),
            (|header| header.extra_data = Bytes::from_static(&[7; 32]), Ok(())),
            (
                |header| header.extra_data = Bytes::from_static(&[7; 33]),
                Err("33 bytes of extra data, at most 32 are allowed"),
            ),
            (|header| header.difficulty = 1.into(), Err("difficulty 1 after the merge, expected 0")),
            (|header| header.nonce = [0, 0, 0, 0, 0, 0, 0, 5], Err("nonce 5 after the merge, expected 0")),
            (|header| header.ommers_hash = H256::zero(), Err("ommers after the merge")),
            // The change must be below 30,000,000 / 1024 = 29,296.
            (|header| header.gas_limit = 30_029_295, Ok(())),
            (
                |header| header.gas_limit = 30_029_296,
                Err("gas limit 30029296 is not within 1/1024 of the parent's 30000000"),
            ),
            (|header| header.gas_limit = 29_970_705, Ok(())),
            (
                |header| header.gas_limit = 29_970_704,
                Err("gas limit 29970704 is not within 1/1024 of the parent's 30000000"),
            ),
            (
                |header| header.gas_limit = 1 << 63,
                Err("gas limit 9223372036854775808 is not between 5000 and 2^63 - 1"),
            ),
            (|header| header.gas_used = 30_000_000, Ok(())),
            (|header| header.gas_used = 30_000_001, Err("gas used 30000001 is above the gas limit 30000000")),
            (|header| header.base_fee_per_gas = Some(1), Err("base fee 1, expected 875000000")),
            (|header| header.blob_gas_used = Some(21 << 17), Ok(())),
            (|header| header.blob_gas_used = Some(22 << 17), Err("blob gas used 2883584 is above the limit 2752512")),
            (|header| header.blob_gas_used = Some(1), Err("blob gas used 1 is not a multiple of a blob's")),
            (|header| header.excess_blob_gas = Some(5), Err("excess blob gas 5, expected 0")),
            (|header| header.base_fee_per_gas = None, Err("base fee is missing in a block of Osaka")),
            (|header| header.withdrawals_root = None, Err("withdrawals root is missing in a block of Osaka")),
            (|header| header.blob_gas_used = None, Err("blob gas used is missing in a block of Osaka")),
            (|header| header.excess_blob_gas = None, Err("excess blob gas is missing in a block of Osaka")),
            (
                |header| header.parent_beacon_block_root = None,
                Err("parent beacon block root is missing in a block of Osaka"),
            ),
            (|header| header.requests_hash = None, Err("requests hash is missing in a block of Osaka")),
        ],
    );
}

#[test]
fn validates_headers_before_the_merge() {
    let genesis = work_genesis();
    let parent = genesis.block().header;
    check(
        &genesis.spec,
        &parent,
        &[
            (|header| header.nonce = [1; 8], Ok(())),
            (|header| header.difficulty += 1.into(), Err("difficulty 1000001, expected 1000000")),
            (
                |header| header.difficulty = 0.into(),
                Err(
                    "difficulty 0 before the merge: the total difficulty is 1000000, and the terminal total difficulty is not set",
                ),
            ),
            (|header| header.base_fee_per_gas = Some(7), Err("base fee is present in a block of Byzantium")),
            (
                |header| header.withdrawals_root = Some(H256::zero()),
                Err("withdrawals root is present in a block of Byzantium"),
            ),
            (|header| header.blob_gas_used = Some(0), Err("blob gas used is present in a block of Byzantium")),
            (|header| header.excess_blob_gas = Some(0), Err("excess blob gas is present in a block of Byzantium")),
            (
                |header| header.parent_beacon_block_root = Some(H256::zero()),
                Err("parent beacon block root is present in a block of Byzantium"),
            ),
            (
                |header| header.requests_hash = Some(H256::zero()),
                Err("requests hash is present in a block of Byzantium"),
            ),
        ],
    );
}

#[test]
fn the_terminal_total_difficulty_determines_the_merge() {
    let mut genesis = work_genesis();
    genesis.spec.block_forks.extend([(Fork::Berlin, 0), (Fork::London, 0)]);
    genesis.header.base_fee_per_gas = Some(7);
    // The total difficulty of genesis is 1,000,000. The terminal one, and whether the next block comes after the merge.
    for (terminal, merged) in [(999_999u64, true), (1_000_000, true), (1_000_001, false)] {
        genesis.spec.terminal_total_difficulty = Some(terminal.into());
        let spec = &genesis.spec;
        let parent = genesis.block().header;
        let right = empty_header(spec, &parent, 9);
        assert_eq!(right.difficulty.is_zero(), merged, "terminal {terminal}");
        assert_eq!(verdict(spec, &right, &parent), Ok(()), "terminal {terminal}");
        let other = if merged { 1_000_000.into() } else { U256::zero() };
        let expected = if merged {
            "difficulty 1000000 after the merge, expected 0".to_owned()
        } else {
            format!(
                "difficulty 0 before the merge: the total difficulty is 1000000, and the terminal total difficulty is {terminal}"
            )
        };
        let wrong = Header { difficulty: other, ..right };
        assert_eq!(verdict(spec, &wrong, &parent), Err(expected), "terminal {terminal}");
    }
}

#[test]
fn the_first_london_block_doubles_the_gas_limit() {
    let mut genesis = work_genesis();
    genesis.spec.block_forks.extend([(Fork::Berlin, 0), (Fork::London, 1)]);
    check(
        &genesis.spec,
        &genesis.block().header,
        &[
            (|header| header.gas_limit = 20_000_000 + 19_530, Ok(())),
            (
                |header| header.gas_limit = 20_000_000 + 19_531,
                Err("gas limit 20019531 is not within 1/1024 of the parent's 20000000"),
            ),
            (
                |header| header.gas_limit = 10_000_000,
                Err("gas limit 10000000 is not within 1/1024 of the parent's 20000000"),
            ),
            (|header| header.base_fee_per_gas = Some(999), Err("base fee 999, expected 1000000000")),
        ],
    );
}

#[test]
fn ten_blocks_from_the_dao_fork_on_have_its_extra_data_or_must_not() {
    for supported in [true, false] {
        let mut genesis = work_genesis();
        genesis.spec.dao_fork = Some(DaoFork { block: 5, supported });
        let spec = &genesis.spec;
        let root = genesis.block().header;
        for (number, checked) in [(4, false), (5, true), (14, true), (15, false)] {
            let parent = sealed(&Header { number: number - 1, ..root.header.clone() }, root.total_difficulty);
            for extra in [&b"dao-hard-fork"[..], b"", b"dao-hard-forK"] {
                let header = Header { extra_data: extra.into(), ..empty_header(spec, &parent, 10) };
                let valid = !checked || (extra == b"dao-hard-fork") == supported;
                let got = validate_header(spec, &header, &parent).is_ok();
                assert_eq!(got, valid, "block {number}, {extra:?}, supported: {supported}");
            }
        }
    }
}

#[test]
fn gas_limits_have_a_minimum() {
    let mut genesis = work_genesis();
    genesis.header.gas_limit = 5_002;
    let parent = genesis.block().header;
    for (gas_limit, right) in [(5_000, true), (4_999, false)] {
        let header = Header { gas_limit, ..empty_header(&genesis.spec, &parent, 10) };
        assert_eq!(validate_header(&genesis.spec, &header, &parent).is_ok(), right, "{gas_limit}");
    }
}

#[test]
fn the_size_of_blocks_is_limited_since_osaka() {
    let genesis = dev_genesis();
    let block = Block { header: genesis.header.clone(), withdrawals: Some(Vec::new()), ..Block::default() };
    let mut block = PreparedBlock::new(block, &Secp256k1Recovery);
    for (fork, size, right) in
        [(Fork::Osaka, 8_388_608, true), (Fork::Osaka, 8_388_609, false), (Fork::Prague, 8_388_609, true)]
    {
        block.size = size;
        assert_eq!(validate_body(fork, &block).is_ok(), right, "{fork:?}, {size} bytes");
    }
}
