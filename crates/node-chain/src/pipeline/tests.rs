use super::*;
use crate::genesis::dev_genesis;
use crate::test_support::{chain_of, chained, grow, shared};
use crate::{Genesis, export_blocks};
use node_types::consensus::Block;

/// Encoded empty blocks of the development chain.
fn blocks(count: u64) -> Vec<Vec<u8>> {
    branch(count, b"")
}

/// Returns the same, distinguished from other branches by `extra`.
fn branch(count: u64, extra: &'static [u8]) -> Vec<Vec<u8>> {
    let genesis = dev_genesis();
    let chain = chain_of(&genesis);
    let mut parent = chain.backend().view().unwrap().header(0.into()).unwrap().unwrap();
    for _ in 0..count {
        parent = grow(&chain, &genesis.spec, &parent, 12, extra).1;
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
fn the_rest_of_a_file_is_imported_alone() {
    let blocks = blocks(5);
    let chain = chain_of(&dev_genesis());
    let mut ends = Vec::new();
    for block in &blocks {
        ends.push(ends.last().unwrap_or(&0) + block.len() as u64);
    }
    let file = blocks.concat();
    let mut seen = Vec::new();
    let first = &file[..ends[1] as usize];
    import_file(&chain, &Context::unbounded(), first, |progress| seen.push(progress.place.end)).unwrap();
    let rest = [&file[ends[0] as usize..], &[0x80]].concat();
    let mut known = 0;
    let result = import_rest(&chain, &Context::unbounded(), &rest[..], ends[0], |progress| {
        known = progress.known;
        seen.push(progress.place.end);
    });
    assert_eq!(known, 1);
    assert_eq!(seen, [&ends[..2], &ends[1..]].concat());
    let error = chained(&result.unwrap_err());
    assert!(error.contains(&format!("no block begins at byte {}", ends[4])), "{error}");
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
fn a_wrong_state_root_ends_the_import_before_the_blocks_that_were_executed_on_top_of_it() {
    let blocks = blocks(3);
    let genesis = dev_genesis();
    let mut wrong = Block::decode(&blocks[1]).unwrap();
    wrong.header.state_root.0[0] ^= 1;
    let mut child = Block::decode(&blocks[2]).unwrap();
    child.header.parent_hash = wrong.header.hash();
    let chain = chain_of(&genesis);
    let file = [blocks[0].clone(), rlp::encode(&wrong).to_vec(), rlp::encode(&child).to_vec()].concat();
    let error = chained(&import_file(&chain, &Context::unbounded(), &file[..], |_| {}).unwrap_err());
    let expected = format!("block 2 ({:#x}) is invalid: state root ", wrong.header.hash());
    assert!(error.contains(&expected), "got: {error}\nwant: {expected}");
    assert_eq!(chain.backend().view().unwrap().head().number, 1);
}

#[test]
fn blocks_of_several_branches_are_imported_in_the_order_of_the_file() {
    let (a, b) = (branch(9, b"a"), branch(9, b"b"));
    // Which blocks of which branch follow each other; the branch of the head in the end, and how many were known.
    type Parts<'a> = &'a [(&'a [Vec<u8>], std::ops::Range<usize>)];
    let cases: [(Parts<'_>, &[Vec<u8>], usize, u64); 5] = [
        (&[(&a, 0..3), (&b, 0..6), (&a, 3..5)], &b, 6, 0),
        (&[(&a, 0..3), (&b, 0..6), (&a, 3..9), (&b, 6..9)], &a, 9, 0),
        (&[(&a, 0..3), (&b, 0..2), (&a, 3..9)], &a, 9, 0),
        (&[(&a, 0..5), (&a, 2..7), (&a, 0..9)], &a, 9, 10),
        (&[(&a, 0..1), (&b, 0..1), (&b, 0..2), (&a, 1..2), (&b, 0..1)], &b, 2, 2),
    ];
    for (parts, winner, height, known) in cases {
        let file: Vec<u8> = parts.iter().flat_map(|(branch, range)| branch[range.clone()].concat()).collect();
        let chain = chain_of(&dev_genesis());
        let summary = import_file(&chain, &Context::unbounded(), &file[..], |_| {}).unwrap();
        let blocks: usize = parts.iter().map(|(_, range)| range.len()).sum();
        assert_eq!((summary.known, summary.imported), (known, blocks as u64 - known));
        let expected = Block::decode(&winner[height - 1]).unwrap().header.hash();
        assert_eq!(chain.backend().view().unwrap().head().hash, expected);
    }
}

#[test]
fn a_file_of_known_blocks_becomes_the_chain_if_it_is_better() {
    let (a, b) = (branch(70, b"a"), branch(80, b"b"));
    let chain = chain_of(&dev_genesis());
    let import = |blocks: &[Vec<u8>]| {
        import_file(&chain, &Context::unbounded(), &blocks.concat()[..], |_| {}).unwrap();
        chain.backend().view().unwrap().head()
    };
    let hash = |block: &[u8]| Block::decode(block).unwrap().header.hash();
    import(&b);
    assert_eq!(import(&a).hash, hash(&b[79]));
    // From a rollback, and from another branch.
    for (head, imported, expected) in
        [(&b[9], &b[..], &b[79]), (&a[69], &b[..70], &a[69]), (&a[69], &b[..71], &b[70]), (&b[0], &a[..], &a[69])]
    {
        chain.set_head(hash(head)).unwrap();
        assert_eq!(import(imported).hash, hash(expected));
    }
}

#[test]
fn another_import_into_the_same_chain_does_not_disturb() {
    let (a, b) = (branch(40, b"a"), branch(60, b"b"));
    for _ in 0..5 {
        let chain = chain_of(&dev_genesis());
        let import = |file: Vec<u8>| import_file(&chain, &Context::unbounded(), &file[..], |_| {}).unwrap();
        let (first, second) = thread::scope(|scope| {
            let (first, second) = (scope.spawn(|| import(a.concat())), scope.spawn(|| import(b.concat())));
            (first.join().unwrap(), second.join().unwrap())
        });
        assert_eq!((first.imported + first.known, second.imported + second.known), (40, 60));
        let expected = Block::decode(&b[59]).unwrap().header.hash();
        assert_eq!(chain.backend().view().unwrap().head().hash, expected);
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
