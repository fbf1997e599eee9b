//! The pool as the model sees it: waiting transactions by sender and nonce.

use super::code::{self, Behaviour};
use super::state::{Account, State};
use super::transaction::Sent;
use node_core::executor::{Property, TransactionError};
use node_core::pool::{DropReason, PoolError};
use node_types::consensus::TransactionBody;
use node_types::{Address, H256, U256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Maximum number of queued transactions of an account: few, so that the limit is reached.
pub(super) const QUEUED_PER_ACCOUNT: usize = 6;

/// A transaction in the pool.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// The transaction.
    pub(super) sent: Rc<Sent>,
    /// Its arrival number.
    pub(super) arrival: u64,
    /// Authorities whose authorizations could still take effect when it arrived.
    binding: Vec<Address>,
}

/// The pool.
#[derive(Default)]
pub(super) struct Pool {
    senders: BTreeMap<Address, BTreeMap<u64, Waiting>>,
    /// Arrivals with ascending numbers, which filters for pending transactions report.
    pub(super) arrivals: Vec<(u64, H256)>,
    next_arrival: u64,
    /// Reasons of transactions that were dropped.
    pub(super) dropped: HashMap<H256, DropReason>,
    /// Reasons from before the last restart. A crash can leave the record of a transaction that was just dropped: the
    /// node drops it again, for the same reason.
    pub(super) dropped_before: HashMap<H256, DropReason>,
}

/// The status of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// In a block.
    Mined,
    /// The next block can include it.
    Pending,
    /// It waits for an earlier nonce or for balance.
    Queued,
    /// It was dropped.
    Dropped(DropReason),
    /// It is unknown.
    Unknown,
}

impl Pool {
    /// All transactions.
    pub(super) fn all(&self) -> impl Iterator<Item = &Waiting> {
        self.senders.values().flat_map(BTreeMap::values)
    }

    /// The transaction of a sender with a nonce.
    pub(super) fn at(&self, sender: Address, nonce: u64) -> Option<&Waiting> {
        self.senders.get(&sender)?.get(&nonce)
    }

    fn count(&self, sender: Address) -> usize {
        self.senders.get(&sender).map_or(0, BTreeMap::len)
    }

    /// The pending transactions of a sender: consecutive nonces, as far as its balance suffices.
    pub(super) fn pending(&self, sender: Address, account: &Account) -> Vec<Waiting> {
        let (mut run, mut nonce, mut left) = (Vec::new(), account.nonce, account.balance);
        while let Some(waiting) = self.at(sender, nonce) {
            match waiting.sent.cost().and_then(|cost| left.checked_sub(cost)) {
                Some(rest) => left = rest,
                None => break,
            }
            run.push(waiting.clone());
            nonce += 1;
        }
        run
    }

    /// The queued transactions of a sender.
    pub(super) fn queued(&self, sender: Address, account: &Account) -> Vec<Waiting> {
        let end = account.nonce + self.pending(sender, account).len() as u64;
        let all = self.senders.get(&sender).into_iter();
        all.flat_map(|all| all.range(end..)).map(|(_, waiting)| waiting.clone()).collect()
    }

    /// All senders.
    pub(super) fn senders(&self) -> Vec<Address> {
        self.senders.keys().copied().collect()
    }

    /// The status of a transaction, as far as the pool knows.
    pub(super) fn status(&self, sent: &Sent, state: &State) -> Status {
        let is_it = |waiting: &Waiting| waiting.sent.hash == sent.hash;
        if self.at(sent.sender, sent.body().nonce()).is_none_or(|waiting| !is_it(waiting)) {
            return self.dropped.get(&sent.hash).map_or(Status::Unknown, |reason| Status::Dropped(reason.clone()));
        }
        let pending = self.pending(sent.sender, &state.account(sent.sender)).iter().any(is_it);
        if pending { Status::Pending } else { Status::Queued }
    }

    /// Adds a transaction. It replaces one with the same nonce.
    pub(super) fn insert(&mut self, sent: Rc<Sent>, state: &State) {
        let arrival = self.next_arrival;
        self.next_arrival += 1;
        self.arrivals.push((arrival, sent.hash));
        self.dropped.remove(&sent.hash);
        let by = sent.hash;
        let replaced = self
            .senders
            .entry(sent.sender)
            .or_default()
            .insert(sent.body().nonce(), Waiting { binding: binding(&sent, state), sent, arrival });
        if let Some(replaced) = replaced {
            self.dropped.insert(replaced.sent.hash, DropReason::Replaced { by });
        }
    }

