//! Control of a chain that the node produces itself.

use super::Operation;
use super::transactions::SENT;
use crate::problem_page::ProblemPage::{ExecutionFailed, ExecutionReverted, TransactionRejected};

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation::post(
            "mine",
            "/dev/mine/",
            "Mine blocks",
            "Makes blocks of what the pool holds, also empty ones. `Interval` is the time from each block to the next.",
        )
        .optional_body()
        .limits("10,000 blocks; 1,024 withdrawals."),
        Operation::post(
            "setNextBlockTimestamp",
            "/dev/setNextBlockTimestamp/",
            "Choose the next block's time",
            "The next block has this timestamp, and time goes on from there. It must be later than the head's.",
        ),
        Operation::post("increaseTime", "/dev/increaseTime/", "Let time jump ahead", "The clock of the chain jumps ahead by so many seconds."),
        Operation::post(
            "setNextBlockBaseFee",
            "/dev/setNextBlockBaseFee/",
            "Choose the next block's base fee",
            "The next block has this base fee, from which those of later blocks follow.",
        ),
        Operation::post("snapshot", "/dev/snapshot/", "Take a snapshot", "Remembers head, edits, time and which transactions are in the pool, for revert.")
            .optional_body()
            .limits("1,024 snapshots.")
            .links(&[("revert", "SnapshotId", "SnapshotId")]),
        Operation::post(
            "revert",
            "/dev/revert/",
            "Go back to a snapshot",
            "The chain is again as it was when the snapshot was taken; this snapshot and later ones are used up. False where there is no \
             such snapshot.",
        ),
        Operation::post(
            "reorganize",
            "/dev/reorganize/",
            "Replace the newest blocks",
            "The newest blocks leave the chain, and empty ones take their place. Their transactions wait in the pool again; where mining \
             is instant, they are in the next block.",
        )
        .limits("128 blocks."),
        Operation::post("impersonate", "/dev/impersonate/", "Act for an account", "From now on, sendTransaction takes this account as `From`, without a key."),
        Operation::post("stopImpersonating", "/dev/stopImpersonating/", "Stop acting for an account", "Ends impersonate; answers whether it was on."),
        Operation::post(
            "sendTransaction",
            "/dev/sendTransaction/",
            "Send a transaction without a signature",
            "Sends a transaction of an account that is impersonated. What is absent is filled in: nonce, fees, and an estimate of the gas.",
        )
        .problems(&[TransactionRejected, ExecutionReverted, ExecutionFailed])
        .links(SENT),
        Operation::post("setBalance", "/dev/setBalance/", "Set a balance", "Reads see the edit at once; the next block has it among its changes."),
        Operation::post(
            "setNonce",
            "/dev/setNonce/",
            "Set a nonce",
            "Reads see the edit at once; the next block has it among its changes. A nonce cannot be lowered.",
        ),
        Operation::post("setCode", "/dev/setCode/", "Set code", "Reads see the edit at once; the next block has it among its changes."),
        Operation::post("setStorage", "/dev/setStorage/", "Set a storage slot", "Reads see the edit at once; the next block has it among its changes."),
        Operation::post("dropTransaction", "/dev/dropTransaction/", "Drop a transaction", "Takes a transaction out of the pool; answers whether it was there."),
        Operation::get("poolContent", "/dev/poolContent/", "Read the pool", "All transactions in the pool: those that can be in the next block, and those that wait.")
            .not_stored(),
    ]
}
