//! Simulated blocks.

use super::support::*;
use node_core::block::RecoveredTransaction;
use node_core::context::Context;
use node_core::executor::{
    AccountOverride, BlockOutcome, CallFailure, ExecutionError, Executor, Property, SimulatedCallOutcome,
    SimulationRules, StateOverrides, TransactionError,
};
use node_core::protocol::Fork;
use node_types::consensus::{DynamicFeeTransaction, LegacyTransaction, Log, TransactionBody};
use node_types::{Address, U256, keccak256};

/// The input of a simulation.
#[derive(Clone, Default)]
struct Asked {
    overrides: StateOverrides,
    validate: bool,
    trace_transfers: bool,
}

type Simulated = Result<(Vec<SimulatedCallOutcome>, BlockOutcome), ExecutionError>;

fn simulate(world: &World, asked: &Asked, transactions: &[RecoveredTransaction]) -> Simulated {
    let rules = SimulationRules {
        overrides: &asked.overrides,
        blob_base_fee: None,
        validate: asked.validate,
        trace_transfers: asked.trace_transfers,
    };
    let (context, header) = (Context::unbounded(), world.next_header());
    let mut block = world.executor.begin_simulated(&context, &*world.view, &header, &rules)?;
    let calls = transactions.iter().map(|transaction| block.transact(transaction)).collect::<Result<_, _>>()?;
    Ok((calls, block.finish(None)?))
}

fn free(sender: Address, nonce: u64, to: Address, value: u64) -> RecoveredTransaction {
    signed_by(
        sender,
        TransactionBody::DynamicFee(DynamicFeeTransaction {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit: 1_000_000,
            to: Some(to),
            value: wei(value),
            ..DynamicFeeTransaction::default()
        }),
    )
}

fn topic(address: Address) -> node_types::H256 {
    address.into()
}

fn transfer(from: Address, to: Address, value: u64) -> Log {
    Log {
        address: Address::repeat_byte(0xee),
        topics: vec![keccak256("Transfer(address,address,uint256)"), topic(from), topic(to)],
        data: wei(value).to_big_endian().to_vec().into(),
    }
}

/// Returns code that calls `to` with `value` wei and ignores the result.
fn send_on(to: Address, value: u8) -> String {
    let to = to.0.map(|byte| format!("{byte:02x}")).concat();
    format!("5f5f5f5f60{value:02x}73{to}5af150")
}

