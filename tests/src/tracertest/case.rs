//! One vector.

use super::view::AnyNumber;
use node_chain::Genesis;
use node_chain::genesis::GenesisAccount;
use node_core::backend::{MemoryBackend, StateBackend};
use node_core::block::RecoveredTransaction;
use node_core::context::Context;
use node_core::crypto::SenderRecovery;
use node_core::executor::{Executor, Tracing};
use node_core::protocol::{Activation, BlobEntry, BlobParams, ChainSpec, Fork, UPGRADES, fees};
use node_evm::{EvmExecutor, Secp256k1Recovery};
use node_types::buffer::JsonBuffer;
use node_types::consensus::{Header, Transaction};
use node_types::{Address, Bytes, H256, U256};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A vector. Properties that the runner does not need are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Vector {
    genesis: Parent,
    context: Block,
    /// The signed transaction.
    input: Data,
    tracer_config: Option<Value>,
    pub(super) result: Value,
}

/// The parent block: its state, and what the next block inherits.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parent {
    alloc: BTreeMap<Word, Account>,
    /// The activation of forks. As in geth, the keys may be in any case.
    #[serde(default)]
    config: Map<String, Value>,
    mix_hash: Option<Word>,
    excess_blob_gas: Option<Number>,
    blob_gas_used: Option<Number>,
    base_fee_per_gas: Option<Number>,
}

/// The block of the transaction.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block {
    number: Number,
    difficulty: Number,
    timestamp: Number,
    gas_limit: Number,
    miner: Word,
    base_fee_per_gas: Option<Number>,
}

#[derive(Deserialize)]
struct Account {
    #[serde(default)]
    balance: Number,
    #[serde(default)]
    nonce: Number,
    #[serde(default)]
    code: Data,
    #[serde(default)]
    storage: BTreeMap<Word, Word>,
}

/// A decimal or hex string, or a JSON number.
#[derive(Clone, Copy, Default)]
struct Number(U256);

/// Up to 32 bytes as a hex string, filled up from the left.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Word(H256);

/// A byte string; the `0x` may be missing.
#[derive(Default)]
struct Data(Bytes);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        number(&text).map(Self).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &"a number"))
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.trim_start_matches("0x");
        let word = U256::from_str_radix(if digits.is_empty() { "0" } else { digits }, 16);
        Ok(Self(H256(word.map_err(D::Error::custom)?.to_big_endian())))
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self(const_hex::decode(text).map_err(D::Error::custom)?.into()))
    }
}

fn number(text: &str) -> Option<U256> {
    match text.strip_prefix("0x") {
        Some("") => Some(U256::zero()),
        Some(digits) => U256::from_str_radix(digits, 16).ok(),
        None => U256::from_dec_str(text).ok(),
    }
}

impl Account {
    fn to_genesis(&self) -> GenesisAccount {
        let slot = |(slot, value): (&Word, &Word)| (slot.0, U256::from_big_endian(value.0.as_bytes()));
        GenesisAccount {
            balance: self.balance.0,
            nonce: self.nonce.0.low_u64(),
            code: self.code.0.clone(),
            storage: self.storage.iter().map(slot).collect(),
        }
    }
}

