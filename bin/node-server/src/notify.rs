//! Telling systemd how the service is, where it has started this program and wants to know (`Type=notify`).

use sd_notify::NotifyState;
use std::fmt::Display;
use std::time::Duration;

/// Time that a start may go on without a sign of life, once there was one.
const START_TIME: Duration = Duration::from_secs(120);

/// Requests are answered from now on.
pub(crate) fn ready(address: impl Display) {
    tell(&[NotifyState::Ready, NotifyState::Status(&format!("listening on {address}"))]);
}

/// The start takes longer, and goes on.
pub(crate) fn starting(status: impl Display) {
    let time = NotifyState::ExtendTimeoutUsec(START_TIME.as_micros().try_into().unwrap_or(u32::MAX));
    tell(&[time, NotifyState::Status(&status.to_string())]);
}

/// A signal has asked the program to end.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("running requests are finished")]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("systemd cannot be told: {error}");
    }
}
