//! The chain, its fork rules, this node, and suggested fees.

use crate::method::Method;
use crate::parameters::nth;
use crate::wire::{BlockCount, BlockNumberParam, Capabilities, FeeHistory, ForkConfigs, Hex, Syncing};
use node_core::cost::Cost;
use node_core::node;
use node_types::keccak256;
use node_types::wire::{BytesData, Data};

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new("web3_clientVersion", &[], "Name and version of the server.", |scope, ()| {
            Ok(scope.node.client_version().to_owned())
        }),
        Method::new("web3_sha3", &["data"], "The Keccak-256 of bytes.", |_, (data,): (BytesData,)| {
            Ok(Data(keccak256(&data.0)))
        }),
        version("net_version"),
        version("eth_networkId"),
        Method::new("net_listening", &[], "True: the server listens.", |_, ()| Ok(true)),
        Method::new("net_peerCount", &[], "Zero: the node has no peers.", |_, ()| Ok(Hex(0))),
        Method::new("eth_chainId", &[], "The chain id (EIP-155).", |scope, ()| Ok(Hex(scope.node.spec().chain_id))),
        Method::new(
            "eth_syncing",
            &[],
            "False, or the progress of an import that is served meanwhile. The highest block is that of the chain files; \
             blocks still to come from a pipe are not counted.",
            |scope, ()| Ok(Syncing::from(scope.node.import_progress(scope.context)?)),
        ),
        Method::new(
            "eth_coinbase",
            &[],
            "The fee recipient of the next block; the zero address if the node does not produce blocks.",
            |scope, ()| Ok(Data(scope.node.coinbase(scope.context)?.unwrap_or_default())),
        ),
        Method::new("eth_blockNumber", &[], "The number of the head.", |scope, ()| {
            Ok(Hex(scope.node.block_number(scope.context)?))
        }),
        Method::new(
            "eth_gasPrice",
            &[],
            "A gas price in wei that gets a transaction into one of the next blocks.",
            |scope, ()| Ok(Hex(scope.node.gas_price(scope.context)?)),
        ),
        Method::new(
            "eth_maxPriorityFeePerGas",
            &[],
            "A tip in wei per gas that gets a transaction into one of the next blocks.",
            |scope, ()| Ok(Hex(scope.node.max_priority_fee_per_gas(scope.context)?)),
        ),
        Method::new(
            "eth_baseFee",
            &[],
            "The base fee of the next block in wei per gas; null before London.",
            |scope, ()| Ok(scope.node.next_base_fee(scope.context)?.map(Hex)),
        ),
        Method::new("eth_blobBaseFee", &[], "The price of blob gas in the next block, in wei.", |scope, ()| {
            Ok(Hex(scope.node.blob_base_fee(scope.context)?.unwrap_or_default()))
        }),
        Method::new(
            "eth_feeHistory",
            &["blockCount", "newestBlock", "rewardPercentiles?"],
            "Base fees, gas used ratios and tips of consecutive blocks.",
            |scope, (count, newest, percentiles): (BlockCount, BlockNumberParam, Option<Vec<f64>>)| {
                // Larger counts return the newest blocks.
                let count = count.0.min(node::FeeHistory::MAX_BLOCKS);
                let percentiles = percentiles.unwrap_or_default();
                if count == 0 {
                    return Ok(FeeHistory::default());
                }
                Ok(FeeHistory::from(scope.node.fee_history(scope.context, count, newest.0, &percentiles)?))
            },
        )
        .costing(|_, parameters| by_blocks(parameters)),
        Method::new(
            "eth_config",
            &[],
            "The current, the next and the last scheduled fork rules (EIP-7910).",
            |scope, ()| Ok(ForkConfigs::from(scope.node.fork_configs(scope.context)?)),
        ),
        Method::new(
            "eth_capabilities",
            &[],
            "For each kind of data, the first block for which it is kept.",
            |scope, ()| Ok(Capabilities::from(scope.node.capabilities(scope.context)?)),
        ),
    ]
}

fn version(name: &'static str) -> Method {
    Method::new(name, &[], "The chain id in decimal digits.", |scope, ()| Ok(scope.node.spec().chain_id.to_string()))
}

/// Returns the cost of eth_feeHistory, which depends on the number of blocks.
fn by_blocks(parameters: &str) -> Cost {
    nth(parameters, 0).map_or(Cost::Long, |count: BlockCount| Cost::of_fee_history(count.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_histories_are_read_at_once() {
        for short in [r#"["0x20","latest"]"#, "[32]", r#" [ "0x1" , "0x0", [50] ]"#] {
            assert_eq!(by_blocks(short), Cost::Brief, "{short}");
        }
        for long in [r#"["0x21","latest"]"#, "[33]", "[]", "", r#"["latest"]"#, r#"{"blockCount":1}"#] {
            assert_eq!(by_blocks(long), Cost::Long, "{long}");
        }
    }
}
