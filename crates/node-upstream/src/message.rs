//! JSON-RPC messages, and what the errors of providers mean.

use crate::bounded::UpTo;
use serde::de::{DeserializeSeed, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// Length of the part of an endpoint's message that is kept, in characters.
const MAX_TEXT: usize = 300;

/// The response to one request.
#[derive(Debug)]
pub(crate) enum Reply {
    Result(Box<RawValue>),
    Error(Fault),
    /// A batch had no response to the request.
    Missing,
}

/// An error that an endpoint returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) meaning: Meaning,
}

/// What follows from an error of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Too many requests. The same request can succeed later: after this time, if the endpoint stated it.
    TooFast(Option<Duration>),
    /// Too much was requested at once.
    TooLarge,
    /// The endpoint does not have the block, or it is not canonical.
    NotKnown,
    /// The endpoint does not have the state of the block any longer, or no proofs of it.
    StateGone,
    /// The call itself failed, as it would at any other endpoint.
    Failed,
    /// The endpoint does not accept the request.
    Refused,
}

impl Fault {
    fn new(code: i64, message: &str, data: Option<&RawValue>) -> Self {
        Self { code, message: clean(message), meaning: meaning(code, &message.to_ascii_lowercase(), data) }
    }

    /// Converts an HTTP status.
    pub(crate) fn of_status(status: u16) -> Self {
        let hint = match status {
            300..=399 => ", and redirects are not followed",
            401 | 403 => "; it may need a key in the URL or another header",
            _ => "",
        };
        Self { code: status.into(), message: format!("HTTP status {status}{hint}"), meaning: Meaning::Refused }
    }
}

/// Returns whether an error says that the endpoint does not have the state of a block any longer.
pub(crate) fn says_that_the_state_is_gone(code: i64, message: &str) -> bool {
    meaning(code, &message.to_ascii_lowercase(), None) == Meaning::StateGone
}

/// Returns what an error means. `text` is its message in lower case.
fn meaning(code: i64, text: &str, data: Option<&RawValue>) -> Meaning {
    let contains = |words: &[&str]| words.iter().any(|word| text.contains(word));
    // What the call does is in the message as well, which may contain any words.
    if code == 3 || text.starts_with("execution reverted") {
        return Meaning::Failed;
    }
    // The method does not exist.
    if code == -32601 {
        return Meaning::Refused;
    }
    // The code of Infura for a rate is also that of too many results.
    let large = ["too large", "too big", "too many results", "returned more than", "response size", "batch limit"];
    if contains(&large) || contains(&["too many storage", "too many keys", "too many slots", "batch size"]) {
        return Meaning::TooLarge;
    }
    let fast =
        ["rate limit", "rate exceeded", "too many requests", "credits limited", "request limit", "compute units"];
    if matches!(code, 429 | -32005) || contains(&fast) || (code == -32012 && contains(&["credits"])) {
        return Meaning::TooFast(data.and_then(stated_wait));
    }
    // geth adds what its database says: "missing trie node … state … is not available, not found".
    let missing = ["not found", "unknown block", "not canonical", "not currently canonical"];
    if contains(&missing) && !contains(&["missing trie node"]) {
        return Meaning::NotKnown;
    }
    // Of geth, reth and Erigon; of providers that have older states for others.
    let gone = ["missing trie node", "maximum proof window", "has been pruned", "due to pruning", "archive"];
    let without_state = ["not available", "unavailable", "no state available", "pruned", "is not kept"];
    if contains(&gone) || (text.contains("state") && contains(&without_state)) {
        return Meaning::StateGone;
    }
    if contains(&["is not available", "pruned"]) {
        return Meaning::NotKnown;
    }
    Meaning::Refused
}

/// Returns the time to wait that Infura states in its errors.
fn stated_wait(data: &RawValue) -> Option<Duration> {
    #[derive(Deserialize)]
    struct Data {
        rate: Rate,
    }

    #[derive(Deserialize)]
    struct Rate {
        backoff_seconds: f64,
    }

    let data: Data = serde_json::from_str(data.get()).ok()?;
    Duration::try_from_secs_f64(data.rate.backoff_seconds).ok()
}

/// Returns the beginning of a text of an endpoint without control characters.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(MAX_TEXT).collect()
}

/// Writes one request, or a batch whose ids are the positions of the requests.
pub(crate) fn requests<'a>(calls: impl ExactSizeIterator<Item = (&'a str, &'a str)>) -> String {
    let single = calls.len() == 1;
    let written: Vec<_> = calls.enumerate().map(|(id, (method, params))| request(id, method, params)).collect();
    if single { written.concat() } else { format!("[{}]", written.join(",")) }
}

