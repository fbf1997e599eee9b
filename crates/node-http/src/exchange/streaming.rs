//! Response bodies that are sent piece by piece.

use actix_web::body::{BodySize, BodyStream, BoxBody, MessageBody};
use actix_web::web::Bytes;
use futures_util::{StreamExt, stream};
use std::convert::Infallible;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Maximum length of a piece in bytes. actix copies each piece into a buffer of the connection.
const PIECE: usize = 16 * 1024;

/// Returns the body `bytes`, which is not copied as a whole if a client does not read.
pub(crate) fn body(bytes: Bytes) -> BoxBody {
    if bytes.len() <= PIECE { BoxBody::new(bytes) } else { BoxBody::new(Pieces(bytes)) }
}

/// The rest of a body of known length.
pub(crate) struct Pieces(pub(crate) Bytes);

impl MessageBody for Pieces {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.0.len() as u64)
    }

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        Poll::Ready(next_piece(&mut self.0).map(Ok))
    }
}

/// Takes the next piece of `rest`, or returns `None` if it is empty.
fn next_piece(rest: &mut Bytes) -> Option<Bytes> {
    match rest.len() {
        0 => None,
        // After the last piece, nothing must own all of the bytes.
        1..=PIECE => Some(mem::take(rest)),
        _ => Some(rest.split_to(PIECE)),
    }
}

/// Returns a body of unknown length. `next` returns the next part together with the state that produces the following
/// ones, or `None` at the end. It is called when the connection can accept more, so a client that does not read costs
/// only the memory of one part.
pub(crate) fn streaming_body<S, F>(source: S, next: impl FnMut(S) -> F + 'static) -> BoxBody
where
    S: 'static,
    F: Future<Output = Option<(Bytes, S)>> + 'static,
{
    let parts = stream::unfold(source, next);
    let pieces = parts.flat_map(|mut part| stream::iter(std::iter::from_fn(move || next_piece(&mut part))));
    BoxBody::new(BodyStream::new(pieces.map(Ok::<_, Infallible>)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_short_and_complete() {
        for length in [0, 1, PIECE, PIECE + 1, 3 * PIECE] {
            let whole: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut rest = Bytes::from(whole.clone());
            let pieces: Vec<_> = std::iter::from_fn(|| next_piece(&mut rest)).collect();
            assert!(pieces.iter().all(|piece| (1..=PIECE).contains(&piece.len())), "{length}");
            assert_eq!(pieces.concat(), whole);
        }
    }
}
