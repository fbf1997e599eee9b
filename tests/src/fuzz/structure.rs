//! Mutations that preserve the structure of an input.

use super::mutate::{Random, change_bytes};
use rlp::{Rlp, RlpStream};
use serde_json::{Value, json};

/// Deepest nesting that is read.
const MAX_DEPTH: usize = 32;

/// An RLP item.
#[derive(Clone)]
enum Item {
    Bytes(Vec<u8>),
    List(Vec<Item>),
}

/// Changes one item. `None` if `input` is not RLP.
pub(super) fn change_rlp(random: &mut Random, input: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let mut tree = Item::List(read_items(input, MAX_DEPTH)?);
    let others = Item::List(read_items(other, MAX_DEPTH).unwrap_or_default());
    let foreign = nth_item(&others, random.below(count_items(&others)))?.clone();
    let place = random.below(count_items(&tree));
    change_item(random, nth_item_mut(&mut tree, place)?, foreign);
    let mut out = Vec::new();
    match tree {
        Item::List(items) => items.iter().for_each(|item| out.extend(encode_item(item))),
        bytes => out.extend(encode_item(&bytes)),
    }
    Some(out)
}

fn change_item(random: &mut Random, item: &mut Item, foreign: Item) {
    match (random.below(10), item) {
        (0, item) => *item = foreign,
        (1, item) => *item = Item::Bytes(interesting_bytes(random)),
        (2, item) => *item = Item::List(Vec::new()),
        (3, item) => *item = Item::List(vec![item.clone()]),
        (4, Item::List(items)) if !items.is_empty() => drop(items.remove(random.below(items.len()))),
        (5, Item::List(items)) if !items.is_empty() => {
            let copied = random.choose(items).clone();
            items.insert(random.below(items.len() + 1), copied);
        }
        (6, Item::List(items)) if items.len() > 1 => {
            let (a, b) = (random.below(items.len()), random.below(items.len()));
            items.swap(a, b);
        }
        (_, Item::List(items)) => items.insert(random.below(items.len() + 1), foreign),
        (7, Item::Bytes(bytes)) => bytes.insert(0, 0),
        (8, Item::Bytes(bytes)) => *bytes = interesting_bytes(random),
        (_, Item::Bytes(bytes)) => change_bytes(random, bytes, &[0; 4]),
    }
}

/// Returns a number or a word at the edge of what a field can hold.
fn interesting_bytes(random: &mut Random) -> Vec<u8> {
    let length = *random.choose(&[0, 1, 2, 7, 8, 9, 16, 17, 19, 20, 21, 31, 32, 33, 55, 56, 256]);
    let first = *random.choose(&[0, 1, 27, 35, 0x7f, 0x80, 0xff]);
    let rest = *random.choose(&[0, 0xff]);
    (0..length).map(|index| if index == 0 { first } else { rest }).collect()
}

fn read_items(bytes: &[u8], depth: usize) -> Option<Vec<Item>> {
    let mut rest = bytes;
    let mut items = Vec::new();
    while !rest.is_empty() {
        let info = Rlp::new(rest).payload_info().ok()?;
        let length = info.header_len.checked_add(info.value_len)?;
        let (item, after) = rest.split_at_checked(length)?;
        let payload = &item[info.header_len..];
        items.push(match item[0] {
            0xc0.. if depth == 0 => return None,
            0xc0.. => Item::List(read_items(payload, depth - 1)?),
            _ => Item::Bytes(payload.to_vec()),
        });
        rest = after;
    }
    Some(items)
}

fn encode_item(item: &Item) -> Vec<u8> {
    match item {
        Item::Bytes(bytes) => rlp::encode(bytes).into(),
        Item::List(items) => {
            let mut stream = RlpStream::new_list(items.len());
            for item in items {
                stream.append_raw(&encode_item(item), 1);
            }
            stream.out().into()
        }
    }
}

fn count_items(item: &Item) -> usize {
    match item {
        Item::Bytes(_) => 1,
        Item::List(items) => 1 + items.iter().map(count_items).sum::<usize>(),
    }
}

fn nth_item(item: &Item, place: usize) -> Option<&Item> {
    let Some(mut place) = place.checked_sub(1) else { return Some(item) };
    let Item::List(items) = item else { return None };
    for item in items {
        let count = count_items(item);
        if place < count {
            return nth_item(item, place);
        }
        place -= count;
    }
    None
}

