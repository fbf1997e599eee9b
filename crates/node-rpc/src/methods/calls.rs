//! Calls, gas estimates, and simulations of blocks.

use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use crate::wire::{BlockOverrides, BlockParam, CallArguments, Hex, Object, SimulatedBlock, Simulation, StateOverrides};
use node_core::cost::Cost;
use node_core::executor::Call;
use node_types::wire::{BytesData, Data};

type CallParameters = (Object<CallArguments>, BlockParam, Option<StateOverrides>, Option<Object<BlockOverrides>>);

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "eth_call",
            &["call", "block?", "stateOverrides?", "blockOverrides?"],
            "Executes a message call and returns its output, without changing anything.",
            |scope, parameters: CallParameters| -> Result<BytesData, RpcError> {
                let (call, block) = read(scope, parameters)?;
                Ok(Data(scope.node.call(scope.context, &call, block.0)?))
            },
        )
        .costing(|_, parameters| Cost::of_call(parameters.len())),
        Method::new(
            "eth_estimateGas",
            &["call", "block?", "stateOverrides?", "blockOverrides?"],
            "A gas limit with which a transaction succeeds.",
            |scope, parameters: CallParameters| {
                let (call, block) = read(scope, parameters)?;
                Ok(Hex(scope.node.estimate_gas(scope.context, &call, block.0)?))
            },
        )
        .costing(|_, parameters| Cost::of_call(parameters.len())),
        Method::new(
            "eth_simulateV1",
            &["simulation", "block?"],
            "Simulates blocks on top of a block, without storing them.",
            |scope, (Object(simulation), block): (Object<Simulation>, BlockParam)| {
                let whole = simulation.whole();
                let simulation = simulation.read(scope.node.spec().chain_id)?;
                let blocks = scope.node.simulate(scope.context, simulation, block.0)?;
                Ok(blocks.into_iter().map(|block| SimulatedBlock::of(block, whole)).collect::<Vec<_>>())
            },
        )
        .code(),
    ]
}

fn read(scope: Scope<'_>, (call, block, state, overrides): CallParameters) -> Result<(Call, BlockParam), RpcError> {
    let overrides = overrides.map(|Object(overrides)| overrides);
    Ok((call.0.read_with(scope.node.spec().chain_id, state, overrides)?, block))
}