    /// Removes a transaction.
    pub(super) fn remove(&mut self, sender: Address, nonce: u64) -> Option<Waiting> {
        let all = self.senders.get_mut(&sender)?;
        let removed = all.remove(&nonce);
        if all.is_empty() {
            self.senders.remove(&sender);
        }
        removed
    }

    /// Drops a transaction for a reason.
    pub(super) fn drop(&mut self, sender: Address, nonce: u64, reason: DropReason) {
        if let Some(removed) = self.remove(sender, nonce) {
            self.dropped.insert(removed.sent.hash, reason);
        }
    }

    /// Drops all but those in `kept`.
    pub(super) fn retain(&mut self, kept: &BTreeSet<H256>) {
        let others: Vec<_> = self.all().filter(|waiting| !kept.contains(&waiting.sent.hash)).cloned().collect();
        for Waiting { sent, .. } in others {
            self.drop(sent.sender, sent.body().nonce(), DropReason::Reverted);
        }
    }

    /// Records that a transaction left the chain and does not return to the pool.
    pub(super) fn set_back(&mut self, hash: H256) {
        self.dropped.insert(hash, DropReason::Reverted);
    }

    /// Updates the pool for a new state. `mined` returns whether a transaction was mined.
    pub(super) fn follow(&mut self, state: &State, mined: impl Fn(H256) -> bool) -> Vec<Rc<Sent>> {
        let mut gone = Vec::new();
        let all: Vec<_> = self.all().cloned().collect();
        for Waiting { sent, .. } in all {
            let nonce = sent.body().nonce();
            let Some(reason) = unusable(&sent, &state.account(sent.sender)) else { continue };
            if mined(sent.hash) && matches!(reason, TransactionError::NonceTooLow { .. }) {
                self.remove(sent.sender, nonce);
                gone.push(sent);
            } else {
                self.drop(sent.sender, nonce, DropReason::Invalid(reason.into()));
            }
        }
        gone
    }

    /// Adds a transaction of a removed block again.
    pub(super) fn add_again(&mut self, sent: Rc<Sent>, state: &State, has_blobs: bool) {
        let hash = sent.hash;
        if sent.is_blob() && !has_blobs {
            self.dropped.insert(hash, DropReason::Invalid(PoolError::MissingSidecar));
            return;
        }
        if let Some(other) = self.at(sent.sender, sent.body().nonce()) {
            let by = other.sent.hash;
            self.dropped.insert(hash, DropReason::Replaced { by });
            return;
        }
        let reason = unusable(&sent, &state.account(sent.sender));
        let (sender, nonce) = (sent.sender, sent.body().nonce());
        self.insert(sent, state);
        if let Some(reason) = reason {
            self.drop(sender, nonce, DropReason::Invalid(reason.into()));
        }
    }

    /// Drops the signed transactions of senders that have become contracts (EIP-3607).
    pub(super) fn drop_signed(&mut self, state: &State) {
        let all: Vec<_> = self.all().map(|waiting| waiting.sent.clone()).collect();
        for sent in all.into_iter().filter(|sent| may_not_sign(sent, &state.account(sent.sender))) {
            let reason = TransactionError::SenderHasCode(sent.sender);
            self.drop(sent.sender, sent.body().nonce(), DropReason::Invalid(reason.into()));
        }
    }

    /// Drops queued transactions above the limit of an account.
    pub(super) fn enforce(&mut self, state: &State) {
        for sender in self.senders() {
            for excess in self.queued(sender, &state.account(sender)).into_iter().skip(QUEUED_PER_ACCOUNT) {
                self.drop(sender, excess.sent.body().nonce(), DropReason::AccountLimit);
            }
        }
    }

    /// Drops what does not survive a restart.
    pub(super) fn restart(&mut self) {
        self.dropped_before = std::mem::take(&mut self.dropped);
        let waiting: BTreeSet<_> = self.all().map(|waiting| waiting.arrival).collect();
        self.arrivals.retain(|(arrival, _)| waiting.contains(arrival));
    }

    /// The number of the next arrival.
    pub(super) fn next_arrival(&self) -> u64 {
        self.next_arrival
    }

