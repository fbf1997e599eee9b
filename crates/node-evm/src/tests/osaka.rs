//! Changes of Osaka to the EVM.

use super::support::*;
use node_core::executor::{Call, CallOutcome};
use node_core::protocol::Fork;
use node_types::{Address, Bytes, H160, U256};

fn precompile(number: u64) -> Address {
    Address::from_low_u64_be(number)
}

/// Returns the output of a call and its gas without the intrinsic gas, or `None` if it fails.
fn run(fork: Fork, to: Address, input: &Bytes) -> Option<(Bytes, u64)> {
    let world = Genesis::at(fork).build();
    let call = Call { from: ALICE, to: Some(to), input: input.clone(), ..Call::default() };
    match world.call(&call).unwrap() {
        CallOutcome::Returned { output, gas_used } => {
            let zeros = input.iter().filter(|byte| **byte == 0).count() as u64;
            let data = 4 * zeros + 16 * (input.len() as u64 - zeros);
            Some((output, gas_used - 21_000 - data))
        }
        CallOutcome::Failed(_) => None,
    }
}

/// Returns an input of MODEXP (EIP-198): three lengths, then the numbers.
fn modexp(base: &[u8], exponent: &[u8], modulus: &[u8]) -> Bytes {
    let length = |number: &[u8]| slot(number.len() as u64).0.to_vec();
    let lengths = [length(base), length(exponent), length(modulus)].concat();
    [lengths, base.to_vec(), exponent.to_vec(), modulus.to_vec()].concat().into()
}

#[test]
fn modexp_costs_more() {
    // EIP-2565: words^2 times the bits of the exponent, divided by 3, at least 200. EIP-7883: not divided by 3, doubled
    // above 32 bytes, at least 500, and 16 per bit from 32 words on. The gas of the inputs exceeds the floor price of
    // EIP-7623.
    let odd = |length| vec![0xff; length];
    for (name, base, exponent, modulus, before, after) in [
        ("small", odd(1), vec![3], odd(1), 200, 500),
        // 4 words: 16 times 255 bits.
        ("32 bytes", odd(32), odd(32), odd(32), 16 * 255 / 3, 16 * 255),
        // 8 words: 64, now doubled.
        ("64 bytes", odd(64), odd(32), odd(64), 64 * 255 / 3, 2 * 64 * 255),
    ] {
        let input = modexp(&base, &exponent, &modulus);
        let gas = |fork| run(fork, precompile(5), &input).map(|(_, gas)| gas);
        assert_eq!(gas(Fork::Cancun), Some(before), "{name} before");
        let floor = |gas: u64| {
            let zeros = input.iter().filter(|byte| **byte == 0).count() as u64;
            let tokens = zeros + 4 * (input.len() as u64 - zeros);
            gas.max(6 * tokens)
        };
        assert_eq!(gas(Fork::Osaka), Some(floor(after)), "{name} after");
    }
}

#[test]
fn modexp_takes_at_most_1024_bytes() {
    for (name, input, valid) in [
        ("the limit", modexp(&[1; 1024], &[1], &[7; 1024]), true),
        ("a base above it", modexp(&[1; 1025], &[1], &[7]), false),
        ("an exponent above it", modexp(&[1], &[1; 1025], &[7]), false),
        ("a modulus above it", modexp(&[1], &[1], &[7; 1025]), false),
    ] {
        assert!(run(Fork::Prague, precompile(5), &input).is_some(), "{name} before EIP-7823");
        assert_eq!(run(Fork::Osaka, precompile(5), &input).is_some(), valid, "{name} since EIP-7823");
    }
}

#[test]
fn clz_counts_leading_zeros() {
    let clz = |fork, operand: U256| {
        let operand: String = operand.to_big_endian().iter().map(|byte| format!("{byte:02x}")).collect();
        let world = Genesis::at(fork).code(CONTRACT, &format!("7f{operand}1e5f5260205ff3")).build();
        match world.call(&Call { to: Some(CONTRACT), ..Call::default() }).unwrap() {
            CallOutcome::Returned { output, .. } => Some(word(&output)),
            CallOutcome::Failed(_) => None,
        }
    };
    for (operand, expected) in
        [(U256::zero(), 256), (U256::one(), 255), (U256::from(0x80), 248), (U256::MAX, 0), (U256::MAX >> 1, 1)]
    {
        assert_eq!(clz(Fork::Osaka, operand), Some(wei(expected)), "{operand:#x}");
        assert_eq!(clz(Fork::Prague, operand), None, "{operand:#x}: the opcode came with EIP-7939");
    }
}

#[test]
fn p256verify_returns_one_or_nothing() {
    // The first case of the tests of EIP-7951: hash, r, s, x, y.
    let valid = hex("bb5a52f42f9c9261ed4361f59422a1e30036e7c32b270c8807a419feca605023
         2ba3a8be6b94d5ec80a6d9d1190a436effe50d85a1eee859b8cc6af9bd5c2e18
         4cd60b855d442f5b3c7b11eb6c4e0ae7525fe710fab9aa7c77a67f79e6fadd76
         2927b10512bae3eddcfe467828128bad2903269919f7086069c8c4df6c732838
         c7787964eaac00e5921fb1498a60f4606766b3d9685001558d1a974e7341513e");
    let mut forged = valid.to_vec();
    forged[0] ^= 1;
    let address = H160::from_low_u64_be(0x100);
    for (name, input, expected) in [
        ("valid", valid.clone(), Bytes::from(&slot(1).0[..])),
        ("another hash", forged.into(), Bytes::new()),
        ("too short", valid[..159].into(), Bytes::new()),
        ("too long", [&valid[..], &[0]].concat().into(), Bytes::new()),
        ("nothing", Bytes::new(), Bytes::new()),
    ] {
        let (output, gas) = run(Fork::Osaka, address, &input).unwrap();
        assert_eq!(output, expected, "{name}");
        assert_eq!(gas, 6_900, "{name}");
        let (output, gas) = run(Fork::Prague, address, &input).unwrap();
        assert_eq!(output, Bytes::new(), "{name}: the precompile came with EIP-7951");
        assert!(gas < 6_900, "{name}: {gas}");
    }
}
