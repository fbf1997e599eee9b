//! Writing JSON.

use crate::buffer::JsonBuffer;
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
/// Those of [`serde_json::to_writer`]; among them, that `out` is [full](JsonBuffer::full).
///
/// # Examples
/// ```
/// use node_types::wire::{Data, JsonBuffer, append_json};
/// use node_types::Bytes;
///
/// let mut out = JsonBuffer::from(b"event: ".to_vec());
/// append_json(&mut out, &Data(Bytes::from(vec![0xab, 0x01])))?;
/// assert_eq!(&out[..], b"event: \"0xab01\"");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn append_json<T: Serialize + ?Sized>(out: &mut JsonBuffer, value: &T) -> serde_json::Result<()> {
    value.serialize(&mut JsonSerializer::with_formatter(out, BytesAsHex))
}

type JsonSerializer<'a> = serde_json::Serializer<&'a mut JsonBuffer, BytesAsHex>;

/// Returns whether a serializer of this type writes bytes as [`Data`](super::Data) is written.
pub(super) fn writes_bytes_as_hex<S>() -> bool {
    typeid::of::<S>() == typeid::of::<&mut JsonSerializer<'_>>()
}

/// Appends the JSON of [`Data`](super::Data): a string of `0x` and two digits for each byte.
pub fn append_data(out: &mut JsonBuffer, bytes: &[u8]) {
    out.extend_from_slice(b"\"0x");
    append_digits(out, bytes);
    out.push(b'"');
}

/// Appends two hex digits for each byte.
pub fn append_digits(out: &mut JsonBuffer, bytes: &[u8]) {
    if let Some(digits) = out.extend_zeroed(2 * bytes.len(), b'0') {
        let encoded = const_hex::encode_to_slice(bytes, digits);
        debug_assert!(encoded.is_ok(), "the digits have as much room as they need");
    }
}

/// Appends a JSON object member by member.
///
/// It takes a fraction of the time of [`append_json`] and needs no struct, but escapes nothing. It is for objects of
/// which a response has thousands.
///
/// Without [`end`](Self::end) the object is not complete.
///
/// # Examples
/// ```
/// use node_types::wire::{JsonArray, JsonBuffer, JsonObject};
///
/// let mut out = JsonBuffer::default();
/// let mut object = JsonObject::begin(&mut out);
/// object.quantity("Number", 7);
/// object.data("Data", &[0xab, 0x01]);
/// let mut list = JsonArray::begin(object.member("List"));
/// list.element().extend_from_slice(b"null");
/// list.element().extend_from_slice(b"{}");
/// list.end();
/// object.end();
/// assert_eq!(&out[..], br#"{"Number":"7","Data":"0xab01","List":[null,{}]}"#);
/// ```
#[derive(Debug)]
#[must_use = "an object without its end is not JSON"]
pub struct JsonObject<'a> {
    out: &'a mut JsonBuffer,
    /// What precedes the next name.
    separator: u8,
}

impl<'a> JsonObject<'a> {
    /// Begins an object at the end of `out`.
    pub fn begin(out: &'a mut JsonBuffer) -> Self {
        Self { out, separator: b'{' }
    }

    /// Begins a member, and returns the buffer to whose end its value must be appended. The name must have no
    /// characters that JSON escapes.
    #[inline]
    pub fn member(&mut self, name: &'static str) -> &mut JsonBuffer {
        debug_assert!(needs_no_escape(name), "{name:?}");
        self.out.extend_from_slice(&[self.separator, b'"']);
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.separator = b',';
        self.out
    }

    /// Appends a member whose value is a string without characters that JSON escapes.
    pub fn text(&mut self, name: &'static str, text: &str) {
        debug_assert!(needs_no_escape(text), "{text:?}");
        let out = self.member(name);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    }

    /// Appends a member whose value is that of a [`Quantity`](super::Quantity).
    pub fn quantity(&mut self, name: &'static str, value: u64) {
        self.text(name, itoa::Buffer::new().format(value));
    }

    /// Appends a member whose value is that of [`Data`](super::Data).
    pub fn data(&mut self, name: &'static str, bytes: &[u8]) {
        append_data(self.member(name), bytes);
    }

    /// Appends a member whose value is a boolean.
    pub fn boolean(&mut self, name: &'static str, value: bool) {
        self.member(name).extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Appends a member whose value is null.
    pub fn null(&mut self, name: &'static str) {
        self.member(name).extend_from_slice(b"null");
    }

    /// Ends the object.
    pub fn end(self) {
        if self.separator == b'{' {
            self.out.push(b'{');
        }
        self.out.push(b'}');
    }
}

fn needs_no_escape(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() || matches!(c, '"' | '\\'))
}

/// Appends a JSON array element by element. Without [`end`](Self::end) it is not complete.
#[derive(Debug)]
#[must_use = "an array without its end is not JSON"]
pub struct JsonArray<'a> {
    out: &'a mut JsonBuffer,
    is_empty: bool,
}

impl<'a> JsonArray<'a> {
    /// Begins an array at the end of `out`.
    pub fn begin(out: &'a mut JsonBuffer) -> Self {
        out.push(b'[');
        Self { out, is_empty: true }
    }

    /// Begins an element, and returns the buffer to whose end it must be appended.
    pub fn element(&mut self) -> &mut JsonBuffer {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out
    }

    /// Ends the array.
    pub fn end(self) {
        self.out.push(b']');
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
            let mut out = JsonBuffer::from(b"before".to_vec());
            append_json(&mut out, &value).unwrap();
            prop_assert_eq!(String::from_utf8(out.into()).unwrap(), format!("before{}", serde_json::to_string(&value).unwrap()));
        }
    }

    #[test]
    fn objects_and_arrays_may_be_empty() {
        let mut out = JsonBuffer::default();
        JsonArray::begin(&mut out).end();
        JsonObject::begin(&mut out).end();
        assert_eq!(&out[..], b"[]{}");
    }

    #[test]
    fn objects_are_written_member_by_member() {
        for length in [0, 1, 31, 32, 33, 500] {
            let bytes: Vec<_> = (0..length).map(|byte: u64| byte as u8).collect();
            let mut out = JsonBuffer::default();
            let mut object = JsonObject::begin(&mut out);
            object.data("data", &bytes);
            object.text("text", "0x1");
            object.quantity("quantity", u64::MAX - length);
            object.boolean("boolean", length == 0);
            object.null("null");
            let mut array = JsonArray::begin(object.member("array"));
            (0..length % 4).for_each(|_| append_data(array.element(), &bytes));
            array.end();
            object.end();
            let data = serde_json::to_string(&Data(Bytes::from(bytes))).unwrap();
            let array = vec![data.as_str(); (length % 4) as usize].join(",");
            let (quantity, boolean) = (u64::MAX - length, length == 0);
            let expected = format!(
                r#"{{"data":{data},"text":"0x1","quantity":"{quantity}","boolean":{boolean},"null":null,"array":[{array}]}}"#
            );
            assert_eq!(String::from_utf8(out.into()).unwrap(), expected);
        }
    }
}
