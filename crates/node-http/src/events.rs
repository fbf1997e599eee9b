//! Events on their way to a client (Server-Sent Events, HTML Living Standard, section 9.2).
//!
//! The body is pulled: the next events are worked out when the connection has room for them, so that a client who reads
//! slowly holds no more than one batch. In between it sleeps until the chain or the pool has changed.

use crate::dispatch::{self, Place};
use crate::problem::HttpError;
use crate::report::Reporter;
use crate::server::Service;
use crate::signal::Signal;
use actix_web::web::{self, Bytes};
use node_core::context::Context;
use node_core::node::EventStream;
use node_types::wire::{Event, EventsInput};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::sleep;

/// How long a stream waits when the server is busy.
const BUSY: Duration = Duration::from_secs(1);

/// Events that are worked out at once, so that a client who does not read holds little memory.
const PAGE: usize = 256;

/// What changes that a stream has to look at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StreamKind {
    /// The head of the chain.
    Chain,
    /// The pool.
    Pool,
}

impl StreamKind {
    pub(crate) fn of(input: &EventsInput) -> Self {
        match input {
            EventsInput::Logs { .. } | EventsInput::Blocks { .. } => Self::Chain,
            EventsInput::PendingTransactions { .. } => Self::Pool,
        }
    }

    fn signal(self, service: &Service) -> &Signal {
        match self {
            Self::Chain => &service.head_changes,
            Self::Pool => &service.arrivals,
        }
    }
}

/// Tells one client what happens.
pub(crate) struct Teller {
    service: web::Data<Service>,
    stream: EventStream,
    reporter: Reporter,
    changed: watch::Receiver<()>,
    closing: watch::Receiver<bool>,
    state: State,
    /// One of the streams that there may be.
    _permit: OwnedSemaphorePermit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There may be something to tell.
    Behind,
    /// All was told that had happened at the last change.
    Idle,
    /// Nothing comes any more.
    Ended,
}

impl Teller {
    /// Goes on with `stream` until the client, the server, or an error ends it.
    pub(crate) fn new(
        service: web::Data<Service>,
        kind: StreamKind,
        stream: EventStream,
        reporter: Reporter,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let changed = kind.signal(&service).listen();
        let closing = service.closing.subscribe();
        Self { service, stream, reporter, changed, closing, state: State::Behind, _permit: permit }
    }

    /// The next piece of text, with who tells what follows; none at the end.
    pub(crate) async fn next(mut self) -> Option<(Bytes, Self)> {
        if self.state == State::Ended {
            return None;
        }
        let mut closing = self.closing.clone();
        let text = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => None,
            text = self.tell() => Some(text),
        };
        text.map(|text| (text.into(), self))
    }

    async fn tell(&mut self) -> Vec<u8> {
        loop {
            if self.state == State::Idle {
                tokio::select! {
                    biased;
                    _ = self.changed.changed() => self.state = State::Behind,
                    () = sleep(self.service.config.stream_keep_alive) => return b": keep-alive\n\n".to_vec(),
                }
            }
            match self.batch().await {
                Ok(text) if text.is_empty() => self.state = State::Idle,
                Ok(text) => return text,
                // Those who wait for an answer come first.
                Err(HttpError::Overloaded) => sleep(BUSY).await,
                Err(error) => {
                    self.state = State::Ended;
                    let (_, problem) = self.reporter.problem(&error);
                    return [&b"event: problem\ndata: "[..], &problem, b"\n\n"].concat();
                }
            }
        }
    }

    /// The next events as text; empty when nothing has happened.
    async fn batch(&mut self) -> Result<Vec<u8>, HttpError> {
        // What changes from here on is looked at again.
        self.changed.borrow_and_update();
        let service = self.service.clone();
        let work = move |context: &Context, stream| {
            let (events, stream) = service.node.next_events(context, stream, PAGE)?;
            Ok((write(&events)?, stream))
        };
        let (context, stream) = (self.service.context(), self.stream.clone());
        let (text, stream) = dispatch::run(&self.service.pools, Place::HereBriefly, context, stream, work).await?;
        self.stream = stream;
        Ok(text)
    }
}

/// Events as they are sent.
fn write(events: &[Event]) -> Result<Vec<u8>, HttpError> {
    let mut text = Vec::new();
    for Event { id, data } in events {
        if let Some(id) = id {
            text.extend_from_slice(format!("id: {id}\n").as_bytes());
        }
        if let Some(data) = data {
            text.extend_from_slice(format!("event: {}\ndata: ", data.name()).as_bytes());
            // JSON without line breaks, which would end the field.
            serde_json::to_writer(&mut text, data).map_err(HttpError::Encode)?;
            text.push(b'\n');
        }
        text.push(b'\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::H256;
    use node_types::wire::{Data, EventData, EventId};

    #[test]
    fn events_are_written_line_by_line() {
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
            assert_eq!(String::from_utf8(write(&events).unwrap()).unwrap(), expected);
        }
    }
}
