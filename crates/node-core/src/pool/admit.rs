//! Checking transactions and adding them to the pool.

use super::stateful::{self, Sender};
use super::{AddError, DropReason, NextBlockRules, Pool, PoolError, PoolTransaction, Rejection, record, stateless};
use crate::backend::{BackendError, StateView};
use crate::block::RecoveredTransaction;
use crate::executor::{Property, TransactionError};
use crate::protocol::Fork;
use node_types::consensus::{BlobSidecar, DecodeError, PooledTransaction, TransactionBody};
use node_types::{Address, H256};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum length of an encoded transaction with its blobs, in bytes. In Prague a transaction may have the 9 blobs of a
/// whole block, and from Osaka on 6 (EIP-7594); even the 21 blobs of a whole block after BPO2 would fit, with proofs
/// for all cells.
const MAX_ENCODED_SIZE: usize = 4 << 20;

impl Pool {
    /// Adds an encoded transaction, in the form that clients send, and returns its hash.
    ///
    /// On `Ok` the transaction is in the pool. It becomes durable when [`is_stored`](Self::is_stored) returns true,
    /// or when a block that includes it does. Adding the same bytes again returns the same hash, even if the
    /// transaction has been mined. All checks are made against the newest block.
    ///
    /// # Errors
    /// [`AddError::Rejected`] with all reasons, and failures of the backend.
    pub fn add(&self, bytes: &[u8]) -> Result<H256, AddError> {
        self.add_transaction(decode(bytes)?)
    }

