//! Transactions and their receipts.

use super::operation::{Link, Operation};
use crate::convert::output;
use crate::problem::page::ProblemPage::{ExecutionFailed, LimitExceeded, TransactionRejected};
use node_core::cost::Cost;
use node_core::node::{FoundTransaction, Node};
use node_types::wire::{
    self, Data, GetRawTransactionOutput, GetTransactionByBlockHashAndIndexInput,
    GetTransactionByBlockNumberAndIndexInput, GetTransactionReceiptOutput, SendRawTransactionInput,
    SendRawTransactionOutput, TransactionHashInput, TransactionOutput,
};

/// Follow-up operations on a transaction after it was sent.
pub(super) const SENT: &[Link] = &[
    ("getTransactionByHash", "Hash", "TransactionHash"),
    ("getTransactionReceipt", "Hash", "TransactionHash"),
    ("getRawTransaction", "Hash", "TransactionHash"),
    ("getTransactionStatus", "Hash", "TransactionHash"),
];

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::post(
            "/sendRawTransaction/",
            "Send a signed transaction",
            "Accepts a signed transaction of type 0 to 4 (EIP-2718); one of type 3 with its sidecar. 200 means that it is in the pool or in \
             a block and, if the node has a data folder, stored on disk. Sending the same bytes again returns the same hash. A rejection \
             lists every reason.",
        )
        .limits("20,480 transactions (`pool-transactions`) with 256 MiB (`pool-bytes`) in the pool.")
        .no_store()
        .by_writer()
        .sending()
        .problems(&[TransactionRejected])
        .links(SENT)
        .body_with_check(
            Cost::SEND,
            SendRawTransactionInput::clone,
            wire::decode_fields,
            |node, context, input| node.check_transaction(context, &input.data.0),
            |node, context, input| {
                Ok(SendRawTransactionOutput { transaction_hash: Data(node.send_transaction(context, input.data.0)?) })
            },
        ),
        Operation::get(
            "/getTransactionByHash/{Hash}/",
            "Read a transaction by hash",
            "Returns a transaction of the canonical chain or of the pool, or null if there is none.",
        )
        .parameters(instant, |node, context, input| {
            Ok(transaction(node.get_transaction(context, input.hash.0)?))
        }),
        Operation::get(
            "/getTransactionByBlockHashAndIndex/{Hash}/{Index}/",
            "Read a transaction by block hash and index",
            "Returns a transaction of a block of the canonical chain, or null if there is none.",
        )
        .parameters(
            |_, _: &GetTransactionByBlockHashAndIndexInput| Cost::Instant,
            |node, context, input| Ok(transaction(node.get_transaction_at(context, input.hash.0.into(), input.index.0)?)),
        ),
        Operation::get(
            "/getTransactionByBlockNumberAndIndex/{BlockNumber}/{Index}/",
            "Read a transaction by block number and index",
            "Returns a transaction of the canonical chain or of the pending block, or null if there is none.",
        )
        .problems(&[ExecutionFailed, LimitExceeded])
        .parameters(
            |_, input: &GetTransactionByBlockNumberAndIndexInput| Cost::of_reading(input.block_number),
            |node, context, input| {
                Ok(transaction(node.get_transaction_at(context, input.block_number.into(), input.index.0)?))
            },
        ),
        Operation::get(
            "/getTransactionReceipt/{Hash}/",
            "Read a receipt",
            "Returns the receipt of a mined transaction, or null if no transaction with this hash was mined.",
        )
        .parameters(
            instant,
            |node, context, input| {
                let found = node.get_receipt(context, input.hash.0)?;
                let transaction_receipt = found.and_then(|found| output::receipt(&found));
                Ok(GetTransactionReceiptOutput { transaction_receipt })
            },
        ),
        Operation::get(
            "/getRawTransaction/{Hash}/",
            "Read the bytes of a transaction",
            "Returns the encoded, signed transaction (EIP-2718) from the canonical chain or the pool, or null if there is none.",
        )
        .parameters(instant, |node, context, input| {
            let found = node.get_transaction(context, input.hash.0)?;
            let data = found.map(|found| Data(found.recovered().transaction.encode().into()));
            Ok(GetRawTransactionOutput { data })
        }),
        Operation::get(
            "/getTransactionExtras/{Hash}/",
            "Read blob fields and authorizations of a transaction",
            "Returns what getTransactionByHash has no room for: the blob fields (EIP-4844) and authorizations (EIP-7702) of a transaction of \
             the canonical chain or of the pool. All are null if there is no such transaction.",
        )
        .parameters(instant, |node, context, input| {
            let found = node.get_transaction(context, input.hash.0)?;
            Ok(found.map(|found| output::transaction_extras(node.spec(), &found)).unwrap_or_default())
        }),
        Operation::get(
            "/getTransactionStatus/{Hash}/",
            "Read the status of a transaction",
            "Returns whether a transaction was mined, is in the pool, was dropped and why, or is unknown.",
        )
        .by_writer()
        .parameters(instant, |node, context, input| {
            Ok(output::transaction_status(node.get_transaction_status(context, input.hash.0)?))
        }),
    ]
}

fn transaction(found: Option<FoundTransaction>) -> TransactionOutput {
    TransactionOutput { transaction: found.as_ref().map(output::transaction) }
}

fn instant(_: &Node, _: &TransactionHashInput) -> Cost {
    Cost::Instant
}
