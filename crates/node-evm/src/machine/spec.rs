//! revm's configuration and block environment.

use crate::convert::{ToEvm, saturating_price};
use crate::machine::eip1283;
use node_core::protocol::{ChainSpec, Fork, fees};
use node_types::U256;
use node_types::consensus::Header;
use revm::context::{BlockEnv, CfgEnv};
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::primitives::{self as evm, hardfork::SpecId};

/// Returns revm's identifier for the rules of a fork. Forks with the same EVM share one. revm implements
/// [`Fork::Constantinople`] except for EIP-1283, which the module `eip1283` adds.
pub(crate) fn spec_id(fork: Fork) -> SpecId {
    match fork {
        Fork::Frontier => SpecId::FRONTIER,
        Fork::Homestead => SpecId::HOMESTEAD,
        Fork::TangerineWhistle => SpecId::TANGERINE,
        Fork::SpuriousDragon => SpecId::SPURIOUS_DRAGON,
        Fork::Byzantium => SpecId::BYZANTIUM,
        Fork::Constantinople | Fork::Petersburg => SpecId::PETERSBURG,
        Fork::Istanbul | Fork::MuirGlacier => SpecId::ISTANBUL,
        Fork::Berlin => SpecId::BERLIN,
        Fork::London | Fork::ArrowGlacier | Fork::GrayGlacier => SpecId::LONDON,
        Fork::Paris => SpecId::MERGE,
        Fork::Shanghai => SpecId::SHANGHAI,
        Fork::Cancun => SpecId::CANCUN,
        Fork::Prague => SpecId::PRAGUE,
        Fork::Osaka => SpecId::OSAKA,
    }
}

/// Returns revm's configuration for `fork` on the chain `spec`.
pub(crate) fn configuration(spec: &ChainSpec, fork: Fork) -> CfgEnv {
    let mut cfg = CfgEnv::new_with_spec(spec_id(fork)).with_chain_id(spec.chain_id);
    // The limits on blobs depend on the schedule of the chain and are checked when the block is executed.
    cfg.clear_max_blobs_per_tx();
    let relaxed = spec.relaxations;
    if let Some(limit) = relaxed.code_size_limit {
        cfg.limit_contract_code_size = Some(usize::try_from(limit).unwrap_or(usize::MAX));
        cfg.limit_contract_initcode_size = spec.init_code_limit(Fork::Shanghai);
    }
    if relaxed.no_transaction_gas_cap {
        cfg.tx_gas_limit_cap = Some(u64::MAX);
    }
    if fork == Fork::Constantinople {
        eip1283::configure(&mut cfg);
    }
    cfg
}

/// Returns revm's environment for the block `header`.
pub(crate) fn environment(spec: &ChainSpec, fork: Fork, header: &Header) -> BlockEnv {
    BlockEnv {
        number: evm::U256::from(header.number),
        beneficiary: header.beneficiary.to_evm(),
        timestamp: evm::U256::from(header.timestamp),
        gas_limit: header.gas_limit,
        basefee: header.base_fee_per_gas.unwrap_or(0),
        difficulty: header.difficulty.to_evm(),
        prevrandao: (fork >= Fork::Paris).then(|| header.mix_hash.to_evm()),
        blob_excess_gas_and_price: (fork >= Fork::Cancun).then(|| BlobExcessGasAndPrice {
            excess_blob_gas: header.excess_blob_gas.unwrap_or(0),
            blob_gasprice: saturating_price(fees::blob_base_fee(spec, header).unwrap_or(U256::one())),
        }),
        slot_num: 0,
    }
}
