//! The table of forks.

use node_types::consensus::{HeaderField, TransactionType};

/// A set of rules, in the order of activation on Ethereum's mainnet.
///
/// Upgrades that only change blob parameters (EIP-7892) are not forks; see
/// [`ChainSpec::blob_params`](super::ChainSpec::blob_params).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fork {
    /// The rules of mainnet's genesis block.
    Frontier,
    /// EIP-2, 7, 8.
    Homestead,
    /// EIP-150.
    TangerineWhistle,
    /// EIP-155, 160, 161, 170.
    SpuriousDragon,
    /// EIP-100, 140, 196, 197, 198, 211, 214, 649, 658.
    Byzantium,
    /// EIP-145, 1014, 1052, 1234, 1283.
    Constantinople,
    /// Constantinople without EIP-1283.
    Petersburg,
    /// EIP-152, 1108, 1344, 1884, 2028, 2200.
    Istanbul,
    /// EIP-2384.
    MuirGlacier,
    /// EIP-2565, 2718, 2929, 2930.
    Berlin,
    /// EIP-1559, 3198, 3529, 3541, 3554.
    London,
    /// EIP-4345.
    ArrowGlacier,
    /// EIP-5133.
    GrayGlacier,
    /// EIP-3675, 4399.
    Paris,
    /// EIP-3651, 3855, 3860, 4895.
    Shanghai,
    /// EIP-1153, 4788, 4844, 5656, 6780, 7516.
    Cancun,
    /// EIP-2537, 2935, 6110, 7002, 7251, 7623, 7685, 7691, 7702, 7840.
    Prague,
    /// EIP-7594, 7642, 7823, 7825, 7883, 7892, 7918, 7934, 7939, 7951.
    Osaka,
}

impl Fork {
    /// Returns whether blocks under these rules may contain transactions of `transaction_type`.
    pub fn allows(self, transaction_type: TransactionType) -> bool {
        self.active_upgrades().any(|upgrade| upgrade.transaction_type == Some(transaction_type))
    }

    /// Returns whether headers under these rules have `field`.
    pub fn has(self, field: HeaderField) -> bool {
        self.active_upgrades().any(|upgrade| upgrade.header_fields.contains(&field))
    }

    /// Returns the upgrade that activates this fork, not one that only changes its blob parameters.
    pub fn upgrade(self) -> &'static Upgrade {
        let of_forks = self.active_upgrades().filter(|upgrade| !upgrade.activation.is_of_blobs());
        of_forks.last().unwrap_or(&UPGRADES[0])
    }

    /// Returns the upgrades up to and including this fork's.
    fn active_upgrades(self) -> impl Iterator<Item = &'static Upgrade> {
        UPGRADES.iter().take_while(move |upgrade| upgrade.fork <= self)
    }
}

/// The target and the maximum of blobs per block, and the rate at which their base fee changes (EIP-7840).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobParams {
    /// Number of blobs per block at which the blob base fee stays the same.
    pub target: u64,
    /// Maximum number of blobs per block.
    pub max: u64,
    /// Denominator of the exponent in the formula of the blob base fee.
    pub base_fee_update_fraction: u64,
}

impl BlobParams {
    /// The parameters of Cancun (EIP-4844).
    pub const CANCUN: Self = Self { target: 3, max: 6, base_fee_update_fraction: 3_338_477 };
    /// The parameters of Prague (EIP-7691).
    pub const PRAGUE: Self = Self { target: 6, max: 9, base_fee_update_fraction: 5_007_716 };
    /// The parameters of mainnet's BPO1 upgrade.
    pub const BPO1: Self = Self { target: 10, max: 15, base_fee_update_fraction: 8_346_193 };
    /// The parameters of mainnet's BPO2 upgrade.
    pub const BPO2: Self = Self { target: 14, max: 21, base_fee_update_fraction: 11_684_671 };
}

/// A named network upgrade: a [`Fork`], or a change of blob parameters under the rules of an existing fork (EIP-7892).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The rules in force once the upgrade is active.
    pub fork: Fork,
    /// Name in lower case: the key in `blobSchedule` of a genesis file, and the name on the command line.
    pub name: &'static str,
    /// A second name in lower case.
    pub alias: Option<&'static str>,
    /// Name in the network names of Ethereum's execution tests, such as `BerlinToLondonAt5`.
    pub test_name: &'static str,
    /// How a chain activates the upgrade.
    pub activation: Activation,
    /// The header fields that the upgrade adds.
    pub header_fields: &'static [HeaderField],
    /// The transaction type that the upgrade adds.
    pub transaction_type: Option<TransactionType>,
    /// Mainnet's blob parameters, if the upgrade changes them.
    pub blob_params: Option<BlobParams>,
}

