//! The calls of a transaction, as geth's callTracer reports them.

use super::console_log;
use node_dev::Checksummed;
use node_evm::revert_reason;
use node_types::{Address, U256};
use serde_json::Value;
use std::fmt;

/// A call with the calls that it made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallFrame {
    kind: String,
    to: Option<Address>,
    value: U256,
    gas_used: u64,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Why it failed.
    error: Option<String>,
    calls: Vec<CallFrame>,
}

impl CallFrame {
    /// Reads the result of callTracer, or returns `None` if it is not one.
    pub(super) fn parse(json: &str) -> Option<Self> {
        Self::read(&serde_json::from_str(json).ok()?)
    }

    fn read(frame: &Value) -> Option<Self> {
        let text = |name: &str| frame.get(name).and_then(Value::as_str);
        let bytes = |name| text(name).and_then(|hex| const_hex::decode(hex).ok()).unwrap_or_default();
        let number = |name| text(name).and_then(|hex| U256::from_str_radix(hex.trim_start_matches("0x"), 16).ok());
        let calls = frame.get("calls").and_then(Value::as_array);
        Some(Self {
            kind: text("type")?.to_owned(),
            to: text("to").and_then(|to| to.parse().ok()),
            value: number("value").unwrap_or_default(),
            gas_used: number("gasUsed").unwrap_or_default().try_into().unwrap_or(u64::MAX),
            input: bytes("input"),
            output: bytes("output"),
            error: text("error").map(str::to_owned),
            calls: calls.into_iter().flatten().filter_map(Self::read).collect(),
        })
    }

    /// Returns why the call failed, or `None` if it succeeded.
    pub(super) fn failure(&self) -> Option<String> {
        let error = self.error.as_deref()?;
        Some(match revert_reason(&self.output) {
            Some(reason) => format!("{error}: {reason}"),
            None => error.to_owned(),
        })
    }

    /// Returns the lines that `console.log` printed, in order.
    pub(super) fn console_lines(&self) -> Vec<String> {
        if self.to == Some(console_log::ADDRESS) {
            return console_log::decode(&self.input).into_iter().collect();
        }
        self.calls.iter().flat_map(Self::console_lines).collect()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let indent = 4 + 2 * depth;
        write!(f, "{:indent$}{}", "", self.kind)?;
        if let Some(to) = self.to {
            write!(f, " {}", Checksummed(to))?;
        }
        match self.input.get(..4) {
            _ if self.kind.starts_with("CREATE") => write!(f, ", {} bytes of init code", self.input.len())?,
            Some(selector) => {
                write!(f, " {}, {} bytes", const_hex::encode_prefixed(selector), self.input.len())?;
            }
            None => {}
        }
        if !self.value.is_zero() {
            write!(f, ", {} wei", self.value)?;
        }
        write!(f, ", {} gas", self.gas_used)?;
        match self.failure() {
            Some(failure) => writeln!(f, ": {failure}")?,
            None => writeln!(f)?,
        }
        let visible = self.calls.iter().filter(|call| call.to != Some(console_log::ADDRESS));
        visible.into_iter().try_for_each(|call| call.write(f, depth + 1))
    }
}

/// The call tree, a line for each call.
impl fmt::Display for CallFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_calls_with_their_failures() {
        let json = r#"{"type": "CALL", "to": "0x00000000000000000000000000000000000000aa", "gasUsed": "0x5208", "value": "0x1",
            "input": "0x0102030405", "output": "0xdeadbeef", "error": "execution reverted", "calls": [
            {"type": "STATICCALL", "to": "0x000000000000000000636F6e736F6c652e6c6f67", "gasUsed": "0x0", "input": "0x51973ec9"},
            {"type": "CREATE", "gasUsed": "0x9", "input": "0x6000", "error": "out of gas"}]}"#;
        let frame = CallFrame::parse(json).unwrap();
        assert_eq!(frame.failure().unwrap(), "execution reverted: custom error 0xdeadbeef");
        assert_eq!(frame.console_lines(), [""]);
        let expected = "    CALL 0x00000000000000000000000000000000000000AA 0x01020304, 5 bytes, 1 wei, 21000 gas: \
                        execution reverted: custom error 0xdeadbeef\n      CREATE, 2 bytes of init code, 9 gas: out of gas\n";
        assert_eq!(frame.to_string(), expected);
        assert_eq!(CallFrame::parse("{}"), None);
        assert_eq!(CallFrame::parse("no"), None);
    }
}
