//! Writing JSON.

use serde::Serialize;
use serde_json::ser::Formatter;
use std::io;

/// Appends the JSON of `value` to `out`.
///
/// The result is that of [`serde_json::to_writer`], but [`Data`](super::Data) takes a fraction of the time, because
/// its digits are not searched for characters that JSON escapes. Other types that serialize as bytes, such as
/// `CString`, become hex as well, where serde_json writes an array of numbers.
///
/// # Errors
/// Those of [`serde_json::to_writer`].
///
/// # Examples
/// ```
/// use node_types::wire::{Data, append_json};
/// use node_types::Bytes;
///
/// let mut out = b"event: ".to_vec();
/// append_json(&mut out, &Data(Bytes::from(vec![0xab, 0x01])))?;
/// assert_eq!(out, b"event: \"0xab01\"");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn append_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> serde_json::Result<()> {
    value.serialize(&mut JsonSerializer::with_formatter(out, BytesAsHex))
}

type JsonSerializer<'a> = serde_json::Serializer<&'a mut Vec<u8>, BytesAsHex>;

/// Returns whether a serializer of this type writes bytes as [`Data`](super::Data) is written.
pub(super) fn writes_bytes_as_hex<S>() -> bool {
    typeid::of::<S>() == typeid::of::<&mut JsonSerializer<'_>>()
}

/// Appends a JSON array. `append` appends each of its elements.
///
/// # Errors
/// Those of `append`.
pub fn append_array<T>(
    out: &mut Vec<u8>,
    elements: impl IntoIterator<Item = T>,
    mut append: impl FnMut(&mut Vec<u8>, T) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    out.push(b'[');
    for (index, element) in elements.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        append(out, element)?;
    }
    out.push(b']');
    Ok(())
}

/// Appends a JSON object member by member.
///
/// The result is that of [`append_json`] for a struct with these members, in half the time, because the names are not
/// searched for characters that JSON escapes. It is for objects of which a response has thousands.
///
/// # Examples
/// ```
/// use node_types::wire::{JsonObject, Quantity, append_array, append_json};
///
/// let mut out = Vec::new();
/// let mut object = JsonObject::begin(&mut out);
/// object.member("Number", &Quantity(7_u64))?;
/// object.member_with("List", |out| append_array(out, [1, 2], |out, number| append_json(out, &number)))?;
/// object.end();
/// assert_eq!(out, br#"{"Number":"7","List":[1,2]}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct JsonObject<'a> {
    out: &'a mut Vec<u8>,
    /// What precedes the next name.
    separator: u8,
}

impl<'a> JsonObject<'a> {
    /// Begins an object at the end of `out`.
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        Self { out, separator: b'{' }
    }

    /// Appends a member. Its name must have no characters that JSON escapes.
    ///
    /// # Errors
    /// Those of [`append_json`].
    pub fn member<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> serde_json::Result<()> {
        self.member_with(name, |out| append_json(out, value))
    }

    /// Appends a member whose value `append` appends.
    ///
    /// # Errors
    /// Those of `append`.
    #[inline]
    pub fn member_with(
        &mut self,
        name: &'static str,
        append: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> serde_json::Result<()> {
        debug_assert!(!name.contains(|c: char| c.is_control() || matches!(c, '"' | '\\')), "{name:?}");
        self.out.extend_from_slice(&[self.separator, b'"']);
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.separator = b',';
        append(self.out)
    }

    /// Ends the object.
    pub fn end(self) {
        if self.separator == b'{' {
            self.out.push(b'{');
        }
        self.out.push(b'}');
    }
}

struct BytesAsHex;

/// Number of bytes of which the text is written at once. Most byte strings are hashes and addresses.
const SHORT: usize = 32;

/// Number of bytes encoded at a time in longer ones.
const PIECE: usize = 128;

impl Formatter for BytesAsHex {
    fn write_byte_array<W: io::Write + ?Sized>(&mut self, writer: &mut W, bytes: &[u8]) -> io::Result<()> {
        write_data(writer, bytes)
    }
}

fn write_data<W: io::Write + ?Sized>(writer: &mut W, bytes: &[u8]) -> io::Result<()> {
    let (short, rest) = bytes.split_at(bytes.len().min(SHORT));
    let mut text = [0; 4 + 2 * SHORT];
    let end = 3 + 2 * short.len();
    text[..3].copy_from_slice(b"\"0x");
    const_hex::encode_to_slice(short, &mut text[3..end]).map_err(io::Error::other)?;
    text[end] = b'"';
    if rest.is_empty() {
        return writer.write_all(&text[..=end]);
    }
    writer.write_all(&text[..end])?;
    for piece in rest.chunks(PIECE) {
        let mut digits = [0; 2 * PIECE];
        let digits = &mut digits[..2 * piece.len()];
        const_hex::encode_to_slice(piece, digits).map_err(io::Error::other)?;
        writer.write_all(digits)?;
    }
    writer.write_all(b"\"")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::wire::{BytesData, Data, HashData, Quantity, Word};
    use crate::{Bytes, H256, U256};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Serialize)]
    #[serde(untagged)]
    enum Either {
        Hash(HashData),
        Data(Vec<BytesData>),
    }

    #[derive(Serialize)]
    struct Everything {
        keys: BTreeMap<HashData, Option<Word>>,
        #[serde(flatten)]
        either: BTreeMap<String, Either>,
        text: String,
        number: Quantity<U256>,
        value: serde_json::Value,
    }

    proptest! {
        #[test]
        fn writes_what_serde_json_writes(
            keys: Vec<[u8; 32]>,
            lengths in prop::collection::vec(0..1_100usize, 0..4),
            text: String,
            number: [u8; 32],
        ) {
            let data = |length: &usize| Data(Bytes::from((0..*length).map(|byte| byte as u8).collect::<Vec<_>>()));
            let number = U256::from_big_endian(&number);
            let either = [
                (format!("{text}a"), Either::Data(lengths.iter().map(data).collect())),
                (format!("{text}b"), Either::Hash(Data(H256::from_low_u64_be(7)))),
            ];
            let value = Everything {
                keys: keys.iter().map(|key| (Data(H256(*key)), (key[0] > 99).then_some(Word(number)))).collect(),
                value: serde_json::to_value(lengths.iter().map(data).collect::<Vec<_>>()).unwrap(),
                either: either.into(),
                text,
                number: Quantity(number),
            };
            let mut out = b"before".to_vec();
            append_json(&mut out, &value).unwrap();
            prop_assert_eq!(String::from_utf8(out).unwrap(), format!("before{}", serde_json::to_string(&value).unwrap()));
        }
    }

    #[test]
    fn objects_and_arrays_may_be_empty() {
        let mut out = Vec::new();
        append_array(&mut out, [0_u64; 0], |out, number| append_json(out, &number)).unwrap();
        append_array(&mut out, [1_u64, 2], |out, number| append_json(out, &number)).unwrap();
        JsonObject::begin(&mut out).end();
        assert_eq!(out, b"[][1,2]{}");
    }
}
