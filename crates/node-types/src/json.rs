//! Writing JSON, as `serde_json` writes it but faster.
//!
//! Most of a response is strings of hex digits. `serde_json` looks at each of their bytes to find those that need an escape,
//! and appends every quotation mark by itself. [`write`] searches many bytes at once, and appends a string as a whole. What it
//! writes is what `serde_json::to_writer` writes, byte for byte. Names of fields must need no escape, as those of Rust do not.

use serde::ser::{self, Error as _, Serialize};
use serde_json::Error;
use std::fmt::{self, Write as _};

/// Appends the JSON of `value` to `out`.
///
/// # Errors
/// Those of `serde_json::to_writer`: an error of `value`, or a key that is not a string. `out` then ends with a part of the JSON.
pub fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<(), Error> {
    value.serialize(Writer { out })
}

/// The name by which `serde_json` marks a [`RawValue`](serde_json::value::RawValue), whose only field is its JSON.
const RAW: &str = "$serde_json::private::RawValue";

struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn literal(self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn string(self, text: &str) -> Result<(), Error> {
        let bytes = text.as_bytes();
        if needs_escape(bytes) {
            return serde_json::to_writer(self.out, text);
        }
        self.out.reserve(bytes.len() + 2);
        self.out.push(b'"');
        self.out.extend_from_slice(bytes);
        self.out.push(b'"');
        Ok(())
    }

    /// Writes a value with the writer of `serde_json`.
    fn other<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        serde_json::to_writer(self.out, value)
    }
}

/// Whether a string with these bytes needs an escape in JSON. There is no way out of the loop, so that it runs on vectors.
fn needs_escape(bytes: &[u8]) -> bool {
    bytes.iter().fold(false, |any, &byte| any | (byte < b' ') | (byte == b'"') | (byte == b'\\'))
}

/// Integers and floating-point numbers.
macro_rules! numbers {
    ($($method:ident($type:ty)),+) => {$(
        fn $method(self, value: $type) -> Result<(), Error> {
            self.other(&value)
        }
    )+};
}

impl<'a> ser::Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Items<'a>;
    type SerializeTupleStruct = Items<'a>;
    type SerializeTupleVariant = Items<'a>;
    type SerializeMap = Fields<'a>;
    type SerializeStruct = Structure<'a>;
    type SerializeStructVariant = Fields<'a>;

    numbers!(
        serialize_i8(i8),
        serialize_i16(i16),
        serialize_i32(i32),
        serialize_i64(i64),
        serialize_i128(i128),
        serialize_u8(u8),
        serialize_u16(u16),
        serialize_u32(u32),
        serialize_u64(u64),
        serialize_u128(u128),
        serialize_f32(f32),
        serialize_f64(f64)
    );

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.literal(if value { "true" } else { "false" });
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.string(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.string(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.literal("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<(), Error> {
        self.string(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut fields = Fields::begin(self.out, "}");
        fields.field(variant, value)?;
        fields.finish()
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Items<'a>, Error> {
        Ok(Items::begin(self.out, "]"))
    }

    fn serialize_tuple(self, _length: usize) -> Result<Items<'a>, Error> {
        Ok(Items::begin(self.out, "]"))
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<Items<'a>, Error> {
        Ok(Items::begin(self.out, "]"))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Items<'a>, Error> {
        self.out.push(b'{');
        Writer { out: self.out }.string(variant)?;
        self.out.push(b':');
        Ok(Items::begin(self.out, "]}"))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Fields<'a>, Error> {
        Ok(Fields::begin(self.out, "}"))
    }

    fn serialize_struct(self, name: &'static str, _length: usize) -> Result<Structure<'a>, Error> {
        Ok(match name {
            RAW => Structure::Raw(self.out),
            _ => Structure::Object(Fields::begin(self.out, "}")),
        })
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Fields<'a>, Error> {
        self.out.push(b'{');
        Writer { out: self.out }.string(variant)?;
        self.out.push(b':');
        Ok(Fields::begin(self.out, "}}"))
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        struct Text<'a>(&'a mut Vec<u8>);
        impl fmt::Write for Text<'_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0.extend_from_slice(text.as_bytes());
                Ok(())
            }
        }
        let start = self.out.len();
        self.out.push(b'"');
        write!(Text(self.out), "{value}").map_err(Error::custom)?;
        if needs_escape(&self.out[start + 1..]) {
            self.out.truncate(start);
            return self.other(&format_args!("{value}"));
        }
        self.out.push(b'"');
        Ok(())
    }
}

/// The items of an array.
struct Items<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
    end: &'static str,
}

impl<'a> Items<'a> {
    fn begin(out: &'a mut Vec<u8>, end: &'static str) -> Self {
        out.push(b'[');
        Self { out, first: true, end }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        separate(self.out, &mut self.first);
        write(self.out, value)
    }

    fn finish(self) -> Result<(), Error> {
        self.out.extend_from_slice(self.end.as_bytes());
        Ok(())
    }
}

/// Writes a comma before all elements but the first.
fn separate(out: &mut Vec<u8>, first: &mut bool) {
    if !std::mem::take(first) {
        out.push(b',');
    }
}

/// The fields of an object.
struct Fields<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
    end: &'static str,
}

impl<'a> Fields<'a> {
    fn begin(out: &'a mut Vec<u8>, end: &'static str) -> Self {
        out.push(b'{');
        Self { out, first: true, end }
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        debug_assert!(!needs_escape(name.as_bytes()), "{name:?}");
        separate(self.out, &mut self.first);
        self.out.reserve(name.len() + 3);
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        write(self.out, value)
    }

