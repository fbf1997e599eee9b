//! call and estimateGas.

use super::{Node, NodeError};
use crate::context::Context;
use crate::executor::{self, Call, CallOutcome, EstimateOutcome, StateOverrides, StorageOverride};
use node_types::wire::{
    AccountOverride, CallInput, CallOutput, Data, ErrorDetail, EstimateGasInput, EstimateGasOutput, Quantity,
    TransactionCall,
};
use node_types::{Address, BlockId, Bytes, U256};

impl Node {
    /// Runs a message call in the environment of a block, over the state after it.
    pub fn call(&self, context: &Context, input: CallInput) -> Result<CallOutput, NodeError> {
        let call = call(input.transaction, StateOverrides::new());
        Ok(CallOutput { data: Data(self.run_call(context, &call, input.block_number)?) })
    }

    /// A gas limit with which a transaction succeeds on top of the latest block.
    pub fn estimate_gas(&self, context: &Context, input: EstimateGasInput) -> Result<EstimateGasOutput, NodeError> {
        let overrides = overrides(&input)?;
        let call = call(input.transaction, overrides);
        let gas = self.estimate_call(context, &call, BlockId::latest())?;
        Ok(EstimateGasOutput { estimated_gas: Quantity(gas) })
    }

    /// What a call returns in the environment of a block, over the state after it, both with the call's overrides.
    pub fn run_call(&self, context: &Context, call: &Call, block: BlockId) -> Result<Bytes, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let header = snapshot.header(snapshot.state(block, "body.BlockNumber")?)?;
        let outcome = self
            .executor
            .call(&self.call_context(context), &*snapshot.view, &header.header, call)
            .map_err(|error| NodeError::of_call(error, self.limits.call_timeout))?;
        match outcome {
            CallOutcome::Returned { output, .. } => Ok(output),
            CallOutcome::Failed(failure) => Err(failure.into()),
        }
    }

    /// A gas limit with which a call succeeds in the environment of a block, over the state after it, both with the
    /// call's overrides.
    pub fn estimate_call(&self, context: &Context, call: &Call, block: BlockId) -> Result<u64, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let header = snapshot.header(snapshot.state(block, "body.BlockNumber")?)?;
        let outcome = self
            .executor
            .estimate(&self.call_context(context), &*snapshot.view, &header.header, call)
            .map_err(|error| NodeError::of_call(error, self.limits.call_timeout))?;
        match outcome {
            EstimateOutcome::Gas(gas) => Ok(gas),
            EstimateOutcome::Failed(failure) => Err(failure.into()),
        }
    }

    /// The bounds of a call.
    pub(super) fn call_context(&self, context: &Context) -> Context {
        let gas_budget = context.gas_budget().min(self.limits.gas_cap);
        context.clone().with_gas_budget(gas_budget).with_timeout(self.limits.call_timeout)
    }
}

fn call(transaction: TransactionCall, overrides: StateOverrides) -> Call {
    let TransactionCall { data, from, gas, gas_price, to, value } = transaction;
    Call {
        from: from.map_or_else(Address::zero, |from| from.0),
        to: to.map(|to| to.0),
        gas: gas.map(|gas| gas.0),
        gas_price: gas_price.map_or_else(U256::zero, |price| price.0),
        value: value.map_or_else(U256::zero, |value| value.0),
        input: data.unwrap_or_default().0,
        overrides,
        ..Call::default()
    }
}

