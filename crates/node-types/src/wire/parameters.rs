//! Requests that consist of parameters in the path and the query.

use super::decode::{Faults, Location};
use super::problem::ErrorDetail;
use super::text::TextError;
use super::{Data, Quantity};
use crate::{Address, BlockId, BlockNumberOrTag, H256};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A parameter as it was sent.
#[derive(Clone, Debug)]
pub struct Parameter<'a> {
    /// The part of the request that holds it: `path`, `query` or `header`.
    pub part: &'static str,
    /// Its decoded text.
    pub text: Cow<'a, str>,
}

/// A request that consists of named parameters.
pub trait DecodeParameters: Sized {
    /// Decodes the request. `find` returns the parameter with a name, or `None` if it is absent.
    ///
    /// # Errors
    /// The faults of all parameters that are missing or malformed.
    fn decode_parameters<'a>(find: impl Fn(&str) -> Option<Parameter<'a>>) -> Result<Self, Vec<ErrorDetail>>;
}

/// Implements [`DecodeParameters`]. For each field, the macro takes the method of [`ParameterDecoder`] that reads it
/// and the name of its parameter.
macro_rules! decode_parameters {
    ($($request:ident { $($field:ident: $read:ident($name:literal)),+ })+) => {$(
        impl DecodeParameters for $request {
            fn decode_parameters<'a>(find: impl Fn(&str) -> Option<Parameter<'a>>) -> Result<Self, Vec<ErrorDetail>> {
                let mut decoder = ParameterDecoder::default();
                $(let $field = decoder.$read($name, find($name));)+
                let request = || Some(Self { $($field: $field?),+ });
                decoder.finish(request())
            }
        }
    )+};
}

decode_parameters! {
    GetBlockByNumberInput {
        block_number: optional_or_default("BlockNumber"),
        transaction_detail: flag("TransactionDetailFlag")
    }
    GetBlockByHashInput { hash: required("Hash"), transaction_detail: flag("TransactionDetailFlag") }
    HashInput { hash: required("Hash") }
    BlockNumberInput { block_number: optional_or_default("BlockNumber") }
    GetTransactionByBlockHashAndIndexInput { hash: required("Hash"), index: required("Index") }
    GetTransactionByBlockNumberAndIndexInput { block_number: required("BlockNumber"), index: required("Index") }
    AccountInput { address: required("Address"), block_number: optional_or_default("BlockNumber") }
    FilterIdInput { filter_id: required("FilterId") }
}

/// A request without parameters.
impl DecodeParameters for () {
    fn decode_parameters<'a>(_: impl Fn(&str) -> Option<Parameter<'a>>) -> Result<Self, Vec<ErrorDetail>> {
        Ok(())
    }
}

/// Decodes the parameters of a request and collects their faults.
#[derive(Debug, Default)]
pub struct ParameterDecoder {
    faults: Faults,
}

impl ParameterDecoder {
    /// Parses a parameter, which must be present. Returns `None` after adding a fault.
    pub fn required<T: FromStr<Err: Into<TextError>>>(&mut self, name: &str, sent: Option<Parameter<'_>>) -> Option<T> {
        let Parameter { part, text } = sent.unwrap_or(Parameter { part: "path", text: "".into() });
        text.parse().map_err(|error: T::Err| self.fault(part, name, &text, error.into())).ok()
    }

    /// Parses a parameter; if it is absent, returns the default of its type. Returns `None` after adding a fault.
    pub fn optional_or_default<T: Default + FromStr<Err: Into<TextError>>>(
        &mut self,
        name: &str,
        sent: Option<Parameter<'_>>,
    ) -> Option<T> {
        if sent.is_none() { Some(T::default()) } else { self.required(name, sent) }
    }

    /// Parses a boolean as programming languages print it: `true`, `True`, `TRUE`, `t`, `T`, `1`, or the opposites. If
    /// it is absent, returns `false`. Returns `None` after adding a fault.
    pub fn flag(&mut self, name: &str, sent: Option<Parameter<'_>>) -> Option<bool> {
        let Some(Parameter { part, text }) = sent else { return Some(false) };
        match &*text {
            "1" | "t" | "T" | "true" | "True" | "TRUE" => Some(true),
            "0" | "f" | "F" | "false" | "False" | "FALSE" => Some(false),
            _ => {
                self.fault(part, name, &text, TextError::Flag);
                None
            }
        }
    }

    /// Parses a query parameter. Returns `None` after adding a fault.
    pub fn query<T: FromStr<Err: Into<TextError>>>(&mut self, name: &str, text: &str) -> Option<T> {
        self.required(name, Some(Parameter { part: "query", text: text.into() }))
    }

    /// Parses a header. Returns `None` after adding a fault.
    pub fn header<T: FromStr<Err: Into<TextError>>>(&mut self, name: &str, text: &str) -> Option<T> {
        self.required(name, Some(Parameter { part: "header", text: text.into() }))
    }

    /// Adds a fault of a query parameter.
    pub fn refuse_query(&mut self, name: &str, text: &str, message: &str) {
        self.fault("query", name, text, message);
    }

    /// Returns the request if there are no faults.
    ///
    /// # Errors
    /// All faults that were added, if there are any.
    pub fn finish<T>(self, request: Option<T>) -> Result<T, Vec<ErrorDetail>> {
        match request {
            Some(request) if self.faults.is_empty() => Ok(request),
            _ => Err(self.faults.into_details()),
        }
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
    /// The block. Not a hash: see getBlockByHash.
    pub block_number: BlockNumberOrTag,
    /// Whether to return whole transactions rather than their hashes.
    #[serde(rename = "TransactionDetailFlag")]
    pub transaction_detail: bool,
}

/// The path parameters of getBlockByHash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GetBlockByHashInput {
    /// Hash of the block.
    pub hash: Data<H256>,
    /// Whether to return whole transactions rather than their hashes.
    #[serde(rename = "TransactionDetailFlag", default)]
    pub transaction_detail: bool,
}

/// The path parameter of operations on a block or a transaction with a given hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct HashInput {
    /// The hash.
    pub hash: Data<H256>,
}

/// The path parameter of operations on a block with a given number, tag or hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct BlockNumberInput {
    /// The block.
    pub block_number: BlockId,
}

/// The path parameters of getTransactionByBlockHashAndIndex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GetTransactionByBlockHashAndIndexInput {
    /// Hash of the block.
    pub hash: Data<H256>,
    /// Index of the transaction in the block, from 0.
    pub index: Quantity<u64>,
}

/// The path parameters of getTransactionByBlockNumberAndIndex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GetTransactionByBlockNumberAndIndexInput {
    /// The block.
    pub block_number: BlockNumberOrTag,
    /// Index of the transaction in the block, from 0.
    pub index: Quantity<u64>,
}

/// The parameters of getAccount, getBalance, getCode and getTransactionCount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AccountInput {
    /// The account.
    pub address: Data<Address>,
    /// The block whose state is read.
    #[serde(default)]
    pub block_number: BlockId,
}

/// The path parameter of operations on a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct FilterIdInput {
    /// The id that was returned when the filter was created.
    pub filter_id: String,
}
