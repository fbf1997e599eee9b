//! The routes: all operations, JSON-RPC, and the pages for people.
//!
//! An operation is declared in the file of its family, in one row. `ARCHITECTURE.md` explains how to add one.

mod blocks;
mod calls;
mod chain;
mod development;
mod documents;
mod endpoint;
mod events;
mod fallback;
mod filters;
mod health;
mod logs;
pub(crate) mod operation;
mod pages;
pub(crate) mod spelling;
mod state;
#[cfg(test)]
mod tests;
mod transactions;

use crate::admission::Access;
use crate::{rpc, websocket};
use actix_web::{HttpRequest, web};
use endpoint::{Endpoint, Methods, Routes};
use node_types::wire::schema::{Documents, Form};
use operation::{Content, Operation};
use serde_json::Value;
use std::collections::BTreeMap;

/// Groups of operations, in the order of the documentation.
pub(crate) const TAGS: [(&str, &str); 8] = [
    ("State", "Accounts, storage and proofs, as of any block whose state is stored."),
    ("Calls", "Executing code without a transaction."),
    ("Blocks", "Blocks and their contents."),
    ("Transactions", "Signed transactions and their receipts."),
    ("Logs", "Logs, filters for polling, and event streams."),
    ("Chain", "The head, fees, and this server."),
    (
        DEVELOPMENT,
        "Control of a chain that this node produces. By default only from the same machine; a token with the role `control`, `control-listen` or `force-control` allows other clients.",
    ),
    ("Server", "Health checks, and the documents that responses refer to."),
];

/// The group of the operations that control a chain.
pub(crate) const DEVELOPMENT: &str = "Development";

pub(crate) fn operations() -> Vec<Operation> {
    let families = [
        ("State", state::operations()),
        ("Calls", calls::operations()),
        ("Blocks", blocks::operations()),
        ("Transactions", transactions::operations()),
        ("Logs", logs::operations()),
        ("Logs", filters::operations()),
        ("Logs", events::operations()),
        ("Chain", chain::operations()),
        (DEVELOPMENT, development::operations()),
        ("Server", health::operations()),
    ];
    let tagged =
        |(tag, family): (&'static str, Vec<Operation>)| family.into_iter().map(move |operation| operation.tagged(tag));
    let mut operations: Vec<_> = families.into_iter().flat_map(tagged).collect();
    let documents = documents::operations(schemas(&operations, Form::Request).into_keys());
    operations.extend(documents.into_iter().map(|operation| operation.tagged("Server")));
    operations
}

/// Returns the JSON Schema documents of `operations` and of the types that they share, by name. Requests are
/// described in the form `requests`.
pub(crate) fn schemas(operations: &[Operation], requests: Form) -> BTreeMap<String, Value> {
    let mut documents = Documents::shared(requests);
    for operation in operations {
        if let Some(body) = &operation.body {
            (body.document)(&mut documents, &format!("Input_{}", operation.name()));
        }
        if let Content::Output(document) = operation.content {
            document(&mut documents, &format!("Output_{}", operation.name()));
        }
    }
    documents.into_map()
}

/// Registers all routes under the path `base`. Operations that control a chain are included only if `producing` is
/// set.
pub(crate) fn configure(app: &mut web::ServiceConfig, base: &str, producing: bool) {
    let mut routes = Routes { app, base };
    register_messages(&mut routes);
    let mut paths = BTreeMap::<_, Vec<_>>::new();
    for operation in operations().into_iter().filter(|operation| producing || !operation.controls()) {
        for path in operation.paths() {
            paths.entry(path).or_default().extend(Endpoint::of(&operation));
        }
    }
    let (mut fixed, mut with_parameters) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
    for (path, endpoints) in paths {
        match path.find("/{") {
            Some(at) => with_parameters.entry(&path[..at]).or_default().push((&path[at..], endpoints)),
            None => fixed.push((path, endpoints)),
        }
    }
    // actix-web compares paths one after the other, using regular expressions for those with parameters. Therefore
    // fixed paths come first, and a regular expression is used only for the part after the name of its operation.
    fixed.sort_by_key(|(_, endpoints)| endpoints[0].methods);
    for (path, endpoints) in fixed {
        // The health checks are also served with a trailing slash.
        if !path.ends_with('/') && !path.contains('.') {
            routes.serve(&[path, "/"].concat(), endpoints.clone());
        }
        routes.serve(path, endpoints);
    }
    for (name, paths) in with_parameters {
        routes.serve_below(name, paths);
    }
    pages::register(&mut routes);
    routes.app.default_service(web::to(|request: HttpRequest, payload: web::Payload| {
        fallback::refuse(request, payload, None)
    }));
}

/// Registers JSON-RPC: by POST to `/`, which is also the home page, and to `/rpc`; over WebSocket at `/ws` and `/`.
fn register_messages(routes: &mut Routes<'_>) {
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
