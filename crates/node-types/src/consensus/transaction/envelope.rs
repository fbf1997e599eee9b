//! Transaction types, and the envelopes of transactions and receipts (EIP-2718).

use crate::consensus::codec::DecodeError;
use rlp::RlpStream;

/// The type byte of a transaction (EIP-2718).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TransactionType {
    /// Legacy: the format before EIP-2718, with or without replay protection (EIP-155).
    Legacy = 0,
    /// With an access list (EIP-2930).
    AccessList = 1,
    /// With a fee cap and a tip cap (EIP-1559).
    DynamicFee = 2,
    /// Carrying blobs (EIP-4844).
    Blob = 3,
    /// Setting the code of accounts (EIP-7702).
    SetCode = 4,
}

/// Returns a stream that begins with the type byte. Type 0 has none.
pub(in crate::consensus) fn enveloped(transaction_type: TransactionType) -> RlpStream {
    let mut buffer = ::bytes::BytesMut::with_capacity(512);
    if transaction_type != TransactionType::Legacy {
        buffer.extend_from_slice(&[transaction_type as u8]);
    }
    RlpStream::new_with_buffer(buffer)
}

/// Splits an encoding into its type and the list that follows the type byte.
pub(in crate::consensus) fn open_envelope<'a>(
    bytes: &'a [u8],
    field: &'static str,
) -> Result<(TransactionType, &'a [u8]), DecodeError> {
    match bytes {
        [] => Err(DecodeError::Truncated { field }),
        [0xc0..=0xff, ..] => Ok((TransactionType::Legacy, bytes)),
        // Type bytes are below 0x80 (EIP-2718), where RLP lists begin at 0xc0.
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
