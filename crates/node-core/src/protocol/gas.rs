//! Gas that a transaction uses before any code runs, and limits on the gas of transactions and blocks.

use crate::protocol::Fork;
use node_types::consensus::TransactionBody;
use std::ops::RangeInclusive;

/// Maximum gas limit of a transaction since Osaka (EIP-7825).
pub const TRANSACTION_GAS_CAP: u64 = 1 << 24;

/// Maximum length of init code in bytes since Shanghai (EIP-3860).
pub const MAX_INIT_CODE_SIZE: usize = 49_152;

/// Valid gas limits of a block (Yellow Paper, equation 48; EIP-1985).
pub const BLOCK_GAS_LIMITS: RangeInclusive<u64> = 5_000..=i64::MAX as u64;

/// The gas limits of a block and its parent differ by less than the parent's divided by this (Yellow Paper, section
/// 4.4.4).
const GAS_LIMIT_BOUND_DIVISOR: u64 = 1_024;

/// Returns whether a block may have the gas limit `limit` if its parent has the gas limit `parent`.
pub fn is_gas_limit_step(parent: u64, limit: u64) -> bool {
    limit.abs_diff(parent) < parent / GAS_LIMIT_BOUND_DIVISOR
}

/// Returns the valid gas limit nearest to `wanted` for a block whose parent has the gas limit `parent`.
pub fn gas_limit_towards(parent: u64, wanted: u64) -> u64 {
    let most = (parent / GAS_LIMIT_BOUND_DIVISOR).saturating_sub(1);
    wanted.clamp(parent - most, parent.saturating_add(most))
}

/// Gas of every transaction (Yellow Paper, appendix G).
pub const TRANSACTION_GAS: u64 = 21_000;
/// Additional gas of a contract creation, since Homestead (EIP-2).
const CREATION: u64 = 32_000;
/// Gas of a zero byte of call data.
const ZERO_BYTE: u64 = 4;
/// Gas of any other byte of call data, before Istanbul.
const NON_ZERO_BYTE: u64 = 68;
/// Gas of any other byte of call data, since Istanbul (EIP-2028).
const NON_ZERO_BYTE_ISTANBUL: u64 = 16;
/// Gas of an address in the access list (EIP-2930).
const ACCESS_LIST_ADDRESS: u64 = 2_400;
/// Gas of a storage key in the access list (EIP-2930).
const ACCESS_LIST_STORAGE_KEY: u64 = 1_900;
/// Gas of 32 bytes of init code, since Shanghai (EIP-3860).
const INIT_CODE_WORD: u64 = 2;
/// Gas of an authorization (EIP-7702).
const AUTHORIZATION: u64 = 25_000;
/// Gas of a token of call data in the floor price, since Prague (EIP-7623).
const FLOOR_TOKEN: u64 = 10;
/// Tokens in a non-zero byte of call data. A zero byte is one token (EIP-7623).
const TOKENS_PER_NON_ZERO_BYTE: u64 = 4;

/// Returns the intrinsic gas: the gas that is used before any code runs (Yellow Paper, section 6.2, g0). The gas limit
/// of a transaction must not be below it.
pub fn intrinsic_gas(fork: Fork, body: &TransactionBody) -> u64 {
    let input = InputBytes::count(body.input());
    let non_zero_byte = if fork >= Fork::Istanbul { NON_ZERO_BYTE_ISTANBUL } else { NON_ZERO_BYTE };
    let creation = match body.to() {
        None if fork >= Fork::Shanghai => CREATION + INIT_CODE_WORD * to_u64(body.input().len().div_ceil(32)),
        None if fork >= Fork::Homestead => CREATION,
        _ => 0,
    };
    let access_list: u64 = (body.access_list().iter())
        .map(|item| ACCESS_LIST_ADDRESS + ACCESS_LIST_STORAGE_KEY * to_u64(item.storage_keys.len()))
        .sum();
    TRANSACTION_GAS
        + ZERO_BYTE * input.zero
        + non_zero_byte * input.non_zero
        + creation
        + access_list
        + AUTHORIZATION * to_u64(body.authorization_list().len())
}

/// Returns the floor price of the call data in gas, which is charged if execution uses less gas, or `None` before
/// Prague (EIP-7623). The gas limit of a transaction must not be below it.
pub fn floor_gas(fork: Fork, body: &TransactionBody) -> Option<u64> {
    (fork >= Fork::Prague).then(|| {
        let input = InputBytes::count(body.input());
        TRANSACTION_GAS + FLOOR_TOKEN * (input.zero + TOKENS_PER_NON_ZERO_BYTE * input.non_zero)
    })
}

/// The numbers of zero and non-zero bytes of call data.
struct InputBytes {
    zero: u64,
    non_zero: u64,
}

impl InputBytes {
    fn count(input: &[u8]) -> Self {
        let zero = to_u64(input.iter().filter(|byte| **byte == 0).count());
        Self { zero, non_zero: to_u64(input.len()) - zero }
    }
}

/// Converts a length. Lengths of data in memory are too small for the sums above to overflow.
fn to_u64(length: usize) -> u64 {
    length as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::consensus::{
        AccessListItem, AccessListTransaction, Authorization, LegacyTransaction, SetCodeTransaction,
    };
    use node_types::{Address, H256};

    fn legacy(to: Option<Address>, input: Vec<u8>) -> TransactionBody {
        TransactionBody::Legacy(LegacyTransaction { to, input: input.into(), ..Default::default() })
    }

    #[test]
    fn intrinsic_gas_follows_the_eips() {
        let to = Some(Address::zero());
        let access_list = vec![AccessListItem { address: Address::zero(), storage_keys: vec![H256::zero(); 3] }; 2];
        let cases = [
            ("transfer", Fork::Frontier, legacy(to, vec![]), 21_000),
            ("creation before EIP-2", Fork::Frontier, legacy(None, vec![]), 21_000),
            ("creation", Fork::Homestead, legacy(None, vec![]), 53_000),
            ("data before EIP-2028", Fork::Petersburg, legacy(to, vec![0, 0, 1]), 21_000 + 2 * 4 + 68),
            ("data", Fork::Istanbul, legacy(to, vec![0, 0, 1]), 21_000 + 2 * 4 + 16),
            ("init code before EIP-3860", Fork::Paris, legacy(None, vec![1; 33]), 53_000 + 33 * 16),
            ("init code", Fork::Shanghai, legacy(None, vec![1; 33]), 53_000 + 33 * 16 + 2 * 2),
            (
                "access list",
                Fork::Berlin,
                TransactionBody::AccessList(AccessListTransaction { to, access_list, ..Default::default() }),
                21_000 + 2 * (2_400 + 3 * 1_900),
            ),
            (
                "authorizations",
                Fork::Prague,
                TransactionBody::SetCode(SetCodeTransaction {
                    authorization_list: vec![Authorization::default(); 3],
                    ..Default::default()
                }),
                21_000 + 3 * 25_000,
            ),
        ];
        for (name, fork, body, expected) in cases {
            assert_eq!(intrinsic_gas(fork, &body), expected, "{name}");
        }
    }

    #[test]
    fn floor_gas_counts_tokens_since_prague() {
        let body = legacy(Some(Address::zero()), vec![0, 0, 1]);
        assert_eq!(floor_gas(Fork::Cancun, &body), None);
        assert_eq!(floor_gas(Fork::Prague, &body), Some(21_000 + 10 * (2 + 4)));
    }
}
