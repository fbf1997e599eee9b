//! Checks a block against its header.

use super::difference::RowFault;
use node_core::block::{Body, ExecutedBlock, SealedHeader};
use node_core::crypto::SenderRecovery;
use node_core::edits::Edits;
use node_core::trie::ordered_root;
use node_types::consensus::{Block, Bloom, Receipt};
use node_types::keccak256;

/// Checks the hash of the header, and the number, length and roots of the block's parts.
///
/// Returns a fault with the row that causes it. `edits` are the edits of the block.
pub(super) fn check(
    block: &ExecutedBlock,
    senders: &dyn SenderRecovery,
    edits: Option<&Edits>,
) -> Result<(), (Part, RowFault)> {
    let ExecutedBlock { header, body, receipts, .. } = block;
    let hash = header.header.hash();
    RowFault::unless_equal("hash", hash, header.hash).map_err(|fault| (Part::Header, fault))?;
    check_body(header, body, senders, edits).map_err(|fault| (Part::Body, fault))?;
    let size = encoded_length(header, body);
    RowFault::unless_equal("size", size.to_be_bytes(), header.size.to_be_bytes())
        .map_err(|fault| (Part::Header, fault))?;
    check_receipts(header, body, receipts).map_err(|fault| (Part::Receipts, fault))
}

/// A row with a part of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Header,
    Body,
    Receipts,
}

fn check_body(
    header: &SealedHeader,
    body: &Body,
    senders: &dyn SenderRecovery,
    edits: Option<&Edits>,
) -> Result<(), RowFault> {
    let unsigned = edits.is_some_and(|edits| edits.unsigned);
    let mut encoded = Vec::with_capacity(body.transactions.len());
    for (index, recovered) in body.transactions.iter().enumerate() {
        let bytes = recovered.transaction.encode();
        RowFault::unless_equal(&format!("hash of transaction {index}"), keccak256(&bytes), recovered.hash)?;
        if !(unsigned && recovered.is_impersonating()) {
            let sender = senders.sender(&recovered.transaction);
            let sender = sender.map_err(|error| RowFault::malformed(format!("transaction {index}: {error}")))?;
            RowFault::unless_equal(&format!("sender of transaction {index}"), sender, recovered.sender)?;
        }
        encoded.push(bytes);
    }
    let header = &header.header;
    RowFault::unless_equal("transactions root", header.transactions_root, ordered_root(&encoded))?;
    RowFault::unless_equal("ommers hash", header.ommers_hash, keccak256(rlp::encode_list(&body.ommers)))?;
    let withdrawals = body.withdrawals.as_ref().map(|withdrawals| {
        let encoded: Vec<_> = withdrawals.iter().map(rlp::encode).collect();
        ordered_root(&encoded)
    });
    let bytes = |root: Option<node_types::H256>| root.map(|root| root.as_bytes().to_vec()).unwrap_or_default();
    RowFault::unless_equal("withdrawals root", bytes(header.withdrawals_root), bytes(withdrawals))
}

fn encoded_length(header: &SealedHeader, body: &Body) -> u64 {
    let block = Block {
        header: header.header.clone(),
        transactions: body.transactions.iter().map(|recovered| recovered.transaction.clone()).collect(),
        ommers: body.ommers.clone(),
        withdrawals: body.withdrawals.clone(),
    };
    block.encoded_len() as u64
}

fn check_receipts(header: &SealedHeader, body: &Body, receipts: &[Receipt]) -> Result<(), RowFault> {
    let counts = [body.transactions.len() as u64, receipts.len() as u64].map(u64::to_be_bytes);
    RowFault::unless_equal("number of receipts", counts[0], counts[1])?;
    let header = &header.header;
    let mut bloom = Bloom::ZERO;
    for (index, (receipt, recovered)) in receipts.iter().zip(&body.transactions).enumerate() {
        let own = recovered.transaction.transaction_type();
        RowFault::unless_equal(&format!("type of receipt {index}"), [own as u8], [receipt.transaction_type as u8])?;
        let logs: Bloom = receipt.logs.iter().collect();
        RowFault::unless_equal(&format!("logs bloom of receipt {index}"), logs.0, receipt.logs_bloom.0)?;
        bloom.accrue_bloom(&receipt.logs_bloom);
    }
    let encoded: Vec<_> = receipts.iter().map(Receipt::encode).collect();
    RowFault::unless_equal("receipts root", header.receipts_root, ordered_root(&encoded))?;
    RowFault::unless_equal("logs bloom", header.logs_bloom.0, bloom.0)?;
    // A genesis file may contain any value.
    if header.number > 0 {
        let gas_used = receipts.last().map_or(0, |receipt| receipt.cumulative_gas_used);
        RowFault::unless_equal("gas used", header.gas_used.to_be_bytes(), gas_used.to_be_bytes())?;
    }
    Ok(())
}
