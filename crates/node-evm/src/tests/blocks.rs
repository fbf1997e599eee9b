//! Execution of blocks: state changes, fees and rewards.

use super::support::*;
use node_core::executor::Executor;
use node_core::protocol::{DaoFork, Fork};
use node_core::state::{AccountChange, AccountState};
use node_types::consensus::{Header, LegacyTransaction, ReceiptOutcome, Withdrawal};
use node_types::{Address, H160, H256, KECCAK_EMPTY, U256, keccak256};

fn transfer(nonce: u64, to: Address, value: u64) -> node_core::block::RecoveredTransaction {
    send(LegacyTransaction { nonce, to: Some(to), value: wei(value), gas_limit: 21_000, ..legacy() })
}

#[test]
fn a_transfer_moves_value_and_pays_fees() {
    // Fork; amount that the miner receives for 21,000 gas at a price of 10 wei, including the block reward.
    let reward = |ether: u64| wei(ether) * wei(ETHER);
    for (fork, miner) in [
        (Fork::Frontier, reward(5) + 210_000),
        (Fork::Byzantium, reward(3) + 210_000),
        (Fork::Constantinople, reward(2) + 210_000),
        (Fork::Berlin, reward(2) + 210_000),
        // Since London the base fee is burnt.
        (Fork::London, reward(2) + 63_000),
        (Fork::Paris, wei(63_000)),
        (Fork::Osaka, wei(63_000)),
    ] {
        let world = Genesis::at(fork).build();
        let outcome = world.execute(&[transfer(0, BOB, 1)]).unwrap();
        let after = |address: Address| outcome.changes.accounts[&address].account.unwrap();
        assert_eq!(outcome.gas_used, 21_000, "{fork:?}");
        assert_eq!(after(MINER).balance, miner, "{fork:?}");
        assert_eq!(after(BOB), holder(wei(1)), "{fork:?}");
        let alice = AccountState { nonce: 1, ..holder(wei(1000) * wei(ETHER) - 210_001) };
        assert_eq!(after(ALICE), alice, "{fork:?}");
    }
}

#[test]
fn receipts_have_the_state_root_before_byzantium_and_the_status_after() {
    // Invalid code: the call fails.
    let failing = |fork| Genesis::at(fork).code(CONTRACT, "fe").build();
    for fork in [Fork::Frontier, Fork::Homestead, Fork::TangerineWhistle, Fork::SpuriousDragon] {
        let world = failing(fork);
        let outcome = world.execute(&[transfer(0, BOB, 1), send(LegacyTransaction { nonce: 1, ..legacy() })]).unwrap();
        let first = world.execute(&[transfer(0, BOB, 1)]).unwrap();
        let roots: Vec<_> = outcome.receipts.iter().map(|receipt| receipt.outcome).collect();
        assert_eq!(roots[0], receipt(&first).outcome, "{fork:?}");
        assert!(
            matches!(roots[..], [ReceiptOutcome::StateRoot(a), ReceiptOutcome::StateRoot(b)] if a != b),
            "{fork:?}"
        );
    }
    for fork in [Fork::Byzantium, Fork::Istanbul, Fork::London, Fork::Prague] {
        let outcome =
            failing(fork).execute(&[transfer(0, BOB, 1), send(LegacyTransaction { nonce: 1, ..legacy() })]).unwrap();
        let outcomes: Vec<_> = outcome.receipts.iter().map(|receipt| receipt.outcome).collect();
        assert_eq!(outcomes, [ReceiptOutcome::Success(true), ReceiptOutcome::Success(false)], "{fork:?}");
        assert_eq!(outcome.receipts[1].cumulative_gas_used, 1_021_000, "{fork:?}");
    }
}

#[test]
fn the_root_in_a_receipt_is_the_state_root_after_the_transaction() {
    let world = Genesis::at(Fork::Homestead).build();
    let mut header = world.next_header();
    // Without a block reward, the state after the transaction is the state after the block.
    header.beneficiary = ALICE;
    let outcome = world.execute_with(&header, &[transfer(0, BOB, 1)], &[], None).unwrap();
    let mut changes = outcome.changes.clone();
    changes.accounts.get_mut(&ALICE).unwrap().account.as_mut().unwrap().balance -= wei(5) * wei(ETHER);
    let root = world.view.state(0).unwrap().root_after(&changes).unwrap();
    assert_eq!(receipt(&outcome).outcome, ReceiptOutcome::StateRoot(root));
    // Traces need no such root.
    let context = node_core::context::Context::unbounded();
    let mut block = world.executor.begin_block(&context, &*world.view, &header).unwrap();
    block.omit_state_roots();
    assert_eq!(block.transact(&transfer(0, BOB, 1)).unwrap().outcome, ReceiptOutcome::StateRoot(H256::zero()));
}

