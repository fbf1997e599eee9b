//! Parsing of unsigned numbers.

use crate::U256;

/// Why text is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigitsError {
    /// The text is empty, or a character is not a digit.
    Digit,
    /// The number has more than 256 bits.
    Overflow,
}

/// Parses the digits of a number in base 10 or 16. Hex digits may have either case. Leading zeros are allowed; signs,
/// spaces and prefixes are not.
///
/// # Errors
/// If `digits` is empty or contains anything but digits, or if the number has more than 256 bits.
pub fn parse_digits(digits: &str, radix: u32) -> Result<U256, DigitsError> {
    if digits.is_empty() || !digits.bytes().all(|digit| char::from(digit).is_digit(radix)) {
        return Err(DigitsError::Digit);
    }
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Ok(U256::zero());
    }
    // 256 bits have at most 64 hex digits or 78 decimal digits.
    if significant.len() > 78 {
        return Err(DigitsError::Overflow);
    }
    // Most numbers are short, and 256-bit arithmetic is slow.
    if let Ok(number) = u64::from_str_radix(significant, radix) {
        return Ok(number.into());
    }
    U256::from_str_radix(significant, radix).map_err(|_| DigitsError::Overflow)
}
