//! The head, fees, and what is served.

use super::Operation;
use crate::problem_page::ProblemPage::{BlockNotFound, LimitExceeded};

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation::get("blockNumber", "/blockNumber/", "Read the height of the head", "Number of the latest block.")
            .links(&[("getBlockReceipts", "BlockNumber", "BlockNumber")]),
        Operation::get("chainId", "/chainId/", "Read the chain id", "What transactions are bound to (EIP-155)."),
        Operation::post(
            "feeHistory",
            "/feeHistory/",
            "Read fees of past blocks",
            "Base fees, gas used and, for each percentile that is asked for, the tips of a range of blocks that ends with `NewestBlock`. \
             `BaseFeePerGas` holds the next block's, too.",
        )
        .limits("1 to 1,024 blocks; 100 percentiles (`max-percentiles`).")
        .problems(&[BlockNotFound, LimitExceeded]),
        Operation::get(
            "gasPrice",
            "/gasPrice/",
            "Suggest a gas price",
            "A price in wei per gas that gets a transaction into one of the next blocks: base fee and suggested tip.",
        ),
        Operation::get(
            "maxPriorityFeePerGas",
            "/maxPriorityFeePerGas/",
            "Suggest a tip",
            "A tip in wei per gas: the median of what the last 20 blocks paid.",
        ),
        Operation::get("blobBaseFee", "/blobBaseFee/", "Read the blob base fee", "Price of blob gas in the next block, in wei."),
        Operation::get("syncing", "/syncing/", "Read the progress of an import", "How far an import is; null when none runs."),
        Operation::get("clientVersion", "/clientVersion/", "Read the version", "Name and version of this server."),
    ]
}
