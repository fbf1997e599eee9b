use super::*;
use node_core::block::{BlockRef, Body};
use node_types::consensus::{
    AccessListItem, AccessListTransaction, Bloom, DynamicFeeTransaction, Header, LegacyTransaction, Receipt, Signature,
    Transaction, TransactionType, Withdrawal,
};
use node_types::wire::{JsonBuffer, append_json};

const BASE_FEE: u64 = 1_000;
const GAS: u64 = 21_000;

fn address(byte: u8) -> Address {
    Address::repeat_byte(byte)
}

fn word(number: u64) -> H256 {
    H256::from_low_u64_be(number)
}

fn sealed(header: Header) -> SealedHeader {
    SealedHeader { hash: word(0xb10c), header, total_difficulty: U256::from(17), size: 540 }
}

fn recovered(body: TransactionBody, y_parity: bool) -> RecoveredTransaction {
    let transaction = Transaction { body, signature: Signature { r: 5.into(), s: 6.into(), y_parity } };
    RecoveredTransaction { hash: word(0x7a), transaction, sender: address(1) }
}

fn legacy(chain_id: Option<u64>) -> TransactionBody {
    TransactionBody::Legacy(LegacyTransaction { chain_id, gas_price: 2_000.into(), ..LegacyTransaction::default() })
}

#[test]
fn converts_v_of_each_kind_of_signature() {
    let typed =
        || TransactionBody::AccessList(AccessListTransaction { chain_id: 1, ..AccessListTransaction::default() });
    let cases = [
        (legacy(None), false, U256::from(27)),
        (legacy(None), true, U256::from(28)),
        (legacy(Some(1)), false, U256::from(37)),
        (legacy(Some(1)), true, U256::from(38)),
        // Twice the highest chain id does not fit 64 bits.
        (legacy(Some(u64::MAX)), true, U256::from(u64::MAX) * 2 + 36),
        (typed(), false, U256::zero()),
        (typed(), true, U256::one()),
    ];
    for (body, parity, expected) in cases {
        assert_eq!(pooled_transaction(&recovered(body.clone(), parity)).v, Quantity(expected), "{body:?}");
    }
}

#[test]
fn converts_prices_and_positions() {
    let header = sealed(Header { number: 9, base_fee_per_gas: Some(BASE_FEE), ..Header::default() });
    let before_london = sealed(Header { number: 9, ..Header::default() });
    let capped = |tip: u64, cap: u64| {
        TransactionBody::DynamicFee(DynamicFeeTransaction {
            max_priority_fee_per_gas: tip.into(),
            max_fee_per_gas: cap.into(),
            ..DynamicFeeTransaction::default()
        })
    };
    // The block, whether it is pending, the transaction, its price.
    let cases = [
        (&header, false, capped(5, 3_000), BASE_FEE + 5),
        (&header, false, capped(5, BASE_FEE + 3), BASE_FEE + 3),
        (&header, true, capped(5, 3_000), 3_000),
        (&header, false, legacy(None), 2_000),
        (&before_london, false, legacy(None), 2_000),
    ];
    for (header, pending, body, price) in cases {
        let got = mined_transaction(&Place::of(header, pending), 4, &recovered(body.clone(), false));
        assert_eq!(got.gas_price, Quantity(price.into()), "{body:?}");
        assert_eq!(got.block_hash, (!pending).then_some(Data(word(0xb10c))), "{body:?}");
        assert_eq!(got.block_number, (!pending).then_some(Quantity(9)), "{body:?}");
        assert_eq!(got.transaction_index, (!pending).then_some(Quantity(4)), "{body:?}");
        let caps = matches!(body, TransactionBody::DynamicFee(_));
        assert_eq!(got.max_fee_per_gas.is_some(), caps, "{body:?}");
        assert_eq!(got.max_priority_fee_per_gas.is_some(), caps, "{body:?}");
    }
}

#[test]
fn converts_access_lists() {
    let item = AccessListItem { address: address(3), storage_keys: vec![word(4), word(5)] };
    let body = TransactionBody::AccessList(AccessListTransaction {
        chain_id: 7,
        access_list: vec![item],
        ..AccessListTransaction::default()
    });
    let got = pooled_transaction(&recovered(body, false));
    let expected = wire::AccessListItem { address: Data(address(3)), storage_keys: vec![Data(word(4)), Data(word(5))] };
    assert_eq!((got.access_list, got.chain_id), (vec![expected], Some(Quantity(7))));
}

