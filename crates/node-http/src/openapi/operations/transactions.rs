//! Transactions and their receipts.

use super::Operation;
use crate::openapi::operation::Link;
use crate::problem_page::ProblemPage::{ExecutionFailed, LimitExceeded, TransactionRejected};
use node_types::wire::schema::TextParameter::{BlockNumberOrTag, Hash, Number};

const HASH: &str = "Hash of the transaction.";
const INDEX: &str = "Position of the transaction in the block, from 0.";

/// What can be asked about a transaction that was sent.
pub(super) const SENT: &[Link] = &[
    ("getTransactionByHash", "Hash", "TransactionHash"),
    ("getTransactionReceipt", "Hash", "TransactionHash"),
    ("getRawTransaction", "Hash", "TransactionHash"),
    ("getTransactionStatus", "Hash", "TransactionHash"),
];

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation::post(
            "sendRawTransaction",
            "/sendRawTransaction/",
            "Send a signed transaction",
            "Takes a signed transaction of type 0 to 4 (EIP-2718), of type 3 with its sidecar. 200 means that it is in the pool or in a \
             block and, with a data folder, on the disk. The same bytes again are answered with the same hash. A refusal lists every \
             reason.",
        )
        .limits("20,480 transactions (`pool-transactions`) with 256 MiB (`pool-bytes`) in the pool.")
        .problems(&[TransactionRejected])
        .links(SENT),
        Operation::get(
            "getTransactionByHash",
            "/getTransactionByHash/{Hash}/",
            "Read a transaction by hash",
            "A transaction of the chain or of the pool; null when there is none.",
        )
        .path("Hash", Hash, HASH),
        Operation::get(
            "getTransactionByBlockHashAndIndex",
            "/getTransactionByBlockHashAndIndex/{Hash}/{Index}/",
            "Read a transaction by block hash and position",
            "A transaction of a block of the canonical chain; null when there is none.",
        )
        .path("Hash", Hash, "Hash of the block.")
        .path("Index", Number, INDEX),
        Operation::get(
            "getTransactionByBlockNumberAndIndex",
            "/getTransactionByBlockNumberAndIndex/{BlockNumber}/{Index}/",
            "Read a transaction by block number and position",
            "A transaction of the chain or of the pending block; null when there is none.",
        )
        .path("BlockNumber", BlockNumberOrTag, "A number, decimal or `0x` hex, or the name of a block.")
        .path("Index", Number, INDEX)
        .problems(&[ExecutionFailed, LimitExceeded]),
        Operation::get(
            "getTransactionReceipt",
            "/getTransactionReceipt/{Hash}/",
            "Read a receipt",
            "What a mined transaction did; null when no such transaction was mined.",
        )
        .path("Hash", Hash, HASH),
        Operation::get(
            "getRawTransaction",
            "/getRawTransaction/{Hash}/",
            "Read the bytes of a transaction",
            "The encoded, signed transaction (EIP-2718) of the chain or of the pool; null when there is none.",
        )
        .path("Hash", Hash, HASH),
        Operation::get(
            "getTransactionStatus",
            "/getTransactionStatus/{Hash}/",
            "Read where a transaction is",
            "Whether a transaction was mined, waits in the pool, was dropped and why, or is unknown.",
        )
        .path("Hash", Hash, HASH),
    ]
}
