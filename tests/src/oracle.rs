//! What headers commit to, recomputed by alloy: an independent implementation.
//!
//! The rules are those of the development genesis: BPO2 from block 1 on.

use alloy_consensus::transaction::SignerRecoverable;
use alloy_consensus::{Block, EthereumTxEnvelope, Header, ReceiptEnvelope, TrieAccount, TxEip4844, proofs};
use alloy_eips::eip1559::BaseFeeParams;
use alloy_eips::eip7685::Requests;
use alloy_eips::eip7840::BlobParams;
use alloy_eips::{Decodable2718, Encodable2718};
use alloy_primitives::{Address, B64, B256, Bloom, Bytes, U256, keccak256};
use alloy_rlp::Decodable;
use alloy_trie::proof::verify_proof;
use alloy_trie::root::{state_root_unhashed, storage_root_unhashed};
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles};
use node_chain::{BlockImporter, Genesis, export_blocks, import_file};
use node_core::backend::{AccountProof, MemoryBackend, StateBackend, View};
use node_core::context::Context;
use node_evm::{EvmExecutor, Secp256k1Recovery};
use node_types::BlockNumber;
use std::collections::BTreeSet;
use std::sync::Arc;

type AlloyBlock = Block<EthereumTxEnvelope<TxEip4844>>;

/// Gas of one blob (EIP-4844).
const GAS_PER_BLOB: u64 = 131_072;

/// The contract for withdrawal requests (EIP-7002), and the maximum number of requests per block.
const WITHDRAWAL_REQUESTS: Address = alloy_primitives::address!("0x00000961Ef480Eb55e80D19ad83579A64c007002");
const WITHDRAWAL_REQUESTS_PER_BLOCK: usize = 16;

/// Departures from consensus rules, which the checks allow.
#[derive(Clone, Debug, Default)]
pub struct Departures {
    /// Blocks whose base fee was set.
    pub base_fees: BTreeSet<BlockNumber>,
    /// Blocks with transactions of impersonated senders.
    pub unsigned: BTreeSet<BlockNumber>,
}

/// Recomputes the blocks of `range`, which must exist, from their encodings and receipts: hashes, roots, blooms, gas,
/// base fees, excess blob gas, requests and senders. State roots are not recomputed.
///
/// # Panics
/// If anything differs.
pub fn check_blocks(view: &dyn View, range: std::ops::RangeInclusive<BlockNumber>, departures: &Departures) {
    let parent = view.header((range.start() - 1).into()).expect("readable").expect("the parent is there");
    let mut parent = Header::decode(&mut parent.header.encode().as_slice()).expect("a header");
    for number in range {
        parent = check_block(view, number, &parent, departures);
    }
}

