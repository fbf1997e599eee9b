//! The period in which a certificate is valid (RFC 5280, section 4.1.2.5).

use std::ops::RangeInclusive;

/// Tags of the elements of a certificate.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns the Unix seconds in which a DER certificate is valid; `None` if it is malformed.
pub(super) fn validity(certificate: &[u8]) -> Option<RangeInclusive<i64>> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (mut content, _) = expect(certificate, SEQUENCE)?;
    // The version is absent from certificates of version 1.
    if let Some((_, rest)) = expect(content, VERSION) {
        content = rest;
    }
    // Serial number, algorithm and issuer.
    for _ in 0..3 {
        (_, _, content) = element(content)?;
    }
    let (validity, _) = expect(content, SEQUENCE)?;
    let (tag, time, rest) = element(validity)?;
    let begin = seconds(tag, time)?;
    let (tag, time, _) = element(rest)?;
    Some(begin..=seconds(tag, time)?)
}

/// Splits DER into the tag and the content of its first element, and the rest.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        length = bytes.iter().try_fold(0_usize, |length, byte| Some(length.checked_mul(256)? + usize::from(*byte)))?;
        rest = after;
    }
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Returns the content of the first element, which must have this tag, and the rest.
fn expect(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(der)?;
    (found == tag).then_some((content, rest))
}

/// Converts a time in UTC, `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`, to Unix seconds.
fn seconds(tag: u8, time: &[u8]) -> Option<i64> {
    let digits = str::from_utf8(time.strip_suffix(b"Z")?).ok()?;
    let digits = match tag {
        // Two digits mean a year from 1950 to 2049.
        UTC_TIME if digits < "50" => format!("20{digits}"),
        UTC_TIME => format!("19{digits}"),
        GENERALIZED_TIME => digits.to_owned(),
        _ => return None,
    };
    let number = |range: std::ops::Range<usize>| digits.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(4..6)?, number(6..8)?);
    let (hour, minute, second) = (number(8..10)?, number(10..12)?, number(12..14)?);
    // Days since 0000-03-01, with years that begin in March, so that leap days are at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    // Unix time begins 719,468 days later.
    Some((days - 719_468) * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a certificate with the elements up to the validity.
    fn certificate(version: &[u8], times: &[u8]) -> Vec<u8> {
        let wrapped = |content: &[u8]| [&[SEQUENCE, 0x81, content.len() as u8], content].concat();
        let validity = [&[SEQUENCE, times.len() as u8], times].concat();
        let content = [version, &[2, 1, 7, SEQUENCE, 0, SEQUENCE, 0], &validity, &[SEQUENCE, 0]].concat();
        wrapped(&wrapped(&content))
    }

    #[test]
    fn reads_the_validity() {
        let before = b"\x17\x0d240101000000Z";
        for (end, expected) in [
            (&b"\x17\x0d260228235959Z"[..], 1_772_323_199),
            (b"\x17\x0d240229000000Z", 1_709_164_800),
            (b"\x17\x0d700101000000Z", 0),
            (b"\x18\x0f20500301120000Z", 2_529_748_800),
            (b"\x18\x0f99991231235959Z", 253_402_300_799),
        ] {
            let times = [&before[..], end].concat();
            for version in [&[0xa0, 3, 2, 1, 2][..], &[]] {
                assert_eq!(validity(&certificate(version, &times)), Some(1_704_067_200..=expected), "{end:?}");
            }
        }
    }

    #[test]
    fn malformed_certificates_have_no_validity() {
        let times = b"\x17\x0d240101000000Z\x17\x0d260228235959Z";
        let whole = certificate(&[], times);
        for length in 0..whole.len() {
            assert_eq!(validity(&whole[..length]), None, "{length}");
        }
        for end in [&b"\x17\x0d26022823595XZ"[..], b"\x17\x0d2602282359590", b"\x04\x0d260228235959Z", b"\x17\x02\xffZ"]
        {
            assert_eq!(validity(&certificate(&[], &[&times[..15], end].concat())), None, "{end:?}");
        }
        assert_eq!(validity(&[SEQUENCE, 0xff, 1]), None);
    }
}
