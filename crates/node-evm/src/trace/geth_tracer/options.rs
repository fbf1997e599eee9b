//! The options of geth's tracers.

use super::budget::Budget;
use super::calls::CallTree;
use super::erc7562::Erc7562;
use super::flat_calls::{FlatCalls, FlatOptions, Style};
use super::mux::Mux;
use super::prestate::{Prestate, PrestateOptions};
use super::recorder::Recorder;
use super::selectors::Selectors;
use super::struct_logs::{StructLogOptions, StructLogs};
use super::{GethTracer, Nothing};
use crate::trace::tracer::TracerMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The supported tracers.
const NAMES: [&str; 8] = [
    "callTracer",
    "prestateTracer",
    "4byteTracer",
    "flatCallTracer",
    "erc7562Tracer",
    "muxTracer",
    "noopTracer",
    "openEthereumTracer",
];

/// Maximum length of a tracer's name; a longer text is a JavaScript program.
const MAX_NAME: usize = 40;

/// Maximum number of tracers in a muxTracer, and how deep these may be nested.
const MAX_TRACERS: usize = 16;
const MAX_DEPTH: usize = 4;

/// The options of a request. Unknown ones are ignored.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Options {
    tracer: Option<String>,
    tracer_config: Option<Box<RawValue>>,
    enable_memory: Option<bool>,
    disable_stack: Option<bool>,
    disable_storage: Option<bool>,
    enable_return_data: Option<bool>,
    limit: Option<u64>,
}

impl GethTracer {
    /// Creates the tracer that geth's options request, which may record at most `max_bytes`. `own` are the custom
    /// tracers, which the error for an unknown tracer lists.
    pub(crate) fn new(options: Option<&RawValue>, max_bytes: u64, own: &TracerMap) -> Result<Self, String> {
        let options = options.map(|options| serde_json::from_str::<Option<Options>>(options.get()));
        let options = options.transpose().map_err(|error| format!("invalid trace options: {error}"))?;
        let options = options.flatten().unwrap_or_default();
        let name = options.tracer.as_deref().filter(|name| !name.is_empty());
        let recorder = match name {
            Some(name) => recorder(name, options.tracer_config.as_deref(), own, 0)?,
            None => Box::new(StructLogs::new(StructLogOptions {
                memory: options.enable_memory.unwrap_or_default(),
                stack: !options.disable_stack.unwrap_or_default(),
                storage: !options.disable_storage.unwrap_or_default(),
                return_data: options.enable_return_data.unwrap_or_default(),
                limit: options.limit.filter(|limit| *limit != 0).and_then(|limit| usize::try_from(limit).ok()),
            })),
        };
        Ok(Self { recorder, budget: Budget::new(max_bytes), frames: Vec::new(), destroyed: None })
    }
}

/// Creates a tracer by its name. `depth` is the number of muxTracers around it.
fn recorder(name: &str, config: Option<&RawValue>, own: &TracerMap, depth: usize) -> Result<Box<dyn Recorder>, String> {
    Ok(match name {
        "callTracer" => Box::new(CallTree::new(parse(name, config)?)),
        "flatCallTracer" => Box::new(FlatCalls::new(Style::Geth(parse::<FlatOptions>(name, config)?))),
        "openEthereumTracer" => Box::new(FlatCalls::new(Style::OpenEthereum)),
        "prestateTracer" => {
            let options: PrestateOptions = parse(name, config)?;
            if options.diff_mode && options.include_empty {
                return Err("prestateTracer: diffMode and includeEmpty exclude each other".into());
            }
            Box::new(Prestate::new(options))
        }
        "4byteTracer" => Box::new(Selectors::default()),
        "erc7562Tracer" => Box::new(Erc7562::new(&parse(name, config)?)?),
        "muxTracer" => {
            let configs: BTreeMap<String, Box<RawValue>> = parse(name, config)?;
            if configs.len() > MAX_TRACERS || depth >= MAX_DEPTH {
                return Err(format!(
                    "muxTracer may contain {MAX_TRACERS} tracers, and other muxTracers up to a depth of {MAX_DEPTH}"
                ));
            }
            let tracers = configs.into_iter().map(|(inner, config)| {
                let recorder = recorder(&inner, Some(&config), own, depth + 1)?;
                Ok((inner, recorder))
            });
            Box::new(Mux(tracers.collect::<Result<_, String>>()?))
        }
        "noopTracer" => Box::new(Nothing),
        name => return Err(unknown(name, own)),
    })
}

