//! The same objects, encoded and hashed by alloy.

use crate::consensus::codec::Item;
use crate::consensus::test_support::*;
use crate::consensus::*;
use alloy_consensus::transaction::{RlpEcdsaEncodableTx, SignableTransaction};
use alloy_consensus::{
    EthereumTxEnvelope, ReceiptEnvelope, ReceiptWithBloom, Signed, TrieAccount, TxEip1559, TxEip2930, TxEip4844,
    TxEip4844WithSidecar, TxEip7702, TxLegacy,
};
use alloy_eips::eip4844::{BlobTransactionSidecar, Bytes48};
use alloy_eips::eip7594::{BlobTransactionSidecarEip7594, BlobTransactionSidecarVariant};
use alloy_eips::eip7702::SignedAuthorization;
use alloy_eips::{Decodable2718, Encodable2718, eip2930, eip4895, eip7702};
use alloy_primitives as alloy;
use alloy_rlp::Decodable;
use proptest::prelude::*;

type AlloyTransaction = EthereumTxEnvelope<TxEip4844>;

fn b256(hash: crate::H256) -> alloy::B256 {
    alloy::B256::new(hash.0)
}

fn address(address: crate::Address) -> alloy::Address {
    alloy::Address::new(address.0)
}

fn kind(to: Option<crate::Address>) -> alloy::TxKind {
    to.map(address).into()
}

fn u256(word: crate::U256) -> alloy::U256 {
    alloy::U256::from_limbs(word.0)
}

fn bytes(bytes: &crate::Bytes) -> alloy::Bytes {
    alloy::Bytes::copy_from_slice(bytes)
}

fn bloom(bloom: Bloom) -> alloy::Bloom {
    alloy::Bloom::new(bloom.0)
}

fn header_of(header: &Header) -> alloy_consensus::Header {
    alloy_consensus::Header {
        parent_hash: b256(header.parent_hash),
        ommers_hash: b256(header.ommers_hash),
        beneficiary: address(header.beneficiary),
        state_root: b256(header.state_root),
        transactions_root: b256(header.transactions_root),
        receipts_root: b256(header.receipts_root),
        logs_bloom: bloom(header.logs_bloom),
        difficulty: u256(header.difficulty),
        number: header.number,
        gas_limit: header.gas_limit,
        gas_used: header.gas_used,
        timestamp: header.timestamp,
        extra_data: bytes(&header.extra_data),
        mix_hash: b256(header.mix_hash),
        nonce: alloy::B64::new(header.nonce),
        base_fee_per_gas: header.base_fee_per_gas,
        withdrawals_root: header.withdrawals_root.map(b256),
        blob_gas_used: header.blob_gas_used,
        excess_blob_gas: header.excess_blob_gas,
        parent_beacon_block_root: header.parent_beacon_block_root.map(b256),
        requests_hash: header.requests_hash.map(b256),
        ..Default::default()
    }
}

fn withdrawal_of(withdrawal: &Withdrawal) -> eip4895::Withdrawal {
    eip4895::Withdrawal {
        index: withdrawal.index,
        validator_index: withdrawal.validator_index,
        address: address(withdrawal.address),
        amount: withdrawal.amount,
    }
}

fn access_list_of(list: &[AccessListItem]) -> eip2930::AccessList {
    let item = |item: &AccessListItem| eip2930::AccessListItem {
        address: address(item.address),
        storage_keys: item.storage_keys.iter().copied().map(b256).collect(),
    };
    eip2930::AccessList(list.iter().map(item).collect())
}

fn authorization_of(authorization: &Authorization) -> SignedAuthorization {
    let inner = eip7702::Authorization {
        chain_id: u256(authorization.chain_id),
        address: address(authorization.address),
        nonce: authorization.nonce,
    };
    SignedAuthorization::new_unchecked(inner, authorization.y_parity, u256(authorization.r), u256(authorization.s))
}

fn blob_of(tx: &BlobTransaction) -> TxEip4844 {
    TxEip4844 {
        chain_id: tx.chain_id,
        nonce: tx.nonce,
        gas_limit: tx.gas_limit,
        max_fee_per_gas: tx.max_fee_per_gas.as_u128(),
        max_priority_fee_per_gas: tx.max_priority_fee_per_gas.as_u128(),
        to: address(tx.to),
        value: u256(tx.value),
        access_list: access_list_of(&tx.access_list),
        blob_versioned_hashes: tx.blob_versioned_hashes.iter().copied().map(b256).collect(),
        max_fee_per_blob_gas: tx.max_fee_per_blob_gas.as_u128(),
        input: bytes(&tx.input),
    }
}

fn signature_of(signature: &Signature) -> alloy::Signature {
    alloy::Signature::new(u256(signature.r), u256(signature.s), signature.y_parity)
}

