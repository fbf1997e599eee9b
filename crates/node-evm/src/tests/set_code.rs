//! Set-code transactions (EIP-7702).

use super::support::*;
use crate::SecretKey;
use node_core::block::RecoveredTransaction;
use node_core::executor::TransactionError;
use node_core::protocol::Fork;
use node_types::consensus::{
    Authorization, LegacyTransaction, ReceiptOutcome, SetCodeTransaction, Signature, TransactionBody,
};
use node_types::{Address, H160, KECCAK_EMPTY, U256, keccak256};

const SECRET: [u8; 32] = [7; 32];

/// Returns the account of `SECRET`.
fn authority() -> Address {
    SecretKey::from_bytes(&SECRET).unwrap().address()
}

fn authorization(chain_id: u64, address: Address, nonce: u64) -> Authorization {
    let unsigned = Authorization { chain_id: wei(chain_id), address, nonce, ..Authorization::default() };
    let Signature { r, s, y_parity } = SecretKey::from_bytes(&SECRET).unwrap().sign(unsigned.signing_hash());
    Authorization { y_parity: u8::from(y_parity), r, s, ..unsigned }
}

fn set_code(nonce: u64, to: Address, authorization_list: Vec<Authorization>) -> RecoveredTransaction {
    signed(TransactionBody::SetCode(SetCodeTransaction {
        chain_id: CHAIN_ID,
        nonce,
        max_fee_per_gas: wei(100),
        gas_limit: 500_000,
        to,
        authorization_list,
        ..SetCodeTransaction::default()
    }))
}

fn delegation(to: Address) -> Vec<u8> {
    [&[0xef, 0x01, 0x00], &to.0[..]].concat()
}

/// Stores 1 at slot 0.
const STORE: &str = "600160005500";

#[test]
fn a_delegation_runs_the_code_of_another_account() {
    let world = Genesis::at(Fork::Prague).code(CONTRACT, STORE).build();
    for (name, chain_id) in [("this chain", CHAIN_ID), ("any chain", 0)] {
        let outcome = world.execute(&[set_code(0, authority(), vec![authorization(chain_id, CONTRACT, 0)])]).unwrap();
        assert_eq!(receipt(&outcome).outcome, ReceiptOutcome::Success(true), "{name}");
        let change = &outcome.changes.accounts[&authority()];
        let account = change.account.unwrap();
        assert_eq!(account.nonce, 1, "{name}");
        assert_eq!(account.code_hash, keccak256(delegation(CONTRACT)), "{name}");
        assert_eq!(outcome.changes.code[&account.code_hash].to_vec(), delegation(CONTRACT), "{name}");
        assert_eq!(change.storage.get(&slot(0)), Some(&wei(1)), "{name}: the code ran in the authority's storage");
        assert_eq!(outcome.changes.accounts.get(&CONTRACT), None, "{name}");
    }
}

#[test]
fn before_prague_there_are_no_delegations() {
    let caller = H160([0xcc; 20]);
    // Calls the contract and stores at slot 0 whether that succeeded.
    let call = format!("6000 6000 6000 6000 6000 73{CONTRACT:x} 61ffff f1 600055 00");
    for (fork, delegates) in [(Fork::Byzantium, false), (Fork::Cancun, false), (Fork::Prague, true)] {
        let genesis = Genesis::at(fork).bytecode(CONTRACT, delegation(BOB).into()).balance(CONTRACT, wei(ETHER));
        let world = genesis.code(BOB, STORE).code(caller, &call).build();

        let outcome = world.execute(&[send(legacy())]).unwrap();
        assert_eq!(receipt(&outcome).outcome, ReceiptOutcome::Success(delegates), "{fork:?}");
        assert_eq!(outcome.gas_used == 1_000_000, !delegates, "{fork:?}: the first byte is not an instruction");

        let outcome = world.execute(&[send(LegacyTransaction { to: Some(caller), ..legacy() })]).unwrap();
        let stored = outcome.changes.accounts.get(&caller).and_then(|change| change.storage.get(&slot(0)).copied());
        assert_eq!(stored, delegates.then(|| wei(1)), "{fork:?}, from a contract");

        let body = TransactionBody::Legacy(LegacyTransaction { to: Some(BOB), ..legacy() });
        let refusal = world.refusal(signed_by(CONTRACT, body));
        let refused = refusal == Some(TransactionError::SenderHasCode(CONTRACT));
        assert_eq!(refused, !delegates, "{fork:?}, as the sender (EIP-3607): {refusal:?}");
    }
}

