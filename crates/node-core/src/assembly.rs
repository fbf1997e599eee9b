//! Assembly of new blocks: the pending block, and blocks of development chains.

use crate::backend::{BackendError, View};
use crate::block::{Body, ExecutedBlock, RecoveredTransaction, SealedHeader};
use crate::clock::Clock;
use crate::collecting::gather;
use crate::context::Context;
use crate::executor::{BlockExecution, BlockOutcome, ExecutionError, Executor};
use crate::protocol::difficulty::expected_difficulty;
use crate::protocol::{ChainSpec, Fork, fees};
use crate::trie::ordered_root;
use node_types::consensus::{
    Block, Bloom, EMPTY_OMMERS_HASH, EMPTY_ROOT, Header, HeaderField, Request, Withdrawal, requests_hash,
};
use node_types::{H256, U256, keccak256};
use std::sync::Arc;

/// Maximum length of an encoded block since Osaka, in bytes: 10 MiB minus a margin for the beacon block (EIP-7934).
pub const MAX_BLOCK_SIZE: u64 = (10 << 20) - (2 << 20);

/// Maximum length of a header's extra data in bytes (Yellow Paper, section 4.4.4).
pub const MAX_EXTRA_DATA: usize = 32;

/// Determines those fields of the next block's header that are known before execution. The pool, the pending block
/// and the producer all use the same implementation.
pub trait NextHeader: Send + Sync {
    /// Returns the header of a block on top of `parent` if it were sealed now.
    fn after(&self, parent: &SealedHeader) -> Header;
}

/// Determines the next header from the protocol's rules and the clock; see [`next_header`].
pub struct ProtocolHeader {
    /// The chain's rules.
    pub spec: Arc<ChainSpec>,
    /// The source of timestamps.
    pub clock: Arc<dyn Clock>,
}

impl NextHeader for ProtocolHeader {
    fn after(&self, parent: &SealedHeader) -> Header {
        next_header(&self.spec, parent, self.clock.now_millis() / 1_000)
    }
}

/// Returns the header of the block after `parent`, with the fields that are known before execution. `now` is the Unix
/// time in seconds. The timestamp is at least one second after the parent's, even if the clock is earlier, unless the
/// chain allows equal ones.
///
/// This function chooses the values that a consensus client or a miner would provide: PREVRANDAO is the Keccak-256 of
/// the parent's hash, the parent beacon block root is zero, blocks before the merge have no proof of work, and
/// beneficiary and gas limit are those of the parent. The first block of London has twice its parent's gas limit, so
/// its gas target equals the old limit (EIP-1559).
pub fn next_header(spec: &ChainSpec, parent: &SealedHeader, now: u64) -> Header {
    next_header_at(spec, parent, now.max(spec.least_timestamp(parent.header.timestamp)))
}

/// Like [`next_header`], with this timestamp even if it is not after the parent's.
pub(crate) fn next_header_at(spec: &ChainSpec, parent: &SealedHeader, timestamp: u64) -> Header {
    let number = parent.header.number + 1;
    let merged = is_merged_after(spec, parent);
    let fork = spec.fork_at(number, timestamp, merged);
    let first_of_london = fork >= Fork::London && parent.header.base_fee_per_gas.is_none();
    let elasticity = if first_of_london { fees::ELASTICITY_MULTIPLIER } else { 1 };
    let mut header = Header {
        parent_hash: parent.hash,
        ommers_hash: EMPTY_OMMERS_HASH,
        beneficiary: parent.header.beneficiary,
        difficulty: if merged { U256::zero() } else { expected_difficulty(fork, timestamp, &parent.header) },
        number,
        gas_limit: parent.header.gas_limit.saturating_mul(elasticity),
        timestamp,
        mix_hash: if merged { keccak256(parent.hash) } else { H256::zero() },
        base_fee_per_gas: fees::next_base_fee(spec, &parent.header),
        ..Header::default()
    };
    add_fork_fields(spec, fork, &mut header, &parent.header, H256::zero());
    header
}

