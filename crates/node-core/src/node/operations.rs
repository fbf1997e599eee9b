//! All operations of the node, by family. Each is implemented in the module of its family.
//!
//! Every operation that returns an error can fail with [`NodeError::Backend`], and with [`NodeError::Interrupted`] if its
//! context ends. Sections about errors list the others.
#![expect(clippy::missing_errors_doc, reason = "errors that all operations share are listed once")]

use super::{
    AboveHead, BlockRange, BlockRequest, BlockRewards, BuiltBlock, Capabilities, Event, EventQuery, EventStream,
    FeeHistory, ForkConfigs, FoundBlock, FoundReceipt, FoundReceipts, FoundTransaction, ImportProgress, LogCursor,
    LogPage, LogQuery, NewTransaction, Node, NodeError, ReplacementTransaction, SimulateError, SimulatedBlock,
    Simulation, TraceOptions, TransactionRequest, TransactionStatus, block, build, call, chain, config, development,
    events, fee_history, filters, importing, logs, proof, receipt, request, send, simulate, state, trace, transaction,
};
use crate::backend::{AccountProof, LogFilter};
use crate::block::{BlockRef, Body, LogRef, SealedHeader};
use crate::context::Context;
use crate::crypto::personal_message_hash;
use crate::executor::{AccessListOutcome, Call, TraceError, WriteTrace};
use crate::filters::{FilterChanges, FilterCriteria, FilterId};
use crate::logs::{FoundLog, PageSize};
use crate::pool::PoolContent;
use crate::producer::{ForkBlock, ForkControl, Producer};
use node_types::buffer::{BufferFull, JsonBuffer};
use node_types::consensus::{Account, PooledTransaction, Signature, TransactionBody, Withdrawal};
use node_types::{Address, BlockId, BlockNumber, BlockNumberOrTag, Bytes, H256, U256};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The head, and suggested fees.
impl Node {
    /// Returns the header of the head. Also reads an account, so success shows that the backend can read states.
    pub fn head(&self, context: &Context) -> Result<Arc<SealedHeader>, NodeError> {
        chain::head(self, context)
    }

    /// Returns the number of the head.
    pub fn block_number(&self, context: &Context) -> Result<BlockNumber, NodeError> {
        Ok(self.snapshot(context)?.latest())
    }

    /// Returns the name and the version of the server.
    pub fn client_version(&self) -> &str {
        &self.client_version
    }

    /// Returns where the chain that this one continues is read, or `None` if it continues no other one.
    pub fn fork(&self) -> Option<&dyn ForkControl> {
        self.fork.as_deref()
    }

    /// Returns a gas price in wei with which a transaction should be included in one of the next blocks: the next
    /// base fee plus the suggested tip.
    pub fn gas_price(&self, context: &Context) -> Result<U256, NodeError> {
        chain::gas_price(self, context)
    }

    /// Returns a tip in wei per gas with which a transaction should be included in one of the next blocks.
    pub fn max_priority_fee_per_gas(&self, context: &Context) -> Result<U256, NodeError> {
        chain::max_priority_fee_per_gas(self, context)
    }

    /// Returns the base fee of the next block in wei per gas, or `None` before London.
    pub fn next_base_fee(&self, context: &Context) -> Result<Option<u64>, NodeError> {
        chain::next_base_fee(self, context)
    }

    /// Returns the fee recipient of the next block, or `None` if the node does not produce blocks.
    pub fn coinbase(&self, context: &Context) -> Result<Option<Address>, NodeError> {
        chain::coinbase(self, context)
    }

    /// Returns the blob base fee of the next block in wei per blob gas, or `None` before Cancun.
    pub fn blob_base_fee(&self, context: &Context) -> Result<Option<U256>, NodeError> {
        chain::blob_base_fee(self, context)
    }

