//! Parameters that are objects.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde_json::value::RawValue;

/// A JSON object. Without this wrapper, serde would also accept an array of the values.
#[derive(Clone, Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        if !raw.get().starts_with('{') {
            return Err(D::Error::custom("expected an object"));
        }
        let read = serde_json::from_str(raw.get()).map(Self);
        read.map_err(|error| D::Error::custom(crate::error::plain(&error)))
    }
}