fn request(id: usize, method: &str, params: &str) -> String {
    #[derive(Serialize)]
    struct Request<'a> {
        jsonrpc: &'a str,
        id: usize,
        method: &'a str,
    }

    let head = serde_json::to_string(&Request { jsonrpc: "2.0", id, method }).unwrap_or_default();
    let open = head.strip_suffix('}').unwrap_or_default();
    format!("{open},\"params\":{params}}}")
}

/// A message that is not a response to what was sent.
#[derive(Debug)]
pub(crate) enum Unexpected {
    /// Not JSON-RPC; the reason.
    Garbage(String),
    /// A single error in response to a batch.
    Batch(Fault),
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Distinguishes null from a missing field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Response<'_> {
    /// Returns the id if it is a number, or one as text.
    fn id(&self) -> Option<usize> {
        self.id?.get().trim_matches('"').parse().ok()
    }

    fn read(&self) -> Result<Reply, Unexpected> {
        match (self.error, self.result) {
            (Some(error), _) => Ok(Reply::Error(fault(error))),
            (None, Some(result)) => Ok(Reply::Result(result.to_owned())),
            (None, None) => Err(Unexpected::Garbage("a response has neither a result nor an error".to_owned())),
        }
    }
}

/// Reads an error object, or whatever else a server returned as an error.
fn fault(error: &RawValue) -> Fault {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(default)]
        code: i64,
        message: String,
        #[serde(borrow, default)]
        data: Option<&'a RawValue>,
    }

    match serde_json::from_str::<Object<'_>>(error.get()) {
        Ok(Object { code, message, data }) => Fault::new(code, &message, data),
        Err(_) => Fault::new(0, error.get(), None),
    }
}

