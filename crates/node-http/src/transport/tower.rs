//! The routes as a [`tower::Service`](tower_service::Service), for servers that are not built on actix-web, such as
//! axum.

use crate::config::HttpConfig;
use crate::problem::report::ProblemResponse;
use crate::service::Service;
use crate::transport::mount;
use crate::transport::phase::Phase;
use crate::transport::server::{self, ServeError};
use actix_http::error::PayloadError;
use actix_http::{Payload, Request as ActixRequest};
use actix_service::ServiceFactory as _;
use actix_web::body::MessageBody;
use actix_web::dev::{Service as _, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::{rt, web};
use bytes::Bytes;
use http_body::{Body, Frame};
use node_core::node::Node;
use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::{io, thread};
use tokio::sync::{mpsc, oneshot};

type BoxError = Box<dyn Error + Send + Sync>;
type RequestBody = Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>;

/// The routes of a node as a `tower::Service`, with the limits and thread pools of its options. Clones share them.
///
/// Requests run on [`workers`](crate::PerformanceOptions::workers) dedicated threads, so the caller needs no particular
/// runtime. Paths of requests are relative to [`base_path`](crate::ListenOptions::base_path), as passed by axum's
/// `nest_service`; links in responses begin with the base path. The client's address, on which rate limits, shares
/// and control of the chain depend, is taken from an extension of the request: a [`SocketAddr`], or with the feature
/// `axum` the `ConnectInfo` of `into_make_service_with_connect_info`. Without it, all requests count as one client,
/// which may not control the chain. WebSockets are not supported; everything else works as in a server of this crate.
///
/// If a worker panics and does not respond to a request, the response is 503. The service never returns an error.
///
/// # Examples
/// ```
/// use node_http::{HttpConfig, NodeService};
/// # use node_core::node::Node;
/// # use std::sync::Arc;
///
/// # fn router(node: Arc<Node>) -> Result<axum::Router, Box<dyn std::error::Error>> {
/// let mut options = HttpConfig::default();
/// options.listen.base_path = "/node".parse()?;
/// let router = axum::Router::new().nest_service("/node", NodeService::new(node, options)?);
/// # Ok(router)
/// # }
/// ```
#[derive(Clone)]
pub struct NodeService {
    service: web::Data<Service>,
    workers: Arc<[mpsc::UnboundedSender<Job>]>,
    next: Arc<AtomicUsize>,
}

struct Job {
    request: http::Request<RequestBody>,
    /// Dropped by the caller if the client disconnects.
    reply: oneshot::Sender<http::Response<ResponseBody>>,
}

impl NodeService {
    /// Starts the worker threads and the thread pools. They end when the last clone is dropped.
    ///
    /// # Errors
    /// [`ServeError::Start`] if a thread cannot be started.
    pub fn new(node: Arc<Node>, options: HttpConfig) -> Result<Self, ServeError> {
        let workers = options.workers();
        let address = options.address();
        let service = mount::shared(node, options, address)?;
        let workers: io::Result<Arc<[_]>> = (0..workers).map(|index| start(index, service.clone())).collect();
        Ok(Self { service, workers: workers.map_err(ServeError::Start)?, next: Arc::default() })
    }

    pub(crate) fn service(&self) -> &web::Data<Service> {
        &self.service
    }

    /// Ends all event streams, and new ones as soon as they are opened, so that the enclosing server can shut down.
    pub fn close(&self) {
        self.service.phases.enter(Phase::Closing);
    }
}

impl<B> tower_service::Service<http::Request<B>> for NodeService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = http::Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let request = request.map(|body| Box::pin(BoxedErrors(Box::pin(body))) as RequestBody);
        let (reply, response) = oneshot::channel();
        let worker = self.next.fetch_add(1, Ordering::Relaxed) % self.workers.len();
        // If the worker no longer exists, the receiver of the reply fails.
        let _ = self.workers[worker].send(Job { request, reply });
        // A worker that panics or has stopped drops the reply.
        let lost = || refuse(StatusCode::SERVICE_UNAVAILABLE, "the request was not processed");
        Box::pin(async move { Ok(response.await.unwrap_or_else(|_| lost())) })
    }
}

/// Returns a problem as a response, for requests to which the routes did not respond.
fn refuse(status: StatusCode, detail: &str) -> http::Response<ResponseBody> {
    let response = http::Response::<String>::from(ProblemResponse::plain(status, detail.to_owned()));
    let (sender, receiver) = mpsc::channel(1);
    response.map(|body| {
        // The channel has room for one piece.
        let _ = sender.try_send(Ok(body.into()));
        ResponseBody(receiver)
    })
}