fn nth_item_mut(item: &mut Item, place: usize) -> Option<&mut Item> {
    let Some(mut place) = place.checked_sub(1) else { return Some(item) };
    let Item::List(items) = item else { return None };
    for item in items {
        let count = count_items(item);
        if place < count {
            return nth_item_mut(item, place);
        }
        place -= count;
    }
    None
}

/// Changes one value. `None` if `input` is not JSON.
pub(super) fn change_json(random: &mut Random, input: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let mut tree: Value = serde_json::from_slice(input).ok()?;
    let other = serde_json::from_slice(other).unwrap_or_default();
    let mut foreign = vec![&other];
    foreign.extend(values_of(&other));
    let foreign = (*random.choose(&foreign)).clone();
    let place = random.below(1 + count_values(&tree));
    change_value(random, nth_value(&mut tree, place)?, foreign);
    Some(tree.to_string().into_bytes())
}

fn change_value(random: &mut Random, value: &mut Value, foreign: Value) {
    match (random.below(8), value) {
        (0, value) => *value = foreign,
        (1 | 2, value) => *value = interesting_value(random),
        (3, Value::Array(items)) if !items.is_empty() => drop(items.remove(random.below(items.len()))),
        (4, Value::Array(items)) if !items.is_empty() => {
            let copied = random.choose(items).clone();
            items.insert(random.below(items.len() + 1), copied);
        }
        (_, Value::Array(items)) => items.insert(random.below(items.len() + 1), foreign),
        (3, Value::Object(members)) if !members.is_empty() => {
            let place = random.below(members.len());
            let name = members.keys().nth(place).cloned().unwrap_or_default();
            members.remove(&name);
        }
        (_, Value::Object(members)) if !members.is_empty() => {
            let place = random.below(members.len());
            let name = members.keys().nth(place).cloned().unwrap_or_default();
            let value = if random.below(2) == 0 { foreign } else { interesting_value(random) };
            members.insert(name, value);
        }
        (_, Value::String(text)) => {
            let mut bytes = std::mem::take(text).into_bytes();
            change_bytes(random, &mut bytes, b"0xf");
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
        (_, value) => *value = interesting_value(random),
    }
}

/// Returns a value at an edge: of a type, a number, a word, a block argument.
fn interesting_value(random: &mut Random) -> Value {
    let word = |byte: &str, times: usize| Value::String(format!("0x{}", byte.repeat(times)));
    match random.below(24) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(u64::MAX),
        5 => json!(1.5),
        6 => json!(1e300),
        7 => json!(""),
        8 => json!("0x"),
        9 => json!("0x0"),
        10 => json!("0x00"),
        11 => json!("0x1"),
        12 => json!("latest"),
        13 => json!("pending"),
        14 => json!("earliest"),
        15 => word("ff", 8),
        16 => word("ff", 20),
        17 => word("ff", 32),
        18 => word("01", 33),
        19 => json!([]),
        20 => json!({}),
        21 => json!("18446744073709551616"),
        22 => (0..100).fold(Value::Null, |inner, _| json!([inner])),
        _ => json!("\u{0}\u{7f}\u{10ffff}"),
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

fn values_of(value: &Value) -> Vec<&Value> {
    children(value).into_iter().flat_map(|child| std::iter::once(child).chain(values_of(child))).collect()
}

fn count_values(value: &Value) -> usize {
    values_of(value).len()
}

fn nth_value(value: &mut Value, place: usize) -> Option<&mut Value> {
    let Some(mut place) = place.checked_sub(1) else { return Some(value) };
    let children: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(members) => members.values_mut().collect(),
        _ => return None,
    };
    for child in children {
        let count = 1 + count_values(child);
        if place < count {
            return nth_value(child, place);
        }
        place -= count;
    }
    None
}

/// Changes the line or the JSON text of a request.
pub(super) fn change_request(random: &mut Random, input: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let split = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        Some((bytes[..end].to_vec(), bytes[end + 1..].to_vec()))
    };
    let (mut line, mut body) = split(input)?;
    let (other_line, other_body) = split(other)?;
    if body.is_empty() || random.below(3) == 0 {
        change_bytes(random, &mut line, &other_line);
    } else {
        body = change_json(random, &body, &other_body)?;
    }
    line.retain(|byte| *byte != b'\n');
    Some([line, body].join(&b'\n'))
}
