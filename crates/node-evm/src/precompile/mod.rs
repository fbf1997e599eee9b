//! Precompiles, including those that a call has replaced or moved.

pub(crate) mod cache;

use crate::convert::{ToEvm, ToNode};
use crate::extension::{Precompile, PrecompileCall, PrecompileMap, PrecompileOutcome};
use crate::machine::context::{self as evm_context, EvmContext};
use crate::precompile::cache::CachedPrecompiles;
use node_core::executor::NamedContract;
use revm::context::CfgEnv;
use revm::handler::{EthPrecompiles, PrecompileProvider, precompile_output_to_interpreter_result};
use revm::interpreter::{CallInputs, InterpreterResult};
use revm::precompile::{Precompile as EvmPrecompile, PrecompileHalt, PrecompileOutput};
use revm::primitives::hardfork::SpecId;
use revm::primitives::{Address, AddressSet};
use std::sync::Arc;

/// The precompiles of a fork, with the overrides of a call applied. The fork's original addresses stay warm.
pub(crate) struct Precompiles {
    provided: CachedPrecompiles,
    /// Addresses whose precompile is disabled. Nearly always empty.
    replaced: Vec<Address>,
    /// New and original address of each moved precompile. The last entry for a new address applies.
    moved: Vec<(Address, Address)>,
    /// Custom precompiles, which replace the provided ones.
    custom: Arc<PrecompileMap>,
    /// All warm addresses; `None` if they are those of the provided precompiles.
    warm: Option<AddressSet>,
}

impl Precompiles {
    pub(crate) fn new(provided: CachedPrecompiles, custom: Arc<PrecompileMap>) -> Self {
        let mut precompiles = Self { provided, replaced: Vec::new(), moved: Vec::new(), custom, warm: None };
        if !precompiles.custom.is_empty() {
            let own = precompiles.custom.keys().map(ToEvm::to_evm);
            precompiles.warm = Some(precompiles.provided_addresses().iter().copied().chain(own).collect());
        }
        precompiles
    }

    fn provided_addresses(&self) -> &AddressSet {
        PrecompileProvider::<EvmContext<'_>>::warm_addresses(&self.provided)
    }

    /// Returns whether there is a precompile at `address` before overrides.
    fn is_original(&self, address: &Address) -> bool {
        PrecompileProvider::<EvmContext<'_>>::contains(&self.provided, address)
            || self.custom.contains_key(&address.to_node())
    }

    /// Disables the precompile at `address`; the account then executes its own code.
    pub(crate) fn replace(&mut self, address: Address) {
        if self.is_original(&address) {
            self.replaced.push(address);
        }
    }

    /// Moves the precompile at `from` to `to`, where it replaces any code.
    pub(crate) fn relocate(&mut self, from: Address, to: Address) {
        self.replaced.push(from);
        self.moved.push((to, from));
    }

    /// Returns whether there is a precompile at `address`.
    pub(crate) fn is_at(&self, address: &Address) -> bool {
        self.origin(address).is_some()
    }

    /// Returns the original address of the precompile that is now at `address`, or `None` if there is none.
    fn origin(&self, address: &Address) -> Option<Address> {
        let moved = self.moved.iter().rev().find(|(to, _)| to == address).map(|(_, from)| *from);
        let here = || (self.is_original(address) && !self.replaced.contains(address)).then_some(*address);
        moved.or_else(here)
    }
}

fn run_custom(precompile: &dyn Precompile, context: &mut EvmContext<'_>, inputs: &CallInputs) -> InterpreterResult {
    let input = inputs.input.bytes(context);
    let outcome = precompile.run(PrecompileCall {
        input: &input,
        gas_limit: inputs.gas_limit,
        caller: inputs.caller.to_node(),
        address: inputs.target_address.to_node(),
        value: inputs.value.get().to_node(),
        is_static: inputs.is_static,
        context: &mut *context,
    });
    let reservoir = inputs.reservoir;
    let output = match outcome {
        PrecompileOutcome::Returned { gas_used, output } => PrecompileOutput::new(gas_used, output.to_evm(), reservoir),
        PrecompileOutcome::Reverted { gas_used, output } => {
            PrecompileOutput::revert(gas_used, output.to_evm(), reservoir)
        }
        PrecompileOutcome::OutOfGas => PrecompileOutput::halt(PrecompileHalt::OutOfGas, reservoir),
        PrecompileOutcome::Failed(reason) => {
            context.chain.precompile_failure = reason.into();
            PrecompileOutput::halt(PrecompileHalt::Other("".into()), reservoir)
        }
        PrecompileOutcome::NoState(error) => return evm_context::abort(context, inputs, error),
    };
    precompile_output_to_interpreter_result(output, inputs.gas_limit)
}

/// Returns the precompiles of a fork with their names, sorted by address.
pub(crate) fn named(spec: SpecId) -> Vec<NamedContract> {
    let mut contracts: Vec<_> = EthPrecompiles::new(spec).precompiles.inner().values().collect();
    contracts.sort_unstable_by_key(|contract| *contract.address());
    let named = |contract: &&'static EvmPrecompile| NamedContract {
        name: contract.id().name(),
        address: contract.address().to_node(),
    };
    contracts.iter().map(named).collect()
}

impl<'a> PrecompileProvider<EvmContext<'a>> for Precompiles {
    type Output = InterpreterResult;

    /// Returns false, because the fork of a block does not change.
    fn set_spec(&mut self, _: <CfgEnv as revm::context::Cfg>::Spec) -> bool {
        false
    }

    fn run(&mut self, context: &mut EvmContext<'a>, inputs: &CallInputs) -> Result<Option<InterpreterResult>, String> {
        let origin = self.origin(&inputs.bytecode_address);
        if let Some(precompile) = origin.and_then(|origin| self.custom.get(&origin.to_node())) {
            // How long it takes is unknown.
            let refused = evm_context::refused(context, inputs, false);
            return Ok(Some(refused.unwrap_or_else(|| run_custom(&**precompile, context, inputs))));
        }
        match origin {
            Some(origin) if origin == inputs.bytecode_address => self.provided.run(context, inputs),
            Some(origin) => {
                let inputs = CallInputs { bytecode_address: origin, ..inputs.clone() };
                self.provided.run(context, &inputs)
            }
            None => Ok(None),
        }
    }

    fn warm_addresses(&self) -> &AddressSet {
        self.warm.as_ref().unwrap_or_else(|| self.provided_addresses())
    }

    fn contains(&self, address: &Address) -> bool {
        self.is_at(address)
    }
}
