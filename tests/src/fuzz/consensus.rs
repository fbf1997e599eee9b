//! Consensus objects, compared with alloy.

use super::{Check, Format, Target};
use crate::generator::{Generator, Shape};
use alloy_consensus::{EthereumTxEnvelope, ReceiptEnvelope, TrieAccount, TxEip4844};
use alloy_eips::{Decodable2718, Encodable2718, eip4895};
use alloy_rlp::Decodable;
use node_chain::{BlockStream, Genesis};
use node_core::block::ExecutedBlock;
use node_types::consensus::{
    Account, BlobSidecar, Block, Header, PooledTransaction, Receipt, ReceiptOutcome, Transaction, TransactionType,
    Withdrawal,
};
use node_types::trie::verify_proof;
use node_types::{Bytes, H256, U256, keccak256};

type AlloyTransaction = EthereumTxEnvelope<TxEip4844>;

pub(super) fn targets() -> Vec<Target> {
    let target = |name, seeds, check| Target { name, format: Format::Rlp, seeds, check };
    vec![
        target("rlp", headers, || stateless(rlp_encodings)),
        target("transaction", transactions, || stateless(transaction)),
        target("pooled-transaction", pooled_transactions, || stateless(pooled)),
        target("header", headers, || stateless(header)),
        target("receipt", receipts, || stateless(receipt)),
        target("account", accounts, || stateless(account)),
        target("withdrawal", withdrawals, || stateless(withdrawal)),
        target("block", blocks, || stateless(block)),
        target("trie-proof", proofs, || stateless(proof)),
        target("chain-file", || vec![blocks().concat()], || stateless(chain_file)),
        Target {
            name: "genesis",
            format: Format::Json,
            seeds: || vec![node_chain::genesis::DEV_GENESIS.into()],
            check: || stateless(genesis),
        },
    ]
}

fn stateless(check: fn(&[u8]) -> Result<bool, String>) -> Check {
    Box::new(check)
}

/// The executed blocks of a small chain.
pub(super) fn executed() -> Vec<ExecutedBlock> {
    let shape = Shape { accounts: 8, transactions_per_block: 3, ..Shape::default() };
    let mut generator = Generator::new(shape);
    (0..4).map(|_| generator.next_block().expect("the generator makes valid blocks")).collect()
}

/// The blocks of the same chain, encoded.
fn blocks() -> Vec<Vec<u8>> {
    let shape = Shape { accounts: 8, transactions_per_block: 3, ..Shape::default() };
    let mut file = Vec::new();
    Generator::new(shape).write(4, &mut file).expect("the generator makes valid blocks");
    let blocks = BlockStream::new(&*file).map(|block| block.expect("the file is valid").bytes.to_vec());
    blocks.chain([typed_block()]).collect()
}

/// A block with transactions of all types, an ommer and withdrawals.
fn typed_block() -> Vec<u8> {
    let header = Header { number: 5, ..full_header() };
    let transactions = transactions().iter().filter_map(|bytes| Transaction::decode(bytes).ok()).collect();
    let ommers = vec![Header { number: 4, ..Header::default() }];
    Block { header, transactions, ommers, withdrawals: Some(vec![a_withdrawal(); 2]) }.encode()
}

/// A header with all fields.
fn full_header() -> Header {
    let hash = Some(H256::repeat_byte(3));
    Header {
        number: 5,
        gas_limit: 30_000_000,
        timestamp: 1 << 30,
        extra_data: vec![1, 2, 3].into(),
        base_fee_per_gas: Some(7),
        withdrawals_root: hash,
        blob_gas_used: Some(0x20000),
        excess_blob_gas: Some(0),
        parent_beacon_block_root: hash,
        requests_hash: hash,
        ..Header::default()
    }
}

