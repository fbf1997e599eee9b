//! Headers, blocks and receipts.

use crate::error::{Needed, UpstreamError, Wrong};
use crate::flight::Endpoints;
use crate::format::{BlockContents, ReceiptJson, header, transaction};
use crate::upstream::{Question, Rejection, Upstream, read};
use node_core::context::Context;
use node_core::trie::ordered_root;
use node_types::consensus::{Block, EMPTY_OMMERS_HASH, EMPTY_ROOT, Header, Receipt, Transaction, Withdrawal};
use node_types::wire::{Data, HashData};
use node_types::{BlockId, BlockNumberOrTag, H256, keccak256};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Number of headers that are read at once when following parents.
const HEADERS: u64 = 64;

/// A header and its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedHeader {
    hash: H256,
    header: Header,
}

impl HashedHeader {
    /// Hashes a header.
    pub fn new(header: Header) -> Self {
        Self { hash: header.hash(), header }
    }

    /// Returns the hash of the block.
    pub fn hash(&self) -> H256 {
        self.hash
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns an estimate of the length of the block, and of that of its receipts, as JSON in bytes: those of public networks
    /// take about as much.
    pub fn estimated_length(&self) -> usize {
        usize::try_from(self.header.gas_used / 32).unwrap_or(usize::MAX).saturating_add(1_024)
    }

    /// Returns whether the block consists of its header: it has no transactions, ommers or withdrawals.
    pub fn is_whole_block(&self) -> bool {
        let Header { transactions_root, ommers_hash, withdrawals_root, .. } = self.header;
        let has_withdrawals = withdrawals_root.is_some_and(|root| root != EMPTY_ROOT);
        transactions_root == EMPTY_ROOT && ommers_hash == EMPTY_OMMERS_HASH && !has_withdrawals
    }
}

impl Upstream {
    /// Returns the header of a block. That a number or a tag stands for this block is the word of an endpoint; the
    /// fields of the header have its hash in any case.
    ///
    /// # Errors
    /// [`UpstreamError::NotFound`] if no endpoint has the block. [`Wrong::HeaderHash`] if the header has another hash,
    /// which also happens if it has fields that are not known.
    pub fn header(&self, context: &Context, block: BlockId) -> Result<HashedHeader, UpstreamError> {
        self.ask_one(context, header_question(block), |result| check_header(result, block))
    }

    /// Returns the hash of the block that contains a transaction, `None` if none does. It is the word of an endpoint.
    ///
    /// # Errors
    /// If no endpoint responds.
    pub fn block_of(&self, context: &Context, transaction: H256) -> Result<Option<H256>, UpstreamError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Position {
            block_hash: Option<HashData>,
        }

