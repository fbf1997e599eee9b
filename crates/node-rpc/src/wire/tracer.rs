//! Options of traces.

use super::{BlockOverrides, Hex, Object, StateOverrides};
use node_core::node::TraceOptions;
use node_core::trace::{StructLogs, Tracer};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde_json::value::RawValue;
use std::time::Duration;

/// The supported tracers, for the error about an unknown one.
const NAMES: &str = "callTracer, prestateTracer, 4byteTracer, flatCallTracer, noopTracer";

/// Longest name of a tracer; a longer text is a JavaScript program.
const MAX_NAME: usize = 40;

/// The options of the debug_trace methods. `reexec` is ignored, as every state is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceConfig(pub(crate) TraceOptions);

impl Default for TraceConfig {
    fn default() -> Self {
        Self(TraceOptions { tracer: Tracer::StructLogs(StructLogs::default()), timeout: None })
    }
}

/// The options of debug_traceCall: those of the other methods, with overrides and the position in the block.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceCallConfig {
    pub(crate) trace: TraceConfig,
    pub(crate) state_overrides: Option<StateOverrides>,
    pub(crate) block_overrides: Option<BlockOverrides>,
    pub(crate) index: Option<Hex<u64>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OfCall {
    state_overrides: Option<StateOverrides>,
    block_overrides: Option<BlockOverrides>,
    tx_index: Option<Hex<u64>>,
}

impl<'de> Deserialize<'de> for TraceCallConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Decodes one object twice: each type ignores the fields of the other.
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let wrong = |error| D::Error::custom(crate::message::plain(&error));
        let trace = serde_json::from_str(raw.get()).map_err(wrong)?;
        let of_call = serde_json::from_str::<Option<Object<OfCall>>>(raw.get()).map_err(wrong)?;
        let OfCall { state_overrides, block_overrides, tx_index: index } =
            of_call.map(|Object(of_call)| of_call).unwrap_or_default();
        Ok(Self { trace, state_overrides, block_overrides, index })
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Options {
    tracer: Option<String>,
    tracer_config: Option<Box<RawValue>>,
    timeout: Option<String>,
    enable_memory: Option<bool>,
    disable_stack: Option<bool>,
    disable_storage: Option<bool>,
    enable_return_data: Option<bool>,
    limit: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CallOptions {
    only_top_call: Option<bool>,
    with_log: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FlatCallOptions {
    include_precompiles: Option<bool>,
    convert_parity_errors: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PrestateOptions {
    diff_mode: Option<bool>,
    disable_code: Option<bool>,
    disable_storage: Option<bool>,
    include_empty: Option<bool>,
}

impl<'de> Deserialize<'de> for TraceConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let options =
            Option::<Object<Options>>::deserialize(deserializer)?.map(|Object(options)| options).unwrap_or_default();
        read(options).map(Self).map_err(D::Error::custom)
    }
}

fn read(options: Options) -> Result<TraceOptions, String> {
    let timeout = options.timeout.as_deref().map(duration).transpose()?;
    let tracer = match options.tracer.as_deref() {
        None | Some("") => Tracer::StructLogs(StructLogs {
            enable_memory: options.enable_memory.unwrap_or(false),
            disable_stack: options.disable_stack.unwrap_or(false),
            disable_storage: options.disable_storage.unwrap_or(false),
            enable_return_data: options.enable_return_data.unwrap_or(false),
            limit: options.limit.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0),
        }),
        Some(name) => named(name, options.tracer_config.as_deref())?,
    };
    Ok(TraceOptions { tracer, timeout })
}

/// Returns the tracer with this name and these settings.
fn named(name: &str, config: Option<&RawValue>) -> Result<Tracer, String> {
    Ok(match name {
        "callTracer" => {
            let CallOptions { only_top_call, with_log } = settings(name, config)?;
            Tracer::Calls { only_top_call: only_top_call.unwrap_or(false), with_log: with_log.unwrap_or(false) }
        }
        "flatCallTracer" => {
            let FlatCallOptions { include_precompiles, convert_parity_errors } = settings(name, config)?;
            Tracer::FlatCalls {
                include_precompiles: include_precompiles.unwrap_or(false),
                parity_errors: convert_parity_errors.unwrap_or(false),
            }
        }
        "prestateTracer" => {
            let PrestateOptions { diff_mode, disable_code, disable_storage, include_empty } = settings(name, config)?;
            if include_empty == Some(true) {
                return Err("prestateTracer leaves out accounts that are empty: includeEmpty cannot be true".into());
            }
            Tracer::Prestate {
                diff_mode: diff_mode.unwrap_or(false),
                disable_code: disable_code.unwrap_or(false),
                disable_storage: disable_storage.unwrap_or(false),
            }
        }
        "4byteTracer" => Tracer::FourByte,
        "noopTracer" => Tracer::Noop,
        program if program.len() > MAX_NAME || program.contains(['{', '(', ' ']) => {
            return Err(format!("tracers in JavaScript are not run; there are {NAMES}"));
        }
        name => return Err(format!("there is no tracer {name:?}; there are {NAMES}")),
    })
}

