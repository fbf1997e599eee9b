//! Status notifications for systemd (`Type=notify`). They do nothing if systemd did not start this process.

use sd_notify::NotifyState;
use std::fmt::Display;
use std::time::Duration;

/// Time until the next notification is due during a long start.
const START_TIME: Duration = Duration::from_secs(120);

/// The server is ready.
pub(crate) fn ready(address: impl Display) {
    notify(&[NotifyState::Ready, NotifyState::Status(&format!("listening on {address}"))]);
}

/// The start is still in progress; asks systemd for more time.
pub(crate) fn starting(status: impl Display) {
    let time = NotifyState::ExtendTimeoutUsec(START_TIME.as_micros().try_into().unwrap_or(u32::MAX));
    notify(&[time, NotifyState::Status(&status.to_string())]);
}

/// The server is shutting down.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("waiting for requests in progress")]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("cannot notify systemd: {error}");
    }
}
