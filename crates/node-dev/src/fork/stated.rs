//! The rules that a server of the other chain states (EIP-7910).

use crate::Hardfork;
use node_chain::Genesis;
use node_core::block::SealedHeader;
use node_core::context::Context;
use node_core::executor::{Executor, NamedContract};
use node_core::protocol::fork_id::fork_id;
use node_core::protocol::{Activation, BlobEntry, BlobParams, ChainSpec, Fork, UPGRADES};
use node_core::sources::Sources;
use node_evm::EvmExecutor;
use node_types::consensus::Header;
use node_types::wire::{AddressData, Data};
use node_types::{Address, BlockId, U256};
use node_upstream::{HashedHeader, Upstream};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;

/// The name of the deposit contract, which networks choose.
const DEPOSIT_CONTRACT: &str = "DEPOSIT_CONTRACT_ADDRESS";

/// The result of eth_config.
#[derive(Deserialize)]
struct Configs {
    current: Config,
    next: Option<Config>,
    last: Option<Config>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    /// Unix seconds.
    activation_time: Option<u64>,
    blob_schedule: Option<BlobSchedule>,
    fork_id: Data<node_types::Bytes>,
    precompiles: BTreeMap<String, AddressData>,
    system_contracts: BTreeMap<String, AddressData>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlobSchedule {
    target: u64,
    max: u64,
    base_fee_update_fraction: u64,
}

/// Returns the rules that a server states, or `None` if it does not state them, or none that are known here. They are its
/// word, as nothing proves them; the chain id is not set. The times of forks before the current one are not stated, so those
/// count as active from the first block on.
pub(super) fn rules(upstream: &Upstream, context: &Context) -> Option<ChainSpec> {
    let params = RawValue::from_string("[]".to_owned()).ok()?;
    // At the same time.
    let (stated, genesis) = thread::scope(|scope| {
        let genesis = scope.spawn(|| upstream.header(context, BlockId::number(0)));
        (upstream.forward(context, "eth_config", &params), genesis.join())
    });
    let stated =
        stated.inspect_err(|error| tracing::debug!(error = %Sources(error), "the server states no rules")).ok()?;
    let configs: Configs = serde_json::from_str(stated.get()).ok()?;
    let Some(spec) = configs.spec() else {
        tracing::warn!(
            "the rules of the other chain are not known here, so those of the newest hardfork are used (`hardfork`)"
        );
        return None;
    };
    let confirmed = matches!(genesis, Ok(Ok(genesis)) if configs.confirm(&spec, &genesis));
    let newest = spec.time_forks.last().map(|(fork, _)| *fork);
    tracing::info!(fork = ?newest, confirmed, "the server of the other chain states its rules");
    Some(spec)
}

impl Configs {
    fn spec(&self) -> Option<ChainSpec> {
        let mut spec = self.current.first_spec()?;
        for config in self.next.iter().chain(&self.last) {
            // The last one may be the next one.
            if config.activation_time > self.current.activation_time {
                config.extend(&mut spec)?;
            }
        }
        // It will be written as a genesis file, which must not be an invalid one.
        let genesis = Genesis { spec, header: Header::default(), alloc: BTreeMap::new(), state_root: None };
        Genesis::parse(&genesis.to_json()).ok().map(|genesis| genesis.spec)
    }

    /// Returns whether these rules on the chain with this genesis block have the stated identifier (EIP-2124). They cannot
    /// if earlier forks came after the genesis block.
    fn confirm(&self, spec: &ChainSpec, genesis: &HashedHeader) -> bool {
        let (header, hash) = (genesis.header().clone(), genesis.hash());
        let genesis = SealedHeader { hash, header, total_difficulty: U256::zero(), size: 0 };
        let id = fork_id(spec, &genesis, u64::MAX, self.current.activation_time.unwrap_or_default());
        *self.current.fork_id.0 == id
    }
}

impl Config {
    fn blob_params(&self) -> Option<BlobParams> {
        let BlobSchedule { target, max, base_fee_update_fraction } = self.blob_schedule?;
        Some(BlobParams { target, max, base_fee_update_fraction })
    }

    fn deposit_contract(&self) -> Option<Address> {
        self.system_contracts.get(DEPOSIT_CONTRACT).map(|address| address.0)
    }

    /// Returns the fork with these contracts, `None` if it is an unknown one, or one from before Cancun: those have the
    /// contracts of others.
    fn fork(&self) -> Option<Fork> {
        let spec = ChainSpec { deposit_contract: self.deposit_contract(), ..ChainSpec::default() };
        let executor = EvmExecutor::new(Arc::new(spec));
        let addresses = |stated: &BTreeMap<String, AddressData>| -> BTreeSet<Address> {
            stated.values().map(|address| address.0).collect()
        };
        let known = |contracts: Vec<NamedContract>| -> BTreeSet<Address> {
            contracts.into_iter().map(|contract| contract.address).collect()
        };
        let (precompiles, system) = (addresses(&self.precompiles), addresses(&self.system_contracts));
        UPGRADES.iter().rev().map(|upgrade| upgrade.fork).take_while(|fork| *fork >= Fork::Cancun).find(|fork| {
            let contracts = executor.contracts(*fork);
            known(contracts.precompiles) == precompiles && known(contracts.system) == system
        })
    }

