//! The declaration of an operation.
//!
//! One row per operation declares its path, parameters, input, output, cost and description. Routes, schemas, the
//! OpenAPI document, and the names in metrics and logs are derived from it.

use crate::admission::Access;
use crate::convert;
use crate::exchange::parameters;
use crate::exchange::{DecodeBody, Exchange, Job};
use crate::problem::HttpError;
use crate::problem::page::ProblemPage;
use actix_web::HttpResponse;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use node_core::context::Context;
use node_core::cost::Cost;
use node_core::node::{Node, NodeError};
use node_types::wire::schema::{self, Documents, ParameterSchema, ToSchema};
use node_types::wire::{self, BodyError, Decode, DecodeParameters, ErrorDetail};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

/// An operation: a handler for a path.
pub(crate) struct Operation {
    pub(super) declaration: Declaration,
    pub(super) handler: Handler,
}

/// The path prefix of operations that control a chain.
pub(super) const CONTROL: &str = "/dev/";

/// An input that consists of parameters.
pub(super) trait Parameters: DecodeParameters + Default + Serialize + ToSchema {}

impl<I: DecodeParameters + Default + Serialize + ToSchema> Parameters for I {}

/// Turns a request into its response.
pub(super) type Handler = Rc<dyn Fn(Exchange) -> LocalBoxFuture<'static, HttpResponse>>;

/// The function that runs an operation on its input.
type Work<I, O> = fn(&Node, &Context, I) -> Result<O, NodeError>;

/// The cost of an operation for an input.
type CostOf<I> = fn(&Node, &I) -> Cost;

/// Decodes the parameters of a request and makes them the input of a job.
type DecodeParametersOf = dyn Fn(&Node, &mut parameters::Parameters<'_>) -> Result<Job, Vec<ErrorDetail>>;

/// The declaration of an operation, without its handler.
pub(crate) struct Declaration {
    pub(crate) method: Method,
    /// Whether it accepts both GET and POST.
    pub(crate) any_method: bool,
    /// The template of the path with all parameters, without the base path.
    pub(crate) path: &'static str,
    /// Its name, if that is not the one in its path.
    pub(crate) other_name: Option<&'static str>,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) description: &'static str,
    /// The limits that apply only to this operation, each with its option.
    pub(crate) limits: Option<&'static str>,
    pub(crate) parameters: Vec<Parameter>,
    /// The body of the request; `None` for a GET.
    pub(crate) body: Option<DeclaredBody>,
    pub(crate) content: Content,
    /// The problems with a page with which it may respond.
    pub(crate) problems: &'static [ProblemPage],
    pub(crate) links: &'static [Link],
    pub(crate) access: Access,
    /// Whether caches may store the response to a GET.
    pub(crate) storable: bool,
    /// Whether a server that only reads the chain passes it on to the one that writes it.
    pub(crate) by_writer: bool,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Method {
    Post,
    Get,
}

/// A parameter in the path, the query or a header.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// `path`, `query` or `header`.
    pub(crate) part: &'static str,
    pub(crate) schema: Value,
    pub(crate) description: Cow<'static, str>,
    /// Whether it must be present. At the end of a path, others may be left out.
    pub(crate) required: bool,
}

/// The body of a request.
pub(crate) struct DeclaredBody {
    pub(crate) required: bool,
    /// The properties of the input.
    pub(crate) properties: &'static [&'static str],
    /// Adds the schema of the input under a name.
    pub(crate) document: fn(&mut Documents, &str),
}

/// The body of a successful response.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    /// JSON with a schema, which the function adds under a name.
    Output(fn(&mut Documents, &str)),
    /// Text in one of these media types, the last of which is the default.
    Text(&'static [&'static str]),
    /// Any JSON object, with this media type.
    Object(&'static str),
}

