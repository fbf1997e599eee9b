//! Pure functions that convert domain values to outputs of the interface.

use node_core::backend::AccountProof;
use node_core::block::{LogRef, RecoveredTransaction, SealedHeader};
use node_core::filters::{ChangedLog, FilterChanges};
use node_core::logs::FoundLog;
use node_core::node::{
    FeeHistory, FoundBlock, FoundReceipt, FoundReceipts, FoundTransaction, ReceiptInBlock, TransactionStatus,
};
use node_core::pool::{PoolStatus, PoolTransaction};
use node_core::producer::{ForkControl, ForkInfo, ForkUse};
use node_core::protocol::ChainSpec;
use node_core::protocol::fees::{self, GAS_PER_BLOB};
use node_core::remote::EndpointUse;
use node_core::sources::Sources;
use node_types::consensus::{Account, Authorization, Log, ReceiptOutcome, TransactionBody};
use node_types::wire::{self, BlockTransactions, Data, JsonArray, JsonBuffer, JsonObject, Quantity, Word, append_data};
use node_types::{Address, Bytes, H256, U256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The fields of a block that its transactions, receipts and logs repeat.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Hash and number; `None` for the pending block.
    mined: Option<(H256, u64)>,
    /// Base fee in wei per gas; `None` before London.
    base_fee: Option<u64>,
}

impl Place {
    fn of(header: &SealedHeader, pending: bool) -> Self {
        Self {
            mined: (!pending).then_some((header.hash, header.header.number)),
            base_fee: header.header.base_fee_per_gas,
        }
    }

    fn hash(&self) -> Option<Data<H256>> {
        self.mined.map(|(hash, _)| Data(hash))
    }

    fn number(&self) -> Option<Quantity<u64>> {
        self.mined.map(|(_, number)| Quantity(number))
    }

    /// Returns `value`, or `None` if the block is pending.
    fn if_mined<T>(&self, value: T) -> Option<T> {
        self.mined.map(|_| value)
    }
}

/// Converts a block, with full transactions or with their hashes.
pub(crate) fn block(found: &FoundBlock, full: bool) -> wire::Block {
    let FoundBlock { header: sealed, body, pending } = found;
    let place = Place::of(sealed, *pending);
    let transactions = if full {
        let whole = body.transactions.iter().enumerate();
        BlockTransactions::Full(
            whole.map(|(index, transaction)| mined_transaction(&place, index, transaction)).collect(),
        )
    } else {
        BlockTransactions::Hashes(body.transactions.iter().map(|transaction| transaction.hash).collect())
    };
    let block = wire::Block {
        hash: place.hash(),
        size: Quantity(sealed.size),
        total_difficulty: Quantity(sealed.total_difficulty),
        transactions,
        uncles: body.ommers.iter().map(|ommer| Data(ommer.hash())).collect(),
        withdrawals: body.withdrawals.as_ref().map(|all| all.iter().map(withdrawal).collect()),
        ..wire::Block::of(&sealed.header)
    };
    if *pending { wire::Block { logs_bloom: None, nonce: None, number: None, ..block } } else { block }
}

/// Converts a header. That of the pending block has no hash.
pub(crate) fn header(sealed: &SealedHeader, pending: bool) -> wire::BlockHeader {
    wire::BlockHeader { hash: (!pending).then_some(Data(sealed.hash)), ..wire::BlockHeader::of(&sealed.header) }
}

fn withdrawal(withdrawal: &node_types::consensus::Withdrawal) -> wire::Withdrawal {
    wire::Withdrawal {
        address: Data(withdrawal.address),
        amount: Quantity(withdrawal.amount),
        index: withdrawal.index,
        validator_index: withdrawal.validator_index,
    }
}

/// Converts a transaction of the chain or of the pool.
pub(crate) fn transaction(found: &FoundTransaction) -> wire::Transaction {
    match found {
        FoundTransaction::Mined { block, index } => {
            mined_transaction(&Place::of(&block.header, block.pending), *index, found.recovered())
        }
        FoundTransaction::Pooled(pooled) => pooled_transaction(&pooled.recovered),
    }
}

