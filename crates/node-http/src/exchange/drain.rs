//! Draining of bodies that were not read to the end.

use super::Exchange;
use crate::transfer;
use actix_web::http::Version;
use actix_web::{HttpResponse, rt, web};
use futures_util::{FutureExt, StreamExt};
use tokio::time::timeout;

/// Maximum number of bytes that are read of a refused body, as a multiple of the maximum body length.
const LENGTHS: usize = 2;

impl Exchange {
    /// Reads and discards the rest of the body, within limits on size and time, while the response is sent. Over
    /// HTTP/2 the stream would otherwise be reset, and clients might report that instead of the response. Over
    /// HTTP/1.1 actix does the same, and the connection ends.
    pub(super) fn drain(&mut self, response: &mut HttpResponse) {
        let Some(mut payload) = self.payload.take() else { return };
        // Most requests have no body, or one that was read.
        if let Some(None | Some(Err(_))) = payload.next().now_or_never() {
            return;
        }
        if self.request.version() < Version::HTTP_2 {
            return self.end_connection(response);
        }
        // Unread data is buffered in memory.
        let Ok(permit) = self.service.transfers.take(&self.sender.client, transfer::SHORT) else { return };
        let config = &self.service.config;
        let rest = timeout(config.body_timeout, discard(payload, config.max_body.saturating_mul(LENGTHS)));
        rt::spawn(async move {
            let _permit = permit;
            let _ = rest.await;
        });
    }
}

/// Reads up to `limit` bytes of `payload`.
async fn discard(mut payload: web::Payload, mut limit: usize) {
    while let Some(Ok(chunk)) = payload.next().await {
        match limit.checked_sub(chunk.len()) {
            Some(left) => limit = left,
            None => return,
        }
    }
}
