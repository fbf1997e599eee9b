//! Requests that ended: successful ones are counted, failures are shown.

use super::custom_errors;
use super::escape::escaped;
use crate::logging::EndedRequest;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;

/// The number of requests of each operation since it was last printed.
#[derive(Debug, Default)]
pub(super) struct RequestCounts(Mutex<BTreeMap<String, u64>>);

impl RequestCounts {
    /// Returns the numbers as one line and resets them, or returns `None` if there were no requests.
    pub(super) fn take(&self) -> Option<String> {
        let counts = std::mem::take(&mut *self.0.lock());
        let counts: Vec<_> = counts.iter().map(|(operation, count)| format!("{operation} {count}")).collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    }

    /// Counts a request that succeeded, or returns the failure.
    pub(super) fn count(&self, EndedRequest { operation, code, error }: EndedRequest) -> Option<Failed> {
        let Some(message) = error else {
            *self.0.lock().entry(operation).or_default() += 1;
            return None;
        };
        Some(Failed { operation, code, message })
    }
}

/// A request that failed.
pub(super) struct Failed {
    operation: String,
    code: i64,
    message: String,
}

impl Failed {
    /// Returns whether the `failure` of a call has the reason of this one. It may have arguments in addition.
    pub(super) fn is_explained_by(&self, failure: &str) -> bool {
        let reason = |text: &str| text.split('(').next().map(str::to_owned);
        reason(&escaped(&custom_errors::with_name(&self.message))) == reason(failure)
    }

    /// Returns the text without the reason.
    pub(super) fn without_reason(&self) -> String {
        escaped(&format!("{} failed ({})", self.operation, self.code))
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, code, message } = self;
        // The message may quote data that a contract returned, and the operation may be a path.
        let message = custom_errors::with_name(message);
        f.write_str(&escaped(&format!("{operation} failed: {message} ({code})")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_succeeds_and_reports_what_fails() {
        let mut failures = Vec::new();
        let counts = RequestCounts::default();
        for (operation, code, error) in [
            ("eth_call", 0, None),
            ("eth_chainId", 0, None),
            ("eth_call", 0, None),
            ("eth_call", 3, Some("execution reverted: a\nb")),
            ("GET /nothing", 404, Some("no such path")),
            ("eth_call", 3, Some("execution reverted: custom error 0x3ee5aeb5")),
        ] {
            let (operation, error) = (operation.to_owned(), error.map(str::to_owned));
            failures.extend(counts.count(EndedRequest { operation, code, error }));
        }
        assert_eq!(counts.take().as_deref(), Some("eth_call 2, eth_chainId 1"));
        assert_eq!(counts.take(), None);
        let expected = [
            r"eth_call failed: execution reverted: a\nb (3)",
            "GET /nothing failed: no such path (404)",
            "eth_call failed: execution reverted: ReentrancyGuardReentrantCall() (3)",
        ];
        assert_eq!(failures.iter().map(Failed::to_string).collect::<Vec<_>>(), expected);
        let [text, path, named] = &failures[..] else { panic!() };
        assert!(named.is_explained_by("execution reverted: ReentrancyGuardReentrantCall()"));
        assert!(text.is_explained_by(r"execution reverted: a\nb"));
        assert!(!text.is_explained_by("execution reverted: b") && !path.is_explained_by("execution reverted: b"));
        assert_eq!(named.without_reason(), "eth_call failed (3)");
    }
}
