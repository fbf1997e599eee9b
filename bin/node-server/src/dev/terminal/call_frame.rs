//! The calls of a transaction, as geth's callTracer reports them.

use super::escape::escaped;
use super::{console_log, custom_errors, signatures};
use node_dev::Checksummed;
use node_evm::revert_reason;
use node_types::{Address, U256};
use serde_json::Value;
use std::fmt;

/// Maximum number of bytes of an output or of an event's data that are shown.
const MAX_SHOWN: usize = 256;

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
    logs: Vec<Event>,
}

/// An event that a call emitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Event {
    topics: Vec<Vec<u8>>,
    data: Vec<u8>,
    /// The number of calls that precede it.
    position: u64,
}

impl CallFrame {
    /// Reads the result of callTracer, or returns `None` if it is not one.
    pub(super) fn parse(json: &[u8]) -> Option<Self> {
        Self::read(&serde_json::from_slice(json).ok()?)
    }

    fn read(frame: &Value) -> Option<Self> {
        let text = |name: &str| frame.get(name).and_then(Value::as_str);
        let bytes = |name| frame.get(name).map(bytes).unwrap_or_default();
        let number = |name: &str| number(frame.get(name));
        let list = |name: &str| frame.get(name).and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            kind: text("type")?.to_owned(),
            to: text("to").and_then(|to| to.parse().ok()),
            value: number("value"),
            gas_used: number("gasUsed").try_into().unwrap_or(u64::MAX),
            input: bytes("input"),
            output: bytes("output"),
            error: text("error").map(str::to_owned),
            calls: list("calls").filter_map(Self::read).collect(),
            logs: list("logs").map(Event::read).collect(),
        })
    }

    /// Returns why the call failed, or `None` if it succeeded.
    pub(super) fn failure(&self) -> Option<String> {
        let error = self.error.as_deref()?;
        if let Some(named) = custom_errors::named(&self.output) {
            return Some(format!("{error}: {named}"));
        }
        Some(match revert_reason(&self.output) {
            Some(reason) => escaped(&format!("{error}: {reason}")),
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

    /// Returns the signature, if it is known, and the selector of the called function; `None` if there is none.
    pub(super) fn function(&self) -> Option<String> {
        let selector = self.input.get(..4).filter(|_| !self.kind.starts_with("CREATE"))?;
        let name = signatures::of(selector).map_or_else(String::new, |signature| format!("{signature} "));
        Some(format!("{name}{}", const_hex::encode_prefixed(selector)))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let indent = 4 + 2 * depth;
        write!(f, "{:indent$}{}", "", self.kind)?;
        if let Some(to) = self.to {
            write!(f, " {}", Checksummed(to))?;
        }
        match self.function() {
            _ if self.kind.starts_with("CREATE") => write!(f, ", {} bytes of init code", self.input.len())?,
            Some(function) => write!(f, " {function}, {} bytes", self.input.len())?,
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
        let mut logs = self.logs.iter().peekable();
        for (position, call) in (0..).zip(self.calls.iter().map(Some).chain([None])) {
            while let Some(log) = logs.next_if(|log| call.is_none() || log.position <= position) {
                writeln!(f, "{:indent$}  {log}", "")?;
            }
            match call {
                Some(call) if call.to != Some(console_log::ADDRESS) => call.write(f, depth + 1)?,
                _ => {}
            }
        }
        match &*self.output {
            // The reason of a failure is already shown above, and the output of a creation is the code.
            [] => Ok(()),
            _ if self.error.is_some() || self.kind.starts_with("CREATE") => Ok(()),
            output => writeln!(f, "{:indent$}  returns {}", "", shortened(output)),
        }
    }
}

impl Event {
    fn read(event: &Value) -> Self {
        let topics = event.get("topics").and_then(Value::as_array);
        Self {
            topics: topics.into_iter().flatten().map(bytes).collect(),
            data: event.get("data").map(bytes).unwrap_or_default(),
            position: number(event.get("position")).try_into().unwrap_or(u64::MAX),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "emits")?;
        let name = self.topics.first().and_then(|topic| signatures::of(topic));
        if let Some(name) = name {
            write!(f, " {name}")?;
        }
        // The first topic is the hash of the name.
        for topic in self.topics.iter().skip(usize::from(name.is_some())) {
            write!(f, " {}", const_hex::encode_prefixed(topic))?;
        }
        if self.data.is_empty() { Ok(()) } else { write!(f, " data {}", shortened(&self.data)) }
    }
}

/// Returns a hex number, or 0 if there is none.
fn number(hex: Option<&Value>) -> U256 {
    let hex = hex.and_then(Value::as_str).and_then(|hex| hex.strip_prefix("0x"));
    hex.and_then(|digits| U256::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

fn bytes(hex: &Value) -> Vec<u8> {
    hex.as_str().and_then(|hex| const_hex::decode(hex).ok()).unwrap_or_default()
}

/// Returns the beginning of long data in hex.
fn shortened(data: &[u8]) -> String {
    match data.get(..MAX_SHOWN) {
        Some(start) if data.len() > MAX_SHOWN => {
            format!("{}…, {} bytes", const_hex::encode_prefixed(start), data.len())
        }
        _ => const_hex::encode_prefixed(data),
    }
}

/// The call tree: a line for each call, each event and each output.
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
            {"type": "CREATE", "gasUsed": "0x9", "input": "0x6000", "error": "out of gas"},
            {"type": "CALL", "gasUsed": "0x1", "input": "0xa9059cbb00", "output": "0x01"}], "logs": [
            {"topics": ["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", "0x07"], "data": "0x", "position": "0x2"},
            {"topics": ["0xaa"], "data": "0x0b", "position": "0x3"}]}"#;
        let frame = CallFrame::parse(json.as_bytes()).unwrap();
        assert_eq!(frame.failure().unwrap(), "execution reverted: custom error 0xdeadbeef");
        assert_eq!(frame.console_lines(), [""]);
        let expected = "    CALL 0x00000000000000000000000000000000000000AA 0x01020304, 5 bytes, 1 wei, 21000 gas: \
                        execution reverted: custom error 0xdeadbeef\n      CREATE, 2 bytes of init code, 9 gas: out of gas\n      \
                        emits Transfer(address,address,uint256) 0x07\n      \
                        CALL transfer(address,uint256) 0xa9059cbb, 5 bytes, 1 gas\n        returns 0x01\n      \
                        emits 0xaa data 0x0b\n";
        assert_eq!(frame.to_string(), expected);
        assert_eq!(CallFrame::parse(b"{}"), None);
        assert_eq!(CallFrame::parse(b"no"), None);
    }
}
