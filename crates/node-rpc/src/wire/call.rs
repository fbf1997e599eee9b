//! Calls and their overrides.

use super::Hex;
use super::block::Withdrawal;
use super::transaction::{AccessListItem, Authorization};
use crate::error::RpcError;
use node_core::executor::{self, Call, StorageOverride};
use node_types::wire::{AddressData, BytesData, HashData};
use node_types::{H256, U256};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The fields of a call: those of a transaction. Unknown fields are ignored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallArguments {
    pub(crate) from: Option<AddressData>,
    pub(crate) to: Option<AddressData>,
    pub(crate) gas: Option<Hex<u64>>,
    pub(crate) gas_price: Option<Hex<U256>>,
    pub(crate) max_fee_per_gas: Option<Hex<U256>>,
    pub(crate) max_priority_fee_per_gas: Option<Hex<U256>>,
    pub(crate) value: Option<Hex<U256>>,
    pub(crate) nonce: Option<Hex<u64>>,
    pub(crate) data: Option<BytesData>,
    pub(crate) input: Option<BytesData>,
    pub(crate) access_list: Option<Vec<AccessListItem>>,
    pub(crate) chain_id: Option<Hex<U256>>,
    pub(crate) max_fee_per_blob_gas: Option<Hex<U256>>,
    pub(crate) blob_versioned_hashes: Option<Vec<HashData>>,
    pub(crate) authorization_list: Option<Vec<Authorization>>,
}

/// Overrides for the state of a call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct StateOverrides(BTreeMap<AddressData, AccountOverrideParam>);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AccountOverrideParam {
    nonce: Option<Hex<u64>>,
    code: Option<BytesData>,
    balance: Option<Hex<U256>>,
    state: Option<BTreeMap<HashData, HashData>>,
    state_diff: Option<BTreeMap<HashData, HashData>>,
    move_precompile_to_address: Option<AddressData>,
}

/// Overrides for the block environment of a call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BlockOverrides {
    number: Option<Hex<u64>>,
    difficulty: Option<Hex<U256>>,
    time: Option<Hex<u64>>,
    gas_limit: Option<Hex<u64>>,
    fee_recipient: Option<AddressData>,
    prev_randao: Option<HashData>,
    base_fee_per_gas: Option<Hex<u64>>,
    blob_base_fee: Option<Hex<U256>>,
    beacon_root: Option<HashData>,
    withdrawals: Option<Vec<Withdrawal>>,
}

impl CallArguments {
    /// Converts the call, which must be for the chain `chain_id`, without overrides.
    pub(crate) fn read(self, chain_id: u64) -> Result<Call, RpcError> {
        let capped = self.max_fee_per_gas.is_some() || self.max_priority_fee_per_gas.is_some();
        if self.gas_price.is_some() && capped {
            return Err(RpcError::server("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified"));
        }
        if let Some(got) = self.chain_id.filter(|got| got.0 != chain_id.into()) {
            let message = format!("chainId does not match node's (have={}, want={chain_id})", got.0);
            return Err(RpcError::server(message));
        }
        if matches!((&self.data, &self.input), (Some(data), Some(input)) if data != input) {
            let message = "both \"data\" and \"input\" are set and not equal, use \"input\" to pass call data";
            return Err(RpcError::server(message));
        }
        let blobs = self.blob_versioned_hashes.as_deref();
        if blobs.is_some_and(<[HashData]>::is_empty) {
            return Err(RpcError::server("need at least 1 blob for a blob transaction"));
        }
        if blobs.is_some() && self.to.is_none() {
            return Err(RpcError::server("missing \"to\" in blob transaction"));
        }
        if self.authorization_list.is_some() && self.to.is_none() {
            return Err(RpcError::server("missing \"to\" in set-code transaction"));
        }
        let number = |hex: Option<Hex<U256>>| hex.map_or_else(U256::zero, |hex| hex.0);
        let (gas_price, max_priority_fee_per_gas) = match self.gas_price {
            Some(price) => (price.0, None),
            None => (number(self.max_fee_per_gas), Some(number(self.max_priority_fee_per_gas))),
        };
        Ok(Call {
            from: self.from.unwrap_or_default().0,
            to: self.to.map(|to| to.0),
            gas: self.gas.map(|gas| gas.0),
            gas_price,
            max_priority_fee_per_gas,
            value: number(self.value),
            input: self.input.or(self.data).unwrap_or_default().0,
            nonce: self.nonce.map(|nonce| nonce.0),
            access_list: self.access_list.unwrap_or_default().into_iter().map(AccessListItem::read).collect(),
            max_fee_per_blob_gas: number(self.max_fee_per_blob_gas),
            blob_versioned_hashes: self
                .blob_versioned_hashes
                .unwrap_or_default()
                .into_iter()
                .map(|hash| hash.0)
                .collect(),
            authorization_list: (self.authorization_list.unwrap_or_default().into_iter())
                .map(Authorization::read)
                .collect(),
            ..Call::default()
        })
    }

    /// Converts the call with its overrides. Withdrawals and a beacon root are rejected, because only simulated
    /// blocks have them.
    pub(crate) fn read_with(
        self,
        chain_id: u64,
        state: Option<StateOverrides>,
        block: Option<BlockOverrides>,
    ) -> Result<Call, RpcError> {
        let block_overrides = block.unwrap_or_default();
        if block_overrides.beacon_root.is_some() {
            return Err(RpcError::server("block override \"beaconRoot\" is not supported for this RPC method"));
        }
        if block_overrides.withdrawals.is_some() {
            return Err(RpcError::server("block override \"withdrawals\" is not supported for this RPC method"));
        }
        Ok(Call {
            overrides: state.unwrap_or_default().read()?,
            block_overrides: block_overrides.read(),
            ..self.read(chain_id)?
        })
    }
}