#[test]
fn pays_ommers() {
    let world = Genesis::at(Fork::Byzantium).build();
    let header = Header { number: 1, ..world.next_header() };
    let ommer = Header { number: 0, beneficiary: BOB, ..Header::default() };
    let outcome = world.execute_with(&header, &[], &[ommer], None).unwrap();
    let ether = |n: u64| wei(n) * wei(ETHER);
    assert_eq!(outcome.changes.accounts[&BOB].account.unwrap().balance, ether(3) * wei(7) / wei(8));
    assert_eq!(outcome.changes.accounts[&MINER].account.unwrap().balance, ether(3) + ether(3) / wei(32));
}

#[test]
fn touched_empty_accounts_stay_until_spurious_dragon() {
    for (fork, exists) in
        [(Fork::Frontier, true), (Fork::TangerineWhistle, true), (Fork::SpuriousDragon, false), (Fork::Paris, false)]
    {
        let outcome = Genesis::at(fork).build().execute(&[transfer(0, BOB, 0)]).unwrap();
        let expected =
            exists.then(|| AccountChange { account: Some(holder(U256::zero())), ..AccountChange::default() });
        assert_eq!(outcome.changes.accounts.get(&BOB), expected.as_ref(), "{fork:?}, new");

        let genesis = Genesis::at(fork).balance(BOB, U256::zero());
        let outcome = genesis.build().execute(&[transfer(0, BOB, 0)]).unwrap();
        let removed = AccountChange { storage_cleared: true, ..AccountChange::default() };
        assert_eq!(outcome.changes.accounts.get(&BOB), (!exists).then_some(&removed), "{fork:?}, old");
    }
}

#[test]
fn withdrawals_are_in_gwei() {
    let world = Genesis::at(Fork::Shanghai).build();
    let withdrawal = |address, amount| Withdrawal { address, amount, ..Withdrawal::default() };
    let withdrawals =
        [withdrawal(BOB, 3), withdrawal(BOB, 4), withdrawal(ALICE, u64::MAX), withdrawal(H160::repeat_byte(5), 0)];
    let outcome = world.execute_with(&world.next_header(), &[], &[], Some(&withdrawals)).unwrap();
    let balance = |address: Address| outcome.changes.accounts.get(&address)?.account.map(|account| account.balance);
    assert_eq!(balance(BOB), Some(wei(7_000_000_000)));
    let highest = wei(u64::MAX) * wei(1_000_000_000);
    assert_eq!(balance(ALICE), Some(wei(1000) * wei(ETHER) + highest));
    assert_eq!(balance(H160::repeat_byte(5)), None, "a withdrawal of nothing creates no account");
}

#[test]
fn changes_contain_only_slots_that_differ_from_the_parent() {
    // Stores the second word of the call data at the first.
    let world = Genesis::at(Fork::Osaka)
        .code(CONTRACT, "6020356000355500")
        .slot(CONTRACT, 1, 11)
        .slot(CONTRACT, 2, 22)
        .slot(CONTRACT, 3, 33)
        .build();
    let store = |nonce, number: u64, value: u64| {
        let input = [slot(number).0, slot(value).0].concat().into();
        send(LegacyTransaction { nonce, input, ..legacy() })
    };
    let outcome = world
        .execute(&[store(0, 1, 5), store(1, 1, 11), store(2, 2, 0), store(3, 3, 34), store(4, 4, 44), store(5, 5, 0)])
        .unwrap();
    let change = &outcome.changes.accounts[&CONTRACT];
    let expected = [(slot(2), wei(0)), (slot(3), wei(34)), (slot(4), wei(44))];
    assert_eq!(change.storage.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>(), expected);
    assert!(!change.storage_cleared);
    assert!(outcome.receipts.iter().all(|receipt| receipt.outcome == ReceiptOutcome::Success(true)));

    let unchanged = world.execute(&[store(0, 1, 5), store(1, 1, 11)]).unwrap();
    assert_eq!(unchanged.changes.accounts.get(&CONTRACT), None);
}

