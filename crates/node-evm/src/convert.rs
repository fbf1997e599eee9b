//! The border between the types of this project and those of revm. Nothing else converts.

use node_types::consensus::Log;
use node_types::{Address, Bytes, H256, U256};
use revm::primitives as evm;

/// Turns a value into revm's type for the same thing.
pub(crate) trait ToEvm {
    /// revm's type.
    type Evm;

    /// The same value in revm's type.
    fn to_evm(&self) -> Self::Evm;
}

/// Turns a value of revm's into this project's type for the same thing.
pub(crate) trait ToNode {
    /// This project's type.
    type Node;

    /// The same value in this project's type.
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

/// Both sides keep four 64-bit limbs, the lowest first.
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

/// Both sides share one buffer with reference counting.
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

/// A storage slot's name as revm has it: a number.
pub(crate) fn slot_to_evm(slot: H256) -> evm::U256 {
    evm::U256::from_be_bytes(slot.0)
}

/// A storage slot's name as a backend has it: 32 bytes, big-endian.
pub(crate) fn slot_to_node(slot: evm::U256) -> H256 {
    H256(slot.to_be_bytes())
}

/// A price in wei; revm keeps prices in 128 bits. What does not fit becomes the highest price there is.
pub(crate) fn saturating_price(price: U256) -> u128 {
    u128::try_from(price).unwrap_or(u128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_survive_the_border_both_ways(bytes in any::<[u8; 32]>()) {
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
    fn prices_beyond_128_bits_saturate() {
        assert_eq!(saturating_price(U256::from(7)), 7);
        assert_eq!(saturating_price(U256::from(u128::MAX)), u128::MAX);
        assert_eq!(saturating_price(U256::from(u128::MAX) + 1), u128::MAX);
        assert_eq!(saturating_price(U256::MAX), u128::MAX);
    }
}
