//! Updating the pool when the chain changes.

use super::contents::Contents;
use super::memory::MinedBlobs;
use super::{
    DropReason, EXPIRY_INTERVAL, NextBlockRules, Pool, PoolError, PoolParts, PoolTransaction, record, stateful,
};
use crate::backend::{BackendError, HeadChange, RecordKind, RecordWrite, View};
use crate::block::{BlockHashOrNumber, RecoveredTransaction};
use crate::executor::TransactionError;
use crate::sources::Sources;
use crate::state::AccountState;
use node_types::consensus::{BlobSidecar, TransactionBody};
use node_types::{Address, BlockNumber, H256};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Returns the rules of the block after the head of `view` if it were sealed now.
pub(super) fn next_block(parts: &PoolParts, view: &dyn View) -> Result<NextBlockRules, BackendError> {
    let head = view.head();
    let header = view.header(BlockHashOrNumber::Hash(head.hash))?.ok_or(BackendError::UnknownBlock(head.number))?;
    Ok(NextBlockRules::new(&parts.spec, &parts.next_header.after(&header)))
}

impl Pool {
    /// Updates the pool to the head, in case its notification has not arrived yet, and to the current time, because a
    /// fork may activate without a new block.
    pub(super) fn catch_up(&self) -> Result<(), BackendError> {
        let view = self.parts.backend.view()?;
        let next = next_block(&self.parts, view.as_ref())?;
        if self.contents.read().is_at(view.head().hash, &next) {
            return Ok(());
        }
        let mut mined_blobs = self.changing.lock();
        let view = self.parts.backend.view()?;
        self.settle(view.as_ref(), &mut mined_blobs, Vec::new()).map(drop)
    }

    /// Loads the durable records, and deletes those that are no longer usable.
    pub(super) fn restore(&self, view: &dyn View) -> Result<(), BackendError> {
        let mut mined_blobs = self.changing.lock();
        self.load_records(view)?;
        self.settle(view, &mut mined_blobs, Vec::new())?;
        // After a crash there can be records of transactions that were mined or dropped.
        self.contents.write().forget_absent_arrivals();
        Ok(())
    }

    /// Inserts the transactions of all durable records that are not in the pool. The pool must be settled afterwards.
    pub(super) fn load_records(&self, view: &dyn View) -> Result<(), BackendError> {
        let mut unusable = Vec::new();
        let mut transactions = Vec::new();
        for record in self.parts.backend.records(RecordKind::PoolTransaction)? {
            match record::decode(&record) {
                // The nonce does not always show this, because an edit may have lowered the account's nonce.
                Ok(transaction) if view.own_transaction_position(transaction.hash())?.is_some() => {
                    unusable.push(RecordWrite::Delete(RecordKind::PoolTransaction, record.key));
                }
                Ok(transaction) => transactions.push(transaction),
                Err(error) => {
                    tracing::warn!(%error, "a transaction of the pool cannot be read from its record");
                    unusable.push(RecordWrite::Delete(RecordKind::PoolTransaction, record.key));
                }
            }
        }
        if !unusable.is_empty() {
            self.parts.backend.write_records(&unusable)?;
        }
        transactions.sort_by_key(|transaction| transaction.arrival);
        // Inserted with empty accounts, so nothing is pending yet; `settle` then reads the state.
        let mut contents = self.contents.write();
        for transaction in transactions {
            if contents.get(transaction.hash()).is_none() {
                let received = transaction.received;
                contents.insert(Arc::new(transaction), AccountState::default(), received);
            }
        }
        contents.head = None;
        Ok(())
    }

    /// Returns the transactions of removed blocks that are not on the new branch, oldest first.
    pub(super) fn returning(
        &self,
        view: &dyn View,
        change: &HeadChange,
        mined_blobs: &mut MinedBlobs,
    ) -> Result<Vec<PoolTransaction>, BackendError> {
        let mut returning = Vec::new();
        let effects = self.effects.lock();
        let limited = effects.as_ref().and_then(|effects| effects.returning.as_ref());
        for block in change.removed.iter().rev() {
            let Some(block) = view.side_block(block.hash)? else { continue };
            for recovered in &block.body.transactions {
                if returning.len() >= self.limits.transactions {
                    return Ok(returning);
                }
                if view.own_transaction_position(recovered.hash)?.is_some() {
                    continue;
                }
                if let Some((_, reason)) = limited.filter(|(returning, _)| !returning.contains(&recovered.hash)) {
                    // Its blobs stay, because its block may become canonical again and then be replaced.
                    self.contents.write().dropped.insert(recovered.hash, reason.clone());
                    continue;
                }
                returning.push(self.to_pooled(view, recovered, mined_blobs.take(recovered.hash))?);
            }
        }
        Ok(returning)
    }