/// Sets the fields that `fork` adds to `header` and whose values are known before execution, other than the base fee.
///
/// The number and timestamp of `header` must be set already.
pub(crate) fn add_fork_fields(
    spec: &ChainSpec,
    fork: Fork,
    header: &mut Header,
    parent: &Header,
    parent_beacon_block_root: H256,
) {
    header.withdrawals_root = fork.has(HeaderField::WithdrawalsRoot).then_some(EMPTY_ROOT);
    // The blob schedule is activated by timestamp only, so it may have started before the merge.
    header.excess_blob_gas = fork
        .has(HeaderField::ExcessBlobGas)
        .then(|| fees::next_excess_blob_gas(spec, parent, header.timestamp))
        .flatten();
    header.parent_beacon_block_root = fork.has(HeaderField::ParentBeaconBlockRoot).then_some(parent_beacon_block_root);
}

/// Returns whether the block after `parent` is a proof-of-stake block.
pub fn is_merged_after(spec: &ChainSpec, parent: &SealedHeader) -> bool {
    parent.header.difficulty.is_zero()
        || spec.terminal_total_difficulty.is_some_and(|terminal| parent.total_difficulty >= terminal)
}

/// An assembled block with its execution requests.
#[derive(Clone, Debug)]
pub struct Assembled {
    pub block: ExecutedBlock,
    /// Its execution requests, since Prague. The header contains only their hash.
    pub requests: Option<Vec<Request>>,
}

/// Assembles a block on top of the head of `view`: executes it in the environment of `header`, and fills in the
/// header fields that depend on execution. `withdrawals` are ignored before Shanghai.
///
/// `fill` executes the block's transactions and returns those that were included, in order. It is called again if the state
/// has to be fetched from elsewhere ([`gather`]); only its last result counts.
///
/// # Errors
/// If execution fails, or the backend cannot be read.
pub fn assemble(
    context: &Context,
    executor: &dyn Executor,
    view: &dyn View,
    mut header: Header,
    withdrawals: Vec<Withdrawal>,
    mut fill: impl FnMut(&mut dyn BlockExecution) -> Result<Vec<RecoveredTransaction>, ExecutionError>,
) -> Result<Assembled, ExecutionError> {
    let withdrawals = commit_to(&mut header, withdrawals);
    let (transactions, outcome) = gather(|| -> Result<_, ExecutionError> {
        let mut execution = executor.begin_block(context, view, &header)?;
        let transactions = fill(&mut *execution)?;
        Ok((transactions, execution.finish(&[], withdrawals.as_deref())?))
    })?;
    complete(view, header, transactions, withdrawals, outcome)
}

/// Sets the withdrawals root of `header`, and returns the withdrawals of the block. Before Shanghai, returns `None`.
pub fn commit_to(header: &mut Header, withdrawals: Vec<Withdrawal>) -> Option<Vec<Withdrawal>> {
    let withdrawals = header.withdrawals_root.map(|_| withdrawals);
    header.withdrawals_root = withdrawals.as_deref().map(|all| root(all, Withdrawal::encode));
    withdrawals
}

/// Fills the fields of `header` that depend on `outcome`, and assembles the block on top of the head of `view`. The state
/// root stays zero if the head [has none](Header::has_state_root), or if the backend cannot compute it.
///
/// # Errors
/// If execution fails, or the backend cannot be read.
pub fn complete(
    view: &dyn View,
    mut header: Header,
    transactions: Vec<RecoveredTransaction>,
    withdrawals: Option<Vec<Withdrawal>>,
    outcome: BlockOutcome,
) -> Result<Assembled, ExecutionError> {
    let head = view.head().number;
    let parent = view.header(head.into())?.ok_or(BackendError::UnknownBlock(head))?;
    if parent.header.has_state_root() {
        header.state_root = view.state(head)?.root_after(&outcome.changes)?;
    }
    header.transactions_root = root(&transactions, |recovered| recovered.transaction.encode());
    header.receipts_root = root(&outcome.receipts, |receipt| receipt.encode());
    header.logs_bloom = outcome.receipts.iter().map(|receipt| &receipt.logs_bloom).collect::<Bloom>();
    header.gas_used = outcome.gas_used;
    header.blob_gas_used = header.excess_blob_gas.map(|_| outcome.blob_gas_used);
    header.requests_hash = outcome.requests.as_deref().map(requests_hash);
    let body = Body { transactions, ommers: Vec::new(), withdrawals };
    let block = ExecutedBlock {
        header: Arc::new(seal(header, &body, &parent)),
        body: Arc::new(body),
        receipts: Arc::new(outcome.receipts),
        changes: Arc::new(outcome.changes),
    };
    Ok(Assembled { block, requests: outcome.requests })
}

