//! Decoding of request bodies that finds every fault, not only the first.
//!
//! Decoders walk the raw JSON text. Therefore numbers of any length keep their digits, duplicate properties are
//! detected, and nested values that no type reads are skipped without recursion.

pub use super::fault::{Faults, ListLimit, Location, RequestLimits};
use super::problem::ErrorDetail;
use super::text::TextError;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A type that can be decoded from a request body.
pub trait Decode: Sized {
    /// The names of the properties, if it is an object with known ones.
    const PROPERTIES: &'static [&'static str] = &[];

    /// Decodes the value and adds its faults to `faults`. Returns `None` only after adding a fault. If any fault was
    /// added, the value must not be used.
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self>;
}

/// Why a body is not a valid request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is empty.
    #[error("the body is empty")]
    Empty,
    /// It is not JSON.
    #[error("malformed JSON: {reason} at line {line}, column {column}")]
    Malformed {
        reason: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// It is JSON, but not a valid request. Contains every fault.
    #[error("{} faults in the request", .0.len())]
    Invalid(Vec<ErrorDetail>),
}

/// Decodes the body of a request.
///
/// # Errors
/// If the body is empty or not JSON, or if the request has faults; then the error contains all of them.
pub fn decode_body<T: Decode>(body: &[u8]) -> Result<T, BodyError> {
    decode_body_within(body, RequestLimits::default())
}

/// Decodes the body of a request, like [`decode_body`], and refuses a request that exceeds `limits`.
///
/// # Errors
/// Those of [`decode_body`].
pub fn decode_body_within<T: Decode>(body: &[u8], limits: RequestLimits) -> Result<T, BodyError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(BodyError::Empty);
    }
    let raw: &RawValue = serde_json::from_slice(body).map_err(|error| {
        let text = error.to_string();
        let reason = text.split(" at line ").next().unwrap_or_default().to_owned();
        BodyError::Malformed { reason, line: error.line(), column: error.column() }
    })?;
    decode_json(raw.get(), limits).map_err(BodyError::Invalid)
}

/// Decodes a request whose fields have no faults, even if the body has others: unexpected and duplicate properties, or
/// fields that contradict each other. Returns `None` if a field has a fault or the body is not an object.
pub fn decode_fields<T: Decode>(body: &[u8]) -> Option<T> {
    let raw: &RawValue = serde_json::from_slice(body).ok()?;
    T::decode(Input::body(raw), &mut Faults::default())
}

/// The location of a body.
const BODY: Location<'static> = Location::Part("body");

/// Decodes JSON text that is known to be well formed.
fn decode_json<T: Decode>(json: &str, limits: RequestLimits) -> Result<T, Vec<ErrorDetail>> {
    let mut faults = Faults::within(limits);
    let value = T::decode(Input::at(json, BODY), &mut faults);
    match value {
        Some(value) if faults.is_empty() => Ok(value),
        _ => Err(faults.into_details()),
    }
}

/// Deserializes a request through its decoder. Works only with deserializers of serde_json, which supply raw JSON.
pub(super) fn deserialize<'de, D: Deserializer<'de>, T: Decode>(deserializer: D) -> Result<T, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    decode_json(raw.get(), RequestLimits::default()).map_err(|details| {
        let faults: Vec<_> = details.iter().map(|detail| format!("{}: {}", detail.location, detail.message)).collect();
        D::Error::custom(faults.join("; "))
    })
}

/// Implements `Deserialize` through [`Decode`], so that both accept the same requests.
macro_rules! deserialize_by_decoding {
    ($($request:ty),+) => {$(
        impl<'de> serde::Deserialize<'de> for $request {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::wire::decode::deserialize(deserializer)
            }
        }
    )+};
}
pub(super) use deserialize_by_decoding;

/// Implements [`Decode`] for a struct that is sent as an object. For each field, the macro takes the method of
/// [`ObjectDecoder`] that reads it and the name of its property. `as Wrapper` reads the field through a tuple struct
/// around its type. The block after `=>` runs before the struct is built: in it, every field is a `Result`, and it
/// may add faults to the decoder.
macro_rules! decode_object {
    ($($object:ident {
        $($field:ident: $read:ident($name:literal $(, $default:expr)?) $(as $wrapper:ident)?),+ $(,)?
    } $(=> |$checked:ident| $check:block)?)+) => {$(
        impl $crate::wire::Decode for $object {
            const PROPERTIES: &'static [&'static str] = &[$($name),+];

            fn decode(input: $crate::wire::Input<'_>, faults: &mut $crate::wire::Faults) -> Option<Self> {
                let mut decoder = $crate::wire::ObjectDecoder::new(input, Self::PROPERTIES, faults)?;
                $(let $field = decoder.$read($name $(, $default)?)$(.map(|$wrapper(value)| value))?;)+
                $(let $checked = &mut decoder; $check)?
                let object = || -> Result<Self, $crate::wire::Faulty> { Ok(Self { $($field: $field?),+ }) };
                object().ok()
            }
        }
    )+};
}
pub(super) use decode_object;