/// Returns alloy's form of a transaction, and its signing hash.
fn transaction_of(transaction: &Transaction) -> (AlloyTransaction, alloy::B256) {
    fn signed<T>(tx: T, signature: &Signature) -> (AlloyTransaction, alloy::B256)
    where
        T: SignableTransaction<alloy::Signature> + RlpEcdsaEncodableTx,
        AlloyTransaction: From<Signed<T>>,
    {
        let hash = tx.signature_hash();
        (Signed::new_unhashed(tx, signature_of(signature)).into(), hash)
    }
    let signature = &transaction.signature;
    match &transaction.body {
        TransactionBody::Legacy(tx) => {
            let tx = TxLegacy {
                chain_id: tx.chain_id,
                nonce: tx.nonce,
                gas_price: tx.gas_price.as_u128(),
                gas_limit: tx.gas_limit,
                to: kind(tx.to),
                value: u256(tx.value),
                input: bytes(&tx.input),
            };
            signed(tx, signature)
        }
        TransactionBody::AccessList(tx) => {
            let tx = TxEip2930 {
                chain_id: tx.chain_id,
                nonce: tx.nonce,
                gas_price: tx.gas_price.as_u128(),
                gas_limit: tx.gas_limit,
                to: kind(tx.to),
                value: u256(tx.value),
                access_list: access_list_of(&tx.access_list),
                input: bytes(&tx.input),
            };
            signed(tx, signature)
        }
        TransactionBody::DynamicFee(tx) => {
            let tx = TxEip1559 {
                chain_id: tx.chain_id,
                nonce: tx.nonce,
                gas_limit: tx.gas_limit,
                max_fee_per_gas: tx.max_fee_per_gas.as_u128(),
                max_priority_fee_per_gas: tx.max_priority_fee_per_gas.as_u128(),
                to: kind(tx.to),
                value: u256(tx.value),
                access_list: access_list_of(&tx.access_list),
                input: bytes(&tx.input),
            };
            signed(tx, signature)
        }
        TransactionBody::Blob(tx) => signed(blob_of(tx), signature),
        TransactionBody::SetCode(tx) => {
            let tx = TxEip7702 {
                chain_id: tx.chain_id,
                nonce: tx.nonce,
                gas_limit: tx.gas_limit,
                max_fee_per_gas: tx.max_fee_per_gas.as_u128(),
                max_priority_fee_per_gas: tx.max_priority_fee_per_gas.as_u128(),
                to: address(tx.to),
                value: u256(tx.value),
                access_list: access_list_of(&tx.access_list),
                authorization_list: tx.authorization_list.iter().map(authorization_of).collect(),
                input: bytes(&tx.input),
            };
            signed(tx, signature)
        }
    }
}

fn log_of(log: &Log) -> alloy::Log {
    alloy::Log::new_unchecked(address(log.address), log.topics.iter().copied().map(b256).collect(), bytes(&log.data))
}

fn receipt_of(receipt: &Receipt) -> ReceiptEnvelope {
    let status = match receipt.outcome {
        ReceiptOutcome::Success(success) => alloy_consensus::Eip658Value::Eip658(success),
        ReceiptOutcome::StateRoot(root) => alloy_consensus::Eip658Value::PostState(b256(root)),
    };
    let inner = alloy_consensus::Receipt {
        status,
        cumulative_gas_used: receipt.cumulative_gas_used,
        logs: receipt.logs.iter().map(log_of).collect(),
    };
    let with_bloom = ReceiptWithBloom { receipt: inner, logs_bloom: bloom(receipt.logs_bloom) };
    match receipt.transaction_type {
        TransactionType::Legacy => ReceiptEnvelope::Legacy(with_bloom),
        TransactionType::AccessList => ReceiptEnvelope::Eip2930(with_bloom),
        TransactionType::DynamicFee => ReceiptEnvelope::Eip1559(with_bloom),
        TransactionType::Blob => ReceiptEnvelope::Eip4844(with_bloom),
        TransactionType::SetCode => ReceiptEnvelope::Eip7702(with_bloom),
    }
}

fn block_of(block: &Block) -> alloy_consensus::Block<AlloyTransaction> {
    let withdrawals = |list: &Vec<Withdrawal>| eip4895::Withdrawals(list.iter().map(withdrawal_of).collect());
    alloy_consensus::Block {
        header: header_of(&block.header),
        body: alloy_consensus::BlockBody {
            transactions: block.transactions.iter().map(|transaction| transaction_of(transaction).0).collect(),
            ommers: block.ommers.iter().map(header_of).collect(),
            withdrawals: block.withdrawals.as_ref().map(withdrawals),
        },
    }
}

fn sidecar_of(sidecar: &BlobSidecar) -> BlobTransactionSidecarVariant {
    let points = |list: &[crate::Bytes]| list.iter().map(|point| Bytes48::from_slice(point)).collect();
    let blobs = sidecar.blobs().iter().map(|blob| alloy_eips::eip4844::Blob::from_slice(blob)).collect();
    let (commitments, proofs) = (points(sidecar.commitments()), points(sidecar.proofs()));
    match sidecar {
        BlobSidecar::V0 { .. } => {
            BlobTransactionSidecarVariant::Eip4844(BlobTransactionSidecar { blobs, commitments, proofs })
        }
        BlobSidecar::V1 { .. } => BlobTransactionSidecarVariant::Eip7594(BlobTransactionSidecarEip7594 {
            blobs,
            commitments,
            cell_proofs: proofs,
        }),
    }
}

