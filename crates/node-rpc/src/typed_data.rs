//! The signing hash of structured data (EIP-712), for eth_signTypedData_v4.

use node_types::{Address, Bytes, H256, U256, keccak256};
use serde::Deserialize;
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

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TypedData {
    types: BTreeMap<String, Vec<Field>>,
    primary_type: String,
    #[serde(default)]
    domain: Map<String, Value>,
    #[serde(default)]
    message: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
struct Field {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

/// Why data does not match its types, with the path to the mismatching value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub(crate) struct TypedDataError {
    path: String,
    reason: String,
}

fn fault<T>(path: &str, reason: impl Into<String>) -> Result<T, TypedDataError> {
    Err(TypedDataError { path: path.to_owned(), reason: reason.into() })
}

impl TypedData {
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
        if let Some((element, length)) = array(kind) {
            let Some(Value::Array(values)) = value else { return fault(path, format!("expected an array, a {kind}")) };
            if !length.is_empty() && length.parse() != Ok(values.len()) {
                return fault(path, format!("{} elements, expected {kind}", values.len()));
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
                _ => fault(path, format!("expected an object, a {kind}")),
            };
        }
        match value {
            Some(value) => atom(kind, value, path),
            None => fault(path, format!("there is no value, expected a {kind}")),
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

/// Encodes a value of an elementary type.
fn atom(kind: &str, value: &Value, path: &str) -> Result<[u8; 32], TypedDataError> {
    let unlike = || fault(path, format!("{value} is not a {kind}"));
    match (kind, value) {
        ("string", Value::String(text)) => return Ok(keccak256(text).0),
        ("bytes", Value::String(text)) => {
            return bytes(text).map_or_else(unlike, |bytes| Ok(keccak256(bytes).0));
        }
        ("bool", Value::Bool(value)) => return Ok(U256::from(u8::from(*value)).to_big_endian()),
        ("address", Value::String(text)) => {
            let Ok(address) = text.parse::<Address>() else { return unlike() };
            return Ok(U256::from_big_endian(address.as_bytes()).to_big_endian());
        }
        ("string" | "bytes" | "bool" | "address", _) => return unlike(),
        _ => {}
    }
    let sized = |prefix: &str| kind.strip_prefix(prefix).and_then(|size| size.parse::<usize>().ok());
    if let Some(size) = sized("bytes").filter(|size| (1..=32).contains(size)) {
        let Some(bytes) = value.as_str().and_then(bytes).filter(|bytes| bytes.len() == size) else { return unlike() };
        let mut word = [0; 32];
        word[..size].copy_from_slice(&bytes);
        return Ok(word);
    }
    let bits = |name| if kind == name { Some(256) } else { sized(name) };
    let is_size = |bits: &usize| (8..=256).contains(bits) && bits.is_multiple_of(8);
    if let Some(bits) = bits("uint").filter(is_size) {
        return integer(value, bits, false).map_or_else(unlike, |number| Ok(number.to_big_endian()));
    }
    if let Some(bits) = bits("int").filter(is_size) {
        return integer(value, bits, true).map_or_else(unlike, |number| Ok(number.to_big_endian()));
    }
    fault(path, format!("there is no type {kind}"))
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
        let data: TypedData = serde_json::from_value(value).map_err(|error| error.to_string())?;
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
            let expected = format!("message.v: {value} is not a {kind}");
            assert_eq!(single(kind, value).unwrap_err(), expected);
        }
        let mut missing = mail();
        missing["message"].as_object_mut().unwrap().remove("contents");
        assert_eq!(hash(missing).unwrap_err(), "message.contents: there is no value, expected a string");
        let mut unknown = mail();
        unknown["primaryType"] = json!("Letter");
        assert_eq!(hash(unknown).unwrap_err(), "message: there is no type Letter");
    }

    #[test]
    fn a_domain_alone_is_signed_as_such() {
        let mut domain = mail();
        domain["primaryType"] = json!(DOMAIN);
        assert_ne!(hash(domain).unwrap(), MAIL);
    }
}
