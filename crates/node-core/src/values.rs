//! Parsers for the values of command-line options.

use std::num::ParseIntError;
use std::str::FromStr;
use std::time::Duration;

/// The units of durations with their milliseconds, longest first.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Parses an integer with a unit: `500ms`, `5s`, `10m`, `1h`. Without a unit it is in seconds.
///
/// # Errors
/// If the text has a different format, or the duration exceeds 2^64 milliseconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = if unit.is_empty() { "s" } else { unit };
    let Some((_, milliseconds)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("unknown unit {unit:?}, expected ms, s, m or h"));
    };
    let number = number.parse::<u64>().map_err(|error| error.to_string())?;
    number.checked_mul(*milliseconds).map(Duration::from_millis).ok_or_else(|| "too long".to_owned())
}

/// Parses a [`duration`] above zero, for timeouts.
///
/// # Errors
/// Those of [`duration`], or if it is zero.
pub fn time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("expected a duration above zero".to_owned()),
        time => Ok(time),
    }
}

/// Returns the shortest text that [`duration`] parses to this duration, in whole milliseconds; `0s` for zero.
pub fn text(duration: Duration) -> String {
    let all = duration.as_millis();
    let divides = |(unit, milliseconds): &&(&str, u64)| {
        all.is_multiple_of(u128::from(*milliseconds)) && (all > 0 || *unit == "s")
    };
    let (unit, milliseconds) = UNITS.iter().find(divides).unwrap_or(&UNITS[3]);
    format!("{}{unit}", all / u128::from(*milliseconds))
}

/// Parses an integer above zero, for limits.
///
/// # Errors
/// If the text is not an integer, or it is zero.
pub fn at_least_one<T>(text: &str) -> Result<T, String>
where
    T: FromStr<Err = ParseIntError> + From<bool> + PartialOrd,
{
    let number: T = text.parse().map_err(|error: ParseIntError| error.to_string())?;
    if number < T::from(true) { Err("expected 1 or more".to_owned()) } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let cases = [
            ("500ms", Some(500)),
            ("5s", Some(5_000)),
            ("7", Some(7_000)),
            ("5m", Some(300_000)),
            ("1h", Some(3_600_000)),
            ("", None),
            ("s", None),
            ("5d", None),
            ("-5s", None),
            ("99999999999999999999s", None),
            ("18446744073709551615h", None),
        ];
        for (text, milliseconds) in cases {
            assert_eq!(duration(text).ok(), milliseconds.map(Duration::from_millis), "{text:?}");
        }
        for written in ["0s", "500ms", "75s", "5m", "1h"] {
            assert_eq!(duration(written).map(text).as_deref(), Ok(written));
        }
    }

    #[test]
    fn nothing_at_all_is_no_limit() {
        assert!(duration("0ms").is_ok() && time("0ms").is_err() && time("1ms").is_ok());
        assert_eq!(at_least_one::<usize>("1"), Ok(1));
        assert_eq!(at_least_one::<u64>("0").unwrap_err(), "expected 1 or more");
        assert!(at_least_one::<usize>("-1").is_err() && at_least_one::<usize>("").is_err());
    }
}
