use super::*;
use crate::generator;
use node_chain::{BlockImporter, Genesis, import_file};
use node_core::executor::{Call, CallOutcome, Executor};
use node_evm::Secp256k1Recovery;
use node_types::consensus::ReceiptOutcome;
use std::collections::{BTreeMap, BTreeSet};

const BLOCKS: u64 = 50;
const SHAPE: Shape = Shape {
    accounts: 3,
    slots: 20,
    holders: 12,
    recipients: 30,
    genesis_accounts: 0,
    transactions_per_block: 4,
    seed: 7,
};

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
    let chain = BlockImporter::new(imported.clone(), executor, Arc::new(Secp256k1Recovery), generator.spec().clone());
    let summary = import_file(&chain, &Context::unbounded(), file.as_slice(), |_| {}).unwrap();
    assert_eq!((summary.imported, summary.known), (BLOCKS, 0));
    let generated = generator.backend().view().unwrap().head();
    assert_eq!(generated.number, BLOCKS);
    assert_eq!(imported.view().unwrap().head(), generated);
}

#[test]
fn a_chain_on_a_large_genesis_is_imported_to_the_same_head() {
    let shape = Shape { genesis_accounts: 500, ..SHAPE };
    let mut genesis = Vec::new();
    shape.write_genesis(&mut genesis).unwrap();
    let mut generator = Generator::on_genesis(shape, &genesis[..]).unwrap();
    let mut file = Vec::new();
    generator.write(BLOCKS, &mut file).unwrap();

    let genesis = Genesis::parse(&genesis).unwrap();
    assert_eq!(genesis.alloc.len(), 500 + dev_genesis().alloc.len());
    assert!(shape.genesis_holders(10).all(|holder| genesis.alloc[&holder].storage.len() == 4));
    let imported = Arc::new(MemoryBackend::new(genesis.block()).unwrap());
    let executor = Arc::new(EvmExecutor::new(generator.spec().clone()));
    let chain = BlockImporter::new(imported.clone(), executor, Arc::new(Secp256k1Recovery), generator.spec().clone());
    import_file(&chain, &Context::unbounded(), file.as_slice(), |_| {}).unwrap();
    assert_eq!(imported.view().unwrap().head(), generator.backend().view().unwrap().head());
}

#[test]
fn a_shape_names_one_chain() {
    let file = chain_file(SHAPE);
    assert!(file == chain_file(SHAPE), "two runs differ");
    let others = [
        Shape { accounts: 4, ..SHAPE },
        Shape { slots: 21, ..SHAPE },
        Shape { holders: 13, ..SHAPE },
        Shape { recipients: 31, ..SHAPE },
        Shape { transactions_per_block: 5, ..SHAPE },
        Shape { seed: 8, ..SHAPE },
    ];
    for other in others {
        assert!(file != chain_file(other), "{other:?} produces the chain of {SHAPE:?}");
    }
}

#[test]
fn transactions_succeed_and_what_they_store_is_kept_and_logged() {
    let mut generator = Generator::new(SHAPE);
    let mut stored: BTreeMap<(Address, H256), U256> = BTreeMap::new();
    let (mut recipients, mut tags, mut transfers) = (BTreeSet::new(), BTreeSet::new(), 0);
    for number in 1..=BLOCKS {
        let block = generator.next_block().unwrap();
        assert_eq!(block.body.transactions.len(), SHAPE.transactions_per_block);
        let mut of_contract = 0;
        for (recovered, receipt) in block.body.transactions.iter().zip(block.receipts.iter()) {
            let transaction = &recovered.transaction;
            assert_eq!(receipt.outcome, ReceiptOutcome::Success(true), "{transaction:?}");
            let logs: Vec<_> = receipt.logs.iter().map(|log| (log.address, log.topics.clone())).collect();
            match transaction.to() {
                Some(to) if to == CONTRACT || generator.holders().contains(&to) => {
                    let words: Vec<_> = transaction.input().chunks(32).map(H256::from_slice).collect();
                    let [key, value, tag] = words[..] else { panic!("{words:?}") };
                    assert_eq!(logs, [(to, vec![EVENT, key, tag])]);
                    assert!(tags.insert(tag), "{tag} twice");
                    stored.insert((to, key), U256::from_big_endian(value.as_bytes()));
                    of_contract += u32::from(to == CONTRACT);
                }
                to => {
                    assert_eq!(logs, []);
                    recipients.extend(to);
                    transfers += u32::from(to.is_some());
                }
            }
        }
        assert!(number == 1 || of_contract > 0, "no log of the contract in block {number}");
    }
    assert_eq!((recipients.len() as u64, transfers > 50), (SHAPE.recipients, true), "{transfers} transfers");
    assert_eq!(generator.holders().len() as u64, SHAPE.holders);
    for holder in generator.holders() {
        stored.entry((*holder, H256::zero())).or_insert(U256::one());
    }
    let of_contract: Vec<_> = stored.keys().filter(|(address, _)| *address == CONTRACT).map(|(_, key)| *key).collect();
    let expected: Vec<_> = (0..SHAPE.slots).map(generator::slot_key).collect();
    assert!(of_contract.iter().all(|key| expected.contains(key)), "{of_contract:?}");
    assert!(of_contract.len() > 10, "{} slots", of_contract.len());
    assert!(stored.values().filter(|value| **value > U256::one()).count() > of_contract.len(), "no holder was written");

    let view = generator.backend().view().unwrap();
    let head = view.header(BLOCKS.into()).unwrap().unwrap();
    for ((address, key), value) in stored {
        let call = Call { to: Some(address), input: key.as_bytes().into(), ..Call::default() };
        match generator.executor.call(&Context::unbounded(), &*view, &head.header, &call) {
            Ok(CallOutcome::Returned { output, .. }) => assert_eq!(U256::from_big_endian(&output), value, "{key}"),
            other => panic!("{key}: {other:?}"),
        }
    }
}

#[test]
fn the_largest_blocks_do_not_raise_the_base_fee() {
    let largest =
        Shape { slots: u64::MAX, holders: 500, transactions_per_block: MAX_TRANSACTIONS_PER_BLOCK, ..Shape::default() };
    let mut generator = Generator::new(largest);
    for _ in 0..6 {
        let header = &generator.next_block().unwrap().header.header;
        assert!(header.gas_used < header.gas_limit / 2, "{} of {}", header.gas_used, header.gas_limit);
    }
}
