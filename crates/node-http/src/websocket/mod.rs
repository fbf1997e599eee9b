//! JSON-RPC over WebSocket (RFC 6455), with subscriptions.
//!
//! The next message of the client is read, and the next notification is sent, only when the connection can accept
//! output. Therefore a client that does not read its responses cannot send further requests, and costs only the
//! memory of one response.

mod incoming;

use self::incoming::{Ended, Incoming, Received};
use crate::admission;
use crate::admission::clients::Permit;
use crate::admission::sender::Sender;
use crate::admission::tokens::Grant;
use crate::exchange::Exchange;
use crate::exchange::request_id::{RequestId, Trace};
use crate::exchange::request_log::{Responded, UNKNOWN_METHOD};
use crate::exchange::streaming::streaming_body;
use crate::exchange::transfer::{CompleteBody, SHORT};
use crate::problem::{self, HttpError};
use crate::rpc::{self, Response, Unread};
use crate::scheduling;
use crate::service::Service;
use crate::transport::phase::Closing;
use actix_http::ConnectionType;
use actix_http::ws::{self, CloseCode, CloseReason, Codec, Message as Outgoing};
use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use actix_web::http::{StatusCode, Version};
use actix_web::web::{self, BufMut, Bytes, BytesMut};
use futures_util::FutureExt;
use futures_util::future::OptionFuture;
use node_core::context::Context;
use node_rpc::{Message, Reply, Session, SessionLimits};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::{Instant as TimerInstant, sleep_until, timeout_at};
use tokio_util::codec::Encoder;

/// How long to wait before a retry when the server is overloaded.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Consecutive pings without any frame from the client after which the connection is closed.
const MAX_UNANSWERED_PINGS: u32 = 4;

/// How long the client has to respond to the close frame with which the server shuts down.
const CLOSE_TIME: Duration = Duration::from_millis(150);

/// Maximum length of the reason in a close frame, in bytes: a control frame has at most 125, of which the code takes
/// two (RFC 6455, section 5.5).
const MAX_CLOSE_REASON: usize = 123;

/// Upgrades the connection to WebSocket (RFC 6455, section 4.2.2).
pub(crate) async fn upgrade(exchange: Exchange) -> HttpResponse {
    let mut exchange = exchange.no_store();
    if let Err(error) = exchange.check_origin() {
        return exchange.fail(&error);
    }
    // HTTP/1.0 has no upgrade (RFC 9110, section 7.8).
    let can_upgrade = exchange.request().version() >= Version::HTTP_11;
    if !can_upgrade || ws::verify_handshake(exchange.request().head()).is_err() {
        return exchange.fail(&HttpError::NoWebSocket);
    }
    let key = exchange.request().headers().get(SEC_WEBSOCKET_KEY);
    let accept = key.and_then(|key| HeaderValue::from_bytes(&ws::hash_key(key.as_bytes())).ok());
    let service = exchange.service().clone();
    let sender = exchange.sender().clone();
    let grant = match admission::grant(exchange.request(), &service) {
        Ok(grant) => grant,
        Err(error) => return exchange.fail(&error),
    };
    let caller = rpc::Caller::of(exchange.request(), &service, &sender);
    let permit = service.streams.take(&sender.client, 1);
    let (Some(accept), Some(payload)) = (accept, exchange.take_payload()) else {
        return exchange.fail(&HttpError::NoWebSocket);
    };
    let permits = permit.and_then(|permit| Ok((permit, service.transfers.take(&sender.client, 0)?)));
    let (permit, incoming_permit) = match permits {
        Ok(permits) => permits,
        Err(exhausted) => return exchange.fail(&exhausted.into()),
    };
    let socket = Socket {
        session: Arc::new(Session::new(SessionLimits { subscriptions: service.config.requests.max_subscriptions })),
        sender,
        caller,
        grant,
        incoming: Incoming::new(payload, incoming_permit, service.config.requests.max_body),
        codec: Codec::new(),
        head_changes: service.head_changes.listen(),
        pool_arrivals: service.pool_arrivals.listen(),
        closing: service.phases.leaving(),
        must_read: false,
        notifies_next: false,
        retry_at: None,
        response: None,
        next_ping: TimerInstant::now() + service.config.requests.stream_keep_alive,
        unanswered_pings: 0,
        ended: false,
        is_leaving: false,
        path: exchange.request().path().to_owned(),
        trace: Trace::of(exchange.request().headers()),
        _permit: permit,
        service,
    };
    let mut response = exchange.start(StatusCode::SWITCHING_PROTOCOLS, "");
    response.head_mut().set_connection_type(ConnectionType::Upgrade);
    let headers = response.headers_mut();
    headers.remove(CONTENT_TYPE);
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    exchange.sender().connection.upgrade();
    exchange.finish(response.set_body(streaming_body(socket, Socket::next)))
}

