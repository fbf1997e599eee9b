//! Requests that consist of parameters in the path and the query.

use super::decode::{Faults, ListLimit, Location};
use super::log;
use super::problem::ErrorDetail;
use super::proof::ProvenBlock;
#[cfg(feature = "schema")]
use super::schema::FilterIdText;
use super::text::TextError;
use super::{AddressData, ByteString, HashData, Quantity64};
use crate::{BlockId, BlockNumberOrTag};
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
    /// The names of the parameters.
    const NAMES: &'static [&'static str];

    /// Decodes the request. `find` returns the parameter with a name, or `None` if it is absent.
    ///
    /// # Errors
    /// The faults of all parameters that are missing or malformed.
    fn decode_parameters<'a>(find: impl Fn(&str) -> Option<Parameter<'a>>) -> Result<Self, Vec<ErrorDetail>>;
}

/// Declares requests that consist of parameters. The type of each field is followed by the method of
/// [`ParameterDecoder`] that reads it and the name of its parameter.
macro_rules! parameters {
    ($($(#[$about:meta])* $request:ident {
        $($(#[$field_about:meta])* $field:ident: $type:ty = $read:ident($name:tt),)+
    })+) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        pub struct $request { $($(#[$field_about])* #[serde(rename = $name)] pub $field: $type),+ }

        impl DecodeParameters for $request {
            const NAMES: &'static [&'static str] = &[$($name),+];

            fn decode_parameters<'a>(find: impl Fn(&str) -> Option<Parameter<'a>>) -> Result<Self, Vec<ErrorDetail>> {
                let mut decoder = ParameterDecoder::default();
                $(let $field = decoder.$read($name, find($name));)+
                let request = || Some(Self { $($field: $field?),+ });
                decoder.finish(request())
            }
        }
    )+};
}

parameters! {
    /// The parameters of getBlockByNumber.
    GetBlockByNumberInput {
        /// The block by number, decimal or hex, or by tag, but not a hash: for that, use getBlockByHash. The latest block
        /// if absent.
        #[serde(default)]
        block_number: BlockNumberOrTag = optional_or_default("BlockNumber"),
        /// Whether to return whole transactions rather than objects with only their hashes; false if absent. Also True,
        /// TRUE, t, T, 1 and their opposites, as programming languages print booleans.
        #[serde(default)]
        transaction_detail: bool = flag("TransactionDetailFlag"),
    }

    /// The parameters of getBlockByHash.
    GetBlockByHashInput {
        /// Hash of the block.
        hash: HashData = required("Hash"),
        /// Whether to return whole transactions rather than objects with only their hashes; false if absent. Also True,
        /// TRUE, t, T, 1 and their opposites, as programming languages print booleans.
        #[serde(default)]
        transaction_detail: bool = flag("TransactionDetailFlag"),
    }

    /// The parameter of operations on a block with a given hash.
    BlockHashInput {
        /// Hash of the block.
        hash: HashData = required("Hash"),
    }

    /// The parameter of operations on a transaction with a given hash.
    TransactionHashInput {
        /// Hash of the transaction.
        hash: HashData = required("Hash"),
    }

    /// The parameter of operations on a block with a given number, tag or hash.
    BlockNumberInput {
        /// A block number, a block hash, or a tag: earliest, latest, pending, safe or finalized.
        block_number: BlockId = required("BlockNumber"),
    }

    /// The parameters of getTransactionByBlockHashAndIndex.
    GetTransactionByBlockHashAndIndexInput {
        /// Hash of the block.
        hash: HashData = required("Hash"),
        /// Index of the transaction in the block, from 0.
        index: Quantity64 = required("Index"),
    }

    /// The parameters of getTransactionByBlockNumberAndIndex.
    GetTransactionByBlockNumberAndIndexInput {
        /// The block by number, decimal or hex, or by tag, but not a hash: for that, use
        /// getTransactionByBlockHashAndIndex.
        block_number: BlockNumberOrTag = required("BlockNumber"),
        /// Index of the transaction in the block, from 0.
        index: Quantity64 = required("Index"),
    }

    /// The parameters of operations on an account.
    AccountInput {
        /// Address of the account.
        address: AddressData = required("Address"),
        /// The block whose state is read; the latest if absent. The pending block includes the
        /// transactions of the pool.
        #[serde(default)]
        block_number: BlockId = optional_or_default("BlockNumber"),
    }

    /// The parameters of getAccount.
    GetAccountInput {
        /// Address of the account.
        address: AddressData = required("Address"),
        /// The block whose state is read; the latest if absent. Not the pending block, whose state has no trie.
        #[serde(default)]
        block_number: BlockId = proven_block("BlockNumber"),
    }

    /// The parameter of operations that read a filter.
    FilterIdInput {
        /// Id of the filter, as returned by the operation that created it.
        #[cfg_attr(feature = "schema", schema(value_type = FilterIdText))]
        filter_id: String = required("FilterId"),
    }

    /// The parameter of uninstallFilter.
    UninstallFilterInput {
        /// Id of the filter, as returned by the operation that created it. Any other text identifies no filter.
        #[cfg_attr(feature = "schema", schema(value_type = FilterIdText))]
        filter_id: String = required("FilterId"),
    }
}

/// A request without parameters.
impl DecodeParameters for () {
    const NAMES: &'static [&'static str] = &[];

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

    /// Parses the block of a proof, which is not the pending one; if it is absent, returns the latest. Returns `None`
    /// after adding a fault.
    fn proven_block(&mut self, name: &str, sent: Option<Parameter<'_>>) -> Option<BlockId> {
        self.optional_or_default(name, sent).map(|ProvenBlock(block)| block)
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

    /// Parses a query parameter with a list that is separated by commas and has at most `limit` elements, whose plural is
    /// `items`. Returns `None` after adding a fault.
    pub(super) fn list<T: ByteString>(
        &mut self,
        name: &str,
        text: &str,
        items: &str,
        limit: ListLimit,
    ) -> Option<Vec<T>> {
        let location = Location::Property(&Location::Part("query"), name);
        log::read_separated(text, location, items, limit, &mut self.faults)
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
        self.faults.push_text(Location::Property(&Location::Part(part), name), message, text);
    }
}
