//! Execution requests (EIP-7685): deposits from logs (EIP-6110), withdrawals and consolidations from system contracts.

use crate::block::system;
use crate::convert::{ToEvm, ToNode};
use crate::machine::Machine;
use node_core::executor::ExecutionError;
use node_core::protocol::ChainSpec;
use node_types::consensus::{Log, Receipt, Request, RequestType};
use node_types::{Bytes, H256};

/// Collects the requests of a block after its last transaction, in ascending order of types, without empty lists.
pub(crate) fn collect(
    machine: &mut Machine<'_>,
    spec: &ChainSpec,
    receipts: &[Receipt],
) -> Result<Vec<Request>, ExecutionError> {
    let lists = [
        (RequestType::Deposit, deposits(spec, receipts)?),
        (RequestType::Withdrawal, system::withdrawal_requests(machine)?),
        (RequestType::Consolidation, system::consolidation_requests(machine)?),
    ];
    let present = lists.into_iter().filter(|(_, data)| !data.is_empty());
    Ok(present.map(|(request_type, data)| Request { request_type, data }).collect())
}

/// Keccak of `DepositEvent(bytes,bytes,bytes,bytes,bytes)`.
const DEPOSIT_EVENT: H256 = H256([
    0x64, 0x9b, 0xbc, 0x62, 0xd0, 0xe3, 0x13, 0x42, 0xaf, 0xea, 0x4e, 0x5c, 0xd8, 0x2d, 0x40, 0x49, 0xe7, 0xe1, 0xee,
    0x91, 0x2f, 0xc0, 0x88, 0x9a, 0xa7, 0x90, 0x80, 0x3b, 0xe3, 0x90, 0x38, 0xc5,
]);

/// Length of the event's data in bytes.
const EVENT_LENGTH: usize = 576;

/// For each field, the offset of its length word in the event's data, and its length, both in bytes: public key,
/// withdrawal credentials, amount, signature, index. The field follows its length word.
const FIELDS: [(usize, usize); 5] = [(160, 48), (256, 32), (320, 8), (384, 96), (512, 8)];

/// Returns the deposits of a block, concatenated.
fn deposits(spec: &ChainSpec, receipts: &[Receipt]) -> Result<Bytes, ExecutionError> {
    let mut deposits = Vec::new();
    receipts.iter().flat_map(|receipt| &receipt.logs).try_for_each(|log| add_deposit(spec, log, &mut deposits))?;
    Ok(deposits.into())
}

/// Fails if a deposit in the logs of a transaction cannot be read. A block with the transaction is then invalid.
pub(crate) fn check(spec: &ChainSpec, logs: &[revm::primitives::Log]) -> Result<(), ExecutionError> {
    let contract = spec.deposit_contract.map(|address| address.to_evm());
    let of_contract = logs.iter().filter(|log| Some(log.address) == contract);
    of_contract.map(ToNode::to_node).try_for_each(|log| add_deposit(spec, &log, &mut Vec::new()))
}

/// Appends the fields of a log, if it is a deposit.
fn add_deposit(spec: &ChainSpec, log: &Log, deposits: &mut Vec<u8>) -> Result<(), ExecutionError> {
    if Some(log.address) != spec.deposit_contract || log.topics.first() != Some(&DEPOSIT_EVENT) {
        return Ok(());
    }
    append_deposit(log, deposits).map_err(|reason| ExecutionError::SystemContract { address: log.address, reason })
}

/// Appends the fields of a deposit event, whose ABI encoding must be that of mainnet's deposit contract.
fn append_deposit(log: &Log, deposits: &mut Vec<u8>) -> Result<(), String> {
    let data = &log.data;
    if data.len() != EVENT_LENGTH {
        return Err(format!("a deposit event has {} bytes, expected {EVENT_LENGTH}", data.len()));
    }
    for (index, (offset, length)) in FIELDS.into_iter().enumerate() {
        if word(data, 32 * index) != Some(offset) {
            return Err(format!("field {index} of a deposit event is not at offset {offset}"));
        }
        if word(data, offset) != Some(length) {
            return Err(format!("field {index} of a deposit event does not have {length} bytes"));
        }
    }
    for (offset, length) in FIELDS {
        deposits.extend_from_slice(&data[offset + 32..offset + 32 + length]);
    }
    Ok(())
}

