//! The accounts of a large genesis.

use super::contract;
use node_chain::genesis::DEV_GENESIS;
use node_types::{Address, keccak256};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// One account in ten is a holder.
const PER_HOLDER: u64 = 10;

/// Number of slots of each holder: those with the keys 0, 1, …
pub(super) const SLOTS: u64 = 4;

/// The accounts that a genesis has besides those of the development chain.
#[derive(Clone, Copy)]
pub(super) struct GenesisAccounts {
    pub(super) seed: u64,
    pub(super) count: u64,
}

impl GenesisAccounts {
    /// Returns the address of account `index`.
    pub(super) fn address(self, index: u64) -> Address {
        let hash = keccak256([b"account".as_slice(), &self.seed.to_be_bytes(), &index.to_be_bytes()].concat());
        Address::from_slice(&hash[12..])
    }

    /// Returns the number of holders: copies of the contract with slots.
    pub(super) fn holders(self) -> u64 {
        self.count.div_ceil(PER_HOLDER)
    }

    /// Returns the address of holder `index`.
    pub(super) fn holder(self, index: u64) -> Address {
        self.address(index * PER_HOLDER)
    }

    /// Writes the genesis file in geth's JSON format.
    pub(super) fn write(self, out: &mut impl Write) -> io::Result<()> {
        let mut file: Map<String, Value> = serde_json::from_str(DEV_GENESIS)?;
        let built_in = file.remove("alloc").unwrap_or_default();
        let properties = Value::Object(file).to_string();
        // What follows is inside of the object, before its last brace.
        write!(out, "{},\"alloc\":{{", properties.strip_suffix('}').unwrap_or(&properties))?;
        let code = contract::runtime_code();
        for index in 0..self.count {
            let mut account = json!({"balance": format!("{:#x}", index + 1), "nonce": index % 3});
            if index % PER_HOLDER == 0 {
                account["code"] = json!(code.to_string());
                let slots = (0..SLOTS).map(|slot| (format!("{slot:#x}"), json!(format!("{:#x}", index + slot + 1))));
                account["storage"] = slots.collect::<Map<_, _>>().into();
            }
            write!(out, "\"{:#x}\":{account},", self.address(index))?;
        }
        let built_in = built_in.to_string();
        write!(out, "{}}}", built_in.strip_prefix('{').unwrap_or(&built_in))
    }
}
