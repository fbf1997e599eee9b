//! The rate of requests to an endpoint.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Compute units per second of an endpoint that refuses requests because of their rate: those of Alchemy's free plan,
/// which anvil assumes as well.
const DEFAULT_RATE: u64 = 330;

/// How much may be sent at once after a pause: the compute units of one second.
const BURST: Duration = Duration::from_secs(1);

/// Returns the compute units of a method, as Alchemy counts them.
pub(crate) fn cost(method: &str) -> u64 {
    match method {
        "eth_chainId" | "net_version" | "eth_blockNumber" | "eth_syncing" => 10,
        "eth_getLogs" | "trace_call" | "trace_filter" => 75,
        "eth_estimateGas" => 87,
        "eth_call" | "eth_createAccessList" | "eth_getTransactionCount" | "trace_transaction" | "trace_block" => 26,
        "eth_sendRawTransaction" => 250,
        _ if method.starts_with("debug_") => 309,
        _ if method.starts_with("trace_replay") => 2_983,
        _ => 20,
    }
}

/// A bucket of compute units that fills at a constant rate.
#[derive(Debug)]
pub(crate) struct Pace(Mutex<State>);

#[derive(Debug)]
struct State {
    limited: Limited,
    /// When the bucket will be full if nothing more is taken. It is empty if that is a [`BURST`] away, and may be in
    /// debt, so that a batch that costs more than the bucket holds can be sent.
    full_at: Instant,
}

#[derive(Debug)]
enum Limited {
    Never,
    /// Not yet, because no request was refused.
    NotYet,
    By(u64),
}

impl Pace {
    /// Creates a full bucket. Without a rate it is unlimited, until [`Self::slow_down`].
    pub(crate) fn new(rate: Option<u64>, never_limited: bool) -> Self {
        let limited = match rate {
            _ if never_limited => Limited::Never,
            Some(rate) => Limited::By(rate.max(1)),
            None => Limited::NotYet,
        };
        Self(Mutex::new(State { limited, full_at: Instant::now() }))
    }

    /// Returns the time until something may be taken.
    pub(crate) fn delay(&self, now: Instant) -> Duration {
        self.0.lock().full_at.saturating_duration_since(now).saturating_sub(BURST)
    }

    /// Takes compute units.
    pub(crate) fn take(&self, units: u64, now: Instant) {
        let mut state = self.0.lock();
        if let Limited::By(rate) = state.limited {
            state.full_at = state.full_at.max(now) + Duration::from_secs_f64(units as f64 / rate as f64);
        }
    }

    /// Limits the rate from now on, because the endpoint refused a request.
    pub(crate) fn slow_down(&self) {
        let mut state = self.0.lock();
        if matches!(state.limited, Limited::NotYet) {
            state.limited = Limited::By(DEFAULT_RATE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_units_may_be_taken_at_once() {
        let pace = Pace::new(Some(100), false);
        let now = Instant::now();
        pace.take(100, now);
        assert_eq!(pace.delay(now), Duration::ZERO);
        pace.take(50, now);
        let wait = pace.delay(now);
        assert!(wait > Duration::from_millis(490) && wait <= Duration::from_millis(500), "{wait:?}");
        assert_eq!(pace.delay(now + wait), Duration::ZERO);
        // Nothing is saved for longer than a second.
        let later = now + Duration::from_secs(60);
        pace.take(300, later);
        assert_eq!(pace.delay(later), Duration::from_secs(2));
    }

    #[test]
    fn the_rate_is_unlimited_until_the_endpoint_refuses() {
        let now = Instant::now();
        let pace = Pace::new(None, false);
        pace.take(1_000_000, now);
        assert_eq!(pace.delay(now), Duration::ZERO);
        pace.slow_down();
        pace.take(10 * DEFAULT_RATE, now);
        assert!(pace.delay(now) > Duration::from_secs(8));
        let never = Pace::new(Some(1), true);
        never.slow_down();
        never.take(1_000_000, now);
        assert_eq!(never.delay(now), Duration::ZERO);
    }
}
