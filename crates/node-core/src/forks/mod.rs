//! The forks of Ethereum and the schedule by which a chain activates them.
//!
//! [`UPGRADES`] is the one table of forks: what each one is called, how it is activated and what it adds. A chain's
//! [`ChainSpec`] holds when each one activates.

mod spec;
mod upgrade;

pub use spec::ChainSpec;
pub use upgrade::{Activation, BlobParams, UPGRADES, Upgrade};

use node_types::consensus::{HeaderField, TransactionType};

/// A set of rules, in the order of activation on Ethereum's mainnet.
///
/// Upgrades that only change blob parameters (EIP-7892) are not forks; see [`ChainSpec::blob_params`].
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

    /// The upgrades up to and including this fork's.
    fn active_upgrades(self) -> impl Iterator<Item = &'static Upgrade> {
        UPGRADES.iter().take_while(move |upgrade| upgrade.fork <= self)
    }
}
