//! Precompiles, some of which a call may have replaced or moved.

use crate::convert::{ToEvm, ToNode};
use crate::evm_context::EvmContext;
use crate::extension::{Precompile, PrecompileCall, PrecompileMap, PrecompileOutcome};
use node_core::executor::NamedContract;
use revm::context::CfgEnv;
use revm::handler::{EthPrecompiles, PrecompileProvider, precompile_output_to_interpreter_result};
use revm::interpreter::{CallInputs, InterpreterResult};
use revm::precompile::{Precompile as EvmPrecompile, PrecompileHalt, PrecompileOutput};
use revm::primitives::hardfork::SpecId;
use revm::primitives::{Address, AddressSet};
use std::sync::Arc;

/// The precompiles of a fork, with the overrides of a call applied. The fork's addresses stay warm in any case.
pub(crate) struct Precompiles {
    ethereum: EthPrecompiles,
    /// Addresses whose precompile is disabled. Nearly always empty.
    replaced: Vec<Address>,
    /// New and original address of each moved precompile. The last entry for a new address applies.
    moved: Vec<(Address, Address)>,
    /// The caller's own, which replace those of the fork.
    custom: Arc<PrecompileMap>,
    /// All addresses that are warm; `None` if they are the fork's.
    warm: Option<AddressSet>,
}

impl Precompiles {
    /// The precompiles of a fork.
    pub(crate) fn new(spec: SpecId, custom: Arc<PrecompileMap>) -> Self {
        let ethereum = EthPrecompiles::new(spec);
        let mut precompiles = Self { ethereum, replaced: Vec::new(), moved: Vec::new(), custom, warm: None };
        precompiles.warm_custom();
        precompiles
    }

    /// Adds the caller's precompiles to the addresses that are warm.
    fn warm_custom(&mut self) {
        if !self.custom.is_empty() {
            let own = self.custom.keys().map(ToEvm::to_evm);
            self.warm = Some(self.ethereum.warm_addresses().iter().copied().chain(own).collect());
        }
    }

    /// Whether there is a precompile at `address` before overrides.
    fn is_original(&self, address: &Address) -> bool {
        self.ethereum.contains(address) || self.custom.contains_key(&address.to_node())
    }

    /// Disables the precompile at `address`, so that the account runs its own code.
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

    /// Returns the original address of the precompile that is at `address` now.
    fn origin(&self, address: &Address) -> Option<Address> {
        let moved = self.moved.iter().rev().find(|(to, _)| to == address).map(|(_, from)| *from);
        let here = || (self.is_original(address) && !self.replaced.contains(address)).then_some(*address);
        moved.or_else(here)
    }
}

/// Runs a precompile of the caller.
fn run_custom(precompile: &dyn Precompile, context: &EvmContext<'_>, inputs: &CallInputs) -> InterpreterResult {
    let input = inputs.input.as_bytes(context);
    let call = PrecompileCall {
        input: &input,
        gas_limit: inputs.gas_limit,
        caller: inputs.caller.to_node(),
        value: inputs.value.get().to_node(),
        is_static: inputs.is_static,
    };
    let reservoir = inputs.reservoir;
    let output = match precompile.run(&call) {
        PrecompileOutcome::Returned { gas_used, output } => PrecompileOutput::new(gas_used, output.to_evm(), reservoir),
        PrecompileOutcome::Reverted { gas_used, output } => {
            PrecompileOutput::revert(gas_used, output.to_evm(), reservoir)
        }
        PrecompileOutcome::OutOfGas => PrecompileOutput::halt(PrecompileHalt::OutOfGas, reservoir),
        PrecompileOutcome::Failed(reason) => PrecompileOutput::halt(PrecompileHalt::Other(reason.into()), reservoir),
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

    fn set_spec(&mut self, spec: <CfgEnv as revm::context::Cfg>::Spec) -> bool {
        let changed = PrecompileProvider::<EvmContext<'a>>::set_spec(&mut self.ethereum, spec);
        self.warm_custom();
        changed
    }

    fn run(&mut self, context: &mut EvmContext<'a>, inputs: &CallInputs) -> Result<Option<InterpreterResult>, String> {
        let origin = self.origin(&inputs.bytecode_address);
        if let Some(precompile) = origin.and_then(|origin| self.custom.get(&origin.to_node())) {
            return Ok(Some(run_custom(&**precompile, context, inputs)));
        }
        match origin {
            Some(origin) if origin == inputs.bytecode_address => self.ethereum.run(context, inputs),
            Some(origin) => {
                let inputs = CallInputs { bytecode_address: origin, ..inputs.clone() };
                self.ethereum.run(context, &inputs)
            }
            None => Ok(None),
        }
    }

    fn warm_addresses(&self) -> &AddressSet {
        self.warm.as_ref().unwrap_or_else(|| self.ethereum.warm_addresses())
    }

    fn contains(&self, address: &Address) -> bool {
        self.is_at(address)
    }
}
