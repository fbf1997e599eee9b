//! The content of a request: the locations of its fields, and their values as they were written.

use crate::exchange::parameters::{self, PathParameters};
use actix_web::HttpRequest;
use actix_web::http::Method;
use actix_web::web::Bytes;
use node_core::node::{Fault, Field, NodeError, Property};
use node_core::pool::PoolError;
use node_rpc::options;
use node_types::wire::{Data, EchoedValue, ErrorDetail, Faults, Input, Location};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The header in which browsers send the id of the last event that they have received.
const LAST_EVENT_ID: &str = "Last-Event-ID";

/// The parameters and the body of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    /// Decoded parameters of the path.
    path: PathParameters,
    /// Decoded parameters of the query.
    query: Vec<(String, String)>,
    /// The query as it was sent.
    query_string: String,
    last_event_id: Option<String>,
    /// Whether the fields are in the query rather than in the body.
    reads_query: bool,
    /// The property of the body that contains the fields; `None` if the body itself does.
    object: Option<&'static str>,
    /// Whether the body has a transaction as an object.
    has_transaction: bool,
    body: Option<Bytes>,
}

/// Returns the decoded parameters of a query.
fn decoded(query: &str) -> Vec<(String, String)> {
    let decode = |text| parameters::decode_lossy(text, true);
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

impl Sent {
    /// Reads the content of a request whose body may have `properties`. `body` is its body, if it was read.
    pub(crate) fn new(properties: &'static [&'static str], request: &HttpRequest, body: Option<Bytes>) -> Self {
        let header = request.headers().get(LAST_EVENT_ID).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
        Self {
            path: PathParameters::default(),
            query: decoded(request.query_string()),
            query_string: request.query_string().to_owned(),
            last_event_id: header.filter(|id| !id.is_empty()),
            reads_query: matches!(*request.method(), Method::GET | Method::HEAD),
            object: properties.contains(&"FilterObject").then_some("FilterObject"),
            has_transaction: properties.contains(&"Transaction"),
            body,
        }
    }

    /// Returns a request that has only this query, unless it is empty.
    pub(crate) fn of_query(query: &str) -> Self {
        Self {
            query: decoded(query),
            query_string: query.to_owned(),
            reads_query: !query.is_empty(),
            ..Self::default()
        }
    }

    /// Sets the parameters in the path.
    pub(crate) fn with_path(self, path: PathParameters) -> Self {
        Self { path, ..self }
    }

    /// Returns a request with this JSON as its body.
    pub(crate) fn of_body(body: &'static str) -> Self {
        Self { body: Some(Bytes::from_static(body.as_bytes())), ..Self::default() }
    }

    /// Returns a request with this parameter in its path.
    pub(crate) fn of_path(name: &'static str, value: &str) -> Self {
        Self::default().with_path(vec![(name, value.to_owned())])
    }

    /// Returns every fault of an error, with its location in this request.
    pub(crate) fn details(&self, error: &NodeError) -> Vec<ErrorDetail> {
        let echoing = |field| self.detail(field, message(error));
        match error {
            NodeError::Invalid(faults) | NodeError::RangeAboveHead { faults, .. } => {
                faults.iter().map(|fault| self.fault(fault)).collect()
            }
            NodeError::BlockNotFound { field, .. } | NodeError::StatePruned { field, .. } => vec![echoing(*field)],
            NodeError::FilterNotFound => vec![echoing(Field::FilterId)],
            NodeError::Control(error) => vec![echoing(error.field())],
            NodeError::UnknownAccount(_) => vec![echoing(Field::Property(Property::From))],
            NodeError::ExecutionFailed { fields, .. } => vec![self.of_transaction(fields, message(error))],
            NodeError::CallRefused(refusal) => vec![self.of_transaction(&refusal.fields(), message(error))],
            NodeError::ExecutionReverted { output, .. } => {
                vec![echoing(Field::Transaction).with_value(&Data(output.clone()))]
            }
            NodeError::TransactionRejected(rejection) => {
                let value = self.value_in_body("Data");
                let detail = |reason: &PoolError| match pool_message(reason) {
                    message if self.has_transaction => self.of_transaction(&reason.fields(), message),
                    message => ErrorDetail { location: "body.Data".to_owned(), message, value: value.clone() },
                };
                rejection.reasons.iter().map(detail).collect()
            }
            NodeError::TooManyFilterLogs { .. } | NodeError::LogsTooLarge { field: Field::FilterId, .. } => {
                let message = "create a narrower filter, or call getLogs for fewer blocks";
                vec![self.detail(Field::FilterId, message.to_owned())]
            }
            NodeError::TooManyLogs { to_block: Some(block), field, .. }
            | NodeError::LogsTooLarge { to_block: Some(block), field, .. } => {
                vec![self.detail(*field, format!("the logs up to ToBlock {block} would fit"))]
            }
            NodeError::TooManyLogs { to_block: None, field, .. }
            | NodeError::LogsTooLarge { to_block: None, field, .. } => {
                let message = "a single block holds too many; narrow the filter, or request pages with `Prefer: page`";
                vec![self.detail(*field, message.to_owned())]
            }
            NodeError::TooManyBlocks { to_block, field, .. } => {
                vec![self.detail(*field, format!("the blocks up to ToBlock {to_block} would fit"))]
            }
            // No other error is about a field.
            _ => Vec::new(),
        }
    }

    /// Returns faults in which those that have no value of their own have that of the whole part of the request.
    pub(crate) fn with_values(&self, faults: &[ErrorDetail]) -> Vec<ErrorDetail> {
        let complete = |fault: &ErrorDetail| match (&fault.value, fault.location.as_str()) {
            (None, "body") => ErrorDetail { value: self.in_body("").1, ..fault.clone() },
            (None, "query") => fault.clone().with_text(&self.query_string),
            _ => fault.clone(),
        };
        faults.iter().map(complete).collect()
    }

    fn fault(&self, fault: &Fault) -> ErrorDetail {
        self.detail(fault.field, options::fault_message(fault))
    }

    /// Returns a fault of a field. If the field was not sent, its location is the closest part that contains it.
    fn detail(&self, field: Field, message: String) -> ErrorDetail {
        let name = self.name(field);
        let text = |text: &str| Some(EchoedValue::shortened(&Value::from(text).to_string()));
        let (location, value) = if let Some(value) = self.in_path(&name) {
            (format!("path.{name}"), text(value))
        } else if field == Field::LastEventId
            && let Some(id) = &self.last_event_id
        {
            (format!("header.{LAST_EVENT_ID}"), text(id))
        } else if self.in_query(field) {
            match self.query.iter().find(|(known, _)| *known == name) {
                Some((_, value)) => (format!("query.{name}"), text(value)),
                None => ("query".to_owned(), text(&self.query_string)),
            }
        } else {
            self.in_body(&name)
        };
        ErrorDetail { location, message, value }
    }

    /// Returns a fault of an unsigned transaction: that of the first of `fields` that was sent, or otherwise that of
    /// the transaction.
    fn of_transaction(&self, fields: &[Field], message: String) -> ErrorDetail {
        let names = fields.iter().flat_map(|field| {
            let other = (*field == Field::Property(Property::Data)).then_some("Transaction.Input".into());
            [Some(self.name(*field)), other].into_iter().flatten()
        });
        let mut sent = names.filter_map(|name| {
            let json = self.property(&name).filter(|json| !matches!(*json, "null" | "\"\""))?;
            Some((format!("body.{name}"), EchoedValue::shortened(json)))
        });
        match sent.next() {
            Some((location, value)) => ErrorDetail { location, message, value: Some(value) },
            None => self.detail(Field::Transaction, message),
        }
    }

    /// Returns the name of a field: the path of a property in the body, such as `Transaction.From` or `Topics[1]`, or
    /// the name of a parameter. Empty for the request as a whole.
    fn name(&self, field: Field) -> Cow<'static, str> {
        match field {
            Field::Cursor if self.query.iter().any(|(name, _)| *name == field.path()) => field.path(),
            Field::Topic(position) if self.reads_query => format!("Topic{position}").into(),
            field => capitalized(&field.path()).into(),
        }
    }

    fn in_query(&self, field: Field) -> bool {
        self.reads_query || field == Field::Cursor
    }

    fn in_path(&self, name: &str) -> Option<&str> {
        self.path.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the location of a property of the object with the fields, or of the closest part of the body that
    /// contains it, and the value there. `path` has the form `Transaction.From` or `Topics[1]`, or is empty for the
    /// object.
    fn in_body(&self, path: &str) -> (String, Option<EchoedValue>) {
        let names = self.object.into_iter().chain(path.split('.').filter(|name| !name.is_empty()));
        let Some(mut json) = self.body.as_deref().and_then(|body| std::str::from_utf8(body).ok()) else {
            return (names.fold("body".to_owned(), |path, name| format!("{path}.{name}")), None);
        };
        let mut location = "body".to_owned();
        for part in names {
            let (name, index) = indexed(part);
            let Some(value) = member(json, name) else { break };
            (location, json) = (format!("{location}.{name}"), value);
            let Some(index) = index else { continue };
            let Some(value) = element(json, index) else { break };
            (location, json) = (format!("{location}[{index}]"), value);
        }
        (location, Some(EchoedValue::shortened(json.trim())))
    }

    /// Returns the value of a property, shortened to a string if it is long.
    fn value_in_body(&self, path: &str) -> Option<EchoedValue> {
        self.property(path).map(EchoedValue::shortened)
    }

    /// Returns the JSON text of a property of the object with the fields. `path` has the form `Transaction.From` or
    /// `Topics[1]`.
    fn property(&self, path: &str) -> Option<&str> {
        let mut json = std::str::from_utf8(self.body.as_deref()?).ok()?;
        for part in self.object.into_iter().chain(path.split('.')) {
            let (name, index) = indexed(part);
            json = member(json, name)?;
            if let Some(index) = index {
                json = element(json, index)?;
            }
        }
        Some(json)
    }
}

