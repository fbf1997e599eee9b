//! Blocks and what they hold.

use super::Operation;
use crate::problem_page::ProblemPage::{self, BlockNotFound, ExecutionFailed, LimitExceeded, StatePruned};
use node_types::wire::schema::TextParameter::{BlockId, BlockNumberOrTag, Hash};

/// Of the pending block, which is executed to be shown.
const PENDING: &[ProblemPage] = &[ExecutionFailed, LimitExceeded];
const BLOCK: &[ProblemPage] = &[BlockNotFound, ExecutionFailed, LimitExceeded];
/// Side blocks may have to be executed again.
const SIDE_BLOCK: &[ProblemPage] = &[StatePruned, LimitExceeded];
const KNOWN: &[ProblemPage] = &[BlockNotFound];

const NUMBER: &str = "A number, decimal or `0x` hex, or `earliest`, `latest`, `pending`, `safe`, `finalized`.";
const NUMBER_OR_HASH: &str = "A number, a block hash, or `earliest`, `latest`, `pending`, `safe`, `finalized`.";
const HASH: &str = "Hash of the block.";

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation::get(
            "getBlockByNumber",
            "/getBlockByNumber/{BlockNumber}/{TransactionDetailFlag}/",
            "Read a block by number",
            "The block with this number or name; null when there is none. `pending` is the block that would be made of the pool now; \
             its number, hash, nonce and bloom are null.",
        )
        .path("BlockNumber", BlockNumberOrTag, NUMBER)
        .flag()
        .problems(PENDING)
        .links(&[("getBlockByHash", "Hash", "Block/Hash"), ("getBlockReceipts", "BlockNumber", "Block/Number")]),
        Operation::get(
            "getBlockByNumberWithHashes",
            "/getBlockByNumber/{BlockNumber}/",
            "Read a block by number, with hashes of transactions",
            "As getBlockByNumber with `false`.",
        )
        .path("BlockNumber", BlockNumberOrTag, NUMBER)
        .problems(PENDING),
        Operation::get(
            "getLatestBlock",
            "/getBlockByNumber/",
            "Read the latest block, with hashes of transactions",
            "As getBlockByNumber with `latest` and `false`.",
        ),
        Operation::get(
            "getBlockByHash",
            "/getBlockByHash/{Hash}/{TransactionDetailFlag}/",
            "Read a block by hash",
            "The block with this hash, also one that left the canonical chain; null when there is none.",
        )
        .path("Hash", Hash, HASH)
        .flag()
        .problems(SIDE_BLOCK),
        Operation::get(
            "getBlockByHashWithHashes",
            "/getBlockByHash/{Hash}/",
            "Read a block by hash, with hashes of transactions",
            "As getBlockByHash with `false`.",
        )
        .path("Hash", Hash, HASH)
        .problems(SIDE_BLOCK),
        Operation::get(
            "getBlockReceipts",
            "/getBlockReceipts/{BlockNumber}/",
            "Read the receipts of a block",
            "A receipt for each transaction of the block, in their order.",
        )
        .path("BlockNumber", BlockId, NUMBER_OR_HASH)
        .problems(BLOCK),
        Operation::get(
            "getBlockTransactionCountByHash",
            "/getBlockTransactionCountByHash/{Hash}/",
            "Count transactions of a block by hash",
            "How many transactions the block holds.",
        )
        .path("Hash", Hash, HASH)
        .problems(KNOWN),
        Operation::get(
            "getBlockTransactionCountByNumber",
            "/getBlockTransactionCountByNumber/{BlockNumber}/",
            "Count transactions of a block by number",
            "How many transactions the block holds.",
        )
        .path("BlockNumber", BlockId, NUMBER_OR_HASH)
        .problems(BLOCK),
        Operation::get(
            "getUncleCountByBlockHash",
            "/getUncleCountByBlockHash/{Hash}/",
            "Count uncles of a block by hash",
            "How many uncles the block names; none since the merge.",
        )
        .path("Hash", Hash, HASH)
        .problems(KNOWN),
        Operation::get(
            "getUncleCountByBlockNumber",
            "/getUncleCountByBlockNumber/{BlockNumber}/",
            "Count uncles of a block by number",
            "How many uncles the block names; none since the merge.",
        )
        .path("BlockNumber", BlockId, NUMBER_OR_HASH)
        .problems(BLOCK),
    ]
}
