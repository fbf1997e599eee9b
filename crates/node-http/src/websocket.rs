//! JSON-RPC over WebSocket (RFC 6455), with subscriptions.
//!
//! The body of the answer is pulled: the next message of the client is read, and the next thing told, when the connection has
//! room for what comes of it. A client that does not read is not read from either, and holds no more than one answer.

use crate::admission;
use crate::body;
use crate::exchange::Exchange;
use crate::problem::{self, HttpError};
use crate::pulled::pulled;
use crate::rpc;
use crate::server::Service;
use actix_http::ws::{self, CloseCode, CloseReason, Codec, Frame, Item, Message as Outgoing, ProtocolError};
use actix_web::body::{BodyStream, MessageBody};
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, SEC_WEBSOCKET_KEY};
use actix_web::web::{self, Bytes, BytesMut, Payload};
use actix_web::{HttpRequest, HttpResponse};
use node_core::context::Context;
use node_rpc::Session;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant as TimerInstant, sleep, sleep_until};
use tokio_util::codec::{Decoder, Encoder};
use uuid::Uuid;

/// How long is waited when the server is busy.
const BUSY: Duration = Duration::from_secs(1);

/// Signs of life that may stay without any answer before the client counts as gone.
const UNANSWERED: u32 = 4;

/// What a message is for that is not read.
const UNREAD: &str = "rpc";

/// Begins to speak WebSocket with a client.
pub(crate) async fn begin(exchange: Exchange) -> HttpResponse {
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
        session: Arc::new(Session::new(service.config.sessions)),
        request: exchange.request().clone(),
        controls,
        incoming: Box::pin(BodyStream::new(payload)),
        buffer: BytesMut::new(),
        codec: Codec::new().max_size(service.config.max_body),
        fragments: BytesMut::new(),
        heads: service.head_changes.listen(),
        arrivals: service.arrivals.listen(),
        closing: service.closing.subscribe(),
        behind: false,
        quiet_until: TimerInstant::now() + service.config.stream_keep_alive,
        silent: 0,
        ended: false,
        _permit: permit,
        service,
    };
    exchange.upgrade(accept, pulled(socket, Socket::next))
}

/// A connection that speaks WebSocket.
struct Socket {
    service: web::Data<Service>,
    session: Arc<Session>,
    request: HttpRequest,
    controls: bool,
    incoming: Pin<Box<BodyStream<Payload>>>,
    /// What has come and is no whole frame yet.
    buffer: BytesMut,
    codec: Codec,
    /// The beginning of a message that comes in several frames.
    fragments: BytesMut,
    heads: watch::Receiver<()>,
    arrivals: watch::Receiver<()>,
    closing: watch::Receiver<bool>,
    /// Whether there may be something to tell.
    behind: bool,
    /// When a sign of life is due, if nothing is heard or sent before.
    quiet_until: TimerInstant,
    /// Signs of life since the client was heard last.
    silent: u32,
    ended: bool,
    /// One of the streams that there may be.
    _permit: OwnedSemaphorePermit,
}

/// What happens next.
enum Event {
    Frame(Result<Frame, ProtocolError>),
    /// The client has left.
    Gone,
    Changed,
    Quiet,
    Closing,
}

