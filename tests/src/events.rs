//! Listens to Server-Sent Events.

use serde_json::Value;
use std::io::{BufRead, BufReader, Lines};
use std::time::Duration;
use ureq::{Agent, BodyReader};

/// A client that is told of events. Nothing is waited for longer than a minute.
pub struct Events {
    lines: Lines<BufReader<BodyReader<'static>>>,
    /// Headers of the answer, with names in lower case.
    pub headers: Vec<(String, String)>,
}

/// An event as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// Its type; empty where it has no data.
    pub name: String,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Its data; null where it has none.
    pub data: Value,
}

impl Events {
    /// Listens to what is told at `url`, behind the event `last` if one is named.
    ///
    /// # Panics
    /// When nothing is told there.
    pub fn listen(url: &str, last: Option<&str>) -> Self {
        Self::try_listen(url, last).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    /// As [`listen`](Self::listen), where it may be refused.
    pub fn try_listen(url: &str, last: Option<&str>) -> Result<Self, ureq::Error> {
        let agent: Agent = Agent::config_builder().timeout_global(Some(Duration::from_secs(60))).build().new_agent();
        let mut request = agent.get(url);
        if let Some(id) = last {
            request = request.header("Last-Event-ID", id);
        }
        let (parts, body) = request.call()?.into_parts();
        let text = |value: &ureq::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        Ok(Self { lines: BufReader::new(body.into_reader()).lines(), headers })
    }

    /// The next event; none at the end. Signs of life are passed over.
    ///
    /// # Panics
    /// When a line is none of an event's.
    pub fn next_event(&mut self) -> Option<Event> {
        let mut event = Event::default();
        loop {
            // A stream that breaks off is at its end, too.
            let line = self.lines.next()?.ok()?;
            match line.split_once(": ") {
                Some(("", _)) => {}
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("data", data)) => event.data = serde_json::from_str(data).expect("data is JSON"),
                None if line.is_empty() && event != Event::default() => return Some(event),
                None if line.is_empty() => {}
                _ => panic!("unexpected line {line:?}"),
            }
        }
    }

    /// The next line, comments included; none at the end.
    pub fn next_line(&mut self) -> Option<String> {
        self.lines.next()?.ok()
    }

    /// The next events up to and including the one with the id `last`.
    ///
    /// # Panics
    /// When the stream ends before.
    pub fn up_to(&mut self, last: &str) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.next_event().unwrap_or_else(|| panic!("no event {last}, but {events:#?}"));
            let done = event.id.as_deref() == Some(last);
            events.push(event);
            if done {
                return events;
            }
        }
    }
}

/// The data of those that have some.
pub fn data(events: &[Event]) -> Vec<Value> {
    events.iter().filter(|event| !event.name.is_empty()).map(|event| event.data.clone()).collect()
}
