//! Round trips of responses, and their exact property names.

use super::strategies as any;
use crate::wire::*;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

fn survives<T: Serialize + serde::de::DeserializeOwned + PartialEq + Debug>(response: T) {
    let body = serde_json::to_string(&response).unwrap();
    assert_eq!(serde_json::from_str::<T>(&body).unwrap(), response, "{body}");
    let with_schema = format!("{{\"$schema\":\"https://node.example/schemas/X.json\",{}", &body[1..]);
    assert_eq!(serde_json::from_str::<T>(&with_schema).unwrap(), response, "{with_schema}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn responses_survive_a_round_trip(
        logs in vec(any::log(), 0..4),
        block in proptest::option::of(any::block()),
        transaction in proptest::option::of(any::transaction()),
        receipts in vec(any::receipt(), 0..3),
        proof in any::proof(),
        fees in any::fee_history(),
        data in any::bytes(),
        hash in any::hash(),
        small in any::small(),
        large in any::large(),
    ) {
        if !logs.is_empty() {
            survives(GetFilterChangesOutput { result: FilterChanges::Logs(logs.clone()) });
        }
        survives(GetLogsOutput { logs: logs.clone() });
        survives(GetFilterLogsOutput { logs });
        survives(GetFilterChangesOutput { result: FilterChanges::Hashes(vec![hash; 2]) });
        survives(GetBlockByNumberOutput { block });
        survives(TransactionOutput { transaction });
        survives(GetTransactionReceiptOutput { transaction_receipt: receipts.first().cloned() });
        survives(GetBlockReceiptsOutput { transaction_receipts: receipts });
        survives(proof);
        survives(fees);
        survives(CallOutput { data: data.clone() });
        survives(GetRawTransactionOutput { data: Some(data.clone()) });
        survives(GetRawHeaderOutput { data: Some(data.clone()) });
        survives(GetRawBlockOutput { data: Some(data.clone()) });
        survives(GetCodeOutput { bytecode: data });
        survives(SendRawTransactionOutput { transaction_hash: hash });
        survives(EstimateGasOutput { estimated_gas: small });
        survives(GetStorageAtOutput { value: Word(large.0) });
        survives(GetAccountOutput { balance: large, code_hash: hash, nonce: small, storage_root: hash });
        survives(GetBalanceOutput { balance: large });
        survives(TransactionCountOutput { transaction_count: small });
        survives(UncleCountOutput { uncle_count: small });
        survives(BlockNumberOutput { block_number: small });
        survives(ChainIdOutput { chain_id: small });
        survives(GasPriceOutput { gas_price: large });
        survives(MaxPriorityFeePerGasOutput { max_priority_fee_per_gas: large });
        survives(BlobBaseFeeOutput { base_fee: large });
    }
}

#[test]
fn small_responses_survive_a_round_trip() {
    survives(FilterIdOutput { filter_id: "7".to_owned() });
    survives(UninstallFilterOutput { result: true });
    survives(SyncingOutput { sync_status: Some(SyncStatus::default()) });
    survives(SyncingOutput { sync_status: None });
    survives(ClientVersionOutput { client_version: "node/0.1.0".to_owned() });
    survives(GetTransactionStatusOutput { status: TransactionStatus::Dropped, reason: Some("full".to_owned()) });
    survives(GetTransactionStatusOutput { status: TransactionStatus::Mined, reason: None });
    survives(Problem {
        detail: "wrong".to_owned(),
        errors: vec![ErrorDetail::new("body", "expected object").with_value(&7), ErrorDetail::new("body", "empty")],
        instance: "urn:uuid:0".to_owned(),
        status: 422,
        title: "Unprocessable Entity".to_owned(),
        problem_type: "about:blank".to_owned(),
    });
}

/// The property names of an object in the order of the text.
struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeysVisitor;

        impl<'de> Visitor<'de> for KeysVisitor {
            type Value = Keys;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, IgnoredAny)) = map.next_entry()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }

        deserializer.deserialize_map(KeysVisitor)
    }
}

#[track_caller]
fn has_keys(value: &impl Serialize, expected: &str) {
    let keys: Keys = serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap();
    assert_eq!(keys.0.join(", "), expected);
}

