//! JSON-RPC over WebSocket (RFC 6455), with subscriptions.
//!
//! The next message of the client is read, and the next notification is sent, only when the connection can take the output.
//! So a client that does not read its responses cannot send further requests, and costs the memory of one response.

use crate::admission;
use crate::exchange::Exchange;
use crate::problem::{self, HttpError};
use crate::request_log::{self, Failure};
use crate::rpc;
use crate::service::Service;
use crate::streaming::streaming_body;
use actix_http::ConnectionType;
use actix_http::ws::{self, CloseCode, CloseReason, Codec, Frame, Item, Message as Outgoing, ProtocolError};
use actix_web::body::{BodyStream, MessageBody};
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use actix_web::web::{self, Bytes, BytesMut, Payload};
use actix_web::{HttpRequest, HttpResponse};
use node_core::context::Context;
use node_rpc::{Reply, Session, SessionLimits};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant as TimerInstant, sleep, sleep_until};
use tokio_util::codec::{Decoder, Encoder};
use uuid::Uuid;

/// How long to wait before trying again when the server is overloaded.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Consecutive pings without any frame from the client after which the connection is closed.
const MAX_UNANSWERED_PINGS: u32 = 4;

/// The operation of messages that are not read, in metrics and logs.
const UNREAD: &str = "rpc";

/// Upgrades the connection to WebSocket (RFC 6455, section 4.2.2).
pub(crate) async fn upgrade(exchange: Exchange) -> HttpResponse {
    let mut exchange = exchange.no_store();
    let config = exchange.config();
    let allowed = admission::may_read(exchange.request(), config);
    let controls = admission::may_control(exchange.request(), config).is_ok();
    if let Err(error) = allowed {
        return exchange.fail(&error);
    }
    if ws::verify_handshake(exchange.request().head()).is_err() {
        return exchange.fail(&HttpError::NoWebSocket);
    }
    let key = exchange.request().headers().get(SEC_WEBSOCKET_KEY);
    let accept = key.and_then(|key| HeaderValue::from_bytes(&ws::hash_key(key.as_bytes())).ok());
    let service = exchange.service().clone();
    let permit = Arc::clone(&service.streams).try_acquire_owned();
    let (Some(accept), Some(payload)) = (accept, exchange.take_payload()) else {
        return exchange.fail(&HttpError::NoWebSocket);
    };
    let Ok(permit) = permit else {
        return exchange.fail(&HttpError::TooManyStreams { limit: service.config.max_streams });
    };
    let socket = Socket {
        session: Arc::new(Session::new(SessionLimits { subscriptions: service.config.max_subscriptions })),
        request: exchange.request().clone(),
        controls,
        incoming: Box::pin(BodyStream::new(payload)),
        buffer: BytesMut::new(),
        codec: Codec::new().max_size(service.config.max_body),
        fragments: BytesMut::new(),
        head_changes: service.head_changes.listen(),
        pool_arrivals: service.pool_arrivals.listen(),
        closing: service.closing.subscribe(),
        behind: false,
        next_ping: TimerInstant::now() + service.config.stream_keep_alive,
        unanswered_pings: 0,
        ended: false,
        _permit: permit,
        service,
    };
    let mut response = exchange.start(StatusCode::SWITCHING_PROTOCOLS, "");
    response.head_mut().set_connection_type(ConnectionType::Upgrade);
    let headers = response.headers_mut();
    headers.remove(CONTENT_TYPE);
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    exchange.finish(response.set_body(streaming_body(socket, Socket::next)))
}

/// One WebSocket connection.
struct Socket {
    service: web::Data<Service>,
    session: Arc<Session>,
    request: HttpRequest,
    /// Whether the client may control the chain.
    controls: bool,
    incoming: Pin<Box<BodyStream<Payload>>>,
    /// Received bytes that are not a complete frame yet.
    buffer: BytesMut,
    codec: Codec,
    /// The start of a message that arrives in several frames.
    fragments: BytesMut,
    head_changes: watch::Receiver<()>,
    pool_arrivals: watch::Receiver<()>,
    closing: watch::Receiver<bool>,
    /// Whether there may be notifications to send.
    behind: bool,
    /// When a ping is due, unless a frame is received or sent before.
    next_ping: TimerInstant,
    /// Pings sent since the last frame from the client.
    unanswered_pings: u32,
    ended: bool,
    /// Counts this connection as an open stream.
    _permit: OwnedSemaphorePermit,
}

