//! The chain, its accounts, and this node.

use super::{BytesData, HashData, Quantity64, Quantity256};
use serde::{Deserialize, Serialize};

/// The response of blockNumber.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_blockNumber))]
#[serde(rename_all = "PascalCase")]
pub struct BlockNumberOutput {
    /// Number of the head.
    pub block_number: Quantity64,
}

/// The response of chainId.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_chainId))]
#[serde(rename_all = "PascalCase")]
pub struct ChainIdOutput {
    /// The chain's identifier (EIP-155).
    pub chain_id: Quantity64,
}

/// The response of gasPrice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_gasPrice))]
#[serde(rename_all = "PascalCase")]
pub struct GasPriceOutput {
    /// A price in wei per gas with which a transaction should be included soon.
    pub gas_price: Quantity256,
}

/// The response of maxPriorityFeePerGas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_maxPriorityFeePerGas))]
#[serde(rename_all = "PascalCase")]
pub struct MaxPriorityFeePerGasOutput {
    /// A tip in wei per gas with which a transaction should be included soon.
    pub max_priority_fee_per_gas: Quantity256,
}

/// The response of blobBaseFee.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_blobBaseFee))]
#[serde(rename_all = "PascalCase")]
pub struct BlobBaseFeeOutput {
    /// Price in wei per blob gas in the next block (EIP-4844).
    pub base_fee: Quantity256,
}

/// The response of getAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getAccount))]
#[serde(rename_all = "PascalCase")]
pub struct GetAccountOutput {
    /// Balance in wei.
    pub balance: Quantity256,
    /// Keccak-256 of the code.
    pub code_hash: HashData,
    /// Nonce.
    pub nonce: Quantity64,
    /// Root of the storage trie.
    pub storage_root: HashData,
}

/// The response of getBalance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getBalance))]
#[serde(rename_all = "PascalCase")]
pub struct GetBalanceOutput {
    /// Balance in wei.
    pub balance: Quantity256,
}

/// The response of getCode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getCode))]
#[serde(rename_all = "PascalCase")]
pub struct GetCodeOutput {
    /// The code of the account; empty if it has none.
    pub bytecode: BytesData,
}

/// The response of getTransactionCount, getBlockTransactionCountByHash and getBlockTransactionCountByNumber.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getTransactionCount))]
#[serde(rename_all = "PascalCase")]
pub struct TransactionCountOutput {
    /// The number of transactions sent by an account, or contained in a block.
    pub transaction_count: Quantity64,
}

/// The response of getUncleCountByBlockHash and getUncleCountByBlockNumber.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getUncleCountByBlockHash))]
#[serde(rename_all = "PascalCase")]
pub struct UncleCountOutput {
    /// The number of ommers of the block.
    pub uncle_count: Quantity64,
}

/// The response of syncing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_syncing))]
#[serde(rename_all = "PascalCase")]
pub struct SyncingOutput {
    /// Progress of the import; null if none is running.
    pub sync_status: Option<SyncStatus>,
}

/// Progress of a node that is importing blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct SyncStatus {
    /// Number of the head.
    pub current_block: Quantity64,
    /// Number of the last block of the import; that of the head if it is not known.
    pub highest_block: Quantity64,
    /// Number of the block at which the import started.
    pub starting_block: Quantity64,
}

/// The response of clientVersion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_clientVersion))]
#[serde(rename_all = "PascalCase")]
pub struct ClientVersionOutput {
    /// Name and version of the server.
    pub client_version: String,
}

/// The response of health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_health))]
#[serde(rename_all = "PascalCase")]
pub struct HealthOutput {
    /// Always ok.
    pub status: HealthStatus,
}

/// The response of ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_ready))]
#[serde(rename_all = "PascalCase")]
pub struct ReadyOutput {
    /// Always ok.
    pub status: HealthStatus,
    /// Number of the head.
    pub block_number: Quantity64,
    /// Age of the head in seconds, by its timestamp.
    pub head_age: Quantity64,
}

/// The status in responses with status code 200.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// The server works.
    #[default]
    Ok,
}
