//! Rate limits for each client.

use crate::admission::sender::Sender;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota};
use std::fmt;
use std::net::IpAddr;
use std::num::NonZero;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Default limit for clients on other machines, in requests per second.
const REMOTE_DEFAULT: NonZero<u32> = NonZero::new(1_000).expect("1,000 is not zero");

/// Number of tracked clients above which clients are forgotten that have been idle long enough to have their full
/// quota again.
const MAX_TRACKED: usize = 16_384;

/// Number of requests between two checks of how many clients are tracked.
const CHECK_INTERVAL: u64 = 1_024;

/// The number of requests per second that each client may send on average. Bursts may have up to as many requests as
/// are allowed per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateLimit {
    /// 1,000 for clients on other machines; programs on this machine are not limited.
    #[default]
    Auto,
    /// Unlimited.
    Off,
    /// This many requests per second.
    PerSecond(NonZero<u32>),
}

impl RateLimit {
    /// Returns the limit, and whether it applies to programs on this machine, or `None` if unlimited.
    fn limit(self) -> Option<(NonZero<u32>, bool)> {
        match self {
            Self::Auto => Some((REMOTE_DEFAULT, false)),
            Self::Off => None,
            Self::PerSecond(requests) => Some((requests, true)),
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
    /// Whether it applies to programs on this machine.
    applies_locally: bool,
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
    /// Creates a rate limiter. Returns `None` if clients are not limited.
    pub(crate) fn new(limit: RateLimit) -> Option<Self> {
        let (limit, applies_locally) = limit.limit()?;
        let limiter = governor::RateLimiter::keyed(Quota::per_second(limit));
        Some(Self { limit, applies_locally, limiter, clock: DefaultClock::default(), seen: AtomicU64::new(0) })
    }

    /// Returns whether the requests of `sender` are counted.
    pub(crate) fn applies_to(&self, sender: &Sender) -> bool {
        self.applies_locally || !sender.is_on_this_machine()
    }

    /// Counts `requests` requests of `client` at once. More than the limit per second are always refused.
    pub(crate) fn check(&self, client: IpAddr, requests: usize) -> Result<(), TooFast> {
        let check = self.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(CHECK_INTERVAL);
        if check && self.limiter.len() > MAX_TRACKED {
            self.limiter.retain_recent();
        }
        let Some(requests) = NonZero::new(u32::try_from(requests).unwrap_or(u32::MAX)) else { return Ok(()) };
        let wait = match self.limiter.check_key_n(&client, requests) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(refused)) => refused.wait_time_from(self.clock.now()),
            Err(_) => Duration::from_secs(1),
        };
        Err(TooFast { limit: self.limit.get(), wait })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_limits() {
        let cases = [
            ("auto", Ok(Some((1_000, false)))),
            ("off", Ok(None)),
            ("5", Ok(Some((5, true)))),
            ("0", Err(InvalidRate)),
            ("-1", Err(InvalidRate)),
            ("", Err(InvalidRate)),
        ];
        for (text, expected) in cases {
            let rate = text.parse::<RateLimit>();
            assert_eq!(rate.map(|rate| rate.limit().map(|(limit, local)| (limit.get(), local))), expected, "{text}");
            assert!(rate.is_err() || rate.unwrap().to_string() == text);
        }
    }

    #[test]
    fn each_client_has_its_own_quota() {
        let limiter = RateLimiter::new(RateLimit::PerSecond(NonZero::new(2).unwrap())).unwrap();
        let [first, second] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        assert_eq!(
            (limiter.check(first, 1), limiter.check(first, 0), limiter.check(first, 1)),
            (Ok(()), Ok(()), Ok(()))
        );
        let refused = limiter.check(first, 1).unwrap_err();
        assert!(refused.limit == 2 && refused.wait <= Duration::from_millis(500), "{refused:?}");
        assert_eq!(limiter.check(second, 2), Ok(()));
        assert!(limiter.check(IpAddr::from([10, 0, 0, 3]), 3).is_err(), "more than the limit at once");
    }
}
