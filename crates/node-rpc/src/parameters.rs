//! Positional parameters.

use crate::error::{RpcError, plain};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// The parameters of a method, as a tuple of their types.
pub trait Parameters: Sized {
    const COUNT: usize;

    /// Decodes the parameters. The first `required` ones must be present; other missing ones are decoded as null.
    ///
    /// # Errors
    /// [`RpcError::INVALID_PARAMS`] if one has the wrong type, or a required one is missing.
    fn read(arguments: &[&RawValue], required: usize) -> Result<Self, RpcError>;
}

/// Decodes the parameters of a method from an array, null, or nothing.
pub(crate) fn read<P: Parameters>(raw: Option<&RawValue>, required: usize) -> Result<P, RpcError> {
    P::read(&arguments(raw, P::COUNT)?, required)
}

/// Returns the parameter at `index` of the JSON `parameters`, or `None` if it is missing or has another type.
pub(crate) fn nth<T: DeserializeOwned>(parameters: &str, index: usize) -> Option<T> {
    let parameters: Vec<&RawValue> = serde_json::from_str(parameters).ok()?;
    serde_json::from_str(parameters.get(index)?.get()).ok()
}

/// Returns whether one of the JSON `parameters` is the tag `pending`, or an object in which a member is.
pub(crate) fn is_pending(parameters: &str) -> bool {
    let is_tag = |json: &RawValue| serde_json::from_str::<String>(json.get()).is_ok_and(|text| text == "pending");
    let names_it = |object: HashMap<String, &RawValue>| object.into_values().any(is_tag);
    // Nearly always false. Escapes may spell the tag differently.
    (parameters.contains("pending") || parameters.contains('\\'))
        && serde_json::from_str(parameters).is_ok_and(|parameters: Vec<&RawValue>| {
            let is_pending =
                |parameter: &&RawValue| is_tag(parameter) || serde_json::from_str(parameter.get()).is_ok_and(names_it);
            parameters.iter().any(is_pending)
        })
}

/// Splits an array into at most `count` elements. Without a type parameter, so that it is compiled once and not once
/// per method.
fn arguments(raw: Option<&RawValue>, count: usize) -> Result<Vec<&RawValue>, RpcError> {
    let text = raw.map_or("[]", RawValue::get);
    let text = if text == "null" { "[]" } else { text };
    if !text.starts_with('[') {
        return Err(RpcError::new(RpcError::INVALID_PARAMS, "non-array args"));
    }
    let invalid = |error| RpcError::new(RpcError::INVALID_PARAMS, plain(&error));
    let arguments: Vec<&RawValue> = serde_json::from_str(text).map_err(invalid)?;
    if arguments.len() > count {
        let message = format!("too many arguments, want at most {count}");
        return Err(RpcError::new(RpcError::INVALID_PARAMS, message));
    }
    Ok(arguments)
}

/// Decodes the parameter at `position`.
fn argument<T: DeserializeOwned>(arguments: &[&RawValue], position: usize, required: usize) -> Result<T, RpcError> {
    let raw = text(arguments, position, required)?;
    serde_json::from_str(raw).map_err(|error| malformed(position, &error))
}

fn text<'a>(arguments: &[&'a RawValue], position: usize, required: usize) -> Result<&'a str, RpcError> {
    match arguments.get(position) {
        Some(raw) => Ok(raw.get()),
        None if position < required => {
            let message = format!("missing value for required argument {position}");
            Err(RpcError::new(RpcError::INVALID_PARAMS, message))
        }
        None => Ok("null"),
    }
}

fn malformed(position: usize, error: &serde_json::Error) -> RpcError {
    RpcError::argument(position, plain(error))
}

impl Parameters for () {
    const COUNT: usize = 0;

    fn read(_arguments: &[&RawValue], _required: usize) -> Result<Self, RpcError> {
        Ok(())
    }
}

macro_rules! positions {
    ($count:literal: $($name:ident $position:literal),+) => {
        impl<$($name: DeserializeOwned),+> Parameters for ($($name,)+) {
            const COUNT: usize = $count;

            fn read(arguments: &[&RawValue], required: usize) -> Result<Self, RpcError> {
                Ok(($(argument::<$name>(arguments, $position, required)?,)+))
            }
        }
    };
}

positions!(1: A 0);
positions!(2: A 0, B 1);
positions!(3: A 0, B 1, C 2);
positions!(4: A 0, B 1, C 2, D 3);

#[cfg(test)]
mod tests {
    use super::is_pending;

    #[test]
    fn recognizes_the_pending_block() {
        let cases = [
            (r#"["0x1", "pending"]"#, true),
            (r#"["p\u0065nding", false]"#, true),
            (r#"[{"toBlock": "pending", "address": []}]"#, true),
            (r#"["0x1", {"blockNumber": "pending"}]"#, true),
            (r#"["0x1", "latest"]"#, false),
            (r#"["pendingTransactions"]"#, false),
            (r#"[{"pending": "latest"}, ["pending"], null, 1, -1, 0.5, true]"#, false),
            (r#""pending""#, false),
            ("", false),
        ];
        for (parameters, expected) in cases {
            assert_eq!(is_pending(parameters), expected, "{parameters}");
        }
    }
}