#[test]
fn responses_have_the_documented_properties() {
    has_keys(&GetLogsOutput::default(), "Logs");
    has_keys(&EstimateGasOutput::default(), "EstimatedGas");
    has_keys(&FeeHistoryOutput::default(), "BaseFeePerGas, GasUsedRatio, OldestBlock, Reward");
    has_keys(&CallOutput::default(), "Data");
    has_keys(&GetProofOutput::default(), "AccountProof, Address, Balance, CodeHash, Nonce, StorageHash, StorageProof");
    has_keys(&GetStorageAtOutput::default(), "Value");
    has_keys(&SendRawTransactionOutput::default(), "TransactionHash");
    has_keys(&FilterIdOutput::default(), "FilterId");
    has_keys(&GetBlockByNumberOutput::default(), "Block");
    has_keys(
        &Log::default(),
        "Address, BlockHash, BlockNumber, Data, LogIndex, Removed, Topics, TransactionHash, TransactionIndex",
    );
    has_keys(&StorageEntry::default(), "Key, Proof, Value");
    has_keys(
        &Block::default(),
        "BaseFeePerGas, Difficulty, ExtraData, GasLimit, GasUsed, Hash, LogsBloom, Miner, MixHash, Nonce, Number, \
         ParentHash, ReceiptsRoot, Sha3Uncles, Size, StateRoot, Timestamp, TotalDifficulty, Transactions, \
         TransactionsRoot, Uncles, Withdrawals, WithdrawalsRoot",
    );
    has_keys(
        &Transaction::default(),
        "AccessList, BlockHash, BlockNumber, ChainId, From, Gas, GasPrice, Hash, Input, MaxFeePerGas, \
         MaxPriorityFeePerGas, Nonce, R, S, To, TransactionIndex, Type, V, Value",
    );
    has_keys(&AccessListItem::default(), "Address, StorageKeys");
    has_keys(&Withdrawal::default(), "Address, Amount, Index, ValidatorIndex");
    has_keys(
        &TransactionReceipt::default(),
        "BlockHash, BlockNumber, ContractAddress, CumulativeGasUsed, EffectiveGasPrice, From, GasUsed, Logs, \
         LogsBloom, Status, To, TransactionHash, TransactionIndex, Type",
    );
    has_keys(&GetFilterChangesOutput { result: FilterChanges::Hashes(vec![]) }, "Result");
    has_keys(&GetFilterLogsOutput::default(), "Logs");
    has_keys(&UninstallFilterOutput::default(), "Result");
    has_keys(&TransactionOutput::default(), "Transaction");
    has_keys(&GetTransactionReceiptOutput::default(), "TransactionReceipt");
    has_keys(&GetRawTransactionOutput::default(), "Data");
    has_keys(&GetRawHeaderOutput::default(), "Data");
    has_keys(&GetRawBlockOutput::default(), "Data");
    has_keys(&GetTransactionStatusOutput { status: TransactionStatus::Unknown, reason: None }, "Status");
    let dropped = GetTransactionStatusOutput { status: TransactionStatus::Dropped, reason: Some("full".to_owned()) };
    has_keys(&dropped, "Status, Reason");
    has_keys(&GetBlockReceiptsOutput::default(), "TransactionReceipts");
    has_keys(&TransactionCountOutput::default(), "TransactionCount");
    has_keys(&UncleCountOutput::default(), "UncleCount");
    has_keys(&BlockNumberOutput::default(), "BlockNumber");
    has_keys(&ChainIdOutput::default(), "ChainId");
    has_keys(&GasPriceOutput::default(), "GasPrice");
    has_keys(&MaxPriorityFeePerGasOutput::default(), "MaxPriorityFeePerGas");
    has_keys(&BlobBaseFeeOutput::default(), "BaseFee");
    has_keys(&GetAccountOutput::default(), "Balance, CodeHash, Nonce, StorageRoot");
    has_keys(&GetBalanceOutput::default(), "Balance");
    has_keys(&GetCodeOutput::default(), "Bytecode");
    has_keys(&SyncingOutput::default(), "SyncStatus");
    has_keys(&ClientVersionOutput::default(), "ClientVersion");
}

#[test]
fn transaction_hashes_of_a_block_are_objects() {
    let transactions = BlockTransactions::Hashes(vec![Default::default()]);
    let json = serde_json::to_string(&transactions).unwrap();
    assert_eq!(json, format!("[{{\"Hash\":\"0x{}\"}}]", "0".repeat(64)));
}
