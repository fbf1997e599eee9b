//! Conversions between the types of node-types and those of revm. No other module converts between them.

use node_types::consensus::Log;
use node_types::{Address, Bytes, H256, U256};
use revm::primitives as evm;

/// Converts a value to revm's type.
pub(crate) trait ToEvm {
    /// revm's type.
    type Evm;

    /// Returns the value as revm's type.
    fn to_evm(&self) -> Self::Evm;
}

/// Converts a value of revm to node-types' type.
pub(crate) trait ToNode {
    /// The type of node-types.
    type Node;

    /// Returns the value as the type of node-types.
    fn to_node(&self) -> Self::Node;
}

impl ToEvm for Address {
    type Evm = evm::Address;

    fn to_evm(&self) -> evm::Address {
        evm::Address::new(self.0)
    }
}

impl ToNode for evm::Address {
    type Node = Address;

    fn to_node(&self) -> Address {
        Address::from(self.into_array())
    }
}

impl ToEvm for H256 {
    type Evm = evm::B256;

    fn to_evm(&self) -> evm::B256 {
        evm::B256::new(self.0)
    }
}

impl ToNode for evm::B256 {
    type Node = H256;

    fn to_node(&self) -> H256 {
        H256(self.0)
    }
}

/// Both types consist of four 64-bit limbs, lowest first.
impl ToEvm for U256 {
    type Evm = evm::U256;

    fn to_evm(&self) -> evm::U256 {
        evm::U256::from_limbs(self.0)
    }
}

impl ToNode for evm::U256 {
    type Node = U256;

    fn to_node(&self) -> U256 {
        U256(*self.as_limbs())
    }
}

/// Both types share one reference-counted buffer.
impl ToEvm for Bytes {
    type Evm = evm::Bytes;

    fn to_evm(&self) -> evm::Bytes {
        evm::Bytes(self.0.clone())
    }
}

impl ToNode for evm::Bytes {
    type Node = Bytes;

    fn to_node(&self) -> Bytes {
        Bytes(self.0.clone())
    }
}

impl ToNode for evm::Log {
    type Node = Log;

    fn to_node(&self) -> Log {
        Log {
            address: self.address.to_node(),
            topics: self.data.topics().iter().map(ToNode::to_node).collect(),
            data: self.data.data.to_node(),
        }
    }
}

/// Converts the key of a storage slot to revm's form, a number.
pub(crate) fn slot_to_evm(slot: H256) -> evm::U256 {
    evm::U256::from_be_bytes(slot.0)
}

/// Converts the key of a storage slot to a backend's form, 32 bytes in big-endian order.
pub(crate) fn slot_to_node(slot: evm::U256) -> H256 {
    H256(slot.to_be_bytes())
}

/// Converts a price in wei to the 128 bits that revm uses, saturating at `u128::MAX`.
pub(crate) fn saturating_price(price: U256) -> u128 {
    u128::try_from(price).unwrap_or(u128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_convert_both_ways(bytes in any::<[u8; 32]>()) {
            let number = U256::from_big_endian(&bytes);
            prop_assert_eq!(number.to_evm(), evm::U256::from_be_bytes(bytes));
            prop_assert_eq!(number.to_evm().to_node(), number);
        }

        #[test]
        fn slots_keep_their_bytes(bytes in any::<[u8; 32]>()) {
            prop_assert_eq!(slot_to_node(slot_to_evm(H256(bytes))), H256(bytes));
        }
    }

    #[test]
    fn prices_above_128_bits_saturate() {
        assert_eq!(saturating_price(U256::from(7)), 7);
        assert_eq!(saturating_price(U256::from(u128::MAX)), u128::MAX);
        assert_eq!(saturating_price(U256::from(u128::MAX) + 1), u128::MAX);
        assert_eq!(saturating_price(U256::MAX), u128::MAX);
    }
}