/// Parses the configuration of a tracer: an object, or the default if it is absent or null.
fn parse<T: DeserializeOwned + Default>(name: &str, config: Option<&RawValue>) -> Result<T, String> {
    let invalid = || format!("tracerConfig of {name} must be an object with settings of that tracer");
    let Some(config) = config.map(RawValue::get).filter(|config| *config != "null") else { return Ok(T::default()) };
    if !config.starts_with('{') {
        return Err(invalid());
    }
    serde_json::from_str(config).map_err(|error| format!("{}: {error}", invalid()))
}

fn unknown(name: &str, own: &TracerMap) -> String {
    let names: Vec<_> = own.keys().map(String::as_str).chain(NAMES).collect();
    let names = names.join(", ");
    if name.len() > MAX_NAME || name.contains(['{', '(', ' ']) {
        format!("JavaScript tracers are not supported; available tracers: {names}")
    } else {
        format!("unknown tracer {name:?}; available: {names}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracer(options: &str) -> Result<GethTracer, String> {
        GethTracer::new(Some(&RawValue::from_string(options.to_owned()).unwrap()), u64::MAX, &TracerMap::new())
    }

    #[test]
    fn options_are_those_of_geth() {
        for options in [
            "null",
            "{}",
            r#"{"tracer":"","tracerConfig":7,"reexec":128}"#,
            r#"{"tracer":null,"limit":0,"enableMemory":null,"disableMemory":false}"#,
            r#"{"enableMemory":true,"disableStack":true,"limit":7}"#,
            r#"{"tracer":"callTracer","tracerConfig":{"onlyTopCall":true,"other":1}}"#,
            r#"{"tracer":"flatCallTracer","tracerConfig":null}"#,
            r#"{"tracer":"flatCallTracer","tracerConfig":{"convertParityErrors":true}}"#,
            r#"{"tracer":"erc7562Tracer","tracerConfig":{"ignoredOpcodes":["0x1","0xfe"]}}"#,
            r#"{"tracer":"muxTracer","tracerConfig":{"callTracer":{"withLog":true},"muxTracer":{"noopTracer":null}}}"#,
        ] {
            assert!(tracer(options).is_ok(), "{options}");
        }
    }

    #[test]
    fn refuses_what_it_does_not_run() {
        let cases = [
            (r#"{"tracer":"muxTracer","tracerConfig":{"nextTracer":{}}}"#, "unknown tracer \"nextTracer\""),
            (r#"{"tracer":"erc7562Tracer","tracerConfig":{"ignoredOpcodes":["0x100"]}}"#, "0x100"),
            (r#"{"tracer":"myTracer"}"#, "unknown tracer \"myTracer\""),
            (r#"{"tracer":"{step: function() {}, fault: function() {}, result: function() {}}"}"#, "JavaScript"),
            (r#"{"tracer":"callTracer","tracerConfig":[]}"#, "tracerConfig of callTracer"),
            (r#"{"tracer":"callTracer","tracerConfig":{"withLog":"yes"}}"#, "tracerConfig of callTracer"),
            (r#"{"tracer":"prestateTracer","tracerConfig":{"includeEmpty":true,"diffMode":true}}"#, "includeEmpty"),
            (r#"{"tracer":7}"#, "invalid trace options"),
            (r#"{"enableMemory":"true"}"#, "expected a boolean"),
        ];
        for (options, expected) in cases {
            let error = tracer(options).err().unwrap();
            assert!(error.contains(expected), "{options}: {error}");
        }
    }
}
