//! System contracts at the start and the end of a block, and execution requests.

use super::support::*;
use crate::block::system;
use crate::{
    BEACON_ROOTS_ADDRESS, CONSOLIDATION_REQUESTS_ADDRESS, HISTORY_STORAGE_ADDRESS, WITHDRAWAL_REQUESTS_ADDRESS,
};
use node_core::executor::ExecutionError;
use node_core::protocol::Fork;
use node_types::consensus::{Header, LegacyTransaction, ReceiptOutcome, Request, RequestType};
use node_types::{Address, H256, U256, keccak256};

/// Code that succeeds and returns no requests.
const QUIET: &str = "00";

#[test]
fn stores_beacon_roots_and_block_hashes() {
    let world = Genesis::at(Fork::Prague).build();
    let header = world.next_header();
    let outcome = world.execute(&[]).unwrap();
    let stored = |address: Address| outcome.changes.accounts[&address].storage.clone();
    // EIP-4788: the timestamp at slot timestamp mod 8191, the root 8191 slots later. EIP-2935: the parent's hash at its
    // number.
    let expected = [(slot(12), wei(12)), (slot(12 + 8191), word(&[0x88; 32]))];
    assert_eq!(stored(BEACON_ROOTS_ADDRESS).into_iter().collect::<Vec<_>>(), expected);
    let expected = [(slot(0), word(header.parent_hash.as_bytes()))];
    assert_eq!(stored(HISTORY_STORAGE_ADDRESS).into_iter().collect::<Vec<_>>(), expected);

    let cancun = Genesis::at(Fork::Cancun).code(HISTORY_STORAGE_ADDRESS, system_code::HISTORY_STORAGE).build();
    let changed: Vec<_> = cancun.execute(&[]).unwrap().changes.accounts.into_keys().collect();
    assert_eq!(changed, [BEACON_ROOTS_ADDRESS], "only contracts of active forks are called");
}

#[test]
fn the_codes_whose_writes_are_known_are_those_of_mainnet() {
    for (code, hash) in [
        (system_code::BEACON_ROOTS, system::BEACON_ROOTS_CODE),
        (system_code::HISTORY_STORAGE, system::HISTORY_STORAGE_CODE),
    ] {
        assert_eq!(keccak256(hex(code)), hash);
    }
}

#[test]
fn blocks_are_valid_without_the_contracts_of_roots_and_hashes() {
    // No code, code that reverts, and invalid code.
    for code in [None, Some("5f5ffd"), Some("fe")] {
        let mut genesis = Genesis::at(Fork::Prague);
        for address in [BEACON_ROOTS_ADDRESS, HISTORY_STORAGE_ADDRESS] {
            genesis = match code {
                None => genesis.without(address),
                Some(code) => genesis.code(address, code),
            };
        }
        let outcome = genesis.build().execute(&[]).unwrap();
        assert_eq!(outcome.changes.accounts, Default::default(), "{code:?}");
    }
}

#[test]
fn requests_exist_since_prague() {
    assert_eq!(Genesis::at(Fork::Cancun).build().execute(&[]).unwrap().requests, None);
    assert_eq!(Genesis::at(Fork::Prague).build().execute(&[]).unwrap().requests, Some(vec![]));
}

#[test]
fn transactions_request_withdrawals_and_consolidations() {
    let world = Genesis::at(Fork::Prague).build();
    let request = |nonce, to, input: Vec<u8>| {
        let transaction = LegacyTransaction { nonce, to: Some(to), input: input.into(), value: wei(1), ..legacy() };
        send(transaction)
    };
    let withdrawal = [vec![0x11; 48], 500_u64.to_be_bytes().to_vec()].concat();
    let consolidation = [vec![0x22; 48], vec![0x33; 48]].concat();
    let outcome = world
        .execute(&[
            request(0, CONSOLIDATION_REQUESTS_ADDRESS, consolidation.clone()),
            request(1, WITHDRAWAL_REQUESTS_ADDRESS, withdrawal),
            // The contract reverts without a public key.
            request(2, WITHDRAWAL_REQUESTS_ADDRESS, vec![1]),
        ])
        .unwrap();
    let outcomes: Vec<_> = outcome.receipts.iter().map(|receipt| receipt.outcome).collect();
    assert_eq!(outcomes, [true, true, false].map(ReceiptOutcome::Success));

    // A request has the sender and the call data. EIP-7002 converts the amount to little-endian.
    let withdrawal = [ALICE.0.to_vec(), vec![0x11; 48], 500_u64.to_le_bytes().to_vec()].concat();
    let consolidation = [ALICE.0.to_vec(), consolidation].concat();
    let expected = [
        Request { request_type: RequestType::Withdrawal, data: withdrawal.into() },
        Request { request_type: RequestType::Consolidation, data: consolidation.into() },
    ];
    assert_eq!(outcome.requests.unwrap(), expected);
}

