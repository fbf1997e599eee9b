//! Addresses with a checksum.

use node_types::{Address, keccak256};

/// Formats an address with its checksum (EIP-55).
pub(crate) fn checksummed(address: Address) -> String {
    let lower = format!("{address:x}");
    let hash = keccak256(lower.as_bytes());
    let digits = lower.char_indices().map(|(index, digit)| {
        let nibble = hash.0[index / 2] >> (4 * (1 - index % 2)) & 0xf;
        if nibble >= 8 { digit.to_ascii_uppercase() } else { digit }
    });
    "0x".chars().chain(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of EIP-55.
    #[test]
    fn examples() {
        for text in [
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        ] {
            assert_eq!(checksummed(text.parse().unwrap()), text);
        }
    }
}
