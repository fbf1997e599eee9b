//! Wall-clock time, and time that only moves forward.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A source of time. A program can control [`ManualClock`].
pub trait Clock: Send + Sync {
    /// Returns the wall-clock time in milliseconds since the Unix epoch. It moves backwards if the system clock is
    /// set back.
    fn now_millis(&self) -> u64;

    /// Returns a time in milliseconds that never moves backwards while the process runs, for lifetimes and for
    /// ascending numbers. It starts at the wall-clock time.
    fn steady_millis(&self) -> u64;
}

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_millis(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        millis(since_epoch)
    }

    fn steady_millis(&self) -> u64 {
        /// The instant of the first use of this clock, and the wall-clock time at that instant.
        static START: LazyLock<(Instant, u64)> = LazyLock::new(|| (Instant::now(), SystemClock.now_millis()));
        let (start, time_of_day) = *START;
        time_of_day.saturating_add(millis(start.elapsed()))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A clock that moves only when [`advance`](Self::advance) or [`set`](Self::set) is called.
#[derive(Debug, Default)]
pub struct ManualClock {
    time_of_day: AtomicU64,
    steady: AtomicU64,
}

impl ManualClock {
    /// Returns a clock that is stopped at `millis` milliseconds since the Unix epoch.
    pub fn at(millis: u64) -> Self {
        Self { time_of_day: millis.into(), steady: millis.into() }
    }

    /// Advances both times by `millis` milliseconds, at most to `u64::MAX`.
    pub fn advance(&self, millis: u64) {
        for time in [&self.time_of_day, &self.steady] {
            time.update(Ordering::SeqCst, Ordering::SeqCst, |before| before.saturating_add(millis));
        }
    }

    /// Sets the wall-clock time to `millis` milliseconds since the Unix epoch. It may move backwards, as when a user
    /// sets the system clock.
    pub fn set(&self, millis: u64) {
        self.time_of_day.store(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_millis(&self) -> u64 {
        self.time_of_day.load(Ordering::SeqCst)
    }

    fn steady_millis(&self) -> u64 {
        self.steady.load(Ordering::SeqCst)
    }
}