#[test]
fn deposits_come_from_logs_of_successful_transactions() {
    // Emits the call data as a deposit event: CALLDATACOPY(0, 0, size), LOG1(0, size, topic).
    let topic = "649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5";
    let emit = format!("365f5f37 7f{topic} 365f a1");
    let mut event = vec![0; 576];
    for (index, (offset, length)) in [(160, 48), (256, 32), (320, 8), (384, 96), (512, 8)].into_iter().enumerate() {
        event[32 * index..][..32].copy_from_slice(&slot(offset).0);
        event[offset as usize..][..32].copy_from_slice(&slot(length).0);
    }
    event[192] = 0xab;
    let deposit =
        |input: &[u8]| send(LegacyTransaction { to: Some(DEPOSIT_CONTRACT), input: input.into(), ..legacy() });

    let world = Genesis::at(Fork::Prague).code(DEPOSIT_CONTRACT, &emit).build();
    let requests = world.execute(&[deposit(&event)]).unwrap().requests.unwrap();
    let mut data = vec![0; 192];
    data[0] = 0xab;
    assert_eq!(requests, [Request { request_type: RequestType::Deposit, data: data.into() }]);

    let error = world.execute(&[deposit(&event[..575])]).unwrap_err();
    assert!(matches!(error, ExecutionError::SystemContract { address, .. } if address == DEPOSIT_CONTRACT), "{error}");

    // The same code, but it reverts afterwards, so that there is no log.
    let world = Genesis::at(Fork::Prague).code(DEPOSIT_CONTRACT, &format!("{emit} 5f5ffd")).build();
    assert_eq!(world.execute(&[deposit(&event)]).unwrap().requests, Some(vec![]));
}

#[test]
fn a_block_is_invalid_without_the_request_contracts() {
    for address in [WITHDRAWAL_REQUESTS_ADDRESS, CONSOLIDATION_REQUESTS_ADDRESS] {
        // Code, and why its call fails.
        for (code, reason) in [
            (None, "it has no code"),
            (Some("5f5ffd"), "its call reverted"),
            (Some("fe"), "its call failed: invalid opcode: INVALID"),
            (Some("5b5f56"), "its call failed: out of gas"),
        ] {
            let genesis = |fork| match code {
                None => Genesis::at(fork).without(address),
                Some(code) => Genesis::at(fork).code(address, code),
            };
            match genesis(Fork::Prague).build().execute(&[]).unwrap_err() {
                ExecutionError::SystemContract { address: of, reason: got } => {
                    assert_eq!((of, got.as_str()), (address, reason));
                }
                other => panic!("{code:?}: {other:?}"),
            }
            assert!(genesis(Fork::Cancun).build().execute(&[]).is_ok(), "blocks before Prague have no requests");
        }
        let world = Genesis::at(Fork::Prague).code(address, QUIET).build();
        assert_eq!(world.execute(&[]).unwrap().requests, Some(vec![]));
    }
}

#[test]
fn system_calls_are_free() {
    // Stores its caller and the gas price, and returns a word.
    let world =
        Genesis::at(Fork::Prague).code(WITHDRAWAL_REQUESTS_ADDRESS, "335f55 3a600155 32600255 60205ff3").build();
    let header = Header { base_fee_per_gas: Some(1_000_000_000), ..world.next_header() };
    let outcome = world.execute_with(&header, &[], &[], None).unwrap();
    assert_eq!(outcome.gas_used, 0);
    let system: Address = "fffffffffffffffffffffffffffffffffffffffe".parse().unwrap();
    let caller = word(H256::from(system).as_bytes());
    let stored = &outcome.changes.accounts[&WITHDRAWAL_REQUESTS_ADDRESS].storage;
    assert_eq!(stored.get(&slot(0)), Some(&caller));
    assert_eq!(stored.get(&slot(1)).copied().unwrap_or_default(), U256::zero(), "gas price");
    assert_eq!(stored.get(&slot(2)), Some(&caller), "origin");
    assert_eq!(outcome.changes.accounts.get(&system), None);
    assert_eq!(outcome.changes.accounts.get(&MINER), None);
}
