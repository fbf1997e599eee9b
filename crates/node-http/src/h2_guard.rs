//! Limits and graceful shutdown of an HTTP/2 connection.
//!
//! The h2 crate buffers header blocks of up to 16 MiB, accepts any number of streams, and can shut down a connection
//! gracefully, but actix-http exposes none of its settings for this. Therefore this module follows the frames as they
//! pass:
//!
//! * a header block above the limit, or too many streams, end the connection; both limits are announced in the
//!   SETTINGS frame;
//! * while the server is draining, the client is sent GOAWAY, and when the server closes, the connection ends after
//!   its streams have (RFC 9113, section 6.8).

use crate::clients::{Client, Exhausted, Limit, Permit};
use crate::h2_frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, FRAME_HEADER, Frame, Frames, GOAWAY, HEADERS, RST_STREAM, SETTINGS,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Length of the connection preface, which precedes the client's first frame, in bytes.
const PREFACE: usize = 24;

/// Maximum number of open streams of a connection. nginx allows 128, Go 250.
const MAX_STREAMS: u32 = 256;

/// Number of open streams of a connection that are always allowed. Each takes about 9 KB until its response was read, so
/// all further ones count towards the limit of all connections.
const FREE_STREAMS: usize = 4;

/// Identifiers of settings (RFC 9113, section 6.5.2).
const MAX_CONCURRENT_STREAMS: u16 = 3;
const MAX_HEADER_LIST_SIZE: u16 = 6;

/// The highest stream identifier. In GOAWAY it means that further streams will still be processed.
const LAST_STREAM: u32 = 0x7fff_ffff;

/// Follows the frames of a connection.
#[derive(Debug)]
pub(crate) struct Guard {
    header_limit: usize,
    incoming: Frames,
    outgoing: Frames,
    /// Number of bytes received of the header block that is unfinished, if there is one.
    block: Option<usize>,
    /// Whether the newest frame from the client is part of a header block.
    is_receiving_headers: bool,
    /// Whether an unfinished header block is being sent. No other frame may come between its frames.
    is_sending_headers: bool,
    /// Whether the SETTINGS frame, which is the first, was sent.
    is_open: bool,
    /// The streams that the client has opened and neither side has ended, with a permit for all but the first few.
    streams: HashMap<u32, Option<Permit>>,
    /// The open streams of all connections.
    all_streams: Arc<Limit>,
    client: Arc<Client>,
    /// The newest stream of the client.
    newest: u32,
    farewell: Farewell,
}

/// Which GOAWAY frame the client was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Farewell {
    None,
    /// The announcement that it should open no more streams.
    Announced,
    /// The final one, after which the connection ends.
    Final,
}

/// A client exceeded a limit of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Excess {
    #[error("the headers are too long")]
    Headers,
    #[error("too many streams are open")]
    Streams,
}

impl From<Exhausted> for Excess {
    fn from(_: Exhausted) -> Self {
        Self::Streams
    }
}

impl Guard {
    /// Creates a guard that accepts header blocks of up to `header_limit` bytes, measured as sent (compressed with
    /// HPACK). `all_streams` counts the open streams of all connections, and those of `client`.
    pub(crate) fn new(header_limit: usize, all_streams: Arc<Limit>, client: Arc<Client>) -> Self {
        Self {
            header_limit,
            incoming: Frames::after(PREFACE),
            outgoing: Frames::default(),
            block: None,
            is_receiving_headers: false,
            is_sending_headers: false,
            is_open: false,
            streams: HashMap::new(),
            all_streams,
            client,
            newest: 0,
            farewell: Farewell::None,
        }
    }

    /// Processes the next `bytes` from the client.
    ///
    /// # Errors
    /// If a limit is exceeded, so that the connection must be closed.
    pub(crate) fn received(&mut self, mut bytes: &[u8]) -> Result<(), Excess> {
        while let Some(frame) = self.incoming.next(&mut bytes) {
            self.is_receiving_headers = matches!(frame.kind, HEADERS | CONTINUATION);
            match frame.kind {
                HEADERS | CONTINUATION => self.receive_headers(frame)?,
                RST_STREAM => drop(self.streams.remove(&frame.stream)),
                _ => {}
            }
        }
        Ok(())
    }

    fn receive_headers(&mut self, Frame { length, kind, flags, stream }: Frame) -> Result<(), Excess> {
        let before = self.block.filter(|_| kind == CONTINUATION).unwrap_or_default();
        let block = before.saturating_add(length);
        if block > self.header_limit {
            return Err(Excess::Headers);
        }
        self.block = (flags & END_HEADERS == 0).then_some(block);
        // Trailers belong to an older stream.
        if stream > self.newest {
            self.newest = stream;
            let permit = match self.streams.len() {
                open if open < FREE_STREAMS => None,
                open if open < MAX_STREAMS as usize => Some(self.all_streams.take(&self.client, 1)?),
                _ => return Err(Excess::Streams),
            };
            self.streams.insert(stream, permit);
        }
        Ok(())
    }

