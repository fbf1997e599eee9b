//! Event streams (Server-Sent Events, HTML Living Standard, section 9.2).
//!
//! The next events are read when the connection can accept more, so a slow client costs only the memory of one batch.
//! Between batches a stream sleeps until the chain or the pool changes.

use crate::admission;
use crate::admission::clients::Permit;
use crate::admission::sender::Sender;
use crate::admission::tokens::Grant;
use crate::convert;
use crate::exchange::Exchange;
use crate::exchange::streaming::streaming_body;
use crate::exchange::transfer::{self, CompleteBody};
use crate::problem::HttpError;
use crate::problem::report::Reporter;
use crate::scheduling;
use crate::scheduling::signal::Signal;
use crate::service::Service;
use crate::transport::phase::Closing;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::web::{self, Bytes};
use futures_util::future::OptionFuture;
use node_core::context::Context;
use node_core::cost::Cost;
use node_core::logs::PageSize;
use node_core::node::{EventQuery, EventStream, Field, NodeError};
use node_types::wire::{Event, EventsInput, JsonBuffer, append_json};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

const EVENT_STREAM: &str = "text/event-stream";

/// How long a stream waits before it retries when the server is overloaded.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The start of a stream that waits for a block.
const WAITING: &str = ": waiting for the block of the last event id\n\n";

/// Maximum size of one batch of events, which bounds the memory for a client that does not read.
const BATCH: PageSize = PageSize { entries: 512, bytes: 256 * 1024 };

/// Responds with events until the client disconnects.
pub(crate) async fn respond(exchange: Exchange, input: Result<EventsInput, HttpError>) -> HttpResponse {
    let service = exchange.service().clone();
    let sender = exchange.sender().clone();
    let admitted = input.and_then(|input| {
        let grant = admission::grant(exchange.request(), &service)?;
        Ok((input, grant, service.streams.take(&sender.client, 1)?))
    });
    let (input, grant, permit) = match admitted {
        Ok(admitted) => admitted,
        Err(error) => return exchange.fail(&error),
    };
    let mut changes = changes_for(&input, &service).listen();
    changes.borrow_and_update();
    let query = convert::event::query(input);
    let (position, state) = match open(&service, exchange.context(), &query).await {
        Ok(stream) => (Position::At(stream), State::MustRead),
        // A browser ends an EventSource for good if the status is not 200.
        Err(error) if is_unknown_block(&error) => {
            let until = Instant::now() + service.config.requests.stream_wait;
            (Position::Unknown { query, until }, State::MustAnnounce)
        }
        Err(error) => return exchange.fail(&error),
    };
    let mut exchange =
        exchange.with_header(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    let closing = service.phases.leaving();
    let reporter = exchange.reporter();
    let body = EventBody { service, sender, grant, position, reporter, changes, closing, state, _permit: permit };
    let mut response = exchange.start(StatusCode::OK, EVENT_STREAM);
    // No further request follows on a connection of HTTP/1.1, so shutdown need not wait for one.
    exchange.end_connection(&mut response);
    exchange.finish(response.set_body(streaming_body(body, EventBody::next)))
}

/// Opens a stream.
async fn open(service: &web::Data<Service>, context: Context, query: &EventQuery) -> Result<EventStream, HttpError> {
    let (opening, query) = (service.clone(), query.clone());
    let open = Box::new(move |context: &Context| Ok(opening.node.events(context, &query)?));
    scheduling::run(&service.pools, Cost::Instant, context, open).await
}

/// Returns whether a stream could not be opened because the block of its last event id is unknown.
fn is_unknown_block(error: &HttpError) -> bool {
    matches!(error, HttpError::Node(NodeError::BlockNotFound { field: Field::LastEventId, .. }))
}

/// Returns the signal for the changes that concern a stream.
fn changes_for<'a>(input: &EventsInput, service: &'a Service) -> &'a Signal {
    match input {
        EventsInput::Logs { .. } | EventsInput::Blocks { .. } => &service.head_changes,
        EventsInput::PendingTransactions { .. } => &service.pool_arrivals,
    }
}

/// The body of an event stream.
struct EventBody {
    service: web::Data<Service>,
    sender: Sender,
    /// What the token of the client grants; `None` if it needs no token.
    grant: Option<Grant>,
    position: Position,
    reporter: Reporter,
    changes: watch::Receiver<()>,
    closing: Closing,
    state: State,
    /// Counts this stream towards the limit.
    _permit: Permit,
}