    /// Returns the rules with this as the newest upgrade.
    fn first_spec(&self) -> Option<ChainSpec> {
        let (fork, params, time) = (self.fork()?, self.blob_params()?, self.activation_time.unwrap_or_default());
        let has_params = |hardfork: &Hardfork| hardfork.spec().blob_params(0) == Some(params);
        let mut all = Hardfork::all().filter(|hardfork| hardfork.fork() == fork);
        let mut spec = match all.clone().find(has_params) {
            Some(exact) => exact.spec(),
            None => all.next()?.spec(),
        };
        let entry = spec.blob_schedule.last_mut()?;
        entry.time = time;
        let is_of_blobs =
            |upgrade: &str| UPGRADES.iter().any(|known| known.name == upgrade && known.activation.is_of_blobs());
        if !is_of_blobs(entry.upgrade) {
            entry.params = params;
            spec.time_forks.last_mut()?.1 = time;
        }
        spec.deposit_contract = self.deposit_contract().or(spec.deposit_contract);
        Some(spec)
    }

    /// Adds this as a later upgrade to rules. Returns `None` if it is none.
    fn extend(&self, spec: &mut ChainSpec) -> Option<()> {
        let (fork, params, time) = (self.fork()?, self.blob_params()?, self.activation_time?);
        let newest = spec.time_forks.last()?.0;
        let forks = UPGRADES.iter().filter(|upgrade| matches!(upgrade.activation, Activation::Time { .. }));
        for upgrade in forks.filter(|upgrade| upgrade.fork > newest && upgrade.fork <= fork) {
            spec.time_forks.push((upgrade.fork, time));
            spec.blob_schedule.push(BlobEntry { upgrade: upgrade.name, params, time });
        }
        let last = spec.blob_schedule.last()?;
        if last.params != params {
            let is_last = |name: &str| last.upgrade == name;
            let later = UPGRADES.iter().skip_while(|upgrade| !is_last(upgrade.name)).skip(1);
            let mut later = later.filter(|upgrade| upgrade.fork == fork && upgrade.activation.is_of_blobs());
            let same = later.clone().find(|upgrade| upgrade.blob_params == Some(params));
            let upgrade = same.or_else(|| later.next())?.name;
            spec.blob_schedule.push(BlobEntry { upgrade, params, time });
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The configuration that a chain with the rules of this hardfork states.
    fn stated(hardfork: &str, time: u64) -> Value {
        let hardfork: Hardfork = hardfork.parse().unwrap();
        let spec = hardfork.spec();
        let contracts = EvmExecutor::new(Arc::new(spec.clone())).contracts(hardfork.fork());
        let named = |contracts: Vec<NamedContract>| -> Value {
            contracts
                .into_iter()
                .map(|NamedContract { name, address }| (name.to_owned(), json!(format!("{address:#x}"))))
                .collect()
        };
        let BlobParams { target, max, base_fee_update_fraction } = spec.blob_params(0).unwrap();
        json!({
            "activationTime": time, "chainId": "0x7", "forkId": "0x01020304",
            "blobSchedule": {"target": target, "max": max, "baseFeeUpdateFraction": base_fee_update_fraction},
            "precompiles": named(contracts.precompiles), "systemContracts": named(contracts.system),
        })
    }

    fn spec(current: Value, next: Value, last: Value) -> Option<ChainSpec> {
        let configs: Configs = serde_json::from_value(json!({"current": current, "next": next, "last": last})).unwrap();
        configs.spec()
    }

    #[test]
    fn a_chain_with_one_hardfork_has_its_rules() {
        for name in ["cancun", "prague", "osaka", "bpo1", "bpo2"] {
            let expected = name.parse::<Hardfork>().unwrap().spec();
            assert_eq!(spec(stated(name, 0), Value::Null, Value::Null), Some(expected), "{name}");
        }
    }

    #[test]
    fn scheduled_forks_follow() {
        let next = stated("osaka", 2_000);
        let spec = spec(stated("prague", 1_000), next, stated("bpo2", 3_000)).unwrap();
        assert_eq!(spec.time_forks[1..], [(Fork::Cancun, 0), (Fork::Prague, 1_000), (Fork::Osaka, 2_000)]);
        let blobs: Vec<_> = spec.blob_schedule.iter().map(|entry| (entry.upgrade, entry.time)).collect();
        assert_eq!(blobs, [("cancun", 0), ("prague", 1_000), ("osaka", 2_000), ("bpo2", 3_000)]);
        assert_eq!(spec.blob_params(2_999), Some(BlobParams::PRAGUE));
        assert_eq!(spec.blob_params(3_000), Some(BlobParams::BPO2));
    }

    #[test]
    fn blob_parameters_and_deposit_contracts_are_those_of_the_network() {
        let mut current = stated("osaka", 500);
        current["blobSchedule"] = json!({"target": 20, "max": 30, "baseFeeUpdateFraction": 20_000_000});
        let contract = Address::repeat_byte(0xdd);
        current["systemContracts"][DEPOSIT_CONTRACT] = json!(format!("{contract:#x}"));
        let spec = spec(current, Value::Null, Value::Null).unwrap();
        let params = BlobParams { target: 20, max: 30, base_fee_update_fraction: 20_000_000 };
        assert_eq!((spec.blob_params(500), spec.deposit_contract), (Some(params), Some(contract)));
    }

    #[test]
    fn other_rules_are_not_guessed() {
        let mut unknown = stated("osaka", 0);
        unknown["precompiles"]["NEW"] = json!(format!("{:#x}", Address::from_low_u64_be(0x1234)));
        assert_eq!(spec(unknown.clone(), Value::Null, Value::Null), None);
        unknown["activationTime"] = json!(9);
        assert_eq!(spec(stated("osaka", 0), unknown.clone(), unknown), None);
        let mut without_blobs = stated("cancun", 0);
        without_blobs["blobSchedule"] = Value::Null;
        assert_eq!(spec(without_blobs, Value::Null, Value::Null), None);
    }
}