/// What the connection reacts to.
enum Event {
    Frame(Result<Frame, ProtocolError>),
    /// The client has disconnected.
    Disconnected,
    /// The chain or the pool may have changed.
    Changed,
    /// A ping is due.
    Ping,
    /// The server is shutting down.
    Closing,
}

impl Socket {
    /// Returns the next frames to send and the state after them, or `None` at the end.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        while !self.ended {
            let mut out = BytesMut::new();
            if self.behind {
                self.notify(&mut out).await;
            } else {
                let event = self.event().await;
                self.handle(event, &mut out).await;
            }
            if !out.is_empty() {
                self.postpone_ping();
                return Some((out.freeze(), self));
            }
        }
        None
    }

    /// Waits for the next event.
    async fn event(&mut self) -> Event {
        let Self { codec, buffer, incoming, head_changes, pool_arrivals, closing, session, next_ping, .. } = self;
        let limit = self.service.config.max_body;
        if let Some(frame) = decode(codec, buffer, limit) {
            return Event::Frame(frame);
        }
        let subscribed = !session.is_empty();
        let ping = sleep_until(*next_ping);
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => Event::Closing,
            piece = poll_fn(|context| incoming.as_mut().poll_next(context)) => match piece {
                Some(Ok(piece)) => {
                    buffer.extend_from_slice(&piece);
                    decode(codec, buffer, limit).map_or(Event::Changed, Event::Frame)
                }
                Some(Err(_)) | None => Event::Disconnected,
            },
            _ = head_changes.changed(), if subscribed => Event::Changed,
            _ = pool_arrivals.changed(), if subscribed => Event::Changed,
            () = ping => Event::Ping,
        }
    }

    async fn handle(&mut self, event: Event, out: &mut BytesMut) {
        if matches!(event, Event::Frame(Ok(_))) {
            self.unanswered_pings = 0;
            self.postpone_ping();
        }
        match event {
            Event::Disconnected => self.ended = true,
            Event::Changed => self.behind = !self.session.is_empty(),
            Event::Closing => self.close(CloseCode::Away, "the server is shutting down", out),
            Event::Ping if self.unanswered_pings >= MAX_UNANSWERED_PINGS => self.ended = true,
            Event::Ping => {
                self.unanswered_pings += 1;
                self.send(Outgoing::Ping(Bytes::new()), out);
            }
            Event::Frame(Err(ProtocolError::Overflow)) => self.close_too_long(out),
            Event::Frame(Err(error)) => self.close(CloseCode::Protocol, &error.to_string(), out),
            Event::Frame(Ok(frame)) => self.handle_frame(frame, out).await,
        }
    }

    async fn handle_frame(&mut self, frame: Frame, out: &mut BytesMut) {
        match frame {
            Frame::Text(message) | Frame::Binary(message) => self.respond(message, out).await,
            Frame::Continuation(Item::FirstText(piece) | Item::FirstBinary(piece)) => {
                self.fragments = BytesMut::from(&piece[..]);
            }
            Frame::Continuation(Item::Continue(piece)) => self.collect(&piece, out),
            Frame::Continuation(Item::Last(piece)) => {
                self.collect(&piece, out);
                if !self.ended {
                    let message = self.fragments.split().freeze();
                    self.respond(message, out).await;
                }
            }
            Frame::Ping(bytes) => self.send(Outgoing::Pong(bytes), out),
            Frame::Pong(_) => {}
            Frame::Close(reason) => {
                self.send(Outgoing::Close(reason), out);
                self.ended = true;
            }
        }
    }

    fn collect(&mut self, piece: &[u8], out: &mut BytesMut) {
        let limit = self.service.config.max_body;
        if piece.len() > limit - self.fragments.len() {
            self.close_too_long(out);
        } else {
            self.fragments.extend_from_slice(piece);
        }
    }

    /// Responds to a message, which counts as a request in metrics and logs.
    async fn respond(&mut self, body: Bytes, out: &mut BytesMut) {
        let started = Instant::now();
        let context = self.service.message_context();
        let (operation, result) = self.run(context, body).await;
        let id = Uuid::new_v4();
        let elapsed = started.elapsed();
        let status = result.as_ref().map_or_else(|(error, _)| problem::status(error), |_| StatusCode::OK);
        self.service.metrics.record_response(operation, status, elapsed);
        // The response to a new subscription is sent before its first notification.
        self.behind = !self.session.is_empty();
        let Reply { body, error, failed } = result.unwrap_or_else(|(error, refusal)| {
            if let Some(limit) = error.limit() {
                self.service.metrics.record_refusal(limit);
            }
            refusal
        });
        let failure = error.map(|error| Failure { code: error.code, message: error.message, requests: failed });
        request_log::log(id, operation, status, elapsed, failure.as_ref());
        if let Some(response) = body {
            self.send_text(response, out);
        }
    }

    /// Runs a message. Returns its operation and the response, or the reason why it was not run with the response to that.
    async fn run(&self, context: Context, body: Bytes) -> (&'static str, Result<Reply, (HttpError, Reply)>) {
        let service = &self.service;
        let unread = |error: HttpError| {
            let refusal = rpc::refuse_unread(&error);
            (UNREAD, Err((error, refusal)))
        };
        let limit = service.config.max_requests;
        let Ok(_permit) = Arc::clone(&service.requests).try_acquire_owned() else {
            return unread(HttpError::TooManyRequests { limit });
        };
        let message = match rpc::read(service, body).await {
            Ok(Ok(message)) => message,
            Ok(Err(error)) => return (UNREAD, Ok(error.into())),
            Err(error) => return unread(error),
        };
        let session = Some(self.session.clone());
        let result = match admission::count_requests(&self.request, service, message.requests()) {
            Ok(()) => rpc::run(service.clone(), context, message.clone(), session, self.controls).await,
            Err(error) => Err(error),
        };
        let result = result.map_err(|error| {
            let refusal = rpc::refuse(&message, &error);
            (error, refusal)
        });
        (message.operation(), result)
    }

    /// Sends notifications, one page for each subscription.
    async fn notify(&mut self, out: &mut BytesMut) {
        // Marks changes as seen before reading, so that a change during the read is looked at again.
        self.head_changes.borrow_and_update();
        self.pool_arrivals.borrow_and_update();
        match rpc::notifications(&self.service, &self.session).await {
            Ok(messages) if messages.is_empty() => self.behind = false,
            Ok(messages) => messages.into_iter().for_each(|message| self.send_text(message, out)),
            // Requests that wait for a response come first.
            Err(_) => sleep(RETRY_DELAY).await,
        }
    }

    fn send_text(&mut self, message: Vec<u8>, out: &mut BytesMut) {
        match String::from_utf8(message) {
            Ok(text) => self.send(Outgoing::Text(text.into()), out),
            Err(_) => self.close(CloseCode::Error, "a response is not UTF-8", out),
        }
    }

    /// Restarts the time until the next ping, because a frame was received or is sent.
    fn postpone_ping(&mut self) {
        self.next_ping = TimerInstant::now() + self.service.config.stream_keep_alive;
    }

    fn close_too_long(&mut self, out: &mut BytesMut) {
        let limit = self.service.config.max_body;
        self.close(CloseCode::Size, &format!("a message is longer than {limit} bytes (max-body)"), out);
    }

    fn close(&mut self, code: CloseCode, reason: &str, out: &mut BytesMut) {
        self.send(Outgoing::Close(Some(CloseReason::from((code, reason)))), out);
        self.ended = true;
    }

    fn send(&mut self, message: Outgoing, out: &mut BytesMut) {
        if self.codec.encode(message, out).is_err() {
            self.ended = true;
        }
    }
}