    /// Returns base fees, gas used ratios and tips of the `block_count` consecutive blocks that end with
    /// `newest_block`, inclusive; fewer if the chain is shorter. `percentiles` are from 0 to 100 and must not
    /// decrease.
    ///
    /// # Errors
    /// [`NodeError::Invalid`] if the count or a percentile is out of range, or if there are too many percentiles or
    /// they decrease; [`NodeError::BlockNotFound`] if the newest block is above the head; [`NodeError::Interrupted`]
    /// and [`NodeError::Backend`].
    pub fn fee_history(
        &self,
        context: &Context,
        block_count: u64,
        newest_block: BlockNumberOrTag,
        percentiles: &[f64],
    ) -> Result<FeeHistory, NodeError> {
        fee_history::fee_history(self, context, block_count, newest_block, percentiles)
    }
}

/// The fork rules, and which data is kept.
impl Node {
    /// Returns the current, the next and the last scheduled rules (EIP-7910).
    pub fn fork_configs(&self, context: &Context) -> Result<ForkConfigs, NodeError> {
        config::fork_configs(self, context)
    }

    /// Returns the head, and the earliest block whose state is kept.
    pub fn capabilities(&self, context: &Context) -> Result<Capabilities, NodeError> {
        config::capabilities(self, context)
    }
}

/// Blocks and their parts.
impl Node {
    /// Returns the header of a block, or `None` if the block is unknown. A hash may be that of a side block.
    ///
    /// # Errors
    /// [`NodeError::Backend`]; for `pending` also errors of building the pending block.
    pub fn get_header(&self, context: &Context, block: BlockId) -> Result<Option<Arc<SealedHeader>>, NodeError> {
        block::get_header(self, context, block)
    }

    /// Returns a block, or `None` if it is unknown. A hash may be that of a side block.
    ///
    /// # Errors
    /// [`NodeError::Backend`]; for `pending` also errors of building the pending block.
    pub fn get_block(&self, context: &Context, block: BlockId) -> Result<Option<FoundBlock>, NodeError> {
        block::get_block(self, context, block)
    }

    /// Returns the hash of a block, canonical or not, or `None` if the block is unknown or pending.
    pub fn get_block_hash(&self, context: &Context, block: BlockId) -> Result<Option<H256>, NodeError> {
        block::get_block_hash(self, context, block)
    }

    /// Returns the body of the block with this hash, canonical or not.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] if the block is unknown.
    pub fn get_body(&self, context: &Context, hash: H256) -> Result<Arc<Body>, NodeError> {
        block::get_body(self, context, hash)
    }

    /// Returns the body of a canonical block, or of the pending one.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] if no canonical block has this id.
    pub fn get_canonical_body(&self, context: &Context, block: BlockId) -> Result<Arc<Body>, NodeError> {
        block::get_canonical_body(self, context, block)
    }
}

/// Transactions of the chain and of the pool.
impl Node {
    /// Returns a transaction of the canonical chain or of the pool, or `None` if the hash is unknown.
    pub fn get_transaction(&self, context: &Context, hash: H256) -> Result<Option<FoundTransaction>, NodeError> {
        transaction::get_transaction(self, context, hash)
    }

    /// Returns the transaction of a sender with a nonce, in the pool or on the canonical chain. Returns `None` if
    /// there is no such transaction, or if it is in a block before the earliest state that is kept.
    pub fn get_transaction_of(
        &self,
        context: &Context,
        sender: Address,
        nonce: u64,
    ) -> Result<Option<FoundTransaction>, NodeError> {
        transaction::get_transaction_of(self, context, sender, nonce)
    }

    /// Returns the transaction at an index in a block, or `None` if the block is unknown or has fewer transactions.
    ///
    /// # Errors
    /// [`NodeError::Backend`]; for `pending` also errors of building the pending block.
    pub fn get_transaction_at(
        &self,
        context: &Context,
        block: BlockId,
        index: u64,
    ) -> Result<Option<FoundTransaction>, NodeError> {
        transaction::get_transaction_at(self, context, block, index)
    }

    /// Returns whether a transaction is mined or in the pool, or why it was dropped from the pool.
    pub fn get_transaction_status(&self, context: &Context, hash: H256) -> Result<TransactionStatus, NodeError> {
        transaction::get_transaction_status(self, context, hash)
    }

