//! Signers are recovered by libsecp256k1 and by alloy.

use super::*;
use crate::{AccountOptions, Accounts};
use alloy_consensus::TxEnvelope;
use alloy_consensus::transaction::SignerRecoverable;
use alloy_eips::Decodable2718;
use alloy_eips::eip7702;
use alloy_primitives as alloy;
use node_core::crypto::SenderRecovery;
use node_evm::Secp256k1Recovery;
use node_types::Bytes;
use node_types::consensus::{
    AccessListItem, AccessListTransaction, BlobTransaction, DynamicFeeTransaction, LegacyTransaction,
    SetCodeTransaction,
};

const CHAIN_ID: u64 = 31337;

fn accounts() -> Accounts {
    Accounts::derive(&AccountOptions { count: 3, ..AccountOptions::default() }).unwrap()
}

/// One transaction of each type, and a legacy one without a chain id.
fn bodies(authorization: Authorization) -> [TransactionBody; 6] {
    let (chain_id, nonce, gas_limit, to) = (CHAIN_ID, 3, 100_000, Address::repeat_byte(7));
    let (value, input) = (U256::from(5), Bytes::from(&[1, 2, 3][..]));
    let (max_fee_per_gas, max_priority_fee_per_gas) = (U256::exp10(10), U256::exp10(9));
    let access_list = vec![AccessListItem { address: to, storage_keys: vec![H256::repeat_byte(1)] }];
    let legacy = LegacyTransaction {
        chain_id: Some(chain_id),
        nonce,
        gas_price: max_fee_per_gas,
        gas_limit,
        to: Some(to),
        value,
        input: input.clone(),
    };
    [
        TransactionBody::Legacy(LegacyTransaction { chain_id: None, ..legacy.clone() }),
        TransactionBody::Legacy(legacy),
        TransactionBody::AccessList(AccessListTransaction {
            chain_id,
            nonce,
            gas_price: max_fee_per_gas,
            gas_limit,
            to: None,
            value,
            input: input.clone(),
            access_list: access_list.clone(),
        }),
        TransactionBody::DynamicFee(DynamicFeeTransaction {
            chain_id,
            nonce,
            max_priority_fee_per_gas,
            max_fee_per_gas,
            gas_limit,
            to: Some(to),
            value,
            input: input.clone(),
            access_list: access_list.clone(),
        }),
        TransactionBody::Blob(BlobTransaction {
            chain_id,
            nonce,
            max_priority_fee_per_gas,
            max_fee_per_gas,
            gas_limit,
            to,
            value,
            input: input.clone(),
            access_list: access_list.clone(),
            max_fee_per_blob_gas: U256::one(),
            blob_versioned_hashes: vec![H256::repeat_byte(1)],
        }),
        TransactionBody::SetCode(SetCodeTransaction {
            chain_id,
            nonce,
            max_priority_fee_per_gas,
            max_fee_per_gas,
            gas_limit,
            to,
            value,
            input,
            access_list,
            authorization_list: vec![authorization],
        }),
    ]
}

#[test]
fn senders_of_every_type_are_recovered() {
    for account in &*accounts() {
        let authorization = account.sign_authorization(CHAIN_ID, Address::repeat_byte(8), 4);
        let mut types = Vec::new();
        for body in bodies(authorization) {
            let transaction = account.sign(body);
            assert_eq!(Secp256k1Recovery.sender(&transaction), Ok(account.address()), "{transaction:?}");
            let theirs = TxEnvelope::decode_2718_exact(&transaction.encode()).unwrap();
            assert_eq!(theirs.tx_hash().0, transaction.hash().0);
            assert_eq!(theirs.recover_signer().unwrap().0.0, account.address().0, "{transaction:?}");
            types.push((transaction.transaction_type() as u8, transaction.chain_id()));
        }
        let expected = [(0, None), (0, Some(CHAIN_ID)), (1, Some(CHAIN_ID)), (2, Some(CHAIN_ID))];
        assert_eq!(types[..4], expected);
        assert_eq!(types[4..], [(3, Some(CHAIN_ID)), (4, Some(CHAIN_ID))]);
    }
}

#[test]
fn authorities_are_recovered() {
    for account in &*accounts() {
        for chain_id in [0, CHAIN_ID] {
            let authorization = account.sign_authorization(chain_id, Address::repeat_byte(8), 4);
            assert_eq!(Secp256k1Recovery.authority(&authorization), Ok(account.address()));
            let theirs = eip7702::Authorization {
                chain_id: alloy::U256::from(chain_id),
                address: alloy::Address::repeat_byte(8),
                nonce: 4,
            };
            let [r, s] = [authorization.r, authorization.s].map(|word| alloy::U256::from_limbs(word.0));
            let theirs = eip7702::SignedAuthorization::new_unchecked(theirs, authorization.y_parity, r, s);
            assert_eq!(theirs.recover_authority().unwrap().0.0, account.address().0);
        }
    }
}

#[test]
fn signers_of_hashes_are_recovered() {
    for (account, byte) in accounts().iter().zip(1..) {
        let hash = H256::repeat_byte(byte);
        let signature = account.sign_hash(hash);
        assert_eq!(Secp256k1Recovery.recover(hash, &signature, true), Ok(account.address()));
        let [r, s] = [signature.r, signature.s].map(|word| alloy::U256::from_limbs(word.0));
        let theirs = alloy::Signature::new(r, s, signature.y_parity);
        assert!(theirs.normalize_s().is_none(), "s is low");
        let recovered = theirs.recover_address_from_prehash(&alloy::B256::new(hash.0)).unwrap();
        assert_eq!(recovered.0.0, account.address().0);
    }
}

#[test]
fn debug_does_not_show_the_key() {
    let shown = format!("{:?}", accounts()[0]).to_lowercase();
    assert!(shown.contains("f39fd6e51aad88f6f4ce6ab8827279cfffb92266"), "{shown}");
    assert!(!shown.contains("ac0974be"), "{shown}");
}
