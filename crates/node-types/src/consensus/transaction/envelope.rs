//! Typed envelopes (EIP-2718), which transactions and receipts share.

use super::TransactionType;
use crate::consensus::codec::DecodeError;
use rlp::RlpStream;

/// A stream behind the type byte of `transaction_type`; type 0 has none.
pub(in crate::consensus) fn enveloped(transaction_type: TransactionType) -> RlpStream {
    let mut buffer = ::bytes::BytesMut::with_capacity(512);
    if transaction_type != TransactionType::Legacy {
        buffer.extend_from_slice(&[transaction_type as u8]);
    }
    RlpStream::new_with_buffer(buffer)
}

/// Splits an encoding into its type and the list behind the type byte.
pub(in crate::consensus) fn open_envelope<'a>(
    bytes: &'a [u8],
    field: &'static str,
) -> Result<(TransactionType, &'a [u8]), DecodeError> {
    match bytes {
        [] => Err(DecodeError::Truncated { field }),
        [0xc0..=0xff, ..] => Ok((TransactionType::Legacy, bytes)),
        // Type bytes end below the prefixes of RLP.
        [0x80..=0xbf, ..] => Err(DecodeError::NotAList { field }),
        [type_byte, list @ ..] => match TransactionType::try_from(*type_byte)? {
            // Type 0 has no type byte.
            TransactionType::Legacy => Err(DecodeError::UnknownTransactionType(0)),
            transaction_type => Ok((transaction_type, list)),
        },
    }
}

impl TryFrom<u8> for TransactionType {
    type Error = DecodeError;

    fn try_from(byte: u8) -> Result<Self, DecodeError> {
        match byte {
            0 => Ok(Self::Legacy),
            1 => Ok(Self::AccessList),
            2 => Ok(Self::DynamicFee),
            3 => Ok(Self::Blob),
            4 => Ok(Self::SetCode),
            _ => Err(DecodeError::UnknownTransactionType(byte)),
        }
    }
}
