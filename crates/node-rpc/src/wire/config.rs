//! The active fork rules, which data the node stores, and the progress of an import.

use super::Hex;
use node_core::executor::NamedContract;
use node_core::node::{self, ImportProgress};
use node_types::wire::{AddressData, Data, HashData};
use serde::Serialize;
use std::collections::BTreeMap;

/// The current, the next and the last scheduled fork rules (EIP-7910).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ForkConfigs {
    current: ForkConfig,
    next: Option<ForkConfig>,
    last: Option<ForkConfig>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ForkConfig {
    activation_time: u64,
    blob_schedule: Option<BlobSchedule>,
    chain_id: Hex<u64>,
    fork_id: String,
    precompiles: BTreeMap<&'static str, AddressData>,
    system_contracts: BTreeMap<&'static str, AddressData>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BlobSchedule {
    target: u64,
    max: u64,
    base_fee_update_fraction: u64,
}

/// For each kind of data, the first block for which it is kept.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Capabilities {
    head: Head,
    state: Kept,
    tx: Kept,
    logs: Kept,
    receipts: Kept,
    blocks: Kept,
    stateproofs: Kept,
}

#[derive(Clone, Debug, Serialize)]
struct Head {
    number: Hex<u64>,
    hash: HashData,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    disabled: bool,
    oldest_block: Hex<u64>,
}

impl From<node::ForkConfigs> for ForkConfigs {
    fn from(configs: node::ForkConfigs) -> Self {
        Self {
            current: configs.current.into(),
            next: configs.next.map(ForkConfig::from),
            last: configs.last.map(ForkConfig::from),
        }
    }
}

impl From<node::ForkConfig> for ForkConfig {
    fn from(config: node::ForkConfig) -> Self {
        let named = |contracts: Vec<NamedContract>| {
            contracts.into_iter().map(|contract| (contract.name, Data(contract.address))).collect()
        };
        Self {
            activation_time: config.activation_time.unwrap_or(0),
            blob_schedule: config.blob_params.map(|params| BlobSchedule {
                target: params.target,
                max: params.max,
                base_fee_update_fraction: params.base_fee_update_fraction,
            }),
            chain_id: Hex(config.chain_id),
            fork_id: format!("{:#010x}", u32::from_be_bytes(config.fork_id)),
            precompiles: named(config.precompiles),
            system_contracts: named(config.system_contracts),
        }
    }
}

impl From<node::Capabilities> for Capabilities {
    fn from(capabilities: node::Capabilities) -> Self {
        let since = |block| Kept { disabled: false, oldest_block: Hex(block) };
        let (always, states) = (since(0), since(capabilities.earliest_state));
        Self {
            head: Head { number: Hex(capabilities.head.number), hash: Data(capabilities.head.hash) },
            state: states,
            tx: always,
            logs: always,
            receipts: always,
            blocks: always,
            stateproofs: states,
        }
    }
}

/// The progress of an import, or false.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Syncing {
    /// The chain is being imported.
    #[serde(rename_all = "camelCase")]
    Importing { starting_block: Hex<u64>, current_block: Hex<u64>, highest_block: Hex<u64> },
    /// The chain is not being imported; always false.
    Not(bool),
}

impl From<Option<ImportProgress>> for Syncing {
    fn from(progress: Option<ImportProgress>) -> Self {
        match progress {
            Some(ImportProgress { starting_block, current_block, highest_block, .. }) => Self::Importing {
                starting_block: Hex(starting_block),
                current_block: Hex(current_block),
                highest_block: Hex(highest_block),
            },
            None => Self::Not(false),
        }
    }
}
