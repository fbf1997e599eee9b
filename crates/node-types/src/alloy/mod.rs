//! Conversions to and from alloy's types, for programs that use both.
//!
//! [`ToAlloy`] and [`ToNode`] convert types that are equivalent on both sides: primitive types, block identifiers,
//! logs, accounts, withdrawals. Headers, transactions (signed, unsigned, and with blobs), receipts, blocks and
//! requests convert with `TryFrom` through their RLP encoding; the conversion fails if one side lacks a field of the
//! other. The only information lost is alloy's `require_canonical` of a block hash, for which [`BlockId`] has no
//! counterpart and which no operation needs. The wrapper types of the HTTP interface, such as
//! [`HashData`](crate::wire::HashData), dereference to the wrapped value and convert like it.
//!
//! # Examples
//! ```
//! use alloy_consensus::TxEnvelope;
//! use node_types::alloy::{ToAlloy, ToNode};
//! use node_types::consensus::Header;
//! use node_types::{Address, U256};
//!
//! let address = Address::repeat_byte(7);
//! assert_eq!(address.to_alloy().to_node(), address);
//! assert_eq!(alloy_primitives::U256::from(7).to_node(), U256::from(7));
//!
//! let header = Header { number: 7, ..Header::default() };
//! let theirs = alloy_consensus::Header::try_from(&header)?;
//! assert_eq!(theirs.hash_slow().to_node(), header.hash());
//! # Ok::<(), alloy_rlp::Error>(())
//! ```

mod transactions;

use crate::consensus::{
    AccessListItem, Account, Authorization, Block, Bloom, DecodeError, Header, Log, PooledTransaction, Receipt,
    Signature, Transaction, TransactionType, Withdrawal,
};
use crate::{Address, BlockId, BlockNumberOrTag, Bytes, H256, U256};
use alloy_consensus::{ReceiptEnvelope, TrieAccount, TxEnvelope, TxType};
use alloy_eips::eip2718::{Eip2718Error, Eip2718Result};
use alloy_eips::{Decodable2718, Encodable2718, eip2930, eip4895, eip7702};
use alloy_primitives as theirs;
use alloy_rlp::Decodable;

/// Conversion to an alloy type.
pub trait ToAlloy {
    /// The corresponding alloy type.
    type Alloy;

    /// Returns this value as alloy's type.
    fn to_alloy(&self) -> Self::Alloy;
}

/// Conversion from one of alloy's types.
pub trait ToNode {
    /// The corresponding type of this workspace.
    type Node;

    /// Returns this value as this workspace's type.
    fn to_node(&self) -> Self::Node;
}

/// Implements both conversions.
macro_rules! convert {
    ($($ours:ty, $theirs:ty: $our:ident => $to_alloy:expr, $their:ident => $to_node:expr;)+) => {$(
        impl ToAlloy for $ours {
            type Alloy = $theirs;

            fn to_alloy(&self) -> $theirs {
                let $our = self;
                $to_alloy
            }
        }

        impl ToNode for $theirs {
            type Node = $ours;

            fn to_node(&self) -> $ours {
                let $their = self;
                $to_node
            }
        }
    )+};
}