/// Returns the root of the ordered trie of the encoded `items`.
pub(crate) fn root<T>(items: &[T], encode: impl Fn(&T) -> Vec<u8>) -> H256 {
    ordered_root(&items.iter().map(encode).collect::<Vec<_>>())
}

/// Computes hash, total difficulty and size of a block.
pub(crate) fn seal(header: Header, body: &Body, parent: &SealedHeader) -> SealedHeader {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::NextBlockRules;
    use crate::protocol::{BlobEntry, BlobParams};

    fn parent(difficulty: u64, base_fee: Option<u64>) -> SealedHeader {
        let header = Header {
            number: 9,
            timestamp: 1_000,
            gas_limit: 10_000_000,
            gas_used: 5_000_000,
            difficulty: difficulty.into(),
            base_fee_per_gas: base_fee,
            ..Header::default()
        };
        SealedHeader { hash: header.hash(), total_difficulty: 100.into(), size: 600, header }
    }

    #[test]
    fn header_and_pool_follow_the_active_fork() {
        const LIMIT: u64 = 10_000_000;
        let cancun = |terminal: Option<u64>, london| ChainSpec {
            chain_id: 1,
            block_forks: vec![(Fork::London, london)],
            terminal_total_difficulty: terminal.map(U256::from),
            time_forks: vec![(Fork::Shanghai, 10), (Fork::Cancun, 2_000)],
            blob_schedule: vec![BlobEntry { upgrade: "cancun", params: BlobParams::CANCUN, time: 2_000 }],
            ..ChainSpec::default()
        };
        let (old, new) = (parent(7, None), parent(7, Some(1_000)));
        // Name, terminal total difficulty, first block of London, parent, time; expected fork, gas limit, whether there
        // are blobs.
        let cases = [
            ("before London", None, 11, &old, 5_000, Fork::Frontier, LIMIT, false),
            ("the first of London", None, 10, &old, 5_000, Fork::London, 2 * LIMIT, false),
            ("London", None, 5, &new, 5_000, Fork::London, LIMIT, false),
            ("times that passed before the merge", Some(101), 5, &new, 5_000, Fork::London, LIMIT, false),
            ("merged before Cancun", Some(100), 5, &new, 1_999, Fork::Shanghai, LIMIT, false),
            ("Cancun", Some(100), 5, &new, 2_000, Fork::Cancun, LIMIT, true),
            ("a clock before the parent", Some(100), 5, &new, 5, Fork::Shanghai, LIMIT, false),
        ];
        for (name, terminal, london, parent, now, fork, gas_limit, blobs) in cases {
            let spec = cancun(terminal, london);
            let header = next_header(&spec, parent, now);
            assert_eq!(header.timestamp, now.max(1_001), "{name}");
            assert_eq!(header.gas_limit, gas_limit, "{name}");
            assert_eq!(header.base_fee_per_gas.is_some(), fork >= Fork::London, "{name}");
            assert_eq!(header.withdrawals_root.is_some(), fork >= Fork::Shanghai, "{name}");
            assert_eq!(header.excess_blob_gas, blobs.then_some(0), "{name}");
            let next = NextBlockRules::new(&spec, &header);
            let expected = NextBlockRules {
                fork,
                gas_limit,
                base_fee: header.base_fee_per_gas,
                blob_base_fee: blobs.then(U256::one),
                blob_params: blobs.then_some(BlobParams::CANCUN),
                transaction_gas_cap: None,
                init_code_limit: (fork >= Fork::Shanghai).then_some(49_152),
            };
            assert_eq!(next, expected, "{name}");
        }
    }
}
