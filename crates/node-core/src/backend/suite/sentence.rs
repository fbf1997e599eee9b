//! Failures as sentences: what was requested, what the backend returned, and what it should have returned.

use crate::backend::BackendError;
use std::fmt::{Debug, Display};
use std::panic::Location;

/// Of values whose text is longer, only the first difference is shown.
const SHORT: usize = 100;

/// Fails the test unless a request for `what` succeeded with `expected`.
#[track_caller]
pub(super) fn returns<T: PartialEq + Debug>(what: impl Display, got: Result<T, BackendError>, expected: T) {
    match got {
        Ok(got) => equals(what, got, expected),
        Err(error) => panic!("{what}: expected {}, the backend failed: {}", short(&expected), causes(&error)),
    }
}

/// Fails the test unless `got`, which the backend returned as `what`, is `expected`.
#[track_caller]
pub(super) fn equals<T: PartialEq + Debug>(what: impl Display, got: T, expected: T) {
    if got != expected {
        let (got, expected) = difference(&got, &expected);
        panic!("{what}: expected {expected}, the backend returned {got}");
    }
}

/// Fails the test unless `got` is an error for which `is_right` returns true. `expected` is the name of that error.
#[track_caller]
pub(super) fn fails<T>(
    what: impl Display,
    got: Result<T, BackendError>,
    expected: &str,
    is_right: impl FnOnce(&BackendError) -> bool,
) {
    match got {
        Err(error) if is_right(&error) => {}
        Err(error) => panic!("{what}: expected the error {expected}, the backend failed with: {}", causes(&error)),
        Ok(_) => panic!("{what}: expected the error {expected}, the backend succeeded"),
    }
}

/// Unwraps a value that the backend must have.
pub(super) trait Exists {
    /// The unwrapped value.
    type Output;

    /// Returns the value, or fails the test with a sentence saying that `what` is missing.
    fn exists(self, what: &str) -> Self::Output;
}

impl<T> Exists for Option<T> {
    type Output = T;

    #[track_caller]
    fn exists(self, what: &str) -> T {
        self.unwrap_or_else(|| panic!("{what}: expected one, the backend returned none"))
    }
}

/// Unwraps the result of an operation that must succeed.
pub(super) trait Succeeds {
    /// The result.
    type Output;

    /// Returns the result, or fails the test with the error.
    fn succeeds(self) -> Self::Output;
}

impl<T> Succeeds for Result<T, BackendError> {
    type Output = T;

    #[track_caller]
    fn succeeds(self) -> T {
        self.unwrap_or_else(|error| {
            panic!("a request that must succeed, in {}, failed: {}", Location::caller(), causes(&error))
        })
    }
}

/// Returns the message of an error, followed by those of its sources.
fn causes(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}

fn short(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns the text of both values if it is short, otherwise the first field in which they differ, preceded by the
/// path to that field.
fn difference<T: Debug>(got: &T, expected: &T) -> (String, String) {
    let [whole, right] = [got, expected].map(|value| format!("{value:?}"));
    if whole.len().min(right.len()) <= SHORT {
        return (short(got), short(expected));
    }
    let [got, expected] = [got, expected].map(|value| format!("{value:#?}"));
    let (got, expected): (Vec<_>, Vec<_>) = (got.lines().collect(), expected.lines().collect());
    let at = got.iter().zip(&expected).take_while(|(got, expected)| got == expected).count();
    let around = path(&expected, at);
    let show = |lines: &[&str]| {
        let line = lines.get(at).copied().unwrap_or("the end").trim().trim_end_matches([',', '{', '[', '(', ' ']);
        short_text(&format!("{around}{line}"))
    };
    (show(&got), show(&expected))
}

fn short_text(text: &str) -> String {
    text.chars().take(2 * SHORT).collect()
}

/// Returns the names of the fields that enclose line `at` of a value's indented text.
fn path(lines: &[&str], at: usize) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut names = Vec::new();
    let mut depth = lines.get(at).map_or(0, |line| indent(line));
    for line in lines[..at.min(lines.len())].iter().rev() {
        if indent(line) < depth {
            depth = indent(line);
            names.extend(line.trim().split_once(": ").map(|(name, _)| name));
        }
    }
    names.iter().rev().map(|name| format!("{name}.")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::suite::Random;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn sentence(check: impl FnOnce()) -> String {
        *catch_unwind(AssertUnwindSafe(check)).unwrap_err().downcast::<String>().unwrap()
    }

    #[test]
    fn short_values_are_shown_whole() {
        assert_eq!(sentence(|| returns("the balance", Ok(5), 7)), "the balance: expected 7, the backend returned 5");
        let text = sentence(|| returns("the balance", Err(BackendError::UnknownBlock(4)), 7));
        assert_eq!(text, "the balance: expected 7, the backend failed: block 4 is beyond the head");
        let text = sentence(|| fails("block 9", Ok(()), "UnknownBlock(9)", |_| false));
        assert_eq!(text, "block 9: expected the error UnknownBlock(9), the backend succeeded");
        let storage = BackendError::Storage("the disk is full".into());
        let text = sentence(|| fails("block 9", Err::<(), _>(storage), "UnknownBlock(9)", |_| false));
        assert!(text.ends_with("the backend failed with: storage failure: the disk is full"), "{text}");
        assert_eq!(
            sentence(|| drop(None::<String>.exists("a fork"))),
            "a fork: expected one, the backend returned none"
        );
    }

    #[test]
    fn long_values_are_shown_by_the_field_that_differs() {
        let chain = Random(1).chain(3);
        let block = chain.head();
        let mut other = (*block.header).clone();
        other.header.gas_limit = 7;
        let text = sentence(|| equals("the header", &other, &*block.header));
        assert_eq!(text, "the header: expected header.gas_limit: 30000000, the backend returned header.gas_limit: 7");
        let text = sentence(|| returns("the header", Ok(None), Some(&*block.header)));
        assert!(text.ends_with("the backend returned None") && text.len() < 300, "{text}");
        let text = sentence(|| equals("the receipts", Vec::new(), block.receipts.to_vec()));
        assert!(text.len() < 300, "{text}");
    }
}
