//! Encoding of executed blocks as bytes.

use crate::backend::BackendError;
use crate::block::{Body, ExecutedBlock, RecoveredTransaction, SealedHeader};
use crate::edits::{decode_changes, encode_changes};
use node_types::Address;
use node_types::consensus::{Block, Receipt};
use rlp::{DecoderError, Rlp, RlpStream};
use std::sync::Arc;

impl ExecutedBlock {
    /// Returns the block as bytes, for backends that store it as a whole: an RLP list of the block as in chain files,
    /// the sender of each transaction, the receipts (EIP-2718), the total difficulty, and the state changes.
    ///
    /// The encoding never changes.
    pub fn encode(&self) -> Vec<u8> {
        let transactions = &self.body.transactions;
        let mut stream = RlpStream::new_list(5);
        stream.append(&self.body.with_header(&self.header.header)).begin_list(transactions.len());
        for transaction in transactions {
            stream.append(&transaction.sender);
        }
        stream.begin_list(self.receipts.len());
        for receipt in &*self.receipts {
            stream.append(&receipt.encode());
        }
        stream.append(&self.header.total_difficulty).append_raw(&encode_changes(&self.changes), 1);
        stream.out().to_vec()
    }

    /// Decodes the output of [`encode`](Self::encode). Hashes are computed; nothing else is checked, so a
    /// damaged encoding may decode to another block.
    ///
    /// # Errors
    /// [`BackendError::Storage`] if `bytes` are not such an encoding.
    ///
    /// # Examples
    /// ```
    /// use node_core::block::ExecutedBlock;
    ///
    /// assert!(ExecutedBlock::decode(b"damaged").is_err());
    /// ```
    pub fn decode(bytes: &[u8]) -> Result<Self, BackendError> {
        decode(bytes).map_err(|error| BackendError::Storage(Box::new(error)))
    }
}

fn decode(bytes: &[u8]) -> Result<ExecutedBlock, DecoderError> {
    let rlp = Rlp::new(bytes);
    if rlp.payload_info()?.total() != bytes.len() {
        return Err(DecoderError::RlpInconsistentLengthAndData);
    }
    if rlp.item_count()? != 5 {
        return Err(DecoderError::RlpIncorrectListLen);
    }
    let size = rlp.at(0)?.as_raw().len() as u64;
    let Block { header, transactions, ommers, withdrawals } = rlp.val_at(0)?;
    let senders: Vec<Address> = rlp.list_at(1)?;
    let receipts: Vec<Vec<u8>> = rlp.at(2)?.iter().map(|receipt| receipt.as_val()).collect::<Result<_, _>>()?;
    if senders.len() != transactions.len() || receipts.len() != transactions.len() {
        return Err(DecoderError::RlpIncorrectListLen);
    }
    let recovered = transactions.into_iter().zip(senders);
    let transactions = recovered.map(|(transaction, sender)| {
        let hash = transaction.hash();
        RecoveredTransaction { transaction, hash, sender }
    });
    let body = Body { transactions: transactions.collect(), ommers, withdrawals };
    let receipts: Result<Vec<_>, _> = receipts.iter().map(|receipt| Receipt::decode(receipt)).collect();
    let header = SealedHeader { hash: header.hash(), header, total_difficulty: rlp.val_at(3)?, size };
    Ok(ExecutedBlock {
        header: Arc::new(header),
        body: Arc::new(body),
        receipts: Arc::new(receipts?),
        changes: Arc::new(decode_changes(&rlp.at(4)?)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::suite::Random;

    #[test]
    fn blocks_are_decoded_as_they_were_encoded() {
        for block in Random(1).chain(40).blocks() {
            let decoded = ExecutedBlock::decode(&block.encode()).unwrap();
            assert_eq!((&decoded.header, &decoded.body), (&block.header, &block.body));
            assert_eq!((&decoded.receipts, &decoded.changes), (&block.receipts, &block.changes));
        }
    }

    #[test]
    fn damaged_bytes_are_refused_without_a_panic() {
        let chain = Random(4).chain(12);
        let whole = chain.blocks().iter().map(ExecutedBlock::encode).max_by_key(Vec::len).unwrap();
        for length in 0..whole.len() {
            assert!(ExecutedBlock::decode(&whole[..length]).is_err(), "the first {length} bytes");
        }
        assert!(ExecutedBlock::decode(&[&whole[..], &[0xde, 0xad]].concat()).is_err(), "trailing bytes");
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x81;
            let _ = ExecutedBlock::decode(&damaged);
        }
    }
}