fn check_block(view: &dyn View, number: BlockNumber, parent: &Header, departures: &Departures) -> Header {
    let mut encoded = Vec::new();
    export_blocks(view, number..=number, &mut encoded).expect("an export");
    let rest = &mut encoded.as_slice();
    let AlloyBlock { header, body } = AlloyBlock::decode(rest).expect("a block");
    assert!(rest.is_empty(), "block {number}: trailing bytes");
    let hash = view.canonical_hash(number).expect("readable").expect("the block is there");
    assert_eq!(header.hash_slow(), B256::new(hash.0), "block {number}: hash");

    // Derived from the parent.
    assert_eq!((header.parent_hash, header.number), (parent.hash_slow(), parent.number + 1), "block {number}: parent");
    assert!(header.timestamp > parent.timestamp, "block {number}: time");
    assert_eq!(header.gas_limit, parent.gas_limit, "block {number}: gas limit");
    if !departures.base_fees.contains(&number) {
        let base_fee = parent.next_block_base_fee(BaseFeeParams::ethereum());
        assert_eq!(header.base_fee_per_gas, base_fee, "block {number}: base fee");
    }
    let excess = BlobParams::bpo2().next_block_excess_blob_gas_osaka(
        parent.excess_blob_gas.unwrap_or(0),
        parent.blob_gas_used.unwrap_or(0),
        parent.base_fee_per_gas.unwrap_or(0),
    );
    assert_eq!(header.excess_blob_gas, Some(excess), "block {number}: excess blob gas");
    let constants = (header.difficulty, header.nonce, header.ommers_hash, header.parent_beacon_block_root);
    let expected = (U256::ZERO, B64::ZERO, alloy_consensus::EMPTY_OMMER_ROOT_HASH, Some(B256::ZERO));
    assert_eq!(constants, expected, "block {number}: difficulty, nonce, ommers, beacon root");

    // Derived from the body.
    let root = proofs::calculate_transaction_root(&body.transactions);
    assert_eq!(header.transactions_root, root, "block {number}: transactions root");
    let withdrawals = body.withdrawals.expect("withdrawals since Shanghai");
    let root = proofs::calculate_withdrawals_root(&withdrawals);
    assert_eq!(header.withdrawals_root, Some(root), "block {number}: withdrawals root");
    let blobs: usize = body
        .transactions
        .iter()
        .filter_map(|transaction| transaction.as_eip4844())
        .map(|signed| signed.tx().blob_versioned_hashes.len())
        .sum();
    assert_eq!(header.blob_gas_used, Some(blobs as u64 * GAS_PER_BLOB), "block {number}: blob gas");
    assert!(blobs as u64 <= BlobParams::bpo2().max_blob_count, "block {number}: {blobs} blobs");
    if !departures.unsigned.contains(&number) {
        let ours = view.body(number.into()).expect("readable").expect("the body is there");
        for (theirs, ours) in body.transactions.iter().zip(&ours.transactions) {
            let sender = theirs.recover_signer().expect("a signer");
            assert_eq!(sender, Address::new(ours.sender.0), "block {number}: sender of {:#x}", ours.hash);
            assert_eq!(*theirs.tx_hash(), B256::new(ours.hash.0), "block {number}: transaction hash");
        }
    }

    // Derived from the receipts.
    let receipts = view.receipts(number.into()).expect("readable").expect("the receipts are there");
    let receipts: Vec<_> = receipts
        .iter()
        .map(|receipt| ReceiptEnvelope::decode_2718_exact(&receipt.encode()).expect("a receipt"))
        .collect();
    let types = body.transactions.iter().map(|transaction| transaction.tx_type() as u8);
    assert!(types.eq(receipts.iter().map(|receipt| receipt.tx_type() as u8)), "block {number}: types of receipts");
    assert_eq!(
        header.receipts_root,
        proofs::calculate_receipt_root(&receipts),
        "block {number}: receipts root, of {} encoded bytes",
        receipts.iter().map(Encodable2718::encode_2718_len).sum::<usize>()
    );
    let mut bloom = Bloom::ZERO;
    for receipt in &receipts {
        let of_receipt: Bloom = receipt.logs().iter().collect();
        assert_eq!(*receipt.logs_bloom(), of_receipt, "block {number}: bloom of a receipt");
        bloom.accrue_bloom(&of_receipt);
    }
    assert_eq!(header.logs_bloom, bloom, "block {number}: bloom");
    let gas_used = receipts.last().map_or(0, ReceiptEnvelope::cumulative_gas_used);
    assert_eq!(header.gas_used, gas_used, "block {number}: gas used");
    assert!(gas_used <= header.gas_limit, "block {number}: gas used");
    assert_eq!(header.requests_hash, Some(requests(&receipts).requests_hash()), "block {number}: requests hash");
    header
}

/// The requests of a block, if none were waiting before it. These chains have neither deposits nor consolidations.
fn requests(receipts: &[ReceiptEnvelope]) -> Requests {
    let mut data = Vec::new();
    let mut count = 0;
    for log in receipts.iter().flat_map(ReceiptEnvelope::logs).filter(|log| log.address == WITHDRAWAL_REQUESTS) {
        // Source, public key and the amount, whose byte order is reversed.
        let (known, amount) = log.data.data.split_at(20 + 48);
        data.extend(known.iter().chain(amount.iter().rev()));
        count += 1;
    }
    assert!(count <= WITHDRAWAL_REQUESTS_PER_BLOCK, "{count} withdrawal requests");
    let mut requests = Requests::default();
    if count > 0 {
        requests.push_request_with_type(1, data);
    }
    requests
}

