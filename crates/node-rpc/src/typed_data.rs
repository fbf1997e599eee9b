//! The signing hash of structured data (EIP-712), for eth_signTypedData_v4.

use node_types::{Address, Bytes, H256, U256, keccak256};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The possible fields of a domain, in order.
const DOMAIN_FIELDS: [(&str, &str); 5] = [
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
    ("salt", "bytes32"),
];

const DOMAIN: &str = "EIP712Domain";

/// Structured data, whose members have the right types.
#[derive(Clone, Debug)]
pub(crate) struct TypedData {
    types: BTreeMap<String, Vec<Field>>,
    primary_type: String,
    domain: Map<String, Value>,
    message: Map<String, Value>,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    kind: String,
}

/// Why data is not typed data, or does not match its types.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TypedDataError {
    #[error("expected typed data (EIP-712), an object or a string with its JSON, got {0}")]
    NotAnObject(String),
    #[error("expected typed data (EIP-712), got a string that is not its JSON: {0}")]
    NotJson(String),
    /// A value, with the path to it.
    #[error("{path}: {reason}")]
    Value { path: String, reason: String },
}

fn fault<T>(path: &str, reason: impl Into<String>) -> Result<T, TypedDataError> {
    Err(TypedDataError::Value { path: path.to_owned(), reason: reason.into() })
}

/// Fails because of a value that is not what `expected` describes.
fn unlike<T>(path: &str, expected: &str, got: Option<&Value>) -> Result<T, TypedDataError> {
    fault(path, format!("expected {expected}, got {}", describe(got)))
}

/// Longest string that an error contains, in bytes.
const LONGEST_SHOWN: usize = 100;

fn describe(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::Object(_)) => "an object".to_owned(),
        Some(Value::Array(_)) => "an array".to_owned(),
        Some(Value::String(text)) if text.len() > LONGEST_SHOWN => format!("a string of {} bytes", text.len()),
        Some(value) => value.to_string(),
    }
}

impl TypedData {
    /// Reads typed data from an object, or from a string with its JSON.
    pub(crate) fn read(value: Value) -> Result<Self, TypedDataError> {
        let value = match value {
            Value::String(text) => {
                let is_json = serde_json::from_str(&text);
                is_json.map_err(|_| TypedDataError::NotJson(describe(Some(&Value::String(text)))))?
            }
            value => value,
        };
        let Value::Object(mut members) = value else { return Err(TypedDataError::NotAnObject(describe(Some(&value)))) };
        let types = match members.get("types") {
            Some(Value::Object(types)) => types,
            other => return unlike("types", "an object with the members of each type", other),
        };
        let types = types.iter().map(|(name, fields)| Ok((name.clone(), read_fields(name, fields)?)));
        let types = types.collect::<Result<BTreeMap<_, _>, _>>()?;
        let primary_type = match members.get("primaryType") {
            Some(Value::String(name)) => name.clone(),
            other => return unlike("primaryType", "the name of a type", other),
        };
        if primary_type != DOMAIN && !types.contains_key(&primary_type) {
            return fault("primaryType", format!("there is no type {primary_type}"));
        }
        let mut object = |name: &str| match members.remove(name) {
            Some(Value::Object(object)) => Ok(object),
            None => Ok(Map::new()),
            other => unlike(name, "an object", other.as_ref()),
        };
        Ok(Self { domain: object("domain")?, message: object("message")?, types, primary_type })
    }

    pub(crate) fn signing_hash(mut self) -> Result<H256, TypedDataError> {
        if !self.types.contains_key(DOMAIN) {
            let present = DOMAIN_FIELDS.iter().filter(|(name, _)| self.domain.contains_key(*name));
            let fields = present.map(|(name, kind)| Field { name: (*name).to_owned(), kind: (*kind).to_owned() });
            let fields = fields.collect();
            self.types.insert(DOMAIN.to_owned(), fields);
        }
        let mut encoder = Encoder { types: &self.types, hashes: BTreeMap::new() };
        let mut signed = vec![0x19, 0x01];
        signed.extend(encoder.hash_struct(DOMAIN, &self.domain, "domain")?.as_bytes());
        // For the primary type EIP712Domain, the message is not part of the hash.
        if self.primary_type != DOMAIN {
            signed.extend(encoder.hash_struct(&self.primary_type, &self.message, "message")?.as_bytes());
        }
        Ok(keccak256(signed))
    }
}