fn settings<T: DeserializeOwned + Default>(name: &str, config: Option<&RawValue>) -> Result<T, String> {
    let Some(config) = config else { return Ok(T::default()) };
    let read = serde_json::from_str::<Option<Object<T>>>(config.get());
    read.map(|settings| settings.map(|Object(settings)| settings).unwrap_or_default())
        .map_err(|error| format!("tracerConfig of {name}: {}", crate::message::plain(&error)))
}

/// Parses a duration in the format of Go: numbers with units, as in `1m30s` or `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("timeout {text:?} is no time; write numbers with the units h, m, s, ms, us or ns");
    let mut seconds = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, behind) = rest.split_at(digits);
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
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
        rest = behind;
    }
    if text.is_empty() {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<TraceOptions, String> {
        serde_json::from_str::<TraceConfig>(json).map(|config| config.0).map_err(|error| error.to_string())
    }

    #[test]
    fn tracers_have_names() {
        let bare = StructLogs::default();
        let cases = [
            ("null", Tracer::StructLogs(bare)),
            ("{}", Tracer::StructLogs(bare)),
            (r#"{"tracer":"","reexec":128}"#, Tracer::StructLogs(bare)),
            (
                r#"{"enableMemory":true,"disableStack":true,"disableStorage":true,"enableReturnData":true,"limit":7}"#,
                Tracer::StructLogs(StructLogs {
                    enable_memory: true,
                    disable_stack: true,
                    disable_storage: true,
                    enable_return_data: true,
                    limit: Some(7),
                }),
            ),
            (r#"{"limit":0,"enableMemory":null}"#, Tracer::StructLogs(bare)),
            (r#"{"tracer":"callTracer"}"#, Tracer::Calls { only_top_call: false, with_log: false }),
            (
                r#"{"tracer":"callTracer","tracerConfig":{"onlyTopCall":true,"withLog":true,"other":1}}"#,
                Tracer::Calls { only_top_call: true, with_log: true },
            ),
            (
                r#"{"tracer":"flatCallTracer","tracerConfig":null}"#,
                Tracer::FlatCalls { include_precompiles: false, parity_errors: false },
            ),
            (
                r#"{"tracer":"flatCallTracer","tracerConfig":{"includePrecompiles":true,"convertParityErrors":true}}"#,
                Tracer::FlatCalls { include_precompiles: true, parity_errors: true },
            ),
            (
                r#"{"tracer":"prestateTracer","tracerConfig":{"diffMode":true,"disableCode":true,"disableStorage":true}}"#,
                Tracer::Prestate { diff_mode: true, disable_code: true, disable_storage: true },
            ),
            (r#"{"tracer":"4byteTracer"}"#, Tracer::FourByte),
            (r#"{"tracer":"noopTracer","tracerConfig":{}}"#, Tracer::Noop),
        ];
        for (json, tracer) in cases {
            assert_eq!(read(json), Ok(TraceOptions { tracer, timeout: None }), "{json}");
        }
    }

    #[test]
    fn what_is_not_run_says_why() {
        let cases = [
            (r#"{"tracer":"muxTracer"}"#, "there is no tracer \"muxTracer\""),
            (r#"{"tracer":"{step: function() {}, fault: function() {}, result: function() {}}"}"#, "JavaScript"),
            (r#"{"tracer":"callTracer","tracerConfig":[]}"#, "tracerConfig of callTracer"),
            (r#"{"tracer":"callTracer","tracerConfig":{"withLog":"yes"}}"#, "tracerConfig of callTracer"),
            (r#"{"tracer":"prestateTracer","tracerConfig":{"includeEmpty":true}}"#, "includeEmpty"),
            (r#"{"tracer":7}"#, "expected a string"),
            (r#"{"timeout":"7"}"#, "timeout \"7\""),
            (r#"{"enableMemory":"true"}"#, "expected a boolean"),
            ("[]", ""),
            ("\"callTracer\"", ""),
        ];
        for (json, expected) in cases {
            let error = read(json).unwrap_err();
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