/// Declares structs that are sent as objects, with property names in Pascal case. The name after `as` is that of the
/// schema to which others refer.
///
/// A `response` is serialized and deserialized by serde alone. A `request` is decoded by [`decode_object`], whose
/// notation follows the type of each field, also when it is deserialized.
macro_rules! wire_objects {
    () => {};
    (
        $(#[$about:meta])* response $object:ident $(as $schema:ident)? {
            $($(#[$field_about:meta])* $field:ident: $type:ty,)+
        }
        $($others:tt)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema) $(, schema(as = $schema))?)]
        #[serde(rename_all = "PascalCase")]
        pub struct $object { $($(#[$field_about])* pub $field: $type,)+ }

        $crate::wire::decode::wire_objects! { $($others)* }
    };
    (
        $(#[$about:meta])* request $object:ident $(as $schema:ident)? {
            $($(#[$field_about:meta])* $field:ident: $type:ty = $read:ident $arguments:tt $(as $wrapper:ident)?,)+
            $(=> |$checked:ident| $check:block)?
        }
        $($others:tt)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema) $(, schema(as = $schema))?)]
        #[serde(rename_all = "PascalCase")]
        pub struct $object { $($(#[$field_about])* pub $field: $type,)+ }

        $crate::wire::decode::decode_object! {
            $object { $($field: $read $arguments $(as $wrapper)?),+ } $(=> |$checked| $check)?
        }
        $crate::wire::decode::deserialize_by_decoding!($object);
        $crate::wire::decode::wire_objects! { $($others)* }
    };
}
pub(super) use wire_objects;

/// A JSON value of a request with its location.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    json: &'a str,
    /// The JSON text that faults repeat: that of the value itself, or of the string that holds it.
    sent: &'a str,
    location: Location<'a>,
}

impl<'a> Input<'a> {
    /// Creates an input from the JSON value `raw`, which is at `location` in the request.
    pub fn new(raw: &'a RawValue, location: Location<'a>) -> Self {
        Self::at(raw.get(), location)
    }

    /// Creates an input from the JSON of a body.
    pub(super) fn body(raw: &'a RawValue) -> Self {
        Self::new(raw, BODY)
    }

    fn at(json: &'a str, location: Location<'a>) -> Self {
        Self { json, sent: json, location }
    }

    /// Returns the JSON text of the value. It is well formed, except that strings may contain invalid escapes.
    pub fn json(&self) -> &'a str {
        self.json
    }

    /// Returns the location of the value.
    pub fn location(&self) -> &Location<'a> {
        &self.location
    }

    /// Returns the value that a string holds as JSON text. Its faults repeat the string as it was sent.
    pub fn held<'b>(&'b self, raw: &'b RawValue) -> Input<'b> {
        Input { json: raw.get(), sent: self.sent, location: self.location }
    }

    /// Returns whether the value is null or the empty string, which mean absence.
    pub fn is_absent(&self) -> bool {
        matches!(self.json, "null" | "\"\"")
    }

    /// Returns whether the value is an array.
    pub fn is_array(&self) -> bool {
        self.json.starts_with('[')
    }

    /// Returns whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.json.starts_with('{')
    }

    /// Returns whether the value is a string.
    pub fn is_string(&self) -> bool {
        self.json.starts_with('"')
    }

    /// Adds a fault of the value.
    pub fn fault(&self, message: impl fmt::Display, faults: &mut Faults) {
        faults.push(self.location, message, Some(self.sent));
    }

    /// Adds a fault if the value is a list of more than `limit` allows. `items` is the plural of an element.
    pub(super) fn check_length(&self, length: usize, items: &str, limit: ListLimit, faults: &mut Faults) {
        if let Some(message) = limit.exceeded_by(length, items) {
            self.fault(message, faults);
        }
    }

    /// Returns the content of a string, or `None` after adding a fault.
    pub fn string(&self, faults: &mut Faults) -> Option<Cow<'a, str>> {
        if !self.is_string() {
            self.fault("expected string", faults);
            return None;
        }
        let text = serde_json::from_str::<BorrowedText<'a>>(self.json);
        match text {
            Ok(BorrowedText(text)) => Some(text),
            Err(_) => {
                self.fault("expected a string of Unicode characters", faults);
                None
            }
        }
    }

    /// Parses the content of a string. Returns `None` after adding a fault.
    pub fn text<T: FromStr<Err = TextError>>(&self, faults: &mut Faults) -> Option<T> {
        let text = self.string(faults)?;
        self.parse(&text, faults)
    }

    /// Parses the content of a string, or a JSON integer. Returns `None` after adding a fault.
    pub fn text_or_integer<T: FromStr<Err = TextError>>(&self, faults: &mut Faults) -> Option<T> {
        if self.is_string() {
            return self.text(faults);
        }
        if !self.is_number() || self.json.contains(['.', 'e', 'E']) {
            self.fault("expected an integer, or a string", faults);
            return None;
        }
        self.parse(self.json, faults)
    }

    /// Returns whether the value is a number.
    pub fn is_number(&self) -> bool {
        self.json.starts_with(|first: char| first == '-' || first.is_ascii_digit())
    }

    /// Calls `visit` with the index and value of each element of an array. Returns `None` after adding a fault if the
    /// value is not an array.
    pub fn elements(&self, faults: &mut Faults, mut visit: impl FnMut(usize, Input<'_>, &mut Faults)) -> Option<()> {
        if !self.is_array() {
            self.fault("expected array", faults);
            return None;
        }
        let mut index = 0;
        let walked = serde_json::Deserializer::from_str(self.json).deserialize_seq(Elements(|raw: &RawValue| {
            let location = Location::Element(&self.location, index);
            visit(index, Input::at(raw.get(), location), faults);
            index += 1;
        }));
        self.walked(walked, faults)
    }

    /// Visits the properties of an object in the order of the text, including duplicates. Returns `None` after adding
    /// a fault if the value is not an object.
    pub fn properties(
        &self,
        faults: &mut Faults,
        mut visit: impl FnMut(&str, &'a RawValue, &mut Faults),
    ) -> Option<()> {
        if !self.is_object() {
            self.fault("expected object", faults);
            return None;
        }
        let walked = serde_json::Deserializer::from_str(self.json)
            .deserialize_map(Properties(|name: &str, raw: &'a RawValue| visit(name, raw, faults)));
        self.walked(walked, faults)
    }

    fn parse<T: FromStr<Err = TextError>>(&self, text: &str, faults: &mut Faults) -> Option<T> {
        text.parse().map_err(|error| self.fault(error, faults)).ok()
    }

    /// Converts the result of a walk. In well-formed JSON, only a property name with invalid escapes can stop it.
    fn walked(&self, result: Result<(), serde_json::Error>, faults: &mut Faults) -> Option<()> {
        result.map_err(|_| self.fault("expected property names of Unicode characters", faults)).ok()
    }
}

/// A text of any length.
impl Decode for String {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        input.string(faults).map(Cow::into_owned)
    }
}

/// An array of any length. Operations impose their own limits.
impl<T: Decode> Decode for Vec<T> {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        decode_array(input, "elements", ListLimit::NONE, faults)
    }
}

/// Decodes an array of at most `limit` elements, whose plural is `items`.
pub(super) fn decode_array<T: Decode>(
    input: Input<'_>,
    items: &str,
    limit: ListLimit,
    faults: &mut Faults,
) -> Option<Vec<T>> {
    let mut values = Vec::new();
    let mut count = 0;
    input.elements(faults, |index, element, faults| {
        count = index + 1;
        values.extend(T::decode(element, faults).filter(|_| count <= limit.most));
    })?;
    input.check_length(count, items, limit, faults);
    (values.len() == count).then_some(values)
}

/// Signals that a value has a fault, which was added to [`Faults`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faulty;

/// Decodes an object with known property names. All other properties are faults, except `$schema`.
pub struct ObjectDecoder<'a, 'f> {
    input: Input<'a>,
    properties: Vec<(&'static str, &'a RawValue)>,
    faults: &'f mut Faults,
}

impl<'a, 'f> ObjectDecoder<'a, 'f> {
    /// Reads the properties of `input` with these names, and adds a fault for any other. Returns `None` after adding
    /// a fault if `input` is not an object.
    pub fn new(input: Input<'a>, names: &[&'static str], faults: &'f mut Faults) -> Option<Self> {
        let mut properties: Vec<(&'static str, &'a RawValue)> = Vec::with_capacity(names.len());
        let mut has_schema = false;
        input.properties(faults, |name, raw, faults| {
            let unexpected = match names.iter().find(|known| **known == name) {
                _ if name == "$schema" && !has_schema => {
                    has_schema = true;
                    return;
                }
                _ if name == "$schema" => "duplicate property",
                Some(known) if properties.iter().all(|(present, _)| present != known) => {
                    properties.push((known, raw));
                    return;
                }
                Some(_) => "duplicate property",
                None => "unexpected property",
            };
            faults.push(Location::Property(&input.location, name), unexpected, Some(raw.get()));
        })?;
        Some(Self { input, properties, faults })
    }

    /// Decodes the property `name`, which must be present.
    ///
    /// # Errors
    /// [`Faulty`] after adding a fault.
    pub fn required<T: Decode>(&mut self, name: &'static str) -> Result<T, Faulty> {
        match self.raw(name) {
            Some(raw) => self.decode(name, raw),
            None => {
                self.missing(name);
                Err(Faulty)
            }
        }
    }

    /// Decodes the property `name`. Returns `None` if it is absent.
    ///
    /// # Errors
    /// [`Faulty`] after adding a fault.
    pub fn optional<T: Decode>(&mut self, name: &'static str) -> Result<Option<T>, Faulty> {
        match self.raw(name) {
            Some(raw) if !matches!(raw.get(), "null" | "\"\"") => self.decode(name, raw).map(Some),
            _ => Ok(None),
        }
    }

    /// Decodes the property `name`; if it is absent, returns the default of its type.
    ///
    /// # Errors
    /// [`Faulty`] after adding a fault.
    pub fn optional_or_default<T: Decode + Default>(&mut self, name: &'static str) -> Result<T, Faulty> {
        self.optional_or(name, T::default())
    }

    /// Decodes the property `name`; if it is absent, returns `default`.
    ///
    /// # Errors
    /// [`Faulty`] after adding a fault.
    pub fn optional_or<T: Decode>(&mut self, name: &'static str, default: T) -> Result<T, Faulty> {
        self.optional(name).map(|value| value.unwrap_or(default))
    }

    /// Returns the limits of the request.
    pub(super) fn limits(&self) -> &RequestLimits {
        self.faults.limits()
    }

    /// Adds a fault of the property `name`.
    pub fn fault(&mut self, name: &'static str, message: impl fmt::Display) {
        let json = self.raw(name).map(RawValue::get);
        self.faults.push(Location::Property(&self.input.location, name), message, json);
    }

    /// Adds the fault that the property `name` is missing.
    pub fn missing(&mut self, name: &str) {
        self.input.fault(format_args!("expected required property {name} to be present"), self.faults);
    }

    /// Adds the fault that `required` is missing in the object `name`; `reason` says why it is required.
    pub fn missing_in(&mut self, name: &'static str, required: &str, reason: &str) {
        self.fault(name, format_args!("expected required property {required} to be present, {reason}"));
    }

    /// Passes the property `name` to `read`. Returns `None` if it is absent.
    pub(super) fn read<T>(&self, name: &'static str, read: impl FnOnce(Input<'_>) -> Option<T>) -> Option<T> {
        read(Input::new(self.raw(name)?, Location::Property(&self.input.location, name)))
    }

    /// Returns whether the property `name` is an object in which `property` is absent.
    pub(super) fn lacks(&self, name: &'static str, property: &str) -> bool {
        let has = |object: Input<'_>| {
            let mut has = false;
            object.properties(&mut Faults::default(), |name, raw, _| {
                has |= name == property && !Input::new(raw, object.location).is_absent();
            })?;
            Some(has)
        };
        self.read(name, has) == Some(false)
    }

    fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.properties.iter().find(|(present, _)| *present == name).map(|(_, raw)| *raw)
    }

    fn decode<T: Decode>(&mut self, name: &str, raw: &RawValue) -> Result<T, Faulty> {
        let location = Location::Property(&self.input.location, name);
        let faults_before = self.faults.count();
        let value = T::decode(Input::at(raw.get(), location), self.faults);
        // Checks of several fields use only those without faults.
        value.filter(|_| self.faults.count() == faults_before).ok_or(Faulty)
    }
}

/// A string that is borrowed if it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

struct Elements<F>(F);

impl<'de, F: FnMut(&'de RawValue)> Visitor<'de> for Elements<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(raw) = elements.next_element()? {
            self.0(raw);
        }
        Ok(())
    }
}

struct Properties<F>(F);

impl<'de, F: FnMut(&str, &'de RawValue)> Visitor<'de> for Properties<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut properties: A) -> Result<(), A::Error> {
        while let Some((BorrowedText(name), raw)) = properties.next_entry()? {
            self.0(&name, raw);
        }
        Ok(())
    }
}
