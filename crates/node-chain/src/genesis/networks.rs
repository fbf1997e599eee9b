//! The rules of public networks.

use super::config::{self, RawObject};
use node_core::protocol::ChainSpec;
use std::collections::BTreeMap;

/// The property `config` of the genesis files of public networks, by name.
const NETWORKS: &str = include_str!("networks.json");

/// Returns the name and the rules of the public network with this chain id, or `None` if it is not known: mainnet, Sepolia,
/// Holesky and Hoodi are.
pub fn public_network(chain_id: u64) -> Option<(String, ChainSpec)> {
    // The file is part of the program, and a test parses it.
    let networks: BTreeMap<String, RawObject<'_>> = serde_json::from_str(NETWORKS).expect("the file is valid");
    let specs = networks.into_iter().filter_map(|(name, config)| Some((name, config::parse(&config).ok()?)));
    specs.into_iter().find(|(_, spec)| spec.chain_id == chain_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_core::block::SealedHeader;
    use node_core::protocol::fork_id::fork_id;
    use node_types::H256;

    /// Number and timestamp of a block, and the checksum of the forks until then.
    type Expected = (u64, u64, &'static str);

    #[test]
    fn fork_identifiers_are_those_of_the_networks() {
        // Name, chain id, hash of the genesis block, and the last forks: the number or time of a block under their rules,
        // with the checksum that other nodes announce (EIP-2124), into which every earlier fork enters.
        let networks: [(&str, u64, &str, &[Expected]); 4] = [
            (
                "mainnet",
                1,
                "d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3",
                &[
                    (0, 0, "fc64ec04"),
                    (1_920_000, 0, "91d1f948"),
                    (7_280_000, 0, "668db0af"),
                    (15_050_000, 0, "f0afd0e3"),
                    (20_000_000, 1_681_338_455, "dce96c2d"),
                    (20_000_000, 1_710_338_135, "9f3d2254"),
                    (20_000_000, 1_746_612_311, "c376cf8b"),
                    (30_000_000, 1_764_798_551, "5167e2a6"),
                    (30_000_000, 1_765_290_071, "cba2a1c0"),
                    (30_000_000, 1_767_747_671, "07c9462e"),
                ],
            ),
            (
                "sepolia",
                11_155_111,
                "25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9",
                &[
                    (0, 0, "fe3366e7"),
                    (1_735_371, 0, "b96cbd13"),
                    (1_735_372, 1_677_557_088, "f7f9bc08"),
                    (1_735_372, 1_741_159_776, "ed88b5fd"),
                    (9_000_000, 1_761_607_008, "268956b6"),
                ],
            ),
            (
                "holesky",
                17_000,
                "b5f7f912443c940f21fd611f12828d75b534364ed9e95ca4e307729a4661bde4",
                &[(0, 0, "c61a6098"), (1, 1_696_000_704, "fd4f016b"), (1, 1_760_389_824, "9bc6cb31")],
            ),
            (
                "hoodi",
                560_048,
                "bbe312868b376a3001692a646dd2d7d1e4406380dfd86b98aa8a34d1557c971b",
                &[(0, 0, "bef71d30"), (1, 1_742_999_832, "0929e24e"), (1, 1_762_955_544, "23aa1351")],
            ),
        ];
        for (name, chain_id, genesis, forks) in networks {
            let (found, spec) = public_network(chain_id).unwrap();
            assert_eq!(found, name);
            let hash: H256 = genesis.parse().unwrap();
            let (header, total_difficulty, size) = Default::default();
            let genesis = SealedHeader { hash, header, total_difficulty, size };
            for (number, time, expected) in forks {
                let id = fork_id(&spec, &genesis, *number, *time);
                assert_eq!(const_hex::encode(id), *expected, "{name}, block {number}, time {time}");
            }
        }
        assert_eq!(public_network(31_337), None);
    }
}