#[test]
fn selfdestruct_and_recreation_in_one_block() {
    // Init code for CREATE2 with salt 0, which stores 7 at slot 9 and deploys code that self-destructs to the caller.
    // Init code: PUSH1 7 PUSH1 9 SSTORE PUSH2 33ff PUSH1 0 MSTORE PUSH1 2 PUSH1 30 RETURN
    let creation = hex("60076009556133ff6000526002601ef3");
    // The factory copies the init code to memory and runs CREATE2 with its 16 bytes at offset 16, without value.
    let factory = "6f 60076009556133ff6000526002601ef3 600052 6000 6010 6010 6000 f5 00";
    let mut preimage = vec![0xff];
    preimage.extend(CONTRACT.0);
    preimage.extend([0; 32]);
    preimage.extend(keccak256(&creation).0);
    let created = Address::from_slice(&keccak256(&preimage)[12..]);

    let create = |nonce| send(LegacyTransaction { nonce, ..legacy() });
    let destroy = |nonce| send(LegacyTransaction { nonce, to: Some(created), ..legacy() });
    let world = |fork| {
        let mut world = Genesis::at(fork).code(CONTRACT, factory).build();
        let outcome = world.extend(&[create(0)]);
        let code = outcome.changes.accounts[&created].account.unwrap().code_hash;
        assert_eq!(outcome.changes.code[&code], hex("33ff"), "{fork:?}");
        assert_eq!(outcome.changes.accounts[&created].storage[&slot(9)], wei(7), "{fork:?}");
        world
    };

    let mut london = world(Fork::London);
    let gone = london.execute(&[destroy(1)]).unwrap();
    assert_eq!(
        gone.changes.accounts[&created],
        AccountChange { account: None, storage_cleared: true, storage: Default::default() }
    );
    let again = london.extend(&[destroy(1), create(2)]);
    let change = &again.changes.accounts[&created];
    assert!(change.storage_cleared, "earlier storage is cleared");
    assert_eq!(change.storage.iter().collect::<Vec<_>>(), [(&slot(9), &wei(7))]);
    assert_eq!(change.account.unwrap().nonce, 1);
    assert_eq!(london.view.state(2).unwrap().storage(created, slot(9)).unwrap(), wei(7));

    // Since EIP-6780 only contracts that the same transaction created are destroyed.
    let cancun = world(Fork::Cancun);
    let kept = cancun.execute(&[destroy(1)]).unwrap();
    assert_eq!(kept.changes.accounts.get(&created), None);
}

#[test]
fn a_contract_created_and_destroyed_in_one_block_is_not_a_change() {
    // Init code that self-destructs.
    let world = Genesis::at(Fork::Prague).build();
    let outcome = world.execute(&[send(LegacyTransaction { to: None, input: hex("33ff"), ..legacy() })]).unwrap();
    assert_eq!(receipt(&outcome).outcome, ReceiptOutcome::Success(true));
    let mut changed: Vec<_> = outcome.changes.accounts.keys().copied().collect();
    changed.retain(|address| {
        ![ALICE, MINER, crate::BEACON_ROOTS_ADDRESS, crate::HISTORY_STORAGE_ADDRESS].contains(address)
    });
    assert!(changed.iter().all(|address| outcome.changes.accounts[address].account.is_some()), "{changed:x?}");
}

#[test]
fn a_creation_deploys_code() {
    // Deploys the byte 0x5b: PUSH1 5b PUSH1 0 MSTORE8 PUSH1 1 PUSH1 0 RETURN.
    let world = Genesis::at(Fork::Prague).build();
    let outcome =
        world.execute(&[send(LegacyTransaction { to: None, input: hex("605b60005360016000f3"), ..legacy() })]).unwrap();
    let code_hash = keccak256([0x5b]);
    let deployed: Vec<_> = outcome
        .changes
        .accounts
        .values()
        .filter_map(|change| change.account)
        .filter(|account| account.code_hash == code_hash)
        .collect();
    assert_eq!(deployed, [AccountState { nonce: 1, balance: U256::zero(), code_hash }]);
    assert_eq!(outcome.changes.code[&code_hash], hex("5b"));
}

