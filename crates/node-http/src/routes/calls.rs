//! Calls and gas estimates.

use super::operation::Operation;
use crate::convert;
use crate::problem_page::ProblemPage::{
    self, BlockNotFound, ExecutionFailed, ExecutionReverted, LimitExceeded, StatePruned,
};
use node_core::cost::Cost;
use node_types::BlockId;
use node_types::wire::{CallInput, CallOutput, Data, EstimateGasInput, EstimateGasOutput, Quantity};

const CALL: &[ProblemPage] = &[BlockNotFound, StatePruned, ExecutionReverted, ExecutionFailed, LimitExceeded];

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::post(
            "call",
            "/call/",
            "Call a contract",
            "Executes a message call in the environment of a block, on the state after it, and returns its return data. Without `To`, \
             `Data` is executed as creation code, and the result is the code that it would deploy. Without `GasPrice`, fees are not \
             checked. Nothing is changed. A revert is 422 `execution-reverted`, with the decoded reason and the raw data.",
        )
        .limits("50,000,000 gas (`gas-cap`), 5 s (`call-timeout`).")
        .problems(CALL)
        .body(
            |_, _: &CallInput| Cost::CALL,
            |node, context, input| {
                let call = convert::input::call(input.transaction);
                Ok(CallOutput { data: Data(node.call(context, &call, input.block_number)?) })
            },
        ),
        Operation::post(
            "estimateGas",
            "/estimateGas/",
            "Estimate gas",
            "Returns a gas limit with which the transaction succeeds after the latest block: never too low, and at most 1.5% higher than \
             needed. `Object` overrides balances, nonces, code and storage for this estimate only.",
        )
        .limits("50,000,000 gas (`gas-cap`), 5 s (`call-timeout`).")
        .problems(CALL)
        .body(
            |_, _: &EstimateGasInput| Cost::CALL,
            |node, context, input| {
                let gas = node.estimate_gas(context, &convert::input::estimate(input), BlockId::latest())?;
                Ok(EstimateGasOutput { estimated_gas: Quantity(gas) })
            },
        ),
    ]
}