struct Socket {
    service: web::Data<Service>,
    session: Arc<Session>,
    sender: Sender,
    caller: rpc::Caller,
    /// What the token of the client grants; `None` if it needs no token.
    grant: Option<Grant>,
    incoming: Incoming,
    /// Encodes frames.
    codec: Codec,
    head_changes: watch::Receiver<()>,
    pool_arrivals: watch::Receiver<()>,
    closing: Closing,
    /// Whether there may be notifications to send.
    must_read: bool,
    /// Whether notifications come next, although a frame of the client may be waiting.
    notifies_next: bool,
    /// When to read notifications again after they could not be read.
    retry_at: Option<TimerInstant>,
    /// A long response, which is sent next. The header of its frame has been sent.
    response: Option<CompleteBody>,
    /// When a ping is due, unless a frame is received or sent before that.
    next_ping: TimerInstant,
    /// Pings sent since the last frame from the client.
    unanswered_pings: u32,
    ended: bool,
    /// Whether it has ended because the server shuts down.
    is_leaving: bool,
    /// The path of the request that opened the connection.
    path: String,
    /// The trace of the request that opened the connection.
    trace: Option<Trace>,
    /// Counts this connection as an open stream.
    _permit: Permit,
}

/// The events to which the connection reacts.
enum Event {
    Received(Received),
    /// The chain or the pool may have changed.
    Changed,
    /// A ping is due.
    Ping,
    /// The server is shutting down.
    Closing,
    /// The token of the client has other rights than before.
    RightsChanged,
}