/// Converts a transaction of a block. In the pending block its gas price is its fee cap, as in the pool.
fn mined_transaction(place: &Place, index: usize, transaction: &RecoveredTransaction) -> wire::Transaction {
    let pooled = pooled_transaction(transaction);
    let Some((hash, number)) = place.mined else { return pooled };
    wire::Transaction {
        block_hash: Some(Data(hash)),
        block_number: Some(Quantity(number)),
        transaction_index: Some(Quantity(index as u64)),
        gas_price: Quantity(transaction.paid_price(place.base_fee)),
        ..pooled
    }
}

/// Converts a transaction that is not mined.
fn pooled_transaction(recovered: &RecoveredTransaction) -> wire::Transaction {
    let body = &recovered.transaction.body;
    let signature = &recovered.transaction.signature;
    let has_caps = !matches!(body, TransactionBody::Legacy(_) | TransactionBody::AccessList(_));
    wire::Transaction {
        access_list: body
            .access_list()
            .iter()
            .map(|item| wire::AccessListItem {
                address: Data(item.address),
                storage_keys: item.storage_keys.iter().copied().map(Data).collect(),
            })
            .collect(),
        block_hash: None,
        block_number: None,
        chain_id: body.chain_id().map(Quantity),
        from: Data(recovered.sender),
        gas: Quantity(body.gas_limit()),
        gas_price: Quantity(body.max_fee_per_gas()),
        hash: Data(recovered.hash),
        input: Data(body.input().clone()),
        max_fee_per_gas: has_caps.then(|| Quantity(body.max_fee_per_gas())),
        max_priority_fee_per_gas: has_caps.then(|| Quantity(body.max_priority_fee_per_gas())),
        nonce: Quantity(body.nonce()),
        r: Word(signature.r),
        s: Word(signature.s),
        to: body.to().map(Data),
        transaction_index: None,
        transaction_type: Quantity(body.transaction_type() as u64),
        v: Quantity(recovered.transaction.v()),
        value: Quantity(body.value()),
    }
}

/// Converts the data of a transaction that getTransactionByHash does not return.
pub(crate) fn transaction_extras(spec: &ChainSpec, found: &FoundTransaction) -> wire::GetTransactionExtrasOutput {
    let body = &found.recovered().transaction.body;
    let blob = if let TransactionBody::Blob(blob) = body { Some(blob) } else { None };
    let blob_base_fee = match found {
        FoundTransaction::Mined { block, .. } if !block.pending => fees::blob_base_fee(spec, &block.header.header),
        _ => None,
    };
    wire::GetTransactionExtrasOutput {
        authorization_list: match body {
            TransactionBody::SetCode(body) => Some(body.authorization_list.iter().map(authorization).collect()),
            _ => None,
        },
        blob_gas_price: blob.and(blob_base_fee).map(Quantity),
        blob_gas_used: blob.map(|blob| Quantity(blob.blob_versioned_hashes.len() as u64 * GAS_PER_BLOB)),
        blob_versioned_hashes: blob.map(|blob| blob.blob_versioned_hashes.iter().copied().map(Data).collect()),
        max_fee_per_blob_gas: blob.map(|blob| Quantity(blob.max_fee_per_blob_gas)),
    }
}

fn authorization(authorization: &Authorization) -> wire::Authorization {
    wire::Authorization {
        address: Data(authorization.address),
        chain_id: Quantity(authorization.chain_id),
        nonce: Quantity(authorization.nonce),
        r: Word(authorization.r),
        s: Word(authorization.s),
        v: Quantity(authorization.y_parity.into()),
    }
}

/// Converts transactions by sender to a list.
pub(crate) fn pooled_transactions(
    transactions: BTreeMap<Address, Vec<Arc<PoolTransaction>>>,
) -> Vec<wire::Transaction> {
    transactions.into_values().flatten().map(|transaction| pooled_transaction(&transaction.recovered)).collect()
}

