//! JSON-RPC over HTTP, with one message in the request body and one in the response.

use crate::admission;
use crate::admission::clients::Client;
use crate::admission::sender::Sender;
use crate::exchange::transfer::{self, CompleteBody};
use crate::exchange::{Exchange, forward};
use crate::problem::HttpError;
use crate::scheduling;
use crate::service::Service;
use crate::writer::{Writer, WriterRequest, WriterResponse};
use actix_web::http::header::HeaderMap;
use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse};
use node_core::context::Context;
use node_core::cost::Cost;
use node_core::node::NodeError;
use node_rpc::{CallReport, Message, Reply, Rpc, RpcError, Session, options};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Responds to the message in the body of a request.
pub(crate) async fn post(exchange: Exchange) -> HttpResponse {
    let mut exchange = exchange.no_store();
    let context = exchange.service().consistent_context(&exchange.sender().client);
    let body = match exchange.raw_body().await {
        Ok(body) => body,
        Err(error) => return exchange.fail(&error),
    };
    let service = exchange.service().clone();
    let caller = Caller::of(exchange.request(), &service, exchange.sender());
    let message = match read(&service, exchange.context(), body).await {
        Ok(message) => message,
        Err(Unread::Invalid(error)) => return respond(exchange, &context, error.into()),
        Err(Unread::Refused(error)) => return exchange.fail(&error),
    };
    exchange.set_operation(message.operation());
    if let Err(error) = admission::count_requests(exchange.sender(), &service, message.requests() - 1) {
        return exchange.fail(&error);
    }
    let response = run(service, context.clone(), message, None, caller).await;
    match response {
        Ok(response) => respond(exchange, &context, response),
        Err(error) => exchange.fail(&error),
    }
}

/// Responds with the result of running a message under `context`.
fn respond(mut exchange: Exchange, context: &Context, Response { body, calls }: Response) -> HttpResponse {
    exchange.set_context(context.clone());
    exchange.set_calls(calls);
    match body {
        Some(body) => exchange.respond_json(body),
        None => exchange.respond_empty(StatusCode::NO_CONTENT),
    }
}

/// The response to a message, and reports on its requests.
pub(crate) struct Response {
    /// `None` if the message consists of notifications.
    pub(crate) body: Option<CompleteBody>,
    pub(crate) calls: Vec<CallReport>,
}

impl From<RpcError> for Response {
    /// Creates the response to a message that could not be decoded.
    fn from(error: RpcError) -> Self {
        let Reply { body, calls } = error.into();
        Self { body: body.map(|body| CompleteBody::uncounted(body.into())), calls }
    }
}

/// Returns the JSON-RPC error for a message that was not read.
pub(crate) fn refuse_unread(error: &HttpError) -> Reply {
    rpc_error(error).into()
}

/// Returns the JSON-RPC errors for all requests of a message that was read but not run.
pub(crate) fn refuse(message: &Message, error: &HttpError) -> Reply {
    Rpc::refuse_message(message, &rpc_error(error))
}

fn rpc_error(error: &HttpError) -> RpcError {
    let code = match error {
        HttpError::Panicked => RpcError::INTERNAL,
        HttpError::Node(NodeError::Interrupted(_)) => RpcError::TIMEOUT,
        _ => RpcError::LIMIT,
    };
    let message = match error {
        HttpError::Node(error) => options::message(error),
        error => error.to_string(),
    };
    RpcError::new(code, message)
}

/// The sender of messages, and what they may do.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    client: Arc<Client>,
    /// `None` if they may control the chain.
    refusal: Option<Arc<Refusal>>,
    reads_only: bool,
    /// The headers that are passed on with its requests to the server that writes the chain.
    passed_on: Option<Arc<HeaderMap>>,
}

/// Why the requests of a client may not control the chain.
#[derive(Debug)]
struct Refusal {
    error: HttpError,
    /// The origin of the page that sent them.
    origin: Option<String>,
}

impl Caller {
    pub(crate) fn of(request: &HttpRequest, service: &Service, sender: &Sender) -> Self {
        let refusal = admission::may_control(request, service, sender).err().map(|error| {
            let origin = admission::origin(request).map(str::to_owned);
            Arc::new(Refusal { error, origin })
        });
        let passed_on = service.config.writer.as_ref().map(|_| Arc::new(forward::passed_on(request, sender)));
        let reads_only = admission::reads_only(request, service);
        Self { client: sender.client.clone(), refusal, reads_only, passed_on }
    }
}

