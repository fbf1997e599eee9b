//! Addresses with a checksum (EIP-55).

use crate::{Address, keccak256};
use std::fmt;

/// Displays an address with the checksum of EIP-55, in which the hash of the lower-case form determines which letters
/// are upper case.
#[derive(Clone, Copy, Debug)]
pub struct Checksummed(pub Address);

impl fmt::Display for Checksummed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:x}", self.0);
        let hash = keccak256(digits.as_bytes());
        f.write_str("0x")?;
        for (index, digit) in digits.chars().enumerate() {
            let nibble = hash[index / 2] >> if index % 2 == 0 { 4 } else { 0 } & 0xf;
            let shown = if nibble >= 8 { digit.to_ascii_uppercase() } else { digit };
            write!(f, "{shown}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_eip_55() {
        for text in [
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "0xde709f2102306220921060314715629080e2fb77",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(Checksummed(address).to_string(), text);
        }
    }
}
