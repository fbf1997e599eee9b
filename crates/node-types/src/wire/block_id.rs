//! JSON encodings of [`BlockId`] and [`BlockNumberOrTag`]: strings; JSON integers are read as well.

use super::decode::{Decode, Faults, Input};
use super::text;
use crate::{BlockId, BlockNumberOrTag};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! encode_as_text {
    ($($argument:ty),+) => {$(
        impl Serialize for $argument {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $argument {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                text::deserialize(deserializer)
            }
        }

        impl Decode for $argument {
            fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
                input.text_or_integer(faults)
            }
        }
    )+};
}

encode_as_text!(BlockNumberOrTag, BlockId);
