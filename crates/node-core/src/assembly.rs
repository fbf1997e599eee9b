//! Assembly of a new block on top of another: the pending block, and blocks that are produced.

use crate::backend::{BackendError, View};
use crate::block::{Body, ExecutedBlock, RecoveredTransaction, SealedHeader};
use crate::context::Context;
use crate::executor::{BlockExecution, ExecutionError, Executor};
use crate::fees;
use crate::forks::{ChainSpec, Fork};
use crate::trie::ordered_root;
use node_types::consensus::{Block, Bloom, EMPTY_OMMERS_HASH, EMPTY_ROOT, Header, requests_hash};
use node_types::{H256, U256, keccak256};
use std::sync::Arc;

/// The header of the block after `parent`, as far as it is known before anything is executed. `now` is the Unix time in
/// seconds; the block is later than its parent even where the clock is not.
///
/// What a consensus client would say is made up: PREVRANDAO is the keccak of the parent's hash, the root of the parent
/// beacon block is zero, and before the merge the difficulty stays.
pub fn next_header(spec: &ChainSpec, parent: &SealedHeader, now: u64) -> Header {
    let number = parent.header.number + 1;
    let timestamp = now.max(parent.header.timestamp.saturating_add(1));
    let merged = parent.header.difficulty.is_zero()
        || spec.terminal_total_difficulty.is_some_and(|terminal| parent.total_difficulty >= terminal);
    let fork = spec.fork_at(number, timestamp, merged);
    Header {
        parent_hash: parent.hash,
        ommers_hash: EMPTY_OMMERS_HASH,
        beneficiary: parent.header.beneficiary,
        difficulty: if merged { U256::zero() } else { parent.header.difficulty },
        number,
        gas_limit: parent.header.gas_limit,
        timestamp,
        mix_hash: if merged { keccak256(parent.hash) } else { H256::zero() },
        base_fee_per_gas: fees::next_base_fee(spec, &parent.header),
        withdrawals_root: (fork >= Fork::Shanghai).then_some(EMPTY_ROOT),
        excess_blob_gas: fees::next_excess_blob_gas(spec, &parent.header, timestamp),
        parent_beacon_block_root: (fork >= Fork::Cancun).then(H256::zero),
        ..Header::default()
    }
}

/// Makes a block of `header` on top of the head of `view`, and fills in what its execution gives.
///
/// `fill` runs the block's transactions and answers those that were not refused, in their order.
pub fn assemble(
    context: &Context,
    executor: &dyn Executor,
    view: &dyn View,
    mut header: Header,
    fill: impl FnOnce(&mut dyn BlockExecution) -> Result<Vec<RecoveredTransaction>, ExecutionError>,
) -> Result<ExecutedBlock, ExecutionError> {
    let head = view.head().number;
    let parent = view.header(head.into())?.ok_or(BackendError::UnknownBlock(head))?;
    let mut execution = executor.begin_block(context, view, &header)?;
    let transactions = fill(&mut *execution)?;
    let withdrawals = header.withdrawals_root.map(|_| Vec::new());
    let outcome = execution.finish(&[], withdrawals.as_deref())?;
    header.state_root = view.state_root(head, &outcome.changes)?;
    header.transactions_root = root(&transactions, |recovered| recovered.transaction.encode());
    header.receipts_root = root(&outcome.receipts, |receipt| receipt.encode());
    header.logs_bloom = outcome.receipts.iter().flat_map(|receipt| &receipt.logs).collect::<Bloom>();
    header.gas_used = outcome.gas_used;
    header.blob_gas_used = header.excess_blob_gas.map(|_| outcome.blob_gas_used);
    header.requests_hash = outcome.requests.as_deref().map(requests_hash);
    let body = Body { transactions, ommers: Vec::new(), withdrawals };
    Ok(ExecutedBlock {
        header: Arc::new(seal(header, &body, &parent)),
        body: Arc::new(body),
        receipts: Arc::new(outcome.receipts),
        changes: Arc::new(outcome.changes),
    })
}

/// The root of the trie of `items` in their encodings.
fn root<T>(items: &[T], encode: impl Fn(&T) -> Vec<u8>) -> H256 {
    ordered_root(&items.iter().map(encode).collect::<Vec<_>>())
}

/// The header with what is computed from its block.
fn seal(header: Header, body: &Body, parent: &SealedHeader) -> SealedHeader {
    let block = Block {
        header,
        transactions: body.transactions.iter().map(|recovered| recovered.transaction.clone()).collect(),
        ommers: body.ommers.clone(),
        withdrawals: body.withdrawals.clone(),
    };
    SealedHeader {
        hash: block.hash(),
        total_difficulty: parent.total_difficulty.saturating_add(block.header.difficulty),
        size: block.encoded_len() as u64,
        header: block.header,
    }
}
