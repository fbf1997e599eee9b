//! Conversion of revm's validation errors to errors that include all values.

use crate::convert::ToNode;
use crate::machine::{EvmFault, Machine, failure};
use node_core::executor::{ExecutionError, Property, TransactionError};
use node_core::protocol::gas::MAX_INIT_CODE_SIZE;
use node_types::{Address, U256};
use revm::context::result::{EVMError, InvalidTransaction};

/// The parts of a transaction or call that error messages need but revm's errors do not contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransactionTerms {
    /// The account that pays.
    pub sender: Address,
    /// The property with the maximum fee: a gas price or a fee cap.
    pub price: Property,
    /// Maximum fee in wei per gas.
    pub fee_cap: U256,
    /// Maximum priority fee in wei per gas.
    pub tip_cap: U256,
    /// Transferred amount in wei.
    pub value: U256,
    /// Length of the call data or init code in bytes.
    pub input_length: usize,
    /// Maximum cost in wei of gas, blob gas and value together. `None` if it exceeds 256 bits.
    pub required: Option<U256>,
}

impl TransactionTerms {
    /// Returns the error that `balance` does not cover the cost.
    pub(crate) fn insufficient_funds(&self, balance: U256) -> TransactionError {
        TransactionError::insufficient_funds(balance, self.required.unwrap_or(U256::MAX), self.value)
    }

    /// Returns the error for a cost that exceeds the 128 bits in which revm computes it. Only an edited or overridden
    /// balance can cover it, since there is not that much ether.
    pub(crate) fn beyond_128_bits(&self, balance: U256) -> TransactionError {
        match self.required {
            Some(required) if required <= balance => TransactionError::FeesBeyond128Bits,
            _ => self.insufficient_funds(balance),
        }
    }
}

/// Converts the reason why a transaction could not be executed.
pub(crate) fn refusal(machine: &mut Machine<'_>, terms: &TransactionTerms, fault: EvmFault) -> ExecutionError {
    let EVMError::Transaction(invalid) = fault else { return failure(fault) };
    let refused = match invalid {
        InvalidTransaction::PriorityFeeGreaterThanMaxFee => {
            TransactionError::TipAboveFeeCap { tip: terms.tip_cap, cap: terms.fee_cap }
        }
        InvalidTransaction::GasPriceLessThanBasefee => {
            let base_fee = machine.block().basefee;
            TransactionError::FeeCapTooLow { price: terms.price, cap: terms.fee_cap, base_fee }
        }
        InvalidTransaction::CallGasCostMoreThanGasLimit { initial_gas, gas_limit } => {
            TransactionError::IntrinsicGas { limit: gas_limit, required: initial_gas }
        }
        InvalidTransaction::GasFloorMoreThanGasLimit { gas_floor, gas_limit } => {
            TransactionError::FloorGas { limit: gas_limit, required: gas_floor }
        }
        InvalidTransaction::RejectCallerWithCode => TransactionError::SenderHasCode(terms.sender),
        InvalidTransaction::LackOfFundForMaxFee { balance, .. } => terms.insufficient_funds(balance.to_node()),
        InvalidTransaction::OverflowPaymentInTransaction => match machine.balance(terms.sender) {
            Ok(balance) => terms.beyond_128_bits(balance),
            Err(error) => return error,
        },
        InvalidTransaction::NonceOverflowInTransaction => TransactionError::NonceOverflow,
        InvalidTransaction::NonceTooHigh { tx, state } => TransactionError::NonceTooHigh { got: tx, expected: state },
        InvalidTransaction::NonceTooLow { tx, state } => TransactionError::NonceTooLow { got: tx, expected: state },
        InvalidTransaction::CreateInitCodeSizeLimit => {
            let limit = machine.rules().limit_contract_initcode_size.unwrap_or(MAX_INIT_CODE_SIZE);
            TransactionError::InitCodeTooLong { length: terms.input_length, limit }
        }
        InvalidTransaction::TxGasLimitGreaterThanCap { gas_limit, cap } => {
            TransactionError::GasLimitCap { limit: gas_limit, cap }
        }
        InvalidTransaction::EmptyAuthorizationList => TransactionError::NoAuthorizations,
        // All other rules are checked before revm runs the transaction.
        other => TransactionError::Other(other.to_string()),
    };
    refused.into()
}
