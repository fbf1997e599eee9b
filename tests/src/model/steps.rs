//! The steps, each performed on the node and on the model.

use super::filters::{Changes, Cursor, Filter, Kind, Place};
use super::generate::Draft;
use super::transaction::Sent;
use super::world::MAX_FILTERS;
use super::{Run, code, word};
use node_core::backend::LogFilter;
use node_core::block::RecoveredTransaction;
use node_core::context::Context;
use node_core::crypto::SignatureError;
use node_core::executor::TransactionError;
use node_core::filters::{FilterChanges, FilterId};
use node_core::node::{BlockRange, FoundBlock, LogBlocks, LogQuery, NewTransaction, NodeError, TransactionRequest};
use node_core::pool::{DropReason, PoolError};
use node_core::producer::{Mining, ProducerError};
use node_types::consensus::{DynamicFeeTransaction, TransactionBody, Withdrawal};
use node_types::{BlockId, Bytes, U256};
use std::rc::Rc;
use std::time::Duration;

/// Long enough to never elapse.
const NEVER: Duration = Duration::from_secs(1 << 20);

impl Run {
    /// Performs one random step, and compares what it affected.
    pub(super) fn step(&mut self) {
        let time = self.random.below(50);
        self.world.clock.advance(time);
        self.model.clock += time;
        let edits = self.options.edits;
        match self.random.below(1_000) {
            0..=549 => self.send(),
            550..=669 => self.mine(),
            670..=689 => self.set_mining(),
            690..=789 => self.poll(),
            790..=809 => self.install(),
            810..=814 => self.uninstall(),
            815..=854 => self.get_logs(),
            855..=869 => self.reorganize(),
            870..=879 => self.snapshot(),
            880..=889 => self.revert(),
            890..=909 => self.drop_transaction(),
            910..=924 => self.set_time(),
            925..=929 => self.restart(),
            930..=934 if edits => self.set_base_fee(),
            935..=964 if edits => self.edit(),
            965..=994 if edits => self.send_unsigned(),
            _ => self.send_again(),
        }
        self.compare();
    }

    /// Sends a transaction that may be invalid.
    fn send(&mut self) {
        self.at.what = "a transaction is sent";
        if self.random.chance(1) {
            let refused = self.send_bytes(vec![0x02, 0xc0]).expect_err("not a transaction");
            assert!(matches!(refused[..], [PoolError::Undecodable(_)]), "{refused:?}");
            return;
        }
        let draft = self.generator.transaction(&mut self.random, &self.model);
        let bytes = draft.encode();
        let Draft { sent, sidecar } = draft;
        let expected = self.refusals(&sent, sidecar.is_some());
        let hash = sent.hash;
        let response = self.send_bytes(bytes);
        self.compare_send(sent, response, expected);
        if let Some(sidecar) = sidecar
            && self.model.status(self.sent.last().expect("it was sent")) == super::pool::Status::Pending
        {
            let kept = self.world.node().pool().get(hash).and_then(|kept| kept.sidecar.clone());
            assert!(kept == Some(sidecar), "the blobs of {hash:#x}");
        }
    }

    /// Sends a transaction again: it may be in the pool, mined, dropped or reorganized away.
    fn send_again(&mut self) {
        self.at.what = "a transaction is sent again";
        if self.sent.is_empty() {
            return;
        }
        let sent = self.random.pick(&self.sent).clone();
        if sent.unsigned || sent.is_blob() {
            return;
        }
        let expected = self.refusals(&sent, false);
        let copy = Sent { transaction: sent.transaction.clone(), signers: sent.signers.clone(), ..*sent };
        let response = self.send_bytes(sent.transaction.encode());
        self.compare_send(copy, response, expected);
    }