/// Returns the message of an error, in which the properties of a transaction have the names of this interface.
pub(crate) fn message(error: &NodeError) -> String {
    match error {
        NodeError::CallRefused(refusal) => refusal.text(property_name),
        NodeError::TransactionRejected(rejection) => {
            rejection.reasons.iter().map(pool_message).collect::<Vec<_>>().join("; ")
        }
        error => options::message(error),
    }
}

fn pool_message(reason: &PoolError) -> String {
    options::pool_message(reason, &reason.text(property_name))
}

fn property_name(property: Property) -> String {
    capitalized(property.name())
}

/// Returns a path with the first letter of each name in upper case.
fn capitalized(path: &str) -> String {
    let mut begins = true;
    let capital = |letter: char| {
        let letter = if begins { letter.to_ascii_uppercase() } else { letter };
        begins = letter == '.';
        letter
    };
    path.chars().map(capital).collect()
}

/// Separates the name of a property from the index in it.
fn indexed(part: &str) -> (&str, Option<usize>) {
    match part.strip_suffix(']').and_then(|part| part.split_once('[')) {
        Some((name, index)) => (name, index.parse().ok()),
        None => (part, None),
    }
}

/// Returns a property of a JSON object; of several with this name the first, as the decoder does.
fn member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let object: &'a RawValue = serde_json::from_str(json).ok()?;
    let mut found = None;
    Input::new(object, Location::Part("body")).properties(&mut Faults::default(), |known, value, _| {
        if known == name && found.is_none() {
            found = Some(value.get());
        }
    })?;
    found
}

