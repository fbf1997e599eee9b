//! Headers, blocks and receipts of several blocks together.

use crate::chain::{
    HashedHeader, block_question, check_block, check_header, check_receipts, header_question, read_receipts,
    receipt_question, receipts_question,
};
use crate::error::UpstreamError;
use crate::format::ReceiptJson;
use crate::upstream::{Upstream, forwarded, read};
use node_core::context::Context;
use node_types::BlockId;
use node_types::consensus::{Block, EMPTY_OMMERS_HASH, Receipt, Transaction};
use serde_json::value::RawValue;
use std::sync::Arc;

/// A block without ommers, or receipts.
enum Part {
    Block(Box<Block>),
    Receipts(Vec<Receipt>),
}

impl Upstream {
    /// Returns the headers of blocks, like [`header`](Self::header), in as few messages as possible.
    pub fn headers(&self, context: &Context, blocks: &[BlockId]) -> Vec<Result<HashedHeader, UpstreamError>> {
        let questions = blocks.iter().map(|block| header_question(*block)).collect();
        self.ask(context, questions, |index, result| check_header(result, blocks[index]))
    }

    /// Returns blocks and the receipts of blocks with these headers, like [`block`](Self::block) and
    /// [`receipts`](Self::receipts), in as few messages as possible. Blocks with ommers are read one after the other. If the
    /// endpoints do not have eth_getBlockReceipts, receipts are [`UpstreamError::Refused`]; see
    /// [`receipts_of_transactions`](Self::receipts_of_transactions).
    #[expect(clippy::type_complexity, reason = "a list of results for each list of headers")]
    pub fn blocks_and_receipts(
        &self,
        context: &Context,
        blocks: &[&HashedHeader],
        receipts_of: &[&HashedHeader],
    ) -> (Vec<Result<Block, UpstreamError>>, Vec<Result<Vec<Receipt>, UpstreamError>>) {
        let has_no_ommers = |block: &&&HashedHeader| block.header().ommers_hash == EMPTY_OMMERS_HASH;
        let plain: Vec<&HashedHeader> = blocks.iter().filter(has_no_ommers).copied().collect();
        let of_blocks = plain.iter().map(|block| block_question(block));
        let questions = of_blocks.chain(receipts_of.iter().map(|block| receipts_question(block))).collect();
        let parts = self.ask(context, questions, |index, result| match plain.get(index) {
            Some(block) => check_block(result, block.header()).map(|(block, _)| Part::Block(Box::new(block))),
            None => {
                let root = receipts_of[index - plain.len()].header().receipts_root;
                read_receipts(result, root).map(Part::Receipts)
            }
        });
        let (mut read, mut receipts) = (Vec::new(), Vec::new());
        for (index, part) in parts.into_iter().enumerate() {
            match part {
                Ok(Part::Block(block)) => read.push(Ok(*block)),
                Ok(Part::Receipts(of_block)) => receipts.push(Ok(of_block)),
                Err(error) if index < plain.len() => read.push(Err(error)),
                Err(error) => receipts.push(Err(error)),
            }
        }
        let mut read = read.into_iter();
        let block = |block: &&HashedHeader| {
            let of_batch = if has_no_ommers(&block) { read.next() } else { None };
            of_batch.unwrap_or_else(|| self.block(context, block))
        };
        (blocks.iter().map(block).collect(), receipts)
    }

    /// Returns the receipts of blocks with these transactions, like [`receipts`](Self::receipts), but requests those of each
    /// transaction, in as few messages as possible.
    pub fn receipts_of_transactions(
        &self,
        context: &Context,
        blocks: &[(&HashedHeader, Vec<Transaction>)],
    ) -> Vec<Result<Vec<Receipt>, UpstreamError>> {
        let of_block = |(block, transactions): &(&HashedHeader, Vec<Transaction>)| -> Vec<_> {
            transactions.iter().map(|transaction| receipt_question(block, transaction)).collect()
        };
        let questions = blocks.iter().flat_map(of_block).collect();
        let mut receipts = self.ask(context, questions, |_, result| read::<ReceiptJson>(result)?.read()).into_iter();
        let receipts = blocks.iter().map(|(block, transactions)| {
            let of_block: Vec<_> = receipts.by_ref().take(transactions.len()).collect();
            let of_block = of_block.into_iter().collect::<Result<_, _>>()?;
            match check_receipts(of_block, block.header().receipts_root) {
                Ok(receipts) => Ok(receipts),
                // It is not known which endpoint returned what is wrong.
                Err(_) => self.receipts(context, block, transactions),
            }
        });
        receipts.collect()
    }

    /// Returns the results of a method with each of these parameters, like [`forward`](Self::forward), in as few messages as
    /// possible.
    pub fn forward_all(
        &self,
        context: &Context,
        method: &str,
        params: &[Box<RawValue>],
    ) -> Vec<Result<Arc<RawValue>, UpstreamError>> {
        let questions = params.iter().map(|params| forwarded(method, params)).collect();
        self.ask(context, questions, |_, result| Ok(Arc::clone(result)))
    }
}
