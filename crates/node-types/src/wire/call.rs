//! Calls and gas estimates.

use super::decode::{Decode, Faults, Faulty, Input, ObjectDecoder, decode_object, deserialize_by_decoding};
use super::{AccountOverride, AddressData, BytesData, EstimateGasObject, Quantity64, Quantity256};
use crate::{Address, BlockId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The request body of call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_call))]
#[serde(rename_all = "PascalCase")]
pub struct CallInput {
    /// The block whose environment and resulting state are used; the latest if absent.
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub block_number: BlockId,
    /// The call.
    pub transaction: TransactionCall,
}

/// The response of call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_call))]
#[serde(rename_all = "PascalCase")]
pub struct CallOutput {
    /// The return data; for a contract creation, the code that would be deployed.
    pub data: BytesData,
}

/// The request body of estimateGas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_estimateGas))]
#[serde(rename_all = "PascalCase")]
pub struct EstimateGasInput {
    /// State overrides for this estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<EstimateGasObject>,
    /// The call.
    pub transaction: TransactionCall,
}

/// The response of estimateGas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_estimateGas))]
#[serde(rename_all = "PascalCase")]
pub struct EstimateGasOutput {
    /// A gas limit with which the transaction succeeds.
    pub estimated_gas: Quantity64,
}

/// A message call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Params_Transaction))]
#[serde(rename_all = "PascalCase")]
pub struct TransactionCall {
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
    /// Recipient; if absent, `Data` is executed as creation code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<AddressData>,
    /// Amount to transfer, in wei.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity256>,
}

impl EstimateGasInput {
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

decode_object! {
    CallInput {
        block_number: optional_or_default("BlockNumber"),
        transaction: required("Transaction"),
    }
    EstimateGasInput {
        object: optional("Object"),
        transaction: required("Transaction"),
    } => |decoder| {
        // A flat override has no addresses of its own: it applies to the sender and the receiver of the transaction.
        let transaction: &Result<TransactionCall, Faulty> = &transaction;
        if let (Ok(Some(EstimateGasObject::Flat(flat))), Ok(transaction)) = (&object, transaction) {
            if flat.changes_sender() && transaction.from.is_none() {
                decoder.fault_of_missing("Transaction", "From");
            }
            if flat.changes_recipient() && transaction.to.is_none() {
                decoder.fault_of_missing("Transaction", "To");
            }
        }
    }
}

impl Decode for TransactionCall {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        let names = ["Data", "From", "Gas", "GasPrice", "Input", "To", "Value"];
        let mut object = ObjectDecoder::new(input, &names, faults)?;
        let data = object.optional("Data");
        let from = object.optional("From");
        let gas = object.optional("Gas");
        let gas_price = object.optional("GasPrice");
        let alias = object.optional("Input");
        let to = object.optional("To");
        let value = object.optional("Value");
        if let (Ok(Some(data)), Ok(Some(alias))) = (&data, &alias)
            && data != alias
        {
            object.fault("Input", "expected the value of Data, which has the same meaning");
        }
        let call = || -> Result<Self, Faulty> {
            let data = data?.or(alias?);
            Ok(Self { data, from: from?, gas: gas?, gas_price: gas_price?, to: to?, value: value? })
        };
        call().ok()
    }
}

deserialize_by_decoding!(CallInput, EstimateGasInput, TransactionCall);