/// Converts the status of a transaction.
pub(crate) fn transaction_status(status: TransactionStatus) -> wire::GetTransactionStatusOutput {
    let (status, reason) = match status {
        TransactionStatus::Mined => (wire::TransactionStatus::Mined, None),
        TransactionStatus::Pool(PoolStatus::Pending) => (wire::TransactionStatus::Pending, None),
        TransactionStatus::Pool(PoolStatus::Queued) => (wire::TransactionStatus::Queued, None),
        TransactionStatus::Pool(PoolStatus::Dropped(reason)) => {
            (wire::TransactionStatus::Dropped, Some(Sources(&reason).to_string()))
        }
        TransactionStatus::Pool(PoolStatus::Unknown) => (wire::TransactionStatus::Unknown, None),
    };
    wire::GetTransactionStatusOutput { status, reason }
}

/// Converts the receipts of a block.
pub(crate) fn receipts(found: &FoundReceipts) -> Vec<wire::TransactionReceipt> {
    let place = Place::of(&found.block.header, found.block.pending);
    found.iter().map(|receipt| transaction_receipt(&place, receipt)).collect()
}

/// Converts the receipt of a transaction.
pub(crate) fn receipt(found: &FoundReceipt) -> Option<wire::TransactionReceipt> {
    let block = &found.receipts.block;
    found.receipt().map(|receipt| transaction_receipt(&Place::of(&block.header, block.pending), receipt))
}

fn transaction_receipt(place: &Place, found: ReceiptInBlock<'_>) -> wire::TransactionReceipt {
    let ReceiptInBlock { index, transaction: recovered, receipt, gas_used, first_log } = found;
    let body = &recovered.transaction.body;
    let logs = receipt.logs.iter().zip(first_log..);
    wire::TransactionReceipt {
        block_hash: place.hash(),
        block_number: place.number(),
        contract_address: match body.to() {
            Some(_) => None,
            None => Some(Data(recovered.created_address())),
        },
        cumulative_gas_used: Quantity(receipt.cumulative_gas_used),
        effective_gas_price: Quantity(recovered.paid_price(place.base_fee)),
        from: Data(recovered.sender),
        gas_used: Quantity(gas_used),
        logs: logs.map(|(log, log_index)| placed_log(place, log.clone(), log_index, recovered.hash, index)).collect(),
        logs_bloom: Data(receipt.logs_bloom),
        status: match receipt.outcome {
            ReceiptOutcome::StateRoot(_) => None,
            ReceiptOutcome::Success(success) => Some(Quantity(success.into())),
        },
        to: body.to().map(Data),
        transaction_hash: Data(recovered.hash),
        transaction_index: place.if_mined(Quantity(index as u64)),
        transaction_type: Quantity(receipt.transaction_type as u64),
    }
}

pub(crate) fn log(found: FoundLog) -> wire::Log {
    let place = Place { mined: (!found.pending).then_some((found.block.hash, found.block.number)), base_fee: None };
    placed_log(&place, found.log, found.log_index, found.transaction_hash, found.transaction_index)
}

/// Appends the JSON of the log that [`log`] returns, in a fraction of the time that serializing it takes.
pub(crate) fn append_log(out: &mut JsonBuffer, found: &FoundLog<LogRef<'_>>) {
    let FoundLog { block, timestamp: _, pending, log_index, transaction_index, transaction_hash, log } = found;
    let mined = !pending;
    let mut object = JsonObject::begin(out);
    let data = |object: &mut JsonObject<'_>, name, value: H256| {
        if mined { object.data(name, &value.0) } else { object.null(name) }
    };
    let quantity = |object: &mut JsonObject<'_>, name, value: u64| {
        if mined { object.quantity(name, value) } else { object.null(name) }
    };
    object.data("Address", &log.address.0);
    data(&mut object, "BlockHash", block.hash);
    quantity(&mut object, "BlockNumber", block.number);
    object.data("Data", log.data);
    quantity(&mut object, "LogIndex", *log_index);
    object.boolean("Removed", false);
    let mut topics = JsonArray::begin(object.member("Topics"));
    log.topics.iter().for_each(|topic| append_data(topics.element(), topic));
    topics.end();
    data(&mut object, "TransactionHash", *transaction_hash);
    quantity(&mut object, "TransactionIndex", *transaction_index as u64);
    object.end();
}

