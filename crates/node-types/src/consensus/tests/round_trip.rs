//! Encoding and decoding returns an equal object.

use crate::consensus::test_support::*;
use crate::consensus::*;
use proptest::prelude::*;
use rlp::Rlp;

proptest! {
    #[test]
    fn headers(header in header()) {
        prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
    }

    #[test]
    fn withdrawals(withdrawal in withdrawal()) {
        prop_assert_eq!(Withdrawal::decode(&withdrawal.encode()), Ok(withdrawal));
    }

    #[test]
    fn accounts(account in account()) {
        prop_assert_eq!(Account::decode(&account.encode()), Ok(account));
    }

    #[test]
    fn logs(log in log()) {
        prop_assert_eq!(Log::decode(&log.encode()), Ok(log));
    }

    #[test]
    fn receipts(receipt in receipt()) {
        prop_assert_eq!(Receipt::decode(&receipt.encode()), Ok(receipt));
    }

    #[test]
    fn transactions(transaction in transaction()) {
        let encoded = transaction.encode();
        prop_assert_eq!(Transaction::decode(&encoded), Ok(transaction.clone()));
        prop_assert_eq!(PooledTransaction::decode(&encoded), Ok(PooledTransaction { transaction, sidecar: None }));
    }

    #[test]
    fn blocks(block in block()) {
        let encoded = block.encode();
        prop_assert_eq!(block.encoded_len(), encoded.len());
        prop_assert_eq!(Block::decode(&encoded), Ok(block));
    }

    #[test]
    fn through_the_traits_of_the_rlp_crate(headers in prop::collection::vec(header(), 0..3), block in block()) {
        let list = rlp::encode_list::<Header, Header>(&headers);
        prop_assert_eq!(Rlp::new(&list).as_list::<Header>(), Ok(headers));
        prop_assert_eq!(rlp::decode::<Block>(&rlp::encode(&block)), Ok(block));
    }
}

proptest! {
    // A case writes up to 262,144 bytes of blobs.
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn transactions_with_blobs(pooled in blob_transaction()) {
        let decoded = PooledTransaction::decode(&pooled.encode());
        prop_assert!(decoded.as_ref() == Ok(&pooled), "{:?}", decoded.map(|decoded| decoded.transaction));
    }
}
