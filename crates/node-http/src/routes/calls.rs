//! Calls and gas estimates.

use super::operation::Operation;
use crate::convert;
use crate::problem::page::ProblemPage::{
    self, BlockNotFound, ExecutionFailed, ExecutionReverted, LimitExceeded, StatePruned,
};
use node_core::cost::Cost;
use node_core::node::Node;
use node_types::wire::{CallInput, CallOutput, Data, EstimateGasOutput, Quantity};

const CALL: &[ProblemPage] = &[BlockNotFound, StatePruned, ExecutionReverted, ExecutionFailed, LimitExceeded];

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::post(
            "/call/",
            "Call a contract",
            "Executes a message call in the environment of a block, on the state after it, and returns its return data. Without `To`, \
             `Data` is executed as creation code, and the result is the code that it would deploy. Without `GasPrice`, fees are not \
             checked. `Object` overrides balances, nonces, code and storage for this call only. Nothing is changed. A revert is 422 `execution-reverted`, with the decoded reason and the raw data.",
        )
        .limits("50,000,000 gas (`gas-cap`), 5 s (`call-timeout`).")
        .problems(CALL)
        .body(
            cost,
            |node, context, input| {
                let block = input.block_number;
                Ok(CallOutput { data: Data(node.call(context, &convert::input::call(input), block)?) })
            },
        ),
        Operation::post(
            "/estimateGas/",
            "Estimate gas",
            "Returns a gas limit with which the transaction succeeds after a block, by default the latest: never too low, and at most 1.5% higher than \
             needed. `Object` overrides balances, nonces, code and storage for this estimate only.",
        )
        .limits("50,000,000 gas (`gas-cap`), 5 s (`call-timeout`).")
        .problems(CALL)
        .body(
            cost,
            |node, context, input| {
                let block = input.block_number;
                let gas = node.estimate_gas(context, &convert::input::call(input), block)?;
                Ok(EstimateGasOutput { estimated_gas: Quantity(gas) })
            },
        ),
    ]
}

fn cost(_: &Node, input: &CallInput) -> Cost {
    // Other long parts of a call are refused by the thread that receives it.
    let digits = input.transaction.data.as_ref().map_or(0, |data| 2 * data.0.len());
    Cost::of_reading(input.block_number).max(Cost::of_call(digits))
}