/// Converts a log that was added or removed.
pub(crate) fn changed_log(change: ChangedLog) -> wire::Log {
    wire::Log { removed: change.removed, ..log(change.found) }
}

/// Converts the changes that a filter reports.
pub(crate) fn filter_changes(changes: FilterChanges) -> wire::FilterChanges {
    match changes {
        FilterChanges::Logs(logs) => wire::FilterChanges::Logs(logs.into_iter().map(changed_log).collect()),
        FilterChanges::Blocks(blocks) => {
            wire::FilterChanges::Hashes(blocks.into_iter().map(|block| Data(block.hash)).collect())
        }
        FilterChanges::Transactions(arrivals) => {
            wire::FilterChanges::Hashes(arrivals.into_iter().map(|arrival| Data(arrival.hash)).collect())
        }
    }
}

fn placed_log(place: &Place, log: Log, log_index: u64, transaction: H256, transaction_index: usize) -> wire::Log {
    wire::Log {
        address: Data(log.address),
        block_hash: place.hash(),
        block_number: place.number(),
        data: Data(log.data),
        log_index: place.if_mined(Quantity(log_index)),
        removed: false,
        topics: log.topics.into_iter().map(Data).collect(),
        transaction_hash: place.if_mined(Data(transaction)),
        transaction_index: place.if_mined(Quantity(transaction_index as u64)),
    }
}

pub(crate) fn account(account: &Account) -> wire::GetAccountOutput {
    wire::GetAccountOutput {
        balance: Quantity(account.balance),
        code_hash: Data(account.code_hash),
        nonce: Quantity(account.nonce),
        storage_root: Data(account.storage_root),
    }
}

/// Converts the proof of an account and of storage slots.
pub(crate) fn proof(address: Address, proof: AccountProof) -> wire::GetProofOutput {
    let account = proof.account.unwrap_or_default();
    let nodes = |nodes: Vec<Bytes>| nodes.into_iter().map(Data).collect();
    wire::GetProofOutput {
        account_proof: nodes(proof.proof),
        address: Data(address),
        balance: Quantity(account.balance),
        code_hash: Data(account.code_hash),
        nonce: Quantity(account.nonce),
        storage_hash: Data(account.storage_root),
        storage_proof: (proof.storage.into_iter())
            .map(|entry| wire::StorageEntry {
                key: Data(entry.slot),
                proof: nodes(entry.proof),
                value: Word(entry.value),
            })
            .collect(),
    }
}

pub(crate) fn fee_history(history: FeeHistory) -> wire::FeeHistoryOutput {
    let quantities = |numbers: Vec<U256>| numbers.into_iter().map(Quantity).collect();
    let base_fee = |fee: Option<u64>| Quantity(fee.unwrap_or(0).into());
    wire::FeeHistoryOutput {
        base_fee_per_gas: history.base_fees.into_iter().map(base_fee).collect(),
        gas_used_ratio: history.gas_used_ratios,
        oldest_block: Quantity(history.oldest_block),
        reward: history.rewards.into_iter().map(quantities).collect(),
    }
}

#[cfg(test)]
mod tests;

/// Converts the chain that a fork continues.
pub(crate) fn fork(fork: &dyn ForkControl) -> wire::ForkStatus {
    let ForkInfo { chain_id, block, is_verified, .. } = fork.info();
    let ForkUse { endpoints, retries, state_gone } = fork.usage();
    let endpoint = |EndpointUse { name, requests, failures, bytes, last_failure }| wire::ForkEndpoint {
        name,
        requests: Quantity(requests),
        failures: Quantity(failures),
        bytes: Quantity(bytes),
        last_failure,
    };
    wire::ForkStatus {
        block_hash: Data(block.hash),
        block_number: Quantity(block.number),
        chain_id: Quantity(chain_id),
        endpoints: endpoints.into_iter().map(endpoint).collect(),
        retries: Quantity(retries),
        state_gone,
        verified: is_verified,
    }
}
