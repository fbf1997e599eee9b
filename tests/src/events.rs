//! A client for Server-Sent Events.

use serde_json::Value;
use std::io::{BufRead, BufReader, Lines};
use std::time::Duration;
use ureq::{Agent, BodyReader};

/// An open event stream. Reads time out after one minute.
pub struct Events {
    lines: Lines<BufReader<BodyReader<'static>>>,
    /// Response headers, with names in lower case.
    pub headers: Vec<(String, String)>,
}

/// A received event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// Its type; empty if it has no data.
    pub name: String,
    /// Its id, if present.
    pub id: Option<String>,
    /// Its data; null if it has none.
    pub data: Value,
}

impl Events {
    /// Opens the stream at `url`, after the event `last` if given.
    ///
    /// # Panics
    /// If the server refuses it.
    pub fn listen(url: &str, last: Option<&str>) -> Self {
        Self::try_listen(url, last).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    /// Like [`listen`](Self::listen), but returns the response if the server refuses the stream.
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

    /// Returns the next event, or `None` at the end of the stream. Skips comments.
    ///
    /// # Panics
    /// If a line is malformed.
    pub fn next_event(&mut self) -> Option<Event> {
        let mut event = Event::default();
        loop {
            // A broken connection counts as the end.
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

    /// Returns the next line, including comments, or `None` at the end.
    pub fn next_line(&mut self) -> Option<String> {
        self.lines.next()?.ok()
    }

    /// Returns the next events up to and including the one with the id `last`.
    ///
    /// # Panics
    /// If the stream ends earlier.
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

/// Returns the data of the events that have data.
pub fn data(events: &[Event]) -> Vec<Value> {
    events.iter().filter(|event| !event.name.is_empty()).map(|event| event.data.clone()).collect()
}
