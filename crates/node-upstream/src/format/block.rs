//! Headers and blocks.

use crate::bounded::up_to;
use crate::error::Wrong;
use crate::message::clean;
use crate::upstream::{Rejection, read};
use node_types::consensus::{Header, HeaderField, Withdrawal};
use node_types::wire::{AddressData, BloomData, BytesData, HashData, HeaderMember, NonceData, Quantity64, Quantity256};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Members of a block that are not fields of its header.
const NOT_IN_HEADERS: [&str; 7] =
    ["hash", "size", "totalDifficulty", "transactions", "uncles", "withdrawals", "ommers"];

/// Maximum length of a block in which unknown fields are searched: each takes much more memory than text.
const MAX_SEARCHED: usize = 1 << 20;

/// The number of unknown fields that an error lists.
const MAX_LISTED: usize = 8;

/// Declares the members of a header; after the type of each follows the field of [`Header`].
macro_rules! header {
    ($($member:ident $name:literal: $type:ty = $field:ident,)+) => {
        #[derive(Deserialize)]
        struct HeaderJson {
            hash: HashData,
            $(#[serde(rename = $name)] $member: $type,)+
        }

        const IN_HEADERS: [&str; [$($name),+].len()] = [$($name),+];

        impl HeaderJson {
            fn header(&self) -> Option<Header> {
                Some(Header { $($field: HeaderMember::read(&self.$member)?,)+ })
            }
        }
    };
}

header! {
    parent_hash "parentHash": HashData = parent_hash,
    sha3_uncles "sha3Uncles": HashData = ommers_hash,
    miner "miner": AddressData = beneficiary,
    state_root "stateRoot": HashData = state_root,
    transactions_root "transactionsRoot": HashData = transactions_root,
    receipts_root "receiptsRoot": HashData = receipts_root,
    logs_bloom "logsBloom": BloomData = logs_bloom,
    difficulty "difficulty": Quantity256 = difficulty,
    number "number": Quantity64 = number,
    gas_limit "gasLimit": Quantity64 = gas_limit,
    gas_used "gasUsed": Quantity64 = gas_used,
    timestamp "timestamp": Quantity64 = timestamp,
    extra_data "extraData": BytesData = extra_data,
    mix_hash "mixHash": HashData = mix_hash,
    nonce "nonce": NonceData = nonce,
    base_fee_per_gas "baseFeePerGas": Option<Quantity64> = base_fee_per_gas,
    withdrawals_root "withdrawalsRoot": Option<HashData> = withdrawals_root,
    blob_gas_used "blobGasUsed": Option<Quantity64> = blob_gas_used,
    excess_blob_gas "excessBlobGas": Option<Quantity64> = excess_blob_gas,
    parent_beacon_block_root "parentBeaconBlockRoot": Option<HashData> = parent_beacon_block_root,
    requests_hash "requestsHash": Option<HashData> = requests_hash,
}

/// Reads the header of a block, whose hash is the one that the block claims to have.
pub(crate) fn header(block: &RawValue) -> Result<Header, Rejection> {
    let json: HeaderJson = read(block)?;
    let malformed = || Wrong::Malformed("a header lacks a field".to_owned());
    let header = json.header().ok_or_else(malformed)?;
    if !HeaderField::ALL.is_sorted_by_key(|field| !field.is_present(&header)) {
        return Err(malformed().into());
    }
    let (computed, expected) = (header.hash(), *json.hash);
    if computed == expected {
        return Ok(header);
    }
    Err(Wrong::HeaderHash { computed, expected, unknown: unknown_fields(block) }.into())
}

/// Returns the names of members that are not known, which may be fields of a header.
fn unknown_fields(block: &RawValue) -> Vec<String> {
    let searched = Some(block.get()).filter(|text| text.len() <= MAX_SEARCHED);
    let members = searched.and_then(|text| serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text).ok());
    let names = members.unwrap_or_default().into_keys().filter(|name| {
        let known = IN_HEADERS.iter().chain(&NOT_IN_HEADERS);
        !known.into_iter().any(|known| known == name)
    });
    names.take(MAX_LISTED).map(|name| clean(&name)).collect()
}

/// What a block contains beside its header.
#[derive(Deserialize)]
pub(crate) struct BlockContents<'a> {
    #[serde(borrow, deserialize_with = "up_to::<65536, _, _>")]
    pub(crate) transactions: Vec<&'a RawValue>,
    #[serde(default, deserialize_with = "up_to::<2, _, _>")]
    pub(crate) uncles: Vec<HashData>,
    withdrawals: Option<Vec<WithdrawalJson>>,
}

impl BlockContents<'_> {
    /// Returns the withdrawals.
    pub(crate) fn withdrawals(&self) -> Option<Vec<Withdrawal>> {
        let all = self.withdrawals.as_ref()?;
        Some(all.iter().map(WithdrawalJson::read).collect())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WithdrawalJson {
    index: Quantity64,
    validator_index: Quantity64,
    address: AddressData,
    amount: Quantity64,
}

impl WithdrawalJson {
    fn read(&self) -> Withdrawal {
        Withdrawal {
            index: *self.index,
            validator_index: *self.validator_index,
            address: *self.address,
            amount: *self.amount,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::H256;

    fn read_header(json: &str) -> Result<Header, Rejection> {
        header(&RawValue::from_string(json.to_owned()).unwrap())
    }

    fn block(extra: &str, hash: H256) -> String {
        let zero = format!("\"0x{}\"", "0".repeat(64));
        let (address, bloom) = (format!("\"0x{}\"", "0".repeat(40)), format!("\"0x{}\"", "0".repeat(512)));
        format!(
            r#"{{"hash":"{hash:#x}","parentHash":{zero},"sha3Uncles":{zero},"miner":{address},"stateRoot":{zero},
            "transactionsRoot":{zero},"receiptsRoot":{zero},"logsBloom":{bloom},"difficulty":"0x0","number":"0x7",
            "gasLimit":"0x0","gasUsed":"0x0","timestamp":"0x0","extraData":"0x","mixHash":{zero},
            "nonce":"0x0000000000000000","size":"0x1",{extra}"transactions":[],"uncles":[]}}"#
        )
    }

    #[test]
    fn headers_have_their_hash() {
        let expected = Header { number: 7, ..Header::default() };
        assert_eq!(read_header(&block("", expected.hash())).ok(), Some(expected.clone()));
        let london = Header { base_fee_per_gas: Some(16), ..expected };
        assert_eq!(read_header(&block("\"baseFeePerGas\":\"0x10\",", london.hash())).ok(), Some(london));
        assert!(matches!(read_header("null"), Err(Rejection::NotFound)));
    }

    #[test]
    fn fields_that_are_not_known_are_listed() {
        let Err(Rejection::Wrong(wrong)) = read_header(&block("\"slotNumber\":\"0x1\",", H256::zero())) else {
            panic!("the header has another hash");
        };
        assert!(wrong.to_string().ends_with("; fields that are not known here: slotNumber"), "{wrong}");
    }

    #[test]
    fn malformed_headers_are_wrong() {
        let missing = "\"withdrawalsRoot\":\"0x0000000000000000000000000000000000000000000000000000000000000000\",";
        for json in
            ["{}", "[]", "7", "\"0x\"", &block(missing, H256::zero()), &block("\"number\":\"0x8\",", H256::zero())]
        {
            let Err(Rejection::Wrong(wrong)) = read_header(json) else { panic!("{json}") };
            assert!(matches!(*wrong, Wrong::Malformed(_)), "{json}: {wrong}");
        }
    }
}
