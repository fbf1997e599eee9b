use super::*;
use crate::genesis::dev_genesis;
use crate::test_support::{chain_of, chained, grow, shared};
use crate::{Genesis, export_blocks};
use node_types::consensus::Block;

/// Encoded empty blocks of the development chain.
fn blocks(count: u64) -> Vec<Vec<u8>> {
    let genesis = dev_genesis();
    let chain = chain_of(&genesis);
    let mut parent = chain.backend().view().unwrap().header(0.into()).unwrap().unwrap();
    for _ in 0..count {
        parent = grow(&chain, &genesis.spec, &parent, 12, b"").1;
    }
    let mut file = Vec::new();
    let view = chain.backend().view().unwrap();
    // The range may exceed the head.
    export_blocks(&*view, 1..=count + 10, &mut file).unwrap();
    BlockStream::new(&file[..]).map(|block| block.unwrap().bytes).collect()
}

fn import(file: &[u8]) -> (Result<ImportSummary, FileError>, u64) {
    let chain = chain_of(&dev_genesis());
    let result = import_file(&chain, &Context::unbounded(), file, |_| {});
    (result, chain.backend().view().unwrap().head().number)
}

#[test]
fn imports_several_batches_in_order() {
    let blocks = blocks(3 * BATCH_BLOCKS as u64 + 5);
    let chain = chain_of(&dev_genesis());
    let file = blocks.concat();
    let mut numbers = Vec::new();
    let summary = import_file(&chain, &Context::unbounded(), &file[..], |progress| numbers.push(progress.number));
    let count = blocks.len() as u64;
    assert_eq!(numbers, (1..=count).collect::<Vec<_>>());
    let summary = summary.unwrap();
    assert_eq!((summary.imported, summary.known), (count, 0));
    let again = import_file(&chain, &Context::unbounded(), &file[..], |_| {}).unwrap();
    assert_eq!((again.imported, again.known), (0, count));
}

#[test]
fn blocks_before_a_fault_stay_imported() {
    let blocks = blocks(5);
    let offset = blocks[..3].iter().map(Vec::len).sum::<usize>();
    let mut wrong = Block::decode(&blocks[3]).unwrap();
    wrong.header.gas_used = 1;
    let invalid = rlp::encode(&wrong).to_vec();
    // What follows the first three blocks; the error.
    let cases: [(Vec<u8>, String); 6] = [
        (
            blocks[3][..100].to_vec(),
            format!("the chain file is damaged: the block at byte {offset} is truncated: 100 of "),
        ),
        (b"garbage".to_vec(), format!("the chain file is damaged: no block begins at byte {offset}: found 0x67")),
        (vec![0xff; 20], format!("the chain file is damaged: the block at byte {offset} has ")),
        (vec![0xc1, 0x80], format!("the block at byte {offset} cannot be decoded: ")),
        (
            [&invalid[..], &blocks[4]].concat(),
            format!(
                "the block at byte {offset} was not imported: block 4 ({:#x}) is invalid: gas used 1, expected 0",
                wrong.header.hash()
            ),
        ),
        (blocks[4].clone(), format!("the block at byte {offset} was not imported: block 5 (")),
    ];
    for (tail, expected) in cases {
        let (result, head) = import(&[blocks[..3].concat(), tail].concat());
        let got = chained(&result.expect_err(&expected));
        assert!(got.starts_with(&expected), "got: {got}\nwant: {expected}");
        assert_eq!(head, 3, "{expected}");
    }
}

#[test]
fn imports_an_empty_file() {
    let (result, head) = import(&[]);
    assert_eq!((result.unwrap().imported, head), (0, 0));
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn exports_what_was_imported() {
    let file = shared("conformance/chain/chain.rlp");
    let chain = chain_of(&Genesis::parse(&shared("conformance/chain/genesis.json")).unwrap());
    let summary = import_file(&chain, &Context::unbounded(), &file[..], |_| {}).unwrap();
    assert_eq!(summary.imported, 54);
    let mut exported = Vec::new();
    export_blocks(&*chain.backend().view().unwrap(), 1..=u64::MAX, &mut exported).unwrap();
    assert!(exported == file, "the exported file differs");
}
