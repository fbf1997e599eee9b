//! State overrides for an estimate.

use super::decode::{Decode, Faults, Input, Location, ObjectDecoder, deserialize_by_decoding, wire_objects};
use super::{BytesData, Data, Quantity, Quantity64, Quantity256, StorageKey, Word};
use crate::{Address, H256, U256};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// The field `Object` of estimateGas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EstimateGasObject {
    /// Overrides by address.
    Accounts(BTreeMap<Address, AccountOverride>),
    /// A single override: balance and nonce apply to the sender, code and storage to the recipient.
    Flat(AccountOverride),
}

wire_objects! {
    /// Overrides for one account. Absent fields keep their values.
    request AccountOverride {
        /// Balance in wei.
        #[serde(skip_serializing_if = "Option::is_none")]
        balance: Option<Quantity256> = optional("Balance"),
        /// Code.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<BytesData> = optional("Code"),
        /// Nonce.
        #[serde(skip_serializing_if = "Option::is_none")]
        nonce: Option<Quantity64> = optional("Nonce"),
        /// Replaces the whole storage: all other slots are zero. Excludes `StateDiff`.
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<StorageSlots> = optional("State"),
        /// Replaces only these storage slots. Excludes `State`.
        #[serde(skip_serializing_if = "Option::is_none")]
        state_diff: Option<StorageSlots> = optional("StateDiff"),
        => |decoder| {
            if let (Ok(Some(_)), Ok(Some(_))) = (&state, &state_diff) {
                decoder.fault("StateDiff", "unexpected property beside State");
            }
        }
    }
}

/// Values by storage slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageSlots(pub BTreeMap<H256, U256>);

impl AccountOverride {
    /// Returns whether a flat override changes the sender of the transaction.
    pub fn changes_sender(&self) -> bool {
        self.balance.is_some() || self.nonce.is_some()
    }

    /// Returns whether a flat override changes the recipient of the transaction.
    pub fn changes_recipient(&self) -> bool {
        self.code.is_some() || self.state.is_some() || self.state_diff.is_some()
    }
}

impl EstimateGasObject {
    /// Returns whether an object has properties of one override, and whether it has addresses.
    fn forms(input: &Input<'_>, faults: &mut Faults) -> Option<(bool, bool)> {
        let (mut flat, mut accounts) = (false, false);
        input.properties(faults, |name, _, _| {
            flat |= AccountOverride::PROPERTIES.contains(&name);
            accounts |= name.parse::<Data<Address>>().is_ok();
        })?;
        Some((flat, accounts))
    }

    /// Returns the properties of a flat override that have no faults, or `None` if `input` is not a flat override.
    pub(super) fn good_properties(input: Input<'_>) -> Option<AccountOverride> {
        let mut ignored = Faults::default();
        if Self::forms(&input, &mut ignored) != Some((true, false)) {
            return None;
        }
        let mut object = ObjectDecoder::new(input, AccountOverride::PROPERTIES, &mut ignored)?;
        Some(AccountOverride {
            balance: object.optional("Balance").ok().flatten(),
            code: object.optional("Code").ok().flatten(),
            nonce: object.optional("Nonce").ok().flatten(),
            state: object.optional("State").ok().flatten(),
            state_diff: object.optional("StateDiff").ok().flatten(),
        })
    }
}

impl Decode for EstimateGasObject {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        match Self::forms(&input, faults)? {
            (true, true) => {
                input.fault("expected either addresses or the properties of one override, not both", faults);
                input.properties(faults, |name, raw, faults| check_property(name, raw, input.location(), faults))?;
                None
            }
            (true, false) => AccountOverride::decode(input, faults).map(Self::Flat),
            (false, _) => {
                decode_map(input, "unexpected property", faults, |address: Data<Address>| address.0).map(Self::Accounts)
            }
        }
    }
}

/// Adds the faults of a property of an object that mixes addresses and the properties of one override.
fn check_property(name: &str, raw: &RawValue, object: &Location<'_>, faults: &mut Faults) {
    let location = Location::Property(object, name);
    let value = Input::new(raw, location);
    match name {
        _ if value.is_absent() => (),
        "Balance" => drop(Quantity256::decode(value, faults)),
        "Code" => drop(BytesData::decode(value, faults)),
        "Nonce" => drop(Quantity64::decode(value, faults)),
        "State" | "StateDiff" => drop(StorageSlots::decode(value, faults)),
        "$schema" => (),
        address if address.parse::<Data<Address>>().is_ok() => drop(AccountOverride::decode(value, faults)),
        _ => faults.push(location, "unexpected property", Some(raw.get())),
    }
}

impl Decode for StorageSlots {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        if input.is_object() {
            return decode_slots(input, faults);
        }
        if input.is_string() {
            let text = input.string(faults)?;
            if let Ok(raw) = serde_json::from_str::<&RawValue>(&text) {
                let held = input.held(raw);
                if held.is_object() {
                    return decode_slots(held, faults);
                }
            }
        }
        input.fault("expected an object, or a string that holds one", faults);
        None
    }
}

fn decode_slots(input: Input<'_>, faults: &mut Faults) -> Option<StorageSlots> {
    let message = "expected a storage slot as the name of the property";
    let slots: BTreeMap<H256, Quantity<U256>> = decode_map(input, message, faults, |key: StorageKey| key.0)?;
    Some(StorageSlots(slots.into_iter().map(|(slot, value)| (slot, value.0)).collect()))
}

/// Decodes an object whose property names are keys. `message` is the fault of a name that is not a key.
fn decode_map<N: FromStr, K: Copy + Ord, V: Decode>(
    input: Input<'_>,
    message: &str,
    faults: &mut Faults,
    key: impl Fn(N) -> K,
) -> Option<BTreeMap<K, V>> {
    let mut map = BTreeMap::new();
    let mut keys = BTreeSet::new();
    let mut complete = true;
    input.properties(faults, |name, raw, faults| {
        let location = Location::Property(input.location(), name);
        match name.parse().map(&key) {
            Err(_) if name == "$schema" => (),
            Err(_) => {
                faults.push(location, message, Some(raw.get()));
                complete = false;
            }
            Ok(key) if !keys.insert(key) => {
                faults.push(location, "duplicate property", Some(raw.get()));
                complete = false;
            }
            Ok(key) => match V::decode(Input::new(raw, location), faults) {
                None => complete = false,
                Some(value) => drop(map.insert(key, value)),
            },
        }
    })?;
    complete.then_some(map)
}

impl Serialize for EstimateGasObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Accounts(accounts) => {
                serializer.collect_map(accounts.iter().map(|(address, changes)| (Data(*address), changes)))
            }
            Self::Flat(changes) => changes.serialize(serializer),
        }
    }
}

impl Serialize for StorageSlots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(slot, value)| (Data(*slot), Word(*value))))
    }
}

deserialize_by_decoding!(EstimateGasObject, StorageSlots);
