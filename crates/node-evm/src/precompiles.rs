//! Precompiled contracts, some of which a call may have replaced or moved.

use crate::convert::ToNode;
use crate::machine::EvmContext;
use node_core::executor::NamedContract;
use revm::context::CfgEnv;
use revm::handler::{EthPrecompiles, PrecompileProvider};
use revm::interpreter::{CallInputs, InterpreterResult};
use revm::precompile::Precompile;
use revm::primitives::hardfork::SpecId;
use revm::primitives::{Address, AddressSet};

/// The precompiled contracts of a fork, without those whose code a call overrides. All their addresses stay warm.
pub(crate) struct Precompiles {
    ethereum: EthPrecompiles,
    /// A handful at most, and nearly always none.
    replaced: Vec<Address>,
    /// Where contracts are found instead, each with where it was; the last one counts.
    moved: Vec<(Address, Address)>,
}

impl Precompiles {
    /// Those of a fork.
    pub(crate) fn new(spec: SpecId) -> Self {
        Self { ethereum: EthPrecompiles::new(spec), replaced: Vec::new(), moved: Vec::new() }
    }

    /// Lets the account at `address` run its own code.
    pub(crate) fn replace(&mut self, address: Address) {
        if self.ethereum.contains(&address) {
            self.replaced.push(address);
        }
    }

    /// Lets the contract at `from` be found at `to` instead, whatever was there.
    pub(crate) fn relocate(&mut self, from: Address, to: Address) {
        self.replaced.push(from);
        self.moved.push((to, from));
    }

    /// Whether there is one at `address`.
    pub(crate) fn is_at(&self, address: &Address) -> bool {
        self.origin(address).is_some()
    }

    /// Where the fork has the contract that is found at `address` now.
    fn origin(&self, address: &Address) -> Option<Address> {
        let moved = self.moved.iter().rev().find(|(to, _)| to == address).map(|(_, from)| *from);
        let here = || (self.ethereum.contains(address) && !self.replaced.contains(address)).then_some(*address);
        moved.or_else(here)
    }
}

/// The precompiled contracts of a fork with their names, by their addresses.
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
