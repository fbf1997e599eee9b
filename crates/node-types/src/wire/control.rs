//! Control of a development chain.

use super::decode::{Decode, Faults, Input, decode_array, decode_object, deserialize_by_decoding};
use super::{AddressData, BytesData, HashData, Quantity, Quantity64, Quantity256, StorageKey, Transaction, Withdrawal};
use serde::{Deserialize, Serialize};

/// The request body of mine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_mine))]
#[serde(rename_all = "PascalCase")]
pub struct MineInput {
    /// Number of blocks; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Quantity64>,
    /// Seconds between consecutive blocks. If absent, the clock determines the timestamps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Quantity64>,
    /// Withdrawals of the first block.
    #[cfg_attr(feature = "schema", schema(required = false, max_items = 1024))]
    pub withdrawals: Vec<Withdrawal>,
}

/// The response of mine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_mine))]
#[serde(rename_all = "PascalCase")]
pub struct MineOutput {
    /// Hash of the new head.
    pub block_hash: HashData,
    /// Number of the new head.
    pub block_number: Quantity64,
}

/// The request body of setNextBlockTimestamp.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_setNextBlockTimestamp))]
#[serde(rename_all = "PascalCase")]
pub struct SetNextBlockTimestampInput {
    /// Unix time in seconds; later than the timestamp of the head.
    pub timestamp: Quantity64,
}

/// The request body of increaseTime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_increaseTime))]
#[serde(rename_all = "PascalCase")]
pub struct IncreaseTimeInput {
    /// Number of seconds by which the clock of the chain advances.
    pub seconds: Quantity64,
}

/// The request body of setNextBlockBaseFee.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_setNextBlockBaseFee))]
#[serde(rename_all = "PascalCase")]
pub struct SetNextBlockBaseFeeInput {
    /// New base fee in wei per gas.
    pub base_fee: Quantity64,
}

/// The response of operations that may have no effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_setBalance))]
#[serde(rename_all = "PascalCase")]
pub struct ControlOutput {
    /// Whether the operation had an effect.
    pub result: bool,
}

/// The request body of revert, and the response of snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_snapshot))]
#[serde(rename_all = "PascalCase")]
pub struct SnapshotId {
    /// Identifies the snapshot.
    pub snapshot_id: Quantity64,
}

/// The request body of reorganize.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_reorganize))]
#[serde(rename_all = "PascalCase")]
pub struct ReorganizeInput {
    /// Number of blocks to replace, counted from the head.
    pub blocks: Quantity64,
}

/// The response of reorganize.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_reorganize))]
#[serde(rename_all = "PascalCase")]
pub struct ReorganizeOutput {
    /// Hashes of the blocks that joined the chain, oldest first.
    pub added: Vec<HashData>,
    /// Hashes of the blocks that left the chain, newest first.
    pub removed: Vec<HashData>,
}

/// The request body of impersonate and stopImpersonating.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_impersonate))]
#[serde(rename_all = "PascalCase")]
pub struct ImpersonateInput {
    /// The account.
    pub address: AddressData,
}

/// The request body of sendTransaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_sendTransaction))]
#[serde(rename_all = "PascalCase")]
pub struct SendTransactionInput {
    /// The transaction to send.
    pub transaction: UnsignedTransaction,
}

/// A transaction of an impersonated account, or of one whose key the node has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct UnsignedTransaction {
    /// Call data; creation code if `To` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<BytesData>,
    /// Sender, which must be impersonated, or an account whose key the node has.
    pub from: AddressData,
    /// Gas limit; estimated if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gas: Option<Quantity64>,
    /// Highest price that the sender pays, in wei per gas; a suggested price if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fee_per_gas: Option<Quantity256>,
    /// Highest tip for the producer, in wei per gas; a suggested tip if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_priority_fee_per_gas: Option<Quantity256>,
    /// Nonce; the next nonce of the sender if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Quantity64>,
    /// Recipient; if absent, a contract is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<AddressData>,
    /// Amount to transfer, in wei.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity256>,
}