    /// Converts a transaction of a block to a pool transaction.
    fn to_pooled(
        &self,
        view: &dyn View,
        recovered: &RecoveredTransaction,
        sidecar: Option<BlobSidecar>,
    ) -> Result<PoolTransaction, BackendError> {
        Ok(PoolTransaction {
            size: record::size(recovered.transaction.encode().len(), sidecar.as_ref()),
            authorities: self.authorities(&*view.state(view.head().number)?, &recovered.transaction.body)?,
            recovered: recovered.clone(),
            sidecar,
            arrival: 0,
            received: self.parts.clock.steady_millis(),
        })
    }

    /// Returns the writes that record the `wanted` transactions in the canonical blocks above `ancestor`, which are
    /// about to leave the chain. They belong to the same durable write as that change.
    pub(crate) fn record_leaving(
        &self,
        view: &dyn View,
        ancestor: BlockNumber,
        wanted: impl Fn(H256) -> bool,
    ) -> Result<Vec<RecordWrite>, BackendError> {
        let mined_blobs = self.changing.lock();
        let mut writes = Vec::new();
        for number in ancestor + 1..=view.head().number {
            let Some(body) = view.body(number.into())? else { continue };
            for recovered in body.transactions.iter().filter(|recovered| wanted(recovered.hash)) {
                let sidecar = mined_blobs.get(recovered.hash).cloned();
                let is_blob = matches!(recovered.transaction.body, TransactionBody::Blob(_));
                if sidecar.is_some() || !is_blob {
                    writes.push(record::put(&self.to_pooled(view, recovered, sidecar)?));
                }
            }
        }
        Ok(writes)
    }

    /// Updates the contents to the head of `view`, adds the transactions `returning` from removed blocks, and enforces
    /// the limits. Returns the hashes of those that returned to the pool.
    ///
    /// Idempotent, and cheap if neither the head nor the next block's rules have changed. The state is read before
    /// anything is changed, so a failure to read leaves the pool unchanged. The change of the chain is what is
    /// committed; records follow it, now or, if they cannot be written, with the next write.
    pub(super) fn settle(
        &self,
        view: &dyn View,
        mined_blobs: &mut MinedBlobs,
        returning: Vec<PoolTransaction>,
    ) -> Result<Vec<H256>, BackendError> {
        let head = view.head();
        let now = self.parts.clock.steady_millis();
        let next = next_block(&self.parts, view)?;
        if self.contents.read().is_at(head.hash, &next) && returning.is_empty() {
            return Ok(Vec::new());
        }
        let mut accounts = HashMap::new();
        let mut contracts = Vec::new();
        let mut mined = BTreeSet::new();
        {
            let contents = self.contents.read();
            let senders = contents.senders().map(|(sender, _)| sender);
            let senders: BTreeSet<Address> = senders.chain(returning.iter().map(PoolTransaction::sender)).collect();
            let state = view.state(head.number)?;
            for sender in senders {
                let account = state.account(sender)?.unwrap_or_default();
                accounts.insert(sender, account);
                if stateful::is_contract(&*state, &account)? {
                    contracts.push(sender);
                }
                let Some(queue) = contents.sender(sender) else { continue };
                for used in queue.pending().chain(queue.queued()).take_while(|used| used.nonce() < account.nonce) {
                    if view.own_transaction_position(used.hash())?.is_some() {
                        mined.insert(used.hash());
                    }
                }
            }
        }

        let mut returned = Vec::new();
        {
            let mut contents = self.contents.write();
            let everything = contents.head.is_none();
            let gone = self.revalidate(&mut contents, next, head.hash);
            let mut gone: Vec<_> = gone.into_iter().map(|(hash, _)| hash).collect();
            for (sender, account) in &accounts {
                // Skips senders whose account did not change, which is most of them.
                if !everything && contents.sender(*sender).is_some_and(|queue| queue.account() == account) {
                    continue;
                }
                for (transaction, reason) in contents.set_account(*sender, *account, now) {
                    gone.push(transaction.hash());
                    if !mined.contains(&transaction.hash()) {
                        contents.dropped.insert(transaction.hash(), DropReason::Invalid(reason));
                    } else if let Some(sidecar) = &transaction.sidecar {
                        mined_blobs.insert(transaction.hash(), sidecar.clone());
                    }
                }
            }
            for transaction in returning {
                let hash = transaction.hash();
                let account = accounts.get(&transaction.sender()).copied().unwrap_or_default();
                match self.restore_one(&mut contents, transaction, account, now) {
                    Ok(()) => returned.push(hash),
                    Err(reason) => {
                        contents.dropped.insert(hash, reason);
                        gone.push(hash);
                    }
                }
            }
            for sender in contracts {
                gone.extend(Self::drop_signed(&mut contents, sender));
            }
            // The write that moved the head may have deleted their records already.
            gone.retain(|hash| self.has_record(*hash));
            contents.must_record(gone);
            contents.enforce(&self.limits, now);
            // The limits may have evicted some of them again.
            returned.retain(|hash| contents.get(*hash).is_some());
            contents.must_record(returned.iter().copied());
        }
        self.write_due(!returned.is_empty());
        Ok(returned)
    }

