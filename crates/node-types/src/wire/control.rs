//! Control of a development chain.

use super::decode::{Decode, Faults, Input, decode_array, decode_object, deserialize_by_decoding};
use super::{AddressData, BytesData, HashData, Quantity, Quantity64, Quantity256, StorageKey, Transaction, Withdrawal};
use serde::{Deserialize, Serialize};

/// The body of mine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_mine))]
#[serde(rename_all = "PascalCase")]
pub struct MineInput {
    /// How many blocks; one where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Quantity64>,
    /// Seconds from each block to the next; where it is absent the clock decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Quantity64>,
    /// Withdrawals of the first block.
    #[cfg_attr(feature = "schema", schema(required = false, max_items = 1024))]
    pub withdrawals: Vec<Withdrawal>,
}

/// The answer of mine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_mine))]
#[serde(rename_all = "PascalCase")]
pub struct MineOutput {
    /// Hash of the new head.
    pub block_hash: HashData,
    /// Height of the new head.
    pub block_number: Quantity64,
}

/// The body of setNextBlockTimestamp.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_setNextBlockTimestamp))]
#[serde(rename_all = "PascalCase")]
pub struct SetNextBlockTimestampInput {
    /// In Unix seconds; later than the head's.
    pub timestamp: Quantity64,
}

/// The body of increaseTime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_increaseTime))]
#[serde(rename_all = "PascalCase")]
pub struct IncreaseTimeInput {
    /// By how much the time of the chain jumps ahead.
    pub seconds: Quantity64,
}

/// The body of setNextBlockBaseFee.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_setNextBlockBaseFee))]
#[serde(rename_all = "PascalCase")]
pub struct SetNextBlockBaseFeeInput {
    /// In wei per gas.
    pub base_fee: Quantity64,
}

/// The answer of operations that do what they were asked, or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_setBalance))]
#[serde(rename_all = "PascalCase")]
pub struct ControlOutput {
    /// Whether anything was done.
    pub result: bool,
}

/// The body of revert, and the answer of snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_snapshot))]
#[serde(rename_all = "PascalCase")]
pub struct SnapshotId {
    /// Names the snapshot.
    pub snapshot_id: Quantity64,
}

/// The body of reorganize.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_reorganize))]
#[serde(rename_all = "PascalCase")]
pub struct ReorganizeInput {
    /// How many of the newest blocks are replaced.
    pub blocks: Quantity64,
}

/// The answer of reorganize.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_reorganize))]
#[serde(rename_all = "PascalCase")]
pub struct ReorganizeOutput {
    /// Hashes of the blocks that joined the chain, oldest first.
    pub added: Vec<HashData>,
    /// Hashes of the blocks that left the chain, newest first.
    pub removed: Vec<HashData>,
}

/// The body of impersonate and stopImpersonating.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_impersonate))]
#[serde(rename_all = "PascalCase")]
pub struct ImpersonateInput {
    /// The account.
    pub address: AddressData,
}

/// The body of sendTransaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_sendTransaction))]
#[serde(rename_all = "PascalCase")]
pub struct SendTransactionInput {
    /// What to send.
    pub transaction: UnsignedTransaction,
}

/// A transaction of an impersonated account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct UnsignedTransaction {
    /// Call data; creation code where there is no `To`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<BytesData>,
    /// Sender, which is impersonated.
    pub from: AddressData,
    /// Gas limit; estimated where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gas: Option<Quantity64>,
    /// The most the sender pays, in wei per gas; a usual price where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fee_per_gas: Option<Quantity256>,
    /// The most the producer gets, in wei per gas; a usual tip where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_priority_fee_per_gas: Option<Quantity256>,
    /// The sender's next nonce where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Quantity64>,
    /// Receiver; none creates a contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<AddressData>,
    /// Wei to transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity256>,
}

/// The body of setBalance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_setBalance))]
#[serde(rename_all = "PascalCase")]
pub struct SetBalanceInput {
    /// The account.
    pub address: AddressData,
    /// In wei.
    pub balance: Quantity256,
}

/// The body of setNonce.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_setNonce))]
#[serde(rename_all = "PascalCase")]
pub struct SetNonceInput {
    /// The account.
    pub address: AddressData,
    /// At least what it is.
    pub nonce: Quantity64,
}

/// The body of setCode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_setCode))]
#[serde(rename_all = "PascalCase")]
pub struct SetCodeInput {
    /// The account.
    pub address: AddressData,
    /// The code that runs when the account is called; absent for none.
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub code: BytesData,
}

/// The body of setStorage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_setStorage))]
#[serde(rename_all = "PascalCase")]
pub struct SetStorageInput {
    /// The account.
    pub address: AddressData,
    /// Storage slot.
    pub position: StorageKey,
    /// What it holds from then on.
    pub value: Quantity256,
}

/// The body of dropTransaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_dropTransaction))]
#[serde(rename_all = "PascalCase")]
pub struct DropTransactionInput {
    /// The transaction.
    pub transaction_hash: HashData,
}

/// The answer of poolContent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_poolContent))]
#[serde(rename_all = "PascalCase")]
pub struct PoolContentOutput {
    /// Transactions that can be in the next block, by sender and nonce.
    pub pending: Vec<Transaction>,
    /// Transactions that wait for an earlier nonce, or for balance.
    pub queued: Vec<Transaction>,
}

/// Most withdrawals of one block: far more than the 16 that the consensus layer orders.
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