fn transactions() -> Vec<Vec<u8>> {
    let generated = executed();
    let generated = generated.iter().flat_map(|block| &block.body.transactions);
    let mut seeds: Vec<_> = generated.map(|transaction| transaction.transaction.encode()).take(3).collect();
    // Transactions of each type with lists that are not empty.
    let item: &[u8] = &[0xf7, 0x94, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0xe1, 0xa0];
    let access_list = [&[0xf8, 0x38], item, &[9; 32]].concat();
    let to = [&[0x94][..], &[7; 20]].concat();
    let word = [&[0xa0][..], &[0x33; 32]].concat();
    let numbers = |count: usize| [0x01, 0x80, 0x82, 0x01, 0x00, 0x07, 0x83, 0x01, 0x00, 0x00][..count].to_vec();
    let signature = [&[0x01][..], &word, &word].concat();
    let hashes = [&[0xe1, 0xa0, 1][..], &[5; 31]].concat();
    let authorization = [&[0xf8, 0x5a, 1][..], &to, &[0x80, 1], &word, &word].concat();
    let authorizations = [&[0xf8, 0x5c][..], &authorization].concat();
    let payloads: [(u8, Vec<Vec<u8>>); 5] = [
        (0, vec![vec![0x80, 7, 0x83, 1, 0, 0], to.clone(), vec![0x05, 0x82, 1, 2, 0x26], word.clone(), word.clone()]),
        (1, vec![vec![1, 0x80, 7, 0x83, 1, 0, 0], to.clone(), vec![5, 0x80], access_list.clone(), signature.clone()]),
        (2, vec![numbers(9), vec![0x80, 5, 0x82, 0x60, 0], access_list.clone(), signature.clone()]),
        (3, vec![numbers(10), to.clone(), vec![5, 0x80], access_list.clone(), vec![7], hashes, signature.clone()]),
        (4, vec![numbers(10), to, vec![5, 0x80], access_list, authorizations, signature]),
    ];
    for (kind, payload) in payloads {
        let mut encoded = if kind == 0 { Vec::new() } else { vec![kind] };
        let payload = payload.concat();
        node_types::rlp::put_list_header(&mut encoded, payload.len());
        encoded.extend(payload);
        seeds.push(encoded);
    }
    seeds
}

/// Blob transactions with sidecars without blobs, beside the others: a blob has 128 KiB.
fn pooled_transactions() -> Vec<Vec<u8>> {
    let mut seeds = transactions();
    let blob =
        seeds.iter().find_map(|bytes| Transaction::decode(bytes).ok().filter(|tx| bytes[0] == 3 && tx.nonce() == 0));
    if let Some(transaction) = blob {
        let points = || vec![Bytes::from(vec![0xc0; 48])];
        for sidecar in [
            BlobSidecar::V0 { blobs: Vec::new(), commitments: points(), proofs: points() },
            BlobSidecar::V1 { blobs: Vec::new(), commitments: points(), cell_proofs: points() },
        ] {
            seeds.push(PooledTransaction { transaction: transaction.clone(), sidecar: Some(sidecar) }.encode());
        }
    }
    seeds
}

fn headers() -> Vec<Vec<u8>> {
    let generated = executed().into_iter().map(|block| block.header.header.encode());
    generated.take(2).chain([full_header().encode(), Header::default().encode()]).collect()
}

fn receipts() -> Vec<Vec<u8>> {
    let generated = executed();
    let mut receipts: Vec<Receipt> =
        generated.iter().flat_map(|block| block.receipts.iter().cloned()).take(3).collect();
    for (kind, outcome) in [
        (TransactionType::Legacy, ReceiptOutcome::StateRoot(H256::repeat_byte(1))),
        (TransactionType::Blob, ReceiptOutcome::Success(false)),
    ] {
        let receipt = receipts.first().cloned();
        receipts.extend(receipt.map(|receipt| Receipt { transaction_type: kind, outcome, ..receipt }));
    }
    receipts.iter().map(Receipt::encode).collect()
}

fn accounts() -> Vec<Vec<u8>> {
    let hash = H256::repeat_byte(8);
    vec![Account { nonce: 1, balance: U256::from(1) << 70, storage_root: hash, code_hash: hash }.encode()]
}

fn a_withdrawal() -> Withdrawal {
    Withdrawal { index: 1, validator_index: 300, address: Default::default(), amount: 1 << 40 }
}

fn withdrawals() -> Vec<Vec<u8>> {
    vec![a_withdrawal().encode()]
}

/// What alloy and this node must agree about: whether the bytes are accepted, and how the object is encoded again.
fn compare(ours: Result<Vec<u8>, String>, theirs: Result<Vec<u8>, String>) -> Result<bool, String> {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) if ours == theirs => Ok(true),
        (Err(_), Err(_)) => Ok(false),
        (ours, theirs) => Err(format!("this node: {}, alloy: {}", shown(ours), shown(theirs))),
    }
}

