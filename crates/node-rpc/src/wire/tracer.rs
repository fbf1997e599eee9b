//! Options of traces.

use super::{BlockOverrides, Hex, Object, StateOverrides};
use node_core::node::TraceOptions;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::value::RawValue;
use std::time::Duration;

/// The options of the debug_trace methods. Those of the tracer are interpreted by the executor.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceConfig {
    pub(crate) trace: TraceOptions,
    /// The options that only debug_traceCall uses.
    pub(crate) of_call: CallConfig,
}

/// The overrides of a traced call, and the index of the transaction before which it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallConfig {
    pub(crate) state_overrides: Option<StateOverrides>,
    pub(crate) block_overrides: Option<BlockOverrides>,
    pub(crate) index: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    timeout: Option<String>,
    state_overrides: Option<StateOverrides>,
    block_overrides: Option<BlockOverrides>,
    tx_index: Option<Hex<u64>>,
}

impl<'de> Deserialize<'de> for TraceConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(raw) = Option::<Box<RawValue>>::deserialize(deserializer)? else { return Ok(Self::default()) };
        let options = serde_json::from_str::<Object<Options>>(raw.get());
        let Object(Options { timeout, state_overrides, block_overrides, tx_index }) =
            options.map_err(|error| D::Error::custom(crate::error::plain(&error)))?;
        let timeout = timeout.as_deref().map(duration).transpose().map_err(D::Error::custom)?;
        let index = tx_index.map(|Hex(index)| index);
        Ok(Self {
            trace: TraceOptions { tracer: Some(raw.into()), timeout },
            of_call: CallConfig { state_overrides, block_overrides, index },
        })
    }
}

/// Parses a duration in the format of Go: numbers with units, as in `1m30s` or `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("timeout {text:?} is not a duration; expected numbers with the units h, m, s, ms, us or ns");
    let mut seconds = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let unit = match unit {
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" | "μs" => 1e-6,
            "ns" => 1e-9,
            _ => return Err(wrong()),
        };
        seconds += number.parse::<f64>().map_err(|_| wrong())? * unit;
        rest = tail;
    }
    if text.is_empty() {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_an_object_or_null() {
        let read = serde_json::from_str::<TraceConfig>;
        assert!(read("null").unwrap().trace.tracer.is_none());
        let options = r#"{"tracer":"callTracer","timeout":"5s","txIndex":"0x7"}"#;
        let got = read(options).unwrap();
        assert_eq!(got.trace.tracer.unwrap().get(), options);
        assert_eq!((got.trace.timeout, got.of_call.index), (Some(Duration::from_secs(5)), Some(7)));
        for (json, expected) in
            [(r#"{"timeout":"7"}"#, "timeout \"7\""), ("[]", "object"), ("\"callTracer\"", "object")]
        {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains(expected), "{json}: {error}");
        }
    }

    #[test]
    fn times_are_those_of_go() {
        for (text, expected) in [
            ("5s", Some(Duration::from_secs(5))),
            ("1m30s", Some(Duration::from_secs(90))),
            ("1.5h", Some(Duration::from_secs(5_400))),
            ("300ms", Some(Duration::from_millis(300))),
            ("0s", Some(Duration::ZERO)),
            ("", None),
            ("5", None),
            ("s", None),
            ("-5s", None),
            ("5d", None),
            ("1..5s", None),
            ("1e400s", None),
            ("99999999999999999999999h", None),
        ] {
            assert_eq!(duration(text).ok(), expected, "{text:?}");
        }
    }
}
