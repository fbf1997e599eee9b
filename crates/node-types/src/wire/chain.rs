//! The chain, its accounts, and this node.

use super::decode::wire_objects;
use super::{BytesData, ForkStatus, HashData, Quantity64, Quantity256};
use serde::{Deserialize, Serialize};

wire_objects! {
    /// The response of blockNumber.
    response BlockNumberOutput {
        /// Number of the head.
        block_number: Quantity64,
    }

    /// The response of chainId.
    response ChainIdOutput {
        /// The chain's identifier (EIP-155).
        chain_id: Quantity64,
    }

    /// The response of gasPrice.
    response GasPriceOutput {
        /// A price in wei per gas with which a transaction should be included soon.
        gas_price: Quantity256,
    }

    /// The response of maxPriorityFeePerGas.
    response MaxPriorityFeePerGasOutput {
        /// A tip in wei per gas with which a transaction should be included soon.
        max_priority_fee_per_gas: Quantity256,
    }

    /// The response of blobBaseFee.
    response BlobBaseFeeOutput {
        /// Price in wei per blob gas in the next block (EIP-4844).
        base_fee: Quantity256,
    }

    /// The response of getAccount.
    response GetAccountOutput {
        /// Balance in wei.
        balance: Quantity256,
        /// Keccak-256 of the code.
        code_hash: HashData,
        /// Nonce.
        nonce: Quantity64,
        /// Root of the storage trie.
        storage_root: HashData,
    }

    /// The response of getBalance.
    response GetBalanceOutput {
        /// Balance in wei.
        balance: Quantity256,
    }

    /// The response of getCode.
    response GetCodeOutput {
        /// The code of the account; empty if it has none.
        bytecode: BytesData,
    }

    /// The response of getTransactionCount, getBlockTransactionCountByHash and getBlockTransactionCountByNumber.
    response TransactionCountOutput {
        /// The number of transactions sent by an account, or contained in a block.
        transaction_count: Quantity64,
    }

    /// The response of getUncleCountByBlockHash and getUncleCountByBlockNumber.
    response UncleCountOutput {
        /// The number of ommers of the block.
        uncle_count: Quantity64,
    }

    /// The response of syncing.
    response SyncingOutput {
        /// Progress of the import; null if none is running.
        sync_status: Option<SyncStatus>,
    }

    /// Progress of a node that is importing blocks.
    response SyncStatus {
        /// Number of the head.
        current_block: Quantity64,
        /// Number of the last block of the import; that of the head if it is not known.
        highest_block: Quantity64,
        /// Number of the block at which the import started.
        starting_block: Quantity64,
    }

    /// The response of clientVersion.
    response ClientVersionOutput {
        /// Name and version of the server.
        client_version: String,
    }
}

/// The response of health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct HealthOutput {
    /// Always ok.
    pub status: HealthStatus,
}

/// The response of ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct ReadyOutput {
    /// Always ok.
    pub status: HealthStatus,
    /// Number of the head.
    pub block_number: Quantity64,
    /// Age of the head in seconds, by its timestamp.
    pub head_age: Quantity64,
    /// The chain that this one continues; null if there is none.
    #[serde(default)]
    pub fork: Option<ForkStatus>,
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
