//! Accounts, storage and proofs.

use super::Operation;
use crate::problem_page::ProblemPage::{self, BlockNotFound, ExecutionFailed, LimitExceeded, StatePruned};
use node_types::wire::schema::TextParameter::{Address, BlockId};

/// Of what reads a state, that of the pending block included.
const STATE: &[ProblemPage] = &[BlockNotFound, StatePruned, ExecutionFailed, LimitExceeded];

const ACCOUNT: &str = "The account.";
const BLOCK: &str = "After which block; at `pending` the pool's transactions count.";
const BLOCK_OR_LATEST: &str = "After which block; the latest where it is absent or empty.";

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation::post(
            "getStorageAt",
            "/getStorageAt/",
            "Read a storage slot",
            "The value of a storage slot of an account after a block; zero where nothing was ever written.",
        )
        .problems(STATE),
        Operation::post(
            "getProof",
            "/getProof/",
            "Read an account with Merkle proofs",
            "An account and storage slots after a block, with the trie nodes that prove them against the block's state root (EIP-1186). \
             An account or slot that is not there comes with a proof of that. There is no proof at `pending`, nor of an account that \
             was edited by hand after its block.",
        )
        .limits("1,024 storage keys (`max-storage-keys`).")
        .problems(STATE),
        Operation::get(
            "getAccount",
            "/getAccount/{Address}/{BlockNumber}/",
            "Read an account",
            "Balance, nonce, hash of the code and storage root of an account after a block. Not at `pending`, which has no trie.",
        )
        .path("Address", Address, ACCOUNT)
        .path("BlockNumber", BlockId, "After which block.")
        .problems(STATE),
        Operation::get(
            "getAccountAtLatest",
            "/getAccount/{Address}/",
            "Read an account after the latest block",
            "As getAccount at `latest`.",
        )
        .path("Address", Address, ACCOUNT)
        .problems(STATE),
        Operation::get("getBalance", "/getBalance/{Address}/", "Read a balance", "Balance of an account in wei, after a block.")
            .path("Address", Address, ACCOUNT)
            .query("BlockNumber", BlockId, BLOCK_OR_LATEST)
            .problems(STATE),
        Operation::get("getCode", "/getCode/{Address}/", "Read code", "Code of an account after a block; `0x` where it has none.")
            .path("Address", Address, ACCOUNT)
            .query("BlockNumber", BlockId, BLOCK_OR_LATEST)
            .problems(STATE),
        Operation::get(
            "getTransactionCount",
            "/getTransactionCount/{Address}/{BlockNumber}/",
            "Read a nonce",
            "How many transactions an account has sent, which is its next nonce. At `pending` those in the pool count, too.",
        )
        .path("Address", Address, ACCOUNT)
        .path("BlockNumber", BlockId, BLOCK)
        .problems(STATE),
        Operation::get(
            "getTransactionCountAtLatest",
            "/getTransactionCount/{Address}/",
            "Read a nonce after the latest block",
            "As getTransactionCount at `latest`.",
        )
        .path("Address", Address, ACCOUNT)
        .problems(STATE),
    ]
}
