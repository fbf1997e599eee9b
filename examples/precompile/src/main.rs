//! A development chain whose EVM has a precompile at 0xbeef, which a contract calls with STATICCALL.
//!
//! `cargo run -p example-precompile`

use node_core::context::Context;
use node_core::executor::{AccountOverride, Call};
use node_dev::DevNode;
use node_evm::{PrecompileCall, PrecompileOutcome};
use node_types::{Address, BlockId, Bytes};
use std::error::Error;

/// Calls 0xbeef with STATICCALL and the call data, and returns what that returns:
/// `calldatacopy; staticcall(gas(), 0xbeef, 0, calldatasize(), 0, 0); returndatacopy; return`.
const CALLER: [u8; 20] = [
    0x36, 0x5f, 0x5f, 0x37, 0x5f, 0x5f, 0x36, 0x5f, 0x61, 0xbe, 0xef, 0x5a, 0xfa, 0x3d, 0x5f, 0x5f, 0x3e, 0x3d, 0x5f,
    0xf3,
];

/// Returns the call data in reverse, for 3 gas a byte.
fn reverse(call: PrecompileCall<'_, '_>) -> PrecompileOutcome {
    let output = call.input.iter().rev().copied().collect();
    PrecompileOutcome::Returned { gas_used: 3 * call.input.len() as u64, output }
}

fn main() -> Result<(), Box<dyn Error>> {
    let returned = run(b"stressed")?;
    println!("{}", String::from_utf8_lossy(&returned));
    Ok(())
}

/// Calls a contract that calls the precompile with `input`.
fn run(input: &[u8]) -> Result<Bytes, Box<dyn Error>> {
    let beef = Address::from_low_u64_be(0xbeef);
    let chain = DevNode::builder().executor(move |evm| evm.with_precompile(beef, reverse)).spawn()?;

    let contract = Address::from_low_u64_be(0xc0de);
    let code = AccountOverride { code: Some(CALLER.into()), ..AccountOverride::default() };
    let overrides = [(contract, code)].into();
    let call = Call { to: Some(contract), input: input.into(), overrides, ..Call::default() };
    Ok(chain.call(&Context::unbounded(), &call, BlockId::latest())?)
}

#[cfg(test)]
#[test]
fn a_contract_reaches_the_precompile() -> Result<(), Box<dyn Error>> {
    assert_eq!(run(b"stressed")?[..], *b"desserts");
    Ok(())
}
