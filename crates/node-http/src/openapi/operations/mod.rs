//! The tables of operations, one file a tag. How to add one: `ARCHITECTURE.md`.

mod blocks;
mod calls;
mod chain;
mod development;
mod filters;
mod server;
mod state;
mod transactions;

use super::operation::Operation;

/// The operations that control a chain.
pub(super) const DEVELOPMENT: &str = "Development";

/// Groups of operations, in the order of the documentation.
pub(super) const TAGS: [(&str, &str); 8] = [
    ("State", "Accounts, storage and proofs, as of any block whose state is kept."),
    ("Calls", "Code that is run without a transaction."),
    ("Blocks", "Blocks and what they hold."),
    ("Transactions", "Signed transactions and their receipts."),
    ("Logs", "Logs, filters that are polled, and streams of events."),
    ("Chain", "The head, fees, and what is served."),
    (DEVELOPMENT, "Control of a chain that the node produces itself. Only there, and only from the same machine."),
    ("Server", "Whether the server lives, and the documents that answers point to."),
];

/// Every operation.
pub(super) fn all() -> Vec<Operation> {
    let groups = [
        ("State", state::all()),
        ("Calls", calls::all()),
        ("Blocks", blocks::all()),
        ("Transactions", transactions::all()),
        ("Logs", filters::all()),
        ("Chain", chain::all()),
        (DEVELOPMENT, development::all()),
        ("Server", server::all()),
    ];
    groups
        .into_iter()
        .flat_map(|(tag, operations)| operations.into_iter().map(move |operation| operation.tagged(tag)))
        .collect()
}