convert! {
    H256, theirs::B256: hash => theirs::B256::new(hash.0), hash => H256(hash.0);
    Address, theirs::Address: address => theirs::Address::new(address.0), address => crate::H160(address.0.0);
    U256, theirs::U256: number => theirs::U256::from_limbs(number.0), number => U256(*number.as_limbs());
    Bytes, theirs::Bytes: bytes => theirs::Bytes(bytes.0.clone()), bytes => Bytes(bytes.0.clone());
    Bloom, theirs::Bloom: bloom => theirs::Bloom::new(bloom.0), bloom => Bloom(bloom.0.0);

    Log, theirs::Log:
        log => theirs::Log::new_unchecked(log.address.to_alloy(), log.topics.to_alloy(), log.data.to_alloy()),
        log => Log {
            address: log.address.to_node(),
            topics: log.topics().iter().map(ToNode::to_node).collect(),
            data: log.data.data.to_node(),
        };

    Account, TrieAccount:
        account => TrieAccount {
            nonce: account.nonce,
            balance: account.balance.to_alloy(),
            storage_root: account.storage_root.to_alloy(),
            code_hash: account.code_hash.to_alloy(),
        },
        account => Account {
            nonce: account.nonce,
            balance: account.balance.to_node(),
            storage_root: account.storage_root.to_node(),
            code_hash: account.code_hash.to_node(),
        };

    Withdrawal, eip4895::Withdrawal:
        withdrawal => eip4895::Withdrawal {
            index: withdrawal.index,
            validator_index: withdrawal.validator_index,
            address: withdrawal.address.to_alloy(),
            amount: withdrawal.amount,
        },
        withdrawal => Withdrawal {
            index: withdrawal.index,
            validator_index: withdrawal.validator_index,
            address: withdrawal.address.to_node(),
            amount: withdrawal.amount,
        };

    AccessListItem, eip2930::AccessListItem:
        item => eip2930::AccessListItem {
            address: item.address.to_alloy(),
            storage_keys: item.storage_keys.to_alloy(),
        },
        item => AccessListItem {
            address: item.address.to_node(),
            storage_keys: item.storage_keys.to_node(),
        };

    Signature, theirs::Signature:
        signature => theirs::Signature::new(signature.r.to_alloy(), signature.s.to_alloy(), signature.y_parity),
        signature => Signature { r: signature.r().to_node(), s: signature.s().to_node(), y_parity: signature.v() };

    Authorization, eip7702::SignedAuthorization:
        authorization => eip7702::SignedAuthorization::new_unchecked(
            eip7702::Authorization {
                chain_id: authorization.chain_id.to_alloy(),
                address: authorization.address.to_alloy(),
                nonce: authorization.nonce,
            },
            authorization.y_parity,
            authorization.r.to_alloy(),
            authorization.s.to_alloy(),
        ),
        authorization => Authorization {
            chain_id: authorization.chain_id.to_node(),
            address: authorization.address.to_node(),
            nonce: authorization.nonce,
            y_parity: authorization.y_parity(),
            r: authorization.r().to_node(),
            s: authorization.s().to_node(),
        };

    TransactionType, TxType:
        transaction_type => match transaction_type {
            TransactionType::Legacy => TxType::Legacy,
            TransactionType::AccessList => TxType::Eip2930,
            TransactionType::DynamicFee => TxType::Eip1559,
            TransactionType::Blob => TxType::Eip4844,
            TransactionType::SetCode => TxType::Eip7702,
        },
        transaction_type => match transaction_type {
            TxType::Legacy => TransactionType::Legacy,
            TxType::Eip2930 => TransactionType::AccessList,
            TxType::Eip1559 => TransactionType::DynamicFee,
            TxType::Eip4844 => TransactionType::Blob,
            TxType::Eip7702 => TransactionType::SetCode,
        };

    BlockNumberOrTag, alloy_eips::BlockNumberOrTag:
        block => match *block {
            BlockNumberOrTag::Number(number) => alloy_eips::BlockNumberOrTag::Number(number),
            BlockNumberOrTag::Earliest => alloy_eips::BlockNumberOrTag::Earliest,
            BlockNumberOrTag::Latest => alloy_eips::BlockNumberOrTag::Latest,
            BlockNumberOrTag::Pending => alloy_eips::BlockNumberOrTag::Pending,
            BlockNumberOrTag::Safe => alloy_eips::BlockNumberOrTag::Safe,
            BlockNumberOrTag::Finalized => alloy_eips::BlockNumberOrTag::Finalized,
        },
        block => match *block {
            alloy_eips::BlockNumberOrTag::Number(number) => BlockNumberOrTag::Number(number),
            alloy_eips::BlockNumberOrTag::Earliest => BlockNumberOrTag::Earliest,
            alloy_eips::BlockNumberOrTag::Latest => BlockNumberOrTag::Latest,
            alloy_eips::BlockNumberOrTag::Pending => BlockNumberOrTag::Pending,
            alloy_eips::BlockNumberOrTag::Safe => BlockNumberOrTag::Safe,
            alloy_eips::BlockNumberOrTag::Finalized => BlockNumberOrTag::Finalized,
        };

    BlockId, alloy_eips::BlockId:
        block => match block {
            BlockId::Number(number) => alloy_eips::BlockId::Number(number.to_alloy()),
            BlockId::Hash(hash) => alloy_eips::BlockId::Hash(hash.to_alloy().into()),
        },
        block => match block {
            alloy_eips::BlockId::Number(number) => BlockId::Number(number.to_node()),
            alloy_eips::BlockId::Hash(hash) => BlockId::Hash(hash.block_hash.to_node()),
        };
}