proptest! {
    #[test]
    fn headers(header in header()) {
        let theirs = header_of(&header);
        prop_assert_eq!(header.encode(), alloy_rlp::encode(&theirs));
        prop_assert_eq!(b256(header.hash()), theirs.hash_slow());
        // Alloy, too, derives the number of optional fields from the bytes.
        let decoded = alloy_consensus::Header::decode(&mut header.encode().as_slice());
        prop_assert_eq!(decoded, Ok(theirs));
    }

    #[test]
    fn transactions(transaction in transaction_with(price)) {
        let (theirs, signing_hash) = transaction_of(&transaction);
        let encoded = theirs.encoded_2718();
        prop_assert_eq!(const_hex::encode(transaction.encode()), const_hex::encode(&encoded));
        prop_assert_eq!(b256(transaction.hash()), *theirs.tx_hash());
        prop_assert_eq!(b256(transaction.signing_hash()), signing_hash);
        prop_assert_eq!(Transaction::decode(&encoded), Ok(transaction));
    }

    #[test]
    fn authorizations(authorization in authorization()) {
        let theirs = authorization_of(&authorization);
        let mut stream = rlp::RlpStream::new();
        Item::append(&authorization, &mut stream);
        prop_assert_eq!(stream.out().to_vec(), alloy_rlp::encode(&theirs));
        prop_assert_eq!(b256(authorization.signing_hash()), theirs.signature_hash());
    }

    #[test]
    fn receipts(receipt in receipt()) {
        let encoded = receipt_of(&receipt).encoded_2718();
        prop_assert_eq!(const_hex::encode(receipt.encode()), const_hex::encode(&encoded));
        prop_assert_eq!(Receipt::decode(&encoded), Ok(receipt));
    }

    #[test]
    fn blooms(logs in prop::collection::vec(log(), 0..4)) {
        let theirs: alloy::Bloom = logs.iter().map(log_of).collect::<Vec<_>>().iter().collect();
        prop_assert_eq!(bloom(logs.iter().collect()), theirs);
    }

    #[test]
    fn withdrawals(withdrawal in withdrawal()) {
        prop_assert_eq!(withdrawal.encode(), alloy_rlp::encode(withdrawal_of(&withdrawal)));
    }

    #[test]
    fn accounts(account in account()) {
        let theirs = TrieAccount {
            nonce: account.nonce,
            balance: u256(account.balance),
            storage_root: b256(account.storage_root),
            code_hash: b256(account.code_hash),
        };
        prop_assert_eq!(account.encode(), alloy_rlp::encode(theirs));
    }

    #[test]
    fn blocks(block in block_with(price)) {
        let encoded = alloy_rlp::encode(block_of(&block));
        prop_assert_eq!(const_hex::encode(block.encode()), const_hex::encode(&encoded));
        prop_assert_eq!(Block::decode(&encoded), Ok(block));
    }
}

proptest! {
    // A case writes up to 262,144 bytes of blobs.
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn transactions_with_blobs(pooled in blob_transaction()) {
        let (TransactionBody::Blob(tx), Some(sidecar)) = (&pooled.transaction.body, &pooled.sidecar) else {
            panic!("not a blob transaction: {:?}", pooled.transaction)
        };
        let with_sidecar = TxEip4844WithSidecar { tx: blob_of(tx), sidecar: sidecar_of(sidecar) };
        let signed = Signed::new_unhashed(with_sidecar, signature_of(&pooled.transaction.signature));
        let theirs = EthereumTxEnvelope::Eip4844(signed);
        let encoded = theirs.encoded_2718();
        prop_assert!(pooled.encode() == encoded);
        prop_assert_eq!(b256(pooled.transaction.hash()), *theirs.tx_hash());
        type Pooled = EthereumTxEnvelope<TxEip4844WithSidecar<BlobTransactionSidecarVariant>>;
        prop_assert!(Pooled::decode_2718_exact(&pooled.encode()).unwrap() == theirs);
        let commitments = sidecar.commitments();
        for (ours, theirs) in commitments.iter().zip(sidecar_of(sidecar).versioned_hashes()) {
            prop_assert_eq!(b256(versioned_hash(ours)), theirs);
        }
    }

    #[test]
    fn requests_hashes(data in prop::collection::vec(crate::consensus::test_support::bytes(), 3)) {
        let types = [RequestType::Deposit, RequestType::Withdrawal, RequestType::Consolidation];
        let ours: Vec<Request> =
            types.into_iter().zip(data).map(|(request_type, data)| Request { request_type, data }).collect();
        let mut theirs = alloy_eips::eip7685::Requests::default();
        for request in ours.iter().filter(|request| !request.data.is_empty()) {
            theirs.push_request_with_type(request.request_type as u8, request.data.to_vec());
        }
        prop_assert_eq!(b256(requests_hash(&ours)), theirs.requests_hash());
    }
}
