//! Parameters and results in the format of geth.

mod block;
mod block_param;
mod call;
mod config;
mod fee_history;
mod filter;
mod hex;
mod log;
mod loose;
mod payload;
mod proof;
mod receipt;
mod request;
mod simulation;
mod tracer;
mod transaction;

pub(crate) use block::{Block, Header, Ommer, Withdrawal};
pub(crate) use block_param::{Block32, BlockNumberParam, BlockParam};
pub(crate) use call::{BlockOverrides, CallArguments, StateOverrides};
pub(crate) use config::{Capabilities, ForkConfigs, Syncing};
pub(crate) use fee_history::{BlockCount, FeeHistory};
pub(crate) use filter::FilterObject;
pub(crate) use hex::Hex;
pub(crate) use log::{Log, append_element};
pub(crate) use loose::{Loose, Object};
pub(crate) use payload::{BuiltPayload, PayloadAttributes};
pub(crate) use proof::{Proof, Slot};
pub(crate) use receipt::Receipt;
pub(crate) use request::TransactionRequest;
pub(crate) use simulation::{SimulatedBlock, Simulation};
pub(crate) use tracer::{CallConfig, TraceConfig};
pub(crate) use transaction::{AccessListItem, Authorization, Transaction};
