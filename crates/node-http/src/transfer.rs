//! Limits on responses that are being sent: on their total memory for all clients, and on the time that a client may
//! take to read them.

use crate::clients::Permit;
use crate::config::HttpConfig;
use crate::metrics::Metrics;
use crate::problem::HttpError;
use crate::sender::Sender;
use crate::service::Service;
use actix_web::rt;
use actix_web::web::Bytes;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Bodies of at most this length, in bytes, are not counted: a connection has a single one of them (HTTP/1.1), or one
/// for each stream.
pub(crate) const SHORT: usize = 16 * 1024;

/// Returns a permit to send `length` bytes, or `None` if they need none.
///
/// # Errors
/// [`HttpError::ResponseTooLarge`] if they would never be permitted, and [`HttpError::Exhausted`] if too many bytes are
/// unread, by all clients together or by this one.
pub(crate) fn permit(length: usize, service: &Service, sender: &Sender) -> Result<Option<Permit>, HttpError> {
    let limit = service.config.transfer_memory;
    if length <= SHORT {
        Ok(None)
    } else if length > limit {
        Err(HttpError::ResponseTooLarge { length, limit })
    } else {
        Ok(Some(service.transfers.take(&sender.client, length)?))
    }
}

/// Counts `bytes` as unread until the last copy of them is dropped. If the client reads them below the minimum rate,
/// the connection is closed.
///
/// # Errors
/// Those of [`permit`].
pub(crate) fn hold(bytes: Bytes, service: &Service, sender: &Sender) -> Result<Bytes, HttpError> {
    let Some(permit) = permit(bytes.len(), service, sender)? else { return Ok(bytes) };
    let (unread, read) = oneshot::channel::<()>();
    let limit = time_limit(bytes.len(), &service.config);
    let (connection, metrics) = (sender.connection.clone(), service.metrics.clone());
    rt::spawn(async move {
        // The sender is dropped with the bytes.
        if timeout(limit, read).await.is_err() {
            report_slow_client(&metrics);
            connection.close();
        }
    });
    Ok(Bytes::from_owner(Held { bytes, _permit: permit, _unread: unread }))
}

/// Records that a connection is being closed because its client reads too slowly.
pub(crate) fn report_slow_client(metrics: &Metrics) {
    tracing::debug!("closing a connection whose client reads too slowly");
    metrics.record_refusal("read-rate");
}

/// Returns the time in which `length` bytes must be read.
pub(crate) fn time_limit(length: usize, config: &HttpConfig) -> Duration {
    config.write_timeout + Duration::from_millis(length as u64 * 1_000 / u64::from(config.least_read_rate.get()))
}

struct Held {
    bytes: Bytes,
    _permit: Permit,
    _unread: oneshot::Sender<()>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Counts the request of `permit` as in progress until the last copy of `bytes` is dropped.
pub(crate) fn hold_request(bytes: Bytes, permit: Permit) -> Bytes {
    struct Counted(Bytes, #[expect(dead_code, reason = "it is held")] Permit);
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Counted(bytes, permit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_responses_have_more_time() {
        let config = HttpConfig::default();
        let cases = [(0, 60_000), (16 * 1024, 61_000), (10 * 1024 * 1024, 700_000)];
        for (length, milliseconds) in cases {
            assert_eq!(time_limit(length, &config), Duration::from_millis(milliseconds), "{length}");
        }
    }
}