/// Reads the members of the type `name`.
fn read_fields(name: &str, value: &Value) -> Result<Vec<Field>, TypedDataError> {
    let path = format!("types.{name}");
    let Value::Array(fields) = value else {
        return unlike(&path, "an array with the members of the type", Some(value));
    };
    let read = |(index, field): (usize, &Value)| {
        let path = format!("{path}[{index}]");
        let Value::Object(field) = field else { return unlike(&path, "an object with name and type", Some(field)) };
        let text = |member: &str| match field.get(member) {
            Some(Value::String(text)) => Ok(text.clone()),
            other => unlike(&format!("{path}.{member}"), "a string", other),
        };
        Ok(Field { name: text("name")?, kind: text("type")? })
    };
    fields.iter().enumerate().map(read).collect()
}

struct Encoder<'a> {
    types: &'a BTreeMap<String, Vec<Field>>,
    /// Cached hashes of types.
    hashes: BTreeMap<&'a str, H256>,
}

impl<'a> Encoder<'a> {
    fn hash_struct(&mut self, name: &str, value: &Map<String, Value>, path: &str) -> Result<H256, TypedDataError> {
        let Some((name, fields)) = self.types.get_key_value(name) else {
            return fault(path, format!("there is no type {name}"));
        };
        let mut encoded = self.type_hash(name)?.as_bytes().to_vec();
        for Field { name, kind } in fields {
            let path = format!("{path}.{name}");
            encoded.extend(self.word(kind, value.get(name), &path)?);
        }
        Ok(keccak256(encoded))
    }

    fn type_hash(&mut self, name: &'a str) -> Result<H256, TypedDataError> {
        if let Some(hash) = self.hashes.get(name) {
            return Ok(*hash);
        }
        let mut found = BTreeSet::new();
        let mut open = vec![name];
        while let Some(next) = open.pop() {
            if let Some((next, fields)) = self.types.get_key_value(next)
                && found.insert(next.as_str())
            {
                open.extend(fields.iter().map(|field| base(&field.kind)));
            }
        }
        // The type itself, then the types that it references, sorted by name.
        found.remove(name);
        let mut text = String::new();
        for name in std::iter::once(name).chain(found) {
            let Some(fields) = self.types.get(name) else { continue };
            let fields: Vec<_> = fields.iter().map(|Field { name, kind }| format!("{kind} {name}")).collect();
            text += &format!("{name}({})", fields.join(","));
        }
        let hash = keccak256(text);
        self.hashes.insert(name, hash);
        Ok(hash)
    }

    /// Encodes a value of the type `kind` in 32 bytes.
    fn word(&mut self, kind: &str, value: Option<&Value>, path: &str) -> Result<[u8; 32], TypedDataError> {
        if !self.is_type(kind) {
            return fault(path, format!("there is no type {kind}"));
        }
        if let Some((element, length)) = array(kind) {
            let Some(Value::Array(values)) = value else { return unlike(path, &format!("an array ({kind})"), value) };
            if !length.is_empty() && number(length) != Some(values.len()) {
                return fault(path, format!("expected {length} elements ({kind}), got {}", values.len()));
            }
            let mut encoded = Vec::new();
            for (index, value) in values.iter().enumerate() {
                encoded.extend(self.word(element, Some(value), &format!("{path}[{index}]"))?);
            }
            return Ok(keccak256(encoded).0);
        }
        if self.types.contains_key(kind) {
            return match value {
                Some(Value::Object(value)) => Ok(self.hash_struct(kind, value, path)?.0),
                None | Some(Value::Null) => Ok([0; 32]),
                _ => unlike(path, &format!("an object ({kind})"), value),
            };
        }
        let word = Elementary::parse(kind).zip(value).and_then(|(kind, value)| kind.word(value));
        word.map_or_else(|| unlike(path, &format!("a value of type {kind}"), value), Ok)
    }

