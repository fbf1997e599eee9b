//! The properties of a transaction that errors are about.

use node_types::consensus::TransactionBody;

/// A property of a transaction, or of the one that a call simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Authorizations of EIP-7702.
    AuthorizationList,
    BlobVersionedHashes,
    /// Input data, or the initialization code of a contract.
    Data,
    From,
    Gas,
    /// Price per gas of a transaction without fee caps.
    GasPrice,
    /// Fee cap per blob gas.
    MaxFeePerBlobGas,
    /// Fee cap per gas.
    MaxFeePerGas,
    /// Tip cap per gas.
    MaxPriorityFeePerGas,
    Nonce,
    To,
    /// Value in wei.
    Value,
}

impl Property {
    /// Returns the name of the property in the JSON of a transaction. Interfaces may begin it with a capital letter.
    pub fn name(self) -> &'static str {
        match self {
            Self::AuthorizationList => "authorizationList",
            Self::BlobVersionedHashes => "blobVersionedHashes",
            Self::Data => "data",
            Self::From => "from",
            Self::Gas => "gas",
            Self::GasPrice => "gasPrice",
            Self::MaxFeePerBlobGas => "maxFeePerBlobGas",
            Self::MaxFeePerGas => "maxFeePerGas",
            Self::MaxPriorityFeePerGas => "maxPriorityFeePerGas",
            Self::Nonce => "nonce",
            Self::To => "to",
            Self::Value => "value",
        }
    }

    /// Returns the property that limits what a transaction pays per gas.
    pub fn fee_of(body: &TransactionBody) -> Self {
        if has_price(body) { Self::GasPrice } else { Self::MaxFeePerGas }
    }

    /// Returns the property that limits the tip of a transaction.
    pub fn tip_of(body: &TransactionBody) -> Self {
        if has_price(body) { Self::GasPrice } else { Self::MaxPriorityFeePerGas }
    }
}

/// Returns whether a transaction has a gas price rather than fee caps.
fn has_price(body: &TransactionBody) -> bool {
    matches!(body, TransactionBody::Legacy(_) | TransactionBody::AccessList(_))
}
