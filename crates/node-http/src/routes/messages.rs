//! JSON-RPC: by POST to `/`, which is also the home page, and to `/rpc`; over WebSocket at `/ws` and `/`.

use super::endpoint::{Endpoint, Methods, Routes};
use super::pages;
use crate::admission::Access;
use crate::{rpc, websocket};

pub(super) fn register(routes: &mut Routes<'_>) {
    // The operation is known once the message is decoded.
    let post = || Endpoint::new("rpc", Methods::Post, Access::Guarded, rpc::post);
    // Clients of other development nodes expect WebSocket at the root.
    let upgrade = Endpoint::new("ws", Methods::Upgrade, Access::Guarded, websocket::upgrade);
    routes.serve("/", vec![upgrade.clone(), Endpoint::new("home", Methods::Get, Access::Open, pages::home), post()]);
    // The base path, or the path of a scope, without the trailing slash.
    routes.serve("", vec![upgrade, Endpoint::new("home", Methods::Get, Access::Open, pages::add_slash), post()]);
    for path in ["/rpc", "/rpc/"] {
        routes.serve(path, vec![post()]);
    }
    for path in ["/ws", "/ws/"] {
        routes.serve(path, vec![Endpoint::new("ws", Methods::GetOnly, Access::Guarded, websocket::upgrade)]);
    }
}
