//! Rules of development chains that are weaker than the protocol's.

use std::fmt;

/// The rules in which a development chain is less strict than the protocol. Other clients reject blocks that rely on
/// them. The default is the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relaxations {
    /// Maximum length of a contract's code in bytes; `None` for that of EIP-170. Init code may be twice as long
    /// (EIP-3860).
    pub code_size_limit: Option<u64>,
    /// Whether a transaction may have as much gas as its block, more than EIP-7825 allows.
    pub no_transaction_gas_cap: bool,
    /// Whether a block may have the timestamp of its parent, or an earlier one if a request sets the time back.
    pub equal_timestamps: bool,
    /// Whether a base fee of zero stays zero, instead of rising with the gas that blocks use.
    pub constant_zero_base_fee: bool,
}

impl Relaxations {
    /// Returns whether the rules are those of the protocol.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the rules under which every block is valid that is valid under either.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            code_size_limit: self.code_size_limit.max(other.code_size_limit),
            no_transaction_gas_cap: self.no_transaction_gas_cap || other.no_transaction_gas_cap,
            equal_timestamps: self.equal_timestamps || other.equal_timestamps,
            constant_zero_base_fee: self.constant_zero_base_fee || other.constant_zero_base_fee,
        }
    }
}

/// The rules that differ, as a list.
impl fmt::Display for Relaxations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code_size_limit.map(|limit| match limit {
            u64::MAX => "code of any length".to_owned(),
            limit => format!("code of up to {limit} bytes"),
        });
        let gas = self.no_transaction_gas_cap.then(|| "transactions with more gas than EIP-7825 allows".to_owned());
        let time = self.equal_timestamps.then(|| "blocks that are not later than their parents".to_owned());
        let fee = self.constant_zero_base_fee.then(|| "a base fee of zero that never rises".to_owned());
        let all: Vec<_> = [code, gas, time, fee].into_iter().flatten().collect();
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_union_is_the_weaker_of_each_rule() {
        let none = Relaxations::default();
        let code = |limit| Relaxations { code_size_limit: Some(limit), ..none };
        let time = Relaxations { equal_timestamps: true, ..none };
        assert_eq!(none.union(none), none);
        assert_eq!(code(30_000).union(none), code(30_000));
        assert_eq!(code(30_000).union(code(u64::MAX)), code(u64::MAX));
        assert_eq!(code(1).union(time), Relaxations { equal_timestamps: true, ..code(1) });
        assert_eq!(
            code(1).union(time).to_string(),
            "code of up to 1 bytes, blocks that are not later than their parents"
        );
        assert!(none.is_empty() && !time.is_empty());
    }
}
