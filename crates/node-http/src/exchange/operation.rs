//! Running an operation of the node and responding with its output.

use super::Exchange;
use super::response::{JSON, described_by};
use crate::block_cache::BlockKey;
use crate::caching::Lifetime;
use crate::convert::output;
use crate::dispatch;
use crate::encode;
use crate::problem::HttpError;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, LINK};
use actix_web::web::Bytes;
use node_core::context::Context;
use node_core::cost::Cost;
use node_core::node::{Node, NodeError};
use node_types::BlockId;
use node_types::wire::GetBlockByHashOutput;
use serde::Serialize;

/// The output of an operation, with what its response says beside the body.
struct Reply<O> {
    output: O,
    /// Path and query of the next page, relative to the base of all paths.
    next: Option<String>,
    lifetime: Lifetime,
}

impl<O> Reply<O> {
    /// A reply without further pages that may change at any time.
    fn volatile(output: O) -> Self {
        Self { output, next: None, lifetime: Lifetime::Volatile }
    }
}

impl Exchange {
    /// Runs `work` without responding, for handlers that need more than one piece of work.
    pub(crate) async fn execute<T: Send + 'static>(
        &self,
        cost: Cost,
        work: impl Fn(&Node, &Context) -> Result<T, HttpError> + Send + 'static,
    ) -> Result<T, HttpError> {
        let service = self.service.clone();
        let work = move |context: &Context, ()| work(&service.node, context);
        dispatch::run(&self.service.pools, cost, self.service.context(), (), work).await
    }

    /// Runs `operation` on `input`, on a thread that suits the `cost` of the input, and responds with its output.
    pub(crate) async fn run<I, O>(
        self,
        input: Result<I, HttpError>,
        cost: impl FnOnce(&Node, &I) -> Cost,
        operation: impl Fn(&Node, &Context, I) -> Result<O, NodeError> + Send + 'static,
    ) -> HttpResponse
    where
        I: Clone + Send + 'static,
        O: Serialize,
    {
        let work =
            move |node: &Node, context: &Context, input: I| Ok(Reply::volatile(operation(node, context, input)?));
        self.run_and_reply(input, cost, work).await
    }

    /// Like [`run`](Self::run), for output that caches may store for the time that `lifetime` returns.
    pub(crate) async fn run_cacheable<I, O>(
        self,
        input: Result<I, HttpError>,
        cost: impl FnOnce(&Node, &I) -> Cost,
        operation: impl Fn(&Node, &Context, I) -> Result<O, NodeError> + Send + 'static,
        lifetime: impl Fn(&I, &O) -> Lifetime + Send + 'static,
    ) -> HttpResponse
    where
        I: Clone + Send + 'static,
        O: Serialize,
    {
        let work = move |node: &Node, context: &Context, input: I| {
            let output = operation(node, context, input.clone())?;
            let lifetime = lifetime(&input, &output);
            Ok(Reply { output, next: None, lifetime })
        };
        self.run_and_reply(input, cost, work).await
    }

    /// Like [`run`](Self::run), for one page of a longer output: `operation` also returns path and query of the next page,
    /// relative to the base of all paths.
    pub(crate) async fn run_paged<I, O>(
        self,
        input: Result<I, HttpError>,
        cost: impl FnOnce(&Node, &I) -> Cost,
        operation: impl Fn(&Node, &Context, I) -> Result<(O, Option<String>), NodeError> + Send + 'static,
    ) -> HttpResponse
    where
        I: Clone + Send + 'static,
        O: Serialize,
    {
        let work = move |node: &Node, context: &Context, input: I| {
            let (output, next) = operation(node, context, input)?;
            Ok(Reply { next, ..Reply::volatile(output) })
        };
        self.run_and_reply(input, cost, work).await
    }

    async fn run_and_reply<I, O>(
        mut self,
        input: Result<I, HttpError>,
        cost: impl FnOnce(&Node, &I) -> Cost,
        work: impl Fn(&Node, &Context, I) -> Result<Reply<O>, NodeError> + Send + 'static,
    ) -> HttpResponse
    where
        I: Clone + Send + 'static,
        O: Serialize,
    {
        let input = match self.check_query(input) {
            Ok(input) => input,
            Err(error) => return self.fail(&error),
        };
        let schema = self.output_schema();
        let described_by = described_by(&schema);
        let service = self.service.clone();
        let cost = cost(&service.node, &input);
        let work = move |context: &Context, input| {
            let Reply { output, next, lifetime } = work(&service.node, context, input)?;
            Ok((encode::with_schema(&schema, &output)?, next, lifetime))
        };
        let context = self.service.context();
        let result = dispatch::run(&self.service.pools, cost, context.clone(), input, work).await;
        self.view = context.view();
        match result {
            Ok((body, next, lifetime)) => {
                let next =
                    next.map(|next| format!("<{}/{next}>; rel=\"next\"", self.service.config.base_path.as_str()));
                let next = next.and_then(|next| HeaderValue::try_from(next).ok());
                self.headers.extend(described_by.into_iter().chain(next).map(|link| (LINK, link)));
                self.set_lifetime(lifetime);
                self.respond(StatusCode::OK, JSON, body.into())
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Looks up which block `input` refers to, on this thread. Returns `None` if there is no such block, if the lookup
    /// fails, or if the input is invalid.
    pub(crate) fn find_block<I>(
        &mut self,
        input: &Result<I, HttpError>,
        find: impl Fn(&Node, &Context, &I) -> Result<Option<BlockKey>, NodeError>,
    ) -> Option<BlockKey> {
        let context = self.service.context();
        let found = find(&self.service.node, &context, input.as_ref().ok()?).ok().flatten();
        self.view = context.view();
        found
    }

    /// Responds with the block of `key`, which [`find_block`](Self::find_block) returned, from the cache of serialized
    /// blocks if it is there.
    pub(crate) async fn respond_with_block<I>(
        mut self,
        input: Result<I, HttpError>,
        key: BlockKey,
        lifetime: Lifetime,
    ) -> HttpResponse {
        if let Err(error) = self.check_query(input.map(drop)) {
            return self.fail(&error);
        }
        let schema = self.output_schema();
        let described_by = described_by(&schema);
        let body = match self.service.blocks.get(key) {
            Some(rest) => encode::with_rest(&schema, &rest),
            None => {
                let service = self.service.clone();
                let cost = Cost::of_block(BlockId::Hash(key.hash), key.detail);
                let write = move |context: &Context, key: BlockKey| {
                    let block = service.node.get_block(context, BlockId::Hash(key.hash))?;
                    let block = block.map(|block| output::block(&block, key.detail));
                    let output = GetBlockByHashOutput { block };
                    let body = encode::with_schema(&schema, &output)?;
                    if output.block.is_some() {
                        service.blocks.insert(key, Bytes::copy_from_slice(encode::rest_of(&schema, &body)));
                    }
                    Ok(body)
                };
                match dispatch::run(&self.service.pools, cost, self.service.context(), key, write).await {
                    Ok(body) => body,
                    Err(error) => return self.fail(&error),
                }
            }
        };
        self.headers.extend(described_by.map(|link| (LINK, link)));
        self.set_lifetime(lifetime);
        self.respond(StatusCode::OK, JSON, body.into())
    }

    /// Allows caches to store the response for `lifetime`, unless the request forbids caching.
    fn set_lifetime(&mut self, lifetime: Lifetime) {
        if self.caching.is_storable() {
            self.caching = lifetime.caching(self.view);
        }
    }

    /// The address of the schema of the operation's output.
    fn output_schema(&self) -> String {
        self.schema_url(&["Output_", self.operation].concat())
    }
}
