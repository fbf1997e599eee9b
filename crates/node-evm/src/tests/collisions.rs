//! Creations at addresses that have storage but neither code nor a nonce (EIP-7610).

use super::support::*;
use node_core::block::RecoveredTransaction;
use node_core::executor::{AccountOverride, Call, CallFailure, CallOutcome, StateOverrides, StorageOverride};
use node_core::protocol::Fork;
use node_core::state::AccountState;
use node_types::consensus::{LegacyTransaction, ReceiptOutcome};
use node_types::{Address, Bytes, KECCAK_EMPTY, U256, keccak256};

const FORKS: [Fork; 12] = [
    Fork::Frontier,
    Fork::Homestead,
    Fork::TangerineWhistle,
    Fork::SpuriousDragon,
    Fork::Byzantium,
    Fork::Constantinople,
    Fork::Istanbul,
    Fork::Berlin,
    Fork::London,
    Fork::Shanghai,
    Fork::Cancun,
    Fork::Osaka,
];

/// Init code that deploys `fe`.
const CREATION: &str = "60fe60005360016000f3";

/// Returns the address of the contract that `creator` creates with CREATE.
fn create_address(creator: Address, nonce: u64) -> Address {
    let mut list = rlp::RlpStream::new_list(2);
    list.append(&creator).append(&nonce);
    Address::from_slice(&keccak256(list.out()).as_bytes()[12..])
}

/// Returns the address of the contract that `creator` creates with CREATE2 and salt 0.
fn create2_address(creator: Address, creation: &[u8]) -> Address {
    let preimage = [&[0xff][..], creator.as_bytes(), &[0; 32][..], keccak256(creation).as_bytes()].concat();
    Address::from_slice(&keccak256(&preimage).as_bytes()[12..])
}

/// Returns a transaction that creates a contract with the init code `code`.
fn creation(nonce: u64, code: &str, value: u64) -> RecoveredTransaction {
    send(LegacyTransaction { nonce, to: None, input: hex(code), value: wei(value), ..legacy() })
}

/// Runs a call with 1,000,000 gas and returns its output, whether or not it reverted.
fn output(world: &World, call: Call) -> Result<Bytes, String> {
    match world.call(&Call { from: ALICE, gas: Some(1_000_000), ..call }).unwrap() {
        CallOutcome::Returned { output, .. } | CallOutcome::Failed(CallFailure::Reverted { output, .. }) => Ok(output),
        CallOutcome::Failed(CallFailure::Halted { reason, .. }) => Err(reason),
        CallOutcome::Failed(failure) => panic!("{failure:?}"),
    }
}

#[test]
fn creation_transactions_fail_over_storage() {
    let created = create_address(ALICE, 0);
    for fork in FORKS {
        for balance in [0, 5] {
            let genesis = || Genesis::at(fork).balance(created, wei(balance));
            let world = genesis().slot(created, 1, 1).build();
            let outcome = world.execute(&[creation(0, CREATION, 3)]).unwrap();
            assert_eq!(outcome.gas_used, 1_000_000, "{fork:?}: all gas is gone");
            assert_eq!(outcome.changes.accounts.get(&created), None, "{fork:?}: the account is left alone");
            assert_eq!(outcome.changes.code.len(), 0, "{fork:?}");
            let alice = outcome.changes.accounts[&ALICE].account.unwrap();
            let paid = wei(10) * wei(1_000_000);
            assert_eq!((alice.nonce, alice.balance), (1, wei(1000) * wei(ETHER) - paid), "{fork:?}: no value moved");

            let outcome = genesis().build().execute(&[creation(0, CREATION, 3)]).unwrap();
            let contract = AccountState {
                nonce: u64::from(fork >= Fork::SpuriousDragon),
                balance: wei(balance + 3),
                code_hash: keccak256([0xfe_u8]),
            };
            assert_eq!(outcome.changes.accounts[&created].account, Some(contract), "{fork:?}: without storage");
            assert!(outcome.gas_used < 100_000, "{fork:?}: {}", outcome.gas_used);
        }
    }
}

#[test]
fn a_failed_creation_has_a_failed_receipt() {
    let world = Genesis::at(Fork::Cancun).slot(create_address(ALICE, 0), 1, 1).build();
    let outcome = world.execute(&[creation(0, CREATION, 0), creation(1, CREATION, 0)]).unwrap();
    let outcomes: Vec<_> = outcome.receipts.iter().map(|receipt| receipt.outcome).collect();
    let expected = [false, true].map(ReceiptOutcome::Success);
    assert_eq!(outcomes, expected, "at the address with storage, and at the next nonce's");
}