impl<T: ToAlloy> ToAlloy for [T] {
    type Alloy = Vec<T::Alloy>;

    fn to_alloy(&self) -> Vec<T::Alloy> {
        self.iter().map(ToAlloy::to_alloy).collect()
    }
}

impl<T: ToNode> ToNode for [T] {
    type Node = Vec<T::Node>;

    fn to_node(&self) -> Vec<T::Node> {
        self.iter().map(ToNode::to_node).collect()
    }
}

/// Implements `TryFrom` in both directions through the RLP encoding.
macro_rules! convert_encoded {
    ($($ours:ty, $theirs:ty: $error:ty, $decode:expr, $encode:expr;)+) => {$(
        impl TryFrom<&$ours> for $theirs {
            type Error = $error;

            fn try_from(ours: &$ours) -> Result<Self, Self::Error> {
                $decode(&ours.encode())
            }
        }

        impl TryFrom<&$theirs> for $ours {
            type Error = DecodeError;

            fn try_from(theirs: &$theirs) -> Result<Self, DecodeError> {
                Self::decode(&$encode(theirs))
            }
        }
    )+};
}

convert_encoded! {
    Header, alloy_consensus::Header: alloy_rlp::Error, decode_rlp, alloy_rlp::encode;
    Block, alloy_consensus::Block<TxEnvelope>: alloy_rlp::Error, decode_rlp, alloy_rlp::encode;
    Transaction, TxEnvelope: Eip2718Error, decode_2718, Encodable2718::encoded_2718;
    PooledTransaction, TxEnvelope: Eip2718Error, decode_2718, Encodable2718::encoded_2718;
    Receipt, ReceiptEnvelope: Eip2718Error, decode_2718, Encodable2718::encoded_2718;
}

fn decode_rlp<T: Decodable>(mut bytes: &[u8]) -> Result<T, alloy_rlp::Error> {
    T::decode(&mut bytes)
}

fn decode_2718<T: Decodable2718>(bytes: &[u8]) -> Eip2718Result<T> {
    T::decode_2718_exact(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::consensus::test_support::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_survive_both_conversions(
            log in log(),
            account in account(),
            withdrawal in withdrawal(),
            authorization in authorization(),
            transaction_type in transaction_type(),
        ) {
            prop_assert_eq!(transaction_type.to_alloy().to_node(), transaction_type);
            prop_assert_eq!(log.to_alloy().to_node(), log);
            prop_assert_eq!(account.to_alloy().to_node(), account);
            prop_assert_eq!(withdrawal.to_alloy().to_node(), withdrawal);
            prop_assert_eq!(authorization.to_alloy().to_node(), authorization);
        }

        #[test]
        fn objects_survive_both_conversions(
            header in header(),
            transaction in transaction_with(price),
            receipt in receipt(),
            block in block_with(price),
        ) {
            prop_assert_eq!(Header::try_from(&alloy_consensus::Header::try_from(&header).unwrap()), Ok(header));
            prop_assert_eq!(Transaction::try_from(&TxEnvelope::try_from(&transaction).unwrap()), Ok(transaction));
            prop_assert_eq!(Receipt::try_from(&ReceiptEnvelope::try_from(&receipt).unwrap()), Ok(receipt));
            let theirs = alloy_consensus::Block::<TxEnvelope>::try_from(&block).unwrap();
            prop_assert_eq!(Block::try_from(&theirs), Ok(block));
        }
    }

    #[test]
    fn block_identifiers_survive_both_conversions() {
        let blocks = ["7", "earliest", "latest", "pending", "safe", "finalized"];
        let hash = BlockId::Hash(H256::repeat_byte(1));
        for block in blocks.map(|block| block.parse().unwrap()).into_iter().chain([hash]) {
            assert_eq!(block.to_alloy().to_node(), block);
        }
    }

    #[test]
    fn fees_beyond_alloys_integers_are_refused() {
        let body = crate::consensus::DynamicFeeTransaction { max_fee_per_gas: U256::MAX, ..Default::default() };
        let body = crate::consensus::TransactionBody::DynamicFee(body);
        let transaction = Transaction { body, signature: Signature::default() };
        assert!(TxEnvelope::try_from(&transaction).is_err());
    }
}
