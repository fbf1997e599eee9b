//! A recorded chain with every fork from Frontier to BPO2.

use crate::consensus::test_support::shared_file;
use crate::consensus::{Block, Header};
use crate::{H256, keccak256};
use rlp::PayloadInfo;

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn every_block_decodes_and_encodes_to_the_same_bytes() {
    let file = shared_file("conformance/chain/chain.rlp");
    let mut rest = file.as_slice();
    let mut parent: Option<(u64, H256)> = None;
    let mut count = 0;
    while !rest.is_empty() {
        let (bytes, after) = rest.split_at(PayloadInfo::from(rest).unwrap().total());
        rest = after;
        let block = Block::decode(bytes).unwrap_or_else(|error| panic!("block {count} of the file: {error}"));
        let number = block.header.number;
        assert_eq!(const_hex::encode(block.encode()), const_hex::encode(bytes), "block {number}");
        assert_eq!(
            block.header.ommers_hash,
            keccak256(rlp::encode_list::<Header, Header>(&block.ommers)),
            "block {number}"
        );
        if let Some((parent_number, parent_hash)) = parent {
            assert_eq!((number, block.header.parent_hash), (parent_number + 1, parent_hash));
        }
        parent = Some((number, block.hash()));
        count += 1;
    }
    assert_eq!(count, 54);
}