#[test]
fn contracts_cannot_create_over_storage() {
    // Creates a contract with empty init code, then stores at slot 0 whether that failed.
    let create = ("CREATE", "6000 6000 6000 f0 15 600055 00", create_address(CONTRACT, 1));
    let create2 = ("CREATE2", "6000 6000 6000 6000 f5 15 600055 00", create2_address(CONTRACT, &[]));
    for fork in FORKS {
        for (name, code, created) in [create, create2] {
            if name == "CREATE2" && fork < Fork::Constantinople {
                continue;
            }
            let run = |genesis: Genesis| {
                let world = genesis.nonce(CONTRACT, 1).code(CONTRACT, code).build();
                world.execute(&[send(LegacyTransaction { gas_limit: 10_000_000, ..legacy() })]).unwrap()
            };
            let genesis = || Genesis::at(fork).balance(created, wei(5));

            let outcome = run(genesis().slot(created, 1, 1));
            assert_eq!(outcome.changes.accounts.get(&created), None, "{fork:?}, {name}");
            if fork < Fork::TangerineWhistle {
                // Before EIP-150 the creation gets all gas of its creator.
                assert_eq!(outcome.gas_used, 10_000_000, "{fork:?}, {name}");
                continue;
            }
            assert!(outcome.gas_used > 9_800_000, "{fork:?}, {name}: {}", outcome.gas_used);
            let creator = &outcome.changes.accounts[&CONTRACT];
            assert_eq!(creator.account.unwrap().nonce, 2, "{fork:?}, {name}: the nonce is used up");
            assert_eq!(creator.storage.get(&slot(0)), Some(&wei(1)), "{fork:?}, {name}: it failed");

            let outcome = run(genesis());
            assert!(outcome.gas_used < 100_000, "{fork:?}, {name}: {}", outcome.gas_used);
            let creator = &outcome.changes.accounts[&CONTRACT];
            assert_eq!(creator.account.unwrap().nonce, 2, "{fork:?}, {name}: without storage");
            assert_eq!(creator.storage.get(&slot(0)), None, "{fork:?}, {name}: without storage");
            if fork >= Fork::SpuriousDragon {
                assert_eq!(outcome.changes.accounts[&created].account.unwrap().nonce, 1, "{fork:?}, {name}");
            }
        }
    }
}

#[test]
fn other_code_sees_the_account() {
    let created = create_address(CONTRACT, 1);
    let look = format!("73{created:x} 3f 600052  73{created:x} 3b 602052  73{created:x} 31 604052  60606000f3");
    for (name, creation) in [("before", ""), ("after", "6000 6000 6000 f0 50")] {
        let genesis = Genesis::at(Fork::Cancun).nonce(CONTRACT, 1).code(CONTRACT, &format!("{creation}{look}"));
        let world = genesis.balance(created, wei(5)).slot(created, 1, 1).build();
        let seen = output(&world, Call { to: Some(CONTRACT), ..Call::default() }).unwrap();
        let seen = [&seen[..32], &seen[32..64], &seen[64..]].map(word);
        let expected = [word(KECCAK_EMPTY.as_bytes()), wei(0), wei(5)];
        assert_eq!(seen, expected, "hash of the code, size of the code, balance, {name} the creation");
    }
}

#[test]
fn the_address_is_warm_once_the_creation_starts() {
    // EIP-2929: the address is warm once the creation starts, even if it fails. A creation that cannot be paid for does
    // not start.
    let created = create_address(CONTRACT, 1);
    let gas_of_balance = format!("5a 73{created:x} 31 50 5a 9003 600052 60206000f3");
    let others = wei(3 + 2 + 2);
    for (name, value, expected) in [("collision", "00", 100), ("out of funds", "01", 2600)] {
        let code = format!("6000 6000 60{value} f0 50 {gas_of_balance}");
        let genesis = Genesis::at(Fork::Cancun).nonce(CONTRACT, 1).code(CONTRACT, &code);
        let world = genesis.slot(created, 1, 1).build();
        let gas = output(&world, Call { to: Some(CONTRACT), ..Call::default() }).unwrap();
        assert_eq!(word(&gas), wei(expected) + others, "{name}");
    }
}

#[test]
fn nested_creations() {
    // The init code creates another contract, and returns or reverts with its address. The outer contract creates the
    // inner one with nonce 1 since EIP-161, and with nonce 0 before.
    for fork in [Fork::Homestead, Fork::Byzantium, Fork::Cancun] {
        let outer = create_address(ALICE, 0);
        let inner = create_address(outer, u64::from(fork >= Fork::SpuriousDragon));
        for (name, end) in [("returns", "f3"), ("reverts", "fd")] {
            let input = hex(&format!("6000 6000 6000 f0 600052 60206000 {end}"));
            let run = |genesis: Genesis| output(&genesis.build(), Call { input: input.clone(), ..Call::default() });
            // Homestead has no REVERT, and the inner creation uses all gas.
            let expected_output = |address: U256| -> Option<Result<Bytes, String>> {
                (fork > Fork::Homestead).then(|| Ok(address.to_big_endian().to_vec().into()))
            };
            let occupied = run(Genesis::at(fork).slot(inner, 1, 1));
            let free = run(Genesis::at(fork));
            let outer_occupied = run(Genesis::at(fork).slot(outer, 1, 1));
            assert_eq!(outer_occupied, Err("contract address collision".into()), "{fork:?}, {name}: over storage");
            assert_ne!(occupied, free, "{fork:?}, {name}");
            if let Some(nothing) = expected_output(U256::zero()) {
                assert_eq!(occupied, nothing, "{fork:?}, {name}: the inner one over storage");
                let address = U256::from_big_endian(inner.as_bytes());
                assert_eq!(Some(free), expected_output(address), "{fork:?}, {name}: without storage");
            }
        }
    }
}