/// Returns the big-endian word at `offset`, or `None` if it is beyond the end or exceeds 64 bits.
fn word(data: &[u8], offset: usize) -> Option<usize> {
    let (high, low) = data.get(offset..offset + 32)?.split_at(24);
    let low = u64::from_be_bytes(low.try_into().ok()?);
    high.iter().all(|byte| *byte == 0).then_some(usize::try_from(low).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::Address;
    use node_types::consensus::{Bloom, ReceiptOutcome, TransactionType};

    const CONTRACT: Address = node_types::H160([0xdd; 20]);

    fn spec() -> ChainSpec {
        ChainSpec { deposit_contract: Some(CONTRACT), ..ChainSpec::default() }
    }

    fn event() -> Vec<u8> {
        let mut data = vec![0; EVENT_LENGTH];
        for (index, (offset, length)) in FIELDS.into_iter().enumerate() {
            data[32 * index + 30..32 * index + 32].copy_from_slice(&(offset as u16).to_be_bytes());
            data[offset + 31] = length as u8;
            data[offset + 32..offset + 32 + length].fill(index as u8 + 1);
        }
        data
    }

    fn receipt(address: Address, topics: Vec<H256>, data: Vec<u8>) -> Receipt {
        Receipt {
            transaction_type: TransactionType::Legacy,
            outcome: ReceiptOutcome::Success(true),
            cumulative_gas_used: 0,
            logs_bloom: Bloom::ZERO,
            logs: vec![Log { address, topics, data: data.into() }],
        }
    }

    #[test]
    fn the_topic_is_the_hash_of_the_event() {
        assert_eq!(DEPOSIT_EVENT, node_types::keccak256("DepositEvent(bytes,bytes,bytes,bytes,bytes)"));
    }

    #[test]
    fn concatenates_the_fields_without_padding() {
        let made = receipt(CONTRACT, vec![DEPOSIT_EVENT], event());
        let one = [vec![1; 48], vec![2; 32], vec![3; 8], vec![4; 96], vec![5; 8]].concat();
        let other_contract = receipt(Address::zero(), vec![DEPOSIT_EVENT], event());
        let other_event = receipt(CONTRACT, vec![H256::zero()], event());
        let anonymous = receipt(CONTRACT, vec![], event());
        for (name, receipts, expected) in [
            ("none", vec![], vec![]),
            ("one", vec![made.clone()], one.clone()),
            ("two", vec![made.clone(), other_contract.clone(), made], [one.clone(), one].concat()),
            ("others", vec![other_contract, other_event, anonymous], vec![]),
        ] {
            assert_eq!(deposits(&spec(), &receipts).unwrap().to_vec(), expected, "{name}");
        }
    }

    #[test]
    fn rejects_an_event_with_another_layout() {
        let change = |at: usize, to: u8| {
            let mut data = event();
            data[at] = to;
            data
        };
        for (name, data) in [
            ("nothing", vec![]),
            ("a byte less", event()[1..].to_vec()),
            ("a byte more", [event(), vec![0]].concat()),
            ("another offset", change(31, 0)),
            ("an offset with a high byte", change(0, 1)),
            ("another length", change(160 + 31, 47)),
            ("a length with a high byte", change(512, 0xff)),
        ] {
            let error = deposits(&spec(), &[receipt(CONTRACT, vec![DEPOSIT_EVENT], data)]).unwrap_err();
            assert!(
                matches!(error, ExecutionError::SystemContract { address, .. } if address == CONTRACT),
                "{name}: {error}"
            );
        }
    }
}
