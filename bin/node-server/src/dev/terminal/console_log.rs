//! Decoding of `console.log`, which contracts call with Hardhat's and Foundry's libraries.

use super::abi::{self, Type};
use super::console_format;
use node_types::{Address, H160, keccak256};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The address that the libraries call: the ASCII codes of `console.log`. It has no code.
pub(super) const ADDRESS: Address =
    H160([0, 0, 0, 0, 0, 0, 0, 0, 0, b'c', b'o', b'n', b's', b'o', b'l', b'e', b'.', b'l', b'o', b'g']);

/// Maximum number of arguments of one call.
const MAX_ARGUMENTS: usize = 4;

/// The types of the arguments by selector.
static SIGNATURES: LazyLock<HashMap<[u8; 4], Vec<Type>>> = LazyLock::new(signatures);

/// Returns the line that a call of the console prints, or `None` if the input is not such a call.
pub(super) fn decode(input: &[u8]) -> Option<String> {
    let (selector, arguments) = input.split_first_chunk::<4>()?;
    let types = SIGNATURES.get(selector)?;
    let values = types.iter().enumerate().map(|(index, kind)| abi::value(*kind, arguments, index));
    Some(console_format::line(&values.collect::<Option<Vec<_>>>()?))
}

fn signatures() -> HashMap<[u8; 4], Vec<Type>> {
    let mut all = HashMap::new();
    let mut add = |name: &str, types: &[(&str, Type)]| {
        let names: Vec<_> = types.iter().map(|(name, _)| *name).collect();
        let kinds: Vec<_> = types.iter().map(|(_, kind)| *kind).collect();
        // Old versions of Hardhat's library compute selectors with `uint` and `int`.
        let exact = format!("{name}({})", names.join(","));
        for signature in [exact.replace("int256", "int"), exact] {
            let [a, b, c, d, ..] = keccak256(signature.as_bytes()).0;
            all.insert([a, b, c, d], kinds.clone());
        }
    };
    const COMMON: [(&str, Type); 4] =
        [("uint256", Type::Uint), ("string", Type::String), ("bool", Type::Bool), ("address", Type::Address)];
    let mut lists: Vec<Vec<(&str, Type)>> = vec![Vec::new()];
    for length in 0..=MAX_ARGUMENTS {
        lists.iter().for_each(|list| add("log", list));
        if length < MAX_ARGUMENTS {
            let longer = |list: &Vec<_>| COMMON.map(|last| [&list[..], &[last]].concat());
            lists = lists.iter().flat_map(longer).collect();
        }
    }
    let (int, bytes) = (("int256", Type::Int), ("bytes", Type::Bytes));
    add("log", &[int]);
    add("log", &[("string", Type::String), int]);
    add("log", &[bytes]);
    add("logInt", &[int]);
    add("logBytes", &[bytes]);
    for (name, argument) in ["logUint", "logString", "logBool", "logAddress"].into_iter().zip(COMMON) {
        add(name, &[argument]);
    }
    for length in 1..=32 {
        let name = format!("bytes{length}");
        let fixed = (name.as_str(), Type::Fixed(length));
        add("log", &[fixed]);
        add(&format!("logBytes{length}"), &[fixed]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(signature: &str, words: &[&str]) -> Vec<u8> {
        let mut input = keccak256(signature.as_bytes())[..4].to_vec();
        for word in words {
            input.extend(const_hex::decode(word).unwrap());
        }
        input
    }

    fn word(number: u64) -> String {
        format!("{number:064x}")
    }

    fn text(text: &str) -> String {
        format!("{:064x}{:0<64}", text.len(), const_hex::encode(text))
    }

    #[test]
    fn decodes_every_kind_of_argument() {
        let minus_two = "f".repeat(63) + "e";
        let address = word(0xaa);
        let cases = [
            (call("log()", &[]), Some("")),
            (call("log(uint256)", &[&word(7)]), Some("7")),
            (call("log(uint)", &[&word(7)]), Some("7")),
            (call("log(int256)", &[&minus_two]), Some("-2")),
            (call("log(string)", &[&word(32), &text("hello")]), Some("hello")),
            (call("log(string)", &[&word(32), &text("a\x1b[2Jb")]), Some(r"a\u{1b}[2Jb")),
            (call("log(string)", &[&word(32), &text("a\r\nb\n\nc\r")]), Some("a\nb\n\nc\\r")),
            (call("log(string,uint256)", &[&word(64), &word(5), &text("a %s b")]), Some("a 5 b")),
            (call("log(string,uint256)", &[&word(64), &word(5), &text("%x %e")]), Some("0x5 %e")),
            (call("log(bool,address)", &[&word(1), &address]), Some("true 0x00000000000000000000000000000000000000AA")),
            (call("log(bytes)", &[&word(32), &text("ab")]), Some("0x6162")),
            (call("logBytes2(bytes2)", &[&format!("{:0<64}", "6162")]), Some("0x6162")),
            (
                call("log(uint256,string,bool,uint256)", &[&word(1), &word(128), &word(0), &word(9), &text("x")]),
                Some("1 x false 9"),
            ),
            (call("log(string)", &[&word(1_000)]), None),
            (call("log(string)", &[&"f".repeat(64)]), None),
            (call("log(uint256)", &[]), None),
            (call("transfer(address)", &[&address]), None),
            (vec![1, 2], None),
        ];
        for (input, expected) in cases {
            assert_eq!(decode(&input).as_deref(), expected, "{}", const_hex::encode(&input));
        }
    }

    #[test]
    fn knows_the_selectors_of_the_libraries() {
        // From hardhat/console.sol and forge-std/console.sol.
        for selector in
            [[0x41, 0x30, 0x4f, 0xac], [0xf5, 0xb1, 0xbb, 0xa9], [0xf8, 0x2c, 0x50, 0xf1], [0x51, 0x97, 0x3e, 0xc9]]
        {
            assert!(SIGNATURES.contains_key(&selector), "{selector:x?}");
        }
    }
}