        let method = "eth_getTransactionByHash";
        let needed = Needed::Result { method: method.to_owned() };
        let question = Question::new(needed, method, format!("[\"{}\"]", Data(transaction)));
        match self.ask_one(context, question, |result| Ok(read::<Position>(result)?.block_hash)) {
            Ok(block) => Ok(block.map(|block| block.0)),
            Err(UpstreamError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the headers of up to `count` ancestors of a block, beginning with its parent. They are proven by the
    /// hashes of parents, up to the genesis block.
    ///
    /// # Errors
    /// Those of [`Self::header`].
    pub fn ancestors(
        &self,
        context: &Context,
        block: &HashedHeader,
        count: u64,
    ) -> Result<Vec<HashedHeader>, UpstreamError> {
        let mut ancestors: Vec<HashedHeader> = Vec::new();
        let mut number = block.header.number;
        let end = number.saturating_sub(count);
        while number > end {
            let numbers: Vec<u64> = (end.max(number.saturating_sub(HEADERS))..number).rev().collect();
            let blocks: Vec<BlockId> = numbers.iter().map(|number| (*number).into()).collect();
            for header in self.headers(context, &blocks) {
                let parent_hash = ancestors.last().unwrap_or(block).header.parent_hash;
                let header = match header {
                    Ok(header) if header.hash == parent_hash => header,
                    Err(error) if error.is_end() => return Err(error),
                    // The block is on another branch than the one that the endpoint knows by numbers.
                    _ => self.header(context, parent_hash.into())?,
                };
                ancestors.push(header);
            }
            number = number.saturating_sub(HEADERS).max(end);
        }
        Ok(ancestors)
    }

    /// Returns the block with a header: its transactions, ommers and withdrawals, which the header commits to.
    ///
    /// # Errors
    /// [`UpstreamError::Unsupported`] if it has a transaction of an unknown type.
    pub fn block(&self, context: &Context, header: &HashedHeader) -> Result<Block, UpstreamError> {
        let Header { ommers_hash, withdrawals_root, .. } = header.header;
        if header.is_whole_block() {
            let withdrawals = withdrawals_root.map(|_| Vec::new());
            return Ok(Block { header: header.header.clone(), withdrawals, ..Block::default() });
        }
        if ommers_hash == EMPTY_OMMERS_HASH {
            let read = |result: &_| check_block(result, &header.header).map(|(block, _)| block);
            return self.ask_one(context, block_question(header), |result| read(result));
        }
        self.one_by_one(|avoid| {
            let read = |result: &_| check_block(result, &header.header);
            let (mut block, uncles) = self.ask_one_of(avoid, context, block_question(header), |result| read(result))?;
            block.ommers = self.ommers(avoid, context, header, uncles)?;
            Ok(block)
        })
    }

    /// Reads the ommers of a block, of which there are `count`, from one endpoint.
    fn ommers(
        &self,
        avoid: Endpoints,
        context: &Context,
        block: &HashedHeader,
        count: usize,
    ) -> Result<Vec<Header>, UpstreamError> {
        let needed = Needed::Body(block.hash);
        let question = |index: usize| {
            let params = format!("[\"{}\",\"{index:#x}\"]", Data(block.hash));
            Question::new(needed.clone(), "eth_getUncleByBlockHashAndIndex", params)
        };
        let read = self.ask_of(avoid, context, (0..count).map(question).collect(), |_, result| header(result));
        let ommers = read.into_iter().collect::<Result<Vec<_>, _>>()?;
        let computed = keccak256(rlp::encode_list::<Header, Header>(&ommers));
        check_root("ommers", computed, block.header.ommers_hash)
            .map_err(|wrong| self.rejected_of(avoid, needed, wrong))?;
        Ok(ommers)
    }

    /// Returns the receipts of a block with these transactions, which its header commits to. If the endpoints do not
    /// have eth_getBlockReceipts, each receipt is requested.
    ///
    /// # Errors
    /// [`UpstreamError::Unsupported`] if it has a receipt of an unknown type. [`Wrong::Root`] for blocks from before
    /// Byzantium if the endpoints do not keep the state roots in their receipts, as reth does not.
    pub fn receipts(
        &self,
        context: &Context,
        block: &HashedHeader,
        transactions: &[Transaction],
    ) -> Result<Vec<Receipt>, UpstreamError> {
        let root = block.header.receipts_root;
        if root == EMPTY_ROOT {
            return Ok(Vec::new());
        }
        let whole = self.ask_one(context, receipts_question(block), |result| read_receipts(result, root));
        if !matches!(whole, Err(UpstreamError::Refused { .. })) {
            return whole;
        }
        let needed = Needed::Receipts(block.hash);
        self.one_by_one(|avoid| {
            let questions = transactions.iter().map(|transaction| receipt_question(block, transaction)).collect();
            let read = self.ask_of(avoid, context, questions, |_, result| read::<ReceiptJson>(result)?.read());
            let receipts = read.into_iter().collect::<Result<Vec<_>, _>>()?;
            check_receipts(receipts, root).map_err(|wrong| self.rejected_of(avoid, needed.clone(), wrong))
        })
    }
}

pub(crate) fn header_question(block: BlockId) -> Question {
    let (method, id) = match block {
        BlockId::Hash(hash) => ("eth_getBlockByHash", Data(hash).to_string()),
        BlockId::Number(BlockNumberOrTag::Number(number)) => ("eth_getBlockByNumber", format!("{number:#x}")),
        BlockId::Number(tag) => ("eth_getBlockByNumber", tag.to_string()),
    };
    Question::new(Needed::Header(block), method, format!("[\"{id}\",false]"))
}

pub(crate) fn block_question(block: &HashedHeader) -> Question {
    let params = format!("[\"{}\",true]", Data(block.hash));
    let mut question = Question::new(Needed::Body(block.hash), "eth_getBlockByHash", params);
    question.call.response = block.estimated_length();
    question
}

pub(crate) fn receipts_question(block: &HashedHeader) -> Question {
    let params = format!("[\"{}\"]", Data(block.hash));
    let mut question = Question::new(Needed::Receipts(block.hash), "eth_getBlockReceipts", params);
    question.call.by_number = Some(format!("[\"{:#x}\"]", block.header.number));
    question.call.response = block.estimated_length();
    question
}

pub(crate) fn receipt_question(block: &HashedHeader, transaction: &Transaction) -> Question {
    let params = format!("[\"{}\"]", Data(transaction.hash()));
    Question::new(Needed::Receipts(block.hash), "eth_getTransactionReceipt", params)
}

pub(crate) fn check_header(result: &RawValue, block: BlockId) -> Result<HashedHeader, Rejection> {
    let header = HashedHeader::new(header(result)?);
    match block {
        BlockId::Hash(expected) if header.hash != expected => {
            Err(Wrong::HeaderHash { computed: header.hash, expected, unknown: Vec::new() }.into())
        }
        BlockId::Number(BlockNumberOrTag::Number(expected)) if header.header.number != expected => {
            Err(Wrong::HeaderNumber { got: header.header.number, expected }.into())
        }
        _ => Ok(header),
    }
}

/// Returns the block without its ommers, and their number.
pub(crate) fn check_block(result: &RawValue, header: &Header) -> Result<(Block, usize), Rejection> {
    let contents: BlockContents<'_> = read(result)?;
    let transactions = contents.transactions.iter().map(|json| transaction(json)).collect::<Result<Vec<_>, _>>()?;
    let encoded: Vec<_> = transactions.iter().map(Transaction::encode).collect();
    check_root("transactions", ordered_root(&encoded), header.transactions_root)?;
    // Before Shanghai there are none, whatever the response contains.
    let withdrawals = match header.withdrawals_root {
        None => None,
        Some(expected) => {
            let withdrawals = contents.withdrawals().unwrap_or_default();
            let encoded: Vec<_> = withdrawals.iter().map(Withdrawal::encode).collect();
            check_root("withdrawals", ordered_root(&encoded), expected)?;
            Some(withdrawals)
        }
    };
    let block = Block { header: header.clone(), transactions, ommers: Vec::new(), withdrawals };
    Ok((block, contents.uncles.len()))
}

/// Reads the receipts of a block, which have the root `expected`.
pub(crate) fn read_receipts(result: &RawValue, expected: H256) -> Result<Vec<Receipt>, Rejection> {
    let receipts = read::<Vec<ReceiptJson>>(result)?;
    check_receipts(receipts.into_iter().map(ReceiptJson::read).collect::<Result<_, _>>()?, expected)
}

pub(crate) fn check_receipts(receipts: Vec<Receipt>, expected: H256) -> Result<Vec<Receipt>, Rejection> {
    let encoded: Vec<_> = receipts.iter().map(Receipt::encode).collect();
    check_root("receipts", ordered_root(&encoded), expected)?;
    Ok(receipts)
}

fn check_root(part: &'static str, computed: H256, expected: H256) -> Result<(), Rejection> {
    if computed == expected { Ok(()) } else { Err(Wrong::Root { part, computed, expected }.into()) }
}
