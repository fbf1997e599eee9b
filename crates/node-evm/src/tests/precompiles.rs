//! The cache of results of precompiles.

use super::support::*;
use crate::EvmExecutor;
use node_core::executor::{Call, CallOutcome, Executor};
use node_core::protocol::Fork;
use node_types::Bytes;

/// Calls the address in the first word of the call data with the gas in the second word and the rest as call data.
/// Returns whether that succeeded, the gas used, and what it returned.
const CALLER: &str = "6040 36 03 6040 5f 37 5a 5f 5f 6040 36 03 5f 5f 35 6020 35 fa 5f 52 5a 90 03 6020 52 \
                      3d 5f 6040 3e 3d 6040 01 5f f3";

/// Precompiles and inputs, some of them invalid.
fn calls() -> Vec<(u64, Bytes)> {
    let one = format!("{:064x}", 1);
    let two = format!("{:064x}", 2);
    // The x coordinate of the generator of secp256k1, so that the signature with s = 1 is valid.
    let signature = format!("{one}{:064x}79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798{one}", 27);
    let infinity = format!("c0{}", "00".repeat(47));
    let versioned_hash = "010657f37554c781402a22917dee2f75def7ab966d7b770905398eba3c444014";
    // The value of the zero polynomial at 1.
    let evaluation = format!("{versioned_hash}{one}{:064x}{infinity}{infinity}", 0);
    let inputs = [
        (0x01, signature.as_str()),
        (0x01, ""),
        (0x02, &one),
        (0x05, &one),
        (0x07, &format!("{one}{two}{two}")),
        (0x07, &format!("{one}{one}{two}")),
        (0x08, ""),
        (0x08, &one),
        (0x0a, &evaluation),
        (0x0a, &"00".repeat(192)),
        (0x0f, &"00".repeat(384)),
        (0x10, &"00".repeat(64)),
        (0x100, &"01".repeat(160)),
    ];
    inputs.map(|(precompile, input)| (precompile, hex(input))).to_vec()
}

#[test]
fn a_repeated_call_returns_what_the_first_one_returned() {
    for fork in [Fork::Shanghai, Fork::Cancun, Fork::Prague, Fork::Osaka] {
        let world = Genesis::at(fork).code(CONTRACT, CALLER).build();
        let mut empty = Genesis::at(fork).code(CONTRACT, CALLER).build();
        let mut succeeded = 0;
        for (precompile, input) in calls() {
            for gas in [1_000_000, 0, 2_999, 3_000, 3_450, 6_899, 44_999, 45_000, 50_000, 102_900, 1_000_000] {
                let words = [precompile, gas].map(|word| wei(word).to_big_endian().to_vec());
                let input = Bytes::from([&words.concat()[..], &input].concat());
                let call = Call { from: ALICE, to: Some(CONTRACT), input, ..Call::default() };
                // The cache belongs to the executor.
                empty.executor = EvmExecutor::new(empty.spec.clone());
                let [expected, first, again] = [&empty, &world, &world].map(|world| match world.call(&call).unwrap() {
                    CallOutcome::Returned { output, .. } => output,
                    CallOutcome::Failed(failure) => panic!("{failure:?}"),
                });
                assert_eq!([&first, &again], [&expected; 2], "{precompile:#x} with {gas} gas at {fork:?}");
                succeeded += u64::from(word(&expected[..32]) == wei(1) && gas == 1_000_000);
            }
        }
        assert!(succeeded >= 10, "{succeeded} calls succeeded at {fork:?}");
        let caches = world.executor.caches();
        let results = caches.iter().find(|cache| cache.name == "precompile_results").unwrap();
        assert!(results.hits > results.misses, "{results:?}");
    }
}