enum Position {
    At(EventStream),
    /// After an event of a block that this server does not have. It may still arrive, if several servers have the same
    /// chain, and the client was connected to another one before.
    Unknown {
        query: EventQuery,
        until: Instant,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was sent yet, and there is nothing to report until a block arrives.
    MustAnnounce,
    /// There may be events to send.
    MustRead,
    /// All events up to the last change have been sent.
    Idle,
    /// The stream was ended by an error, because the server is shutting down, or because the token was removed.
    Ended,
}

impl EventBody {
    /// Returns the next piece of text and the state after it, or `None` at the end.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if self.state == State::Ended {
            return None;
        }
        let (mut closing, mut grant) = (self.closing.clone(), self.grant.take());
        let text = tokio::select! {
            biased;
            () = closing.wait() => self.end(&HttpError::NotReady("the server is shutting down".to_owned())),
            Some(()) = OptionFuture::from(grant.as_mut().map(Grant::withdrawn)) => self.end(&HttpError::Unauthorized),
            text = self.next_text() => text,
        };
        self.grant = grant;
        Some((text, self))
    }

    /// Ends the stream. Returns its last event, the problem that describes `error`.
    fn end(&mut self, error: &HttpError) -> Bytes {
        self.state = State::Ended;
        let (_, problem) = self.reporter.problem(error);
        [&b"event: problem\ndata: "[..], &problem, b"\n\n"].concat().into()
    }

    /// Waits for events, for an error, or until a keep-alive comment is due, and returns the text to send.
    async fn next_text(&mut self) -> Bytes {
        if self.state == State::MustAnnounce {
            self.state = State::Idle;
            return Bytes::from_static(WAITING.as_bytes());
        }
        loop {
            if self.state == State::Idle {
                let over = match self.position {
                    Position::At(_) => None,
                    Position::Unknown { until, .. } => Some(sleep_until(until)),
                };
                tokio::select! {
                    biased;
                    _ = self.changes.changed() => self.state = State::MustRead,
                    Some(()) = OptionFuture::from(over) => return self.end(&HttpError::UnknownEvent),
                    () = sleep(self.service.config.requests.stream_keep_alive) => return Bytes::from_static(b": keep-alive\n\n"),
                }
            }
            match self.next_batch().await {
                Ok(text) if text.is_empty() => self.state = State::Idle,
                Ok(text) => return text,
                Err(error) if is_unknown_block(&error) && matches!(self.position, Position::Unknown { .. }) => {
                    self.state = State::Idle;
                }
                // Requests that wait for a response have priority.
                Err(HttpError::Overloaded | HttpError::Exhausted(_)) => sleep(RETRY_DELAY).await,
                Err(error) => return self.end(&error),
            }
        }
    }

    /// Returns the next events as text; empty if there are none.
    async fn next_batch(&mut self) -> Result<Bytes, HttpError> {
        // Marks changes as seen before the read, so that a change during the read wakes the stream again.
        self.changes.borrow_and_update();
        let stream = match &self.position {
            Position::At(stream) => stream.clone(),
            Position::Unknown { query, .. } => {
                open(&self.service, self.service.context(&self.sender.client), query).await?
            }
        };
        let (service, client) = (self.service.clone(), self.sender.client.clone());
        let work = Box::new(move |context: &Context| {
            let (events, stream) = service.node.next_events(context, stream.clone(), BATCH)?;
            let events: Vec<_> = events.into_iter().map(convert::event::event).collect();
            let mut out = transfer::buffer(&service, &client);
            write(&mut out, &events)?;
            Ok((CompleteBody::new(out)?, stream))
        });
        let context = self.service.context(&self.sender.client);
        let (text, stream) = scheduling::run(&self.service.pools, Cost::Brief, context, work).await?;
        self.position = Position::At(stream);
        Ok(text.send(&self.service, &self.sender))
    }
}

/// Serializes events for the stream.
fn write(text: &mut JsonBuffer, events: &[Event]) -> Result<(), HttpError> {
    for Event { id, data } in events {
        if let Some(id) = id {
            text.extend_from_slice(format!("id: {id}\n").as_bytes());
        }
        if let Some(data) = data {
            text.extend_from_slice(format!("event: {}\ndata: ", data.name()).as_bytes());
            // Compact JSON has no line breaks, which would end the field.
            append_json(text, data).map_err(|error| text.full().map_or(HttpError::Encode(error), HttpError::from))?;
            text.push(b'\n');
        }
        text.push(b'\n');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::EventId;
    use node_types::H256;
    use node_types::wire::{Data, EventData};

    #[test]
    fn writes_id_event_and_data_as_lines() {
        let data = Some(EventData::Transaction(Data(H256::repeat_byte(1))));
        let id = Some(EventId::Arrival(7));
        let hash = "01".repeat(32);
        let cases = [
            (vec![], String::new()),
            (vec![Event { id, data: None }], "id: 7\n\n".into()),
            (vec![Event { id: None, data: data.clone() }], format!("event: transaction\ndata: \"0x{hash}\"\n\n")),
            (
                vec![Event { id, data }, Event { id, data: None }],
                format!("id: 7\nevent: transaction\ndata: \"0x{hash}\"\n\nid: 7\n\n"),
            ),
        ];
        for (events, expected) in cases {
            let mut text = JsonBuffer::default();
            write(&mut text, &events).unwrap();
            assert_eq!(String::from_utf8(text.into()).unwrap(), expected);
        }
    }
}