/// An account with everything to which the state root commits.
#[derive(Clone, Debug, Default)]
pub struct WholeAccount {
    /// Nonce.
    pub nonce: u64,
    /// Balance in wei.
    pub balance: node_types::U256,
    /// Code.
    pub code: node_types::Bytes,
    /// Non-zero slots.
    pub storage: Vec<(node_types::H256, node_types::U256)>,
}

impl From<WholeAccount> for TrieAccount {
    fn from(account: WholeAccount) -> Self {
        let slots = account.storage.into_iter();
        Self {
            nonce: account.nonce,
            balance: U256::from_limbs(account.balance.0),
            storage_root: storage_root_unhashed(
                slots.map(|(slot, value)| (B256::new(slot.0), U256::from_limbs(value.0))),
            ),
            code_hash: keccak256(&account.code),
        }
    }
}

/// Computes the state root of `accounts`.
pub fn state_root(accounts: impl IntoIterator<Item = (node_types::Address, WholeAccount)>) -> node_types::H256 {
    let accounts = accounts.into_iter().map(|(address, account)| (Address::new(address.0), TrieAccount::from(account)));
    node_types::H256(state_root_unhashed(accounts).0)
}

/// Verifies a proof of an account and of slots against the expected account.
///
/// # Panics
/// If the proof does not prove exactly that.
pub fn check_proof(
    state_root: node_types::H256,
    address: node_types::Address,
    account: Option<WholeAccount>,
    proof: &AccountProof,
) {
    let values: Vec<_> = account.iter().flat_map(|account| account.storage.clone()).collect();
    let account = account.map(TrieAccount::from);
    let storage_root = account.as_ref().map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
    let expected = account.map(alloy_rlp::encode);
    let nodes: Vec<_> = proof.proof.iter().map(|node| Bytes::copy_from_slice(node)).collect();
    verify_proof(B256::new(state_root.0), Nibbles::unpack(keccak256(address)), expected, &nodes)
        .unwrap_or_else(|error| panic!("proof of {address:#x}: {error}"));
    for slot in &proof.storage {
        let value = values.iter().find(|(key, _)| *key == slot.slot).map(|(_, value)| U256::from_limbs(value.0));
        let nodes: Vec<_> = slot.proof.iter().map(|node| Bytes::copy_from_slice(node)).collect();
        verify_proof(storage_root, Nibbles::unpack(keccak256(slot.slot)), value.map(alloy_rlp::encode), &nodes)
            .unwrap_or_else(|error| panic!("proof of slot {:#x} of {address:#x}: {error}", slot.slot));
    }
}

/// Exports a chain and imports it into a new one, which executes and validates every block again.
///
/// # Panics
/// If the imported chain has another head, or other receipts.
pub fn import_again(genesis: &Genesis, view: &dyn View) {
    let head = view.head();
    let mut exported = Vec::new();
    export_blocks(view, 1..=head.number, &mut exported).expect("an export");
    let spec = Arc::new(genesis.spec.clone());
    let backend = Arc::new(MemoryBackend::new(genesis.block()).expect("a genesis block"));
    let executor = Arc::new(EvmExecutor::new(spec.clone()));
    let chain = BlockImporter::new(backend.clone(), executor, Arc::new(Secp256k1Recovery), spec);
    let summary = import_file(&chain, &Context::unbounded(), exported.as_slice(), |_| ());
    let summary = summary.unwrap_or_else(|error| panic!("import of a chain of {head}: {error:?}"));
    assert_eq!(summary.imported, head.number);
    let imported = backend.view().expect("a view");
    assert_eq!(imported.head(), head);
    for number in 1..=head.number {
        let receipts = |view: &dyn View| view.receipts(number.into()).expect("readable");
        assert_eq!(receipts(&*imported), receipts(view), "block {number}: receipts");
    }
}