#[test]
fn without_validation_fees_and_nonces_are_not_checked() {
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "00").build();
    let cases = [
        ("an account without ether", free(BOB, 0, CONTRACT, 0), None),
        ("a contract", free(CONTRACT, 0, BOB, 0), None),
        ("a nonce that is too high", free(ALICE, 9, CONTRACT, 0), None),
        (
            "no funds",
            free(BOB, 0, CONTRACT, 1),
            Some(TransactionError::InsufficientFunds { balance: wei(0), required: wei(1), fees_exceed_value: false }),
        ),
        (
            "a price below the base fee",
            signed(TransactionBody::Legacy(LegacyTransaction { gas_price: wei(1), ..legacy() })),
            Some(TransactionError::FeeCapTooLow { price: Property::GasPrice, cap: wei(1), base_fee: BASE_FEE }),
        ),
    ];
    for (name, transaction, refusal) in cases {
        match (simulate(&world, &Asked::default(), &[transaction]), refusal) {
            (Ok((calls, outcome)), None) => {
                assert_eq!(calls[0].failure, None, "{name}");
                assert_eq!((outcome.receipts.len(), outcome.gas_used), (1, calls[0].gas_used), "{name}");
            }
            (Err(ExecutionError::Refused(got)), Some(expected)) => assert_eq!(got, expected, "{name}"),
            (got, expected) => panic!("{name}: {got:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn with_validation_nonces_are_checked_before_fees() {
    let world = Genesis::at(Fork::Osaka).nonce(ALICE, 5).nonce(BOB, u64::MAX).code(CONTRACT, "00").build();
    let asked = Asked { validate: true, ..Asked::default() };
    for (transaction, expected) in [
        (free(ALICE, 4, CONTRACT, 0), TransactionError::NonceTooLow { got: 4, expected: 5 }),
        (free(ALICE, 6, CONTRACT, 0), TransactionError::NonceTooHigh { got: 6, expected: 5 }),
        (free(BOB, u64::MAX, CONTRACT, 0), TransactionError::NonceOverflow),
        (
            free(ALICE, 5, CONTRACT, 0),
            TransactionError::FeeCapTooLow { price: Property::MaxFeePerGas, cap: wei(0), base_fee: BASE_FEE },
        ),
    ] {
        match simulate(&world, &asked, &[transaction]) {
            Err(ExecutionError::Refused(got)) => assert_eq!(got, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
    let paid = signed(TransactionBody::Legacy(LegacyTransaction { nonce: 5, ..legacy() }));
    let (calls, outcome) = simulate(&world, &asked, &[paid]).unwrap();
    let spent = wei(calls[0].gas_used) * wei(10);
    let balance = outcome.changes.accounts[&ALICE].account.unwrap().balance;
    assert_eq!(balance, wei(1000) * wei(ETHER) - spent);
}

#[test]
fn the_maximum_nonce_wraps_around() {
    let world = Genesis::at(Fork::Osaka).nonce(ALICE, u64::MAX).code(CONTRACT, "00").build();
    let transactions = [free(ALICE, u64::MAX, CONTRACT, 0), free(ALICE, 0, CONTRACT, 0)];
    let (_, outcome) = simulate(&world, &Asked::default(), &transactions).unwrap();
    assert_eq!(outcome.changes.accounts[&ALICE].account.unwrap().nonce, 1);
}

#[test]
fn overrides_are_part_of_the_changes() {
    let world = Genesis::at(Fork::Osaka).build();
    let code = AccountOverride { code: Some(hex("60015f5500")), balance: Some(wei(3)), ..AccountOverride::default() };
    let overrides: StateOverrides = [(BOB, code), (CONTRACT, AccountOverride::default())].into();
    let asked = Asked { overrides, ..Asked::default() };
    let (_, outcome) = simulate(&world, &asked, &[free(ALICE, 0, BOB, 0)]).unwrap();
    let change = &outcome.changes.accounts[&BOB];
    let account = change.account.unwrap();
    assert_eq!((account.balance, account.code_hash), (wei(3), keccak256(hex("60015f5500"))));
    assert_eq!(outcome.changes.code[&account.code_hash], hex("60015f5500"), "the next block can read the code");
    assert_eq!(change.storage[&slot(0)], wei(1));
    assert!(!outcome.changes.accounts.contains_key(&CONTRACT), "an empty override creates no account");
}

#[test]
fn logs_transfers_in_order_but_not_in_receipts() {
    let target = Address::repeat_byte(0x77);
    // A log, a transfer, a log.
    let code = format!("5f5fa0{}5f5fa0", send_on(target, 2));
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &code).build();
    let own = Log { address: CONTRACT, topics: Vec::new(), data: Default::default() };
    let transaction = [free(ALICE, 0, CONTRACT, 5)];
    let with_transfers =
        [(0, transfer(ALICE, CONTRACT, 5)), (1, own.clone()), (2, transfer(CONTRACT, target, 2)), (3, own.clone())];
    for (trace_transfers, expected) in
        [(true, with_transfers.to_vec()), (false, vec![(0, own.clone()), (1, own.clone())])]
    {
        let asked = Asked { trace_transfers, ..Asked::default() };
        let (calls, outcome) = simulate(&world, &asked, &transaction).unwrap();
        assert_eq!(calls[0].logs, expected, "transfers: {trace_transfers}");
        assert_eq!(outcome.receipts[0].logs, [own.clone(), own.clone()], "transfers: {trace_transfers}");
    }
}

#[test]
fn reverted_logs_are_counted_but_not_returned() {
    let reverting = Address::repeat_byte(0x66);
    let world = Genesis::at(Fork::Osaka)
        .code(CONTRACT, &format!("{}5f5fa0", send_on(reverting, 1)))
        .code(reverting, "5f5fa0 5f5ffd")
        .build();
    let asked = Asked { trace_transfers: true, ..Asked::default() };
    let own = Log { address: CONTRACT, topics: Vec::new(), data: Default::default() };
    let (calls, _) = simulate(&world, &asked, &[free(ALICE, 0, CONTRACT, 1), free(ALICE, 1, reverting, 1)]).unwrap();
    // The transfer and the log of the reverted frame have the numbers 1 and 2.
    assert_eq!(calls[0].logs, [(0, transfer(ALICE, CONTRACT, 1)), (3, own)]);
    assert_eq!(calls[1].logs, []);
    assert!(matches!(&calls[1].failure, Some(CallFailure::Reverted { output, .. }) if output.is_empty()));
}

#[test]
fn logs_transfers_of_creations_and_selfdestructs() {
    let heir = Address::repeat_byte(0x55);
    let heir_digits = heir.0.map(|byte| format!("{byte:02x}")).concat();
    let world = Genesis::at(Fork::Osaka)
        .code(CONTRACT, &format!("73{heir_digits}ff"))
        // Creates an empty contract with a balance of three wei.
        .code(BOB, "5f5f6003f000")
        .balance(CONTRACT, wei(9))
        .balance(BOB, wei(3))
        .build();
    let asked = Asked { trace_transfers: true, ..Asked::default() };
    let (calls, outcome) = simulate(&world, &asked, &[free(ALICE, 0, CONTRACT, 0), free(ALICE, 1, BOB, 0)]).unwrap();
    assert_eq!(calls[0].logs, [(0, transfer(CONTRACT, heir, 9))]);
    let mut addresses = outcome
        .changes
        .accounts
        .iter()
        .filter(|(_, change)| change.account.is_some_and(|account| account.balance == wei(3)));
    let (created, _) = addresses.next().unwrap();
    assert_eq!(calls[1].logs, [(1, transfer(BOB, *created, 3))]);
}

#[test]
fn reports_gas_before_refunds() {
    // Clears a slot, for which gas is refunded.
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "5f5f5500").slot(CONTRACT, 0, 7).build();
    let (calls, _) = simulate(&world, &Asked::default(), &[free(ALICE, 0, CONTRACT, 0)]).unwrap();
    assert_eq!(calls[0].max_used_gas, calls[0].gas_used + 4_800);
}

#[test]
fn halts_use_all_gas() {
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "fe").build();
    let (calls, outcome) = simulate(&world, &Asked::default(), &[free(ALICE, 0, CONTRACT, 0)]).unwrap();
    assert!(matches!(calls[0].failure, Some(CallFailure::Halted { .. })));
    assert_eq!((calls[0].gas_used, outcome.gas_used), (1_000_000, 1_000_000));
    assert_eq!(U256::from(calls[0].max_used_gas), wei(1_000_000));
}
