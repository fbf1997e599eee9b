//! Messages from the client.

use crate::admission::clients::{Exhausted, Permit};
use crate::exchange::transfer::SHORT;
use actix_http::ws::{CloseReason, Codec, Frame, Item, ProtocolError};
use actix_web::dev::Payload;
use actix_web::web::{Bytes, BytesMut};
use futures_util::StreamExt;
use std::mem;
use tokio_util::codec::Decoder;

/// The receiving direction of a connection.
pub(super) struct Incoming {
    payload: Payload,
    /// Counts the bytes of a long message that has not been received completely.
    permit: Permit,
    /// Received bytes that are not a complete frame yet.
    buffer: BytesMut,
    codec: Codec,
    /// The beginning of a message that arrives in several frames.
    fragments: BytesMut,
    /// Whether that message is text.
    is_text: bool,
    /// Maximum number of bytes of a message.
    limit: usize,
}

/// What the client has sent.
pub(super) enum Received {
    /// A whole message.
    Message(Bytes),
    /// A part of a message or frame.
    Part,
    Ping(Bytes),
    Pong,
    Close(Option<CloseReason>),
    /// Nothing more can be received.
    Ended(Ended),
}

/// Why nothing more can be received.
pub(super) enum Ended {
    Disconnected,
    /// A message exceeds the limit.
    TooLong,
    /// A text message is not UTF-8.
    NotUtf8,
    /// A frame is invalid.
    Invalid(ProtocolError),
    /// There is not enough memory for the rest of a message.
    Exhausted(Exhausted),
}

impl Incoming {
    /// `permit` must not count anything yet.
    pub(super) fn new(payload: Payload, permit: Permit, limit: usize) -> Self {
        let codec = Codec::new().max_size(limit);
        Self { payload, permit, buffer: BytesMut::new(), codec, fragments: BytesMut::new(), is_text: false, limit }
    }

    /// Waits for bytes from the client, unless the buffer has a frame. If the future is dropped, nothing is lost.
    pub(super) async fn next(&mut self) -> Received {
        if let Some(frame) = decode(&mut self.codec, &mut self.buffer, self.limit) {
            return self.receive(frame).unwrap_or_else(Received::Ended);
        }
        let Some(Ok(piece)) = self.payload.next().await else { return Received::Ended(Ended::Disconnected) };
        self.buffer.extend_from_slice(&piece);
        let received = match decode(&mut self.codec, &mut self.buffer, self.limit) {
            Some(frame) => self.receive(frame),
            None => self.count().map(|()| Received::Part),
        };
        received.unwrap_or_else(Received::Ended)
    }

    fn receive(&mut self, frame: Result<Frame, ProtocolError>) -> Result<Received, Ended> {
        match frame {
            Ok(Frame::Text(message)) => return self.complete(message, true),
            Ok(Frame::Binary(message)) => return self.complete(message, false),
            Ok(Frame::Continuation(Item::FirstText(piece))) => self.begin(&piece, true)?,
            Ok(Frame::Continuation(Item::FirstBinary(piece))) => self.begin(&piece, false)?,
            Ok(Frame::Continuation(Item::Continue(piece))) => self.collect(&piece)?,
            Ok(Frame::Continuation(Item::Last(piece))) => {
                self.collect(&piece)?;
                let message = mem::take(&mut self.fragments).freeze();
                return self.complete(message, self.is_text);
            }
            Ok(Frame::Ping(bytes)) => return Ok(Received::Ping(bytes)),
            Ok(Frame::Pong(_)) => return Ok(Received::Pong),
            Ok(Frame::Close(reason)) => return Ok(Received::Close(reason)),
            Err(ProtocolError::Overflow) => return Err(Ended::TooLong),
            Err(error) => return Err(Ended::Invalid(error)),
        }
        Ok(Received::Part)
    }

    /// Starts a message with its first fragment.
    fn begin(&mut self, piece: &[u8], is_text: bool) -> Result<(), Ended> {
        self.fragments = BytesMut::new();
        self.is_text = is_text;
        self.collect(piece)
    }

    /// Adds a fragment to the message.
    fn collect(&mut self, piece: &[u8]) -> Result<(), Ended> {
        if piece.len() > self.limit - self.fragments.len() {
            return Err(Ended::TooLong);
        }
        self.fragments.extend_from_slice(piece);
        self.count()
    }

    /// Counts the bytes received of an incomplete message, if it is long.
    fn count(&mut self) -> Result<(), Ended> {
        let length = self.buffer.len() + self.fragments.len();
        let more = if length > SHORT { length.saturating_sub(self.permit.amount()) } else { 0 };
        self.permit.grow(more).map_err(Ended::Exhausted)
    }

    fn complete(&mut self, message: Bytes, is_text: bool) -> Result<Received, Ended> {
        if is_text && std::str::from_utf8(&message).is_err() {
            return Err(Ended::NotUtf8);
        }
        self.permit.give_back(self.permit.amount());
        if self.buffer.is_empty() {
            // A long message has made the buffer large.
            self.buffer = BytesMut::new();
        }
        Ok(Received::Message(message))
    }
}

/// Returns the next frame of `buffer`, or `None` if it is incomplete. A frame that declares more than `limit` bytes
/// is refused at once, whereas the codec would wait until it is complete.
fn decode(codec: &mut Codec, buffer: &mut BytesMut, limit: usize) -> Option<Result<Frame, ProtocolError>> {
    if payload_length(buffer).is_some_and(|length| length > limit as u64) {
        return Some(Err(ProtocolError::Overflow));
    }
    codec.decode(buffer).transpose()
}

/// Returns the payload length of the first frame in bytes, or `None` if its header is incomplete (RFC 6455, section
/// 5.2).
pub(super) fn payload_length(buffer: &[u8]) -> Option<u64> {
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