/// How a chain activates an upgrade. `key` is the property of `config` in a genesis file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// Active from block 0.
    Genesis,
    /// Active from a block number on.
    Block {
        /// Key of the block number.
        key: &'static str,
        /// Whether a chain may skip this upgrade and still activate later ones.
        optional: bool,
    },
    /// Active after the block that reaches the terminal total difficulty (EIP-3675).
    TotalDifficulty {
        /// Key of the total difficulty.
        key: &'static str,
    },
    /// Active from a timestamp on, in Unix seconds.
    Time { key: &'static str },
    /// Like [`Activation::Time`], for an upgrade that only changes blob parameters. A chain may skip it.
    BlobTime { key: &'static str },
}

impl Activation {
    /// Returns the property of `config` in a genesis file, or `None` for upgrades that are always active.
    pub fn key(self) -> Option<&'static str> {
        match self {
            Self::Genesis => None,
            Self::Block { key, .. } | Self::TotalDifficulty { key } | Self::Time { key } | Self::BlobTime { key } => {
                Some(key)
            }
        }
    }

    /// Returns whether a chain may skip the upgrade and still activate later ones.
    pub fn is_optional(self) -> bool {
        matches!(self, Self::Block { optional: true, .. }) || self.is_of_blobs()
    }

    /// Returns whether the upgrade only changes blob parameters.
    pub fn is_of_blobs(self) -> bool {
        matches!(self, Self::BlobTime { .. })
    }

    /// Returns whether the upgrade activates at a timestamp.
    pub fn is_by_time(self) -> bool {
        matches!(self, Self::Time { .. }) || self.is_of_blobs()
    }
}

impl Upgrade {
    const fn new(fork: Fork, name: &'static str, test_name: &'static str, activation: Activation) -> Self {
        Self {
            fork,
            name,
            alias: None,
            test_name,
            activation,
            header_fields: &[],
            transaction_type: None,
            blob_params: None,
        }
    }
}

const fn block(key: &'static str) -> Activation {
    Activation::Block { key, optional: false }
}

/// Returns the activation of a fork that only delays the difficulty bomb, which chains may skip.
const fn glacier(key: &'static str) -> Activation {
    Activation::Block { key, optional: true }
}

const fn time(key: &'static str) -> Activation {
    Activation::Time { key }
}

const fn blob_time(key: &'static str) -> Activation {
    Activation::BlobTime { key }
}

