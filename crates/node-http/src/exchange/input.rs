//! Reading the body and the parameters of a request.

use super::{Exchange, Job, negotiation};
use crate::exchange::body;
use crate::exchange::parameters::Parameters;
use crate::exchange::transfer::CompleteBody;
use crate::problem::HttpError;
use crate::scheduling;
use actix_web::web::Bytes;
use node_core::context::Context;
use node_core::node::Node;
use node_types::wire::{BodyError, ErrorDetail};
use std::sync::Arc;

/// Decodes a body and makes it the input of a job.
pub(crate) type DecodeBody = dyn Fn(&Node, &[u8]) -> Result<Job, HttpError> + Send + Sync;

impl Exchange {
    /// Reads the body without decoding it.
    ///
    /// # Errors
    /// If the body is not declared as JSON, exceeds a limit, or does not arrive completely.
    pub(crate) async fn raw_body(&mut self) -> Result<Bytes, HttpError> {
        let Some(payload) = &mut self.payload else { return Err(HttpError::Body(BodyError::Empty)) };
        body::read_json(&self.request, payload, &self.service, &self.sender.client).await
    }

    /// Reads the body and makes it the input of a job. If it is not `required`, a missing body counts as empty.
    ///
    /// # Errors
    /// Those of [`raw_body`](Self::raw_body), and every fault of the input.
    pub(crate) async fn decode_body(&mut self, required: bool, decode: Arc<DecodeBody>) -> Result<Job, HttpError> {
        let body = if !required && body::is_declared_empty(&self.request) {
            Bytes::new()
        } else {
            match self.raw_body().await {
                Err(HttpError::Body(BodyError::Empty)) if !required => Bytes::new(),
                body => body?,
            }
        };
        // Errors repeat parts of it.
        self.sent_body = Some(CompleteBody::counted(body.clone(), &self.service, &self.sender.client)?);
        let service = self.service.clone();
        let cost = scheduling::decoding_cost(body.len());
        let decode = Box::new(move |_: &Context| decode(&service.node, &body));
        scheduling::run(&self.service.pools, cost, self.context(), decode).await
    }

    /// Reads an input from path and query parameters.
    ///
    /// # Errors
    /// All faults of the parameters.
    pub(crate) fn parameters<I>(
        &self,
        read: impl FnOnce(&mut Parameters<'_>) -> Result<I, Vec<ErrorDetail>>,
    ) -> Result<I, HttpError> {
        Parameters::read(&self.request, &self.parameters, |parameters| {
            let input = read(parameters);
            self.query_read.set(parameters.query_read());
            input
        })
    }

    /// Returns the faults of the query, which must be empty unless the handler has read it.
    pub(crate) fn unexpected_query(&self) -> Vec<ErrorDetail> {
        if self.query_read.get() || self.request.query_string().is_empty() {
            return Vec::new();
        }
        Parameters::no_query(&self.request)
    }

    /// Returns whether the client states `preference` in `Prefer` (RFC 7240).
    pub(crate) fn prefers(&self, preference: &str) -> bool {
        negotiation::prefers(&self.request, preference)
    }

    /// Returns whether the client lists HTML in `Accept` and does not prefer plain text.
    pub(crate) fn prefers_html(&self) -> bool {
        negotiation::prefers_html(&self.request)
    }
}
