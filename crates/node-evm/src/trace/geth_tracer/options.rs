//! The options of geth's tracers.

use super::GethTracer;
use super::budget::Budget;
use crate::trace::tracer::TracerMap;
use alloy_rpc_types_trace::geth::{GethDebugBuiltInTracerType, GethDebugTracerType, GethDebugTracingOptions};
use revm_inspectors::tracing::DebugInspector;
use serde_json::Value;
use serde_json::value::RawValue;

/// The supported tracers.
const NAMES: [&str; 5] = ["callTracer", "prestateTracer", "4byteTracer", "flatCallTracer", "noopTracer"];

/// Maximum length of a tracer's name; a longer text is a JavaScript program.
const MAX_NAME: usize = 40;

impl GethTracer {
    /// Creates the tracer that geth's options request, which may record at most `max_bytes`. Unknown options are
    /// ignored. `own` are the custom tracers, which the error for an unknown tracer lists.
    pub(crate) fn new(options: Option<&RawValue>, max_bytes: u64, own: &TracerMap) -> Result<Self, String> {
        use GethDebugBuiltInTracerType::{CallTracer, FlatCallTracer, FourByteTracer, NoopTracer, PreStateTracer};
        let options = options.map(|options| serde_json::from_str::<GethDebugTracingOptions>(options.get()));
        let mut options =
            options.transpose().map_err(|error| format!("invalid trace options: {error}"))?.unwrap_or_default();
        // geth has no such options.
        (options.config.disable_memory, options.config.disable_return_data) = (None, None);
        options.config.limit = options.config.limit.filter(|limit| *limit != 0);
        let settings = &options.tracer_config.0;
        let setting = |name: &str| settings.get(name) == Some(&Value::Bool(true));
        let name = match &options.tracer {
            Some(GethDebugTracerType::BuiltInTracer(
                tracer @ (CallTracer | FlatCallTracer | FourByteTracer | NoopTracer | PreStateTracer),
            )) => {
                if *tracer == PreStateTracer && setting("includeEmpty") {
                    return Err("prestateTracer leaves out accounts that are empty: includeEmpty cannot be true".into());
                }
                GethDebugTracerType::from(*tracer).as_str().to_owned()
            }
            None => String::new(),
            Some(GethDebugTracerType::JsTracer(name)) if name.is_empty() => String::new(),
            Some(tracer) => {
                let name = tracer.as_str();
                let names: Vec<_> = own.keys().map(String::as_str).chain(NAMES).collect();
                let names = names.join(", ");
                return Err(if name.len() > MAX_NAME || name.contains(['{', '(', ' ']) {
                    format!("JavaScript tracers are not supported; available tracers: {names}")
                } else {
                    format!("unknown tracer {name:?}; available: {names}")
                });
            }
        };
        let invalid = || format!("tracerConfig of {name} must be an object with settings of that tracer");
        if !name.is_empty() && !settings.is_null() && !settings.is_object() {
            return Err(invalid());
        }
        let parity_errors = setting("convertParityErrors");
        let inspector = DebugInspector::new(options).map_err(|_| invalid())?;
        let budget = Budget::new(&inspector, max_bytes);
        Ok(Self {
            inspector,
            parity_errors,
            budget,
            frames: Vec::new(),
            touched: None,
            destroyed: None,
            undefined: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracer(options: &str) -> Result<GethTracer, String> {
        GethTracer::new(Some(&RawValue::from_string(options.to_owned()).unwrap()), u64::MAX, &TracerMap::new())
    }

    #[test]
    fn options_choose_a_tracer_and_its_settings() {
        let struct_logs = |options: &str| match tracer(options).unwrap().inspector {
            DebugInspector::Default(_, options) => options,
            other => panic!("{options}: {other:?}"),
        };
        for options in [
            "{}",
            r#"{"tracer":"","tracerConfig":7,"reexec":128}"#,
            r#"{"tracer":null,"limit":0,"enableMemory":null,"disableMemory":false}"#,
        ] {
            let got = struct_logs(options);
            assert!(got.limit.is_none() && !got.is_memory_enabled() && got.is_stack_enabled(), "{options}");
        }
        let got = struct_logs(r#"{"enableMemory":true,"disableStack":true,"limit":7}"#);
        assert!(got.limit == Some(7) && got.is_memory_enabled() && !got.is_stack_enabled());
        let calls = tracer(r#"{"tracer":"callTracer","tracerConfig":{"onlyTopCall":true,"other":1}}"#).unwrap();
        let DebugInspector::CallTracer(_, config) = calls.inspector else { panic!("{:?}", calls.inspector) };
        assert_eq!((config.only_top_call, config.with_log), (Some(true), None));
        for (options, parity_errors) in [
            (r#"{"tracer":"flatCallTracer","tracerConfig":null}"#, false),
            (r#"{"tracer":"flatCallTracer","tracerConfig":{"convertParityErrors":true}}"#, true),
        ] {
            let flat = tracer(options).unwrap();
            assert!(matches!(flat.inspector, DebugInspector::FlatCallTracer(_)), "{options}");
            assert_eq!(flat.parity_errors, parity_errors, "{options}");
        }
    }

    #[test]
    fn refuses_what_it_does_not_run() {
        let cases = [
            (r#"{"tracer":"muxTracer"}"#, "unknown tracer \"muxTracer\""),
            (r#"{"tracer":"myTracer"}"#, "unknown tracer \"myTracer\""),
            (r#"{"tracer":"{step: function() {}, fault: function() {}, result: function() {}}"}"#, "JavaScript"),
            (r#"{"tracer":"callTracer","tracerConfig":[]}"#, "tracerConfig of callTracer"),
            (r#"{"tracer":"callTracer","tracerConfig":{"withLog":"yes"}}"#, "tracerConfig of callTracer"),
            (r#"{"tracer":"prestateTracer","tracerConfig":{"includeEmpty":true}}"#, "includeEmpty"),
            (r#"{"tracer":7}"#, "invalid trace options"),
            (r#"{"enableMemory":"true"}"#, "expected a boolean"),
        ];
        for (options, expected) in cases {
            let error = tracer(options).err().unwrap();
            assert!(error.contains(expected), "{options}: {error}");
        }
    }
}
