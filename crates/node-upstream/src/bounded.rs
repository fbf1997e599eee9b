//! Lists of limited length in JSON, so that a short text cannot take much memory.

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Reads a list of at most this many items.
pub(crate) struct UpTo<T> {
    limit: usize,
    items: PhantomData<T>,
}

impl<T> UpTo<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, items: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for UpTo<T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for UpTo<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {} items", self.limit)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element()? {
            if read.len() == self.limit {
                return Err(A::Error::custom(format_args!("more than {} items", self.limit)));
            }
            read.push(item);
        }
        Ok(read)
    }
}

/// Reads a list of at most `N` items, for `deserialize_with`.
pub(crate) fn up_to<'de, const N: usize, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    UpTo::new(N).deserialize(deserializer)
}