    /// Writes a key, which is a string or becomes one: a number, a Boolean or a character.
    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        separate(self.out, &mut self.first);
        let start = self.out.len();
        write(self.out, key)?;
        match self.out.get(start) {
            Some(b'"') => {}
            Some(b'0'..=b'9' | b'-' | b't' | b'f') => {
                self.out.insert(start, b'"');
                self.out.push(b'"');
            }
            _ => return Err(Error::custom("key must be a string")),
        }
        self.out.push(b':');
        Ok(())
    }

    fn finish(self) -> Result<(), Error> {
        self.out.extend_from_slice(self.end.as_bytes());
        Ok(())
    }
}

/// A struct: an object, or JSON that is there already.
enum Structure<'a> {
    Object(Fields<'a>),
    Raw(&'a mut Vec<u8>),
}

impl ser::SerializeStruct for Structure<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        match self {
            Self::Object(fields) => fields.field(name, value),
            Self::Raw(out) => {
                let mut serializer = serde_json::Serializer::new(&mut **out);
                let mut raw = ser::Serializer::serialize_struct(&mut serializer, RAW, 1)?;
                ser::SerializeStruct::serialize_field(&mut raw, name, value)
            }
        }
    }

    fn end(self) -> Result<(), Error> {
        match self {
            Self::Object(fields) => fields.finish(),
            Self::Raw(_) => Ok(()),
        }
    }
}

impl ser::SerializeStructVariant for Fields<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.field(name, value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish()
    }
}

impl ser::SerializeMap for Fields<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        write(self.out, value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish()
    }
}

/// The traits of all that is written as an array.
macro_rules! arrays {
    ($($kind:ident::$method:ident),+) => {$(
        impl ser::$kind for Items<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish()
            }
        }
    )+};
}

arrays!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Serialize;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn written<T: Serialize + ?Sized>(value: &T) -> Result<String, String> {
        let mut out = b"before".to_vec();
        write(&mut out, value).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(out.split_off(6)).unwrap())
    }

    #[track_caller]
    fn is_written_alike<T: Serialize + ?Sized>(value: &T) {
        assert_eq!(written(value), serde_json::to_string(value).map_err(|error| error.to_string()));
    }

    #[derive(Serialize)]
    struct Unit;

    #[derive(Serialize)]
    struct Newtype(&'static str);

    #[derive(Serialize)]
    struct Pair(u8, Option<bool>);

    #[derive(Serialize)]
    struct Fields {
        plain: u8,
        #[serde(rename = "the name")]
        renamed: Option<u8>,
        #[serde(skip_serializing_if = "Option::is_none")]
        skipped: Option<u8>,
    }

    #[derive(Serialize)]
    enum Variants {
        Unit,
        Newtype(Vec<u8>),
        Pair(u8, u8),
        Fields { a: char, b: () },
    }

    /// Collected from its text.
    struct Shown(&'static str);

    impl Serialize for Shown {
        fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self.0)
        }
    }

    /// An error in the middle of an array.
    struct Failing;

    impl Serialize for Failing {
        fn serialize<S: ser::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("this fails"))
        }
    }

    #[test]
    fn every_kind_of_value_is_written_as_by_serde_json() {
        is_written_alike(&Unit);
        is_written_alike(&[Newtype(""), Newtype("a\"b\\c\u{1}\u{7f}é"), Newtype("0x00ff")]);
        is_written_alike(&(Pair(1, None), Pair(2, Some(true)), (3, "x", [0u8; 0])));
        is_written_alike(&Fields { plain: 1, renamed: Some(2), skipped: None });
        is_written_alike(&[Fields { plain: 0, renamed: None, skipped: Some(3) }]);
        let variants =
            [Variants::Unit, Variants::Newtype(vec![1, 2]), Variants::Pair(3, 4), Variants::Fields { a: '"', b: () }];
        is_written_alike(&variants);
        is_written_alike(&[Shown(""), Shown("plain"), Shown("a\nb")]);
        is_written_alike(&RawValue::from_string("{ \"a\" : [1e3, \"\\u0041\"] }".to_owned()).unwrap());
        is_written_alike(&[Some(RawValue::from_string("null".to_owned()).unwrap()), None]);
        is_written_alike(&(
            i8::MIN,
            u64::MAX,
            i128::MIN,
            u128::MAX,
            1.5f32,
            [0.1, -0.0, 1e300, f64::NAN, f64::INFINITY],
        ));
    }

    #[test]
    fn keys_become_strings() {
        is_written_alike(&BTreeMap::from([("a", 1), ("\"", 2)]));
        is_written_alike(&BTreeMap::from([(1, "a"), (-2, "b")]));
        is_written_alike(&BTreeMap::from([(true, ()), (false, ())]));
        is_written_alike(&BTreeMap::from([(Some('x'), ())]));
        is_written_alike(&BTreeMap::from([(None::<char>, ())]));
        is_written_alike(&BTreeMap::from([(vec![1], ())]));
    }

    #[test]
    fn errors_of_values_are_returned() {
        is_written_alike(&Failing);
        is_written_alike(&[Some(Failing)]);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,40}".prop_map(Value::from),
            "0x[0-9a-f]{0,70}".prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".{0,8}", inner, 0..6).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_is_written_as_by_serde_json(value in any_json()) {
            is_written_alike(&value);
        }

        #[test]
        fn a_string_needs_an_escape_if_serde_json_escapes_it(text in any::<String>(), special in "[\\x00-\\x7f]{0,3}") {
            let text = text + &special;
            let escaped = serde_json::to_string(&text).unwrap() != format!("\"{text}\"");
            prop_assert_eq!(needs_escape(text.as_bytes()), escaped);
        }
    }
}