    /// The reasons to reject a transaction; empty if the node has it already.
    fn refusals(&self, sent: &Sent, has_blobs: bool) -> Vec<PoolError> {
        let is_there = self.model.positions.contains_key(&sent.hash)
            || self.model.pool.all().any(|waiting| waiting.sent.hash == sent.hash);
        if is_there {
            return Vec::new();
        }
        let spec = &self.world.genesis.spec;
        let gas_limit = self.world.genesis.header.gas_limit;
        // With instant mining a transaction must pay the base fee.
        let base_fee = self.model.next_header().base_fee_per_gas.filter(|_| self.model.mining == Mining::Instant);
        let (state, chain_id) = (&self.model.state, spec.chain_id);
        let mut reasons = self.model.pool.refusals(sent, has_blobs, state, gas_limit, base_fee, chain_id);
        let half_order = U256::from_str_radix("7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0", 16);
        if sent.transaction.signature.s > half_order.expect("a number") {
            // The sender cannot be recovered, so it is not checked.
            reasons.retain(|reason| !of_sender(reason));
            reasons.push(TransactionError::Signature(SignatureError::HighS).into());
        }
        reasons
    }

    fn send_bytes(&self, bytes: Vec<u8>) -> Result<node_types::H256, Vec<PoolError>> {
        match self.world.node().send_transaction(&Context::unbounded(), Bytes::from(bytes)) {
            Ok(hash) => Ok(hash),
            Err(NodeError::TransactionRejected(rejection)) => Err(rejection.reasons),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn compare_send(
        &mut self,
        sent: Sent,
        response: Result<node_types::H256, Vec<PoolError>>,
        expected: Vec<PoolError>,
    ) {
        let described = format!("{sent:?}");
        let sent = Rc::new(sent);
        self.sent.push(sent.clone());
        if !expected.is_empty() {
            self.summary.refused += 1;
            let sorted = |reasons: Vec<PoolError>| {
                let mut texts: Vec<_> = reasons.iter().map(|reason| format!("{reason:?}")).collect();
                texts.sort();
                texts
            };
            assert_eq!(response.map_err(sorted), Err(sorted(expected)), "{described}");
            return;
        }
        assert_eq!(response, Ok(sent.hash), "{described}");
        let is_there = self.model.positions.contains_key(&sent.hash)
            || self.model.pool.all().any(|waiting| waiting.sent.hash == sent.hash);
        if !is_there {
            self.summary.accepted += 1;
            self.model.pool.insert(sent, &self.model.state);
        }
        self.model.changed(&*self.world.view());
    }

    fn send_unsigned(&mut self) {
        self.at.what = "an impersonated transaction is sent";
        let sender = self.generator.address(&mut self.random);
        let (mut fields, scarce) = self.generator.fields(&mut self.random, &self.model, sender);
        let context = Context::unbounded();
        if self.random.chance(70) {
            let changed = self
                .world
                .node()
                .control(&context)
                .expect("it produces")
                .impersonate(sender, true)
                .expect("there are few");
            assert_eq!(changed, self.model.impersonated.insert(sender));
        } else if self.random.chance(20) {
            let changed = self
                .world
                .node()
                .control(&context)
                .expect("it produces")
                .impersonate(sender, false)
                .expect("there are few");
            assert_eq!(changed, self.model.impersonated.remove(&sender));
        }
        fields.gas = if scarce { 21_000 } else { 300_000 };
        let request = TransactionRequest {
            from: sender,
            to: fields.to,
            gas: Some(fields.gas),
            max_fee_per_gas: Some(fields.fee),
            max_priority_fee_per_gas: Some(fields.tip),
            nonce: Some(fields.nonce),
            value: fields.value,
            input: fields.input.clone(),
            ..TransactionRequest::default()
        };
        let body = TransactionBody::DynamicFee(DynamicFeeTransaction {
            chain_id: self.world.genesis.spec.chain_id,
            nonce: fields.nonce,
            max_priority_fee_per_gas: fields.tip,
            max_fee_per_gas: fields.fee,
            gas_limit: fields.gas,
            to: fields.to,
            value: fields.value,
            input: fields.input,
            access_list: Vec::new(),
        });
        let RecoveredTransaction { transaction: signed, hash, .. } = RecoveredTransaction::impersonating(sender, body);
        let sent = Sent { hash, sender, transaction: signed, signers: Vec::new(), unsigned: true };
        let expected = self.refusals(&sent, false);
        let response = self.world.node().send_transaction(&context, NewTransaction::Request(request));
        let response = match response {
            Ok(hash) => Ok(hash),
            Err(NodeError::TransactionRejected(rejection)) => Err(rejection.reasons),
            Err(NodeError::UnknownAccount(refused)) => {
                assert_eq!(refused, sender);
                assert!(!self.model.impersonated.contains(&sender), "{sender:#x} is impersonated");
                return;
            }
            Err(error) => panic!("{error:?}"),
        };
        assert!(self.model.impersonated.contains(&sender), "{sender:#x} is not impersonated");
        self.compare_send(sent, response, expected);
    }

    fn mine(&mut self) {
        self.at.what = "blocks are mined";
        let blocks = [1, 1, 1, 1, 2, 3, 0][self.random.below(7) as usize];
        let interval = self.random.chance(20).then(|| self.random.below(20));
        let withdrawals: Vec<_> = (0..if self.random.chance(20) { self.random.below(3) } else { 0 })
            .map(|index| Withdrawal {
                index,
                validator_index: 7,
                address: self.generator.address(&mut self.random),
                amount: 1 + self.random.below(1 << 30),
            })
            .collect();
        let pending = self.random.chance(30).then(|| self.block(BlockId::pending()));
        let mined = self.world.node().mine(&Context::unbounded(), blocks, interval, withdrawals.clone());
        let mined = mined.expect("blocks");
        let view = self.world.view();
        if let Some(pending) = pending.filter(|_| blocks == 1 && withdrawals.is_empty()) {
            let block = self.block(BlockId::latest());
            let known = |block: &FoundBlock| {
                let header = &block.header.header;
                let roots = [header.state_root, header.transactions_root, header.receipts_root];
                (roots, header.gas_used, header.timestamp, header.base_fee_per_gas)
            };
            assert_eq!(known(&pending), known(&block), "the block that was pending");
        }
        for block in 0..blocks {
            if let Some(interval) = interval.filter(|_| block > 0) {
                let head = self.model.head().header.header.timestamp;
                self.model.wished_time = Some(head + interval.max(1));
            }
            self.model.sealed(&*view, if block == 0 { &withdrawals } else { &[] });
        }
        let head = self.model.head();
        assert_eq!((mined.number, mined.hash), (head.number(), head.header.hash));
    }

    fn block(&self, id: BlockId) -> FoundBlock {
        self.world.node().get_block(&Context::unbounded(), id).expect("a block").expect("a block")
    }

    fn set_mining(&mut self) {
        self.at.what = "blocks are made at other times";
        let mining = self.mining();
        self.world.node().producer().expect("it produces").set_mining(mining).expect("it is stored");
        self.model.mining = mining;
        self.model.changed(&*self.world.view());
    }

    fn mining(&mut self) -> Mining {
        match self.random.below(10) {
            0..=4 => Mining::Manual,
            5..=7 => Mining::Instant,
            8 => Mining::Mixed(NEVER),
            _ => Mining::Interval(NEVER),
        }
    }

    fn reorganize(&mut self) {
        self.at.what = "blocks are replaced";
        let blocks = self.random.below(12);
        let response = (self.world.node().control(&Context::unbounded()))
            .and_then(|producer| Ok(producer.reorganize(&Context::unbounded(), blocks)?));
        if blocks > self.model.head_number() {
            let refused = response.expect_err("there are fewer");
            let deep = matches!(&refused, NodeError::Control(ProducerError::ReorganizationTooDeep { .. }));
            assert!(deep, "{refused:?}");
            return;
        }
        let response = response.expect("blocks are replaced");
        let removed = self.model.canonical[(self.model.head_number() - blocks + 1) as usize..].to_vec();
        // Newest first.
        assert!(response.removed.iter().rev().map(|block| block.hash).eq(removed), "removed blocks");
        let view = self.world.view();
        if blocks > 0 {
            self.summary.reorganizations += 1;
            self.model.reorganized(&*view, blocks);
            let added = &self.model.canonical[(self.model.head_number() - blocks + 1) as usize..];
            assert!(response.added.iter().map(|block| block.hash).eq(added.iter().copied()), "added blocks");
        }
        self.model.changed(&*view);
    }

    fn snapshot(&mut self) {
        self.at.what = "a snapshot";
        let id = self.world.node().control(&Context::unbounded()).expect("it produces").snapshot().expect("a snapshot");
        self.model.snapshot(id);
        self.snapshots.push(id);
    }

    fn revert(&mut self) {
        self.at.what = "a revert to a snapshot";
        let recent = &self.snapshots[self.snapshots.len().saturating_sub(4)..];
        let id = if recent.is_empty() || self.random.chance(5) { 1 << 40 } else { *self.random.pick(recent) };
        let done = self.world.node().revert(&Context::unbounded(), id).expect("it succeeds");
        assert_eq!(done, self.model.revert(id), "snapshot {id}");
        if done {
            self.summary.reorganizations += 1;
            self.snapshots.retain(|other| *other < id);
        }
    }

    fn drop_transaction(&mut self) {
        self.at.what = "a transaction is dropped";
        let waiting: Vec<_> = self.model.pool.all().map(|waiting| waiting.sent.clone()).collect();
        let sent = match waiting.is_empty() || self.random.chance(5) {
            false => self.random.pick(&waiting).clone(),
            true if self.sent.is_empty() => return,
            true => self.random.pick(&self.sent).clone(),
        };
        let done = self.world.node().drop_transaction(&Context::unbounded(), sent.hash).expect("it succeeds");
        let there = waiting.iter().any(|waiting| waiting.hash == sent.hash);
        assert_eq!(done, there, "{:#x}", sent.hash);
        if there {
            self.model.pool.drop(sent.sender, sent.body().nonce(), DropReason::Requested);
            self.model.pool.enforce(&self.model.state);
        }
    }

    fn set_time(&mut self) {
        self.at.what = "time is set";
        let context = Context::unbounded();
        if self.random.chance(50) {
            let seconds = self.random.below(100);
            self.world.node().control(&context).expect("it produces").increase_time(seconds).expect("time moves");
            let to_head = self.model.head().header.header.timestamp as i64 * 1_000 - self.model.clock as i64;
            self.model.offset = self.model.offset.max(to_head) + seconds as i64 * 1_000;
            return;
        }
        let head = self.model.head().header.header.timestamp;
        let timestamp = head + self.random.below(100);
        match self.world.node().control(&context).expect("it produces").set_next_timestamp(timestamp) {
            Ok(()) => self.model.wished_time = Some(timestamp),
            Err(ProducerError::TimestampTooLow { least, .. }) => {
                assert_eq!((timestamp, least), (head, head + 1));
                return;
            }
            Err(error) => panic!("{error:?}"),
        }
        assert!(timestamp > head, "a block at the time of its parent");
    }

    fn set_base_fee(&mut self) {
        self.at.what = "the base fee is set";
        let by_rules = self.model.base_fee_by_rules();
        let base_fee = [0, 1, by_rules, 7, 1_000_000_000, by_rules * 2][self.random.below(6) as usize];
        self.world
            .node()
            .control(&Context::unbounded())
            .expect("it produces")
            .set_next_base_fee(base_fee)
            .expect("it is set");
        self.model.wished_fee = Some(base_fee);
    }

    fn edit(&mut self) {
        self.at.what = "the state is edited";
        self.summary.edits += 1;
        let context = Context::unbounded();
        let address = self.generator.address(&mut self.random);
        let account = self.model.state.account(address);
        let producer = self.world.node().control(&context).expect("it produces");
        match self.random.below(4) {
            0 => {
                let least = u64::from(account.is_empty() || !account.storage.is_empty());
                let balances = [U256::from(least), U256::exp10(17), U256::exp10(22)];
                let balance = *self.random.pick(&balances);
                producer.set_balance(address, balance).expect("it is set");
                self.model.edit(address, |account| account.balance = balance);
            }
            1 => {
                let nonce = (account.nonce + self.random.below(4)).saturating_sub(1);
                // Accounts that would be empty except for storage are left alone.
                if nonce == 0 && account.balance.is_zero() {
                    return;
                }
                producer.set_nonce(address, nonce).expect("it is set");
                self.model.edit(address, |account| account.nonce = nonce);
            }
            2 => {
                // Accounts that sign rarely get code: afterwards they can no longer sign.
                let own = self.generator.accounts.iter().any(|account| account.address() == address);
                let code = match self.random.below(4) {
                    0 => Bytes::new(),
                    1 if !own => Bytes::from(&code::REVERT[..]),
                    2 if !own || self.random.chance(10) => Bytes::from(&code::STORE[..]),
                    _ => code::delegation(self.generator.contract),
                };
                if account.is_empty() && code.is_empty() {
                    return;
                }
                // Accounts that would be empty except for storage are left alone.
                if code.is_empty() && account.nonce == 0 && account.balance.is_zero() {
                    return;
                }
                producer.set_code(address, code.clone()).expect("it is set");
                self.model.edit(address, |account| account.code = code);
            }
            _ => {
                if account.is_empty() {
                    return;
                }
                let (slot, value) = (word(self.random.below(8)), U256::from(self.random.below(3)));
                producer.set_storage(address, slot, value).expect("it is set");
                self.model.edit(address, |account| account.set_slot(slot, value));
            }
        }
        self.model.changed(&*self.world.view());
    }

    fn restart(&mut self) {
        self.at.what = "the node is opened again";
        self.summary.restarts += 1;
        // The clock continues meanwhile.
        self.world.clock.advance(1_000);
        self.model.clock += 1_000;
        let mining = self.mining();
        if self.random.chance(20) {
            self.world.crash();
        }
        self.world.open(mining);
        self.model.restart(mining);
        self.model.changed(&*self.world.view());
    }

    fn criteria(&mut self) -> LogFilter {
        let addresses = (0..self.random.below(3)).map(|_| self.generator.address(&mut self.random)).collect();
        let topics = (0..self.random.below(5)).map(|position| match (self.random.below(3), position) {
            (0, _) => Vec::new(),
            (_, 0) => vec![code::EVENT],
            _ => (0..1 + self.random.below(3)).map(|_| word(self.random.below(5))).collect(),
        });
        LogFilter { topics: topics.collect(), addresses }
    }

    fn install(&mut self) {
        self.at.what = "a filter is made";
        let (node, context) = (self.world.node(), Context::unbounded());
        let head = Cursor::Block(self.model.head().header.hash);
        let (id, kind, cursor) = match self.random.below(4) {
            0 => (node.new_block_filter(&context), Kind::Blocks, head),
            1 => {
                let cursor = Cursor::Arrival(self.model.pool.next_arrival());
                (node.new_pending_transaction_filter(&context), Kind::Pending, cursor)
            }
            _ => {
                let criteria = self.criteria();
                let latest = self.model.head_number();
                let first = self.random.chance(30).then(|| self.random.below(latest + 5));
                let from = first.unwrap_or(latest);
                let last = self.random.chance(30).then(|| from + self.random.below(latest + 9));
                let range = BlockRange { from: first.map(Into::into), to: last.map(Into::into) };
                let id = self.world.node().new_filter(&context, criteria.clone(), range);
                // Without a first block, changes below the head are reported too.
                (id, Kind::Logs(criteria, first.unwrap_or(0)..=last.unwrap_or(u64::MAX)), head)
            }
        };
        if self.model.filters.len() == MAX_FILTERS {
            assert!(matches!(id, Err(NodeError::TooManyFilters { limit: MAX_FILTERS })), "{id:?}");
            return;
        }
        let number = self.summary.filters;
        self.summary.filters += 1;
        self.model.filters.insert(id.expect("a filter"), Filter { number, kind, cursor });
    }

    /// A filter, if there is one: names are random, places among the filters are not.
    fn any_filter(&mut self) -> Option<FilterId> {
        let mut filters: Vec<_> = self.model.filters.iter().collect();
        filters.sort_by_key(|(_, filter)| filter.number);
        let names: Vec<_> = filters.into_iter().map(|(id, _)| *id).collect();
        (!names.is_empty()).then(|| *self.random.pick(&names))
    }

    fn uninstall(&mut self) {
        self.at.what = "a filter is ended";
        let Some(id) = self.any_filter() else { return };
        assert!(self.world.node().uninstall_filter(&Context::unbounded(), id).expect("it succeeds"));
        self.model.filters.remove(&id);
        let gone = self.world.node().get_filter_changes(&Context::unbounded(), id);
        assert!(matches!(gone, Err(NodeError::FilterNotFound)), "{gone:?}");
    }

    fn poll(&mut self) {
        self.at.what = "a filter is polled";
        let Some(id) = self.any_filter() else { return };
        self.poll_one(id);
    }

    /// Polls a filter.
    pub(super) fn poll_one(&mut self, id: FilterId) {
        let response = self.world.node().get_filter_changes(&Context::unbounded(), id).expect("changes");
        let kind = format!("{:?}", self.model.filters[&id]);
        let expected = self.model.poll(id);
        let (count, actual) = match response {
            FilterChanges::Logs(logs) => (
                logs.len(),
                Changes::Logs(logs.iter().map(|change| Place::of(&change.found, change.removed)).collect()),
            ),
            FilterChanges::Blocks(blocks) => {
                (blocks.len(), Changes::Hashes(blocks.into_iter().map(|block| block.hash).collect()))
            }
            FilterChanges::Transactions(arrivals) => {
                (arrivals.len(), Changes::Hashes(arrivals.into_iter().map(|arrival| arrival.hash).collect()))
            }
        };
        self.summary.reported += count;
        // An empty list does not show its element type.
        let empty = [Changes::Logs(Vec::new()), Changes::Hashes(Vec::new())];
        if !(empty.contains(&actual) && empty.contains(&expected)) {
            assert_eq!(actual, expected, "{kind}");
        }
    }

    fn get_logs(&mut self) {
        self.at.what = "getLogs";
        let criteria = self.criteria();
        let first = self.random.below(self.model.head_number() + 1);
        let last = first + self.random.below(self.model.head_number() + 1 - first);
        let range = BlockRange { from: Some(first.into()), to: Some(last.into()) };
        let query = LogQuery { filter: criteria.clone(), blocks: LogBlocks::Range(range), ..LogQuery::default() };
        let logs = self.world.node().get_logs(&Context::unbounded(), &query).expect("logs");
        let logs: Vec<_> = logs.iter().map(|log| Place::of(log, false)).collect();
        assert_eq!(logs, self.model.logs(&criteria, first..=last), "{criteria:?} from {first} to {last}");
    }
}

/// Whether a reason depends on the sender.
fn of_sender(reason: &PoolError) -> bool {
    match reason {
        PoolError::Invalid(error) => matches!(
            error,
            TransactionError::NonceTooLow { .. }
                | TransactionError::SenderHasCode(_)
                | TransactionError::InsufficientFunds { .. }
        ),
        PoolError::ReplacementUnderpriced { .. }
        | PoolError::AccountLimit { .. }
        | PoolError::DelegatedInFlight { .. }
        | PoolError::DelegatedOutOfOrder { .. }
        | PoolError::AuthorityReserved { .. } => true,
        _ => false,
    }
}
