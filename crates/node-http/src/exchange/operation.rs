//! Running an operation of the node, and responding with its output.

use super::Exchange;
use super::response::{JSON, described_by};
use crate::convert::output;
use crate::exchange::encode;
use crate::exchange::transfer::{self, CompleteBody};
use crate::problem::HttpError;
use crate::scheduling;
use crate::service::Service;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, LINK};
use node_core::context::Context;
use node_core::cost::Cost;
use node_core::node::{Node, NodeError};
use node_rpc::BlockKey;
use node_types::BlockId;
use node_types::wire::{BodyError, ErrorDetail, GetBlockByHashOutput, JsonBuffer};
use serde::Serialize;

/// The output of an operation, with additional data for the response.
pub(crate) struct Reply<O> {
    pub(crate) output: O,
    /// Path and query of the next page, relative to the base of all paths.
    pub(crate) next: Option<String>,
}

impl<O> From<O> for Reply<O> {
    /// Creates a reply without further pages.
    fn from(output: O) -> Self {
        Self { output, next: None }
    }
}

/// An operation with its decoded input. It has no type parameters, so that the code that schedules it and responds is
/// compiled once and not once per operation.
pub(crate) struct Job {
    cost: Cost,
    work: Box<EncodedWork>,
    /// Finds faults that depend on the chain.
    check: Option<Box<Check>>,
    /// The faults that are already known. If there are any, only `check` is run.
    faults: Vec<ErrorDetail>,
}

/// Appends the body of a response whose schema has the given URL. Returns [`Reply::next`].
type EncodedWork = dyn Fn(&Service, &Context, &str, &mut JsonBuffer) -> Result<Option<String>, HttpError> + Send;

/// Checks a part of a request on the chain.
pub(crate) type Check = dyn Fn(&Node, &Context) -> Result<(), NodeError> + Send;

impl Job {
    /// Creates a job whose response is the output of `work`.
    pub(crate) fn new<O: Serialize + 'static>(
        cost: Cost,
        work: impl Fn(&Node, &Context) -> Result<Reply<O>, NodeError> + Send + 'static,
    ) -> Self {
        let work = move |service: &Service, context: &Context, schema: &str, out: &mut JsonBuffer| {
            let Reply { output, next } = work(&service.node, context)?;
            encode::append(out, schema, &output)?;
            Ok(next)
        };
        Self::encoding(cost, work)
    }

    fn encoding(
        cost: Cost,
        work: impl Fn(&Service, &Context, &str, &mut JsonBuffer) -> Result<Option<String>, HttpError> + Send + 'static,
    ) -> Self {
        Self { cost, work: Box::new(work), check: None, faults: Vec::new() }
    }

    /// Creates a job for a request with `faults`, whose response also has those that its check finds.
    pub(crate) fn faulty(cost: Cost, faults: Vec<ErrorDetail>) -> Self {
        let never = |_: &Service, _: &Context, _: &str, _: &mut JsonBuffer| Err(HttpError::Parameters(Vec::new()));
        Self { faults, ..Self::encoding(cost, never) }
    }

    /// Sets the check, which is run if other parts of the request have faults. Otherwise the work itself finds them.
    pub(crate) fn with_check(self, check: impl Fn(&Node, &Context) -> Result<(), NodeError> + Send + 'static) -> Self {
        Self { check: Some(Box::new(check)), ..self }
    }

    /// Adds faults to a request that may have others.
    pub(crate) fn with_faults(job: Result<Self, HttpError>, mut more: Vec<ErrorDetail>) -> Result<Self, HttpError> {
        match job {
            job if more.is_empty() => job,
            Ok(mut job) => {
                job.faults.append(&mut more);
                Ok(job)
            }
            Err(HttpError::Parameters(faults) | HttpError::Body(BodyError::Invalid(faults))) => {
                Err(HttpError::Parameters([faults, more].concat()))
            }
            Err(other) => Err(other),
        }
    }

    /// Creates a job whose response is the JSON object that `work` appends. `work` returns [`Reply::next`].
    pub(crate) fn writing(
        cost: Cost,
        work: impl Fn(&Node, &Context, &mut JsonBuffer) -> Result<Option<String>, NodeError> + Send + 'static,
    ) -> Self {
        let work = move |service: &Service, context: &Context, schema: &str, out: &mut JsonBuffer| {
            encode::append_by(out, schema, |out| Ok(work(&service.node, context, out)?))
        };
        Self::encoding(cost, work)
    }

    /// Creates a job whose response is the block `id`, which has the hash of `key`, from the cache of serialized blocks if
    /// possible.
    pub(crate) fn block(id: BlockId, key: BlockKey) -> Self {
        let work = move |service: &Service, context: &Context, schema: &str, out: &mut JsonBuffer| {
            let blocks = service.rpc.blocks();
            match blocks.get(key) {
                Some(rest) => encode::append_rest(out, schema, &rest),
                None => {
                    // A block with this number exists even if a fork cannot read the one with its hash.
                    let block = service.node.get_block(context, id)?;
                    let hash = block.as_ref().map(|block| block.header.hash);
                    let output = GetBlockByHashOutput { block: block.map(|block| output::block(&block, key.whole)) };
                    encode::append(out, schema, &output)?;
                    if let Some(hash) = hash {
                        blocks.insert(BlockKey { hash, ..key }, encode::rest_of(schema, out));
                    }
                }
            }
            Ok(None)
        };
        Self::encoding(Cost::of_block(key.hash), work)
    }
}

