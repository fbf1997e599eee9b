//! Examples of numbers that fit the property whose value they are.

use serde_json::{Value, json};

/// The format of numbers that are encoded as strings.
const QUANTITY: &str = "quantity";

/// Replaces the examples of all numbers in a schema. `name` is the property that it describes, or empty.
pub(super) fn fit(schema: &mut Value, name: &str) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| fit(schema, name)),
        Value::Object(object) => {
            if object.get("format").is_some_and(|format| format == QUANTITY)
                && let Some(number) = example(name)
            {
                object.insert("examples".to_owned(), json!([number]));
            }
            for (key, inner) in object {
                match (key.as_str(), inner) {
                    ("properties", Value::Object(properties)) => {
                        properties.iter_mut().for_each(|(name, property)| fit(property, name));
                    }
                    ("items" | "anyOf" | "oneOf", inner) => fit(inner, name),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Returns a plausible value of a number, or `None` if there is none for its property.
fn example(name: &str) -> Option<&'static str> {
    Some(match name {
        "BlockNumber" | "Number" | "OldestBlock" | "CurrentBlock" | "HighestBlock" => "17",
        "Amount" => "32000000000",
        "Balance" | "Value" => "1000000000000000000",
        "BaseFee" | "BaseFeePerGas" | "EffectiveGasPrice" | "GasPrice" | "MaxFeePerGas" => "1000000000",
        "BlobBaseFee" | "BlobGasPrice" | "MaxFeePerBlobGas" => "1",
        "BlobGasUsed" | "ExcessBlobGas" => "131072",
        "BlockCount" => "2",
        "Blocks" | "SnapshotId" | "Status" => "1",
        "Bytes" => "21877",
        "ChainId" => "31337",
        "CumulativeGasUsed" | "EstimatedGas" | "Gas" | "GasUsed" => "21000",
        "Difficulty" | "Failures" | "Index" | "LogIndex" | "Retries" | "StartingBlock" | "TransactionIndex"
        | "UncleCount" | "ValidatorIndex" => "0",
        "GasLimit" => "30000000",
        "HeadAge" | "Interval" => "12",
        "MaxPriorityFeePerGas" | "Reward" => "1000000",
        "MixHash" => "52430291312213846917283246302174183574123874625237415226813243112345678901234",
        "Nonce" | "TransactionCount" => "7",
        "Requests" | "Seconds" => "60",
        "Size" => "643",
        "Timestamp" => "1767225600",
        "TotalDifficulty" => "58750003716598352816469",
        "Type" => "2",
        "V" => "1",
        _ => return None,
    })
}