    /// Returns whether `kind` is elementary, one of the types of the data, or an array of such a type.
    fn is_type(&self, kind: &str) -> bool {
        match array(kind) {
            Some((element, length)) => (length.is_empty() || number(length).is_some()) && self.is_type(element),
            None => self.types.contains_key(kind) || Elementary::parse(kind).is_some(),
        }
    }
}

/// Returns the type without its brackets.
fn base(kind: &str) -> &str {
    kind.split_once('[').map_or(kind, |(base, _)| base)
}

/// Returns the type of an array's elements, and the text between its brackets.
fn array(kind: &str) -> Option<(&str, &str)> {
    kind.strip_suffix(']')?.rsplit_once('[')
}

/// Parses the length of an array or the size of a type, which has no sign and no leading zeros.
fn number(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number: &usize| number.to_string() == text)
}

/// A type that is not composed of others.
#[derive(Clone, Copy, Debug)]
enum Elementary {
    String,
    Bytes,
    Bool,
    Address,
    /// A number of bytes.
    FixedBytes(usize),
    Integer {
        bits: usize,
        signed: bool,
    },
}

impl Elementary {
    fn parse(kind: &str) -> Option<Self> {
        match kind {
            "string" => return Some(Self::String),
            "bytes" => return Some(Self::Bytes),
            "bool" => return Some(Self::Bool),
            "address" => return Some(Self::Address),
            _ => {}
        }
        if let Some(size) = kind.strip_prefix("bytes") {
            return number(size).filter(|size| (1..=32).contains(size)).map(Self::FixedBytes);
        }
        let (size, signed) = match kind.strip_prefix("uint") {
            Some(size) => (size, false),
            None => (kind.strip_prefix("int")?, true),
        };
        let bits = if size.is_empty() { 256 } else { number(size)? };
        ((8..=256).contains(&bits) && bits.is_multiple_of(8)).then_some(Self::Integer { bits, signed })
    }

    /// Encodes a value, or returns `None` if it has another type.
    fn word(self, value: &Value) -> Option<[u8; 32]> {
        Some(match self {
            Self::String => keccak256(value.as_str()?).0,
            Self::Bytes => keccak256(bytes(value.as_str()?)?).0,
            Self::Bool => U256::from(u8::from(value.as_bool()?)).to_big_endian(),
            Self::Address => {
                let address: Address = value.as_str()?.parse().ok()?;
                U256::from_big_endian(address.as_bytes()).to_big_endian()
            }
            Self::FixedBytes(size) => {
                let bytes = bytes(value.as_str()?).filter(|bytes| bytes.len() == size)?;
                let mut word = [0; 32];
                word[..size].copy_from_slice(&bytes);
                word
            }
            Self::Integer { bits, signed } => integer(value, bits, signed)?.to_big_endian(),
        })
    }
}

fn bytes(text: &str) -> Option<Bytes> {
    text.parse::<node_types::wire::BytesData>().ok().map(|data| data.0)
}