/// Why there is no message.
pub(crate) enum Unread {
    /// The server did not read the body.
    Refused(HttpError),
    /// The body is not a message.
    Invalid(RpcError),
}

/// Parses a message.
pub(crate) async fn read(service: &web::Data<Service>, context: Context, body: Bytes) -> Result<Arc<Message>, Unread> {
    let cost = scheduling::decoding_cost(body.len());
    let reader = service.clone();
    let read = Box::new(move |_: &Context| Ok(reader.rpc.read(&body)));
    let message = scheduling::run(&service.pools, cost, context, read).await.map_err(Unread::Refused)?;
    message.map(Arc::new).map_err(Unread::Invalid)
}

/// Runs the requests of a message under `context`.
pub(crate) async fn run(
    service: web::Data<Service>,
    context: Context,
    message: Arc<Message>,
    session: Option<Arc<Session>>,
    Caller { client, refusal, reads_only, passed_on }: Caller,
) -> Result<Response, HttpError> {
    let refused = refusal.as_ref().filter(|_| message.controls());
    if let Some(refusal) = refused
        && service.node.producer().is_some()
    {
        admission::report_refusal(&refusal.error, refusal.origin.as_deref(), &service);
    }
    let reason = refusal.as_ref().map(|refusal| refusal.error.to_string());
    let cost = message.cost(&service.node);
    let may_wait = passed_on.is_some() && message.may_need_writer();
    let worker = service.clone();
    let work = move |context: &Context| {
        let pass_on = |body: String, controls: bool| {
            let (Some(writer), Some(headers)) = (&worker.config.writer, &passed_on) else {
                return Err(rpc_error(&HttpError::WriterUnreachable));
            };
            pass_on(&**writer, headers, body, forward::timeout(&worker.config, controls))
        };
        let control = reason.as_deref().map_or(Ok(()), Err);
        let writer = passed_on.as_ref().map(|_| &pass_on as node_rpc::PassOn<'_>);
        let rights = node_rpc::Client { session: session.as_deref(), control, reads_only, writer };
        let mut out = transfer::buffer(&worker, &client);
        let calls = worker.rpc.respond_into(&mut out, context, &message, rights);
        let body = CompleteBody::new(out).inspect_err(|_| context.results_are_lost())?;
        Ok(Response { body: (!body.is_empty()).then_some(body), calls })
    };
    if may_wait {
        // A writer that does not respond must not occupy the threads of other work.
        let work = move || context.run(|| work(&context));
        return web::block(work).await.unwrap_or(Err(HttpError::Panicked));
    }
    scheduling::run(&service.pools, cost, context, Box::new(work)).await
}

/// Passes a request on to the server that writes the chain, and returns the response, which is JSON.
fn pass_on(writer: &dyn Writer, headers: &HeaderMap, body: String, timeout: Duration) -> Result<Vec<u8>, RpcError> {
    let request = WriterRequest {
        method: Method::POST,
        target: "/".to_owned(),
        headers: headers.clone(),
        body: body.into(),
        timeout,
    };
    match forward::send(writer, request) {
        Ok(WriterResponse { status: 200, body, .. }) => Ok(body),
        Ok(WriterResponse { status, body, .. }) => {
            let detail = serde_json::from_slice::<Value>(&body).ok();
            let detail = detail.as_ref().and_then(|problem| problem["detail"].as_str()).unwrap_or_default();
            let message =
                format!("the server that writes the chain (`writer`) responded with status {status}: {detail}");
            Err(RpcError::server(message))
        }
        Err(error) => Err(rpc_error(&error)),
    }
}

/// Returns the next notifications for the subscriptions of a session; empty if there are no new events. `context`
/// must not hold a view, so that each subscription reads the newest state.
pub(crate) async fn notifications(
    service: &web::Data<Service>,
    context: Context,
    session: &Arc<Session>,
) -> Result<Vec<Vec<u8>>, HttpError> {
    let (reader, session) = (service.clone(), session.clone());
    let work = Box::new(move |context: &Context| {
        session.notifications(&reader.node, context).map_err(|error| {
            tracing::debug!(%error, "cannot read the notifications of a session");
            HttpError::Overloaded
        })
    });
    scheduling::run(&service.pools, Cost::Long, context, work).await
}
