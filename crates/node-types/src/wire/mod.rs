//! Requests and answers of the HTTP interface, with their JSON encodings.
//!
//! Every request and every answer serializes and deserializes, so that a server and a client speak through the same
//! types. Codecs are types of their own: a [`Quantity`] travels as a decimal string, [`Data`] as lower-case hex, a
//! [`Word`] as 32 bytes of hex.

mod alias;
mod block;
mod block_id;
mod call;
mod chain;
mod control;
mod data;
mod decode;
mod event;
mod fault;
mod fee_history;
mod filter;
mod log;
mod parameters;
mod problem;
mod proof;
mod quantity;
mod receipt;
#[cfg(feature = "schema")]
pub mod schema;
mod state_override;
mod text;
mod transaction;

pub use alias::{AddressData, BloomData, BytesData, HashData, NonceData, Quantity64, Quantity256};
pub use block::{Block, BlockTransactions, GetBlockByHashOutput, GetBlockByNumberOutput, Withdrawal};
pub use call::{CallInput, CallOutput, EstimateGasInput, EstimateGasOutput, TransactionCall};
pub use chain::{
    BlobBaseFeeOutput, BlockNumberOutput, ChainIdOutput, ClientVersionOutput, GasPriceOutput, GetAccountOutput,
    GetBalanceOutput, GetCodeOutput, HealthOutput, HealthStatus, MaxPriorityFeePerGasOutput, ReadyOutput, SyncStatus,
    SyncingOutput, TransactionCountOutput, UncleCountOutput,
};
pub use control::{
    ControlOutput, DropTransactionInput, ImpersonateInput, IncreaseTimeInput, MineInput, MineOutput, PoolContentOutput,
    ReorganizeInput, ReorganizeOutput, SendTransactionInput, SetBalanceInput, SetCodeInput, SetNextBlockBaseFeeInput,
    SetNextBlockTimestampInput, SetNonceInput, SetStorageInput, SnapshotId, UnsignedTransaction,
};
pub use data::{ByteString, Data, Word};
pub use decode::{BodyError, Decode, Faults, Input, Location, ObjectDecoder, decode_body};
pub use event::{ChainEventId, Event, EventData, EventId, EventsInput, LastEvent};
pub use fee_history::{FeeHistoryInput, FeeHistoryOutput};
pub use filter::{
    EmptyInput, FilterChanges, FilterIdOutput, FilterObject, GetFilterChangesOutput, GetFilterLogsOutput,
    NewFilterInput, UninstallFilterOutput,
};
pub use log::{AddressFilter, GetLogsInput, GetLogsOutput, Log, TopicFilter};
pub use parameters::{
    AccountInput, BlockNumberInput, DecodeParameters, FilterIdInput, GetBlockByHashInput, GetBlockByNumberInput,
    GetTransactionByBlockHashAndIndexInput, GetTransactionByBlockNumberAndIndexInput, HashInput, Parameter,
    ParameterDecoder,
};
pub use problem::{EchoedValue, ErrorDetail, Problem};
pub use proof::{GetProofInput, GetProofOutput, GetStorageAtInput, GetStorageAtOutput, StorageEntry, StorageKey};
pub use quantity::{Integer, Quantity};
pub use receipt::{GetBlockReceiptsOutput, GetTransactionReceiptOutput, TransactionReceipt};
pub use state_override::{AccountOverride, EstimateGasObject, StorageSlots};
pub use text::TextError;
pub use transaction::{
    AccessListItem, GetRawTransactionOutput, GetTransactionStatusOutput, SendRawTransactionInput,
    SendRawTransactionOutput, Transaction, TransactionOutput, TransactionStatus,
};
