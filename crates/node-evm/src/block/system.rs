//! Calls to system contracts at the start and the end of a block.

use crate::convert::{ToEvm, ToNode};
use crate::machine::Machine;
use node_core::executor::{ExecutionError, NamedContract};
use node_core::protocol::{ChainSpec, Fork};
use node_types::consensus::Header;
use node_types::{Address, Bytes, H160};
use revm::context::result::ExecutionResult;

/// The contract that stores roots of beacon blocks (EIP-4788).
pub const BEACON_ROOTS_ADDRESS: Address = H160([
    0x00, 0x0f, 0x3d, 0xf6, 0xd7, 0x32, 0x80, 0x7e, 0xf1, 0x31, 0x9f, 0xb7, 0xb8, 0xbb, 0x85, 0x22, 0xd0, 0xbe, 0xac,
    0x02,
]);

/// The contract that stores hashes of recent blocks (EIP-2935).
pub const HISTORY_STORAGE_ADDRESS: Address = H160([
    0x00, 0x00, 0xf9, 0x08, 0x27, 0xf1, 0xc5, 0x3a, 0x10, 0xcb, 0x7a, 0x02, 0x33, 0x5b, 0x17, 0x53, 0x20, 0x00, 0x29,
    0x35,
]);

/// The contract that queues withdrawal requests of validators (EIP-7002).
pub const WITHDRAWAL_REQUESTS_ADDRESS: Address = H160([
    0x00, 0x00, 0x09, 0x61, 0xef, 0x48, 0x0e, 0xb5, 0x5e, 0x80, 0xd1, 0x9a, 0xd8, 0x35, 0x79, 0xa6, 0x4c, 0x00, 0x70,
    0x02,
]);

/// The contract that queues consolidation requests of validators (EIP-7251).
pub const CONSOLIDATION_REQUESTS_ADDRESS: Address = H160([
    0x00, 0x00, 0xbb, 0xdd, 0xc7, 0xce, 0x48, 0x86, 0x42, 0xfb, 0x57, 0x9f, 0x8b, 0x00, 0xf3, 0xa5, 0x90, 0x00, 0x72,
    0x51,
]);

/// Returns the system contracts of `fork` with the names of EIP-7910.
pub(crate) fn contracts(spec: &ChainSpec, fork: Fork) -> Vec<NamedContract> {
    let contracts = [
        ("BEACON_ROOTS_ADDRESS", Some(BEACON_ROOTS_ADDRESS), Fork::Cancun),
        ("CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS", Some(CONSOLIDATION_REQUESTS_ADDRESS), Fork::Prague),
        ("DEPOSIT_CONTRACT_ADDRESS", spec.deposit_contract, Fork::Prague),
        ("HISTORY_STORAGE_ADDRESS", Some(HISTORY_STORAGE_ADDRESS), Fork::Prague),
        ("WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS", Some(WITHDRAWAL_REQUESTS_ADDRESS), Fork::Prague),
    ];
    let active = contracts.into_iter().filter(|(_, _, since)| fork >= *since);
    active.filter_map(|(name, address, _)| Some(NamedContract { name, address: address? })).collect()
}

/// Makes the system calls that precede the first transaction.
pub(crate) fn begin(machine: &mut Machine<'_>, fork: Fork, header: &Header) -> Result<(), ExecutionError> {
    if fork >= Fork::Cancun
        && let Some(root) = header.parent_beacon_block_root
    {
        notify(machine, BEACON_ROOTS_ADDRESS, root.as_bytes().into())?;
    }
    if fork >= Fork::Prague {
        notify(machine, HISTORY_STORAGE_ADDRESS, header.parent_hash.as_bytes().into())?;
    }
    Ok(())
}

/// Dequeues withdrawal requests and returns them concatenated.
pub(crate) fn withdrawal_requests(machine: &mut Machine<'_>) -> Result<Bytes, ExecutionError> {
    collect(machine, WITHDRAWAL_REQUESTS_ADDRESS)
}

/// Dequeues consolidation requests and returns them concatenated.
pub(crate) fn consolidation_requests(machine: &mut Machine<'_>) -> Result<Bytes, ExecutionError> {
    collect(machine, CONSOLIDATION_REQUESTS_ADDRESS)
}

/// Calls a contract. Its failure or absence does not invalidate the block.
fn notify(machine: &mut Machine<'_>, contract: Address, input: Bytes) -> Result<(), ExecutionError> {
    if has_code(machine, contract)? {
        machine.system_call(contract, input)?;
    }
    Ok(())
}

/// Calls a contract whose failure or absence invalidates the block.
fn collect(machine: &mut Machine<'_>, contract: Address) -> Result<Bytes, ExecutionError> {
    let broken = |reason| ExecutionError::SystemContract { address: contract, reason };
    if !has_code(machine, contract)? {
        return Err(broken("it has no code".into()));
    }
    match machine.system_call(contract, Bytes::new())? {
        ExecutionResult::Success { output, .. } => Ok(output.into_data().to_node()),
        ExecutionResult::Revert { .. } => Err(broken("its call reverted".into())),
        ExecutionResult::Halt { reason, .. } => Err(broken(format!("its call failed: {}", machine.halt_text(reason)))),
    }
}

fn has_code(machine: &mut Machine<'_>, contract: Address) -> Result<bool, ExecutionError> {
    let account = machine.db().account(contract.to_evm())?;
    Ok(account.is_some_and(|account| !account.is_empty_code_hash()))
}