/// A follow-up operation: its id, its parameter, and the path of the parameter's value in this operation's output.
pub(crate) type Link = (&'static str, &'static str, &'static str);

impl Operation {
    /// Starts the declaration of a GET.
    pub(super) fn get(path: &'static str, summary: &'static str, description: &'static str) -> Declaration {
        Declaration {
            method: Method::Get,
            any_method: false,
            path,
            other_name: None,
            tag: "",
            summary,
            description,
            limits: None,
            parameters: Vec::new(),
            body: None,
            content: Content::Text(&[]),
            problems: &[],
            links: &[],
            access: Access::Guarded,
            storable: !path.starts_with(CONTROL),
            by_writer: path.starts_with(CONTROL),
        }
    }

    /// Starts the declaration of a POST.
    pub(super) fn post(path: &'static str, summary: &'static str, description: &'static str) -> Declaration {
        Declaration { method: Method::Post, ..Self::get(path, summary, description) }
    }
}

impl Operation {
    /// Puts the operation in a group.
    pub(super) fn tagged(mut self, tag: &'static str) -> Self {
        self.declaration.tag = tag;
        self
    }
}

impl Deref for Operation {
    type Target = Declaration;

    fn deref(&self) -> &Declaration {
        &self.declaration
    }
}

impl Declaration {
    /// Returns its name, by default that in its path, which is used in metrics, logs and schemas, and is the `operationId`.
    pub(crate) fn name(&self) -> &'static str {
        let path = self.path.strip_prefix(CONTROL).unwrap_or(&self.path[1..]);
        self.other_name.or_else(|| path.split(['/', '.']).next()).unwrap_or_default()
    }

    /// Returns whether it is one of the nine operations of the interface description.
    pub(crate) fn is_described(&self) -> bool {
        super::INTERFACE_OPERATIONS.contains(&self.name())
    }

    /// Returns the methods that it accepts.
    pub(crate) fn methods(&self) -> &'static [Method] {
        match self.method {
            _ if self.any_method => &[Method::Get, Method::Post],
            Method::Get => &[Method::Get],
            Method::Post => &[Method::Post],
        }
    }

    /// Returns the templates of its paths: with all parameters, and without optional ones at the end.
    pub(super) fn paths(&self) -> Vec<&'static str> {
        let mut paths = vec![self.path];
        let in_path = self.parameters.iter().filter(|parameter| parameter.part == "path");
        for parameter in in_path.rev().take_while(|parameter| !parameter.required) {
            paths.extend(
                paths.last().and_then(|path| path.find(&format!("{{{}}}", parameter.name)).map(|at| &path[..at])),
            );
        }
        paths
    }

    /// Returns whether the operation controls a chain. Only nodes that produce blocks serve such operations.
    pub(crate) fn controls(&self) -> bool {
        self.path.starts_with(CONTROL)
    }

    /// Returns whether the operation requires a token, if the server has any.
    pub(crate) fn is_guarded(&self) -> bool {
        matches!(self.access, Access::Guarded | Access::Sending)
    }

    /// Returns whether it also accepts HEAD, which it does if a GET changes nothing.
    pub(super) fn accepts_head(&self) -> bool {
        self.method == Method::Get && (self.storable || !self.is_guarded())
    }

    pub(super) fn limits(self, limits: &'static str) -> Self {
        Self { limits: Some(limits), ..self }
    }

    /// Declares the parameters of an input. Those that are not in the path are in the query, where they may be absent
    /// or empty.
    pub(super) fn takes<I: Parameters>(mut self) -> Self {
        self.parameters.extend(schema::parameters::<I>().into_iter().map(|parameter| {
            let ParameterSchema { name, schema, description, required } = parameter;
            let (part, schema) = match self.path.contains(&format!("{{{name}}}")) {
                // In an OpenAPI document, parameters of a path have no default: they are always required.
                true => ("path", schema::without_default(schema)),
                false => ("query", schema::empty_or(schema)),
            };
            Parameter { name, part, schema, description: description.into(), required }
        }));
        self
    }

    /// Declares a parameter. Those in the path must be present.
    pub(super) fn with(
        mut self,
        part: &'static str,
        name: &'static str,
        schema: Value,
        description: &'static str,
    ) -> Self {
        let required = part == "path";
        self.parameters.push(Parameter { name, part, schema, description: description.into(), required });
        self
    }

    /// Sets a name other than that in the path, which another operation has.
    pub(super) fn named(self, name: &'static str) -> Self {
        Self { other_name: Some(name), ..self }
    }

    pub(super) fn problems(self, problems: &'static [ProblemPage]) -> Self {
        Self { problems, ..self }
    }

    pub(super) fn links(self, links: &'static [Link]) -> Self {
        Self { links, ..self }
    }

    /// Declares that it accepts GET as well as POST.
    pub(super) fn by_any_method(self) -> Self {
        Self { any_method: true, ..self }
    }

    /// Declares that no token is required.
    pub(super) fn open(self) -> Self {
        Self { access: Access::Open, ..self }
    }

    /// Declares that the operation sends a transaction, for which the token must have the role `send`.
    pub(super) fn sending(self) -> Self {
        Self { access: Access::Sending, ..self }
    }

    /// Declares that no token is required, and that the rate limit does not apply.
    pub(super) fn probe(self) -> Self {
        Self { access: Access::Probe, ..self }
    }

    /// Declares that the operation creates, advances or consumes something, so caches must not store the response.
    pub(super) fn no_store(self) -> Self {
        Self { storable: false, ..self }
    }

    /// Declares that the operation changes something, or is about what only one server has: its filters and its pool.
    pub(super) fn by_writer(self) -> Self {
        Self { by_writer: true, ..self }
    }

    pub(super) fn content(self, content: Content) -> Self {
        Self { content, ..self }
    }

    pub(super) fn output<O: ToSchema>(self) -> Self {
        self.content(Content::Output(Documents::response::<O>))
    }

    pub(super) fn input<I: Decode + ToSchema>(self, required: bool) -> Self {
        let body = DeclaredBody { required, properties: I::PROPERTIES, document: Documents::request::<I> };
        Self { body: Some(body), ..self }
    }

    /// Runs `work` on the body of the request.
    pub(super) fn body<I, O>(self, cost: CostOf<I>, work: Work<I, O>) -> Operation
    where
        I: Decode + ToSchema + Clone + Send + 'static,
        O: Serialize + ToSchema + 'static,
    {
        self.input::<I>(true).output::<O>().decoding_body(move |node, body| {
            let input = wire::decode_body_within(body, convert::input::limits(node)).map_err(HttpError::Body)?;
            Ok(job(node, input, cost, work))
        })
    }

    /// Like [`body`](Self::body), for a request of which a part is checked on the chain even if others have faults.
    /// `part_of_body` returns that part unless it has faults itself.
    pub(super) fn body_with_check<I, P, O>(
        self,
        cost: Cost,
        part: fn(&I) -> P,
        part_of_body: fn(&[u8]) -> Option<P>,
        check: fn(&Node, &Context, &P) -> Result<(), NodeError>,
        work: Work<I, O>,
    ) -> Operation
    where
        I: Decode + ToSchema + Clone + Send + 'static,
        P: Send + 'static,
        O: Serialize + ToSchema + 'static,
    {
        self.input::<I>(true).output::<O>().decoding_body(move |node, body| {
            let (job, part) = match wire::decode_body_within::<I>(body, convert::input::limits(node)) {
                Ok(input) => {
                    let part = part(&input);
                    let work = move |node: &Node, context: &Context| Ok(work(node, context, input.clone())?.into());
                    (Job::new(cost, work), Some(part))
                }
                Err(BodyError::Invalid(faults)) => (Job::faulty(cost, faults), part_of_body(body)),
                Err(error) => return Err(HttpError::Body(error)),
            };
            Ok(match part {
                Some(part) => job.with_check(move |node, context| check(node, context, &part)),
                None => job,
            })
        })
    }

    /// Like [`body`](Self::body), for a body that may be absent.
    pub(super) fn optional_body<I, O>(self, cost: CostOf<I>, work: Work<I, O>) -> Operation
    where
        I: Decode + ToSchema + Default + Clone + Send + 'static,
        O: Serialize + ToSchema + 'static,
    {
        self.input::<I>(false).output::<O>().decoding_body(move |node, body| {
            let input = match wire::decode_body_within(body, convert::input::limits(node)) {
                Err(BodyError::Empty) => I::default(),
                input => input.map_err(HttpError::Body)?,
            };
            Ok(job(node, input, cost, work))
        })
    }

    /// Runs the job that `decode` makes of the body of the request.
    fn decoding_body(
        self,
        decode: impl Fn(&Node, &[u8]) -> Result<Job, HttpError> + Send + Sync + 'static,
    ) -> Operation {
        let required = self.body.as_ref().is_some_and(|body| body.required);
        let decode: Arc<DecodeBody> = Arc::new(decode);
        self.handler(move |mut exchange: Exchange| {
            let decode = Arc::clone(&decode);
            async move {
                let job = exchange.decode_body(required, decode).await;
                exchange.run(job).await
            }
        })
    }

    /// Runs `work` on the parameters of the request.
    pub(super) fn parameters<I, O>(self, cost: CostOf<I>, work: Work<I, O>) -> Operation
    where
        I: Parameters + Clone + Send + 'static,
        O: Serialize + ToSchema + 'static,
    {
        self.parameters_of(cost, work, false)
    }

    /// Like [`parameters`](Self::parameters), for output that never changes because it belongs to a block that the
    /// request identifies by hash.
    pub(super) fn immutable_parameters<I, O>(self, cost: CostOf<I>, work: Work<I, O>) -> Operation
    where
        I: Parameters + Clone + Send + 'static,
        O: Serialize + ToSchema + 'static,
    {
        self.parameters_of(cost, work, true)
    }

    fn parameters_of<I, O>(self, cost: CostOf<I>, work: Work<I, O>, immutable: bool) -> Operation
    where
        I: Parameters + Clone + Send + 'static,
        O: Serialize + ToSchema + 'static,
    {
        let declaration = self.takes::<I>();
        let in_query = declaration.parameters.iter().filter(|parameter| parameter.part == "query");
        let in_query: Vec<_> = in_query.map(|parameter| parameter.name).collect();
        let decode: Box<DecodeParametersOf> =
            Box::new(move |node, parameters| Ok(job(node, parameters.input(&in_query)?, cost, work)));
        declaration.output::<O>().handler(move |exchange: Exchange| {
            let job = exchange.parameters(|parameters| decode(&exchange.service().node, parameters));
            let exchange = if immutable { exchange.immutable() } else { exchange };
            exchange.run(job)
        })
    }

    /// Runs a custom handler.
    pub(super) fn handler<F, R>(self, handler: F) -> Operation
    where
        F: Fn(Exchange) -> R + 'static,
        R: Future<Output = HttpResponse> + 'static,
    {
        Operation { declaration: self, handler: Rc::new(move |exchange| handler(exchange).boxed_local()) }
    }
}

/// Returns the job that runs `work` on `input`.
fn job<I, O>(node: &Node, input: I, cost: CostOf<I>, work: Work<I, O>) -> Job
where
    I: Clone + Send + 'static,
    O: Serialize + 'static,
{
    Job::new(cost(node, &input), move |node, context| Ok(work(node, context, input.clone())?.into()))
}
