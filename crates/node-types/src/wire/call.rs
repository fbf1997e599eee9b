//! Calls and gas estimates.

use super::decode::{Decode, Faults, Faulty, Input, ObjectDecoder, deserialize_by_decoding, wire_objects};
use super::text::TextError;
use super::{
    AccessListItem, AccountOverride, AddressData, Authorization, BytesData, EstimateGasObject, HashData, Quantity64,
    Quantity256,
};
use crate::{Address, BlockId};
use serde::Serialize;
use std::collections::BTreeMap;

wire_objects! {
    /// The request body of call and estimateGas.
    request CallInput {
        /// The block whose environment and resulting state are used; the latest if absent.
        #[cfg_attr(feature = "schema", schema(required = false))]
        block_number: BlockId = optional_or_default("BlockNumber"),
        /// State overrides for this request.
        #[serde(skip_serializing_if = "Option::is_none")]
        object: Option<EstimateGasObject> = optional("Object"),
        /// The call.
        transaction: TransactionCall = required("Transaction"),
        => |decoder| {
            // A flat override has no addresses: it applies to the sender and the receiver of the transaction. Faults of
            // other properties do not matter.
            if let Some(flat) = decoder.read("Object", EstimateGasObject::good_properties) {
                if flat.changes_sender() && decoder.lacks("Transaction", "From") {
                    decoder.missing_in("Transaction", "From", "because Object overrides its Balance or Nonce");
                }
                if flat.changes_recipient() && decoder.lacks("Transaction", "To") {
                    decoder.missing_in("Transaction", "To", "because Object overrides its Code, State or StateDiff");
                }
            }
        }
    }
}

/// The request body of estimateGas.
pub type EstimateGasInput = CallInput;

wire_objects! {
    /// The response of call.
    response CallOutput {
        /// The return data; for a contract creation, the code that would be deployed.
        data: BytesData,
    }

    /// The response of estimateGas.
    response EstimateGasOutput {
        /// A gas limit with which the transaction succeeds.
        estimated_gas: Quantity64,
    }
}

/// The first byte of the versioned hash of a blob (EIP-4844).
const VERSION_OF_KZG: u8 = 1;

/// A message call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Params_Transaction))]
#[serde(rename_all = "PascalCase")]
pub struct TransactionCall {
    /// Accounts and storage slots to warm (EIP-2930).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_list: Option<Vec<AccessListItem>>,
    /// Authorizations that delegate accounts to code (EIP-7702). Requires `To`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_list: Option<Vec<Authorization>>,
    /// Versioned hashes of the blobs (EIP-4844). Requires `To`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob_versioned_hashes: Option<Vec<HashData>>,
    /// Call data; creation code if `To` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<BytesData>,
    /// Sender; the zero address if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<AddressData>,
    /// Gas limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gas: Option<Quantity64>,
    /// Price in wei per gas. If absent or zero, fees are not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gas_price: Option<Quantity256>,
    /// Highest price in wei per blob gas. If absent or zero, it is not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fee_per_blob_gas: Option<Quantity256>,
    /// Highest price in wei per gas (EIP-1559). Excludes `GasPrice`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fee_per_gas: Option<Quantity256>,
    /// Highest tip in wei per gas (EIP-1559). Excludes `GasPrice`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_priority_fee_per_gas: Option<Quantity256>,
    /// Nonce of the sender. It is not checked, and has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Quantity64>,
    /// Recipient; if absent, `Data` is executed as creation code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<AddressData>,
    /// Amount to transfer, in wei.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity256>,
}

impl CallInput {
    /// Returns the overrides by address. A flat override is split between sender and recipient.
    pub fn overrides(&self) -> BTreeMap<Address, AccountOverride> {
        let flat = match &self.object {
            None => return BTreeMap::new(),
            Some(EstimateGasObject::Accounts(accounts)) => return accounts.clone(),
            Some(EstimateGasObject::Flat(flat)) => flat,
        };
        let mut accounts = BTreeMap::<_, AccountOverride>::new();
        if let (Some(from), true) = (&self.transaction.from, flat.changes_sender()) {
            let sender = accounts.entry(from.0).or_default();
            sender.balance = flat.balance;
            sender.nonce = flat.nonce;
        }
        if let (Some(to), true) = (&self.transaction.to, flat.changes_recipient()) {
            let recipient = accounts.entry(to.0).or_default();
            recipient.code = flat.code.clone();
            recipient.state = flat.state.clone();
            recipient.state_diff = flat.state_diff.clone();
        }
        accounts
    }
}