/// The next frame of `buffer`, or `None` if it is incomplete. A frame that declares more than `limit` bytes is refused at once;
/// the codec would wait until it is complete.
fn decode(codec: &mut Codec, buffer: &mut BytesMut, limit: usize) -> Option<Result<Frame, ProtocolError>> {
    if payload_length(buffer).is_some_and(|length| length > limit as u64) {
        return Some(Err(ProtocolError::Overflow));
    }
    codec.decode(buffer).transpose()
}

/// The payload length of the first frame in bytes, or `None` if its header is incomplete (RFC 6455, section 5.2).
fn payload_length(buffer: &[u8]) -> Option<u64> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    match buffer.get(1)? & 0x7f {
        126 => buffer.get(2..4).map(number),
        127 => buffer.get(2..10).map(number),
        short => Some(short.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_payload_length_of_incomplete_frames() {
        let cases: [(&[u8], Option<u64>); 7] = [
            (&[0x81], None),
            (&[0x81, 0x85], Some(5)),
            (&[0x81, 0x7d, 1], Some(125)),
            (&[0x81, 0xfe, 1], None),
            (&[0x81, 0xfe, 1, 2], Some(0x102)),
            (&[0x81, 0xff, 0, 0, 0, 0, 0, 0, 0], None),
            (&[0x81, 0xff, 0, 4, 0, 0, 0, 0, 0, 1, 9], Some((1 << 50) + 1)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(payload_length(bytes), expected, "{bytes:x?}");
        }
    }
}