    /// Checks an encoded transaction as [`add`](Self::add) does, without adding it. Whether there is room for it is not
    /// checked.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn check(&self, bytes: &[u8]) -> Result<(), AddError> {
        let pooled = decode(bytes)?;
        let hash = pooled.transaction.hash();
        self.checked(pooled, hash, None).map(drop)
    }

    /// Adds a decoded transaction; see [`add`](Self::add).
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_transaction(&self, pooled: PooledTransaction) -> Result<H256, AddError> {
        let hash = pooled.transaction.hash();
        self.check_and_add(pooled, hash, None)
    }

    /// Adds a transaction without checking its signature (see [`RecoveredTransaction::impersonating`]).
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_unsigned(&self, recovered: RecoveredTransaction) -> Result<H256, AddError> {
        let RecoveredTransaction { transaction, hash, sender } = recovered;
        self.check_and_add(PooledTransaction { transaction, sidecar: None }, hash, Some(sender))
    }

    /// Checks and adds a transaction. If `sender` is `None`, it is recovered from the signature.
    fn check_and_add(&self, pooled: PooledTransaction, hash: H256, sender: Option<Address>) -> Result<H256, AddError> {
        if let Some(transaction) = self.checked(pooled, hash, sender)?
            && self.admit(transaction)?
        {
            self.notify(&[hash]);
        }
        Ok(hash)
    }

    /// Checks a transaction against the newest block and the pool. Returns `None` if it is already in the pool or mined.
    fn checked(
        &self,
        pooled: PooledTransaction,
        hash: H256,
        sender: Option<Address>,
    ) -> Result<Option<PoolTransaction>, AddError> {
        let PooledTransaction { transaction, sidecar } = pooled;
        let signed = sender.is_none();
        let view = self.parts.backend.view()?;
        if self.contents.read().get(hash).is_some() || view.own_transaction_position(hash)?.is_some() {
            return Ok(None);
        }
        self.catch_up()?;
        let next = self.contents.read().next;
        let encoded_length = transaction.encode().len();
        let mut reasons = stateless::check(
            &next,
            self.parts.spec.chain_id,
            &self.limits,
            &transaction.body,
            sidecar.as_ref(),
            encoded_length,
        );
        if self.requires_base_fee.load(Ordering::Relaxed)
            && let (cap, Some(base_fee)) = (transaction.body.max_fee_per_gas(), next.base_fee)
            && cap < base_fee.into()
        {
            let price = Property::fee_of(&transaction.body);
            reasons.push(TransactionError::FeeCapTooLow { price, cap, base_fee }.into());
        }
        let low_s = next.fork >= Fork::Homestead;
        let recover = || self.parts.recovery.recover(transaction.signing_hash(), &transaction.signature, low_s);
        let sender = match sender.map_or_else(recover, Ok) {
            Ok(sender) => sender,
            Err(error) => {
                reasons.push(TransactionError::Signature(error).into());
                return Err(Rejection { reasons }.into());
            }
        };
        let state = view.state(view.head().number)?;
        let account = Sender::load(&*state, sender, signed)?;
        reasons.extend(stateful::check(&self.contents.read(), &self.limits, sender, &account, &transaction.body, &[]));
        Rejection::unless_empty(reasons)?;

        // Checks that take milliseconds come last, and only for transactions that pass all others.
        let sidecar = self.check_blobs(&next, transaction.body.blob_versioned_hashes(), sidecar)?;
        let authorities = self.authorities(&*state, &transaction.body)?;
        Ok(Some(PoolTransaction {
            size: record::size(encoded_length, sidecar.as_ref()),
            recovered: RecoveredTransaction { transaction, hash, sender },
            sidecar,
            authorities,
            arrival: 0,
            received: self.parts.clock.steady_millis(),
        }))
    }

    pub(super) fn authorities(
        &self,
        state: &dyn StateView,
        body: &TransactionBody,
    ) -> Result<Vec<Address>, BackendError> {
        stateful::authorities(state, &*self.parts.recovery, self.parts.spec.chain_id, body)
    }

    /// Verifies the blobs, and converts the sidecar to the version that the active fork requires.
    fn check_blobs(
        &self,
        next: &NextBlockRules,
        versioned_hashes: &[H256],
        sidecar: Option<BlobSidecar>,
    ) -> Result<Option<BlobSidecar>, Rejection> {
        let Some(sidecar) = sidecar else { return Ok(None) };
        let checked = self.parts.blobs.verify(versioned_hashes, &sidecar).and_then(|()| {
            if next.fork >= Fork::Osaka { self.parts.blobs.with_cell_proofs(sidecar) } else { Ok(sidecar) }
        });
        Ok(Some(checked.map_err(PoolError::Blob)?))
    }

    /// Adds a transaction that has passed the checks without state. Returns `false` if it is already in the pool or
    /// mined.
    fn admit(&self, mut transaction: PoolTransaction) -> Result<bool, AddError> {
        let mut mined_blobs = self.changing.lock();
        let view = self.parts.backend.view()?;
        self.settle(view.as_ref(), &mut mined_blobs, Vec::new())?;
        self.expire();
        let (hash, address) = (transaction.hash(), transaction.sender());
        let sender =
            Sender::load(&*view.state(view.head().number)?, address, !transaction.recovered.is_impersonating())?;
        let mut writes;
        let victims;
        {
            let contents = self.contents.read();
            if contents.get(hash).is_some() || view.own_transaction_position(hash)?.is_some() {
                return Ok(false);
            }
            // The head may have changed since the transaction was checked.
            let mut reasons = self.recheck(&contents.next, &transaction);
            let body = transaction.body();
            reasons.extend(stateful::check(&contents, &self.limits, address, &sender, body, &transaction.authorities));
            Rejection::unless_empty(reasons)?;
            victims = contents.make_room(&self.limits, &transaction, &sender.account).map_err(Rejection::from)?;
            transaction.arrival = contents.arrivals.next();
            let replaced = contents.at(address, transaction.nonce()).map(|old| old.hash());
            writes = contents.unrecorded();
            writes.push(record::put(&transaction));
            writes.extend(victims.iter().copied().chain(replaced).map(record::delete));
        }
        self.parts.backend.write_records_unsynced(&writes)?;
        let mut contents = self.contents.write();
        contents.recorded();
        for victim in victims {
            contents.remove(victim, DropReason::Evicted);
        }
        contents.insert(Arc::new(transaction), sender.account, self.parts.clock.steady_millis());
        Ok(true)
    }

    /// Repeats the stateless checks for a transaction that was accepted earlier.
    pub(super) fn recheck(&self, next: &NextBlockRules, transaction: &PoolTransaction) -> Vec<PoolError> {
        let sidecar = transaction.sidecar.as_ref();
        let length = transaction.size - record::size(0, sidecar);
        let chain_id = self.parts.spec.chain_id;
        let mut reasons = stateless::check(next, chain_id, &self.limits, transaction.body(), sidecar, length);
        if next.fork >= Fork::Osaka && matches!(sidecar, Some(BlobSidecar::V0 { .. })) {
            reasons.push(PoolError::SidecarVersion { got: 0, expected: 1 });
        }
        reasons
    }
}

/// Decodes a transaction in the form that clients send.
fn decode(bytes: &[u8]) -> Result<PooledTransaction, Rejection> {
    if bytes.len() > MAX_ENCODED_SIZE {
        return Err(PoolError::Oversized { size: bytes.len(), limit: MAX_ENCODED_SIZE }.into());
    }
    PooledTransaction::decode(bytes).map_err(|error| {
        Rejection::from(match error {
            DecodeError::UnknownTransactionType(kind) => TransactionError::Other(unknown_type(kind)).into(),
            DecodeError::Truncated { .. } if matches!(bytes, [] | [0..0x80]) => {
                TransactionError::Other("typed transaction too short: a type and a list are expected".to_owned()).into()
            }
            error => PoolError::Undecodable(error),
        })
    })
}

/// Describes bytes that begin with a type that no fork has.
fn unknown_type(kind: u8) -> String {
    let reason = match kind {
        0 => "a transaction of type 0 is an RLP list without a type byte".to_owned(),
        kind => format!("no fork has type {kind}"),
    };
    format!("transaction type not supported: {reason}")
}