/// What the executor calls the overrides of a request.
fn overrides(input: &EstimateGasInput) -> Result<StateOverrides, NodeError> {
    let mut faults = Vec::new();
    let mut convert = |(address, account): (Address, AccountOverride)| {
        let AccountOverride { balance, code, nonce, state, state_diff } = account;
        let storage = match (state, state_diff) {
            (None, None) => StorageOverride::Keep,
            (None, Some(slots)) => StorageOverride::Patch(slots.0),
            (Some(slots), None) => StorageOverride::Replace(slots.0),
            (Some(_), Some(_)) => {
                let message = format!("State and StateDiff of {address:#x} exclude each other");
                faults.push(ErrorDetail::new("body.Object", message));
                StorageOverride::Keep
            }
        };
        let account = executor::AccountOverride {
            balance: balance.map(|balance| balance.0),
            code: code.map(|code| code.0),
            nonce: nonce.map(|nonce| nonce.0),
            storage,
            move_precompile_to: None,
        };
        (address, account)
    };
    let overrides = input.overrides().into_iter().map(&mut convert).collect();
    if faults.is_empty() { Ok(overrides) } else { Err(NodeError::Invalid(faults)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BackendError;
    use crate::context::Interrupted;
    use crate::executor::{CallFailure, ExecutionError, TransactionError};
    use crate::node::testing::World;
    use crate::test_chain::{address, word};
    use node_types::wire::{EstimateGasObject, StorageSlots};
    use std::mem::discriminant;

    #[test]
    fn what_the_executor_sees() {
        let world = World::new();
        world.grow(3);
        let transaction = TransactionCall {
            data: Some(Data(vec![1, 2].into())),
            from: Some(Data(address(1))),
            gas: Some(Quantity(60_000_000)),
            gas_price: Some(Quantity(7.into())),
            to: Some(Data(address(2))),
            value: Some(Quantity(8.into())),
        };
        // The block argument, the transaction, the budget of the request; then the block and the budget that are seen.
        let cases = [
            (BlockId::latest(), transaction.clone(), u64::MAX, 3, 50_000_000),
            (BlockId::number(1), transaction.clone(), 1_000, 1, 1_000),
            (BlockId::earliest(), TransactionCall::default(), u64::MAX, 0, 50_000_000),
        ];
        for (block_number, transaction, budget, block, gas_budget) in cases {
            let output = vec![block as u8].into();
            *world.executor.call.lock() = Some(Ok(CallOutcome::Returned { output, gas_used: 1 }));
            let context = Context::unbounded().with_gas_budget(budget);
            let input = CallInput { block_number, transaction: transaction.clone() };
            assert_eq!(world.node.call(&context, input).unwrap().data.0.as_ref(), [block as u8]);
            let seen = world.executor.seen.lock().take().unwrap();
            assert_eq!((seen.block, seen.gas_budget), (block, gas_budget), "{block_number}");
            assert_eq!(seen.call.from, transaction.from.unwrap_or_default().0, "{block_number}");
            assert_eq!(seen.call.to, transaction.to.map(|to| to.0), "{block_number}");
            assert_eq!(seen.call.gas, transaction.gas.map(|gas| gas.0), "{block_number}");
            assert_eq!(seen.call.gas_price, transaction.gas_price.unwrap_or_default().0, "{block_number}");
            assert_eq!(seen.call.value, transaction.value.unwrap_or_default().0, "{block_number}");
            assert_eq!(seen.call.input, transaction.data.unwrap_or_default().0, "{block_number}");
        }
    }

    #[test]
    fn failures() {
        let reverted = CallFailure::Reverted { reason: Some("no".into()), output: vec![1].into() };
        let refused = TransactionError::InsufficientFunds { balance: 1.into(), required: 2.into() };
        let interrupted = |interrupted| Err(BackendError::Interrupted(interrupted).into());
        let failed = |reason: &str| NodeError::ExecutionFailed { reason: reason.into() };
        let cases = [
            (
                Ok(CallOutcome::Failed(reverted)),
                NodeError::ExecutionReverted { reason: Some("no".into()), output: vec![1].into() },
            ),
            (Ok(CallOutcome::Failed(CallFailure::Halted { reason: "out of gas".into() })), failed("out of gas")),
            (
                Ok(CallOutcome::Failed(CallFailure::GasCap { cap: 5 })),
                failed("it needs more than the 5 gas that Gas, the balance, the block and `gas-cap` allow"),
            ),
            (Err(refused.clone().into()), failed(&refused.to_string())),
            (Err(Interrupted::DeadlineExceeded.into()), failed("it took longer than the 5s allowed (`call-timeout`)")),
            (interrupted(Interrupted::DeadlineExceeded), failed("it took longer than the 5s allowed (`call-timeout`)")),
            (Err(Interrupted::Cancelled.into()), NodeError::Interrupted(Interrupted::Cancelled)),
            (Err(BackendError::UnknownBlock(1).into()), NodeError::Backend(BackendError::UnknownBlock(1))),
        ];
        let world = World::new();
        for (outcome, expected) in cases {
            let outcome: Result<CallOutcome, ExecutionError> = outcome;
            let case = format!("{outcome:?}");
            *world.executor.call.lock() = Some(outcome);
            let error = world.node.call(&Context::unbounded(), CallInput::default()).unwrap_err();
            assert_eq!(discriminant(&error), discriminant(&expected), "{case}: {error:?}");
            assert_eq!(error.to_string(), expected.to_string(), "{case}");
            assert_eq!(error.details(), expected.details(), "{case}");
        }
    }

    #[test]
    fn overrides_reach_the_executor() {
        let slots = || Some(StorageSlots([(word(1), 2.into())].into()));
        let account = AccountOverride {
            balance: Some(Quantity(3.into())),
            code: Some(Data(vec![4].into())),
            nonce: Some(Quantity(5)),
            state: None,
            state_diff: slots(),
        };
        let patch = StorageOverride::Patch(slots().unwrap().0);
        let replace = StorageOverride::Replace(slots().unwrap().0);
        let whole = executor::AccountOverride {
            balance: Some(3.into()),
            code: Some(vec![4].into()),
            nonce: Some(5),
            storage: patch.clone(),
            move_precompile_to: None,
        };
        let of_sender = executor::AccountOverride { code: None, storage: StorageOverride::Keep, ..whole.clone() };
        let of_receiver = executor::AccountOverride { balance: None, nonce: None, ..whole.clone() };
        let flat = EstimateGasObject::Flat(account.clone());
        let map = EstimateGasObject::Accounts(
            [(address(9), AccountOverride { state: slots(), state_diff: None, ..account })].into(),
        );
        let cases = [
            (None, 1, 2, vec![]),
            (Some(map), 1, 2, vec![(9, executor::AccountOverride { storage: replace, ..whole.clone() })]),
            (Some(flat.clone()), 1, 2, vec![(1, of_sender), (2, of_receiver)]),
            (Some(flat), 1, 1, vec![(1, whole)]),
        ];
        let world = World::new();
        for (object, from, to, expected) in cases {
            *world.executor.estimate.lock() = Some(Ok(EstimateOutcome::Gas(21_000)));
            let transaction = TransactionCall {
                from: Some(Data(address(from))),
                to: Some(Data(address(to))),
                ..TransactionCall::default()
            };
            let input = EstimateGasInput { object, transaction };
            let output = world.node.estimate_gas(&Context::unbounded(), input.clone()).unwrap();
            assert_eq!(output.estimated_gas, Quantity(21_000));
            let seen = world.executor.seen.lock().take().unwrap();
            let expected: StateOverrides =
                expected.into_iter().map(|(account, change)| (address(account), change)).collect();
            assert_eq!(seen.call.overrides, expected, "{input:?}");
        }
    }
}
