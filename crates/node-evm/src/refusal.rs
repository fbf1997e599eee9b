//! Why revm refuses a transaction, told with all numbers.

use crate::convert::ToNode;
use crate::machine::{Fault, Machine, failure};
use node_core::executor::{ExecutionError, TransactionError};
use node_core::gas::MAX_INIT_CODE_SIZE;
use node_types::{Address, U256};
use revm::context::result::{EVMError, InvalidTransaction};

/// What a transaction or call offers, where revm's refusals do not repeat it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    /// Who pays.
    pub sender: Address,
    /// At most, in wei per gas.
    pub fee_cap: U256,
    /// For the producer, in wei per gas.
    pub tip_cap: U256,
    /// Length of the call data or creation code.
    pub input_length: usize,
    /// Gas, blob gas and value at their highest price; none where that does not fit.
    pub required: Option<U256>,
}

/// Tells why a run ended before its code did.
pub(crate) fn refusal(machine: &mut Machine<'_>, offer: &Offer, fault: Fault) -> ExecutionError {
    let EVMError::Transaction(invalid) = fault else { return failure(fault) };
    let refused = match invalid {
        InvalidTransaction::PriorityFeeGreaterThanMaxFee => {
            TransactionError::TipAboveFeeCap { tip: offer.tip_cap, cap: offer.fee_cap }
        }
        InvalidTransaction::GasPriceLessThanBasefee => {
            TransactionError::FeeCapTooLow { cap: offer.fee_cap, base_fee: machine.block().basefee }
        }
        InvalidTransaction::CallGasCostMoreThanGasLimit { initial_gas, gas_limit } => {
            TransactionError::IntrinsicGas { limit: gas_limit, required: initial_gas }
        }
        InvalidTransaction::GasFloorMoreThanGasLimit { gas_floor, gas_limit } => {
            TransactionError::FloorGas { limit: gas_limit, required: gas_floor }
        }
        InvalidTransaction::RejectCallerWithCode => TransactionError::SenderHasCode(offer.sender),
        InvalidTransaction::LackOfFundForMaxFee { fee, balance } => {
            TransactionError::InsufficientFunds { balance: balance.to_node(), required: fee.to_node() }
        }
        InvalidTransaction::OverflowPaymentInTransaction => match machine.balance(offer.sender) {
            Ok(balance) => beyond_128_bits(balance, offer.required),
            Err(error) => return error,
        },
        InvalidTransaction::NonceOverflowInTransaction => TransactionError::NonceOverflow,
        InvalidTransaction::NonceTooHigh { tx, state } => TransactionError::NonceTooHigh { got: tx, expected: state },
        InvalidTransaction::NonceTooLow { tx, state } => TransactionError::NonceTooLow { got: tx, expected: state },
        InvalidTransaction::CreateInitCodeSizeLimit => {
            TransactionError::InitCodeTooLong { length: offer.input_length, limit: MAX_INIT_CODE_SIZE }
        }
        InvalidTransaction::TxGasLimitGreaterThanCap { gas_limit, cap } => {
            TransactionError::GasLimitCap { limit: gas_limit, cap }
        }
        InvalidTransaction::EmptyAuthorizationList => TransactionError::NoAuthorizations,
        // The rest is checked before revm sees the transaction.
        other => TransactionError::Other(other.to_string()),
    };
    refused.into()
}

/// revm multiplies prices in 128 bits. There is not that much ether, so the balance hardly ever covers more.
pub(crate) fn beyond_128_bits(balance: U256, required: Option<U256>) -> TransactionError {
    match required {
        Some(required) if required <= balance => TransactionError::FeesBeyond128Bits,
        required => TransactionError::InsufficientFunds { balance, required: required.unwrap_or(U256::MAX) },
    }
}