fn shown(result: Result<Vec<u8>, String>) -> String {
    result.map_or_else(|error| format!("error: {error}"), |bytes| format!("0x{}", const_hex::encode(bytes)))
}

/// Decodes an object that must take all of `input`.
fn whole<T: Decodable>(mut input: &[u8]) -> Result<T, String> {
    let value = T::decode(&mut input).map_err(text)?;
    if input.is_empty() { Ok(value) } else { Err("trailing bytes".to_owned()) }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Strings and headers of lists, as alloy encodes them.
fn rlp_encodings(input: &[u8]) -> Result<bool, String> {
    let mut ours = Vec::new();
    node_types::rlp::put_string(&mut ours, input);
    if node_types::rlp::string_length(input) != ours.len() {
        return Err("the length of a string is wrong".to_owned());
    }
    node_types::rlp::put_list_header(&mut ours, input.len());
    let mut theirs = alloy_rlp::encode(input);
    alloy_rlp::Header { list: true, payload_length: input.len() }.encode(&mut theirs);
    compare(Ok(ours), Ok(theirs))
}

/// alloy stores prices in 128 bits; this node accepts what the protocol does.
fn exceeds_alloy(transaction: &Transaction) -> bool {
    let body = &transaction.body;
    let blob_price = match body {
        node_types::consensus::TransactionBody::Blob(blob) => blob.max_fee_per_blob_gas,
        _ => U256::zero(),
    };
    [body.max_fee_per_gas(), body.max_priority_fee_per_gas(), blob_price].iter().any(|price| price.bits() > 128)
}

fn transaction(input: &[u8]) -> Result<bool, String> {
    let ours = Transaction::decode(input);
    if ours.as_ref().is_ok_and(exceeds_alloy) {
        return Ok(true);
    }
    let theirs = AlloyTransaction::decode_2718_exact(input).map_err(text);
    compare(ours.map(|ours| ours.encode()).map_err(text), theirs.map(|theirs| theirs.encoded_2718()))
}

fn pooled(input: &[u8]) -> Result<bool, String> {
    same_again(input, PooledTransaction::decode(input).ok().map(|decoded| decoded.encode()))
}

/// Accepted input is encoded to the same bytes again.
fn same_again(input: &[u8], encoded: Option<Vec<u8>>) -> Result<bool, String> {
    match encoded {
        None => Ok(false),
        Some(encoded) if encoded == input => Ok(true),
        Some(encoded) => Err(format!("encoded again: {}", shown(Ok(encoded)))),
    }
}

fn header(input: &[u8]) -> Result<bool, String> {
    let theirs = whole::<alloy_consensus::Header>(input);
    if theirs.as_ref().is_ok_and(has_later_fields) {
        return Ok(Header::decode(input).is_ok());
    }
    let theirs = theirs.map(alloy_rlp::encode);
    compare(Header::decode(input).map(|header| header.encode()).map_err(text), theirs)
}

fn receipt(input: &[u8]) -> Result<bool, String> {
    let theirs = ReceiptEnvelope::decode_2718_exact(input).map_err(text);
    let ours = Receipt::decode(input).map(|receipt| receipt.encode()).map_err(text);
    compare(ours, theirs.map(|theirs| theirs.encoded_2718()))
}

fn account(input: &[u8]) -> Result<bool, String> {
    let theirs = whole::<TrieAccount>(input).map(alloy_rlp::encode);
    compare(Account::decode(input).map(|account| account.encode()).map_err(text), theirs)
}

fn withdrawal(input: &[u8]) -> Result<bool, String> {
    let theirs = whole::<eip4895::Withdrawal>(input).map(alloy_rlp::encode);
    compare(Withdrawal::decode(input).map(|withdrawal| withdrawal.encode()).map_err(text), theirs)
}

fn block(input: &[u8]) -> Result<bool, String> {
    let ours = Block::decode(input);
    if ours.as_ref().is_ok_and(|block| block.transactions.iter().any(exceeds_alloy)) {
        return Ok(true);
    }
    let theirs = whole::<alloy_consensus::Block<AlloyTransaction>>(input);
    let headers = |block: &alloy_consensus::Block<AlloyTransaction>| {
        has_later_fields(&block.header) || block.body.ommers.iter().any(has_later_fields)
    };
    if theirs.as_ref().is_ok_and(headers) {
        return Ok(ours.is_ok());
    }
    // For compatibility with its users, alloy also accepts typed transactions that are not wrapped in a string.
    let canonical = |bytes: &Vec<u8>| if bytes == input { Ok(()) } else { Err("not canonical".to_owned()) };
    let theirs = theirs.map(alloy_rlp::encode).and_then(|bytes| canonical(&bytes).map(|()| bytes));
    compare(ours.map(|block| block.encode()).map_err(text), theirs)
}

/// alloy has the fields of a fork that this node does not implement.
fn has_later_fields(header: &alloy_consensus::Header) -> bool {
    header.block_access_list_hash.is_some() || header.slot_number.is_some()
}

/// A trie of 40 accounts, as proofs of one of them: a list of the key and the nodes.
fn proofs() -> Vec<Vec<u8>> {
    let mut leaves: Vec<_> = (0u8..40).map(|index| (keccak256([index]), vec![index + 1; 40])).collect();
    leaves.sort();
    let keys: Vec<_> = (0u8..3).chain([77]).map(|index| keccak256([index])).collect();
    let targets = keys.iter().map(|key| alloy_trie::Nibbles::unpack(key.0));
    let retainer = alloy_trie::proof::ProofRetainer::from_iter(targets);
    let mut builder = alloy_trie::HashBuilder::default().with_proof_retainer(retainer);
    leaves.iter().for_each(|(key, value)| builder.add_leaf(alloy_trie::Nibbles::unpack(key.0), value));
    builder.root();
    let nodes = builder.take_proof_nodes();
    keys.iter()
        .map(|key| {
            let path = nodes.matching_nodes_sorted(&alloy_trie::Nibbles::unpack(key.0));
            let mut stream = rlp::RlpStream::new_list(1 + path.len());
            stream.append(key);
            for (_, node) in &path {
                stream.append(&node.to_vec());
            }
            stream.out().into()
        })
        .collect()
}

/// The first node is taken as the root, so that mutated proofs are consistent more often. A proof that is accepted here
/// and by alloy shows the same. alloy accepts some proofs that are not: with nodes after the last one that is needed.
fn proof(input: &[u8]) -> Result<bool, String> {
    let list = rlp::Rlp::new(input);
    let Ok(items) = list.as_list::<Vec<u8>>() else { return Ok(false) };
    let [key, nodes @ ..] = &items[..] else { return Ok(false) };
    let Some(root) = nodes.first().map(keccak256) else { return Ok(false) };
    if key.len() != 32 {
        return Ok(false);
    }
    let Ok(value) = verify_proof(root, key, nodes) else { return Ok(false) };
    let nodes: Vec<alloy_primitives::Bytes> = nodes.iter().map(|node| node.clone().into()).collect();
    let expected = value.as_ref().map(|value| value.to_vec());
    let theirs = alloy_trie::proof::verify_proof(root.0.into(), alloy_trie::Nibbles::unpack(key), expected, &nodes);
    match theirs {
        Ok(()) => Ok(true),
        // No branch of Ethereum's tries has a value, because all keys have the same length. alloy refuses to read one.
        Err(error) if error.to_string().contains("branch node values are not supported") => Ok(true),
        Err(error) => Err(format!("this node: {value:?}, alloy: {error}")),
    }
}

fn chain_file(input: &[u8]) -> Result<bool, String> {
    let mut end = 0;
    for block in BlockStream::new(input) {
        let Ok(block) = block else { return Ok(false) };
        if block.offset != end || !input[end as usize..].starts_with(&block.bytes) {
            return Err(format!("the block at byte {} is not where the one before ends", block.offset));
        }
        end += block.bytes.len() as u64;
    }
    if end == input.len() as u64 { Ok(true) } else { Err(format!("the last block ends at byte {end}")) }
}

fn genesis(input: &[u8]) -> Result<bool, String> {
    let Ok(genesis) = Genesis::parse(input) else { return Ok(false) };
    let again = Genesis::parse(&genesis.to_json()).map_err(|error| format!("what it wrote is refused: {error}"))?;
    let [first, second] = [&genesis, &again].map(|genesis| genesis.block().header.hash);
    if genesis == again && first == second { Ok(true) } else { Err("what it wrote is another genesis".to_owned()) }
}