    /// Drops the signed transactions of a sender that has become a contract (EIP-3607). Returns their hashes.
    fn drop_signed(contents: &mut Contents, sender: Address) -> Vec<H256> {
        let queue = contents.sender(sender).into_iter();
        let signed = queue.flat_map(|queue| queue.pending().chain(queue.queued()));
        let signed = signed.filter(|transaction| !transaction.recovered.is_impersonating());
        let signed: Vec<_> = signed.map(|transaction| transaction.hash()).collect();
        for hash in &signed {
            contents.remove(*hash, DropReason::Invalid(TransactionError::SenderHasCode(sender).into()));
        }
        signed
    }

    /// Writes the records that are due, and syncs them if there are insertions among them: if deletions are lost, a
    /// restart finds again why the transactions left. `changing` must be locked.
    pub(super) fn write_due(&self, insertions: bool) {
        let writes = self.contents.read().unrecorded();
        let backend = &self.parts.backend;
        let written = match insertions {
            _ if writes.is_empty() => return,
            true => backend.write_records(&writes),
            false => backend.write_records_unsynced(&writes),
        };
        match written {
            Ok(()) => self.contents.write().recorded(),
            Err(error) => tracing::warn!(
                error = %Sources(&error),
                records = writes.len(),
                "records of the pool could not be written; the next change of the pool writes them"
            ),
        }
    }

    /// Returns whether a transaction may have a record.
    fn has_record(&self, hash: H256) -> bool {
        !matches!(self.parts.backend.record(RecordKind::PoolTransaction, hash.as_bytes()), Ok(None))
    }

    /// Sets the rules of the next block, and drops the transactions that they no longer allow.
    fn revalidate(&self, contents: &mut Contents, next: NextBlockRules, head: H256) -> Vec<(H256, PoolError)> {
        let old = contents.next;
        let rules_changed = next.fork != old.fork || next.blob_params != old.blob_params;
        let restored = contents.head.is_none();
        contents.set_next(head, next);
        if !rules_changed && !restored && next.gas_limit >= old.gas_limit {
            return Vec::new();
        }
        let broken: Vec<_> = (contents.transactions())
            .filter_map(|transaction| {
                let reason = self.recheck(&next, transaction).into_iter().next()?;
                Some((transaction.hash(), reason))
            })
            .collect();
        for (hash, reason) in &broken {
            contents.remove(*hash, DropReason::Invalid(reason.clone()));
        }
        broken
    }

    /// Adds a transaction of a removed block, unless it breaks a rule or another transaction has the same nonce.
    fn restore_one(
        &self,
        contents: &mut Contents,
        mut transaction: PoolTransaction,
        account: AccountState,
        now: u64,
    ) -> Result<(), DropReason> {
        if let Some(reason) = self.recheck(&contents.next, &transaction).into_iter().next() {
            return Err(DropReason::Invalid(reason));
        }
        if let Some(other) = contents.at(transaction.sender(), transaction.nonce()) {
            return Err(DropReason::Replaced { by: other.hash() });
        }
        transaction.arrival = contents.arrivals.next();
        let sender = transaction.sender();
        let hash = transaction.hash();
        contents.insert(Arc::new(transaction), account, now);
        match contents.set_account(sender, account, now).into_iter().find(|(removed, _)| removed.hash() == hash) {
            Some((_, reason)) => Err(DropReason::Invalid(reason)),
            None => Ok(()),
        }
    }

    /// Drops transactions that have been queued for too long. Does nothing if it was last called a short time ago.
    pub(super) fn expire(&self) {
        let now = self.parts.clock.steady_millis();
        if now.saturating_sub(self.contents.read().enforced) >= EXPIRY_INTERVAL {
            self.contents.write().enforce(&self.limits, now);
        }
    }
}