/// Starts a worker thread and returns the queue of its requests.
fn start(index: usize, service: web::Data<Service>) -> io::Result<mpsc::UnboundedSender<Job>> {
    let (sender, mut jobs) = mpsc::unbounded_channel::<Job>();
    let work = move || -> io::Result<()> {
        rt::Runtime::new()?.block_on(async move {
            let app =
                server::app(service, "").new_service(()).await.map_err(|()| io::Error::other("no application"))?;
            let app = Rc::new(app);
            while let Some(Job { request, mut reply }) = jobs.recv().await {
                let app = app.clone();
                rt::spawn(async move {
                    let Some(request) = to_actix(request) else {
                        let _ = reply.send(refuse(StatusCode::BAD_REQUEST, "the request cannot be read"));
                        return;
                    };
                    // Work for a client that has disconnected is cancelled.
                    let response = tokio::select! {
                        () = reply.closed() => return,
                        response = app.call(request) => response,
                    };
                    match response {
                        Ok(response) => respond(response, reply).await,
                        Err(error) => tracing::error!(%error, "cannot respond to a request"),
                    }
                });
            }
            Ok(())
        })
    };
    let report = move || {
        if let Err(error) = work() {
            tracing::error!(%error, "a worker thread ended");
        }
    };
    thread::Builder::new().name(format!("node-{index}")).spawn(report)?;
    Ok(sender)
}

/// Returns the address of the client.
fn peer(extensions: &http::Extensions) -> Option<SocketAddr> {
    let given = extensions.get::<SocketAddr>().copied();
    #[cfg(feature = "axum")]
    let given = given.or_else(|| extensions.get().map(|axum::extract::ConnectInfo(address)| *address));
    given
}

/// Converts a request to actix-http's types. Returns `None` if this is not possible.
fn to_actix(request: http::Request<RequestBody>) -> Option<ActixRequest> {
    let (parts, mut body) = request.into_parts();
    let data = futures_util::stream::poll_fn(move |context| {
        loop {
            return Poll::Ready(match std::task::ready!(body.as_mut().poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => Some(Ok(data)),
                    // Trailers are ignored.
                    Err(_) => continue,
                },
                Some(Err(error)) => Some(Err(PayloadError::Io(io::Error::other(error)))),
                None => None,
            });
        }
    });
    let mut request = ActixRequest::with_payload(Payload::Stream { payload: Box::pin(data) as _ });
    let head = request.head_mut();
    head.method = parts.method.as_str().parse().ok()?;
    head.uri = parts.uri.to_string().parse().ok()?;
    head.version = match parts.version {
        http::Version::HTTP_10 => actix_http::Version::HTTP_10,
        _ => actix_http::Version::HTTP_11,
    };
    head.peer_addr = peer(&parts.extensions);
    // The connection belongs to the caller, so it cannot become a WebSocket.
    for (name, value) in parts.headers.iter().filter(|(name, _)| *name != http::header::UPGRADE) {
        let name = name.as_str().parse::<actix_http::header::HeaderName>().ok()?;
        head.headers_mut().append(name, actix_http::header::HeaderValue::from_bytes(value.as_bytes()).ok()?);
    }
    Some(request)
}

/// Sends status and headers of the response, and then its body as the client reads it.
async fn respond(response: ServiceResponse<impl MessageBody>, reply: oneshot::Sender<http::Response<ResponseBody>>) {
    let (head, body) = response.into_parts().1.into_parts();
    let (sender, receiver) = mpsc::channel(1);
    let Ok(mut converted) = http::Response::builder().status(head.status().as_u16()).body(ResponseBody(receiver))
    else {
        return;
    };
    for (name, value) in head.headers() {
        let name = http::HeaderName::from_bytes(name.as_str().as_bytes());
        if let (Ok(name), Ok(value)) = (name, http::HeaderValue::from_bytes(value.as_bytes())) {
            converted.headers_mut().append(name, value);
        }
    }
    if reply.send(converted).is_err() {
        return;
    }
    let mut body = std::pin::pin!(body);
    while let Some(piece) = std::future::poll_fn(|context| body.as_mut().poll_next(context)).await {
        let piece = piece.map_err(|error| BoxError::from(error.into().to_string()));
        if sender.send(piece).await.is_err() {
            return;
        }
    }
}

/// The body of a response, which is produced as it is read.
#[derive(Debug)]
pub struct ResponseBody(mpsc::Receiver<Result<Bytes, BoxError>>);

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// A body whose errors are boxed.
struct BoxedErrors<B>(Pin<Box<B>>);

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Body for BoxedErrors<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.as_mut().poll_frame(context).map_err(Into::into)
    }
}
