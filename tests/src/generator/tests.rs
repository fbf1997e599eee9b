use super::*;
use crate::generator;
use node_chain::{Chain, import_file};
use node_core::executor::{Call, CallOutcome, Executor};
use node_evm::Secp256k1Recovery;
use node_types::consensus::ReceiptOutcome;

const BLOCKS: u64 = 50;
const SHAPE: Shape = Shape { accounts: 3, slots: 20, transactions_per_block: 4, seed: 7 };

fn chain_file(shape: Shape) -> Vec<u8> {
    let mut file = Vec::new();
    Generator::new(shape).write(BLOCKS, &mut file).unwrap();
    file
}

#[test]
fn the_chain_is_imported_to_the_same_head() {
    let mut generator = Generator::new(SHAPE);
    let mut file = Vec::new();
    generator.write(BLOCKS, &mut file).unwrap();

    let imported = Arc::new(MemoryBackend::new(dev_genesis().block()).unwrap());
    let executor = Arc::new(EvmExecutor::new(generator.spec().clone()));
    let chain = Chain::new(imported.clone(), executor, Arc::new(Secp256k1Recovery), generator.spec().clone());
    let summary = import_file(&chain, &Context::unbounded(), file.as_slice(), |_| {}).unwrap();
    assert_eq!((summary.imported, summary.known), (BLOCKS, 0));
    let generated = generator.backend().view().unwrap().head();
    assert_eq!(generated.number, BLOCKS);
    assert_eq!(imported.view().unwrap().head(), generated);
}

#[test]
fn a_shape_names_one_chain() {
    let file = chain_file(SHAPE);
    assert!(file == chain_file(SHAPE), "two runs differ");
    let others = [
        Shape { accounts: 4, ..SHAPE },
        Shape { slots: 21, ..SHAPE },
        Shape { transactions_per_block: 5, ..SHAPE },
        Shape { seed: 8, ..SHAPE },
    ];
    for other in others {
        assert!(file != chain_file(other), "{other:?} gives the chain of {SHAPE:?}");
    }
}

#[test]
fn transactions_succeed_and_the_contract_keeps_and_logs_what_they_store() {
    let mut generator = Generator::new(SHAPE);
    let (mut stored, mut transfers) = (std::collections::BTreeMap::new(), 0);
    for _ in 0..BLOCKS {
        let block = generator.next_block().unwrap();
        assert_eq!(block.body.transactions.len(), SHAPE.transactions_per_block);
        for (recovered, receipt) in block.body.transactions.iter().zip(block.receipts.iter()) {
            let transaction = &recovered.transaction;
            assert_eq!(receipt.outcome, ReceiptOutcome::Success(true), "{transaction:?}");
            let logs: Vec<_> = receipt.logs.iter().map(|log| (log.address, log.topics.clone())).collect();
            if transaction.to() == Some(CONTRACT) {
                let (key, value) = transaction.input().split_at(32);
                let key = H256::from_slice(key);
                assert_eq!(logs, [(CONTRACT, vec![EVENT, key])]);
                stored.insert(key, U256::from_big_endian(value));
            } else {
                assert_eq!(logs, []);
                transfers += 1;
            }
        }
    }
    let expected: Vec<_> = (0..SHAPE.slots).map(generator::slot_key).collect();
    assert!(stored.keys().all(|key| expected.contains(key)), "{stored:?}");
    assert!(stored.len() > 10 && transfers > 50, "{} slots, {transfers} transfers", stored.len());

    let view = generator.backend().view().unwrap();
    let head = view.header(BLOCKS.into()).unwrap().unwrap();
    for (key, value) in stored {
        let call = Call { to: Some(CONTRACT), input: key.as_bytes().into(), ..Call::default() };
        match generator.executor.call(&Context::unbounded(), &*view, &head.header, &call) {
            Ok(CallOutcome::Returned { output, .. }) => assert_eq!(U256::from_big_endian(&output), value, "{key}"),
            other => panic!("{key}: {other:?}"),
        }
    }
}

#[test]
fn the_largest_blocks_do_not_raise_the_base_fee() {
    let largest = Shape { slots: u64::MAX, transactions_per_block: MAX_TRANSACTIONS_PER_BLOCK, ..Shape::default() };
    let mut generator = Generator::new(largest);
    for _ in 0..3 {
        let header = &generator.next_block().unwrap().header.header;
        assert!(header.gas_used < header.gas_limit / 2, "{} of {}", header.gas_used, header.gas_limit);
    }
}
