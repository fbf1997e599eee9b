//! JSON-RPC over HTTP: a message in, its answer out.

use crate::admission;
use crate::dispatch::{self, Place};
use crate::exchange::Exchange;
use crate::problem::HttpError;
use crate::server::Service;
use actix_web::HttpResponse;
use actix_web::web::{self, Bytes};
use node_core::context::{Context, Interrupted};
use node_core::node::NodeError;
use node_rpc::{Client, Cost, Message, Rpc, RpcError, Session};
use std::sync::Arc;

/// What came of a message.
pub(crate) type Answer = Option<Vec<u8>>;

/// Answers a message that came as the body of a request.
pub(crate) async fn post(exchange: Exchange) -> HttpResponse {
    let mut exchange = exchange.no_store();
    let context = exchange.service().message_context();
    let body = match exchange.raw_body().await {
        Ok(body) => body,
        Err(error @ HttpError::BodyTooDeep { .. }) => {
            return exchange.respond_rpc(&context, Some(refusal(&error)));
        }
        Err(error) => return exchange.fail(&error),
    };
    let controls = admission::may_control(exchange.request(), exchange.config()).is_ok();
    let service = exchange.service().clone();
    let message = match read(&service, body).await {
        Ok(Ok(message)) => message,
        Ok(Err(refusal)) => return exchange.respond_rpc(&context, Some(refusal)),
        Err(error) => return exchange.fail(&error),
    };
    exchange.is_for(message.operation());
    if let Err(error) = admission::count_requests(exchange.request(), &service, message.requests() - 1) {
        return exchange.fail(&error);
    }
    match answer(service, context.clone(), message, None, controls).await {
        Ok(answer) => exchange.respond_rpc(&context, answer),
        Err(error) => exchange.fail(&error),
    }
}

/// The answer to a message that the server does not read, where no status can say so.
pub(crate) fn refusal(error: &HttpError) -> Vec<u8> {
    Rpc::refuse(told(error))
}

/// The answer to a message that the server read and does not run, where no status can say so.
pub(crate) fn refusal_of(message: &Message, error: &HttpError) -> Answer {
    Rpc::refuse_message(message, &told(error))
}

fn told(error: &HttpError) -> RpcError {
    let code = match error {
        HttpError::BodyTooDeep { .. } => RpcError::INVALID_REQUEST,
        HttpError::Panicked => RpcError::INTERNAL,
        HttpError::Node(NodeError::Interrupted(_)) => RpcError::TIMEOUT,
        _ => RpcError::LIMIT,
    };
    RpcError::new(code, error.to_string())
}

/// Reads a message, or makes the answer to what is none.
pub(crate) async fn read(
    service: &web::Data<Service>,
    body: Bytes,
) -> Result<Result<Arc<Message>, Vec<u8>>, HttpError> {
    let place = Place::decoding(body.len());
    let reader = service.clone();
    let read = move |_: &Context, body: Bytes| Ok(reader.rpc.read(&body).map(Arc::new));
    dispatch::run(&service.pools, place, service.context(), body, read).await
}

/// Answers a message under `context`.
pub(crate) async fn answer(
    service: web::Data<Service>,
    context: Context,
    message: Arc<Message>,
    session: Option<Arc<Session>>,
    controls: bool,
) -> Result<Answer, HttpError> {
    let place = match message.cost() {
        Cost::Instant => Place::Here,
        Cost::Brief => Place::HereBriefly,
        Cost::Long => Place::Pool,
        Cost::Code => Place::Code,
    };
    let (whole, worker) = (context.clone(), service.clone());
    let work = move |context: &Context, message: Arc<Message>| {
        let client = Client { session: session.as_deref(), controls };
        let answer = worker.rpc.answer(context, &message, client);
        // The slice of time is over, and not that of the request: the work begins again where it may take longer.
        if context.check() == Err(Interrupted::DeadlineExceeded) && whole.check().is_ok() {
            return Err(NodeError::from(Interrupted::DeadlineExceeded).into());
        }
        Ok(answer)
    };
    dispatch::run(&service.pools, place, context, message, work).await
}

/// The next things to tell of the subscriptions of a session; none when nothing has happened.
pub(crate) async fn notifications(
    service: &web::Data<Service>,
    session: &Arc<Session>,
) -> Result<Vec<Vec<u8>>, HttpError> {
    let teller = service.clone();
    let work = move |context: &Context, session: Arc<Session>| match session.notifications(&teller.node, context) {
        Ok(messages) => Ok(messages),
        Err(error) => {
            tracing::debug!(%error, "subscriptions wait");
            Err(HttpError::Overloaded)
        }
    };
    // Each look opens a view of its own: what happened is newer than what was read for the subscription before.
    dispatch::run(&service.pools, Place::Pool, service.context(), session.clone(), work).await
}
