//! The built-in development genesis.

use super::Genesis;

/// The development genesis in geth's format.
///
/// The chain id is 31337, and every upgrade that mainnet has scheduled is active from genesis. The first ten accounts of
/// the mnemonic `test test test test test test test test test test test junk` have 10,000 ether each. The system contracts
/// of EIP-4788, 2935, 7002 and 7251 are deployed, and the usual CREATE2 deployer at
/// 0x4e59b44847b379578588920cA78FbF26c0B4956C.
pub const DEV_GENESIS: &str = include_str!("dev.json");

/// Returns [`DEV_GENESIS`], parsed.
pub fn dev_genesis() -> Genesis {
    // The file is part of the program, and a test parses it.
    Genesis::parse(DEV_GENESIS.as_bytes()).expect("the built-in genesis is valid")
}
