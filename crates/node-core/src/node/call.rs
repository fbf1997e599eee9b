//! Calls and gas estimates.

use super::{Field, Node, NodeError};
use crate::collecting::gather_call;
use crate::context::Context;
use crate::executor::{Call, CallOutcome, EstimateOutcome};
use node_types::{BlockId, Bytes};

pub(super) fn call(node: &Node, context: &Context, call: &Call, block: BlockId) -> Result<Bytes, NodeError> {
    let snapshot = node.snapshot_for(context, block)?;
    let header = snapshot.header(snapshot.state(block, Field::BlockNumber)?)?;
    let context = node.call_context(context);
    let outcome = gather_call(call, || node.executor.call(&context, &*snapshot.view, &header.header, call))
        .map_err(|error| NodeError::of_call(error, &context))?;
    node.observed(call, block);
    match outcome {
        CallOutcome::Returned { output, .. } => Ok(output),
        CallOutcome::Failed(failure) => Err(failure.into()),
    }
}

pub(super) fn estimate_gas(node: &Node, context: &Context, call: &Call, block: BlockId) -> Result<u64, NodeError> {
    let outcome = node.estimate(context, call, block)?;
    node.observed(call, block);
    match outcome {
        EstimateOutcome::Gas(gas) => Ok(gas),
        EstimateOutcome::Failed(failure) => Err(failure.into()),
    }
}

impl Node {
    /// Returns the gas limit for a transaction that will be sent. The call is reported to observers only if it fails,
    /// because otherwise they will see the transaction.
    pub(super) fn gas_to_send(&self, context: &Context, call: &Call) -> Result<u64, NodeError> {
        match self.estimate(context, call, BlockId::latest())? {
            EstimateOutcome::Gas(gas) => Ok(gas),
            EstimateOutcome::Failed(failure) => {
                self.observed(call, BlockId::latest());
                Err(failure.into())
            }
        }
    }

