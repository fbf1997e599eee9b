//! The transactions of one sender.

use super::{PoolError, PoolTransaction};
use crate::executor::TransactionError;
use crate::state::AccountState;
use node_types::U256;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The transactions of one sender, by nonce.
///
/// Invariants: the pending transactions are those with nonces from `account.nonce` up to but excluding `pending_end`,
/// without gaps; together they cost `pending_cost`, which the balance covers; no nonce is below the account's.
#[derive(Default)]
pub(super) struct SenderQueue {
    account: AccountState,
    entries: BTreeMap<u64, PricedTransaction>,
    pending_end: u64,
    pending_cost: U256,
    /// When one of them last arrived or became pending, in milliseconds since the Unix epoch.
    touched: u64,
}

struct PricedTransaction {
    transaction: Arc<PoolTransaction>,
    /// The lowest effective tip of this transaction and those before it, in wei per gas: the minimum that the
    /// producer earns per gas if it includes the sender's transactions up to this one. `None` if one of them does not
    /// pay the base fee.
    floor: Option<U256>,
}

impl SenderQueue {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn pending_len(&self) -> usize {
        usize::try_from(self.pending_end - self.account.nonce).unwrap_or(usize::MAX)
    }

    pub(super) fn queued_len(&self) -> usize {
        self.entries.len() - self.pending_len()
    }

    /// Returns the sender's account.
    pub(super) fn account(&self) -> &AccountState {
        &self.account
    }

    /// Returns the nonce after the last pending transaction.
    pub(super) fn pending_end(&self) -> u64 {
        self.pending_end
    }

    pub(super) fn pending_cost(&self) -> U256 {
        self.pending_cost
    }

    pub(super) fn touched(&self) -> u64 {
        self.touched
    }

    pub(super) fn get(&self, nonce: u64) -> Option<&Arc<PoolTransaction>> {
        self.entries.get(&nonce).map(|entry| &entry.transaction)
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = &Arc<PoolTransaction>> {
        self.entries.range(..self.pending_end).map(|(_, entry)| &entry.transaction)
    }

    pub(super) fn queued(&self) -> impl Iterator<Item = &Arc<PoolTransaction>> {
        self.entries.range(self.pending_end..).map(|(_, entry)| &entry.transaction)
    }

    /// Iterates over all transactions with their floors, highest nonce first.
    pub(super) fn tail_first(&self) -> impl Iterator<Item = (&Arc<PoolTransaction>, Option<U256>)> {
        self.entries.values().rev().map(|entry| (&entry.transaction, entry.floor))
    }

    /// Returns the floor that a transaction with `nonce` and effective tip `tip` would have.
    pub(super) fn floor_at(&self, nonce: u64, tip: Option<U256>) -> Option<U256> {
        match self.entries.range(..nonce).next_back() {
            Some((_, before)) => before.floor.min(tip),
            None => tip,
        }
    }

    /// Adds a transaction, and returns the one with the same nonce that it replaces.
    pub(super) fn insert(
        &mut self,
        transaction: Arc<PoolTransaction>,
        base_fee: Option<u64>,
        now: u64,
    ) -> Option<Arc<PoolTransaction>> {
        let nonce = transaction.nonce();
        self.truncate_pending(nonce);
        let replaced = self.entries.insert(nonce, PricedTransaction { transaction, floor: None });
        self.extend_pending();
        self.refresh_floors(nonce, base_fee);
        self.touched = now;
        replaced.map(|entry| entry.transaction)
    }

    /// Removes a transaction. Later pending ones become queued.
    pub(super) fn remove(&mut self, nonce: u64, base_fee: Option<u64>) -> Option<Arc<PoolTransaction>> {
        self.truncate_pending(nonce);
        let removed = self.entries.remove(&nonce)?;
        self.refresh_floors(nonce, base_fee);
        Some(removed.transaction)
    }

    /// Sets the account. Removes and returns, with the reason, the transactions that can no longer be mined: those with
    /// used nonces, and those that cost more than the whole balance.
    pub(super) fn set_account(
        &mut self,
        account: AccountState,
        base_fee: Option<u64>,
        now: u64,
    ) -> Vec<(Arc<PoolTransaction>, PoolError)> {
        let advanced = account.nonce > self.account.nonce;
        let pending_end = self.pending_end;
        let mut removed = Vec::new();
        self.entries.retain(|nonce, entry| {
            let reason = if *nonce < account.nonce {
                TransactionError::NonceTooLow { got: *nonce, expected: account.nonce }
            } else if entry.transaction.cost() > account.balance {
                let transaction = &entry.transaction;
                TransactionError::insufficient_funds(account.balance, transaction.cost(), transaction.body().value())
            } else {
                return true;
            };
            removed.push((Arc::clone(&entry.transaction), reason.into()));
            false
        });
        self.account = account;
        self.pending_end = account.nonce;
        self.pending_cost = U256::zero();
        self.extend_pending();
        self.refresh_floors(0, base_fee);
        if advanced || self.pending_end > pending_end {
            self.touched = now;
        }
        removed
    }

    /// Recomputes the floors from `nonce` on.
    pub(super) fn refresh_floors(&mut self, nonce: u64, base_fee: Option<u64>) {
        let mut before = self.entries.range(..nonce).next_back().map(|(_, entry)| entry.floor);
        for entry in self.entries.range_mut(nonce..).map(|(_, entry)| entry) {
            let tip = entry.transaction.body().effective_tip(base_fee);
            entry.floor = before.map_or(tip, |before| before.min(tip));
            before = Some(entry.floor);
        }
    }

    /// Moves the end of the pending transactions down to `nonce`, if it is below.
    fn truncate_pending(&mut self, nonce: u64) {
        if nonce >= self.pending_end {
            return;
        }
        let given_up = self.entries.range(nonce..self.pending_end).map(|(_, entry)| entry.transaction.cost());
        self.pending_cost = given_up.fold(self.pending_cost, U256::saturating_sub);
        self.pending_end = nonce.max(self.account.nonce);
    }

    /// Extends the pending transactions as far as nonces continue without a gap and the balance suffices.
    fn extend_pending(&mut self) {
        while let Some(entry) = self.entries.get(&self.pending_end) {
            match self.pending_cost.checked_add(entry.transaction.cost()) {
                Some(cost) if cost <= self.account.balance => self.pending_cost = cost,
                _ => break,
            }
            self.pending_end += 1;
        }
    }
}

#[cfg(test)]
impl SenderQueue {
    /// Checks the invariants.
    pub(super) fn assert_consistent(&self, base_fee: Option<u64>) {
        let (mut end, mut cost) = (self.account.nonce, U256::zero());
        while let Some(entry) = self.entries.get(&end)
            && cost + entry.transaction.cost() <= self.account.balance
        {
            cost += entry.transaction.cost();
            end += 1;
        }
        assert_eq!((self.pending_end, self.pending_cost), (end, cost), "run of pending transactions");
        assert_eq!(self.pending().count(), self.pending_len(), "pending");
        assert_eq!(self.queued().count(), self.queued_len(), "queued");
        let mut floor = None;
        for (nonce, entry) in &self.entries {
            assert!(*nonce >= self.account.nonce, "nonce {nonce} is used");
            let tip = entry.transaction.body().effective_tip(base_fee);
            let expected = floor.map_or(tip, |floor: Option<U256>| floor.min(tip));
            assert_eq!(entry.floor, expected, "floor at nonce {nonce}");
            floor = Some(expected);
        }
    }
}
