//! Bodies without an end that are pulled: the next piece is made when the connection has room for it, so that a client who
//! does not read holds no more than one.

use actix_web::body::{BodyStream, BoxBody};
use actix_web::web::Bytes;
use futures_util::{StreamExt, stream};
use std::convert::Infallible;

/// A body that `source` makes piece by piece: `next` gives each with what makes those behind it, and none at the end.
pub(crate) fn pulled<S, F>(source: S, next: impl FnMut(S) -> F + 'static) -> BoxBody
where
    S: 'static,
    F: Future<Output = Option<(Bytes, S)>> + 'static,
{
    BoxBody::new(BodyStream::new(stream::unfold(source, next).map(Ok::<_, Infallible>)))
}
