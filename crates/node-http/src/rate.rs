//! Rate limits for each client.

use actix_web::HttpRequest;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZero;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Default for servers that other machines can reach, in requests per second and client.
const REMOTE_DEFAULT: NonZero<u32> = NonZero::new(1_000).expect("it is not zero");

/// Clients to track before those are forgotten that have been idle long enough to have their full quota again.
const MAX_TRACKED: usize = 16_384;

/// Requests between two checks of how many clients are tracked.
const CHECK_INTERVAL: u64 = 1_024;

/// How many requests per second each client may send on average. Bursts may be as large as the number per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateLimit {
    /// 1,000 if the server listens on a non-loopback address, otherwise unlimited.
    #[default]
    Auto,
    /// Unlimited.
    Off,
    /// This many requests per second.
    PerSecond(NonZero<u32>),
}

impl RateLimit {
    /// The limit of a server that listens on `host`; `None` if unlimited.
    fn on(self, host: IpAddr) -> Option<NonZero<u32>> {
        match self {
            Self::Auto => (!host.is_loopback()).then_some(REMOTE_DEFAULT),
            Self::Off => None,
            Self::PerSecond(requests) => Some(requests),
        }
    }
}

impl FromStr for RateLimit {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            number => number.parse().map(Self::PerSecond).map_err(|_| InvalidRate),
        }
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::PerSecond(requests) => requests.fmt(f),
        }
    }
}

/// The text is not a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected auto, off, or a number of requests per second of at least 1")]
pub struct InvalidRate;

/// Counts the requests of each client.
pub(crate) struct RateLimiter {
    limit: NonZero<u32>,
    limiter: DefaultKeyedRateLimiter<IpAddr>,
    clock: DefaultClock,
    seen: AtomicU64,
}

/// A client has exceeded its rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooFast {
    /// Requests per second.
    pub(crate) limit: u32,
    /// Time until the client may send the request again.
    pub(crate) wait: Duration,
}

impl RateLimiter {
    /// Returns `None` if a server that listens on `host` has no limit.
    pub(crate) fn new(limit: RateLimit, host: IpAddr) -> Option<Self> {
        let limit = limit.on(host)?;
        let limiter = governor::RateLimiter::keyed(Quota::per_second(limit));
        Some(Self { limit, limiter, clock: DefaultClock::default(), seen: AtomicU64::new(0) })
    }

    /// Counts a request of `client`.
    pub(crate) fn check(&self, client: IpAddr) -> Result<(), TooFast> {
        let check = self.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(CHECK_INTERVAL);
        if check && self.limiter.len() > MAX_TRACKED {
            self.limiter.retain_recent();
        }
        let wait = |refused: governor::NotUntil<_>| refused.wait_time_from(self.clock.now());
        self.limiter.check_key(&client).map_err(|refused| TooFast { limit: self.limit.get(), wait: wait(refused) })
    }

    /// Counts `requests` of `client` at once. More than the limit per second are always refused.
    pub(crate) fn check_many(&self, client: IpAddr, requests: usize) -> Result<(), TooFast> {
        let Some(requests) = u32::try_from(requests).ok().map(NonZero::new) else {
            return Err(TooFast { limit: self.limit.get(), wait: Duration::from_secs(1) });
        };
        let Some(requests) = requests else { return Ok(()) };
        let wait = match self.limiter.check_key_n(&client, requests) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(refused)) => refused.wait_time_from(self.clock.now()),
            Err(_) => Duration::from_secs(1),
        };
        Err(TooFast { limit: self.limit.get(), wait })
    }
}

/// The client that sent `request` through `proxies` trusted proxies, each of which appends to `X-Forwarded-For`.
pub(crate) fn client(request: &HttpRequest, proxies: usize) -> Option<IpAddr> {
    let peer = request.peer_addr().map(|peer| peer.ip());
    let address = match proxies.checked_sub(1) {
        None => peer,
        // The nearest proxy wrote the last entry. Entries before those of the trusted proxies can be forged.
        Some(skipped) => {
            let headers = request.headers().get_all("x-forwarded-for").filter_map(|value| value.to_str().ok());
            let entries: Vec<_> = headers.flat_map(|value| value.split(',')).map(str::trim).collect();
            entries.iter().rev().nth(skipped).and_then(|entry| entry.parse().ok()).or(peer)
        }
    };
    address.map(network)
}

/// The address that identifies a client: an IPv4 address, or the /64 network of an IPv6 address, which a single site has.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn parses_limits_and_applies_the_default_by_address() {
        let local = IpAddr::from([127, 0, 0, 1]);
        let open = IpAddr::from([0, 0, 0, 0]);
        let cases = [
            ("auto", local, Ok(None)),
            ("auto", open, Ok(Some(1_000))),
            ("off", open, Ok(None)),
            ("5", local, Ok(Some(5))),
            ("0", local, Err(InvalidRate)),
            ("-1", local, Err(InvalidRate)),
            ("", local, Err(InvalidRate)),
        ];
        for (text, host, expected) in cases {
            let rate = text.parse::<RateLimit>();
            assert_eq!(rate.map(|rate| rate.on(host).map(NonZero::get)), expected, "{text} on {host}");
            assert!(rate.is_err() || rate.unwrap().to_string() == text);
        }
    }

    #[test]
    fn each_client_has_its_own_quota() {
        let limit = RateLimit::PerSecond(NonZero::new(2).unwrap());
        let limiter = RateLimiter::new(limit, IpAddr::from([127, 0, 0, 1])).unwrap();
        let [first, second] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        assert_eq!((limiter.check(first), limiter.check(first)), (Ok(()), Ok(())));
        let refused = limiter.check(first).unwrap_err();
        assert!(refused.limit == 2 && refused.wait <= Duration::from_millis(500), "{refused:?}");
        assert_eq!(limiter.check(second), Ok(()));
    }

    #[test]
    fn identifies_clients_behind_proxies() {
        let cases: [(&str, usize, &str); 7] = [
            ("", 0, "192.0.2.9"),
            ("203.0.113.5", 0, "192.0.2.9"),
            ("203.0.113.5", 1, "203.0.113.5"),
            ("198.51.100.1, 203.0.113.5", 1, "203.0.113.5"),
            ("198.51.100.1, 203.0.113.5", 2, "198.51.100.1"),
            ("198.51.100.1", 2, "192.0.2.9"),
            ("2001:db8:1:2:3:4:5:6", 1, "2001:db8:1:2::"),
        ];
        for (header, proxies, expected) in cases {
            let request = TestRequest::default().peer_addr("192.0.2.9:1".parse().unwrap());
            let request = request.insert_header(("x-forwarded-for", header)).to_http_request();
            assert_eq!(client(&request, proxies), Some(expected.parse().unwrap()), "{header:?} {proxies}");
        }
        assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), IpAddr::from([192, 0, 2, 1]));
    }
}