    /// Returns all transactions of the pool.
    pub fn pool_content(&self, context: &Context) -> Result<PoolContent, NodeError> {
        context.check()?;
        Ok(self.pool.content())
    }
}

/// Receipts.
impl Node {
    /// Returns the receipts of the block that contains a mined transaction, or `None` if no canonical block contains
    /// it.
    pub fn get_receipt(&self, context: &Context, hash: H256) -> Result<Option<FoundReceipt>, NodeError> {
        receipt::get_receipt(self, context, hash)
    }

    /// Returns the receipts of a canonical block, or of the pending one.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] if no canonical block has this id.
    pub fn get_receipts(&self, context: &Context, block: BlockId) -> Result<FoundReceipts, NodeError> {
        receipt::get_receipts(self, context, block)
    }
}

/// Reads of one account.
impl Node {
    /// Returns the value of a storage slot as of a block; zero if it was never set.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] or [`NodeError::StatePruned`].
    pub fn get_storage_at(
        &self,
        context: &Context,
        address: Address,
        slot: H256,
        block: BlockId,
    ) -> Result<U256, NodeError> {
        state::get_storage_at(self, context, address, slot, block)
    }

    /// Returns the balance of an account in wei, as of a block.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] or [`NodeError::StatePruned`].
    pub fn get_balance(&self, context: &Context, address: Address, block: BlockId) -> Result<U256, NodeError> {
        state::get_balance(self, context, address, block)
    }

    /// Returns the code of an account as of a block; empty if it has none.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] or [`NodeError::StatePruned`].
    pub fn get_code(&self, context: &Context, address: Address, block: BlockId) -> Result<Bytes, NodeError> {
        state::get_code(self, context, address, block)
    }

    /// Returns code by its hash, or `None` if it was never deployed up to a block.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] or [`NodeError::StatePruned`].
    pub fn get_code_by_hash(&self, context: &Context, hash: H256, block: BlockId) -> Result<Option<Bytes>, NodeError> {
        state::get_code_by_hash(self, context, hash, block)
    }

    /// Returns the nonce of an account as of a block. For `pending`, this counts all executable transactions in the
    /// pool, including those that do not fit into the pending block.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] or [`NodeError::StatePruned`].
    pub fn get_transaction_count(&self, context: &Context, address: Address, block: BlockId) -> Result<u64, NodeError> {
        state::get_transaction_count(self, context, address, block)
    }

    /// Returns an account with its storage root, as of a block; the empty account if it does not exist.
    ///
    /// # Errors
    /// [`NodeError::Invalid`] if the block is `pending`, which has no storage roots.
    pub fn get_account(&self, context: &Context, address: Address, block: BlockId) -> Result<Account, NodeError> {
        state::get_account(self, context, address, block)
    }
}

/// Merkle proofs (EIP-1186).
impl Node {
    /// Returns an account and storage slots with their Merkle proofs, as of a block. The proofs are verified against
    /// the state root of the block before they are returned.
    ///
    /// # Errors
    /// [`NodeError::Invalid`] if the block is `pending`, which has no proofs, or if there are more than
    /// [`storage_keys`](super::Limits::storage_keys) slots.
    pub fn get_proof(
        &self,
        context: &Context,
        address: Address,
        slots: &[H256],
        block: BlockId,
    ) -> Result<AccountProof, NodeError> {
        proof::get_proof(self, context, address, slots, block)
    }
}

/// Searches for logs, with or without paging.
impl Node {
    /// Returns all logs that match, in the order of the chain.
    ///
    /// # Errors
    /// [`NodeError::TooManyLogs`] if more than [`Limits::logs`] match, [`NodeError::TooManyBlocks`] if the range is
    /// longer than [`Limits::block_range`], [`NodeError::RangeAboveHead`] if it ends above the head, and
    /// [`NodeError::Invalid`] if the range or filter is invalid.
    ///
    /// [`Limits::logs`]: super::Limits::logs
    /// [`Limits::block_range`]: super::Limits::block_range
    pub fn get_logs(&self, context: &Context, query: &LogQuery) -> Result<Vec<FoundLog>, NodeError> {
        logs::get_logs(self, context, query)
    }

