//! Limits on responses that are being written and sent: on their length, on their total memory for all clients, and on
//! the time that a client may take to read them.

use crate::admission::clients::{Client, Exhausted, Permit};
use crate::admission::sender::Sender;
use crate::config::HttpConfig;
use crate::metrics::Metrics;
use crate::service::Service;
use actix_web::rt;
use actix_web::web::Bytes;
use node_types::wire::{Allowance, BufferFull, JsonBuffer};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Bodies of at most this length, in bytes, are not counted: a connection has a single one of them.
pub(crate) const SHORT: usize = 16 * 1024;

/// The memory of a response, which counts as held by its client from when it is written until it has been sent.
struct ResponseMemory {
    permit: Permit,
    /// Maximum length of a response in bytes.
    most: usize,
}

impl Allowance for ResponseMemory {
    fn most(&self) -> usize {
        self.most.min(self.permit.capacity())
    }

    fn hold(&mut self, bytes: usize) -> Result<(), BufferFull> {
        let capacity = self.permit.capacity();
        if bytes > self.most {
            return Err(BufferFull::TooLong { limit: self.most });
        }
        if bytes > capacity {
            return Err(BufferFull::OverMemory { limit: capacity });
        }
        match bytes.checked_sub(self.permit.amount()) {
            Some(more) => self.permit.grow(more).map_err(|_| BufferFull::NoMemory { limit: capacity }),
            None => {
                self.permit.give_back(self.permit.amount() - bytes);
                Ok(())
            }
        }
    }
}

/// Returns the buffer for a response to `client`.
pub(crate) fn buffer(service: &Service, client: &Arc<Client>) -> JsonBuffer {
    let most = service.config.requests.max_response;
    JsonBuffer::within(ResponseMemory { permit: service.transfers.take_nothing(client), most }, SHORT)
}

/// A complete body. A long one counts as memory of its client until it is dropped or has been sent.
pub(crate) struct CompleteBody {
    bytes: Bytes,
    memory: Option<Box<dyn Allowance>>,
}

impl CompleteBody {
    /// Creates the body that was written to a [buffer].
    ///
    /// # Errors
    /// If the buffer is full, so that the body is incomplete.
    pub(crate) fn new(buffer: JsonBuffer) -> Result<Self, BufferFull> {
        if let Some(full) = buffer.full() {
            return Err(full);
        }
        let (mut bytes, memory) = buffer.into_parts();
        if bytes.len() > SHORT {
            return Ok(Self { bytes: bytes.into(), memory });
        }
        // It may be an error in the buffer of a long response, whose memory would not be counted.
        if bytes.capacity() > SHORT {
            bytes.shrink_to_fit();
        }
        Ok(Self::uncounted(bytes.into()))
    }

    /// Counts `bytes` if they are long.
    ///
    /// # Errors
    /// If there is not enough memory for them, for all clients together or for this one.
    pub(crate) fn counted(bytes: Bytes, service: &Service, client: &Arc<Client>) -> Result<Self, Exhausted> {
        if bytes.len() <= SHORT {
            return Ok(Self::uncounted(bytes));
        }
        let permit = service.transfers.take(client, bytes.len())?;
        let most = bytes.len();
        Ok(Self { bytes, memory: Some(Box::new(ResponseMemory { permit, most })) })
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Creates a body that is always sent: it is short, or shared by all clients.
    pub(crate) fn uncounted(bytes: Bytes) -> Self {
        Self { bytes, memory: None }
    }

    /// Returns the bytes, which the caller must send now. If the client reads them below the minimum rate, the
    /// connection is closed.
    pub(crate) fn send(self, service: &Service, sender: &Sender) -> Bytes {
        let Self { bytes, memory: Some(memory) } = self else { return self.bytes };
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
        Bytes::from_owner(Held { bytes, _memory: memory, _unread: unread })
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
    _memory: Box<dyn Allowance>,
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
