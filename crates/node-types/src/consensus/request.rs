//! Execution-layer requests (EIP-7685).

use super::DecodeError;
use crate::{Bytes, H256};
use hmac_sha256::Hash as Sha256;

/// The type of an execution request, the first byte of its encoding (EIP-7685).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RequestType {
    /// Validator deposits (EIP-6110).
    Deposit = 0,
    /// Validator withdrawals (EIP-7002).
    Withdrawal = 1,
    /// Validator consolidations (EIP-7251).
    Consolidation = 2,
}

/// All requests of one type in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub request_type: RequestType,
    /// The concatenated encoded requests.
    pub data: Bytes,
}

impl Request {
    /// Returns the type byte followed by the requests, as EIP-7685 defines.
    pub fn encode(&self) -> Vec<u8> {
        [&[self.request_type as u8], self.data.as_ref()].concat()
    }

    /// Decodes the type byte and the requests that follow it.
    ///
    /// # Errors
    /// If the type byte is missing or unknown.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (type_byte, data) = bytes.split_first().ok_or(DecodeError::Truncated { field: "request" })?;
        let request_type = match type_byte {
            0 => RequestType::Deposit,
            1 => RequestType::Withdrawal,
            2 => RequestType::Consolidation,
            other => return Err(DecodeError::UnknownRequestType(*other)),
        };
        Ok(Self { request_type, data: data.to_vec().into() })
    }
}

/// The requests hash of a block without requests: the SHA-256 of the empty string.
pub const EMPTY_REQUESTS_HASH: H256 = H256([
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41,
    0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
]);

/// Returns the commitment to a block's requests (EIP-7685): SHA-256 of the concatenated SHA-256 of each encoded
/// [`Request`] that is not empty, in ascending order of kinds.
pub fn requests_hash(requests: &[Request]) -> H256 {
    let mut present: Vec<&Request> = requests.iter().filter(|request| !request.data.is_empty()).collect();
    present.sort_by_key(|request| request.request_type);
    let mut outer = Sha256::new();
    for request in present {
        outer.update(Sha256::hash(&request.encode()));
    }
    H256(outer.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(request_type: RequestType, data: &'static [u8]) -> Request {
        Request { request_type, data: Bytes::from_static(data) }
    }

    fn sha256(bytes: &[u8]) -> [u8; 32] {
        Sha256::hash(bytes)
    }

    #[test]
    fn empty_requests_hash_is_sha256_of_nothing() {
        assert_eq!(EMPTY_REQUESTS_HASH, H256(sha256(&[])));
    }

    #[test]
    fn hash_skips_empty_lists_and_orders_types() {
        let deposit = request(RequestType::Deposit, b"deposit");
        let withdrawal = request(RequestType::Withdrawal, b"");
        let consolidation = request(RequestType::Consolidation, b"consolidation");
        let both = H256(sha256(&[sha256(b"\x00deposit"), sha256(b"\x02consolidation")].concat()));
        let cases: [(&str, &[Request], H256); 4] = [
            ("none", &[], EMPTY_REQUESTS_HASH),
            ("only an empty list", std::slice::from_ref(&withdrawal), EMPTY_REQUESTS_HASH),
            ("ascending", &[deposit.clone(), withdrawal.clone(), consolidation.clone()], both),
            ("descending", &[consolidation, withdrawal.clone(), deposit], both),
        ];
        for (name, requests, expected) in cases {
            assert_eq!(requests_hash(requests), expected, "{name}");
        }
    }
}
