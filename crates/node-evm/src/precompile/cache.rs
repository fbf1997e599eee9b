//! A cache of the results of expensive precompiles.
//!
//! The same signature or proof is often verified several times: by each run of an estimate, and when a transaction is
//! mined, imported or traced after it was simulated.

use crate::machine::context::{self as evm_context, EvmContext};
use crate::machine::halt;
use node_core::backend::CacheUse;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use revm::context::{Cfg, CfgEnv};
use revm::handler::{EthPrecompiles, PrecompileProvider, precompile_output_to_interpreter_result};
use revm::interpreter::{CallInputs, InterpreterResult};
use revm::precompile::{PrecompileHalt, PrecompileId, PrecompileOutput};
use revm::primitives::hardfork::SpecId;
use revm::primitives::{Address, AddressSet, Bytes};
use std::sync::Arc;

/// Ethereum's precompiles, with a cache.
pub(crate) struct CachedPrecompiles {
    ethereum: EthPrecompiles,
    results: Arc<PrecompileResults>,
}

/// Results of successful calls. They depend only on the fork, the precompile and its input.
#[derive(Debug)]
pub(crate) struct PrecompileResults(Cache<Call, Success, Memory>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Call {
    spec: SpecId,
    precompile: Address,
    input: Bytes,
}

#[derive(Clone, Debug)]
struct Success {
    gas_used: u64,
    output: Bytes,
}

/// Size of the cache in bytes.
const CAPACITY: u64 = 2 << 20;

/// Longest input in bytes whose result is cached, enough for a proof with ten pairings.
const LONGEST_INPUT: usize = 2_048;

/// Returns whether a call takes much longer than a lookup.
fn is_expensive(precompile: &PrecompileId) -> bool {
    use PrecompileId::*;
    match precompile {
        EcRec | P256Verify | KzgPointEvaluation | Bn254Mul | Bn254Pairing => true,
        Bls12G1Add | Bls12G1Msm | Bls12G2Add | Bls12G2Msm | Bls12Pairing => true,
        Bls12MapFpToGp1 | Bls12MapFp2ToGp2 => true,
        Sha256 | Ripemd160 | Identity | ModExp | Bn254Add | Blake2F | Custom(_) => false,
    }
}

/// Returns whether a call takes no more than a few dozen microseconds.
fn is_quick(precompile: &PrecompileId, length: usize) -> bool {
    use PrecompileId::*;
    length <= LONGEST_INPUT && matches!(precompile, EcRec | Sha256 | Ripemd160 | Identity | Bn254Add)
}

impl CachedPrecompiles {
    pub(crate) fn new(spec: SpecId, results: Arc<PrecompileResults>) -> Self {
        Self { ethereum: EthPrecompiles::new(spec), results }
    }
}

impl<'a> PrecompileProvider<EvmContext<'a>> for CachedPrecompiles {
    type Output = InterpreterResult;

    fn set_spec(&mut self, spec: <CfgEnv as Cfg>::Spec) -> bool {
        PrecompileProvider::<EvmContext<'a>>::set_spec(&mut self.ethereum, spec)
    }

    fn run(&mut self, context: &mut EvmContext<'a>, inputs: &CallInputs) -> Result<Option<InterpreterResult>, String> {
        let Self { ethereum, results } = self;
        let Some(contract) = ethereum.precompiles.get(&inputs.bytecode_address) else { return Ok(None) };
        let id = contract.id();
        let (precompile, length) = (inputs.bytecode_address, inputs.input.len());
        let call = (length <= LONGEST_INPUT && is_expensive(id)).then(|| Call {
            spec: ethereum.spec,
            precompile,
            input: inputs.input.bytes(context),
        });
        if let Some(Success { gas_used, output }) = call.as_ref().and_then(|call| results.0.get(call)) {
            let output = PrecompileOutput::new(gas_used, output, inputs.reservoir);
            return Ok(Some(precompile_output_to_interpreter_result(output, inputs.gas_limit)));
        }
        if let Some(refused) = evm_context::refused(context, inputs, is_quick(id, length)) {
            return Ok(Some(refused));
        }
        let output = contract.execute(&inputs.input.as_bytes(context), inputs.gas_limit, inputs.reservoir);
        let output = output.map_err(|error| error.to_string())?;
        if let Some(halt) = output.halt_reason() {
            let halt = match halt {
                // geth demands more gas for such lengths than there can be.
                PrecompileHalt::ModexpEip7823LimitSize if ethereum.spec < SpecId::OSAKA => PrecompileHalt::OutOfGas,
                halt => halt.clone(),
            };
            context.chain.precompile_failure = halt::precompile_text(id, halt);
        }
        let result = precompile_output_to_interpreter_result(output, inputs.gas_limit);
        if let Some(call) = call.filter(|_| result.is_ok()) {
            let gas_used = inputs.gas_limit - result.gas.remaining();
            results.0.insert(call, Success { gas_used, output: result.output.clone() });
        }
        Ok(Some(result))
    }

    fn warm_addresses(&self) -> &AddressSet {
        self.ethereum.warm_addresses()
    }
}

impl PrecompileResults {
    /// Returns the size of the cache and its hits and misses.
    pub(crate) fn usage(&self) -> CacheUse {
        let Self(cache) = self;
        CacheUse {
            name: "precompile_results",
            bytes: cache.weight(),
            capacity: cache.capacity(),
            hits: cache.hits(),
            misses: cache.misses(),
        }
    }
}

impl Default for PrecompileResults {
    fn default() -> Self {
        const TYPICAL_ENTRY: u64 = 512;
        Self(Cache::with_weighter((CAPACITY / TYPICAL_ENTRY) as usize, CAPACITY, Memory))
    }
}

#[derive(Clone, Debug)]
struct Memory;

impl Weighter<Call, Success> for Memory {
    fn weight(&self, call: &Call, success: &Success) -> u64 {
        // 64 bytes approximate the memory of an entry itself.
        (call.input.len() + success.output.len() + size_of::<(Call, Success)>() + 64) as u64
    }
}
