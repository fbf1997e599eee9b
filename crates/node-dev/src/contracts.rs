//! Contracts that tools expect at the same address on every chain.
//!
//! Their code is that of Ethereum's mainnet. `contracts.txt` has a line with address and code for each. A test
//! compares the code hashes. docs/development.md lists sources and licenses.

use node_types::{Address, Bytes};

const CONTRACTS: &str = include_str!("contracts.txt");

/// Returns the addresses and code of Multicall3, Permit2, CreateX, EntryPoint 0.6 to 0.9 (ERC-4337) with their
/// SenderCreators, the registry of ERC-1820, and the factories of EIP-2470 and Safe.
pub(crate) fn contracts() -> impl Iterator<Item = (Address, Bytes)> {
    CONTRACTS.lines().filter_map(|line| {
        let (address, code) = line.split_once(' ')?;
        Some((address.parse().ok()?, const_hex::decode(code).ok()?.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::keccak256;

    #[test]
    fn the_codes_are_those_of_mainnet() {
        let expected = [
            (
                "ca11bde05977b3631167028862be2a173976ca11",
                "d5c15df687b16f2ff992fc8d767b4216323184a2bbc6ee2f9c398c318e770891",
            ),
            (
                "000000000022d473030f116ddee9f6b43ac78ba3",
                "c67d1657868aa5146eaf24fb879fb1fdec3d2d493b3683a61c9c2f4fb2851131",
            ),
            (
                "ba5ed099633d3b313e4d5f7bdc1305d3c28ba5ed",
                "bd8a7ea8cfca7b4e5f5041d7d4b17bc317c5ce42cfbc42066a00cf26b43eb53f",
            ),
            (
                "0000000071727de22e5e9d8baf0edac6f37da032",
                "8db5ff695839d655407cc8490bb7a5d82337a86a6b39c3f0258aa6c3b582fc58",
            ),
            (
                "efc2c1444ebcc4db75e7613d20c6a62ff67a167c",
                "283c9d14378f5f4c4e24045b87d621d48443fa5b4af7dd7180a599b3756a7689",
            ),
            (
                "4337084d9e255ff0702461cf8895ce9e3b5ff108",
                "44e632a24c6f2600cbd5b5b8b4c2d372359112c8b5774297f5fd0a9e64f11f86",
            ),
            (
                "449ed7c3e6fee6a97311d4b55475df59c44add33",
                "c69a1b3a000d570bc86eb096ee63a9014a17951ad616d720882ec61432b00fcf",
            ),
            (
                "5ff137d4b0fdcd49dca30c7cf57e578a026d2789",
                "c93c806e738300b5357ecdc2e971d6438d34d8e4e17b99b758b1f9cac91c8e70",
            ),
            (
                "7fc98430eaedbb6070b35b39d798725049088348",
                "ae818091eaaf1b6175ee41472359a689f3823d0908a41e2e5c4ad508f2fc04a3",
            ),
            (
                "433709009b8330fda32311df1c2afa402ed8d009",
                "14ee3fe0191de027aecf20ffd7dbd985f5023b898fa429485d2dfe2286b42750",
            ),
            (
                "0a630a99df908a81115a3022927be82f9299987e",
                "a7d4dd260bca9c96da49f7c0682fdda7f0074694d935815a336d3e60ee3ec6ad",
            ),
            (
                "1820a4b7618bde71dce8cdc73aab6c95905fad24",
                "f0aa940bb32e37c5f7268b53acc48c7cdd148cd0fc196f30faa00a4d66c0443a",
            ),
            (
                "ce0042b868300000d44a59004da54a005ffdcf9f",
                "c4d5542b53a8b779595a20a8ddd60e58a6c49d3c3decc2df83ced1c69c8ca807",
            ),
            (
                "914d7fec6aac8cd542e72bca78b30650d45643d7",
                "2fa86add0aed31f33a762c9d88e807c475bd51d0f52bd0955754b2608f7e4989",
            ),
            (
                "4e1dcf7ad4e460cfd30791ccc4f9c8a4f820ec67",
                "50c3cdc4074750a7a974204a716c999edd37482f907608d960b2b025ee0b3317",
            ),
        ];
        let found: Vec<_> =
            contracts().map(|(at, code)| (format!("{at:x}"), format!("{:x}", keccak256(&code)))).collect();
        assert_eq!(found, expected.map(|(address, hash)| (address.to_owned(), hash.to_owned())));
    }
}