/// Returns an element of a JSON array.
fn element(json: &str, index: usize) -> Option<&str> {
    serde_json::from_str::<Vec<&RawValue>>(json).ok()?.get(index).map(|element| element.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;
    use node_core::executor::TransactionError;
    use node_types::wire::{Decode, NewFilterInput};

    fn shown(sent: &Sent, field: Field) -> (String, Option<String>) {
        let detail = sent.detail(field, String::new());
        (detail.location, detail.value.map(|value| value.0.get().to_owned()))
    }

    #[test]
    fn finds_fields_in_the_body() {
        let body = r#"{"ToBlock": "0x99", "ToBlock": "0x98", "BlockCount": 7, "Topics": ["0x1", ["0x2"]], "Transaction": {"From": "0x3"}}"#;
        let request = TestRequest::post().to_http_request();
        let sent = Sent::new(&[], &request, Some(Bytes::from_static(body.as_bytes())));
        let cases = [
            (Field::ToBlock, "body.ToBlock", Some("\"0x99\"")),
            (Field::BlockCount, "body.BlockCount", Some("7")),
            (Field::Topic(0), "body.Topics[0]", Some("\"0x1\"")),
            (Field::Topic(1), "body.Topics[1]", Some("[\"0x2\"]")),
            (Field::Topic(2), "body.Topics", Some("[\"0x1\", [\"0x2\"]]")),
            (Field::Topics, "body.Topics", Some("[\"0x1\", [\"0x2\"]]")),
            (Field::Property(Property::From), "body.Transaction.From", Some("\"0x3\"")),
            (Field::FromBlock, "body", Some(body)),
            (Field::Cursor, "query", Some("\"\"")),
            (Field::Request, "body", Some(body)),
        ];
        for (field, location, value) in cases {
            assert_eq!(shown(&sent, field), (location.to_owned(), value.map(str::to_owned)), "{field:?}");
        }
    }

    #[test]
    fn finds_the_property_of_a_transaction_that_is_at_fault() {
        let cases = [
            (r#"{"Transaction": {"Gas": "100"}}"#, &[Property::Gas][..], "body.Transaction.Gas", Some(r#""100""#)),
            (
                r#"{"Transaction": {"GasPrice": 1}}"#,
                &[Property::MaxFeePerGas, Property::GasPrice],
                "body.Transaction.GasPrice",
                Some("1"),
            ),
            (
                r#"{"Transaction": {"Value": 1, "Input": 2}}"#,
                &[Property::Data, Property::Value],
                "body.Transaction.Input",
                Some("2"),
            ),
            (r#"{"Transaction": {"Value": ""}}"#, &[Property::Value], "body.Transaction", Some(r#"{"Value": ""}"#)),
            (r#"{"Transaction": {"Value": null}}"#, &[Property::Value], "body.Transaction", Some(r#"{"Value": null}"#)),
            (r#"{"Transaction": {"Value": 1}}"#, &[], "body.Transaction", Some(r#"{"Value": 1}"#)),
        ];
        for (body, properties, location, value) in cases {
            let fields = properties.iter().copied().map(Field::Property).collect();
            let error = NodeError::ExecutionFailed { reason: "no".to_owned(), limit: None, fields };
            let details = Sent::of_body(body).details(&error);
            let [detail] = &details[..] else { panic!("{details:?}") };
            let echoed = detail.value.as_ref().map(|value| value.0.get());
            assert_eq!((&detail.location[..], echoed), (location, value), "{body}");
        }
    }

    #[test]
    fn messages_have_the_names_of_this_interface() {
        let fee_cap = |price| TransactionError::FeeCapTooLow { price, cap: 1.into(), base_fee: 7 };
        let tip_cap = |cap| PoolError::TipTooLow { cap, tip: 0.into(), minimum: 1 };
        let underpriced =
            |cap| PoolError::ReplacementUnderpriced { cap, got: 1.into(), old: 2.into(), required: 3.into() };
        let cases = [
            (
                fee_cap(Property::MaxFeePerGas).into(),
                "max fee per gas less than block base fee: MaxFeePerGas: 1, baseFee: 7",
            ),
            (fee_cap(Property::GasPrice).into(), "max fee per gas less than block base fee: GasPrice: 1, baseFee: 7"),
            (
                TransactionError::TipAboveFeeCap { tip: 2.into(), cap: 1.into() }.into(),
                "max priority fee per gas higher than max fee per gas: MaxPriorityFeePerGas: 2, MaxFeePerGas: 1",
            ),
            (
                TransactionError::BlobFeeCapTooLow { cap: 0.into(), base_fee: 1.into() }.into(),
                "max fee per blob gas less than block blob gas fee: MaxFeePerBlobGas: 0, blobBaseFee: 1",
            ),
            (tip_cap(Property::GasPrice), "transaction underpriced: GasPrice 0, minimum needed 1"),
            (
                tip_cap(Property::MaxPriorityFeePerGas),
                "transaction underpriced: MaxPriorityFeePerGas 0, minimum needed 1",
            ),
            (
                underpriced(Property::GasPrice),
                "replacement transaction underpriced: GasPrice 1 does not replace 2 with the same nonce, at least 3 is needed",
            ),
            (
                underpriced(Property::MaxFeePerBlobGas),
                "replacement transaction underpriced: MaxFeePerBlobGas 1 does not replace 2 with the same nonce, at least 3 is \
                 needed",
            ),
        ];
        for (reason, expected) in cases {
            let details = |error: &NodeError| Sent::of_body(r#"{"Data": "0x02f865"}"#).details(error);
            if let PoolError::Invalid(refusal) = &reason {
                let error = NodeError::CallRefused(refusal.clone());
                assert_eq!((&*message(&error), &*details(&error)[0].message), (expected, expected));
            }
            let error = NodeError::TransactionRejected(reason.into());
            assert_eq!((&*message(&error), &*details(&error)[0].message), (expected, expected));
        }
    }

    #[test]
    fn shortens_long_lists() {
        let keys = vec!["\"0x1\""; 1_025].join(",");
        let body = Bytes::from(format!(r#"{{"StorageKeys": [{keys}]}}"#));
        let sent = Sent::new(&[], &TestRequest::post().to_http_request(), Some(body));
        let (_, value) = shown(&sent, Field::StorageKeys);
        let value: String = serde_json::from_str(&value.unwrap()).unwrap();
        assert!(value.starts_with(r#"["0x1","0x1""#) && value.ends_with('…'), "{value}");
    }

    #[test]
    fn finds_fields_of_a_filter() {
        let body = r#"{"FilterObject": {"FromBlock": "latest"}}"#;
        let request = TestRequest::post().to_http_request();
        let sent = Sent::new(NewFilterInput::PROPERTIES, &request, Some(Bytes::from_static(body.as_bytes())));
        let expected = ("body.FilterObject.FromBlock".to_owned(), Some("\"latest\"".to_owned()));
        assert_eq!(shown(&sent, Field::FromBlock), expected);
    }

    #[test]
    fn finds_fields_in_path_query_and_header() {
        let request = TestRequest::with_uri("/?Block%4Eumber=0x%31&Topic1=0x2&LastEventId=5").to_http_request();
        let sent = Sent::new(&[], &request, None).with_path(vec![("FilterId", "/7".to_owned())]);
        let cases = [
            (Field::BlockNumber, "query.BlockNumber", Some("\"0x1\"")),
            (Field::Topic(1), "query.Topic1", Some("\"0x2\"")),
            (Field::Address, "query", Some("\"Block%4Eumber=0x%31&Topic1=0x2&LastEventId=5\"")),
            (Field::FilterId, "path.FilterId", Some("\"/7\"")),
            (Field::LastEventId, "query.LastEventId", Some("\"5\"")),
        ];
        for (field, location, value) in cases {
            assert_eq!(shown(&sent, field), (location.to_owned(), value.map(str::to_owned)), "{field:?}");
        }
        let request = TestRequest::with_uri("/?LastEventId=5").insert_header((LAST_EVENT_ID, "6")).to_http_request();
        let sent = Sent::new(&[], &request, None);
        let expected = ("header.Last-Event-ID".to_owned(), Some("\"6\"".to_owned()));
        assert_eq!(shown(&sent, Field::LastEventId), expected);
    }
}