    fn estimate(&self, context: &Context, call: &Call, block: BlockId) -> Result<EstimateOutcome, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let header = snapshot.header(snapshot.state(block, Field::BlockNumber)?)?;
        let context = self.call_context(context);
        gather_call(call, || self.executor.estimate(&context, &*snapshot.view, &header.header, call))
            .map_err(|error| NodeError::of_call(error, &context))
    }

    /// Reports an executed call to observers.
    fn observed(&self, call: &Call, block: BlockId) {
        if let Some(observer) = self.call_observer.get() {
            observer(call, block);
        }
    }

    /// Returns `context` with the gas budget and the timeout of calls.
    pub(super) fn call_context(&self, context: &Context) -> Context {
        let gas_budget = context.gas_budget().min(self.limits.gas_cap);
        context.clone().with_gas_budget(gas_budget).with_timeout(self.limits.call_timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BackendError;
    use crate::context::Interrupted;
    use crate::executor::{CallFailure, ExecutionError, TransactionError};
    use crate::node::testing::World;
    use crate::node::{Limit, Property};
    use crate::test_chain::address;
    use parking_lot::Mutex;
    use std::mem::discriminant;
    use std::sync::Arc;

    #[test]
    fn passes_calls_to_the_executor() {
        let world = World::new();
        world.grow(3);
        let call = Call { from: address(1), to: Some(address(2)), gas: Some(60_000_000), ..Call::default() };
        // The block id, the call, the gas budget of the request; then the block and the budget that the executor gets.
        let cases = [
            (BlockId::latest(), call.clone(), u64::MAX, 3, 50_000_000),
            (BlockId::number(1), call.clone(), 1_000, 1, 1_000),
            (BlockId::earliest(), Call::default(), u64::MAX, 0, 50_000_000),
        ];
        for (id, call, budget, block, gas_budget) in cases {
            let output = vec![block as u8].into();
            *world.executor.call.lock() = Some(Ok(CallOutcome::Returned { output, gas_used: 1 }));
            let context = Context::unbounded().with_gas_budget(budget);
            assert_eq!(world.node.call(&context, &call, id).unwrap().as_ref(), [block as u8]);
            let seen = world.executor.seen.lock().take().unwrap();
            assert_eq!((seen.block, seen.gas_budget), (block, gas_budget), "{id}");
            assert_eq!((seen.call.from, seen.call.to, seen.call.gas), (call.from, call.to, call.gas), "{id}");
        }
    }

    #[test]
    fn calls_are_observed() {
        let world = World::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let observed = seen.clone();
        world.node.observe_calls(move |call, block| observed.lock().push((call.from, block)));
        let context = Context::unbounded();
        let call = |number| Call { from: address(number), ..Call::default() };
        let halted = CallFailure::Halted { reason: "out of gas".into(), out_of_gas: true };
        *world.executor.call.lock() = Some(Ok(CallOutcome::Failed(halted)));
        world.node.call(&context, &call(1), BlockId::latest()).unwrap_err();
        *world.executor.call.lock() = Some(Ok(CallOutcome::Returned { output: Bytes::default(), gas_used: 1 }));
        world.node.call(&context, &call(2), BlockId::latest()).unwrap();
        *world.executor.call.lock() = Some(Err(BackendError::UnknownBlock(1).into()));
        world.node.call(&context, &call(3), BlockId::latest()).unwrap_err();
        *world.executor.estimate.lock() = Some(Ok(EstimateOutcome::Gas(21_000)));
        world.node.estimate_gas(&context, &call(4), BlockId::earliest()).unwrap();
        *world.executor.estimate.lock() = Some(Ok(EstimateOutcome::Gas(21_000)));
        world.node.gas_to_send(&context, &call(5)).unwrap();
        *world.executor.estimate.lock() = Some(Ok(EstimateOutcome::Failed(CallFailure::GasCap { cap: 1 })));
        world.node.gas_to_send(&context, &call(6)).unwrap_err();
        let latest = BlockId::latest();
        let expected = [(1, latest), (2, latest), (4, BlockId::earliest()), (6, latest)];
        assert_eq!(*seen.lock(), expected.map(|(number, block)| (address(number), block)));
    }

    #[test]
    fn passes_estimates_to_the_executor() {
        let world = World::new();
        *world.executor.estimate.lock() = Some(Ok(EstimateOutcome::Gas(21_000)));
        let gas = world.node.estimate_gas(&Context::unbounded(), &Call::default(), BlockId::latest()).unwrap();
        assert_eq!(gas, 21_000);
    }

    #[test]
    fn converts_failures() {
        let reverted = CallFailure::Reverted { reason: Some("no".into()), output: vec![1].into() };
        let refused =
            TransactionError::InsufficientFunds { balance: 1.into(), required: 2.into(), fees_exceed_value: false };
        let interrupted = |interrupted| Err(BackendError::Interrupted(interrupted).into());
        let limited = |reason: &str, limit, properties: &[Property]| {
            let fields = properties.iter().copied().map(Field::Property).collect();
            NodeError::ExecutionFailed { reason: reason.into(), limit, fields }
        };
        let timeout = || limited("execution aborted (timeout = 5s)", Some(Limit::CallTimeout), &[]);
        let cases = [
            (
                Ok(CallOutcome::Failed(reverted)),
                NodeError::ExecutionReverted { reason: Some("no".into()), output: vec![1].into() },
            ),
            (
                Ok(CallOutcome::Failed(CallFailure::Halted { reason: "out of gas".into(), out_of_gas: true })),
                limited("out of gas", None, &[Property::Gas]),
            ),
            (
                Ok(CallOutcome::Failed(CallFailure::Halted { reason: "stack underflow".into(), out_of_gas: false })),
                NodeError::execution_failed("stack underflow"),
            ),
            (
                Ok(CallOutcome::Failed(CallFailure::GasCap { cap: 5 })),
                limited(
                    "gas required exceeds allowance (5), the least of its gas limit, what the balance pays, the block's gas \
                     limit, the cap of a transaction (EIP-7825), and the node's cap",
                    Some(Limit::GasCap),
                    &[Property::Gas],
                ),
            ),
            (Err(refused.clone().into()), NodeError::CallRefused(refused)),
            (Err(Interrupted::DeadlineExceeded.into()), timeout()),
            (interrupted(Interrupted::DeadlineExceeded), timeout()),
            (Err(Interrupted::Cancelled.into()), NodeError::Interrupted(Interrupted::Cancelled)),
            (Err(BackendError::UnknownBlock(1).into()), NodeError::Backend(BackendError::UnknownBlock(1))),
        ];
        let world = World::new();
        for (outcome, expected) in cases {
            let outcome: Result<CallOutcome, ExecutionError> = outcome;
            let case = format!("{outcome:?}");
            *world.executor.call.lock() = Some(outcome);
            let error = world.node.call(&Context::unbounded(), &Call::default(), BlockId::latest()).unwrap_err();
            assert_eq!(discriminant(&error), discriminant(&expected), "{case}: {error:?}");
            assert_eq!(error.to_string(), expected.to_string(), "{case}");
            assert_eq!(error.limit(), expected.limit(), "{case}");
            let fields = |error: &NodeError| match error {
                NodeError::ExecutionFailed { fields, .. } => Some(fields.clone()),
                _ => None,
            };
            assert_eq!(fields(&error), fields(&expected), "{case}");
        }
    }
}