#[test]
fn the_dao_fork_moves_balances() {
    let dao: Address = "bb9bc244d798123fde783fcc1c72d3bb8c189413".parse().unwrap();
    let child: Address = "d4fe7bc31cedb7bfb8a345f31e668033056b2728".parse().unwrap();
    let refund: Address = "bf4ed7b27f1d666546e30d74d50d173d20bca754".parse().unwrap();
    let genesis = |dao_fork| {
        let mut genesis =
            Genesis::at(Fork::Homestead).balance(dao, wei(100)).balance(child, wei(20)).balance(refund, wei(3));
        genesis.spec.dao_fork = dao_fork;
        genesis.build()
    };
    let outcome = genesis(Some(DaoFork { block: 1, supported: true })).execute(&[]).unwrap();
    let balance = |address: Address| outcome.changes.accounts[&address].account.unwrap().balance;
    assert_eq!([balance(dao), balance(child), balance(refund)], [wei(0), wei(0), wei(123)]);
    for other in [None, Some(DaoFork { block: 2, supported: true }), Some(DaoFork { block: 1, supported: false })] {
        let outcome = genesis(other).execute(&[]).unwrap();
        assert_eq!(outcome.changes.accounts.keys().collect::<Vec<_>>(), [&MINER], "{other:?}");
    }
}

#[test]
fn opcodes_return_the_block_environment() {
    // Opcodes of the environment and their results in the first block.
    for (name, fork, code, expected) in [
        ("NUMBER", Fork::Frontier, "43", wei(1)),
        ("TIMESTAMP", Fork::Frontier, "42", wei(12)),
        ("GASLIMIT", Fork::Frontier, "45", wei(GAS_LIMIT)),
        ("COINBASE", Fork::Frontier, "41", word(H256::from(MINER).as_bytes())),
        ("DIFFICULTY", Fork::London, "44", wei(0x20000)),
        ("PREVRANDAO", Fork::Paris, "44", word(&[0x99; 32])),
        ("CHAINID", Fork::Istanbul, "46", wei(CHAIN_ID)),
        ("BASEFEE", Fork::London, "48", wei(BASE_FEE)),
        ("BLOBBASEFEE", Fork::Cancun, "4a", wei(1)),
        ("BLOCKHASH of the parent", Fork::Frontier, "600040", word(keccak256([0; 8]).as_bytes())),
        ("BLOCKHASH of the block", Fork::Frontier, "600140", wei(0)),
    ] {
        let world = Genesis::at(fork).code(CONTRACT, &format!("{code}60005500")).build();
        let outcome = world.execute(&[send(legacy())]).unwrap();
        let stored = outcome.changes.accounts.get(&CONTRACT).and_then(|change| change.storage.get(&slot(0)));
        assert_eq!(stored.copied().unwrap_or_default(), expected, "{name}");
    }
}

#[test]
fn constantinople_uses_net_gas_metering() {
    // Stores 1 and then 0 into an empty slot: EIP-1283 charges 20,000 + 200 and refunds 19,800, at most half of the gas
    // used.
    let pushes = 4 * 3;
    for (fork, expected) in [
        (Fork::Byzantium, 21_000 + pushes + 20_000 + 5_000 - 15_000),
        (Fork::Constantinople, (21_000 + pushes + 20_200) - 19_800),
        (Fork::Petersburg, 21_000 + pushes + 20_000 + 5_000 - 15_000),
        (Fork::Istanbul, (21_000 + pushes + 20_800) - 19_200),
    ] {
        let world = Genesis::at(fork).code(CONTRACT, "6001600055600060005500").build();
        assert_eq!(world.execute(&[send(legacy())]).unwrap().gas_used, expected, "{fork:?}");
    }
}

#[test]
fn a_refused_transaction_changes_nothing() {
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "600160005500").build();
    let context = node_core::context::Context::unbounded();
    let header = world.next_header();
    let mut block = world.executor.begin_block(&context, &*world.view, &header).unwrap();
    let too_poor = send(LegacyTransaction { value: U256::MAX, ..legacy() });
    let too_early = send(LegacyTransaction { nonce: 1, ..legacy() });
    for refused in [&too_poor, &too_early] {
        block.transact(refused).unwrap_err();
        assert_eq!(block.gas_used(), 0);
    }
    block.transact(&send(legacy())).unwrap();
    let late = block.transact(&send(legacy())).unwrap_err();
    assert_eq!(late.to_string(), "nonce too low: next nonce 1, tx nonce 0");
    block.transact(&too_early).unwrap();
    let mixed = block.finish(&[], None).unwrap();
    let plain = world.execute(&[send(legacy()), too_early]).unwrap();
    assert_eq!(mixed.changes, plain.changes);
    assert_eq!(mixed.receipts, plain.receipts);
    assert_eq!(plain.changes.accounts[&ALICE].account.unwrap().code_hash, KECCAK_EMPTY);
}

#[test]
fn a_genesis_block_cannot_be_executed() {
    let world = Genesis::at(Fork::Frontier).build();
    let header = Header { number: 0, ..world.next_header() };
    assert!(world.execute_with(&header, &[], &[], None).is_err());
}