/// Reads the responses to `count` requests that were sent together.
pub(crate) fn replies(body: &[u8], count: usize) -> Result<Vec<Reply>, Unexpected> {
    let garbage = |error: &dyn std::error::Error| Unexpected::Garbage(clean(&error.to_string()));
    // serde_json does not check the UTF-8 of skipped values in a slice.
    let text = str::from_utf8(body).map_err(|error| garbage(&error))?;
    if !text.trim_start().starts_with('[') {
        let response = serde_json::from_str::<Response<'_>>(text).map_err(|error| garbage(&error))?;
        // Without an id, it is an error about the message.
        if response.id().is_some_and(|id| id >= count) {
            return Err(Unexpected::Garbage("a response with an id that was not sent".to_owned()));
        }
        return match response.read()? {
            reply if count == 1 => Ok(vec![reply]),
            Reply::Error(fault) => Err(Unexpected::Batch(fault)),
            _ => Err(Unexpected::Garbage("a single result in response to a batch".to_owned())),
        };
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let responses = UpTo::<Response<'_>>::new(count).deserialize(&mut deserializer);
    let responses = responses.and_then(|responses| deserializer.end().map(|()| responses));
    let responses = responses.map_err(|error| garbage(&error))?;
    let mut replies: Vec<_> = (0..count).map(|_| Reply::Missing).collect();
    for response in &responses {
        match response.id().and_then(|id| replies.get_mut(id)) {
            Some(reply @ Reply::Missing) => *reply = response.read()?,
            Some(_) => return Err(Unexpected::Garbage("two responses with the same id".to_owned())),
            // An endpoint that refuses a whole batch may say so in a list of one error, without an id.
            None => match response.error {
                Some(error) if count > 1 => return Err(Unexpected::Batch(fault(error))),
                _ => return Err(Unexpected::Garbage("a response with an id that was not sent".to_owned())),
            },
        }
    }
    // geth reports that a batch is too long, or its response too large, in the response to one of its requests.
    Ok(replies)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning_of(code: i64, message: &str) -> Meaning {
        Fault::new(code, message, None).meaning
    }

    #[test]
    fn errors_of_providers_are_understood() {
        for (code, message, expected) in [
            (429, "Your app has exceeded its compute units per second capacity", Meaning::TooFast(None)),
            (-32005, "project ID request rate exceeded", Meaning::TooFast(None)),
            (-32007, "100/second request limit reached - reduce calls per second", Meaning::TooFast(None)),
            (-32005, "query returned more than 10000 results", Meaning::TooLarge),
            (-32600, "batch too large", Meaning::TooLarge),
            (-32003, "response too large", Meaning::TooLarge),
            (-32602, "too many keys: at most 1024 (`max-storage-keys`)", Meaning::TooLarge),
            (-32000, "header not found", Meaning::NotKnown),
            (-32000, "missing trie node 00ab (path ) state 0x00ab is not available", Meaning::StateGone),
            (-32000, "missing trie node 00ab (path ) state 0x00ab is not available, not found", Meaning::StateGone),
            (-32000, "historical state 00ab is not available", Meaning::StateGone),
            (-32000, "required historical state unavailable (reexec=128)", Meaning::StateGone),
            (-32603, "State at block #11052984 is pruned", Meaning::StateGone),
            (-32602, "distance to target block exceeds maximum proof window", Meaning::StateGone),
            (-32002, "No state available for block 0x3f9e", Meaning::StateGone),
            (-32000, "old data not available due to pruning", Meaning::StateGone),
            (-32701, "History has been pruned for this block", Meaning::StateGone),
            (-32000, "World state unavailable", Meaning::StateGone),
            (-32000, "the state as of block 3 is not kept; the earliest kept is that of block 9", Meaning::StateGone),
            (-32602, "Archive requests require a personal token", Meaning::StateGone),
            (-32000, "state histories haven't been fully indexed yet", Meaning::Refused),
            (-32000, "the block is not available", Meaning::NotKnown),
            (-32602, "BlockOutOfRangeError: block height is 9 but requested was 10", Meaning::Refused),
            (429, "missing trie node", Meaning::TooFast(None)),
            (-32000, "hash 0xab is not currently canonical", Meaning::NotKnown),
            (3, "execution reverted: too many requests", Meaning::Failed),
            (-32601, "the method eth_getProof does not exist/is not available", Meaning::Refused),
            (-1, "unable to load historical state", Meaning::Refused),
            (-32602, "invalid argument 2: hex string expected", Meaning::Refused),
        ] {
            assert_eq!(meaning_of(code, message), expected, "{code} {message}");
        }
        let data = RawValue::from_string(r#"{"rate": {"backoff_seconds": 1.5}}"#.to_owned()).unwrap();
        let fault = Fault::new(-32005, "slow down", Some(&data));
        assert_eq!(fault.meaning, Meaning::TooFast(Some(Duration::from_millis(1500))));
    }

    #[test]
    fn texts_of_endpoints_are_shortened() {
        let text = Fault::new(1, &format!("a\u{1b}[31m\n{}", "x".repeat(10_000)), None).message;
        assert_eq!(text.len(), MAX_TEXT);
        assert!(text.starts_with("a[31mxx"));
    }

    #[test]
    fn requests_are_written_alone_or_as_a_batch() {
        assert_eq!(
            requests([("eth_a", "[1]")].into_iter()),
            r#"{"jsonrpc":"2.0","id":0,"method":"eth_a","params":[1]}"#
        );
        let batch = requests([("a\"", "[]"), ("b", "[2]")].into_iter());
        let expected = r#"[{"jsonrpc":"2.0","id":0,"method":"a\"","params":[]},{"jsonrpc":"2.0","id":1,"method":"b","params":[2]}]"#;
        assert_eq!(batch, expected);
    }

    #[test]
    fn responses_are_matched_by_their_ids() {
        let body = br#"[{"id":1,"result":null},{"id":0,"error":{"code":3,"message":"execution reverted"}}]"#;
        let replies = replies(body, 3).unwrap();
        assert!(matches!(&replies[..], [Reply::Error(fault), Reply::Result(null), Reply::Missing]
            if fault.code == 3 && null.get() == "null"));
    }

    #[test]
    fn hostile_messages_are_garbage() {
        let deep = format!(r#"{{"id":0,"result":{}{}}}"#, "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert!(replies(deep.as_bytes(), 1).is_ok_and(|replies| matches!(&replies[..], [Reply::Result(_)])));
        let long = format!("[{}{{}}]", "{},".repeat(100_000));
        for body in [
            b"".as_slice(),
            b"<html>",
            b"\xff\xfe",
            b"{\"id\":0,\"result\":\"\xff\"}",
            b"{}",
            b"[{}]",
            b"null",
            b"3",
            br#"{"id":0,"result":1"#,
            br#"[{"id":7,"result":1}]"#,
            br#"[{"id":0,"result":1},{"id":0,"result":2}]"#,
            br#"{"id":0,"result":1}"#,
            long.as_bytes(),
        ] {
            assert!(matches!(replies(body, 2), Err(Unexpected::Garbage(_))), "{}", String::from_utf8_lossy(body));
        }
        let refused = br#"{"id":null,"error":{"code":-32600,"message":"batches are not supported"}}"#;
        assert!(matches!(replies(refused, 2), Err(Unexpected::Batch(_))));
        let text = br#"{"error":"unauthorized"}"#;
        assert!(matches!(&replies(text, 1).unwrap()[..], [Reply::Error(fault)] if fault.message == "\"unauthorized\""));
    }
}
