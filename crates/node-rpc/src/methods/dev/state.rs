//! Edits to accounts.

use super::named;
use crate::error::RpcError;
use crate::method::Method;
use crate::wire::{Loose, Slot};
use node_types::U256;
use node_types::wire::{AddressData, BytesData};

pub(super) fn methods() -> Vec<Method> {
    let accounts = [
        named(
            &["anvil_setBalance", "hardhat_setBalance", "tenderly_setBalance", "evm_setAccountBalance"],
            &["address", "balance"],
            "Sets an account's balance in wei.",
            |scope, (address, balance): (AddressData, Loose<U256>)| {
                scope.control()?.set_balance(address.0, balance.0).map_err(RpcError::from)
            },
        ),
        named(
            &["anvil_addBalance", "hardhat_addBalance", "tenderly_addBalance"],
            &["address", "wei"],
            "Adds to an account's balance.",
            |scope, (address, more): (AddressData, Loose<U256>)| {
                scope.control()?.add_balance(address.0, more.0).map(drop).map_err(RpcError::from)
            },
        ),
        named(
            &["anvil_setNonce", "hardhat_setNonce", "evm_setAccountNonce"],
            &["address", "nonce"],
            "Sets an account's nonce.",
            |scope, (address, nonce): (AddressData, Loose<u64>)| {
                scope.control()?.set_nonce(address.0, nonce.0).map_err(RpcError::from)
            },
        ),
        named(
            &["anvil_setCode", "hardhat_setCode", "evm_setAccountCode"],
            &["address", "code"],
            "Sets an account's code.",
            |scope, (address, code): (AddressData, BytesData)| {
                scope.control()?.set_code(address.0, code.0).map_err(RpcError::from)
            },
        ),
        named(
            &["anvil_setStorageAt", "hardhat_setStorageAt"],
            &["address", "slot", "value"],
            "Sets a storage slot of an account.",
            |scope, (address, slot, value): (AddressData, Slot, Loose<U256>)| {
                scope.control()?.set_storage(address.0, slot.key, value.0).map_err(RpcError::from).map(|()| true)
            },
        ),
    ];
    accounts.into_iter().flatten().chain(tokens()).collect()
}

/// Returns the methods that edit token balances, which execute the code of the token.
fn tokens() -> impl Iterator<Item = Method> {
    let methods = [
        named(
            &["anvil_dealERC20", "anvil_setERC20Balance", "hardhat_dealERC20"],
            &["address", "token", "amount"],
            "Sets the balance of an account in an ERC-20 token.",
            |scope, (owner, token, amount): (AddressData, AddressData, Loose<U256>)| {
                Ok(scope.node.set_token_balance(scope.context, token.0, owner.0, amount.0)?)
            },
        ),
        named(
            &["anvil_setERC20Allowance"],
            &["owner", "spender", "token", "amount"],
            "Sets how much of an account's ERC-20 token balance another account may spend.",
            |scope, (owner, spender, token, amount): (AddressData, AddressData, AddressData, Loose<U256>)| {
                Ok(scope.node.set_token_allowance(scope.context, token.0, owner.0, spender.0, amount.0)?)
            },
        ),
    ];
    methods.into_iter().flatten().map(Method::code)
}
