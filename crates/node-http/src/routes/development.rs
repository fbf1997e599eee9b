//! Control of a chain that this node produces. Served only by such nodes, and only to clients on the same machine.

use super::operation::Operation;
use super::transactions::SENT;
use crate::problem_page::ProblemPage::{ExecutionFailed, ExecutionReverted, TransactionRejected};
use node_core::cost::Cost;
use node_core::node::Node;
use node_types::wire::EmptyInput;

const EDIT: &str = "Takes effect at once for reads, and is part of the changes of the next block.";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::post(
            "mine",
            "/dev/mine/",
            "Mine blocks",
            "Builds blocks from the pool, including empty ones. `Interval` is the time between consecutive blocks.",
        )
        .limits("10,000 blocks; 1,024 withdrawals.")
        .optional_body(|_, _| Cost::CONTROL, Node::mine),
        Operation::post(
            "setNextBlockTimestamp",
            "/dev/setNextBlockTimestamp/",
            "Set the timestamp of the next block",
            "Sets the timestamp of the next block, from which the clock of the chain continues. It must be later than the head's.",
        )
        .body(|_, _| Cost::CONTROL, Node::set_next_block_timestamp),
        Operation::post(
            "increaseTime",
            "/dev/increaseTime/",
            "Advance the clock",
            "Advances the clock of the chain by a number of seconds.",
        )
        .body(|_, _| Cost::CONTROL, Node::increase_time),
        Operation::post(
            "setNextBlockBaseFee",
            "/dev/setNextBlockBaseFee/",
            "Set the base fee of the next block",
            "Sets the base fee of the next block, from which those of later blocks follow.",
        )
        .body(|_, _| Cost::CONTROL, Node::set_next_block_base_fee),
        Operation::post(
            "snapshot",
            "/dev/snapshot/",
            "Take a snapshot",
            "Records head, edits, clock and the transactions in the pool, for revert.",
        )
        .limits("1,024 snapshots.")
        .links(&[("revert", "SnapshotId", "SnapshotId")])
        .optional_body(|_, _: &EmptyInput| Cost::CONTROL, Node::take_snapshot),
        Operation::post(
            "revert",
            "/dev/revert/",
            "Revert to a snapshot",
            "Restores the chain as it was when the snapshot was taken. This snapshot and later ones are removed. The result is false if \
             there is no such snapshot.",
        )
        .body(|_, _| Cost::CONTROL, Node::revert),
        Operation::post(
            "reorganize",
            "/dev/reorganize/",
            "Replace the newest blocks",
            "Replaces the newest blocks with empty ones. Their transactions return to the pool; if mining is instant, the next block \
             contains them.",
        )
        .limits("128 blocks.")
        .body(|_, _| Cost::CONTROL, Node::reorganize),
        Operation::post(
            "impersonate",
            "/dev/impersonate/",
            "Impersonate an account",
            "From now on, sendTransaction accepts this account as `From`, without a key.",
        )
        .body(|_, _| Cost::CONTROL, Node::impersonate),
        Operation::post(
            "stopImpersonating",
            "/dev/stopImpersonating/",
            "Stop impersonating an account",
            "Ends impersonate. Returns whether the account was impersonated.",
        )
        .body(|_, _| Cost::CONTROL, Node::stop_impersonating),
        Operation::post(
            "sendTransaction",
            "/dev/sendTransaction/",
            "Send a transaction without a signature",
            "Sends a transaction of an impersonated account. Fields that are absent are filled in: nonce, fees, and an estimate of the gas.",
        )
        .problems(&[TransactionRejected, ExecutionReverted, ExecutionFailed])
        .links(SENT)
        // Without a gas limit, the gas is estimated.
        .body(|_, _| Cost::CALL, Node::send_transaction),
        Operation::post("setBalance", "/dev/setBalance/", "Set a balance", EDIT)
                .body(|_, _| Cost::CONTROL, Node::set_balance),
        Operation::post(
            "setNonce",
            "/dev/setNonce/",
            "Set a nonce",
            "Takes effect at once for reads, and is part of the changes of the next block. A nonce cannot be lowered.",
        )
        .body(|_, _| Cost::CONTROL, Node::set_nonce),
        Operation::post("setCode", "/dev/setCode/", "Set code", EDIT)
                .body(|_, _| Cost::CONTROL, Node::set_code),
        Operation::post("setStorage", "/dev/setStorage/", "Set a storage slot", EDIT)
                .body(|_, _| Cost::CONTROL, Node::set_storage),
        Operation::post(
            "dropTransaction",
            "/dev/dropTransaction/",
            "Drop a transaction",
            "Removes a transaction from the pool. Returns whether it was there.",
        )
        .body(|_, _| Cost::CONTROL, Node::drop_transaction),
        Operation::get(
            "poolContent",
            "/dev/poolContent/",
            "Read the pool",
            "Returns all transactions in the pool: those that the next block can contain, and those that are queued.",
        )
        .parameters(|_, ()| Cost::POOL_CONTENT, |node, context, ()| node.pool_content(context)),
    ]
}