impl Vector {
    /// Executes the transaction with a tracer of geth, and returns the trace.
    pub(super) fn trace(&self, tracer: &str) -> Result<Value, String> {
        let spec = Arc::new(self.spec());
        let alloc =
            self.genesis.alloc.iter().map(|(address, account)| (Address::from(address.0), account.to_genesis()));
        let genesis =
            Genesis { spec: (*spec).clone(), header: Header::default(), alloc: alloc.collect(), state_root: None };
        let backend = MemoryBackend::new(genesis.block()).map_err(|error| error.to_string())?;
        let view = AnyNumber(backend.view().map_err(|error| error.to_string())?);

        let transaction = Transaction::decode(&self.input.0).map_err(|error| error.to_string())?;
        let sender = Secp256k1Recovery.sender(&transaction).map_err(|error| error.to_string())?;
        let transaction = RecoveredTransaction { hash: transaction.hash(), transaction, sender };

        let config = self.tracer_config.clone().unwrap_or(Value::Null);
        let options: Box<RawValue> =
            to_raw_value(&json!({ "tracer": tracer, "tracerConfig": config })).map_err(|error| error.to_string())?;
        let tracing = Tracing { tracer: Some(options.into()), max_bytes: u64::MAX };
        let (executor, context, header) =
            (EvmExecutor::new(Arc::clone(&spec)), Context::unbounded(), self.header(&spec));
        let block = executor.begin_block(&context, &view, &header).map_err(|error| error.to_string());
        let mut out = JsonBuffer::default();
        block?.trace(&transaction, &tracing, &mut out).map_err(|error| error.to_string())?;
        serde_json::from_slice(&out).map_err(|error| error.to_string())
    }

    fn header(&self, spec: &ChainSpec) -> Header {
        let Self { genesis, context, .. } = self;
        let low = |number: &Number| number.0.low_u64();
        let mut header = Header {
            number: low(&context.number),
            difficulty: context.difficulty.0,
            timestamp: low(&context.timestamp),
            gas_limit: low(&context.gas_limit),
            beneficiary: Address::from(context.miner.0),
            mix_hash: genesis.mix_hash.unwrap_or_default().0,
            ..Header::default()
        };
        let fork = spec.fork(&header);
        if fork >= Fork::London {
            header.base_fee_per_gas = context.base_fee_per_gas.as_ref().map(low);
        }
        if fork >= Fork::Cancun {
            let parent = Header {
                excess_blob_gas: genesis.excess_blob_gas.as_ref().map(low),
                blob_gas_used: genesis.blob_gas_used.as_ref().map(low),
                base_fee_per_gas: genesis.base_fee_per_gas.as_ref().map(low),
                ..Header::default()
            };
            header.excess_blob_gas = fees::next_excess_blob_gas(spec, &parent, header.timestamp);
            header.parent_beacon_block_root = Some(H256::zero());
        }
        header
    }

    fn spec(&self) -> ChainSpec {
        let config = |key: &str| {
            let found = self.genesis.config.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
            found.and_then(|(_, value)| number(&value.to_string())).map(|number| number.low_u64())
        };
        let mut spec = ChainSpec { chain_id: config("chainId").unwrap_or(1), ..ChainSpec::default() };
        for upgrade in UPGRADES {
            match upgrade.activation {
                Activation::Genesis => {}
                Activation::Block { key, .. } => {
                    spec.block_forks.extend(config(key).map(|number| (upgrade.fork, number)));
                }
                Activation::TotalDifficulty { key } => {
                    spec.terminal_total_difficulty = config(key).map(U256::from);
                }
                Activation::Time { key } | Activation::BlobTime { key } => {
                    let Some(time) = config(key) else { continue };
                    if matches!(upgrade.activation, Activation::Time { .. }) {
                        spec.time_forks.push((upgrade.fork, time));
                    }
                    let params = self.blob_params(upgrade.name).or(upgrade.blob_params);
                    spec.blob_schedule.extend(params.map(|params| BlobEntry { upgrade: upgrade.name, params, time }));
                }
            }
        }
        // Some vectors activate a fork before an earlier one, whose rules it includes here.
        let mut next = u64::MAX;
        for (_, number) in spec.block_forks.iter_mut().rev() {
            next = next.min(*number);
            *number = next;
        }
        spec
    }

    fn blob_params(&self, upgrade: &str) -> Option<BlobParams> {
        let entry = self.genesis.config.get("blobSchedule")?.get(upgrade)?;
        let field = |name: &str| entry.get(name)?.as_u64();
        Some(BlobParams {
            target: field("target")?,
            max: field("max")?,
            base_fee_update_fraction: field("baseFeeUpdateFraction")?,
        })
    }
}