impl Socket {
    /// The next frames to send, with who goes on behind them; none at the end.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        while !self.ended {
            let mut out = BytesMut::new();
            if self.behind {
                self.tell(&mut out).await;
            } else {
                let event = self.event().await;
                self.handle(event, &mut out).await;
            }
            if !out.is_empty() {
                self.is_not_quiet();
                return Some((out.freeze(), self));
            }
        }
        None
    }

    async fn event(&mut self) -> Event {
        let Self { codec, buffer, incoming, heads, arrivals, closing, session, quiet_until, .. } = self;
        let limit = self.service.config.max_body;
        if let Some(frame) = decode(codec, buffer, limit) {
            return Event::Frame(frame);
        }
        let listens = !session.is_empty();
        let quiet = sleep_until(*quiet_until);
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => Event::Closing,
            piece = poll_fn(|context| incoming.as_mut().poll_next(context)) => match piece {
                Some(Ok(piece)) => {
                    buffer.extend_from_slice(&piece);
                    decode(codec, buffer, limit).map_or(Event::Changed, Event::Frame)
                }
                Some(Err(_)) | None => Event::Gone,
            },
            _ = heads.changed(), if listens => Event::Changed,
            _ = arrivals.changed(), if listens => Event::Changed,
            () = quiet => Event::Quiet,
        }
    }

    async fn handle(&mut self, event: Event, out: &mut BytesMut) {
        if matches!(event, Event::Frame(Ok(_))) {
            self.silent = 0;
            self.is_not_quiet();
        }
        match event {
            Event::Gone => self.ended = true,
            Event::Changed => self.behind = !self.session.is_empty(),
            Event::Closing => self.close(CloseCode::Away, "the server is about to end", out),
            Event::Quiet if self.silent >= UNANSWERED => self.ended = true,
            Event::Quiet => {
                self.silent += 1;
                self.send(Outgoing::Ping(Bytes::new()), out);
            }
            Event::Frame(Err(ProtocolError::Overflow)) => self.close_too_long(out),
            Event::Frame(Err(error)) => self.close(CloseCode::Protocol, &error.to_string(), out),
            Event::Frame(Ok(frame)) => self.take(frame, out).await,
        }
    }

    async fn take(&mut self, frame: Frame, out: &mut BytesMut) {
        match frame {
            Frame::Text(message) | Frame::Binary(message) => self.answer(message, out).await,
            Frame::Continuation(Item::FirstText(piece) | Item::FirstBinary(piece)) => {
                self.fragments = BytesMut::from(&piece[..]);
            }
            Frame::Continuation(Item::Continue(piece)) => self.collect(&piece, out),
            Frame::Continuation(Item::Last(piece)) => {
                self.collect(&piece, out);
                if !self.ended {
                    let message = self.fragments.split().freeze();
                    self.answer(message, out).await;
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

    /// Answers a message, which counts as a request.
    async fn answer(&mut self, body: Bytes, out: &mut BytesMut) {
        let started = Instant::now();
        let context = self.service.message_context();
        let (operation, answer) = self.work_out(context, body).await;
        let id = Uuid::new_v4();
        let elapsed = started.elapsed();
        let status = answer.as_ref().map_or_else(|(error, _)| problem::status(error), |_| StatusCode::OK);
        self.service.metrics.answered(operation, status, elapsed);
        tracing::info!(target: "request", %id, operation, status = status.as_u16(), micros = elapsed.as_micros() as u64);
        // The client hears of subscriptions before it hears of what they tell.
        self.behind = !self.session.is_empty();
        let answer = answer.unwrap_or_else(|(error, refusal)| {
            self.service.metrics.refused(&error);
            refusal
        });
        if let Some(answer) = answer {
            self.text(answer, out);
        }
    }

    /// What a message is for, and its answer, or why it is not run with what the client is told.
    async fn work_out(
        &self,
        context: Context,
        body: Bytes,
    ) -> (&'static str, Result<rpc::Answer, (HttpError, rpc::Answer)>) {
        let service = &self.service;
        let unread = |error: HttpError| {
            let refusal = rpc::refusal(&error);
            (UNREAD, Err((error, Some(refusal))))
        };
        let (requests, depth) = (service.config.max_requests, service.config.max_depth);
        let Ok(_slot) = Arc::clone(&service.requests).try_acquire_owned() else {
            return unread(HttpError::TooManyRequests { limit: requests });
        };
        if body::is_too_deep(&body, depth) {
            return unread(HttpError::BodyTooDeep { limit: depth });
        }
        let message = match rpc::read(service, body).await {
            Ok(Ok(message)) => message,
            Ok(Err(refusal)) => return (UNREAD, Ok(Some(refusal))),
            Err(error) => return unread(error),
        };
        let session = Some(self.session.clone());
        let answer = match admission::count_requests(&self.request, service, message.requests()) {
            Ok(()) => rpc::answer(service.clone(), context, message.clone(), session, self.controls).await,
            Err(error) => Err(error),
        };
        let answer = answer.map_err(|error| {
            let refusal = rpc::refusal_of(&message, &error);
            (error, refusal)
        });
        (message.operation(), answer)
    }

    /// Tells what has happened, a page of each subscription.
    async fn tell(&mut self, out: &mut BytesMut) {
        // What changes from here on is looked at again.
        self.heads.borrow_and_update();
        self.arrivals.borrow_and_update();
        match rpc::notifications(&self.service, &self.session).await {
            Ok(messages) if messages.is_empty() => self.behind = false,
            Ok(messages) => messages.into_iter().for_each(|message| self.text(message, out)),
            // Those who wait for an answer come first.
            Err(_) => sleep(BUSY).await,
        }
    }

    fn text(&mut self, message: Vec<u8>, out: &mut BytesMut) {
        match String::from_utf8(message) {
            Ok(text) => self.send(Outgoing::Text(text.into()), out),
            Err(_) => self.close(CloseCode::Error, "an answer is no text", out),
        }
    }

    /// Something was heard or is sent: a sign of life can wait.
    fn is_not_quiet(&mut self) {
        self.quiet_until = TimerInstant::now() + self.service.config.stream_keep_alive;
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

/// The next frame of `buffer`, if it is whole. One that says that it is too long is refused before the rest of it has come:
/// the codec would wait for it.
fn decode(codec: &mut Codec, buffer: &mut BytesMut, limit: usize) -> Option<Result<Frame, ProtocolError>> {
    if payload_length(buffer).is_some_and(|length| length > limit as u64) {
        return Some(Err(ProtocolError::Overflow));
    }
    codec.decode(buffer).transpose()
}

/// How long the payload of the first frame is, in bytes, once its head says so (RFC 6455, section 5.2).
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
    fn lengths_of_payloads() {
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
