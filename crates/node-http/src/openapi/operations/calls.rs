//! Calls, gas estimates and fees of the past.

use super::Operation;
use crate::problem_page::ProblemPage::{
    self, BlockNotFound, ExecutionFailed, ExecutionReverted, LimitExceeded, StatePruned,
};

const CALL: &[ProblemPage] = &[BlockNotFound, StatePruned, ExecutionReverted, ExecutionFailed, LimitExceeded];

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation::post(
            "call",
            "/call/",
            "Call a contract",
            "Runs a message call in the environment of a block, over the state after it, and answers what it returns. Without `To` the \
             data is run as creation code, and the answer is the code that it would deploy. Without `GasPrice` fees are not checked. \
             Nothing is changed. A revert is 422 `execution-reverted`, with the decoded reason and the raw data.",
        )
        .limits("50,000,000 gas (`gas-cap`), 5 s (`call-timeout`).")
        .problems(CALL),
        Operation::post(
            "estimateGas",
            "/estimateGas/",
            "Estimate gas",
            "The gas limit with which the transaction succeeds after the latest block: never too little, and at most 1.5% more than \
             needed. `Object` changes balances, nonces, code and storage for this estimate alone.",
        )
        .limits("50,000,000 gas (`gas-cap`), 5 s (`call-timeout`).")
        .problems(CALL),
    ]
}
