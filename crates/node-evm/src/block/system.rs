//! Calls to system contracts at the start and the end of a block.

use crate::convert::{ToEvm, ToNode};
use crate::machine::Machine;
use node_core::backend::BackendError;
use node_core::executor::{ExecutionError, NamedContract};
use node_core::protocol::{ChainSpec, Fork};
use node_types::consensus::Header;
use node_types::{Address, Bytes, H160, H256, U256};
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

/// The hash of the code at [`BEACON_ROOTS_ADDRESS`] on mainnet.
pub(crate) const BEACON_ROOTS_CODE: H256 = H256([
    0xf5, 0x7a, 0xcd, 0x40, 0x25, 0x98, 0x72, 0x60, 0x6d, 0x76, 0x19, 0x7e, 0xf0, 0x52, 0xf3, 0xd3, 0x55, 0x88, 0xda,
    0xdf, 0x91, 0x9e, 0xe1, 0xf0, 0xe3, 0xcb, 0x9b, 0x62, 0xd3, 0xf4, 0xb0, 0x2c,
]);

/// The hash of the code at [`HISTORY_STORAGE_ADDRESS`] on mainnet.
pub(crate) const HISTORY_STORAGE_CODE: H256 = H256([
    0x6e, 0x49, 0xe6, 0x67, 0x82, 0x03, 0x7c, 0x05, 0x55, 0x89, 0x78, 0x70, 0xe2, 0x9f, 0xa5, 0xe5, 0x52, 0xda, 0xf4,
    0x71, 0x95, 0x52, 0x13, 0x1a, 0x0a, 0xbc, 0xe7, 0x79, 0xda, 0xec, 0x0a, 0x5d,
]);

/// Number of blocks of which these two contracts have the values.
const RING: u64 = 8_191;

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
        let slot = header.timestamp % RING;
        let writes = [(slot, header.timestamp.into()), (slot + RING, U256::from_big_endian(root.as_bytes()))];
        notify(machine, BEACON_ROOTS_ADDRESS, root, BEACON_ROOTS_CODE, &writes)?;
    }
    if fork >= Fork::Prague {
        let parent = header.parent_hash;
        let writes = [(header.number.saturating_sub(1) % RING, U256::from_big_endian(parent.as_bytes()))];
        notify(machine, HISTORY_STORAGE_ADDRESS, parent, HISTORY_STORAGE_CODE, &writes)?;
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
///
/// If the contract has the code with the hash `code`, it writes `writes`, whatever its slots contained. So if their values
/// cannot be had, as on a fork that is offline, the slots are written without a call.
fn notify(
    machine: &mut Machine<'_>,
    contract: Address,
    input: H256,
    code: H256,
    writes: &[(u64, U256)],
) -> Result<(), ExecutionError> {
    let Some(code_hash) = code_hash(machine, contract)? else { return Ok(()) };
    match machine.system_call(contract, input.as_bytes().into()) {
        Err(ExecutionError::Backend(BackendError::Unobtainable(_))) if code_hash == code => {
            for (slot, value) in writes {
                let slot = U256::from(*slot).to_evm();
                machine.db().overwrite_slot(contract.to_evm(), slot, value.to_evm())?;
            }
            Ok(())
        }
        called => called.map(drop),
    }
}

/// Calls a contract whose failure or absence invalidates the block.
fn collect(machine: &mut Machine<'_>, contract: Address) -> Result<Bytes, ExecutionError> {
    let broken = |reason| ExecutionError::SystemContract { address: contract, reason };
    if code_hash(machine, contract)?.is_none() {
        return Err(broken("it has no code".into()));
    }
    match machine.system_call(contract, Bytes::new())? {
        ExecutionResult::Success { output, .. } => Ok(output.into_data().to_node()),
        ExecutionResult::Revert { .. } => Err(broken("its call reverted".into())),
        ExecutionResult::Halt { reason, .. } => Err(broken(format!("its call failed: {}", machine.halt_text(reason)))),
    }
}

/// Returns the hash of the code of an account, or `None` if it has no code.
fn code_hash(machine: &mut Machine<'_>, contract: Address) -> Result<Option<H256>, ExecutionError> {
    let account = machine.db().account(contract.to_evm())?;
    Ok(account.filter(|account| !account.is_empty_code_hash()).map(|account| account.code_hash.to_node()))
}
