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
mod state;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod transactions;

use node_types::wire::schema::{Documents, Form};
use operation::{Content, Operation};
use serde_json::Value;
use std::collections::BTreeMap;

/// Groups of operations, in the order of the documentation.
pub(crate) const TAGS: [(&str, &str); 8] = [
    (
        INTERFACE,
        "The nine operations of the interface description, which it names `node_getLogs`, `node_estimateGas` and so on.",
    ),
    ("State", "Accounts, storage and proofs, as of any block whose state is stored."),
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

/// The group of the operations of the interface description.
const INTERFACE: &str = "Interface";

/// The operations of the interface description, in its order.
pub(crate) const INTERFACE_OPERATIONS: [&str; 9] = [
    "getLogs",
    "estimateGas",
    "feeHistory",
    "call",
    "getProof",
    "getStorageAt",
    "sendRawTransaction",
    "newFilter",
    "getBlockByNumber",
];

/// The group of the operations that control a chain.
pub(crate) const DEVELOPMENT: &str = "Development";

/// Returns all operations. Those that control a chain are included only if `producing` is set, that is, if the node
/// produces blocks.
pub(crate) fn operations(producing: bool) -> Vec<Operation> {
    let families = [
        ("State", state::operations()),
        (INTERFACE, calls::operations()),
        ("Blocks", blocks::operations()),
        ("Transactions", transactions::operations()),
        ("Logs", logs::operations()),
        ("Logs", filters::operations()),
        ("Logs", events::operations()),
        ("Chain", chain::operations()),
        (DEVELOPMENT, development::operations()),
        ("Server", health::operations()),
    ];
    let tagged = |(tag, family): (&'static str, Vec<Operation>)| {
        family.into_iter().map(move |operation| {
            let tag = if operation.is_described() { INTERFACE } else { tag };
            operation.tagged(tag)
        })
    };
    let operations = families.into_iter().flat_map(tagged);
    let mut operations: Vec<_> = operations.filter(|operation| producing || !operation.controls()).collect();
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