impl Socket {
    /// Returns the next frames to send and the state after them, or `None` at the end.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if let Some(body) = self.response.take() {
            self.postpone_ping();
            return Some((body.send(&self.service, &self.sender), self));
        }
        while !self.ended {
            let mut out = BytesMut::new();
            // Frames of the client and notifications take turns, so neither waits for the end of the other.
            let event = match (self.must_read, self.notifies_next) {
                (false, _) => Some(self.event().await),
                (true, false) => self.event().now_or_never(),
                (true, true) => None,
            };
            self.notifies_next = event.is_some();
            match event {
                Some(event) => self.handle(event, &mut out).await,
                None => self.notify(&mut out).await,
            }
            if !out.is_empty() {
                let body = self.count(out);
                self.postpone_ping();
                return Some((body.send(&self.service, &self.sender), self));
            }
        }
        if self.is_leaving {
            self.hang_up().await;
        }
        None
    }

    /// Waits a moment for the client to close the connection, and then for nothing more.
    async fn hang_up(&mut self) {
        let end = TimerInstant::now() + CLOSE_TIME;
        while TimerInstant::now() < end {
            match timeout_at(end, self.incoming.next()).await {
                Err(_) | Ok(Received::Close(_) | Received::Ended(_)) => break,
                Ok(_) => {}
            }
        }
        self.sender.connection.hang_up();
    }

    /// Waits for the next event.
    async fn event(&mut self) -> Event {
        let Self { grant, incoming, head_changes, pool_arrivals, closing, session, next_ping, retry_at, .. } = self;
        let subscribed = !session.is_empty();
        let retry = sleep_until(retry_at.unwrap_or(*next_ping));
        let ping = sleep_until(*next_ping);
        tokio::select! {
            biased;
            () = closing.wait() => Event::Closing,
            Some(()) = OptionFuture::from(grant.as_mut().map(Grant::changed)) => Event::RightsChanged,
            received = incoming.next() => Event::Received(received),
            _ = head_changes.changed(), if subscribed => Event::Changed,
            _ = pool_arrivals.changed(), if subscribed => Event::Changed,
            () = retry, if retry_at.is_some() => Event::Changed,
            () = ping => Event::Ping,
        }
    }

    async fn handle(&mut self, event: Event, out: &mut BytesMut) {
        match event {
            Event::Changed => self.must_read = !self.session.is_empty(),
            Event::Closing => {
                self.is_leaving = true;
                self.close(CloseCode::Away, "the server is shutting down", out);
            }
            Event::RightsChanged => self.close(CloseCode::Policy, "the rights of the token have changed", out),
            Event::Ping if self.unanswered_pings >= MAX_UNANSWERED_PINGS => self.ended = true,
            Event::Ping => {
                self.unanswered_pings += 1;
                self.send(Outgoing::Ping(Bytes::new()), out);
            }
            Event::Received(Received::Ended(Ended::Disconnected)) => self.ended = true,
            Event::Received(Received::Ended(Ended::TooLong)) => {
                let limit = self.service.config.requests.max_body;
                self.close(CloseCode::Size, &format!("a message is longer than {limit} bytes (max-body)"), out);
            }
            // RFC 6455, section 8.1.
            Event::Received(Received::Ended(Ended::NotUtf8)) => {
                self.close(CloseCode::Invalid, "a text message is not UTF-8", out);
            }
            Event::Received(Received::Ended(Ended::Invalid(error))) => {
                self.close(CloseCode::Protocol, &error.to_string(), out);
            }
            Event::Received(Received::Ended(Ended::Exhausted(exhausted))) => {
                self.close(CloseCode::Again, &exhausted.to_string(), out);
            }
            Event::Received(Received::Part) => {}
            Event::Received(Received::Message(message)) => {
                self.heard();
                self.respond(message, out).await;
            }
            Event::Received(Received::Ping(bytes)) => {
                self.heard();
                self.send(Outgoing::Pong(bytes), out);
            }
            Event::Received(Received::Pong) => self.heard(),
            Event::Received(Received::Close(reason)) => {
                self.send(Outgoing::Close(reason), out);
                self.ended = true;
            }
        }
    }

    /// Restarts the time after which a silent client is given up.
    fn heard(&mut self) {
        self.unanswered_pings = 0;
        self.postpone_ping();
    }

    /// Responds to a message, which counts as a request in metrics and logs.
    async fn respond(&mut self, body: Bytes, out: &mut BytesMut) {
        let started = Instant::now();
        let context = self.service.consistent_context(&self.sender.client);
        let (message, result) = self.run(context.clone(), body).await;
        let status = result.as_ref().map_or_else(|(error, _)| problem::status(error), |_| StatusCode::OK);
        // The response to a new subscription is sent before its first notification.
        self.must_read = !self.session.is_empty();
        let (response, refusal, calls) = match result {
            Ok(Response { body, calls }) => (body, None, calls),
            Err((error, Reply { body, calls })) => {
                if let Some(limit) = error.limit() {
                    self.service.metrics.record_refusal(limit);
                }
                (None, body, calls)
            }
        };
        let length = response.as_deref().or(refusal.as_deref()).map_or(0, <[u8]>::len);
        Responded {
            id: &RequestId::new(),
            trace: self.trace.as_ref(),
            client: self.sender.client.network(),
            line: Some(("GET", &self.path)),
            operation: message.as_deref().map_or(UNKNOWN_METHOD, Message::operation),
            status,
            problem: None,
            calls: &calls,
            bytes: Some(length as u64),
            elapsed: started.elapsed(),
            remote: context.remote_reads(),
        }
        .record(&self.service.metrics);
        match response {
            // A long response is not copied into a frame.
            Some(response) if response.len() > SHORT => {
                begin_text(response.len(), out);
                self.response = Some(response);
            }
            response => {
                let text = response.map(|response| response.send(&self.service, &self.sender));
                if let Some(text) = text.or(refusal.map(Bytes::from)) {
                    self.send_text(text, out);
                }
            }
        }
    }

    /// Counts frames until the client has read them. If there is not enough memory for them, the connection is closed
    /// instead, so that the client knows that it has missed something.
    fn count(&mut self, frames: BytesMut) -> CompleteBody {
        CompleteBody::counted(frames.freeze(), &self.service, &self.sender.client).unwrap_or_else(|error| {
            let mut out = BytesMut::new();
            self.close(CloseCode::Again, &error.to_string(), &mut out);
            CompleteBody::uncounted(out.freeze())
        })
    }

    /// Runs a message. Returns the message, `None` if it cannot be read, and the response, or the reason why it was not
    /// run, with the response that reports it.
    async fn run(&self, context: Context, body: Bytes) -> (Option<Arc<Message>>, Result<Response, (HttpError, Reply)>) {
        let service = &self.service;
        let unread = |error: HttpError| {
            let refusal = rpc::refuse_unread(&error);
            (None, Err((error, refusal)))
        };
        let refused = |message: Arc<Message>, error: HttpError| {
            let refusal = rpc::refuse(&message, &error);
            (Some(message), Err((error, refusal)))
        };
        // A body that is not JSON counts as a request, too.
        let admitted = admission::count_requests(&self.sender, service, 1);
        let permit = admitted.and_then(|()| Ok(service.requests.take(&self.sender.client, 1)?));
        let permit = match permit {
            Err(error) if body.len() > scheduling::SHORT_BODY => return unread(error),
            permit => permit,
        };
        // A refused message is read for the ids of its requests.
        let read = rpc::read(service, service.context(&self.sender.client), body).await;
        let (_permit, message) = match (permit, read) {
            (Ok(permit), Ok(message)) => (permit, message),
            (Err(error), Ok(message)) => return refused(message, error),
            (Err(error), Err(_)) | (Ok(_), Err(Unread::Refused(error))) => return unread(error),
            (Ok(_), Err(Unread::Invalid(error))) => return (None, Ok(error.into())),
        };
        let session = Some(self.session.clone());
        let result = match admission::count_requests(&self.sender, service, message.requests() - 1) {
            Ok(()) => rpc::run(service.clone(), context, message.clone(), session, self.caller.clone()).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(response) => (Some(message), Ok(response)),
            Err(error) => refused(message, error),
        }
    }

    /// Sends notifications, one page for each subscription.
    async fn notify(&mut self, out: &mut BytesMut) {
        // Marks changes as seen before the read, so that a change during the read is noticed.
        self.head_changes.borrow_and_update();
        self.pool_arrivals.borrow_and_update();
        self.retry_at = None;
        match rpc::notifications(&self.service, self.service.context(&self.sender.client), &self.session).await {
            Ok(messages) if messages.is_empty() => self.must_read = false,
            Ok(messages) => messages.into_iter().for_each(|message| self.send_text(message.into(), out)),
            // Requests that wait for a response have priority.
            Err(_) => {
                self.must_read = false;
                self.retry_at = Some(TimerInstant::now() + RETRY_DELAY);
            }
        }
    }

    fn send_text(&mut self, message: Bytes, out: &mut BytesMut) {
        match message.try_into() {
            Ok(text) => self.send(Outgoing::Text(text), out),
            Err(_) => self.close(CloseCode::Error, "a response is not UTF-8", out),
        }
    }

    /// Restarts the time until the next ping, because a frame was received or is sent.
    fn postpone_ping(&mut self) {
        self.next_ping = TimerInstant::now() + self.service.config.requests.stream_keep_alive;
    }

    fn close(&mut self, code: CloseCode, reason: &str, out: &mut BytesMut) {
        self.send(close_frame(code, reason), out);
        self.ended = true;
    }

    fn send(&mut self, message: Outgoing, out: &mut BytesMut) {
        if self.codec.encode(message, out).is_err() {
            self.ended = true;
        }
    }
}

