//! Response bodies that are produced as the client reads them.

use actix_web::body::{BodyStream, BoxBody};
use actix_web::web::Bytes;
use futures_util::{StreamExt, stream};
use std::convert::Infallible;

/// A body of unknown length. `next` returns the next piece together with the state that produces the following ones, or
/// `None` at the end. It is called when the connection can take more, so a client that does not read costs the memory of
/// one piece.
pub(crate) fn streaming_body<S, F>(source: S, next: impl FnMut(S) -> F + 'static) -> BoxBody
where
    S: 'static,
    F: Future<Output = Option<(Bytes, S)>> + 'static,
{
    BoxBody::new(BodyStream::new(stream::unfold(source, next).map(Ok::<_, Infallible>)))
}
