//! Parameters in the path and the query of a request.

use super::decode::{Faults, Location};
use super::problem::ErrorDetail;
use super::text::TextError;
use super::{Data, Quantity};
use crate::{Address, BlockId, BlockNumberOrTag, H256};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Reads the parameters of a request and collects what is wrong with them.
#[derive(Debug, Default)]
pub struct ParameterDecoder {
    faults: Faults,
}

impl ParameterDecoder {
    /// Reads a parameter in the path; none after a fault.
    pub fn path<T: FromStr<Err: Into<TextError>>>(&mut self, name: &str, text: &str) -> Option<T> {
        self.parse("path", name, text)
    }

    /// Reads a parameter in the query; none after a fault.
    pub fn query<T: FromStr<Err: Into<TextError>>>(&mut self, name: &str, text: &str) -> Option<T> {
        self.parse("query", name, text)
    }

    /// Reads a header; none after a fault.
    pub fn header<T: FromStr<Err: Into<TextError>>>(&mut self, name: &str, text: &str) -> Option<T> {
        self.parse("header", name, text)
    }

    /// Notes that a parameter in the query has no place there.
    pub fn refuse_query(&mut self, name: &str, text: &str, message: &str) {
        self.fault("query", name, text, message);
    }

    /// The request, or everything that is wrong with it.
    pub fn finish<T>(self, request: Option<T>) -> Result<T, Vec<ErrorDetail>> {
        match request {
            Some(request) if self.faults.is_empty() => Ok(request),
            _ => Err(self.faults.into_details()),
        }
    }

    fn parse<T: FromStr<Err: Into<TextError>>>(&mut self, part: &'static str, name: &str, text: &str) -> Option<T> {
        text.parse().map_err(|error: T::Err| self.fault(part, name, text, Into::<TextError>::into(error))).ok()
    }

    fn fault(&mut self, part: &'static str, name: &str, text: &str, message: impl fmt::Display) {
        let json = serde_json::Value::from(text).to_string();
        self.faults.push(Location::Property(&Location::Part(part), name), message, Some(&json));
    }
}

/// The path parameters of getBlockByNumber.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_getBlockByNumber))]
#[serde(rename_all = "PascalCase", default)]
pub struct GetBlockByNumberInput {
    /// Which block.
    pub block_number: BlockNumberOrTag,
    /// Whether whole transactions are wanted, or only their hashes.
    #[serde(rename = "TransactionDetailFlag")]
    pub transaction_detail: bool,
}

impl GetBlockByNumberInput {
    /// Reads the parameters; one that is absent has its default.
    pub fn from_path(block_number: Option<&str>, detail: Option<&str>) -> Result<Self, Vec<ErrorDetail>> {
        let mut decoder = ParameterDecoder::default();
        let block_number = decoder.path("BlockNumber", block_number.unwrap_or("latest"));
        let detail = decoder.path("TransactionDetailFlag", detail.unwrap_or("false"));
        decoder.finish(
            block_number
                .zip(detail)
                .map(|(block_number, transaction_detail)| Self { block_number, transaction_detail }),
        )
    }
}

/// The path parameters of getBlockByHash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GetBlockByHashInput {
    /// Hash of the block.
    pub hash: Data<H256>,
    /// Whether whole transactions are wanted, or only their hashes.
    #[serde(rename = "TransactionDetailFlag", default)]
    pub transaction_detail: bool,
}

impl GetBlockByHashInput {
    /// Reads the parameters; without a detail flag, hashes are wanted.
    pub fn from_path(hash: &str, detail: Option<&str>) -> Result<Self, Vec<ErrorDetail>> {
        let mut decoder = ParameterDecoder::default();
        let hash = decoder.path("Hash", hash);
        let detail = decoder.path("TransactionDetailFlag", detail.unwrap_or("false"));
        decoder.finish(hash.zip(detail).map(|(hash, transaction_detail)| Self { hash, transaction_detail }))
    }
}

/// The path parameter of operations that name a block or a transaction by its hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct HashInput {
    /// The hash.
    pub hash: Data<H256>,
}

impl HashInput {
    /// Reads the parameter.
    pub fn from_path(hash: &str) -> Result<Self, Vec<ErrorDetail>> {
        let mut decoder = ParameterDecoder::default();
        let hash = decoder.path("Hash", hash);
        decoder.finish(hash.map(|hash| Self { hash }))
    }
}

/// The path parameter of operations that name a block by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct BlockNumberInput {
    /// Which block.
    pub block_number: BlockId,
}

impl BlockNumberInput {
    /// Reads the parameter; absent, it is the latest block.
    pub fn from_path(block_number: Option<&str>) -> Result<Self, Vec<ErrorDetail>> {
        let mut decoder = ParameterDecoder::default();
        let block_number = decoder.path("BlockNumber", block_number.unwrap_or("latest"));
        decoder.finish(block_number.map(|block_number| Self { block_number }))
    }
}

/// The path parameters of getTransactionByBlockHashAndIndex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GetTransactionByBlockHashAndIndexInput {
    /// Hash of the block.
    pub hash: Data<H256>,
    /// Position of the transaction in it.
    pub index: Quantity<u64>,
}

impl GetTransactionByBlockHashAndIndexInput {
    /// Reads the parameters.
    pub fn from_path(hash: &str, index: &str) -> Result<Self, Vec<ErrorDetail>> {
        let mut decoder = ParameterDecoder::default();
        let hash = decoder.path("Hash", hash);
        let index = decoder.path("Index", index);
        decoder.finish(hash.zip(index).map(|(hash, index)| Self { hash, index }))
    }
}

/// The path parameters of getTransactionByBlockNumberAndIndex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GetTransactionByBlockNumberAndIndexInput {
    /// Which block.
    pub block_number: BlockNumberOrTag,
    /// Position of the transaction in it.
    pub index: Quantity<u64>,
}

impl GetTransactionByBlockNumberAndIndexInput {
    /// Reads the parameters.
    pub fn from_path(block_number: &str, index: &str) -> Result<Self, Vec<ErrorDetail>> {
        let mut decoder = ParameterDecoder::default();
        let block_number = decoder.path("BlockNumber", block_number);
        let index = decoder.path("Index", index);
        decoder.finish(block_number.zip(index).map(|(block_number, index)| Self { block_number, index }))
    }
}

/// The parameters of getAccount, getBalance, getCode and getTransactionCount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AccountInput {
    /// The account.
    pub address: Data<Address>,
    /// After which block.
    #[serde(default)]
    pub block_number: BlockId,
}

impl AccountInput {
    /// Reads both parameters from the path; without a block it is the latest.
    pub fn from_path(address: &str, block_number: Option<&str>) -> Result<Self, Vec<ErrorDetail>> {
        let mut decoder = ParameterDecoder::default();
        let address = decoder.path("Address", address);
        let block_number = decoder.path("BlockNumber", block_number.unwrap_or("latest"));
        decoder.finish(address.zip(block_number).map(|(address, block_number)| Self { address, block_number }))
    }

    /// Reads the address from the path and the block from the query; without a block, or with an empty one, it is the
    /// latest.
    pub fn from_path_and_query(address: &str, block_number: Option<&str>) -> Result<Self, Vec<ErrorDetail>> {
        let mut decoder = ParameterDecoder::default();
        let address = decoder.path("Address", address);
        let block_number = block_number.filter(|text| !text.is_empty()).unwrap_or("latest");
        let block_number = decoder.query("BlockNumber", block_number);
        decoder.finish(address.zip(block_number).map(|(address, block_number)| Self { address, block_number }))
    }
}
