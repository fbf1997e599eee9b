//! Formatting of `console.log` lines. The placeholders are those of Hardhat's and Foundry's libraries: `%s`, `%d`,
//! `%i`, `%o`, and Foundry's `%x`, `%e` and `%18e`, where 18 is a number of decimals.

use super::escape::escaped;
use node_types::U256;
use std::fmt;

/// Maximum number of decimals of a placeholder.
const MAX_DECIMALS: usize = 1024;

/// An argument of `console.log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number {
        is_negative: bool,
        magnitude: U256,
    },
    Bool(bool),
    Text(String),
    /// An address or bytes, with the prefix.
    Hex(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    /// `%s`
    String,
    /// `%o`
    Object,
    /// `%d`
    Number,
    /// `%i`
    Integer,
    /// `%x`
    Hex,
    /// `%e`
    Exponential,
    /// `%18e`
    Decimals(usize),
}

/// Joins the values with spaces. If the first one is text, its placeholders are replaced with the following values. The
/// only control characters that remain are tabs and line breaks.
pub(super) fn line(values: &[Value]) -> String {
    let mut rest = values.iter();
    let mut parts = Vec::new();
    if let [Value::Text(format), after @ ..] = values {
        rest = after.iter();
        parts.extend(Some(filled(format, &mut rest)).filter(|_| !format.is_empty()));
    }
    parts.extend(rest.map(Value::to_string));
    let text = parts.join(" ").replace("\r\n", "\n");
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// Replaces the placeholders of `format` with values, as long as there are any.
fn filled<'a>(mut format: &str, values: &mut impl Iterator<Item = &'a Value>) -> String {
    let mut line = String::new();
    while let Some((text, after)) = format.split_once('%') {
        line.push_str(text);
        format = after;
        if let Some(after) = after.strip_prefix('%') {
            line.push('%');
            format = after;
        } else if let Some((placeholder, after)) = Placeholder::parse(after)
            && let Some(value) = values.next()
        {
            line.push_str(&value.shown(placeholder));
            format = after;
        } else {
            line.push('%');
        }
    }
    line + format
}

impl Placeholder {
    /// Parses the text after a `%`. Returns the placeholder and the text that follows it.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = &text[..text.len() - unit.len()];
        let kind = unit.chars().next()?;
        let placeholder = match (kind, digits) {
            ('s', "") => Self::String,
            ('o', "") => Self::Object,
            ('d', "") => Self::Number,
            ('i', "") => Self::Integer,
            ('x', "") => Self::Hex,
            ('e', "") => Self::Exponential,
            ('e', _) => Self::Decimals(digits.parse().ok().filter(|decimals| *decimals <= MAX_DECIMALS)?),
            _ => return None,
        };
        Some((placeholder, &unit[kind.len_utf8()..]))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown(Placeholder::String))
    }
}

impl Value {
    fn shown(&self, placeholder: Placeholder) -> String {
        let text = match self {
            Self::Number { is_negative, magnitude } => {
                let sign = if *is_negative { "-" } else { "" };
                return match placeholder {
                    Placeholder::Hex if *is_negative => format!("{:#x}", (!*magnitude).overflowing_add(U256::one()).0),
                    Placeholder::Hex => format!("{magnitude:#x}"),
                    Placeholder::Exponential => {
                        let digits = magnitude.to_string();
                        let exponent = digits.len() - 1;
                        format!("{sign}{}e{exponent}", with_decimals(&digits, exponent))
                    }
                    Placeholder::Decimals(decimals) => {
                        format!("{sign}{}", with_decimals(&magnitude.to_string(), decimals))
                    }
                    _ => format!("{sign}{magnitude}"),
                };
            }
            Self::Bool(value) => value.to_string(),
            Self::Text(text) | Self::Hex(text) => text.clone(),
        };
        match (placeholder, self) {
            (Placeholder::String, _) | (Placeholder::Hex, Self::Hex(_)) => text,
            (Placeholder::Object, _) => format!("'{text}'"),
            (Placeholder::Number, Self::Bool(value)) => u8::from(*value).to_string(),
            _ => "NaN".to_owned(),
        }
    }
}

/// Returns a number, given as digits, with a decimal point before the last `decimals` digits and without trailing
/// zeros.
fn with_decimals(digits: &str, decimals: usize) -> String {
    let padded = format!("{digits:0>width$}", width = decimals + 1);
    let (whole, fraction) = padded.split_at(padded.len() - decimals);
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    fn number(magnitude: u64) -> Value {
        Value::Number { is_negative: false, magnitude: magnitude.into() }
    }

    /// The expected lines are those of anvil 1.7.1.
    #[test]
    fn replaces_placeholders() {
        let minus = |magnitude: u64| Value::Number { is_negative: true, magnitude: magnitude.into() };
        let hex = || Value::Hex("0xaB".to_owned());
        let cases = [
            (vec![], ""),
            (vec![number(1), text("%s"), Value::Bool(true)], "1 %s true"),
            (vec![text("a %s b"), number(5)], "a 5 b"),
            (vec![text(""), number(5)], "5"),
            (vec![text("%s"), number(5), text("%d"), number(6)], "5 %d 6"),
            (vec![text("100%% %"), number(5)], "100% % 5"),
            (vec![text("%s %s"), number(5)], "5 %s"),
            (vec![text("%q %5d %"), number(5)], "%q %5d % 5"),
            (vec![text("%x %d %i %o"), number(255), number(255), number(255)], "0xff 255 255 %o"),
            (vec![text("%x"), minus(1)], &format!("0x{}", "f".repeat(64))),
            (vec![text("%e %e %e"), number(1_230_000), number(1_000), number(0)], "1.23e6 1e3 0e0"),
            (vec![text("%18e %18e"), number(1_500_000_000_000_000_000), number(1)], "1.5 0.000000000000000001"),
            (vec![text("%2e %e %d"), minus(150), minus(150), minus(150)], "-1.5 -1.5e2 -150"),
            (vec![text("%2000e"), number(1)], "%2000e 1"),
            (vec![text("%s %d %i"), Value::Bool(true), Value::Bool(true), Value::Bool(true)], "true 1 NaN"),
            (vec![text("%s %o %d"), text("x"), text("x"), text("x")], "x 'x' NaN"),
            (vec![text("%s %x %o"), hex(), hex(), hex()], "0xaB 0xaB '0xaB'"),
            (vec![text("%e"), hex()], "NaN"),
            (vec![text("ü%sü"), text("ä")], "üäü"),
        ];
        for (values, expected) in cases {
            assert_eq!(line(&values), expected, "{values:?}");
        }
    }
}
