//! Net gas metering of SSTORE in Constantinople (EIP-1283).
//!
//! Petersburg removed it before it reached mainnet, and Istanbul reintroduced it with other numbers (EIP-2200), which
//! is all that revm implements. The two differ in the gas cost of a read, in the values derived from it, and in
//! EIP-2200's minimum of remaining gas.

use crate::machine::context::{EvmContext, Instructions};
use revm::bytecode::opcode;
use revm::context::CfgEnv;
use revm::context_interface::Host;
use revm::context_interface::cfg::{GasId, GasParams};
use revm::interpreter::instructions::host::sstore_with_gas_accounting;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{Instruction, InstructionContext, InstructionExecResult, InstructionResult};
use revm::primitives::hardfork::SpecId;

/// Gas of a store that does not change the slot, or changes a slot that was already changed.
const NO_CHANGE: u64 = 200;
/// Gas of a store into a slot that was zero before the transaction.
const SET: u64 = 20_000;
/// Gas of a store into a slot that was not zero before the transaction.
const RESET: u64 = 5_000;

/// Sets the gas parameters of SSTORE.
pub(crate) fn configure(cfg: &mut CfgEnv) {
    let mut params = GasParams::new_spec(SpecId::PETERSBURG);
    params.override_gas([
        (GasId::sstore_static(), NO_CHANGE),
        (GasId::sstore_set_without_load_cost(), SET - NO_CHANGE),
        (GasId::sstore_reset_without_cold_load_cost(), RESET - NO_CHANGE),
        (GasId::sstore_set_refund(), SET - NO_CHANGE),
        (GasId::sstore_reset_refund(), RESET - NO_CHANGE),
    ]);
    cfg.set_gas_params(params);
}

/// Replaces SSTORE with a version that has net gas metering.
pub(crate) fn install(instructions: &mut Instructions<'_>) {
    instructions.instruction_table_mut()[usize::from(opcode::SSTORE)] = Instruction::new(sstore);
}

fn sstore(context: InstructionContext<'_, EvmContext<'_>, EthInterpreter>) -> InstructionExecResult {
    const NET: bool = true;
    sstore_with_gas_accounting(context, |context, _address, store| {
        let params = context.host.gas_params();
        let (cost, refund) =
            (params.sstore_dynamic_gas(NET, &store.data, store.is_cold), params.sstore_refund(NET, &store.data));
        let gas = &mut context.interpreter.gas;
        if !gas.record_regular_cost(cost) {
            return Err(InstructionResult::OutOfGas);
        }
        gas.record_refund(refund);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use revm::context_interface::context::SStoreResult;
    use revm::primitives::U256;

    /// The test cases of EIP-1283: the original value, the values stored in turn, the gas without that of the pushes,
    /// and the refund.
    #[test]
    fn meets_the_test_cases_of_the_eip() {
        let cases: [(u64, &[u64], u64, i64); 17] = [
            (0, &[0, 0], 400, 0),
            (0, &[0, 1], 20_200, 0),
            (0, &[1, 0], 20_200, 19_800),
            (0, &[1, 2], 20_200, 0),
            (0, &[1, 1], 20_200, 0),
            (1, &[0, 0], 5_200, 15_000),
            (1, &[0, 1], 5_200, 4_800),
            (1, &[0, 2], 5_200, 0),
            (1, &[2, 0], 5_200, 15_000),
            (1, &[2, 3], 5_200, 0),
            (1, &[2, 1], 5_200, 4_800),
            (1, &[2, 2], 5_200, 0),
            (1, &[1, 0], 5_200, 15_000),
            (1, &[1, 2], 5_200, 0),
            (1, &[1, 1], 400, 0),
            (0, &[1, 0, 1], 40_200, 19_800),
            (1, &[0, 1, 0], 10_200, 19_800),
        ];
        let mut cfg = CfgEnv::new();
        configure(&mut cfg);
        let params = cfg.gas_params;
        for (original, stores, gas, refund) in cases {
            let mut present = original;
            let mut sum = (0, 0);
            for &new in stores {
                let store = SStoreResult {
                    original_value: U256::from(original),
                    present_value: U256::from(present),
                    new_value: U256::from(new),
                };
                sum.0 += params.sstore_static_gas() + params.sstore_dynamic_gas(true, &store, false);
                sum.1 += params.sstore_refund(true, &store);
                present = new;
            }
            assert_eq!(sum, (gas, refund), "{original}, then {stores:?}");
        }
    }
}
