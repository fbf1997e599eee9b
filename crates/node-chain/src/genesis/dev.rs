//! The chain that a node without a genesis file begins.

use super::Genesis;

/// The development genesis in geth's format.
///
/// Chain id 31337; every fork up to the second change of blob parameters in force from the start; 10,000 ether for each
/// of the ten first accounts of the mnemonic `test test test test test test test test test test test junk`; the
/// contracts of EIP-4788, 2935, 7002 and 7251, and the deployer that CREATE2 users expect at
/// 0x4e59b44847b379578588920cA78FbF26c0B4956C.
pub const DEV_GENESIS: &str = include_str!("dev.json");

/// The development genesis.
pub fn dev_genesis() -> Genesis {
    // The file is part of the program; a test reads it.
    Genesis::parse(DEV_GENESIS.as_bytes()).expect("the built-in genesis is valid")
}
