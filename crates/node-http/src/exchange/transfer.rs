//! Limits on responses that are being sent: on their total memory for all clients, and on the time that a client may
//! take to read them.

use crate::admission::clients::{Client, Permit};
use crate::admission::sender::Sender;
use crate::config::HttpConfig;
use crate::metrics::Metrics;
use crate::problem::HttpError;
use crate::service::Service;
use actix_web::rt;
use actix_web::web::Bytes;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Bodies of at most this length, in bytes, are not counted: a connection has a single one of them.
pub(crate) const SHORT: usize = 16 * 1024;

/// A complete response body. A long one counts as memory of its client until it is dropped or has been sent.
pub(crate) struct CompleteBody {
    bytes: Bytes,
    permit: Option<Permit>,
}

impl CompleteBody {
    /// Counts `bytes` if they are long.
    ///
    /// # Errors
    /// [`HttpError::ResponseTooLarge`] if there will never be enough memory for them, and [`HttpError::Exhausted`] if
    /// there is not enough now, for all clients together or for this one.
    pub(crate) fn new(mut bytes: Vec<u8>, service: &Service, client: &Arc<Client>) -> Result<Self, HttpError> {
        let (length, limit) = (bytes.len(), service.config.clients.transfer_memory);
        if length <= SHORT {
            // It may be an error in the buffer of a long response, whose memory would not be counted.
            if bytes.capacity() > SHORT {
                bytes.shrink_to_fit();
            }
            return Ok(Self::uncounted(bytes.into()));
        }
        if length > limit {
            return Err(HttpError::ResponseTooLarge { length, limit });
        }
        let permit = service.transfers.take(client, bytes.capacity().min(limit))?;
        Ok(Self { bytes: bytes.into(), permit: Some(permit) })
    }

    /// Creates a body that is always sent: it is short, or shared by all clients.
    pub(crate) fn uncounted(bytes: Bytes) -> Self {
        Self { bytes, permit: None }
    }

    /// Replaces the bytes by about as many others.
    pub(crate) fn map(self, convert: impl FnOnce(Bytes) -> Bytes) -> Self {
        Self { bytes: convert(self.bytes), permit: self.permit }
    }

    /// Returns the bytes, which the caller must send now. If the client reads them below the minimum rate, the
    /// connection is closed.
    pub(crate) fn send(self, service: &Service, sender: &Sender) -> Bytes {
        let Self { bytes, permit: Some(permit) } = self else { return self.bytes };
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
        Bytes::from_owner(Held { bytes, _permit: permit, _unread: unread })
    }
}

impl Deref for CompleteBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Records that a connection is being closed because its client reads too slowly.
pub(crate) fn report_slow_client(metrics: &Metrics) {
    tracing::debug!("closing a connection whose client reads too slowly");
    metrics.record_refusal("read-rate");
}

/// Returns the time in which `length` bytes must be read.
pub(crate) fn time_limit(length: usize, config: &HttpConfig) -> Duration {
    config.requests.write_timeout
        + Duration::from_millis(length as u64 * 1_000 / u64::from(config.clients.least_read_rate.get()))
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