/// The request body of setBalance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_setBalance))]
#[serde(rename_all = "PascalCase")]
pub struct SetBalanceInput {
    /// The account.
    pub address: AddressData,
    /// New balance in wei.
    pub balance: Quantity256,
}

/// The request body of setNonce.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_setNonce))]
#[serde(rename_all = "PascalCase")]
pub struct SetNonceInput {
    /// The account.
    pub address: AddressData,
    /// New nonce. It must not be lower than the current one.
    pub nonce: Quantity64,
}

/// The request body of setCode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_setCode))]
#[serde(rename_all = "PascalCase")]
pub struct SetCodeInput {
    /// The account.
    pub address: AddressData,
    /// New code; none if absent.
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub code: BytesData,
}

/// The request body of setStorage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_setStorage))]
#[serde(rename_all = "PascalCase")]
pub struct SetStorageInput {
    /// The account.
    pub address: AddressData,
    /// Storage slot.
    pub position: StorageKey,
    /// New value of the slot.
    pub value: Quantity256,
}

/// The request body of dropTransaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_dropTransaction))]
#[serde(rename_all = "PascalCase")]
pub struct DropTransactionInput {
    /// Hash of the transaction.
    pub transaction_hash: HashData,
}

/// The response of poolContent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_poolContent))]
#[serde(rename_all = "PascalCase")]
pub struct PoolContentOutput {
    /// Transactions that the next block can contain, by sender and nonce.
    pub pending: Vec<Transaction>,
    /// Transactions that wait for a lower nonce or for balance.
    pub queued: Vec<Transaction>,
}

/// Most withdrawals of one block. The consensus layer requests at most 16.
const MAX_WITHDRAWALS: usize = 1_024;

decode_object! {
    MineInput {
        blocks: optional("Blocks"),
        interval: optional("Interval"),
        withdrawals: optional_or_default("Withdrawals") as Withdrawals,
    }
    Withdrawal {
        address: required("Address"),
        amount: required("Amount"),
        index: required("Index") as Quantity,
        validator_index: required("ValidatorIndex") as Quantity,
    }
    SetNextBlockTimestampInput { timestamp: required("Timestamp") }
    IncreaseTimeInput { seconds: required("Seconds") }
    SetNextBlockBaseFeeInput { base_fee: required("BaseFee") }
    SnapshotId { snapshot_id: required("SnapshotId") }
    ReorganizeInput { blocks: required("Blocks") }
    ImpersonateInput { address: required("Address") }
    SendTransactionInput { transaction: required("Transaction") }
    UnsignedTransaction {
        data: optional("Data"),
        from: required("From"),
        gas: optional("Gas"),
        max_fee_per_gas: optional("MaxFeePerGas"),
        max_priority_fee_per_gas: optional("MaxPriorityFeePerGas"),
        nonce: optional("Nonce"),
        to: optional("To"),
        value: optional("Value"),
    }
    SetBalanceInput { address: required("Address"), balance: required("Balance") }
    SetNonceInput { address: required("Address"), nonce: required("Nonce") }
    SetCodeInput { address: required("Address"), code: optional_or_default("Code") }
    SetStorageInput { address: required("Address"), position: required("Position"), value: required("Value") }
    DropTransactionInput { transaction_hash: required("TransactionHash") }
}

#[derive(Default)]
struct Withdrawals(Vec<Withdrawal>);

impl Decode for Withdrawals {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        decode_array(input, MAX_WITHDRAWALS, faults).map(Self)
    }
}

deserialize_by_decoding!(
    MineInput,
    SetNextBlockTimestampInput,
    IncreaseTimeInput,
    SetNextBlockBaseFeeInput,
    SnapshotId,
    ReorganizeInput,
    ImpersonateInput,
    SendTransactionInput,
    UnsignedTransaction,
    SetBalanceInput,
    SetNonceInput,
    SetCodeInput,
    SetStorageInput,
    DropTransactionInput
);