    /// The reasons to reject a transaction that is not in the pool, for a state, a block gas limit, and a base fee that
    /// it must pay.
    pub(super) fn refusals(
        &self,
        sent: &Sent,
        has_blobs: bool,
        state: &State,
        gas_limit: u64,
        base_fee: Option<u64>,
        chain_id: u64,
    ) -> Vec<PoolError> {
        let mut reasons = stateless(sent, has_blobs, gas_limit, chain_id);
        let cap = sent.body().max_fee_per_gas();
        if let Some(base_fee) = base_fee.filter(|base_fee| cap < U256::from(*base_fee)) {
            let price = if has_price(sent) { Property::GasPrice } else { Property::MaxFeePerGas };
            reasons.push(TransactionError::FeeCapTooLow { price, cap, base_fee }.into());
        }
        reasons.extend(self.stateful(sent, state));
        if !reasons.is_empty() {
            return reasons;
        }
        for authority in binding(sent, state) {
            let count = self.count(authority);
            if count > 1 {
                reasons.push(PoolError::AuthorityReserved { authority, count });
            }
        }
        reasons
    }

    fn stateful(&self, sent: &Sent, state: &State) -> Vec<PoolError> {
        let mut reasons = Vec::new();
        let (sender, body) = (sent.sender, sent.body());
        let (account, nonce) = (state.account(sender), body.nonce());
        if nonce < account.nonce {
            reasons.push(TransactionError::NonceTooLow { got: nonce, expected: account.nonce }.into());
        }
        if may_not_sign(sent, &account) {
            reasons.push(TransactionError::SenderHasCode(sender).into());
        }
        let pending = self.pending(sender, &account);
        let others = pending.iter().filter(|waiting| waiting.sent.body().nonce() != nonce);
        let others = others.filter_map(|waiting| waiting.sent.cost()).fold(U256::zero(), |sum, cost| sum + cost);
        let required = others.saturating_add(sent.cost().unwrap_or(U256::MAX));
        if account.balance < required {
            let cost = sent.cost().unwrap_or(U256::MAX);
            reasons.push(insufficient_funds(&account, required, cost, body.value()).into());
        }
        // An account with a delegation, or an authorization in the pool, may have only one transaction, the next one.
        let about_to = self.all().any(|waiting| waiting.binding.contains(&sender));
        if matches!(code::behaviour(&account.code), Behaviour::Delegate(_)) || about_to {
            if pending.is_empty() {
                if nonce != account.nonce {
                    reasons.push(PoolError::DelegatedOutOfOrder { sender, got: nonce, expected: account.nonce });
                }
            } else if self.at(sender, nonce).is_none() {
                reasons.push(PoolError::DelegatedInFlight { sender });
            }
        }
        match self.at(sender, nonce) {
            Some(old) => reasons.extend(underpriced(&old.sent, sent)),
            None => {
                let queued = self.queued(sender, &account).len();
                let gap = nonce > account.nonce + pending.len() as u64;
                if gap && queued >= QUEUED_PER_ACCOUNT {
                    reasons.push(PoolError::AccountLimit { queued, limit: QUEUED_PER_ACCOUNT });
                }
            }
        }
        reasons
    }
}

/// The authorities of a transaction whose authorizations can take effect in a state or later.
fn binding(sent: &Sent, state: &State) -> Vec<Address> {
    let authorizations = sent.body().authorization_list().iter().zip(&sent.signers);
    let chain_id = sent.body().chain_id().unwrap_or_default();
    let can_come = authorizations.filter(|(authorization, signer)| {
        (authorization.chain_id.is_zero() || authorization.chain_id == chain_id.into())
            && authorization.nonce >= state.account(**signer).nonce
    });
    can_come.map(|(_, signer)| *signer).collect()
}

/// Whether a transaction is signed although its sender is a contract (EIP-3607). Delegations are no contracts.
pub(super) fn may_not_sign(sent: &Sent, sender: &Account) -> bool {
    !sent.unsigned && !matches!(code::behaviour(&sender.code), Behaviour::Nothing | Behaviour::Delegate(_))
}

/// The reason why a transaction can never be mined after a state.
fn unusable(sent: &Sent, account: &Account) -> Option<TransactionError> {
    let (nonce, cost) = (sent.body().nonce(), sent.cost().unwrap_or(U256::MAX));
    if nonce < account.nonce {
        return Some(TransactionError::NonceTooLow { got: nonce, expected: account.nonce });
    }
    (cost > account.balance).then(|| insufficient_funds(account, cost, cost, sent.body().value()))
}

fn insufficient_funds(account: &Account, required: U256, cost: U256, value: U256) -> TransactionError {
    TransactionError::InsufficientFunds { balance: account.balance, required, fees_exceed_value: cost - value > value }
}

