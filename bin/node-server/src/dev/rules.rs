//! The rules in which a development chain may be less strict than the protocol.

use crate::error::CommandError;
use clap::Args;
use node_core::protocol::Relaxations;

/// Maximum length of a contract's code in bytes since Spurious Dragon (EIP-170).
const CODE_SIZE_LIMIT: u64 = 24_576;

/// Rules that other clients do not have.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Rules that other clients reject")]
pub(crate) struct RuleOptions {
    /// Maximum length of a contract's code instead of that of EIP-170; init code may be twice as long. A folder keeps this and
    /// the following rules, and `export` refuses its chain
    #[arg(long, value_name = "BYTES", conflicts_with = "disable_code_size_limit")]
    code_size_limit: Option<u64>,
    /// Allow code of any length
    #[arg(long)]
    disable_code_size_limit: bool,
    /// Allow transactions with more gas than EIP-7825 does from Osaka on
    #[arg(long)]
    pub(super) disable_tx_gas_limit: bool,
    /// Allow a block to have its parent's timestamp, or an earlier one after evm_setTime
    #[arg(long)]
    pub(super) allow_equal_timestamps: bool,
    #[arg(skip)]
    pub(super) constant_zero_base_fee: bool,
    /// Whether the limit of EIP-7825 was asked for, which a folder may not have.
    #[arg(skip)]
    pub(super) requires_tx_gas_limit: bool,
}

impl RuleOptions {
    /// Returns the rules of the chain, whose blocks were produced under the rules `recorded` in the folder, if there
    /// is one.
    pub(super) fn relaxations(self, recorded: Option<Relaxations>) -> Result<Relaxations, CommandError> {
        let code_size_limit = match self.disable_code_size_limit {
            true => Some(u64::MAX),
            false => self.code_size_limit,
        };
        if let (Some(given), Some(recorded)) = (code_size_limit, recorded) {
            let recorded = recorded.code_size_limit.unwrap_or(CODE_SIZE_LIMIT);
            if given < recorded {
                return Err(CommandError::CodeSizeLimit { given, recorded });
            }
        }
        if self.requires_tx_gas_limit && recorded.is_some_and(|recorded| recorded.no_transaction_gas_cap) {
            return Err(CommandError::NoTxGasLimit);
        }
        let chosen = Relaxations {
            code_size_limit,
            no_transaction_gas_cap: self.disable_tx_gas_limit,
            equal_timestamps: self.allow_equal_timestamps,
            constant_zero_base_fee: self.constant_zero_base_fee,
        };
        Ok(chosen.union(recorded.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_rules() {
        let none = RuleOptions::default();
        let code = |limit| RuleOptions { code_size_limit: Some(limit), ..none };
        let of = |options: RuleOptions, recorded| options.relaxations(recorded).map_err(|error| error.to_string());
        let recorded = of(RuleOptions { disable_tx_gas_limit: true, ..code(50_000) }, None).unwrap();
        assert!(of(none, None).unwrap().is_empty());
        assert_eq!(of(none, Some(recorded)).unwrap(), recorded);
        assert_eq!(of(code(60_000), Some(recorded)).unwrap().code_size_limit, Some(60_000));
        assert_eq!(of(code(1), None).unwrap().code_size_limit, Some(1));
        let unlimited = RuleOptions { disable_code_size_limit: true, ..none };
        assert_eq!(of(unlimited, Some(recorded)).unwrap().code_size_limit, Some(u64::MAX));
        assert!(of(code(1), Some(Relaxations::default())).unwrap_err().contains("24576"));
        assert!(of(code(40_000), Some(recorded)).unwrap_err().contains("50000"));
        let recorded = of(unlimited, None).unwrap();
        assert!(of(code(50_000), Some(recorded)).unwrap_err().ends_with("produced, which is none"));
        let capped = RuleOptions { requires_tx_gas_limit: true, ..none };
        assert!(of(capped, Some(recorded)).is_ok());
        let recorded = of(RuleOptions { disable_tx_gas_limit: true, ..none }, None).unwrap();
        assert!(of(capped, Some(recorded)).unwrap_err().contains("--enable-tx-gas-limit"));
    }
}