#[test]
fn skips_invalid_authorizations() {
    let good = authorization(CHAIN_ID, CONTRACT, 0);
    let half = U256::from_big_endian(&hex("7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0"));
    let order = (half << 1) + 1;
    let world = Genesis::at(Fork::Prague).code(CONTRACT, STORE).build();
    for (name, bad) in [
        ("another chain", authorization(1, CONTRACT, 0)),
        ("a nonce ahead", authorization(CHAIN_ID, CONTRACT, 1)),
        ("the last nonce", authorization(CHAIN_ID, CONTRACT, u64::MAX)),
        ("no parity", Authorization { y_parity: 2, ..good.clone() }),
        ("no r", Authorization { r: U256::zero(), ..good.clone() }),
        ("s too high", Authorization { s: order - good.s, y_parity: 1 - good.y_parity, ..good.clone() }),
        ("a chain id beyond 64 bits", Authorization { chain_id: U256::MAX, ..good.clone() }),
        ("another signer", Authorization { nonce: 1, ..good.clone() }),
    ] {
        let outcome = world.execute(&[set_code(0, BOB, vec![bad])]).unwrap();
        assert_eq!(receipt(&outcome).outcome, ReceiptOutcome::Success(true), "{name}");
        assert_eq!(outcome.changes.accounts.get(&authority()), None, "{name}");
        assert_eq!(outcome.gas_used, 21_000 + 25_000, "{name}: it is paid for all the same");
    }
    // An invalid authorization does not invalidate the next one.
    let outcome = world.execute(&[set_code(0, BOB, vec![authorization(1, CONTRACT, 0), good])]).unwrap();
    assert_eq!(outcome.changes.accounts[&authority()].account.unwrap().nonce, 1);
}

#[test]
fn an_account_with_its_own_code_keeps_it() {
    let world = Genesis::at(Fork::Prague).code(authority(), "00").build();
    let outcome = world.execute(&[set_code(0, BOB, vec![authorization(CHAIN_ID, CONTRACT, 0)])]).unwrap();
    assert_eq!(outcome.changes.accounts.get(&authority()), None);
}

#[test]
fn replaces_and_revokes_delegations() {
    let other = H160::repeat_byte(0x0e);
    let world = Genesis::at(Fork::Prague).code(CONTRACT, STORE).build();
    let set = |nonce, to| set_code(nonce, BOB, vec![authorization(CHAIN_ID, to, nonce)]);
    for (name, transactions, expected) in [
        ("set", vec![set(0, CONTRACT)], keccak256(delegation(CONTRACT))),
        ("replaced", vec![set(0, CONTRACT), set(1, other)], keccak256(delegation(other))),
        ("revoked", vec![set(0, CONTRACT), set(1, Address::zero())], KECCAK_EMPTY),
    ] {
        let outcome = world.execute(&transactions).unwrap();
        let account = outcome.changes.accounts[&authority()].account.unwrap();
        assert_eq!((account.code_hash, account.nonce), (expected, transactions.len() as u64), "{name}");
    }
}

#[test]
fn refunds_gas_for_an_existing_account() {
    let transaction = || set_code(0, BOB, vec![authorization(CHAIN_ID, CONTRACT, 0)]);
    let gas_used = |genesis: Genesis| genesis.build().execute(&[transaction()]).unwrap().gas_used;
    assert_eq!(gas_used(Genesis::at(Fork::Prague)), 46_000);
    // The refund is 12,500, but at most a fifth of the gas used (EIP-3529).
    assert_eq!(gas_used(Genesis::at(Fork::Prague).balance(authority(), wei(1))), 46_000 - 46_000 / 5);
}

#[test]
fn a_delegation_stays_when_the_call_fails() {
    let world = Genesis::at(Fork::Prague).code(BOB, "fe").build();
    let outcome = world.execute(&[set_code(0, BOB, vec![authorization(CHAIN_ID, CONTRACT, 0)])]).unwrap();
    assert_eq!(receipt(&outcome).outcome, ReceiptOutcome::Success(false));
    assert_eq!(outcome.changes.accounts[&authority()].account.unwrap().nonce, 1);
}

#[test]
fn an_account_with_a_delegation_sends_transactions() {
    let world = Genesis::at(Fork::Prague)
        .bytecode(authority(), delegation(CONTRACT).into())
        .balance(authority(), wei(ETHER))
        .build();
    let mut transaction = set_code(0, BOB, vec![authorization(CHAIN_ID, CONTRACT, 1)]);
    transaction.sender = authority();
    // The sender's nonce increases before the authorization's is checked.
    let outcome = world.execute(&[transaction]).unwrap();
    assert_eq!(outcome.changes.accounts[&authority()].account.unwrap().nonce, 2);
}