impl Exchange {
    /// Runs `job` on a thread that suits its cost, and responds with its output.
    pub(crate) async fn run(self, job: Result<Job, HttpError>) -> HttpResponse {
        let context = self.context();
        self.run_under(context, job).await
    }

    /// Like [`run`](Self::run), with a context in which the input was already looked up.
    pub(crate) async fn run_under(mut self, context: Context, job: Result<Job, HttpError>) -> HttpResponse {
        let Job { cost, work, check, faults } = match Job::with_faults(job, self.unexpected_query()) {
            Ok(job) => job,
            Err(error) => return self.fail(&error),
        };
        let base_url = self.base_url();
        let schema = encode::schema_url(&base_url, &["Output_", self.operation].concat());
        let described_by = described_by(&schema);
        let (service, client) = (self.service.clone(), self.sender.client.clone());
        let work = Box::new(move |context: &Context| {
            if !faults.is_empty() {
                let found = check.as_ref().map_or(Ok(()), |check| check(&service.node, context));
                return Err(with_others(faults.clone(), found));
            }
            let mut out = transfer::buffer(&service, &client);
            let written = work(&service, context, &schema, &mut out).and_then(|next| {
                let output = CompleteBody::new(out)?;
                Ok(Reply { output, next })
            });
            written.inspect_err(|_| context.results_are_lost())
        });
        let result = scheduling::run(&self.service.pools, cost, context.clone(), work).await;
        self.set_context(context);
        match result {
            Ok(Reply { output, next }) => {
                let next = next.map(|next| format!("<{}/{next}>; rel=\"next\"", encode::path_of(&base_url)));
                let next = next.and_then(|next| HeaderValue::try_from(next).ok());
                self.headers.extend(described_by.into_iter().chain(next).map(|link| (LINK, link)));
                self.respond(StatusCode::OK, JSON, output)
            }
            Err(error) => self.fail(&error),
        }
    }
}

/// Returns the error of a request with `faults`, of which a check on the chain `found` others.
fn with_others(faults: Vec<ErrorDetail>, found: Result<(), NodeError>) -> HttpError {
    match found {
        Err(
            others @ (NodeError::Invalid(_)
            | NodeError::RangeAboveHead { .. }
            | NodeError::TooManyBlocks { .. }
            | NodeError::TransactionRejected(_)
            | NodeError::UnknownAccount(_)
            | NodeError::Control(_)),
        ) => HttpError::Faulty(faults, Box::new(others)),
        _ => HttpError::Parameters(faults),
    }
}