    /// Returns whether the client has sent a part of a header block, but not all of it.
    pub(crate) fn is_in_headers(&self) -> bool {
        self.block.is_some() || self.is_receiving_headers && !self.incoming.is_between_frames()
    }

    /// Processes the next `bytes` sent to the client.
    pub(crate) fn sent(&mut self, mut bytes: &[u8]) {
        while let Some(Frame { kind, flags, stream, .. }) = self.outgoing.next(&mut bytes) {
            if matches!(kind, HEADERS | CONTINUATION) {
                self.is_sending_headers = flags & END_HEADERS == 0;
            }
            if kind == RST_STREAM || (matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0) {
                self.streams.remove(&stream);
            }
        }
    }

    /// If `bytes`, which are about to be sent, begin with the first SETTINGS frame, returns that frame with the limits
    /// added, and the length of the frame that it replaces.
    pub(crate) fn settings(&mut self, bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
        if std::mem::replace(&mut self.is_open, true) {
            return None;
        }
        let frame = Frame::decode(*bytes.first_chunk()?);
        let end = FRAME_HEADER + frame.length;
        let payload = bytes.get(FRAME_HEADER..end).filter(|_| frame.kind == SETTINGS)?;
        let header_limit = u32::try_from(self.header_limit).unwrap_or(u32::MAX);
        let mut added = Vec::new();
        for (name, value) in [(MAX_CONCURRENT_STREAMS, MAX_STREAMS), (MAX_HEADER_LIST_SIZE, header_limit)] {
            added.extend(name.to_be_bytes());
            added.extend(value.to_be_bytes());
        }
        let header = Frame { length: frame.length + added.len(), ..frame }.encode();
        Some(([&header[..], payload, &added].concat(), end))
    }

    /// Returns the bytes to send to the client because the server is shutting down; empty if there are none, or if
    /// they cannot be sent yet. With `is_last`, they end the connection.
    pub(crate) fn farewell(&mut self, is_last: bool) -> Vec<u8> {
        if !self.is_open || self.is_sending_headers || !self.outgoing.is_between_frames() {
            return Vec::new();
        }
        let mut frames = Vec::new();
        if self.farewell == Farewell::None {
            self.farewell = Farewell::Announced;
            frames.extend(go_away(LAST_STREAM));
        }
        if is_last && self.farewell == Farewell::Announced && self.streams.is_empty() {
            self.farewell = Farewell::Final;
            frames.extend(go_away(self.newest));
        }
        frames
    }

    /// Returns whether the client was sent everything, so that the connection can be closed.
    pub(crate) fn has_ended(&self) -> bool {
        self.farewell == Farewell::Final
    }

    /// Returns whether no stream is open, so that the connection can be closed as soon as [`farewell`](Self::farewell)
    /// was sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }
}