impl Decode for TransactionCall {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        const PROPERTIES: [&str; 14] = [
            "AccessList",
            "AuthorizationList",
            "BlobVersionedHashes",
            "Data",
            "From",
            "Gas",
            "GasPrice",
            "Input",
            "MaxFeePerBlobGas",
            "MaxFeePerGas",
            "MaxPriorityFeePerGas",
            "Nonce",
            "To",
            "Value",
        ];
        let mut object = ObjectDecoder::new(input, &PROPERTIES, faults)?;
        let access_list = object.optional("AccessList");
        let authorization_list = object.optional::<Vec<_>>("AuthorizationList");
        let blob_versioned_hashes = object.optional("BlobVersionedHashes").map(|hashes| {
            hashes.map(|hashes: Vec<BlobHash>| hashes.into_iter().map(|BlobHash(hash)| hash).collect::<Vec<_>>())
        });
        let data = object.optional("Data");
        let from = object.optional("From");
        let gas = object.optional("Gas");
        let gas_price = object.optional_or_default("GasPrice").map(|Price(price)| price);
        let alias = object.optional("Input");
        let max_fee_per_blob_gas = object.optional_or_default("MaxFeePerBlobGas").map(|Price(price)| price);
        let max_fee_per_gas = object.optional_or_default("MaxFeePerGas").map(|Price(price)| price);
        let max_priority_fee_per_gas = object.optional_or_default("MaxPriorityFeePerGas").map(|Price(price)| price);
        let nonce = object.optional("Nonce");
        let to = object.optional("To");
        let value = object.optional("Value");
        if let (Ok(Some(data)), Ok(Some(alias))) = (&data, &alias)
            && data != alias
        {
            object.fault("Input", "expected the value of Data, which has the same meaning");
        }
        for (name, cap) in [("MaxFeePerGas", &max_fee_per_gas), ("MaxPriorityFeePerGas", &max_priority_fee_per_gas)] {
            if let (Ok(Some(_)), Ok(Some(_))) = (&gas_price, cap) {
                object.fault(name, "both GasPrice and (MaxFeePerGas or MaxPriorityFeePerGas) specified");
            }
        }
        if let (Ok(cap), Ok(tip)) = (&max_fee_per_gas, &max_priority_fee_per_gas) {
            check_tip(&mut object, *cap, *tip);
        }
        let has_authorizations = matches!(&authorization_list, Ok(Some(list)) if !list.is_empty());
        let has_blobs = matches!(&blob_versioned_hashes, Ok(Some(hashes)) if !hashes.is_empty());
        if (has_authorizations || has_blobs) && matches!(to, Ok(None)) {
            object.missing("To");
        }
        let call = || -> Result<Self, Faulty> {
            let data = data?.or(alias?);
            Ok(Self {
                access_list: access_list?,
                authorization_list: authorization_list?,
                blob_versioned_hashes: blob_versioned_hashes?,
                data,
                from: from?,
                gas: gas?,
                gas_price: gas_price?,
                max_fee_per_blob_gas: max_fee_per_blob_gas?,
                max_fee_per_gas: max_fee_per_gas?,
                max_priority_fee_per_gas: max_priority_fee_per_gas?,
                nonce: nonce?,
                to: to?,
                value: value?,
            })
        };
        call().ok()
    }
}

/// Adds a fault if the highest tip of a transaction is above its highest price.
pub(super) fn check_tip(transaction: &mut ObjectDecoder<'_, '_>, cap: Option<Quantity256>, tip: Option<Quantity256>) {
    if let (Some(cap), Some(tip)) = (cap, tip)
        && tip > cap
    {
        transaction.fault("MaxPriorityFeePerGas", "max priority fee per gas higher than max fee per gas");
    }
}

/// A price in wei per gas or per blob gas.
#[derive(Default)]
pub(super) struct Price(pub(super) Option<Quantity256>);

impl Decode for Price {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        let price = Quantity256::decode(input, faults)?;
        let bits = faults.limits().price_bits;
        if price.0.bits() > bits {
            input.fault(TextError::Overflow { bits }, faults);
            return None;
        }
        Some(Self(Some(price)))
    }
}

/// The versioned hash of a blob.
struct BlobHash(HashData);

impl Decode for BlobHash {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        let hash = HashData::decode(input, faults)?;
        if hash.0.0[0] != VERSION_OF_KZG {
            input.fault("invalid blob hash version: expected 0x01 as the first byte", faults);
            return None;
        }
        Some(Self(hash))
    }
}

deserialize_by_decoding!(TransactionCall);
