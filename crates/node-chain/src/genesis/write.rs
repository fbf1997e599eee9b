//! Writing a genesis as geth's JSON.

use super::{Genesis, GenesisAccount};
use node_core::protocol::{Activation, BlobEntry, ChainSpec, Fork, UPGRADES};
use serde_json::{Map, Value, json};

/// Returns the JSON of a file from which [`Genesis::parse`] produces the same genesis.
pub(super) fn to_json(genesis: &Genesis) -> Value {
    let header = &genesis.header;
    let mut file = Map::new();
    let mut put = |key: &str, value: Value| file.insert(key.to_owned(), value);
    put("config", config(&genesis.spec));
    put("nonce", json!(format!("{:#x}", u64::from_be_bytes(header.nonce))));
    put("timestamp", hex(header.timestamp));
    put("extraData", json!(header.extra_data.to_string()));
    put("gasLimit", hex(header.gas_limit));
    put("gasUsed", hex(header.gas_used));
    put("difficulty", json!(format!("{:#x}", header.difficulty)));
    put("mixHash", json!(format!("{:#x}", header.mix_hash)));
    put("coinbase", json!(format!("{:#x}", header.beneficiary)));
    put("number", hex(header.number));
    put("parentHash", json!(format!("{:#x}", header.parent_hash)));
    let optional = [
        ("baseFeePerGas", header.base_fee_per_gas),
        ("blobGasUsed", header.blob_gas_used),
        ("excessBlobGas", header.excess_blob_gas),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            put(key, hex(value));
        }
    }
    if let Some(root) = header.parent_beacon_block_root {
        put("parentBeaconBlockRoot", json!(format!("{root:#x}")));
    }
    match genesis.state_root {
        Some(root) => put("stateRoot", json!(format!("{root:#x}"))),
        None => {
            let alloc = genesis.alloc.iter().map(|(address, value)| (format!("{address:#x}"), account(value)));
            put("alloc", alloc.collect::<Map<_, _>>().into())
        }
    };
    file.into()
}

fn hex(number: u64) -> Value {
    json!(format!("{number:#x}"))
}

fn account(account: &GenesisAccount) -> Value {
    let mut value = Map::new();
    value.insert("balance".to_owned(), json!(format!("{:#x}", account.balance)));
    if account.nonce != 0 {
        value.insert("nonce".to_owned(), hex(account.nonce));
    }
    if !account.code.is_empty() {
        value.insert("code".to_owned(), json!(account.code.to_string()));
    }
    if !account.storage.is_empty() {
        let word = |word: &_| json!(format!("{word:#066x}"));
        let slots = account.storage.iter().map(|(slot, value)| (format!("{slot:#x}"), word(value)));
        value.insert("storage".to_owned(), slots.collect::<Map<_, _>>().into());
    }
    value.into()
}

fn config(spec: &ChainSpec) -> Value {
    let mut config = Map::new();
    let mut put = |key: &str, value: Value| config.insert(key.to_owned(), value);
    put("chainId", json!(spec.chain_id));
    for (fork, at) in spec.block_forks.iter().chain(&spec.time_forks) {
        if let Some(key) = fork.upgrade().activation.key() {
            put(key, json!(at));
        }
        if *fork == Fork::SpuriousDragon {
            put("eip155Block", json!(at));
        }
    }
    if let Some(dao) = spec.dao_fork {
        put("daoForkBlock", json!(dao.block));
        put("daoForkSupport", json!(dao.supported));
    }
    if let Some(block) = spec.merge_netsplit {
        put("mergeNetsplitBlock", json!(block));
    }
    if let Some(difficulty) = spec.terminal_total_difficulty {
        put("terminalTotalDifficulty", json!(difficulty.to_string()));
    }
    if let Some(contract) = spec.deposit_contract {
        put("depositContractAddress", json!(format!("{contract:#x}")));
    }
    let mut blob_schedule = Map::new();
    for BlobEntry { upgrade, params, time } in &spec.blob_schedule {
        let known = UPGRADES.iter().find(|known| known.name == *upgrade);
        if let Some(Activation::BlobTime { key }) = known.map(|known| known.activation) {
            put(key, json!(time));
        }
        let params = json!({
            "target": params.target, "max": params.max, "baseFeeUpdateFraction": params.base_fee_update_fraction,
        });
        blob_schedule.insert((*upgrade).to_owned(), params);
    }
    if !blob_schedule.is_empty() {
        put("blobSchedule", blob_schedule.into());
    }
    let relaxed = spec.relaxations;
    if !relaxed.is_empty() {
        let mut relaxations = Map::new();
        if let Some(limit) = relaxed.code_size_limit {
            relaxations.insert("codeSizeLimit".to_owned(), json!(limit));
        }
        relaxations.insert("noTransactionGasCap".to_owned(), json!(relaxed.no_transaction_gas_cap));
        relaxations.insert("equalTimestamps".to_owned(), json!(relaxed.equal_timestamps));
        relaxations.insert("constantZeroBaseFee".to_owned(), json!(relaxed.constant_zero_base_fee));
        put("relaxations", relaxations.into());
    }
    config.into()
}
