//! Transactions without a signature, blobs, and requests.

use super::ToAlloy;
use crate::Bytes;
use crate::consensus::{
    AccessListTransaction, BlobSidecar, BlobTransaction, DecodeError, DynamicFeeTransaction, LegacyTransaction,
    PooledTransaction, Request, SetCodeTransaction, Signature, Transaction, TransactionBody,
};
use alloy_consensus::{TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxEnvelope, TxLegacy, Typed2718, TypedTransaction};
use alloy_eips::eip2718::{Eip2718Error, Eip2718Result};
use alloy_eips::eip4844::BlobTransactionSidecar;
use alloy_eips::eip7594::{BlobTransactionSidecarEip7594, BlobTransactionSidecarVariant};
use alloy_primitives as theirs;
use std::array::TryFromSliceError;

impl TryFrom<&TransactionBody> for TypedTransaction {
    type Error = Eip2718Error;

    fn try_from(body: &TransactionBody) -> Eip2718Result<Self> {
        let signed = Transaction { body: body.clone(), signature: Signature::default() };
        TxEnvelope::try_from(&signed).map(Self::from)
    }
}

/// Ignores the sidecar of a blob transaction; convert a [`PooledTransaction`] to preserve it.
impl TryFrom<&TypedTransaction> for TransactionBody {
    type Error = DecodeError;

    fn try_from(theirs: &TypedTransaction) -> Result<Self, DecodeError> {
        let signed = theirs.clone().into_envelope(Signature::default().to_alloy());
        Ok(PooledTransaction::try_from(&signed)?.transaction.body)
    }
}

/// Implements `TryFrom` in both directions for the transactions of one type.
macro_rules! convert_bodies {
    ($($our:ident($ours:ty), $their:ident($theirs:ty);)+) => {$(
        impl TryFrom<&$ours> for $theirs {
            type Error = Eip2718Error;

            fn try_from(ours: &$ours) -> Eip2718Result<Self> {
                match TypedTransaction::try_from(&TransactionBody::$our(ours.clone()))? {
                    TypedTransaction::$their(theirs) => Ok(theirs.into()),
                    other => Err(Eip2718Error::UnexpectedType(other.ty())),
                }
            }
        }

        impl TryFrom<&$theirs> for $ours {
            type Error = DecodeError;

            fn try_from(theirs: &$theirs) -> Result<Self, DecodeError> {
                match TransactionBody::try_from(&TypedTransaction::$their(theirs.clone().into()))? {
                    TransactionBody::$our(ours) => Ok(ours),
                    other => Err(DecodeError::UnknownTransactionType(other.transaction_type() as u8)),
                }
            }
        }
    )+};
}

convert_bodies! {
    Legacy(LegacyTransaction), Legacy(TxLegacy);
    AccessList(AccessListTransaction), Eip2930(TxEip2930);
    DynamicFee(DynamicFeeTransaction), Eip1559(TxEip1559);
    Blob(BlobTransaction), Eip4844(TxEip4844);
    SetCode(SetCodeTransaction), Eip7702(TxEip7702);
}

/// Fails if a blob, commitment or proof does not have the length that alloy's types require.
impl TryFrom<&BlobSidecar> for BlobTransactionSidecarVariant {
    type Error = TryFromSliceError;

    fn try_from(sidecar: &BlobSidecar) -> Result<Self, TryFromSliceError> {
        Ok(match sidecar {
            BlobSidecar::V0 { blobs, commitments, proofs } => Self::Eip4844(BlobTransactionSidecar {
                blobs: fixed(blobs)?,
                commitments: fixed(commitments)?,
                proofs: fixed(proofs)?,
            }),
            BlobSidecar::V1 { blobs, commitments, cell_proofs } => Self::Eip7594(BlobTransactionSidecarEip7594 {
                blobs: fixed(blobs)?,
                commitments: fixed(commitments)?,
                cell_proofs: fixed(cell_proofs)?,
            }),
        })
    }
}

impl From<&BlobTransactionSidecarVariant> for BlobSidecar {
    fn from(theirs: &BlobTransactionSidecarVariant) -> Self {
        match theirs {
            BlobTransactionSidecarVariant::Eip4844(sidecar) => Self::V0 {
                blobs: variable(&sidecar.blobs),
                commitments: variable(&sidecar.commitments),
                proofs: variable(&sidecar.proofs),
            },
            BlobTransactionSidecarVariant::Eip7594(sidecar) => Self::V1 {
                blobs: variable(&sidecar.blobs),
                commitments: variable(&sidecar.commitments),
                cell_proofs: variable(&sidecar.cell_proofs),
            },
        }
    }
}