/// Every upgrade, in the order of activation.
pub const UPGRADES: [Upgrade; 23] = [
    Upgrade {
        transaction_type: Some(TransactionType::Legacy),
        ..Upgrade::new(Fork::Frontier, "frontier", "Frontier", Activation::Genesis)
    },
    Upgrade {
        // The DAO fork changed balances of mainnet, but no rules.
        alias: Some("dao"),
        ..Upgrade::new(Fork::Homestead, "homestead", "Homestead", block("homesteadBlock"))
    },
    Upgrade {
        alias: Some("tangerinewhistle"),
        ..Upgrade::new(Fork::TangerineWhistle, "tangerine", "EIP150", block("eip150Block"))
    },
    Upgrade::new(Fork::SpuriousDragon, "spuriousdragon", "EIP158", block("eip158Block")),
    Upgrade::new(Fork::Byzantium, "byzantium", "Byzantium", block("byzantiumBlock")),
    Upgrade::new(Fork::Constantinople, "constantinople", "Constantinople", block("constantinopleBlock")),
    Upgrade::new(Fork::Petersburg, "petersburg", "ConstantinopleFix", block("petersburgBlock")),
    Upgrade::new(Fork::Istanbul, "istanbul", "Istanbul", block("istanbulBlock")),
    Upgrade::new(Fork::MuirGlacier, "muirglacier", "MuirGlacier", glacier("muirGlacierBlock")),
    Upgrade {
        transaction_type: Some(TransactionType::AccessList),
        ..Upgrade::new(Fork::Berlin, "berlin", "Berlin", block("berlinBlock"))
    },
    Upgrade {
        header_fields: &[HeaderField::BaseFeePerGas],
        transaction_type: Some(TransactionType::DynamicFee),
        ..Upgrade::new(Fork::London, "london", "London", block("londonBlock"))
    },
    Upgrade::new(Fork::ArrowGlacier, "arrowglacier", "ArrowGlacier", glacier("arrowGlacierBlock")),
    Upgrade::new(Fork::GrayGlacier, "grayglacier", "GrayGlacier", glacier("grayGlacierBlock")),
    Upgrade {
        alias: Some("merge"),
        ..Upgrade::new(Fork::Paris, "paris", "Paris", Activation::TotalDifficulty { key: "terminalTotalDifficulty" })
    },
    Upgrade {
        header_fields: &[HeaderField::WithdrawalsRoot],
        ..Upgrade::new(Fork::Shanghai, "shanghai", "Shanghai", time("shanghaiTime"))
    },
    Upgrade {
        header_fields: &[HeaderField::BlobGasUsed, HeaderField::ExcessBlobGas, HeaderField::ParentBeaconBlockRoot],
        transaction_type: Some(TransactionType::Blob),
        blob_params: Some(BlobParams::CANCUN),
        ..Upgrade::new(Fork::Cancun, "cancun", "Cancun", time("cancunTime"))
    },
    Upgrade {
        header_fields: &[HeaderField::RequestsHash],
        transaction_type: Some(TransactionType::SetCode),
        blob_params: Some(BlobParams::PRAGUE),
        ..Upgrade::new(Fork::Prague, "prague", "Prague", time("pragueTime"))
    },
    Upgrade::new(Fork::Osaka, "osaka", "Osaka", time("osakaTime")),
    Upgrade { blob_params: Some(BlobParams::BPO1), ..Upgrade::new(Fork::Osaka, "bpo1", "BPO1", blob_time("bpo1Time")) },
    Upgrade { blob_params: Some(BlobParams::BPO2), ..Upgrade::new(Fork::Osaka, "bpo2", "BPO2", blob_time("bpo2Time")) },
    // Mainnet has not scheduled these, so a chain that activates them has to state their parameters.
    Upgrade::new(Fork::Osaka, "bpo3", "BPO3", blob_time("bpo3Time")),
    Upgrade::new(Fork::Osaka, "bpo4", "BPO4", blob_time("bpo4Time")),
    Upgrade::new(Fork::Osaka, "bpo5", "BPO5", blob_time("bpo5Time")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upgrades_are_in_the_order_of_their_forks() {
        assert!(UPGRADES.is_sorted_by_key(|upgrade| upgrade.fork));
        for (index, fork) in UPGRADES.iter().map(|upgrade| upgrade.fork as usize).enumerate().take(Fork::Osaka as usize)
        {
            assert_eq!(fork, index, "each fork has one row");
        }
        for upgrade in UPGRADES.iter().filter(|upgrade| !upgrade.activation.is_of_blobs()) {
            assert_eq!(upgrade.fork.upgrade(), upgrade);
        }
    }

    #[test]
    fn names_and_keys_are_unique() {
        let columns: [Vec<&str>; 3] = [
            UPGRADES.iter().flat_map(|upgrade| [Some(upgrade.name), upgrade.alias]).flatten().collect(),
            UPGRADES.iter().map(|upgrade| upgrade.test_name).collect(),
            UPGRADES.iter().filter_map(|upgrade| upgrade.activation.key()).collect(),
        ];
        for mut column in columns {
            let count = column.len();
            column.sort_unstable();
            column.dedup();
            assert_eq!(column.len(), count, "{column:?}");
        }
    }

    #[test]
    fn header_fields_and_transaction_types_belong_to_their_forks() {
        let added: Vec<HeaderField> = UPGRADES.iter().flat_map(|upgrade| upgrade.header_fields).copied().collect();
        assert_eq!(added, HeaderField::ALL, "each field is added once, in the order of the encoding");
        let cases = [
            (TransactionType::Legacy, Fork::Frontier),
            (TransactionType::AccessList, Fork::Berlin),
            (TransactionType::DynamicFee, Fork::London),
            (TransactionType::Blob, Fork::Cancun),
            (TransactionType::SetCode, Fork::Prague),
        ];
        for (transaction_type, since) in cases {
            for fork in UPGRADES.map(|upgrade| upgrade.fork) {
                assert_eq!(fork.allows(transaction_type), fork >= since, "{transaction_type:?} under {fork:?}");
            }
        }
        assert!(!Fork::Paris.has(HeaderField::WithdrawalsRoot) && Fork::Osaka.has(HeaderField::WithdrawalsRoot));
    }
}
