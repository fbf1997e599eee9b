//! The head, fees, and this server.

use super::operation::Operation;
use crate::convert::output;
use crate::problem::page::ProblemPage::{BlockNotFound, LimitExceeded};
use node_core::cost::Cost;
use node_core::node::{ImportProgress, Node};
use node_types::wire::{
    BlobBaseFeeOutput, BlockNumberOutput, ChainIdOutput, ClientVersionOutput, FeeHistoryInput, GasPriceOutput,
    MaxPriorityFeePerGasOutput, Quantity, SyncStatus, SyncingOutput,
};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::get("/blockNumber/", "Read the number of the head", "Returns the number of the latest block.")
            .links(&[("getBlockReceipts", "BlockNumber", "BlockNumber")])
            .parameters(instant, |node, context, ()| {
                Ok(BlockNumberOutput { block_number: Quantity(node.block_number(context)?) })
            }),
        Operation::get("/chainId/", "Read the chain id", "Returns the id that transactions are bound to (EIP-155).")
            .parameters(instant, |node, _, ()| Ok(ChainIdOutput { chain_id: Quantity(node.spec().chain_id) })),
        Operation::post(
            "/feeHistory/",
            "Read fees of past blocks",
            "Returns base fees, gas used ratios and, for each requested percentile, effective tips of the blocks that end with \
             `NewestBlock`. `BaseFeePerGas` also includes the base fee of the block after it.",
        )
        .limits("1 to 1,024 blocks; 100 percentiles.")
        .problems(&[BlockNotFound, LimitExceeded])
        .body(
            |_, input: &FeeHistoryInput| Cost::of_fee_history(*input.block_count),
            |node, context, FeeHistoryInput { block_count, newest_block, reward_percentiles }| {
                let history = node.fee_history(context, block_count.0, newest_block, &reward_percentiles)?;
                Ok(output::fee_history(history))
            },
        ),
        Operation::get(
            "/gasPrice/",
            "Suggest a gas price",
            "Returns a price in wei per gas with which a transaction should be included soon: base fee plus suggested tip.",
        )
        .parameters(instant, |node, context, ()| Ok(GasPriceOutput { gas_price: Quantity(node.gas_price(context)?) })),
        Operation::get(
            "/maxPriorityFeePerGas/",
            "Suggest a tip",
            "Returns a tip in wei per gas: the median of the effective tips in the last 20 blocks.",
        )
        .parameters(instant, |node, context, ()| {
            let tip = node.max_priority_fee_per_gas(context)?;
            Ok(MaxPriorityFeePerGasOutput { max_priority_fee_per_gas: Quantity(tip) })
        }),
        Operation::get(
            "/blobBaseFee/",
            "Read the blob base fee",
            "Returns the price of blob gas in the next block, in wei.",
        )
        .parameters(instant, |node, context, ()| {
            Ok(BlobBaseFeeOutput { base_fee: Quantity(node.blob_base_fee(context)?.unwrap_or_default()) })
        }),
        Operation::get(
            "/syncing/",
            "Read the progress of an import",
            "Returns the progress of a running import, or null if there is none.",
        )
        .parameters(instant, |node, context, ()| {
            let status = |progress: ImportProgress| SyncStatus {
                current_block: Quantity(progress.current_block),
                highest_block: Quantity(progress.highest_block),
                starting_block: Quantity(progress.starting_block),
            };
            Ok(SyncingOutput { sync_status: node.import_progress(context)?.map(status) })
        }),
        Operation::get("/clientVersion/", "Read the version", "Returns name and version of this server.")
            .parameters(instant, |node, _, ()| {
                Ok(ClientVersionOutput { client_version: node.client_version().to_owned() })
            }),
    ]
}

fn instant(_: &Node, (): &()) -> Cost {
    Cost::Instant
}