fn fixed<const N: usize>(items: &[Bytes]) -> Result<Vec<theirs::FixedBytes<N>>, TryFromSliceError> {
    // Blobs are copied in place: at 128 KiB each, a few of them would overflow the stack of a thread.
    let mut fixed = vec![theirs::FixedBytes::ZERO; items.len()];
    for (to, item) in fixed.iter_mut().zip(items) {
        to.0.copy_from_slice(<&[u8; N]>::try_from(item.as_ref())?);
    }
    Ok(fixed)
}

fn variable<const N: usize>(items: &[theirs::FixedBytes<N>]) -> Vec<Bytes> {
    items.iter().map(|item| Bytes::from(item.to_vec())).collect()
}

/// An element of alloy's `Requests`.
impl From<&Request> for theirs::Bytes {
    fn from(request: &Request) -> Self {
        request.encode().into()
    }
}

impl TryFrom<&theirs::Bytes> for Request {
    type Error = DecodeError;

    fn try_from(theirs: &theirs::Bytes) -> Result<Self, DecodeError> {
        Self::decode(theirs)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::consensus::RequestType;
    use crate::consensus::test_support::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bodies_survive_both_conversions(transaction in transaction_with(price)) {
            let body = transaction.body;
            let theirs = TypedTransaction::try_from(&body).unwrap();
            prop_assert_eq!(theirs.ty(), body.transaction_type() as u8);
            prop_assert_eq!(TransactionBody::try_from(&theirs), Ok(body.clone()));
            match body {
                TransactionBody::Legacy(body) => prop_assert_eq!((&TxLegacy::try_from(&body).unwrap()).try_into(), Ok(body)),
                TransactionBody::AccessList(body) => {
                    prop_assert_eq!((&TxEip2930::try_from(&body).unwrap()).try_into(), Ok(body));
                }
                TransactionBody::DynamicFee(body) => {
                    prop_assert_eq!((&TxEip1559::try_from(&body).unwrap()).try_into(), Ok(body));
                }
                TransactionBody::Blob(body) => prop_assert_eq!((&TxEip4844::try_from(&body).unwrap()).try_into(), Ok(body)),
                TransactionBody::SetCode(body) => {
                    prop_assert_eq!((&TxEip7702::try_from(&body).unwrap()).try_into(), Ok(body));
                }
            }
        }
    }

    /// Returns a sidecar of one blob whose bytes are all `byte`.
    fn sidecar(byte: u8) -> [BlobSidecar; 2] {
        let item = |length| vec![Bytes::from(vec![byte; length])];
        let (blobs, commitments) = (item(131_072), item(48));
        [
            BlobSidecar::V0 { blobs: blobs.clone(), commitments: commitments.clone(), proofs: item(48) },
            BlobSidecar::V1 { blobs, commitments, cell_proofs: vec![Bytes::from(vec![byte; 48]); 128] },
        ]
    }

    #[test]
    fn sidecars_survive_both_conversions_alone_and_with_their_transaction() {
        for sidecar in sidecar(3) {
            let theirs = BlobTransactionSidecarVariant::try_from(&sidecar).unwrap();
            assert_eq!(BlobSidecar::from(&theirs), sidecar);
            let body = TransactionBody::Blob(BlobTransaction::default());
            let transaction = Transaction { body, signature: Signature::default() };
            let pooled = PooledTransaction { transaction, sidecar: Some(sidecar) };
            let theirs = TxEnvelope::try_from(&pooled).unwrap();
            assert_eq!(PooledTransaction::try_from(&theirs), Ok(pooled));
        }
        let short = BlobSidecar::V0 { blobs: vec![Bytes::new()], commitments: vec![], proofs: vec![] };
        assert!(BlobTransactionSidecarVariant::try_from(&short).is_err());
    }

    #[test]
    fn requests_survive_both_conversions() {
        let request = Request { request_type: RequestType::Consolidation, data: Bytes::from_static(b"request") };
        assert_eq!(Request::try_from(&theirs::Bytes::from(&request)), Ok(request));
        for invalid in [&[][..], &[3, 1]] {
            assert!(Request::try_from(&theirs::Bytes::copy_from_slice(invalid)).is_err(), "{invalid:?}");
        }
    }
}
