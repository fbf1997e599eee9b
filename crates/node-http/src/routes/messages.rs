//! JSON-RPC, beside the page at `/`, at `/rpc`, and over WebSocket.

use super::{Methods, Routes, pages};
use crate::admission::Access;
use crate::{rpc, websocket};

/// What a request is for before its message is read.
const OPERATION: &str = "rpc";

pub(super) fn all(routes: &mut Routes<'_>) {
    let base = routes.base;
    routes.page_and_post(&format!("{base}/"), ("home", pages::home), (OPERATION, rpc::post));
    if !base.is_empty() {
        routes.page_and_post(base, ("home", pages::add_slash), (OPERATION, rpc::post));
    }
    for slash in ["", "/"] {
        routes.serve(Access::Guarded, Methods::Post, OPERATION, &format!("{base}/rpc{slash}"), rpc::post);
        routes.serve(Access::Guarded, Methods::GetOnly, "ws", &format!("{base}/ws{slash}"), websocket::upgrade);
    }
}
