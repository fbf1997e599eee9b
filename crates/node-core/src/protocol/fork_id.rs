//! Fork identifiers (EIP-2124, EIP-6122): a checksum of the forks that a chain has passed.

use crate::block::SealedHeader;
use crate::protocol::ChainSpec;
use node_types::BlockNumber;

/// Returns the fork identifier of a block: the CRC-32 of the genesis hash and of the activation block numbers and
/// timestamps of all forks that are active in the block. Forks that are active at genesis are not included.
pub fn fork_id(spec: &ChainSpec, genesis: &SealedHeader, number: BlockNumber, timestamp: u64) -> [u8; 4] {
    let dao_block = spec.dao_fork.map(|dao| dao.block);
    let blocks = spec.block_forks.iter().map(|(_, at)| *at).chain(dao_block).chain(spec.merge_netsplit);
    let mut blocks: Vec<_> = blocks.filter(|at| *at > 0 && *at <= number).collect();
    let mut times: Vec<_> = times(spec).filter(|at| *at > genesis.header.timestamp && *at <= timestamp).collect();
    for list in [&mut blocks, &mut times] {
        list.sort_unstable();
        list.dedup();
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(genesis.hash.as_bytes());
    blocks.iter().chain(&times).for_each(|at| crc.update(&at.to_be_bytes()));
    crc.finalize().to_be_bytes()
}

/// Returns the timestamps in Unix seconds at which rules or blob parameters change, possibly with duplicates.
pub fn times(spec: &ChainSpec) -> impl Iterator<Item = u64> + '_ {
    let forks = spec.time_forks.iter().map(|(_, at)| *at);
    forks.chain(spec.blob_schedule.iter().map(|entry| entry.time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Fork;
    use node_types::U256;
    use node_types::consensus::Header;

    /// The identifiers of mainnet in EIP-2124 and EIP-6122.
    #[test]
    fn matches_the_examples_of_the_eips() {
        let spec = ChainSpec {
            chain_id: 1,
            block_forks: vec![
                (Fork::Homestead, 1_150_000),
                (Fork::TangerineWhistle, 2_463_000),
                (Fork::SpuriousDragon, 2_675_000),
                (Fork::Byzantium, 4_370_000),
                (Fork::Constantinople, 7_280_000),
                (Fork::Petersburg, 7_280_000),
                (Fork::Istanbul, 9_069_000),
                (Fork::MuirGlacier, 9_200_000),
                (Fork::Berlin, 12_244_000),
                (Fork::London, 12_965_000),
                (Fork::ArrowGlacier, 13_773_000),
                (Fork::GrayGlacier, 15_050_000),
            ],
            dao_fork: Some(crate::protocol::DaoFork { block: 1_920_000, supported: true }),
            time_forks: vec![(Fork::Shanghai, 1_681_338_455), (Fork::Cancun, 1_710_338_135)],
            blob_schedule: vec![crate::protocol::BlobEntry {
                upgrade: "cancun",
                params: crate::protocol::BlobParams::CANCUN,
                time: 1_710_338_135,
            }],
            ..ChainSpec::default()
        };
        let hash = "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3".parse().unwrap();
        let genesis = SealedHeader { hash, header: Header::default(), total_difficulty: U256::zero(), size: 0 };
        let cases = [
            (0, 0, 0xfc64_ec04_u32),
            (1_149_999, 0, 0xfc64_ec04),
            (1_150_000, 0, 0x97c2_c34c),
            (1_920_000, 0, 0x91d1_f948),
            (7_280_000, 0, 0x668d_b0af),
            (12_965_000, 0, 0xb715_077d),
            (15_050_000, 1_681_338_454, 0xf0af_d0e3),
            (20_000_000, 1_681_338_455, 0xdce9_6c2d),
            (30_000_000, 1_710_338_135, 0x9f3d_2254),
        ];
        for (number, timestamp, expected) in cases {
            let got = fork_id(&spec, &genesis, number, timestamp);
            assert_eq!(u32::from_be_bytes(got), expected, "block {number} at {timestamp}");
        }
    }
}