    /// Passes all logs that match to `visit`, in the order of the chain, without copying them, until it does not take
    /// one.
    ///
    /// # Errors
    /// Those of [`get_logs`](Self::get_logs), and [`NodeError::LogsTooLarge`] if `visit` breaks off. If an error is returned, `visit` may already have been called with some
    /// of the logs.
    pub fn visit_logs(
        &self,
        context: &Context,
        query: &LogQuery,
        visit: impl FnMut(FoundLog<LogRef<'_>>) -> ControlFlow<BufferFull>,
    ) -> Result<(), NodeError> {
        logs::visit_logs(self, context, query, visit)
    }

    /// Checks a range of blocks as a search for logs does, for requests that have other faults as well.
    ///
    /// # Errors
    /// [`NodeError::Invalid`], [`NodeError::RangeAboveHead`] and [`NodeError::TooManyBlocks`].
    pub fn check_log_range(
        &self,
        context: &Context,
        range: &BlockRange,
        above_head: AboveHead,
    ) -> Result<(), NodeError> {
        logs::check_range(self, context, range, above_head)
    }

    /// Returns the first [`Limits::logs`] logs that match, at least one, or those from `cursor` on; fewer if they have
    /// much data. A page may end inside a block.
    ///
    /// # Errors
    /// Those of [`get_logs`](Self::get_logs), [`NodeError::Invalid`] if the cursor belongs to another query, and
    /// [`NodeError::BlockNotFound`] if the block of the cursor is no longer canonical.
    ///
    /// [`Limits::logs`]: super::Limits::logs
    pub fn get_logs_page(
        &self,
        context: &Context,
        query: &LogQuery,
        cursor: Option<LogCursor>,
    ) -> Result<LogPage, NodeError> {
        logs::get_logs_page(self, context, query, cursor)
    }

    /// Passes the logs of a page to `visit`, without copying them. Returns the start of the next page, or `None` if
    /// this is the last one.
    ///
    /// # Errors
    /// Those of [`get_logs_page`](Self::get_logs_page), and [`NodeError::LogsTooLarge`] if `visit` breaks off. If an error is returned, `visit` may already have been called
    /// with some of the logs.
    pub fn visit_logs_page(
        &self,
        context: &Context,
        query: &LogQuery,
        cursor: Option<LogCursor>,
        visit: impl FnMut(FoundLog<LogRef<'_>>) -> ControlFlow<BufferFull>,
    ) -> Result<Option<LogCursor>, NodeError> {
        logs::visit_logs_page(self, context, query, cursor, visit)
    }
}

/// Filters that are polled for changes.
impl Node {
    /// Installs a filter that reports logs of blocks that join or leave the chain from now on.
    ///
    /// The range may be above the head. If it has no first block, it starts with the latest one. If its last block is
    /// `latest`, `pending` or missing, the range is open-ended. Unless its first block is a number, changes below it
    /// are reported too, if a reorganization goes below it.
    ///
    /// # Errors
    /// [`NodeError::Invalid`] if the range ends before it starts or the filter exceeds the limits, and
    /// [`NodeError::TooManyFilters`].
    pub fn new_filter(&self, context: &Context, filter: LogFilter, range: BlockRange) -> Result<FilterId, NodeError> {
        filters::new_filter(self, context, filter, range)
    }

    /// Checks a range of blocks as [`new_filter`](Self::new_filter) does, for requests that have other faults as well.
    ///
    /// # Errors
    /// [`NodeError::Invalid`] if the range ends before it starts.
    pub fn check_filter_range(&self, context: &Context, range: &BlockRange) -> Result<(), NodeError> {
        filters::check_range(self, context, range)
    }

    /// Installs a filter for new blocks.
    ///
    /// # Errors
    /// [`NodeError::TooManyFilters`].
    pub fn new_block_filter(&self, context: &Context) -> Result<FilterId, NodeError> {
        context.check()?;
        Ok(self.filters.install(context, FilterCriteria::Blocks)?)
    }

    /// Installs a filter for transactions that enter the pool.
    ///
    /// # Errors
    /// [`NodeError::TooManyFilters`], and [`NodeError::ReadOnly`].
    pub fn new_pending_transaction_filter(&self, context: &Context) -> Result<FilterId, NodeError> {
        context.check()?;
        self.check_has_pool()?;
        Ok(self.filters.install(context, FilterCriteria::PendingTransactions)?)
    }

    /// Returns the changes since the last successful poll, or since the filter was installed.
    ///
    /// # Errors
    /// [`NodeError::FilterNotFound`], or [`NodeError::BlockNotFound`] if the block of the last poll is no longer
    /// known.
    pub fn get_filter_changes(&self, context: &Context, id: FilterId) -> Result<FilterChanges, NodeError> {
        Ok(self.filters.changes(context, id)?)
    }

    /// Returns all logs in the range of a log filter.
    ///
    /// # Errors
    /// [`NodeError::FilterNotFound`], [`NodeError::Invalid`] if it is not a log filter, or
    /// [`NodeError::TooManyFilterLogs`].
    pub fn get_filter_logs(&self, context: &Context, id: FilterId) -> Result<Vec<FoundLog>, NodeError> {
        filters::get_filter_logs(self, context, id)
    }

    /// Passes all logs in the range of a log filter to `visit`, in the order of the chain, without copying them.
    ///
    /// # Errors
    /// Those of [`get_filter_logs`](Self::get_filter_logs), and [`NodeError::LogsTooLarge`] if `visit` breaks off. If an error is returned, `visit` may already have been
    /// called with some of the logs.
    pub fn visit_filter_logs(
        &self,
        context: &Context,
        id: FilterId,
        visit: impl FnMut(FoundLog<LogRef<'_>>) -> ControlFlow<BufferFull>,
    ) -> Result<(), NodeError> {
        filters::visit_filter_logs(self, context, id, visit)
    }

    /// Uninstalls a filter. Returns whether it existed.
    pub fn uninstall_filter(&self, context: &Context, id: FilterId) -> Result<bool, NodeError> {
        context.check()?;
        Ok(self.filters.uninstall(id)?)
    }
}

/// Event streams, which report the same changes as filters, as they happen.
impl Node {
    /// Opens a stream of events.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] if the block of the client's last event is unknown, [`NodeError::Invalid`] if the
    /// filter exceeds the limits, or if the first block is more than one above the head, and
    /// [`NodeError::FilterMemory`] if the client may not have the node keep the filter.
    pub fn events(&self, context: &Context, query: &EventQuery) -> Result<EventStream, NodeError> {
        events::events(self, context, query)
    }

    /// Returns a stream of the same events from now on, because the position of `stream` is no longer known.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn restart_events(&self, context: &Context, stream: &EventStream) -> Result<EventStream, NodeError> {
        events::restart_events(self, context, stream)
    }

    /// Returns the next events, about one page, and the stream after them. Returns no events if nothing has changed.
    ///
    /// The last event has the id of the position that the stream has reached. It has no data if nothing up to there
    /// matched.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] if the block of the last event is no longer known.
    pub fn next_events(
        &self,
        context: &Context,
        stream: EventStream,
        page: PageSize,
    ) -> Result<(Vec<Event>, EventStream), NodeError> {
        events::next_events(self, context, stream, page)
    }
}

/// Calls and gas estimates.
impl Node {
    /// Executes a call on the state as of a block, in the environment of that block, and returns its output.
    ///
    /// # Errors
    /// [`NodeError::ExecutionReverted`] or [`NodeError::ExecutionFailed`] if the call fails, and those of reading the
    /// block.
    pub fn call(&self, context: &Context, call: &Call, block: BlockId) -> Result<Bytes, NodeError> {
        call::call(self, context, call, block)
    }

    /// Returns a gas limit with which a call succeeds on the state as of a block, in the environment of that block.
    ///
    /// # Errors
    /// [`NodeError::ExecutionReverted`] or [`NodeError::ExecutionFailed`] if the call fails, and those of reading the
    /// block.
    pub fn estimate_gas(&self, context: &Context, call: &Call, block: BlockId) -> Result<u64, NodeError> {
        call::estimate_gas(self, context, call, block)
    }

    /// Simulates consecutive blocks on top of a block. Nothing is stored.
    ///
    /// All calls together may use at most as much gas as a single call.
    ///
    /// # Errors
    /// A [`SimulateError`], which identifies the block or transaction that caused it.
    pub fn simulate(
        &self,
        context: &Context,
        simulation: Simulation,
        block: BlockId,
    ) -> Result<Vec<SimulatedBlock>, SimulateError> {
        simulate::simulate(self, context, simulation, block)
    }
}

/// Traces of transactions, blocks and calls, and access lists.
impl Node {
    /// Traces a mined transaction by executing its block again up to the transaction, and appends the JSON of the trace
    /// to `out`.
    ///
    /// # Errors
    /// [`NodeError::TransactionNotFound`], [`NodeError::StatePruned`] if the state before the block was pruned,
    /// [`NodeError::TraceTooLarge`], or [`NodeError::ResponseTooLarge`]. `out` may then contain a part of the trace.
    pub fn trace_transaction(
        &self,
        context: &Context,
        hash: H256,
        options: &TraceOptions,
        out: &mut JsonBuffer,
    ) -> Result<(), NodeError> {
        trace::trace_transaction(self, context, hash, options, out)
    }

    /// Traces all transactions of a block by executing them again. For each, `each` is called with its hash and a
    /// function that traces it, which `each` must call once.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`], [`NodeError::GenesisNotTraceable`], [`NodeError::StatePruned`] if the state
    /// before the block was pruned, [`NodeError::TraceTooLarge`] if all traces together exceed the limit, or
    /// [`NodeError::ResponseTooLarge`].
    pub fn trace_block(
        &self,
        context: &Context,
        block: BlockId,
        options: &TraceOptions,
        each: impl FnMut(H256, &mut WriteTrace<'_>) -> Result<(), TraceError>,
    ) -> Result<(), NodeError> {
        trace::trace_block(self, context, block, options, each)
    }

    /// Returns the rewards of a block, which no transaction pays. There are none after the merge.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`].
    pub fn block_rewards(&self, context: &Context, block: BlockId) -> Result<BlockRewards, NodeError> {
        trace::block_rewards(self, context, block)
    }

    /// Traces a call in the environment of a block, on the state as of the block, or with `index` on the state before
    /// the transaction with this index in the block. Appends the JSON of the trace to `out`.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`], [`NodeError::StatePruned`], [`NodeError::Invalid`] if the index is beyond the
    /// block's transactions, [`NodeError::TraceTooLarge`], or [`NodeError::ResponseTooLarge`]. `out` may then contain a
    /// part of the trace.
    pub fn trace_call(
        &self,
        context: &Context,
        call: &Call,
        block: BlockId,
        index: Option<u64>,
        options: &TraceOptions,
        out: &mut JsonBuffer,
    ) -> Result<(), NodeError> {
        trace::trace_call(self, context, call, block, index, options, out)
    }

    /// Returns the access list of a call on the state as of a block, in the environment of that block (EIP-2930).
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`], [`NodeError::StatePruned`], [`NodeError::Invalid`] for blocks before Berlin, or
    /// [`NodeError::ExecutionFailed`].
    pub fn create_access_list(
        &self,
        context: &Context,
        call: &Call,
        block: BlockId,
    ) -> Result<AccessListOutcome, NodeError> {
        trace::create_access_list(self, context, call, block)
    }
}

/// Blocks that are built on request and not stored.
impl Node {
    /// Builds a block on top of a canonical one, without adding it to the chain.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] and [`NodeError::StatePruned`] for the parent, [`NodeError::Invalid`] for fields
    /// out of range, [`NodeError::NotBuilt`] if a transaction or a system contract fails.
    pub fn build_block(&self, context: &Context, request: BlockRequest) -> Result<BuiltBlock, NodeError> {
        build::build_block(self, context, request)
    }
}

/// Sending transactions.
impl Node {
    /// Adds a transaction to the pool and returns its hash. Sending it again returns the same hash.
    ///
    /// With instant mining, a transaction that can be mined is in a block when this returns, unless no block could be
    /// produced, which is logged. A transaction that stays in the pool is durable. A transaction that cannot be stored is
    /// refused and will not be mined.
    ///
    /// # Errors
    /// [`NodeError::TransactionRejected`] with the pool's reasons, [`NodeError::Importing`], or [`NodeError::ReadOnly`]. For transactions that
    /// the node completes, also [`NodeError::NotProducing`], [`NodeError::UnknownAccount`], and errors of the gas
    /// estimate.
    pub fn send_transaction(
        &self,
        context: &Context,
        transaction: impl Into<NewTransaction>,
    ) -> Result<H256, NodeError> {
        send::send_transaction(self, context, transaction)
    }

    /// Checks an encoded transaction as [`send_transaction`](Self::send_transaction) does, without sending it, for
    /// requests that have other faults.
    ///
    /// # Errors
    /// [`NodeError::TransactionRejected`] with the pool's reasons, or [`NodeError::Importing`].
    pub fn check_transaction(&self, context: &Context, encoded: &[u8]) -> Result<(), NodeError> {
        send::check_transaction(self, context, encoded)
    }

    /// Checks the sender of a [`NewTransaction::Request`] as [`send_transaction`](Self::send_transaction) does, for
    /// requests that have other faults.
    ///
    /// # Errors
    /// [`NodeError::UnknownAccount`] if it is not impersonated and the node does not have its key, or
    /// [`NodeError::NotProducing`].
    pub fn check_sender(&self, context: &Context, sender: Address) -> Result<(), NodeError> {
        send::check_sender(self, context, sender)
    }
}

/// Transactions that the node completes and signs.
impl Node {
    /// Returns the accounts whose keys the node has.
    pub fn accounts(&self) -> Vec<Address> {
        self.wallet.as_ref().map(|wallet| wallet.addresses()).unwrap_or_default()
    }

    /// Signs a hash with the key of an account.
    ///
    /// # Errors
    /// [`NodeError::UnknownAccount`] if the node has no such key.
    pub fn sign_hash(&self, address: Address, hash: H256) -> Result<Signature, NodeError> {
        request::sign_hash(self, address, hash)
    }

    /// Signs a personal message (EIP-191) with the key of an account.
    ///
    /// # Errors
    /// [`NodeError::UnknownAccount`] if the node has no such key.
    pub fn sign_message(&self, address: Address, message: &[u8]) -> Result<Signature, NodeError> {
        self.sign_hash(address, personal_message_hash(message))
    }

    /// Fills in the missing fields of a transaction, without signing it.
    ///
    /// # Errors
    /// [`NodeError::Invalid`] if fields contradict each other, [`NodeError::TransactionRejected`] if the transaction
    /// is invalid in every state, and errors of the gas estimate.
    pub fn fill_transaction(
        &self,
        context: &Context,
        request: &TransactionRequest,
    ) -> Result<TransactionBody, NodeError> {
        request::fill_transaction(self, context, request)
    }

    /// Fills in the missing fields of a transaction, and signs it with the sender's key.
    ///
    /// # Errors
    /// Those of [`fill_transaction`](Self::fill_transaction), and [`NodeError::UnknownAccount`] if the node has no
    /// key for the sender.
    pub fn sign_transaction(
        &self,
        context: &Context,
        request: TransactionRequest,
    ) -> Result<PooledTransaction, NodeError> {
        request::sign_transaction(self, context, request)
    }

    /// Replaces the newest `blocks` blocks with blocks that contain the given transactions. Each transaction is
    /// paired with the index of its block among the replaced ones, the oldest being 0. Requests are completed on the
    /// state as of the block below the replaced ones.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::TransactionRejected`], [`NodeError::Control`], and those of
    /// [`fill_transaction`](Self::fill_transaction).
    pub fn reorganize_with(
        &self,
        context: &Context,
        blocks: u64,
        transactions: Vec<(u64, ReplacementTransaction)>,
    ) -> Result<(), NodeError> {
        request::reorganize_with(self, context, blocks, transactions)
    }
}

/// Control of development chains, which the node produces itself.
impl Node {
    /// Returns the producer, whose methods change the chain. This is the only way to it for the interfaces.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`] if the node does not produce blocks, and [`NodeError::Interrupted`].
    pub fn control(&self, context: &Context) -> Result<&Arc<Producer>, NodeError> {
        context.check()?;
        self.producer.as_ref().ok_or(NodeError::NotProducing)
    }

    /// Mines `blocks` blocks from the transactions of the pool, or empty ones if it has none, and returns the new
    /// head. `interval` is the number of seconds between them. `withdrawals` are those of the first block. It may take
    /// [`Producer::MINING_TIMEOUTS`] times the timeout of `context`; blocks mined until then remain.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, [`NodeError::Interrupted`], and
    /// [`NodeError::Backend`].
    pub fn mine(
        &self,
        context: &Context,
        blocks: u64,
        interval: Option<u64>,
        withdrawals: Vec<Withdrawal>,
    ) -> Result<BlockRef, NodeError> {
        development::mine(self, context, blocks, interval, withdrawals)
    }

    /// Reverts the chain to a snapshot. Returns false if there is no snapshot with this id.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, and [`NodeError::Backend`].
    pub fn revert(&self, context: &Context, snapshot: u64) -> Result<bool, NodeError> {
        development::revert(self, context, snapshot)
    }

    /// Replaces the chain by one that continues the other chain after `block`, or after the newest one; resets it if it begins
    /// there already. `url` is where the other chain is read from then on; if `None`, where it was read before.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the chain continues no other one, or cannot begin there, and
    /// [`NodeError::Upstream`].
    pub fn fork_again(
        &self,
        context: &Context,
        url: Option<&str>,
        block: Option<ForkBlock>,
    ) -> Result<BlockRef, NodeError> {
        development::fork_again(self, context, url, block)
    }

    /// Drops a transaction from the pool. Returns whether it was there.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`] and [`NodeError::Backend`].
    pub fn drop_transaction(&self, context: &Context, hash: H256) -> Result<bool, NodeError> {
        development::drop_transaction(self, context, hash)
    }

    /// Sets the balance of `owner` in an ERC-20 token, in the token's smallest unit.
    ///
    /// This sets the storage slot that contains the balance, which is searched among the slots that the token reads
    /// only for this owner. If the upper bits of the slot contain other data, they are kept.
    ///
    /// # Errors
    /// [`NodeError::ExecutionFailed`] if no single slot determines the balance.
    pub fn set_token_balance(
        &self,
        context: &Context,
        token: Address,
        owner: Address,
        amount: U256,
    ) -> Result<(), NodeError> {
        development::set_token_balance(self, context, token, owner, amount)
    }

    /// Sets the amount of `owner`'s balance in an ERC-20 token that `spender` may spend, in the same way as
    /// [`set_token_balance`](Self::set_token_balance).
    ///
    /// # Errors
    /// Those of [`set_token_balance`](Self::set_token_balance).
    pub fn set_token_allowance(
        &self,
        context: &Context,
        token: Address,
        owner: Address,
        spender: Address,
        amount: U256,
    ) -> Result<(), NodeError> {
        development::set_token_allowance(self, context, token, owner, spender, amount)
    }
}

/// Serving a chain while it is imported.
impl Node {
    /// Reports that the chain is being imported, and refuses transactions, until [`end_import`](Self::end_import) is
    /// called. Transactions are refused because a later block of the import may contain them, and because the pool's
    /// checks depend on the head.
    pub fn begin_import(&self) -> Result<(), NodeError> {
        importing::begin_import(self)
    }

    /// Sets the highest block of the running import, once it is known.
    pub fn set_highest_block(&self, number: BlockNumber) {
        importing::set_highest_block(self, number)
    }

    /// Ends the import: accepts transactions again.
    pub fn end_import(&self) {
        importing::end_import(self)
    }

    /// Returns the progress of an import, or `None` if the chain is not being imported.
    pub fn import_progress(&self, context: &Context) -> Result<Option<ImportProgress>, NodeError> {
        importing::import_progress(self, context)
    }
}