/// Returns a GOAWAY frame without an error. Streams after `last` were not processed.
fn go_away(last: u32) -> Vec<u8> {
    let header = Frame { length: 8, kind: GOAWAY, flags: 0, stream: 0 }.encode();
    [&header[..], &last.to_be_bytes(), &[0; 4]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{Clients, Resource};
    use std::net::Ipv4Addr;

    /// Type, flags, length, stream.
    type Case = (u8, u8, usize, u32);

    fn bytes(frames: &[Case]) -> Vec<u8> {
        let frame = |&(kind, flags, length, stream): &Case| {
            [&Frame { length, kind, flags, stream }.encode()[..], &vec![7; length]].concat()
        };
        frames.iter().flat_map(frame).collect()
    }

    fn guard(all_streams: usize) -> Guard {
        let client = Clients::default().at(Ipv4Addr::LOCALHOST.into());
        Guard::new(100, Limit::new(Resource::Http2Streams, all_streams), client)
    }

    /// Returns a guard that has received `frames` in pieces of `size` bytes.
    fn receive(frames: &[Case], size: usize) -> Result<Guard, Excess> {
        let mut guard = guard(usize::MAX);
        let bytes = [vec![b'P'; PREFACE], bytes(frames)].concat();
        bytes.chunks(size).try_for_each(|piece| guard.received(piece))?;
        Ok(guard)
    }

    #[test]
    fn rejects_header_blocks_above_the_limit_however_they_are_split() {
        let cases: [(&[Case], bool); 7] = [
            (&[], true),
            (&[(HEADERS, END_HEADERS, 100, 1), (HEADERS, END_HEADERS, 100, 1)], true),
            (&[(HEADERS, END_HEADERS, 101, 1)], false),
            (&[(HEADERS, 0, 60, 1), (CONTINUATION, 0, 40, 1)], true),
            (&[(HEADERS, 0, 60, 1), (CONTINUATION, END_HEADERS, 41, 1)], false),
            (&[(DATA, 0, 5_000, 1), (SETTINGS, 0, 6, 0), (HEADERS, END_HEADERS, 1, 1)], true),
            (&[(HEADERS, 0, 90, 1), (CONTINUATION, END_HEADERS, 10, 1), (HEADERS, 0, 90, 1)], true),
        ];
        for (frames, expected) in cases {
            for size in [1, 7, 9, 64, 10_000] {
                assert_eq!(receive(frames, size).is_ok(), expected, "{frames:?} by {size}");
            }
        }
    }

    #[test]
    fn a_header_block_ends_with_its_last_byte() {
        let block = bytes(&[(HEADERS, 0, 0, 1), (CONTINUATION, 0, 5, 1), (CONTINUATION, END_HEADERS, 5, 1)]);
        let mut guard = receive(&[(SETTINGS, 0, 6, 0)], 100).unwrap();
        for (index, byte) in block.iter().enumerate() {
            let begun = index >= FRAME_HEADER;
            assert_eq!(guard.is_in_headers(), begun, "before byte {index}");
            guard.received(&[*byte]).unwrap();
        }
        assert!(!guard.is_in_headers());
        guard.received(&bytes(&[(DATA, 0, 9, 1)])[..12]).unwrap();
        assert!(!guard.is_in_headers());
    }

    #[test]
    fn rejects_more_open_streams_than_the_limit() {
        let open: Vec<Case> = (0..=MAX_STREAMS).map(|index| (HEADERS, END_HEADERS, 1, 2 * index + 1)).collect();
        assert_eq!(receive(&open, 1_000).unwrap_err(), Excess::Streams);
        let mut guard = receive(&open[1..], 1_000).unwrap();
        guard.sent(&bytes(&[(HEADERS, END_HEADERS, 5, 3), (DATA, END_STREAM, 5, 3)]));
        guard
            .received(&bytes(&[
                (HEADERS, END_HEADERS, 1, 1_001),
                (RST_STREAM, 0, 4, 5),
                (HEADERS, END_HEADERS, 1, 1_003),
            ]))
            .unwrap();
        assert_eq!(guard.received(&bytes(&[(HEADERS, END_HEADERS, 1, 1_005)])), Err(Excess::Streams));
    }

    #[test]
    fn connections_share_a_number_of_streams() {
        let open = |guard: &mut Guard| {
            let frames = (0..).map(|index| bytes(&[(HEADERS, END_HEADERS, 1, 2 * index + 1)]));
            guard.incoming = Frames::default();
            frames.take_while(|frame| guard.received(frame).is_ok()).count()
        };
        let (mut first, mut second) = (guard(100), guard(0));
        // The client leaves half to others.
        assert_eq!((open(&mut first), open(&mut second)), (FREE_STREAMS + 50, FREE_STREAMS));
        assert_eq!(first.all_streams.taken(), 50);
        let ends: Vec<Case> = (0..100).map(|index| (RST_STREAM, 0, 4, 2 * index + 1)).collect();
        first.sent(&bytes(&ends));
        assert_eq!(first.all_streams.taken(), 0);
    }

    #[test]
    fn the_first_settings_announce_the_limits() {
        let mut followed = guard(usize::MAX);
        let first = bytes(&[(SETTINGS, 0, 6, 0), (DATA, 0, 2, 1)]);
        let (patched, replaced) = followed.settings(&first).unwrap();
        assert_eq!(replaced, FRAME_HEADER + 6);
        let expected =
            [&[0, 0, 18, SETTINGS, 0, 0, 0, 0, 0][..], &[7; 6], &[0, 3, 0, 0, 1, 0], &[0, 6, 0, 0, 0, 100]].concat();
        assert_eq!(patched, expected);
        assert_eq!(followed.settings(&first), None);
        assert_eq!(guard(usize::MAX).settings(&bytes(&[(DATA, 0, 2, 1)])), None);
    }

    #[test]
    fn the_end_is_announced_between_frames_and_final_without_streams() {
        let mut guard = receive(&[(HEADERS, END_HEADERS, 1, 7)], 100).unwrap();
        assert_eq!(guard.farewell(true), b"", "the settings come first");
        let settings = bytes(&[(SETTINGS, 0, 0, 0)]);
        guard.settings(&settings);
        guard.sent(&settings);
        let response = bytes(&[(HEADERS, 0, 5, 7), (CONTINUATION, END_HEADERS, 3, 7), (DATA, END_STREAM, 9, 7)]);
        for byte in &response[..14 + 11] {
            guard.sent(&[*byte]);
            assert_eq!(guard.farewell(true), b"", "headers are being sent");
        }
        guard.sent(&response[25..26]);
        assert_eq!(guard.farewell(true), go_away(LAST_STREAM));
        assert!(!guard.is_idle() && !guard.has_ended());
        guard.sent(&response[26..]);
        assert!(guard.is_idle());
        assert_eq!(guard.farewell(false), b"", "the client may still send requests");
        assert_eq!(guard.farewell(true), go_away(7));
        assert!(guard.has_ended());
        assert_eq!(guard.farewell(true), b"");
    }
}
