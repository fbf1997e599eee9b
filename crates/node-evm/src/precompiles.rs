//! Precompiles, some of which a call may have replaced or moved.

use crate::convert::ToNode;
use crate::evm_context::EvmContext;
use node_core::executor::NamedContract;
use revm::context::CfgEnv;
use revm::handler::{EthPrecompiles, PrecompileProvider};
use revm::interpreter::{CallInputs, InterpreterResult};
use revm::precompile::Precompile;
use revm::primitives::hardfork::SpecId;
use revm::primitives::{Address, AddressSet};

/// The precompiles of a fork, with the overrides of a call applied. The fork's addresses stay warm in any case.
pub(crate) struct Precompiles {
    ethereum: EthPrecompiles,
    /// Addresses whose precompile is disabled. Nearly always empty.
    replaced: Vec<Address>,
    /// New and original address of each moved precompile. The last entry for a new address applies.
    moved: Vec<(Address, Address)>,
}

impl Precompiles {
    /// The precompiles of a fork.
    pub(crate) fn new(spec: SpecId) -> Self {
        Self { ethereum: EthPrecompiles::new(spec), replaced: Vec::new(), moved: Vec::new() }
    }

    /// Disables the precompile at `address`, so that the account runs its own code.
    pub(crate) fn replace(&mut self, address: Address) {
        if self.ethereum.contains(&address) {
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
        let here = || (self.ethereum.contains(address) && !self.replaced.contains(address)).then_some(*address);
        moved.or_else(here)
    }
}

/// Returns the precompiles of a fork with their names, sorted by address.
pub(crate) fn named(spec: SpecId) -> Vec<NamedContract> {
    let mut contracts: Vec<_> = EthPrecompiles::new(spec).precompiles.inner().values().collect();
    contracts.sort_unstable_by_key(|contract| *contract.address());
    let named = |contract: &&'static Precompile| NamedContract {
        name: contract.id().name(),
        address: contract.address().to_node(),
    };
    contracts.iter().map(named).collect()
}

impl<'a> PrecompileProvider<EvmContext<'a>> for Precompiles {
    type Output = InterpreterResult;

    fn set_spec(&mut self, spec: <CfgEnv as revm::context::Cfg>::Spec) -> bool {
        PrecompileProvider::<EvmContext<'a>>::set_spec(&mut self.ethereum, spec)
    }

    fn run(&mut self, context: &mut EvmContext<'a>, inputs: &CallInputs) -> Result<Option<InterpreterResult>, String> {
        match self.origin(&inputs.bytecode_address) {
            Some(origin) if origin == inputs.bytecode_address => self.ethereum.run(context, inputs),
            Some(origin) => {
                let inputs = CallInputs { bytecode_address: origin, ..inputs.clone() };
                self.ethereum.run(context, &inputs)
            }
            None => Ok(None),
        }
    }

    fn warm_addresses(&self) -> &AddressSet {
        self.ethereum.warm_addresses()
    }

    fn contains(&self, address: &Address) -> bool {
        self.is_at(address)
    }
}
