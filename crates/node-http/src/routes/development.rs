//! Operations that control a chain. Only nodes that produce blocks serve them, and only to clients that may control
//! the chain.

use super::operation::Operation;
use super::transactions::SENT;
use crate::convert::{self, output};
use crate::problem::page::ProblemPage::{ExecutionFailed, ExecutionReverted, TransactionRejected};
use node_core::backend::HeadChange;
use node_core::block::BlockRef;
use node_core::cost::Cost;
use node_core::node::NewTransaction;
use node_core::producer::{ForkBlock, ProducerError};
use node_types::BlockId;
use node_types::wire::{
    self, ControlOutput, Data, DropTransactionInput, EmptyInput, ForkOutput, ImpersonateInput, IncreaseTimeInput,
    MineInput, MineOutput, PoolContentOutput, Quantity, ReorganizeInput, ReorganizeOutput, ResetInput, ResetOutput,
    SendRawTransactionOutput, SendTransactionInput, SetBalanceInput, SetCodeInput, SetForkUrlInput,
    SetNextBlockBaseFeeInput, SetNextBlockTimestampInput, SetNonceInput, SetStorageInput, SnapshotId,
};

const EDIT: &str = "Takes effect at once for reads, and is part of the changes of the next block.";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::post(
            "/dev/mine/",
            "Mine blocks",
            "Builds blocks from the pool, including empty ones. `Interval` is the time between consecutive blocks.",
        )
        .limits(
            "2^32 blocks; 1,024 withdrawals; 120 times `call-timeout` (10 minutes by default, an hour on forks). Mining also stops when the \
             client disconnects. Blocks mined until then remain.",
        )
        .optional_body(|_, _: &MineInput| Cost::CONTROL, |node, context, MineInput { blocks, interval, withdrawals }| {
            let blocks = blocks.map_or(1, |blocks| blocks.0);
            let withdrawals = withdrawals.into_iter().map(convert::input::withdrawal).collect();
            let head = node.mine(context, blocks, interval.map(|interval| interval.0), withdrawals)?;
            Ok(MineOutput { block_hash: Data(head.hash), block_number: Quantity(head.number) })
        }),
        Operation::post(
            "/dev/setNextBlockTimestamp/",
            "Set the timestamp of the next block",
            "Sets the timestamp of the next block, from which the clock of the chain continues. It must be later than the head's.",
        )
        .body_with_check(
            Cost::CONTROL,
            SetNextBlockTimestampInput::clone,
            wire::decode_fields,
            |node, context, input| Ok(node.control(context)?.check_next_timestamp(input.timestamp.0)?),
            |node, context, input: SetNextBlockTimestampInput| {
                Ok(done(node.control(context)?.set_next_timestamp(input.timestamp.0)?))
            },
        ),
        Operation::post(
            "/dev/increaseTime/",
            "Advance the clock",
            "Advances the clock of the chain by a number of seconds.",
        )
        .body_with_check(
            Cost::CONTROL,
            IncreaseTimeInput::clone,
            wire::decode_fields,
            |node, context, input| Ok(node.control(context)?.check_increase_of_time(input.seconds.0)?),
            |node, context, input: IncreaseTimeInput| {
                node.control(context)?.increase_time(input.seconds.0)?;
                Ok(done(()))
            },
        ),
        Operation::post(
            "/dev/setNextBlockBaseFee/",
            "Set the base fee of the next block",
            "Sets the base fee of the next block, from which those of later blocks follow.",
        )
        .body(|_, _: &SetNextBlockBaseFeeInput| Cost::CONTROL, |node, context, input| {
            Ok(done(node.control(context)?.set_next_base_fee(input.base_fee.0)?))
        }),
        Operation::post(
            "/dev/snapshot/",
            "Take a snapshot",
            "Records the head, the edits, the clock and the pool, so that `revert` can restore them.",
        )
        .limits("64 MiB of edits and hashes in all snapshots.")
        .optional_body(|_, _: &EmptyInput| Cost::CONTROL, |node, context, _| {
            Ok(SnapshotId { snapshot_id: Quantity(node.control(context)?.snapshot()?) })
        }),
        Operation::post(
            "/dev/revert/",
            "Revert to a snapshot",
            "Restores the chain as it was when the snapshot was taken. This snapshot and later ones are removed. The result is false if \
             there is no such snapshot.",
        )
        .body(|_, _: &SnapshotId| Cost::CONTROL, |node, context, input| {
            Ok(ControlOutput { result: node.revert(context, input.snapshot_id.0)? })
        }),
        Operation::post(
            "/dev/reorganize/",
            "Replace the newest blocks",
            "Replaces the newest blocks with empty ones. Their transactions return to the pool; if mining is instant, the next block \
             contains them.",
        )
        .limits("128 blocks.")
        .body_with_check(
            Cost::CONTROL,
            ReorganizeInput::clone,
            wire::decode_fields,
            |node, context, input| Ok(node.control(context)?.check_reorganization(input.blocks.0)?),
            |node, context, input: ReorganizeInput| {
                let HeadChange { added, removed } = node.control(context)?.reorganize(context, input.blocks.0)?;
                let hashes = |blocks: Vec<BlockRef>| blocks.into_iter().map(|block| Data(block.hash)).collect();
                Ok(ReorganizeOutput { added: hashes(added), removed: hashes(removed) })
            },
        ),
        Operation::post(
            "/dev/reset/",
            "Reset the chain",
            "Removes all blocks after the first one, edits, snapshots, transactions of the pool and settings. With `Url` or \
             `BlockNumber`, a fork in memory begins with another block of the other chain, or reads it from another server; a fork \
             in a folder keeps its block.",
        )
        .optional_body(|_, _: &ResetInput| Cost::CONTROL, |node, context, ResetInput { block_number, url }| {
            match (&url, block_number) {
                (None, None) => node.control(context)?.reset()?,
                (url, block) => {
                    let block = block.map(|block| ForkBlock::Id(BlockId::number(block.0)));
                    node.fork_again(context, url.as_deref(), block)?
                }
            };
            let head = node.head(context)?;
            Ok(ResetOutput { block_hash: Data(head.hash), block_number: Quantity(head.header.number) })
        }),
        Operation::get(
            "/dev/fork/",
            "Read what the chain continues",
            "Returns the block of another chain with which a fork begins, and how the servers of that chain were used since \
             they were set. Nothing is sent to them.",
        )
        .parameters(|_, ()| Cost::CONTROL, |node, context, ()| {
            node.control(context)?;
            Ok(ForkOutput { fork: node.fork().map(output::fork) })
        }),
        Operation::post(
            "/dev/setForkUrl/",
            "Read the other chain from another server",
            "From now on, a fork reads the chain that it continues from this URL. The server must have the block with which the \
             fork begins.",
        )
        .body(|_, _: &SetForkUrlInput| Cost::CONTROL, |node, context, input| {
            node.control(context)?;
            Ok(done(node.fork().ok_or(ProducerError::NotAFork)?.set_url(context, &input.url)?))
        }),
        Operation::post(
            "/dev/impersonate/",
            "Impersonate an account",
            "From now on, sendTransaction accepts this account as `From`, without a key.",
        )
        .body(|_, _: &ImpersonateInput| Cost::CONTROL, |node, context, input| {
            Ok(ControlOutput { result: node.control(context)?.impersonate(input.address.0, true)? })
        }),
        Operation::post(
            "/dev/stopImpersonating/",
            "Stop impersonating an account",
            "Reverses `impersonate`. Returns whether the account was impersonated.",
        )
        .body(|_, _: &ImpersonateInput| Cost::CONTROL, |node, context, input| {
            Ok(ControlOutput { result: node.control(context)?.impersonate(input.address.0, false)? })
        }),
        Operation::post(
            "/dev/sendTransaction/",
            "Send a transaction of an account of this chain",
            "Sends a transaction of an impersonated account, or of one whose key the node has. Fields that are absent are filled \
             in: nonce, fees, and an estimate of the gas.",
        )
        .problems(&[TransactionRejected, ExecutionReverted, ExecutionFailed])
        .links(SENT)
        // Without a gas limit, the gas is estimated.
        .body_with_check(
            Cost::SEND_UNSIGNED,
            |input: &SendTransactionInput| input.transaction.from,
            SendTransactionInput::sender_of,
            |node, context, sender| node.check_sender(context, sender.0),
            |node, context, input: SendTransactionInput| {
                let request = convert::input::transaction_request(input.transaction);
                let hash = node.send_transaction(context, NewTransaction::Request(request))?;
                Ok(SendRawTransactionOutput { transaction_hash: Data(hash) })
            },
        ),
        Operation::post("/dev/setBalance/", "Set a balance", EDIT)
        .body(|_, _: &SetBalanceInput| Cost::CONTROL, |node, context, input| {
            Ok(done(node.control(context)?.set_balance(input.address.0, input.balance.0)?))
        }),
        Operation::post(
            "/dev/setNonce/",
            "Set a nonce",
            "Takes effect at once for reads, and is part of the changes of the next block. If the nonce is lowered, transactions \
             that were already mined are not mined again.",
        )
        .body(|_, _: &SetNonceInput| Cost::CONTROL, |node, context, input| {
            Ok(done(node.control(context)?.set_nonce(input.address.0, input.nonce.0)?))
        }),
        Operation::post("/dev/setCode/", "Set code", EDIT)
        .body(|_, _: &SetCodeInput| Cost::CONTROL, |node, context, input| {
            Ok(done(node.control(context)?.set_code(input.address.0, input.code.0)?))
        }),
        Operation::post("/dev/setStorage/", "Set a storage slot", EDIT)
        .body(|_, _: &SetStorageInput| Cost::CONTROL, |node, context, input| {
            Ok(done(node.control(context)?.set_storage(input.address.0, input.position.0, input.value.0)?))
        }),
        Operation::post(
            "/dev/dropTransaction/",
            "Drop a transaction",
            "Removes a transaction from the pool. Returns whether it was there.",
        )
        .body(|_, _: &DropTransactionInput| Cost::CONTROL, |node, context, input| {
            Ok(ControlOutput { result: node.drop_transaction(context, input.transaction_hash.0)? })
        }),
        Operation::get(
            "/dev/poolContent/",
            "Read the pool",
            "Returns all transactions in the pool: those that the next block can contain, and those that are queued.",
        )
        .parameters(|_, ()| Cost::POOL_CONTENT, |node, context, ()| {
            let content = node.pool_content(context)?;
            let [pending, queued] = [content.pending, content.queued].map(output::pooled_transactions);
            Ok(PoolContentOutput { pending, queued })
        }),
    ]
}

/// Returns the output of an operation that returns nothing.
fn done((): ()) -> ControlOutput {
    ControlOutput { result: true }
}
