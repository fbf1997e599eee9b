//! Facts about the chain, its accounts and this node.

use super::{BytesData, HashData, Quantity64, Quantity256};
use serde::{Deserialize, Serialize};

/// The answer of blockNumber.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_blockNumber))]
#[serde(rename_all = "PascalCase")]
pub struct BlockNumberOutput {
    /// Height of the head.
    pub block_number: Quantity64,
}

/// The answer of chainId.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_chainId))]
#[serde(rename_all = "PascalCase")]
pub struct ChainIdOutput {
    /// The chain's identifier (EIP-155).
    pub chain_id: Quantity64,
}

/// The answer of gasPrice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_gasPrice))]
#[serde(rename_all = "PascalCase")]
pub struct GasPriceOutput {
    /// A price in wei per gas that gets a transaction into one of the next blocks.
    pub gas_price: Quantity256,
}

/// The answer of maxPriorityFeePerGas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_maxPriorityFeePerGas))]
#[serde(rename_all = "PascalCase")]
pub struct MaxPriorityFeePerGasOutput {
    /// A tip in wei per gas that gets a transaction into one of the next blocks.
    pub max_priority_fee_per_gas: Quantity256,
}

/// The answer of blobBaseFee.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_blobBaseFee))]
#[serde(rename_all = "PascalCase")]
pub struct BlobBaseFeeOutput {
    /// Price in wei per blob gas in the next block (EIP-4844).
    pub base_fee: Quantity256,
}

/// The answer of getAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getAccount))]
#[serde(rename_all = "PascalCase")]
pub struct GetAccountOutput {
    /// Balance in wei.
    pub balance: Quantity256,
    /// Keccak of the code.
    pub code_hash: HashData,
    /// Nonce.
    pub nonce: Quantity64,
    /// Root of the storage trie.
    pub storage_root: HashData,
}

/// The answer of getBalance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getBalance))]
#[serde(rename_all = "PascalCase")]
pub struct GetBalanceOutput {
    /// Balance in wei.
    pub balance: Quantity256,
}

/// The answer of getCode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getCode))]
#[serde(rename_all = "PascalCase")]
pub struct GetCodeOutput {
    /// The account's code; empty where there is none.
    pub bytecode: BytesData,
}

/// The answer of getTransactionCount, getBlockTransactionCountByHash and getBlockTransactionCountByNumber.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getTransactionCount))]
#[serde(rename_all = "PascalCase")]
pub struct TransactionCountOutput {
    /// Transactions sent from an account, or held by a block.
    pub transaction_count: Quantity64,
}

/// The answer of getUncleCountByBlockHash and getUncleCountByBlockNumber.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getUncleCountByBlockHash))]
#[serde(rename_all = "PascalCase")]
pub struct UncleCountOutput {
    /// Ommers of the block.
    pub uncle_count: Quantity64,
}

/// The answer of syncing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_syncing))]
#[serde(rename_all = "PascalCase")]
pub struct SyncingOutput {
    /// How far the node is; null when it is in sync.
    pub sync_status: Option<SyncStatus>,
}

/// How far a node is that still imports blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct SyncStatus {
    /// Height of the head.
    pub current_block: Quantity64,
    /// Height of the newest block that is known.
    pub highest_block: Quantity64,
    /// Height at which this node began.
    pub starting_block: Quantity64,
}

/// The answer of clientVersion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_clientVersion))]
#[serde(rename_all = "PascalCase")]
pub struct ClientVersionOutput {
    /// Name and version of the server.
    pub client_version: String,
}

/// The answer of health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_health))]
#[serde(rename_all = "PascalCase")]
pub struct HealthOutput {
    /// That the server answers.
    pub status: HealthStatus,
}

/// The answer of ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_ready))]
#[serde(rename_all = "PascalCase")]
pub struct ReadyOutput {
    /// That the server can do what it is for.
    pub status: HealthStatus,
    /// Height of the head.
    pub block_number: Quantity64,
    /// Age of the head in seconds, by its timestamp.
    pub head_age: Quantity64,
}

/// How a server does that answers with 200.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// Well.
    #[default]
    Ok,
}
