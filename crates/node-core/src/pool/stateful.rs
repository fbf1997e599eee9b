//! Checks against the state and the other transactions of the pool.

use super::contents::Contents;
use super::{PoolError, PoolLimits, PoolTransaction};
use crate::backend::{BackendError, StateView};
use crate::crypto::SenderRecovery;
use crate::executor::{Property, TransactionError};
use crate::protocol::fees::highest_cost;
use crate::state::AccountState;
use node_types::consensus::TransactionBody;
use node_types::{Address, U256};

/// Prefix of a delegation designator; the address of the delegate follows it (EIP-7702).
const DELEGATION_PREFIX: [u8; 3] = [0xef, 0x01, 0x00];

/// The sender of a transaction in one state.
pub(super) struct Sender {
    /// Nonce and balance.
    pub(super) account: AccountState,
    /// Whether it delegates to code (EIP-7702).
    pub(super) delegates: bool,
    /// Whether it has code other than a delegation (EIP-3607).
    pub(super) is_contract: bool,
}

impl Sender {
    /// Reads the account from `state`. If the transaction is not `signed`, its sender may also be a contract.
    pub(super) fn load(state: &dyn StateView, address: Address, signed: bool) -> Result<Self, BackendError> {
        let account = state.account(address)?.unwrap_or_default();
        let delegates = delegates(state, &account)?;
        Ok(Self { account, delegates, is_contract: signed && account.has_code() && !delegates })
    }
}

/// Returns whether an account has code other than a delegation, so that it can send only unsigned transactions.
pub(super) fn is_contract(state: &dyn StateView, account: &AccountState) -> Result<bool, BackendError> {
    Ok(account.has_code() && !delegates(state, account)?)
}

/// Returns whether the code of an account only delegates to that of another one (EIP-7702).
pub(crate) fn delegates(state: &dyn StateView, account: &AccountState) -> Result<bool, BackendError> {
    if !account.has_code() {
        return Ok(false);
    }
    let code = state.code_of_account(account.code_hash)?;
    Ok(code.len() == 23 && code.starts_with(&DELEGATION_PREFIX))
}

/// Returns the signers of those authorizations of a transaction that can still take effect in `state`.
///
/// Other authorizations are ignored, because anyone could resend someone else's old authorizations to block that
/// account's transactions.
pub(super) fn authorities(
    state: &dyn StateView,
    recovery: &dyn SenderRecovery,
    chain_id: u64,
    body: &TransactionBody,
) -> Result<Vec<Address>, BackendError> {
    let mut authorities = Vec::new();
    for signed in body.authorization_list() {
        if !signed.chain_id.is_zero() && signed.chain_id != chain_id.into() {
            continue;
        }
        let Ok(authority) = recovery.authority(signed) else { continue };
        if signed.nonce >= state.account(authority)?.unwrap_or_default().nonce {
            authorities.push(authority);
        }
    }
    Ok(authorities)
}

/// Returns all reasons for rejecting a transaction of `address`, whose account is `sender`, given the contents of the
/// pool. `authorities` are the accounts that signed its authorizations.
pub(super) fn check(
    contents: &Contents,
    limits: &PoolLimits,
    address: Address,
    sender: &Sender,
    body: &TransactionBody,
    authorities: &[Address],
) -> Vec<PoolError> {
    let mut reasons = Vec::new();
    let (nonce, account) = (body.nonce(), &sender.account);
    if nonce < account.nonce {
        reasons.push(TransactionError::NonceTooLow { got: nonce, expected: account.nonce }.into());
    }
    if sender.is_contract {
        reasons.push(TransactionError::SenderHasCode(address).into());
    }
    // No balance covers the cost if it is beyond 256 bits.
    let cost = highest_cost(body).unwrap_or(U256::MAX);
    let fees = cost - body.value();
    let required = contents.pending_cost_without(address, nonce).saturating_add(cost);
    if account.balance < required {
        let fees_exceed_value = fees > body.value();
        reasons
            .push(TransactionError::InsufficientFunds { balance: account.balance, required, fees_exceed_value }.into());
    } else if fees > u128::MAX.into() {
        reasons.push(TransactionError::FeesBeyond128Bits.into());
    }
    let delegates = sender.delegates || contents.is_authority(address);
    reasons.extend(delegates.then(|| check_delegated(contents, address, account.nonce, nonce)).flatten());
    for authority in authorities {
        let count = contents.count_of(*authority);
        if count > 1 {
            reasons.push(PoolError::AuthorityReserved { authority: *authority, count });
        }
    }
    match contents.at(address, nonce) {
        Some(old) => check_replacement(limits, old, body, &mut reasons),
        None => {
            let queued = contents.queued_count_of(address);
            if !contents.would_be_pending(address, account, nonce) && queued >= limits.queued_per_account {
                reasons.push(PoolError::AccountLimit { queued, limit: limits.queued_per_account });
            }
        }
    }
    reasons
}

/// Delegated code can change the balance and the nonce of the account, so only one pending transaction is accepted from
/// it.
fn check_delegated(contents: &Contents, sender: Address, expected: u64, got: u64) -> Option<PoolError> {
    if contents.pending_count_of(sender) == 0 {
        return (got != expected).then_some(PoolError::DelegatedOutOfOrder { sender, got, expected });
    }
    contents.at(sender, got).is_none().then_some(PoolError::DelegatedInFlight { sender })
}

/// Checks a replacement. It must raise both fee caps; a blob transaction must raise them by more, and its blob fee
/// cap as well. A gas price is both caps, of which the fee cap demands more.
fn check_replacement(limits: &PoolLimits, old: &PoolTransaction, body: &TransactionBody, reasons: &mut Vec<PoolError>) {
    let blob_caps = match (old.body(), body) {
        (TransactionBody::Blob(old), TransactionBody::Blob(new)) => {
            Some((Property::MaxFeePerBlobGas, old.max_fee_per_blob_gas, new.max_fee_per_blob_gas))
        }
        _ => None,
    };
    let has_blobs = |body: &TransactionBody| matches!(body, TransactionBody::Blob(_));
    let bump = if has_blobs(old.body()) || has_blobs(body) { limits.blob_price_bump } else { limits.price_bump };
    let (fee, tip) = (Property::fee_of(body), Property::tip_of(body));
    let fee_cap = (fee, old.body().max_fee_per_gas(), body.max_fee_per_gas());
    let tip_cap = (tip, old.body().max_priority_fee_per_gas(), body.max_priority_fee_per_gas());
    let caps = [Some(fee_cap), (tip != fee).then_some(tip_cap), blob_caps];
    for (cap, old, got) in caps.into_iter().flatten() {
        let required = bumped(old, bump);
        if got < required {
            reasons.push(PoolError::ReplacementUnderpriced { cap, got, old, required });
        }
    }
}

/// Returns `price` increased by `percent` percent, rounded down, but at least `price + 1`.
fn bumped(price: U256, percent: u64) -> U256 {
    let hundred = U256::from(100);
    let percent = U256::from(percent);
    let rise = price / hundred * percent + price % hundred * percent / hundred;
    price.saturating_add(rise.max(U256::one()))
}
