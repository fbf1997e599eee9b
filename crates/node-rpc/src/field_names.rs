//! Names of the parameters of JSON-RPC methods.

use node_core::node::{Field, Property};
use std::borrow::Cow;

/// Returns the name of the parameter that contains `field`, or `None` if it is the request or the transaction as a
/// whole.
pub(crate) fn parameter(field: Field) -> Option<Cow<'static, str>> {
    Some(match field {
        Field::Request | Field::Transaction => return None,
        Field::Address => "address".into(),
        Field::BaseFee => "baseFee".into(),
        Field::BlobVersionedHash(index) => format!("transaction.blobVersionedHashes[{index}]").into(),
        Field::BlockCount => "blockCount".into(),
        Field::BlockHash => "blockHash".into(),
        Field::BlockNumber => "blockNumber".into(),
        Field::Blocks => "blocks".into(),
        Field::Cursor => "cursor".into(),
        Field::ExtraData => "extraData".into(),
        Field::FilterId => "filterId".into(),
        Field::FromBlock => "fromBlock".into(),
        Field::Hash => "hash".into(),
        Field::Interval => "interval".into(),
        Field::LastEventId => "lastEventId".into(),
        Field::NewestBlock => "newestBlock".into(),
        Field::ParentHash => "parentHash".into(),
        Field::RewardPercentile(index) => format!("rewardPercentiles[{index}]").into(),
        Field::RewardPercentiles => "rewardPercentiles".into(),
        Field::Seconds => "seconds".into(),
        Field::SnapshotId => "snapshotId".into(),
        Field::StorageKeys => "storageKeys".into(),
        Field::Timestamp => "timestamp".into(),
        Field::ToBlock => "toBlock".into(),
        Field::Topic(position) => format!("topics[{position}]").into(),
        Field::Topics => "topics".into(),
        Field::Property(property) => format!("transaction.{}", property_of_transaction(property)).into(),
        Field::TransactionAt(index) => format!("transactions[{index}]").into(),
        Field::TransactionIndex => "txIndex".into(),
        Field::Withdrawals => "withdrawals".into(),
    })
}

fn property_of_transaction(property: Property) -> &'static str {
    match property {
        Property::AuthorizationList => "authorizationList",
        Property::BlobVersionedHashes => "blobVersionedHashes",
        Property::Data => "data",
        Property::From => "from",
        Property::Gas => "gas",
        Property::GasPrice => "gasPrice",
        Property::MaxFeePerBlobGas => "maxFeePerBlobGas",
        Property::MaxFeePerGas => "maxFeePerGas",
        Property::MaxPriorityFeePerGas => "maxPriorityFeePerGas",
        Property::Nonce => "nonce",
        Property::To => "to",
        Property::Value => "value",
    }
}