/// Encodes an integer of `bits` bits in two's complement.
fn integer(value: &Value, bits: usize, signed: bool) -> Option<U256> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return None,
    };
    let (negative, digits) = text.strip_prefix('-').map_or((false, text.as_str()), |digits| (true, digits));
    let number = digits.parse::<node_types::wire::Quantity<U256>>().ok()?.0;
    if !signed {
        return (!negative && number.bits() <= bits).then_some(number);
    }
    let limit = U256::one() << (bits - 1);
    if negative {
        (number <= limit).then(|| (!number).overflowing_add(U256::one()).0)
    } else {
        (number < limit).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns the example of EIP-712.
    fn mail() -> Value {
        json!({
            "types": {
                "EIP712Domain": [
                    {"name": "name", "type": "string"}, {"name": "version", "type": "string"},
                    {"name": "chainId", "type": "uint256"}, {"name": "verifyingContract", "type": "address"},
                ],
                "Person": [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}],
                "Mail": [
                    {"name": "from", "type": "Person"}, {"name": "to", "type": "Person"},
                    {"name": "contents", "type": "string"},
                ],
            },
            "primaryType": "Mail",
            "domain": {
                "name": "Ether Mail", "version": "1", "chainId": 1,
                "verifyingContract": "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC",
            },
            "message": {
                "from": {"name": "Cow", "wallet": "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"},
                "to": {"name": "Bob", "wallet": "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"},
                "contents": "Hello, Bob!",
            },
        })
    }

    fn hash(value: Value) -> Result<String, String> {
        let data = TypedData::read(value).map_err(|error| error.to_string())?;
        data.signing_hash().map(|hash| format!("{hash:#x}")).map_err(|error| error.to_string())
    }

    const MAIL: &str = "0xbe609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2";

    #[test]
    fn the_example_of_the_proposal() {
        assert_eq!(hash(mail()).unwrap(), MAIL);
        let mut without = mail();
        without["types"].as_object_mut().unwrap().remove(DOMAIN);
        assert_eq!(hash(without).unwrap(), MAIL, "the type of the domain is derived from its fields");
        let mut domain = mail();
        domain["domain"]["chainId"] = json!("0x1");
        assert_eq!(hash(domain).unwrap(), MAIL);
    }

    /// From the tests of MetaMask's eth-sig-util, version 4: arrays of structs, and a recursive struct.
    #[test]
    fn arrays_and_recursion() {
        let mut person = mail();
        person["types"]["Person"] =
            json!([{"name": "name", "type": "string"}, {"name": "wallets", "type": "address[]"}]);
        person["types"]["Mail"] = json!([
            {"name": "from", "type": "Person"}, {"name": "to", "type": "Person[]"}, {"name": "contents", "type": "string"},
        ]);
        person["message"] = json!({
            "from": {"name": "Cow", "wallets": [
                "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826", "0xDeaDbeefdEAdbeefdEadbEEFdeadbeEFdEaDbeeF",
            ]},
            "to": [{"name": "Bob", "wallets": [
                "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB", "0xB0BdaBea57B0BDABeA57b0bdABEA57b0BDabEa57",
                "0xB0B0b0b0b0b0B000000000000000000000000000",
            ]}],
            "contents": "Hello, Bob!",
        });
        assert_eq!(hash(person).unwrap(), "0xa85c2e2b118698e88db68a8105b794a8cc7cec074e89ef991cb4f5f533819cc2");
        let tree = |depth: u32| {
            let mut node = json!({"name": "leaf"});
            for _ in 0..depth {
                node = json!({"name": "branch", "parent": node});
            }
            json!({
                "types": {"Node": [{"name": "name", "type": "string"}, {"name": "parent", "type": "Node"}]},
                "primaryType": "Node", "domain": {}, "message": node,
            })
        };
        assert_ne!(hash(tree(1)).unwrap(), hash(tree(2)).unwrap());
    }

    fn single(kind: &str, value: Value) -> Result<String, String> {
        hash(json!({
            "types": {"T": [{"name": "v", "type": kind}]}, "primaryType": "T", "domain": {}, "message": {"v": value},
        }))
    }

    #[test]
    fn values_fit_their_types_or_are_refused() {
        let fits = [
            ("uint8", json!(255)),
            ("uint8", json!("255")),
            ("uint256", json!("0xff")),
            ("uint", json!(1)),
            ("int8", json!(-128)),
            ("int8", json!("-128")),
            ("int", json!(-1)),
            ("bytes4", json!("0x01020304")),
            ("bytes", json!("0x")),
            ("bool", json!(false)),
            ("uint8[2]", json!([1, 2])),
            ("uint8[][2]", json!([[], [1]])),
        ];
        for (kind, value) in fits {
            assert!(single(kind, value.clone()).is_ok(), "{kind} {value}");
        }
        assert_eq!(single("int8", json!(-128)), single("int8", json!("-128")));
        let refused = [
            ("uint8", json!(256)),
            ("uint8", json!(-1)),
            ("uint8", json!(1.5)),
            ("uint8", json!("x")),
            ("int8", json!(128)),
            ("int8", json!(-129)),
            ("uint7", json!(1)),
            ("uint264", json!(1)),
            ("bytes4", json!("0x010203")),
            ("bytes33", json!("0x00")),
            ("bytes0", json!("0x")),
            ("bool", json!(1)),
            ("string", json!(1)),
            ("address", json!("0x12")),
            ("uint8[2]", json!([1])),
            ("uint8[]", json!(1)),
            ("uint8[x]", json!([1])),
            ("Nothing", json!({})),
        ];
        for (kind, value) in refused {
            let error = single(kind, value.clone()).expect_err(kind);
            assert!(error.starts_with("message.v"), "{kind} {value}: {error}");
        }
        for (kind, value) in
            [("string", json!(7)), ("bytes", json!({})), ("bool", json!("true")), ("address", json!(null))]
        {
            let expected = format!("message.v: expected a value of type {kind}, got {value}");
            assert_eq!(single(kind, value.clone()).unwrap_err(), expected.replace("{}", "an object"));
        }
        let mut missing = mail();
        missing["message"].as_object_mut().unwrap().remove("contents");
        let expected = "message.contents: expected a value of type string, got nothing";
        assert_eq!(hash(missing).unwrap_err(), expected);
        for (kind, value, expected) in [
            ("uint256[2]", json!(1), "expected an array (uint256[2]), got 1"),
            ("uint256[2]", json!([1]), "expected 2 elements (uint256[2]), got 1"),
            ("uint256[-1]", json!([1]), "there is no type uint256[-1]"),
            ("uint256[+1]", json!([1]), "there is no type uint256[+1]"),
            ("uint+8", json!(1), "there is no type uint+8"),
            ("P[]", json!(1), "there is no type P[]"),
            ("T", json!(1), "expected an object (T), got 1"),
            ("bytes4", json!("0".repeat(1000)), "expected a value of type bytes4, got a string of 1000 bytes"),
        ] {
            assert_eq!(single(kind, value).unwrap_err(), format!("message.v: {expected}"));
        }
    }

    #[test]
    fn errors_name_the_member_and_what_was_expected() {
        let cases = [
            ("types", json!(null), "types: expected an object with the members of each type, got null"),
            ("types", json!({"T": 5}), "types.T: expected an array with the members of the type, got 5"),
            ("types", json!({"T": ["x"]}), "types.T[0]: expected an object with name and type, got \"x\""),
            ("types", json!({"T": [{"type": "T"}]}), "types.T[0].name: expected a string, got nothing"),
            ("types", json!({"T": [{"name": "v", "type": 5}]}), "types.T[0].type: expected a string, got 5"),
            ("primaryType", json!(5), "primaryType: expected the name of a type, got 5"),
            ("primaryType", json!("Letter"), "primaryType: there is no type Letter"),
            ("message", json!("q"), "message: expected an object, got \"q\""),
            ("domain", json!("dom"), "domain: expected an object, got \"dom\""),
        ];
        for (member, value, expected) in cases {
            let mut data = mail();
            data[member] = value;
            assert_eq!(hash(data).unwrap_err(), expected);
        }
        let text = "expected typed data (EIP-712), ";
        for (value, expected) in [
            (json!(5), "an object or a string with its JSON, got 5"),
            (json!("5"), "an object or a string with its JSON, got 5"),
            (json!([]), "an object or a string with its JSON, got an array"),
            (json!("nope"), "got a string that is not its JSON: \"nope\""),
            (json!("{\"types\":"), "got a string that is not its JSON: \"{\\\"types\\\":\""),
        ] {
            assert_eq!(hash(value).unwrap_err(), format!("{text}{expected}"));
        }
        assert_eq!(hash(json!(mail().to_string())).unwrap(), MAIL);
    }

    #[test]
    fn a_domain_alone_is_signed_as_such() {
        let mut domain = mail();
        domain["primaryType"] = json!(DOMAIN);
        assert_ne!(hash(domain).unwrap(), MAIL);
    }
}
