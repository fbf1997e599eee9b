//! Parsers for the values of command-line options.

pub use node_core::values::{at_least_one, duration, text, time};

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZero;

/// Maximum number of threads of one kind. actix accepts no more.
const MAX_THREADS: usize = 512;

/// Parses a number of threads.
pub(crate) fn threads(text: &str) -> Result<NonZero<usize>, String> {
    let number = text.parse::<NonZero<usize>>().ok().filter(|number| number.get() <= MAX_THREADS);
    number.ok_or_else(|| format!("expected a number from 1 to {MAX_THREADS}"))
}

/// Parses an address to listen on: an IP address, or `localhost`.
///
/// # Errors
/// If the text is neither.
pub fn host(text: &str) -> Result<IpAddr, String> {
    if text == "localhost" {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    text.parse().map_err(|_| "expected an IP address of this machine, such as 127.0.0.1 or ::, or localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_addresses_or_localhost() {
        assert_eq!(host("localhost"), Ok(IpAddr::from([127, 0, 0, 1])));
        assert_eq!(host("::1"), Ok(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])));
        assert!(host("node.example").is_err() && host("127.0.0.1:80").is_err());
    }
}