/// Appends the beginning of a frame with a text message of `length` bytes (RFC 6455, section 5.2).
fn begin_text(length: usize, out: &mut BytesMut) {
    const LAST_OF_TEXT: u8 = 0x81;
    out.put_u8(LAST_OF_TEXT);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length @ ..126), _) => out.put_u8(length),
        (_, Ok(length)) => {
            out.put_u8(126);
            out.put_u16(length);
        }
        _ => {
            out.put_u8(127);
            out.put_u64(length as u64);
        }
    }
}

/// Returns a close frame. A long reason is cut.
fn close_frame(code: CloseCode, reason: &str) -> Outgoing {
    let reason = &reason[..reason.floor_char_boundary(MAX_CLOSE_REASON)];
    Outgoing::Close(Some(CloseReason::from((code, reason))))
}

#[cfg(test)]
mod tests {
    use super::incoming::payload_length;
    use super::*;

    #[test]
    fn frames_begin_with_the_length_of_the_text() {
        for length in [0, 125, 126, 65_535, 65_536] {
            let (mut begun, mut whole) = (BytesMut::new(), BytesMut::new());
            begin_text(length, &mut begun);
            Codec::new().encode(Outgoing::Text("t".repeat(length).into()), &mut whole).unwrap();
            assert_eq!(begun, whole[..whole.len() - length], "{length}");
        }
    }

    #[test]
    fn a_long_reason_of_a_close_frame_is_cut() {
        for (reason, length) in [("gone".to_owned(), 6), ("e".repeat(200), 125), ("é".repeat(100), 124)] {
            let mut out = BytesMut::new();
            Codec::new().encode(close_frame(CloseCode::Again, &reason), &mut out).unwrap();
            assert_eq!(payload_length(&out), Some(length), "{reason}");
        }
    }
}
