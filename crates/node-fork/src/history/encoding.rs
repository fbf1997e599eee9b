//! Blocks and receipts as bytes.

use node_core::block::{Body, RecoveredTransaction};
use node_core::trie::ordered_root;
use node_types::consensus::{Block, Header, Receipt, Transaction, Withdrawal};
use node_types::{Address, H256, keccak256};
use rlp::{DecoderError, Rlp, RlpStream};

/// A body, and the size of its block in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SizedBody {
    pub(super) body: Body,
    pub(super) size: u64,
}

/// Encodes a block as a list of the block as in chain files and the senders of its transactions.
pub(crate) fn encode_block(header: &Header, body: &Body) -> Vec<u8> {
    let mut stream = RlpStream::new_list(2);
    stream.append(&body.with_header(header)).begin_list(body.transactions.len());
    for transaction in &body.transactions {
        stream.append(&transaction.sender);
    }
    stream.out().to_vec()
}

/// Decodes what [`encode_block`] returns.
pub(super) fn decode_block(bytes: &[u8]) -> Result<(Header, SizedBody), DecoderError> {
    let rlp = Rlp::new(bytes);
    let size = rlp.at(0)?.as_raw().len() as u64;
    let Block { header, transactions, ommers, withdrawals } = rlp.val_at(0)?;
    let senders: Vec<Address> = rlp.list_at(1)?;
    if senders.len() != transactions.len() {
        return Err(DecoderError::RlpIncorrectListLen);
    }
    let recovered = transactions.into_iter().zip(senders).map(|(transaction, sender)| {
        let hash = transaction.hash();
        RecoveredTransaction { transaction, hash, sender }
    });
    let body = Body { transactions: recovered.collect(), ommers, withdrawals };
    Ok((header, SizedBody { body, size }))
}

/// Encodes receipts as a list of their encodings (EIP-2718).
pub(crate) fn encode_receipts(receipts: &[Receipt]) -> Vec<u8> {
    let mut stream = RlpStream::new_list(receipts.len());
    for receipt in receipts {
        stream.append(&receipt.encode());
    }
    stream.out().to_vec()
}

/// Decodes what [`encode_receipts`] returns.
pub(super) fn decode_receipts(bytes: &[u8]) -> Option<Vec<Receipt>> {
    let receipts = Rlp::new(bytes);
    receipts.is_list().then(|| receipts.iter().map(|receipt| Receipt::decode(receipt.data().ok()?).ok()).collect())?
}

/// Returns whether these are the bytes of the block with this hash.
pub(crate) fn check_block(hash: H256, bytes: &[u8]) -> bool {
    let Ok((header, SizedBody { body, .. })) = decode_block(bytes) else { return false };
    let Block { transactions, ommers, withdrawals, .. } = body.with_header(&header);
    let transactions: Vec<_> = transactions.iter().map(Transaction::encode).collect();
    let withdrawals = withdrawals.map(|all| ordered_root(&all.iter().map(Withdrawal::encode).collect::<Vec<_>>()));
    header.hash() == hash
        && ordered_root(&transactions) == header.transactions_root
        && keccak256(rlp::encode_list::<Header, Header>(&ommers)) == header.ommers_hash
        && withdrawals == header.withdrawals_root
}

/// Returns whether these are the bytes of the receipts of the block with this header.
pub(crate) fn check_receipts(header: &Header, bytes: &[u8]) -> bool {
    let Some(receipts) = decode_receipts(bytes) else { return false };
    ordered_root(&receipts.iter().map(Receipt::encode).collect::<Vec<_>>()) == header.receipts_root
}
