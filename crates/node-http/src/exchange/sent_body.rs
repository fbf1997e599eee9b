//! The body of a request, which is kept until the response because errors repeat parts of it.

use crate::admission::clients::{Client, Permit};
use crate::exchange::transfer::SHORT;
use crate::problem::HttpError;
use crate::service::Service;
use actix_web::web::Bytes;
use std::sync::Arc;

/// A body that was read. A long one counts as memory of its client until it is dropped.
pub(super) struct SentBody {
    bytes: Bytes,
    _permit: Option<Permit>,
}

impl SentBody {
    /// Counts `bytes` if they are long.
    ///
    /// # Errors
    /// [`HttpError::Exhausted`] if there is not enough memory, for all clients together or for this one.
    pub(super) fn new(bytes: Bytes, service: &Service, client: &Arc<Client>) -> Result<Self, HttpError> {
        let is_long = bytes.len() > SHORT;
        let permit = is_long.then(|| service.transfers.take(client, bytes.len())).transpose()?;
        Ok(Self { bytes, _permit: permit })
    }

    pub(super) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }
}
