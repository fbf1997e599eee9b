//! The content of a request: the locations of its fields, and their values as they were written.

use crate::exchange::parameters::{self, PathParameters};
use actix_web::HttpRequest;
use actix_web::http::Method;
use actix_web::web::Bytes;
use node_core::node::{Fault, Field, NodeError, Property};
use node_core::pool::PoolError;
use node_rpc::options;
use node_types::wire::{Data, EchoedValue, ErrorDetail, Quantity};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

/// The header in which browsers send the id of the last event that they have received.
const LAST_EVENT_ID: &str = "Last-Event-ID";

/// The parameters and the body of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    /// Decoded parameters of the path.
    path: PathParameters,
    /// Decoded parameters of the query.
    query: Vec<(String, String)>,
    last_event_id: Option<String>,
    /// Whether the fields are in the query rather than in the body.
    reads_query: bool,
    /// The property of the body that contains the fields; `None` if the body itself does.
    object: Option<&'static str>,
    /// Whether the body has a transaction as an object.
    has_transaction: bool,
    body: Option<Bytes>,
}

impl Sent {
    /// Maximum length in bytes of a body that is kept so that errors can repeat its values.
    pub(crate) const SHORT_BODY: usize = 256 * 1024;

    /// Reads the content of a request whose body may have `properties`. `body` is its body, if it was read.
    pub(crate) fn new(properties: &'static [&'static str], request: &HttpRequest, body: Option<Bytes>) -> Self {
        let header = request.headers().get(LAST_EVENT_ID).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
        let query = request.query_string().split('&').filter_map(|pair| pair.split_once('='));
        Self {
            path: PathParameters::default(),
            query: query.map(|(name, value)| (name.to_owned(), parameters::decode_lossy(value, true))).collect(),
            last_event_id: header.filter(|id| !id.is_empty()),
            reads_query: matches!(*request.method(), Method::GET | Method::HEAD),
            object: properties.contains(&"FilterObject").then_some("FilterObject"),
            has_transaction: properties.contains(&"Transaction"),
            body,
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
        let plain = |field| ErrorDetail::new(self.location(field), options::message(error));
        let echoing = |field| self.detail(field, options::message(error));
        match error {
            NodeError::Invalid(faults) => faults.iter().map(|fault| self.fault(fault)).collect(),
            NodeError::BlockNotFound { field, .. } | NodeError::StatePruned { field, .. } => vec![echoing(*field)],
            NodeError::FilterNotFound => vec![echoing(Field::FilterId)],
            NodeError::Control(error) => vec![echoing(error.field())],
            NodeError::UnknownAccount(_) => vec![echoing(Field::Property(Property::From))],
            NodeError::ExecutionFailed { fields, .. } => vec![self.of_transaction(fields, options::message(error))],
            NodeError::ExecutionReverted { output, .. } => {
                vec![plain(Field::Transaction).with_value(&Data(output.clone()))]
            }
            NodeError::TransactionRejected(rejection) => {
                let value = self.property("Data").map(EchoedValue::shortened);
                let detail = |reason: &PoolError| match options::pool_message(reason) {
                    message if self.has_transaction => self.of_transaction(&reason.fields(), message),
                    message => ErrorDetail { location: "body.Data".to_owned(), message, value: value.clone() },
                };
                rejection.reasons.iter().map(detail).collect()
            }
            NodeError::TooManyLogs { to_block: Some(block), field, .. } => {
                let message = format!("the logs up to block {block} would fit");
                vec![ErrorDetail::new(self.location(*field), message).with_value(&Quantity(*block))]
            }
            NodeError::TooManyLogs { to_block: None, field, .. } => {
                let message = "a single block holds too many; narrow the filter, or request pages with `Prefer: page`";
                vec![ErrorDetail::new(self.location(*field), message)]
            }
            NodeError::TooManyBlocks { to_block, field, .. } => {
                let message = format!("the blocks up to {to_block} would fit");
                vec![ErrorDetail::new(self.location(*field), message).with_value(&Quantity(*to_block))]
            }
            NodeError::TooManyFilterLogs { .. } => {
                let message = "create a narrower filter, or call getLogs for fewer blocks";
                vec![ErrorDetail::new(self.location(Field::FilterId), message)]
            }
            // No other error is about a field.
            _ => Vec::new(),
        }
    }

    fn fault(&self, fault: &Fault) -> ErrorDetail {
        self.detail(fault.field, options::fault_message(fault))
    }

    fn detail(&self, field: Field, message: String) -> ErrorDetail {
        ErrorDetail { location: self.location(field), message, value: self.value(field) }
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
            None => ErrorDetail::new(self.location(Field::Transaction), message),
        }
    }

    /// Returns the location of a field, such as `body.Topics[1]`.
    fn location(&self, field: Field) -> String {
        let name = self.name(field);
        match (field, self.object) {
            _ if self.in_path(&name).is_some() => format!("path.{name}"),
            (Field::LastEventId, _) if self.last_event_id.is_some() => format!("header.{LAST_EVENT_ID}"),
            (Field::Request, None) => "body".to_owned(),
            (Field::Request, Some(object)) => format!("body.{object}"),
            _ if self.in_query(field) => format!("query.{name}"),
            (_, Some(object)) => format!("body.{object}.{name}"),
            _ => format!("body.{name}"),
        }
    }

    /// Returns the name of a field: the path of a property in the body, such as `Transaction.From` or `Topics[1]`, or
    /// the name of a parameter. Empty for the request as a whole.
    fn name(&self, field: Field) -> Cow<'static, str> {
        match field {
            Field::Cursor => field.path(),
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

    /// Returns the value of a field as it was sent, shortened to a string if it is long, or `None` if it was not
    /// sent.
    fn value(&self, field: Field) -> Option<EchoedValue> {
        let name = self.name(field);
        let text = |text: &str| EchoedValue::shortened(&Value::from(text).to_string());
        if let Some(value) = self.in_path(&name) {
            return Some(text(value));
        }
        if field == Field::LastEventId
            && let Some(id) = &self.last_event_id
        {
            return Some(text(id));
        }
        if self.in_query(field) {
            return self.query.iter().find(|(known, _)| *known == name).map(|(_, value)| text(value));
        }
        if field == Field::Request {
            return None;
        }
        self.property(&name).map(EchoedValue::shortened)
    }

    /// Returns the JSON text of a property of the object with the fields. `path` has the form `Transaction.From` or
    /// `Topics[1]`.
    fn property(&self, path: &str) -> Option<&str> {
        let mut json = std::str::from_utf8(self.body.as_deref()?).ok()?;
        for part in self.object.into_iter().chain(path.split('.')) {
            json = member(json, part)?;
        }
        Some(json)
    }
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

/// Returns the part of a JSON object that `part` specifies: a property, or with an index, an element of a property.
fn member<'a>(json: &'a str, part: &str) -> Option<&'a str> {
    let (name, index) = match part.strip_suffix(']').and_then(|part| part.split_once('[')) {
        Some((name, index)) => (name, Some(index.parse::<usize>().ok()?)),
        None => (part, None),
    };
    let properties: HashMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(json).ok()?;
    let value = properties.get(name)?.get();
    match index {
        Some(index) => serde_json::from_str::<Vec<&'a RawValue>>(value).ok()?.get(index).map(|element| element.get()),
        None => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;
    use node_types::wire::{Decode, NewFilterInput};

    fn shown(sent: &Sent, field: Field) -> (String, Option<String>) {
        let detail = sent.detail(field, String::new());
        (detail.location, detail.value.map(|value| value.0.get().to_owned()))
    }

    #[test]
    fn finds_fields_in_the_body() {
        let body =
            r#"{"ToBlock": "0x99", "BlockCount": 7, "Topics": ["0x1", ["0x2"]], "Transaction": {"From": "0x3"}}"#;
        let request = TestRequest::post().to_http_request();
        let sent = Sent::new(&[], &request, Some(Bytes::from_static(body.as_bytes())));
        let cases = [
            (Field::ToBlock, "body.ToBlock", Some("\"0x99\"")),
            (Field::BlockCount, "body.BlockCount", Some("7")),
            (Field::Topic(0), "body.Topics[0]", Some("\"0x1\"")),
            (Field::Topic(1), "body.Topics[1]", Some("[\"0x2\"]")),
            (Field::Topic(2), "body.Topics[2]", None),
            (Field::Topics, "body.Topics", Some("[\"0x1\", [\"0x2\"]]")),
            (Field::Property(Property::From), "body.Transaction.From", Some("\"0x3\"")),
            (Field::FromBlock, "body.FromBlock", None),
            (Field::Cursor, "query.cursor", None),
            (Field::Request, "body", None),
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
            (r#"{"Transaction": {"Value": ""}}"#, &[Property::Value], "body.Transaction", None),
            (r#"{"Transaction": {"Value": null}}"#, &[Property::Value], "body.Transaction", None),
            (r#"{"Transaction": {"Value": 1}}"#, &[], "body.Transaction", None),
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
        let request = TestRequest::with_uri("/?BlockNumber=0x%31&Topic1=0x2&LastEventId=5").to_http_request();
        let sent = Sent::new(&[], &request, None).with_path(vec![("FilterId", "/7".to_owned())]);
        let cases = [
            (Field::BlockNumber, "query.BlockNumber", Some("\"0x1\"")),
            (Field::Topic(1), "query.Topic1", Some("\"0x2\"")),
            (Field::Address, "query.Address", None),
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