impl StateOverrides {
    /// Converts the overrides.
    ///
    /// # Errors
    /// If an override contradicts itself.
    pub(crate) fn read(self) -> Result<executor::StateOverrides, RpcError> {
        self.0.into_iter().map(|(address, account)| Ok((address.0, account.read(address)?))).collect()
    }
}

impl AccountOverrideParam {
    fn read(self, address: AddressData) -> Result<executor::AccountOverride, RpcError> {
        let slots = |slots: BTreeMap<HashData, HashData>| -> BTreeMap<H256, U256> {
            slots.into_iter().map(|(slot, value)| (slot.0, U256::from_big_endian(value.0.as_bytes()))).collect()
        };
        let storage = match (self.state, self.state_diff) {
            (None, None) => StorageOverride::Keep,
            (None, Some(diff)) => StorageOverride::Patch(slots(diff)),
            (Some(state), None) => StorageOverride::Replace(slots(state)),
            (Some(_), Some(_)) => {
                return Err(RpcError::server(format!("account {address} has both 'state' and 'stateDiff'")));
            }
        };
        Ok(executor::AccountOverride {
            balance: self.balance.map(|balance| balance.0),
            code: self.code.map(|code| code.0),
            nonce: self.nonce.map(|nonce| nonce.0),
            storage,
            move_precompile_to: self.move_precompile_to_address.map(|to| to.0),
        })
    }
}

impl BlockOverrides {
    /// Converts the overrides.
    pub(crate) fn read(self) -> executor::BlockOverrides {
        executor::BlockOverrides {
            number: self.number.map(|number| number.0),
            difficulty: self.difficulty.map(|difficulty| difficulty.0),
            time: self.time.map(|time| time.0),
            gas_limit: self.gas_limit.map(|limit| limit.0),
            fee_recipient: self.fee_recipient.map(|recipient| recipient.0),
            prev_randao: self.prev_randao.map(|randao| randao.0),
            base_fee_per_gas: self.base_fee_per_gas.map(|fee| fee.0),
            blob_base_fee: self.blob_base_fee.map(|fee| fee.0),
            beacon_root: self.beacon_root.map(|root| root.0),
            withdrawals: self.withdrawals.map(Withdrawal::read_all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Call, RpcError> {
        serde_json::from_str::<CallArguments>(json).unwrap().read(7)
    }

    #[test]
    fn prices_and_caps() {
        let cases = [
            ("{}", (0, Some(0))),
            (r#"{"gasPrice":"0x5"}"#, (5, None)),
            (r#"{"maxFeePerGas":"0x5"}"#, (5, Some(0))),
            (r#"{"maxFeePerGas":"0x5","maxPriorityFeePerGas":"0x2"}"#, (5, Some(2))),
        ];
        for (json, (price, tip)) in cases {
            let call = read(json).unwrap();
            assert_eq!((call.gas_price, call.max_priority_fee_per_gas), (price.into(), tip.map(U256::from)), "{json}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let hash = format!("0x{}", "01".repeat(32));
        let cases = [
            (r#"{"gasPrice":"0x1","maxFeePerGas":"0x1"}"#.to_owned(), "both gasPrice"),
            (r#"{"chainId":"0x8"}"#.to_owned(), "chainId does not match"),
            (r#"{"data":"0x01","input":"0x02"}"#.to_owned(), "not equal"),
            (r#"{"blobVersionedHashes":[],"to":"0x0000000000000000000000000000000000000001"}"#.to_owned(), "1 blob"),
            (format!(r#"{{"blobVersionedHashes":["{hash}"]}}"#), "missing \"to\""),
            (r#"{"authorizationList":[]}"#.to_owned(), "missing \"to\""),
        ];
        for (json, expected) in cases {
            let error = read(&json).unwrap_err();
            assert_eq!(error.code, RpcError::SERVER, "{json}");
            assert!(error.message.contains(expected), "{json}: {}", error.message);
        }
        assert!(read(r#"{"data":"0x01","input":"0x01","chainId":"0x7","unknown":[]}"#).is_ok());
    }

    #[test]
    fn storage_is_replaced_or_patched() {
        let (slot, value) = (H256::repeat_byte(1), U256::from(2));
        let slots = format!(r#"{{"{slot:#x}":"{:#x}"}}"#, H256::from_low_u64_be(2));
        let of = |fields: &str| {
            let json = format!(r#"{{"0x0000000000000000000000000000000000000009":{{{fields}}}}}"#);
            let read = serde_json::from_str::<StateOverrides>(&json).unwrap().read();
            read.map(|accounts| accounts.into_values().next().unwrap().storage)
        };
        let expected = BTreeMap::from([(slot, value)]);
        assert_eq!(of("").unwrap(), StorageOverride::Keep);
        assert_eq!(of(&format!(r#""state":{slots}"#)).unwrap(), StorageOverride::Replace(expected.clone()));
        assert_eq!(of(&format!(r#""stateDiff":{slots}"#)).unwrap(), StorageOverride::Patch(expected));
        assert!(of(&format!(r#""state":{slots},"stateDiff":{slots}"#)).is_err());
    }
}