/// The reasons why a transaction may not replace another: it must pay 10% more, with blobs 100% more.
fn underpriced(old: &Sent, new: &Sent) -> Vec<PoolError> {
    let percent = if old.is_blob() || new.is_blob() { 100 } else { 10 };
    let (fee, tip) = (old.body().max_fee_per_gas(), old.body().max_priority_fee_per_gas());
    let mut caps = if has_price(new) {
        vec![(Property::GasPrice, fee, new.body().max_fee_per_gas())]
    } else {
        vec![
            (Property::MaxFeePerGas, fee, new.body().max_fee_per_gas()),
            (Property::MaxPriorityFeePerGas, tip, new.body().max_priority_fee_per_gas()),
        ]
    };
    if old.is_blob() && new.is_blob() {
        caps.push((Property::MaxFeePerBlobGas, old.blob_fee_cap(), new.blob_fee_cap()));
    }
    let required = |old: U256| old + U256::max(old * U256::from(percent) / 100, U256::one());
    let missed = caps.into_iter().filter(|(_, old, got)| *got < required(*old));
    missed.map(|(cap, old, got)| PoolError::ReplacementUnderpriced { cap, got, old, required: required(old) }).collect()
}

/// Whether a transaction has a gas price rather than fee caps.
fn has_price(sent: &Sent) -> bool {
    matches!(sent.body(), TransactionBody::Legacy(_) | TransactionBody::AccessList(_))
}

/// The reasons to reject a transaction in any state.
fn stateless(sent: &Sent, has_blobs: bool, gas_limit: u64, chain_id: u64) -> Vec<PoolError> {
    const TRANSACTION_GAS_CAP: u64 = 1 << 24;
    const INIT_CODE: usize = 49_152;
    let body = sent.body();
    let mut reasons: Vec<PoolError> = Vec::new();
    if let Some(got) = body.chain_id().filter(|id| *id != chain_id) {
        reasons.push(TransactionError::ChainId { got, expected: chain_id }.into());
    }
    let limit = body.gas_limit();
    if limit > gas_limit {
        reasons.push(TransactionError::BlockGasExceeded { limit, available: gas_limit }.into());
    }
    if limit > TRANSACTION_GAS_CAP {
        reasons.push(TransactionError::GasLimitCap { limit, cap: TRANSACTION_GAS_CAP }.into());
    }
    if limit < sent.intrinsic_gas() {
        reasons.push(TransactionError::IntrinsicGas { limit, required: sent.intrinsic_gas() }.into());
    }
    // The floor is mentioned only if it is the higher bound.
    if limit < sent.floor_gas() && sent.floor_gas() > sent.intrinsic_gas() {
        reasons.push(TransactionError::FloorGas { limit, required: sent.floor_gas() }.into());
    }
    let length = body.input().len();
    if body.to().is_none() && length > INIT_CODE {
        reasons.push(TransactionError::InitCodeTooLong { length, limit: INIT_CODE }.into());
    }
    let (tip, cap) = (body.max_priority_fee_per_gas(), body.max_fee_per_gas());
    if tip > cap {
        reasons.push(TransactionError::TipAboveFeeCap { tip, cap }.into());
    }
    if tip.is_zero() {
        let cap = if has_price(sent) { Property::GasPrice } else { Property::MaxPriorityFeePerGas };
        reasons.push(PoolError::TipTooLow { cap, tip, minimum: 1 });
    }
    match body {
        TransactionBody::Blob(body) => {
            if body.max_fee_per_blob_gas.is_zero() {
                reasons.push(TransactionError::BlobFeeCapTooLow { cap: U256::zero(), base_fee: U256::one() }.into());
            }
            match body.blob_versioned_hashes.len() as u64 {
                0 => reasons.push(TransactionError::NoBlobs.into()),
                count if count > 6 => reasons.push(TransactionError::TooManyBlobs { count, limit: 6 }.into()),
                _ => {}
            }
            if let Some(index) = body.blob_versioned_hashes.iter().position(|hash| hash[0] != 1) {
                let hash = body.blob_versioned_hashes[index];
                reasons.push(TransactionError::BlobVersion { index, hash }.into());
            }
            if !has_blobs {
                reasons.push(PoolError::MissingSidecar);
            }
        }
        TransactionBody::SetCode(body) if body.authorization_list.is_empty() => {
            reasons.push(TransactionError::NoAuthorizations.into());
        }
        _ => {}
    }
    reasons
}