#[test]
fn converts_blocks_of_all_forks() {
    let withdrawal = Withdrawal { index: 1, validator_index: 2, address: address(3), amount: 4 };
    let ommer = Header { number: 8, ..Header::default() };
    let frontier = sealed(Header { number: 9, mix_hash: word(11), nonce: [1; 8], ..Header::default() });
    let of_frontier = Body { ommers: vec![ommer.clone()], ..Body::default() };
    let shanghai = sealed(Header {
        base_fee_per_gas: Some(BASE_FEE),
        withdrawals_root: Some(word(12)),
        ..frontier.header.clone()
    });
    let of_shanghai = Body { withdrawals: Some(vec![withdrawal]), ..Body::default() };

    let convert = |header: &SealedHeader, body: Body, full, pending| {
        block(&FoundBlock { header: Arc::new(header.clone()), body: Arc::new(body), pending }, full)
    };
    let got = convert(&frontier, of_frontier, true, false);
    assert_eq!((got.base_fee_per_gas, got.withdrawals, got.withdrawals_root), (None, None, None));
    assert_eq!(got.uncles, [Data(ommer.hash())]);
    assert_eq!((got.mix_hash, got.nonce), (Quantity(11.into()), Some(Data([1; 8]))));
    assert_eq!((got.size, got.total_difficulty), (Quantity(540), Quantity(17.into())));
    assert_eq!((got.hash, got.number), (Some(Data(word(0xb10c))), Some(Quantity(9))));

    let got = convert(&shanghai, of_shanghai, false, true);
    let expected = wire::Withdrawal { address: Data(address(3)), amount: Quantity(4), index: 1, validator_index: 2 };
    assert_eq!(got.base_fee_per_gas, Some(Quantity(BASE_FEE)));
    assert_eq!((got.withdrawals, got.withdrawals_root), (Some(vec![expected]), Some(Data(word(12)))));
    assert_eq!((got.hash, got.number, got.nonce, got.logs_bloom), (None, None, None, None));
}

#[test]
fn converts_receipts_of_mined_and_pending_blocks() {
    let header = sealed(Header { number: 9, base_fee_per_gas: Some(BASE_FEE), ..Header::default() });
    let capped = TransactionBody::DynamicFee(DynamicFeeTransaction {
        max_priority_fee_per_gas: 3.into(),
        max_fee_per_gas: 3_000.into(),
        to: Some(address(2)),
        ..DynamicFeeTransaction::default()
    });
    let body = Body { transactions: vec![recovered(capped, false), recovered(legacy(None), false)], ..Body::default() };
    let log = Log { address: address(3), topics: vec![word(1)], data: Bytes::new() };
    let receipt = |transaction_type, outcome, cumulative_gas_used| Receipt {
        transaction_type,
        outcome,
        cumulative_gas_used,
        logs_bloom: Bloom::ZERO,
        logs: vec![log.clone()],
    };
    let stored = Arc::new(vec![
        receipt(TransactionType::DynamicFee, ReceiptOutcome::Success(true), GAS),
        receipt(TransactionType::Legacy, ReceiptOutcome::StateRoot(word(1)), GAS + 60_000),
    ]);
    let found = |pending| FoundReceipts {
        block: FoundBlock { header: Arc::new(header.clone()), body: Arc::new(body.clone()), pending },
        receipts: stored.clone(),
    };
    let got = receipts(&found(false));
    let summary: Vec<_> = got
        .iter()
        .map(|receipt| {
            let logs: Vec<_> = receipt.logs.iter().map(|log| log.log_index.unwrap().0).collect();
            (receipt.gas_used.0, receipt.status.map(|status| status.0), receipt.contract_address.is_some(), logs)
        })
        .collect();
    assert_eq!(summary, [(GAS, Some(1), false, vec![0]), (60_000, None, true, vec![1])]);
    assert_eq!(got[0].effective_gas_price, Quantity((BASE_FEE + 3).into()));
    assert_eq!((got[0].transaction_type, got[1].transaction_type), (Quantity(2), Quantity(0)));
    assert_eq!(super::receipt(&FoundReceipt { receipts: found(false), index: 1 }).as_ref(), Some(&got[1]));

    let pending = &receipts(&found(true))[0];
    assert_eq!((pending.block_hash, pending.block_number, pending.transaction_index), (None, None, None));
    assert_eq!((pending.logs[0].block_hash, pending.logs[0].transaction_hash), (None, None));
}

#[test]
fn appends_the_json_of_a_log() {
    for (count, pending) in [(0, true), (0, false), (1, true), (3, false), (4, false)] {
        let (topics, data) = (vec![[7; 32]; count], vec![9; 50 * count]);
        let found = FoundLog {
            block: BlockRef { number: 8, hash: word(10) },
            timestamp: 9,
            pending,
            log_index: u64::MAX,
            transaction_index: 0,
            transaction_hash: word(11),
            log: LogRef { address: address(1), topics: &topics, data: &data },
        };
        let (mut appended, mut serialized) = (JsonBuffer::default(), JsonBuffer::default());
        append_log(&mut appended, &found);
        append_json(&mut serialized, &log(found.to_found_log())).unwrap();
        assert_eq!(String::from_utf8(appended.into()), String::from_utf8(serialized.into()));
    }
}
