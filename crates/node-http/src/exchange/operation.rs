//! Running an operation of the node, and responding with its output.

use super::Exchange;
use super::response::{JSON, described_by};
use crate::convert::output;
use crate::exchange::encode;
use crate::exchange::transfer::CompleteBody;
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
use node_types::wire::GetBlockByHashOutput;
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
}

/// Computes the body of a response whose schema has the given URL.
type EncodedWork = dyn Fn(&Service, &Context, &str) -> Result<Reply<Vec<u8>>, HttpError> + Send;

impl Job {
    /// Creates a job whose response is the output of `work`.
    pub(crate) fn new<O: Serialize + 'static>(
        cost: Cost,
        work: impl Fn(&Node, &Context) -> Result<Reply<O>, NodeError> + Send + 'static,
    ) -> Self {
        let work = move |service: &Service, context: &Context, schema: &str| {
            let Reply { output, next } = work(&service.node, context)?;
            Ok(Reply { output: encode::with_schema(schema, &output)?, next })
        };
        Self { cost, work: Box::new(work) }
    }

    /// Creates a job whose response is the JSON object that `work` appends. `work` returns [`Reply::next`].
    pub(crate) fn writing(
        cost: Cost,
        work: impl Fn(&Node, &Context, &mut Vec<u8>) -> Result<Option<String>, NodeError> + Send + 'static,
    ) -> Self {
        let work = move |service: &Service, context: &Context, schema: &str| {
            let append = |out: &mut Vec<u8>| Ok(work(&service.node, context, out)?);
            let (output, next) = encode::with_schema_by(schema, append)?;
            Ok(Reply { output, next })
        };
        Self { cost, work: Box::new(work) }
    }

    /// Creates a job whose response is the block of `key`, from the cache of serialized blocks if possible.
    pub(crate) fn block(key: BlockKey) -> Self {
        let work = move |service: &Service, context: &Context, schema: &str| {
            let blocks = service.rpc.blocks();
            let body = match blocks.get(key) {
                Some(rest) => encode::with_rest(schema, &rest),
                None => {
                    let block = service.node.get_block(context, key.hash.into())?;
                    let output = GetBlockByHashOutput { block: block.map(|block| output::block(&block, key.whole)) };
                    let body = encode::with_schema(schema, &output)?;
                    if output.block.is_some() {
                        blocks.insert(key, encode::rest_of(schema, &body));
                    }
                    body
                }
            };
            Ok(body.into())
        };
        Self { cost: Cost::of_block(key.hash), work: Box::new(work) }
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
        let Job { cost, work } = match self.check_query(job) {
            Ok(job) => job,
            Err(error) => return self.fail(&error),
        };
        let base_url = self.base_url();
        let schema = encode::schema_url(&base_url, &["Output_", self.operation].concat());
        let described_by = described_by(&schema);
        let (service, client) = (self.service.clone(), self.sender.client.clone());
        let work = Box::new(move |context: &Context| {
            let Reply { output, next } = work(&service, context, &schema)?;
            let output = CompleteBody::new(output, &service, &client).inspect_err(|_| context.results_are_lost())?;
            Ok(Reply { output, next })
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
