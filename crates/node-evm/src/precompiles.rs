//! Precompiled contracts, some of which a call may have replaced.

use crate::machine::EvmContext;
use revm::context::CfgEnv;
use revm::handler::{EthPrecompiles, PrecompileProvider};
use revm::interpreter::{CallInputs, InterpreterResult};
use revm::primitives::hardfork::SpecId;
use revm::primitives::{Address, AddressSet};

/// The precompiled contracts of a fork, without those whose code a call overrides. All their addresses stay warm.
pub(crate) struct Precompiles {
    ethereum: EthPrecompiles,
    /// A handful at most, and nearly always none.
    replaced: Vec<Address>,
}

impl Precompiles {
    /// Those of a fork.
    pub(crate) fn new(spec: SpecId) -> Self {
        Self { ethereum: EthPrecompiles::new(spec), replaced: Vec::new() }
    }

    /// Lets the account at `address` run its own code.
    pub(crate) fn replace(&mut self, address: Address) {
        if self.ethereum.contains(&address) {
            self.replaced.push(address);
        }
    }
}

impl<'a> PrecompileProvider<EvmContext<'a>> for Precompiles {
    type Output = InterpreterResult;

    fn set_spec(&mut self, spec: <CfgEnv as revm::context::Cfg>::Spec) -> bool {
        PrecompileProvider::<EvmContext<'a>>::set_spec(&mut self.ethereum, spec)
    }

    fn run(&mut self, context: &mut EvmContext<'a>, inputs: &CallInputs) -> Result<Option<InterpreterResult>, String> {
        if self.replaced.contains(&inputs.bytecode_address) {
            return Ok(None);
        }
        self.ethereum.run(context, inputs)
    }

    fn warm_addresses(&self) -> &AddressSet {
        self.ethereum.warm_addresses()
    }

    fn contains(&self, address: &Address) -> bool {
        self.ethereum.contains(address) && !self.replaced.contains(address)
    }
}