#[test]
fn touching_an_empty_account_deletes_it_with_its_storage() {
    let created = create_address(ALICE, 1);
    let touch = |value| send(LegacyTransaction { to: Some(created), value: wei(value), ..legacy() });
    for (fork, value, created_again) in [
        // EIP-161 deletes empty accounts that are touched.
        (Fork::TangerineWhistle, 0, false),
        (Fork::SpuriousDragon, 0, true),
        (Fork::Cancun, 0, true),
        (Fork::Cancun, 1, false),
    ] {
        let world = || Genesis::at(fork).balance(created, wei(0)).slot(created, 1, 1).build();
        let transactions = [touch(value), creation(1, CREATION, 0)];
        let in_one = world().execute(&transactions).unwrap();
        let mut in_two = world();
        in_two.extend(&transactions[..1]);
        let second = in_two.execute(&transactions[1..]).unwrap();

        let gas = in_one.gas_used - 21_000;
        assert_eq!(gas, second.gas_used, "{fork:?}, {value} wei: in one block and in two");
        assert_eq!(gas < 1_000_000, created_again, "{fork:?}, {value} wei");
        for outcome in [in_one, second] {
            let account = outcome.changes.accounts.get(&created).and_then(|change| change.account);
            let deployed = account.is_some_and(|account| account.has_code());
            assert_eq!(deployed, created_again, "{fork:?}, {value} wei");
        }
    }
}

#[test]
fn storage_of_a_contract_without_code() {
    // Stores 7 at slot 9 and deploys no code. Before EIP-161 the account then has storage but no nonce, since EIP-161
    // both.
    for fork in [Fork::Frontier, Fork::TangerineWhistle, Fork::SpuriousDragon] {
        let mut world = Genesis::at(fork).build();
        world.extend(&[creation(0, "6007600955", 0)]);
        let created = create_address(ALICE, 0);
        assert!(world.view.state(1).unwrap().has_storage(created).unwrap(), "{fork:?}");
        let nonce = world.view.state(1).unwrap().account(created).unwrap().unwrap().nonce;
        assert_eq!(nonce, u64::from(fork >= Fork::SpuriousDragon), "{fork:?}");

        let at_nonce = |nonce| {
            let overrides = [(ALICE, AccountOverride { nonce: Some(nonce), ..AccountOverride::default() })].into();
            output(&world, Call { input: hex(CREATION), overrides, ..Call::default() })
        };
        assert_eq!(at_nonce(0), Err("contract address collision".into()), "{fork:?}: there again");
        assert_eq!(at_nonce(1), Ok(hex("fe")), "{fork:?}: at another address");
    }
}

#[test]
fn overrides_set_and_clear_storage() {
    use StorageOverride::{Keep, Patch, Replace};
    let created = create_address(ALICE, 0);
    let slots = |slots: &[(u64, u64)]| slots.iter().map(|(number, value)| (slot(*number), wei(*value))).collect();
    let cases: [(&str, &[u64], StorageOverride, bool); 12] = [
        ("nothing", &[], Keep, false),
        ("without an override", &[1], Keep, true),
        ("filled", &[], Patch(slots(&[(1, 1)])), true),
        ("with nothing", &[], Patch(slots(&[(1, 0)])), false),
        ("one more", &[1], Patch(slots(&[(2, 1)])), true),
        ("another freed", &[1], Patch(slots(&[(2, 0)])), true),
        ("one of two freed", &[1, 2], Patch(slots(&[(1, 0)])), true),
        ("the only one freed", &[1], Patch(slots(&[(1, 0)])), false),
        ("both freed", &[1, 2], Patch(slots(&[(1, 0), (2, 0)])), false),
        ("cleared", &[1, 2], Replace(slots(&[])), false),
        ("cleared and nothing stored", &[1, 2], Replace(slots(&[(3, 0)])), false),
        ("replaced", &[1, 2], Replace(slots(&[(1, 5)])), true),
    ];
    for (name, before, storage, collides) in cases {
        let mut genesis = Genesis::at(Fork::Cancun).balance(created, wei(5));
        for number in before {
            genesis = genesis.slot(created, *number, 1);
        }
        let overrides: StateOverrides = [(created, AccountOverride { storage, ..AccountOverride::default() })].into();
        let got = output(&genesis.build(), Call { input: hex(CREATION), overrides, ..Call::default() });
        let expected = if collides { Err("contract address collision".into()) } else { Ok(hex("fe")) };
        assert_eq!(got, expected, "{name}");
    }
}
