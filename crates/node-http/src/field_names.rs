//! Names of the fields of requests in the REST interface.

use node_core::node::{Field, Property};
use std::borrow::Cow;

/// Returns the name of a field; empty for the request as a whole. In bodies it is the path of a property, such as
/// `Transaction.From` or `Topics[1]`; `in_query` returns the name of the query parameter.
pub(crate) fn name(field: Field, in_query: bool) -> Cow<'static, str> {
    match field {
        Field::Request => "".into(),
        Field::Address => "Address".into(),
        Field::BaseFee => "BaseFee".into(),
        Field::BlobVersionedHash(index) => format!("Transaction.BlobVersionedHashes[{index}]").into(),
        Field::BlockCount => "BlockCount".into(),
        Field::BlockHash => "BlockHash".into(),
        Field::BlockNumber => "BlockNumber".into(),
        Field::Blocks => "Blocks".into(),
        Field::Cursor => "cursor".into(),
        Field::ExtraData => "ExtraData".into(),
        Field::FilterId => "FilterId".into(),
        Field::FromBlock => "FromBlock".into(),
        Field::Hash => "Hash".into(),
        Field::Interval => "Interval".into(),
        Field::LastEventId => "LastEventId".into(),
        Field::NewestBlock => "NewestBlock".into(),
        Field::ParentHash => "ParentHash".into(),
        Field::RewardPercentile(index) => format!("RewardPercentiles[{index}]").into(),
        Field::RewardPercentiles => "RewardPercentiles".into(),
        Field::Seconds => "Seconds".into(),
        Field::SnapshotId => "SnapshotId".into(),
        Field::StorageKeys => "StorageKeys".into(),
        Field::Timestamp => "Timestamp".into(),
        Field::ToBlock => "ToBlock".into(),
        Field::Topic(position) if in_query => format!("Topic{position}").into(),
        Field::Topic(position) => format!("Topics[{position}]").into(),
        Field::Topics => "Topics".into(),
        Field::Transaction => "Transaction".into(),
        Field::Property(property) => property_of_transaction(property).into(),
        Field::TransactionAt(index) => format!("Transactions[{index}]").into(),
        Field::TransactionIndex => "TxIndex".into(),
        Field::Withdrawals => "Withdrawals".into(),
    }
}

fn property_of_transaction(property: Property) -> &'static str {
    match property {
        Property::AuthorizationList => "Transaction.AuthorizationList",
        Property::BlobVersionedHashes => "Transaction.BlobVersionedHashes",
        Property::Data => "Transaction.Data",
        Property::From => "Transaction.From",
        Property::Gas => "Transaction.Gas",
        Property::GasPrice => "Transaction.GasPrice",
        Property::MaxFeePerBlobGas => "Transaction.MaxFeePerBlobGas",
        Property::MaxFeePerGas => "Transaction.MaxFeePerGas",
        Property::MaxPriorityFeePerGas => "Transaction.MaxPriorityFeePerGas",
        Property::Nonce => "Transaction.Nonce",
        Property::To => "Transaction.To",
        Property::Value => "Transaction.Value",
    }
}
