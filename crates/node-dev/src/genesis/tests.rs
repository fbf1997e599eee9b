use super::*;
use crate::{AccountOptions, Accounts};
use node_core::backend::{MemoryBackend, StateBackend};
use node_core::protocol::BlobParams;

fn accounts(count: u32) -> Accounts {
    Accounts::derive(&AccountOptions { count, ..AccountOptions::default() }).unwrap()
}

fn of(hardfork: &str) -> Genesis {
    let options = DevGenesis { hardfork: hardfork.parse().unwrap(), ..DevGenesis::default() };
    options.build(accounts(1).addresses()).unwrap()
}

#[test]
fn the_default_is_the_built_in_genesis() {
    let genesis = DevGenesis::default().build(accounts(10).addresses()).unwrap();
    assert_eq!(genesis, dev_genesis());
    assert_eq!(genesis.block().header.hash, dev_genesis().block().header.hash);
    let same = DevGenesis { base_fee: Some(1_000_000_000), timestamp: Some(1_735_689_600), ..DevGenesis::default() };
    assert_eq!(same.build(accounts(10).addresses()).unwrap(), genesis);
}

#[test]
fn every_option_takes_effect() {
    let options = DevGenesis {
        chain_id: 7,
        balance: u64::MAX,
        gas_limit: 5_000,
        base_fee: Some(0),
        hardfork: "cancun".parse().unwrap(),
        timestamp: Some(0),
        coinbase: Address::repeat_byte(9),
        contracts: true,
    };
    let accounts = accounts(3);
    let genesis = options.build(accounts.addresses()).unwrap();
    let header = &genesis.header;
    assert_eq!((genesis.spec.chain_id, header.gas_limit, header.timestamp), (7, 5_000, 0));
    assert_eq!((header.base_fee_per_gas, header.beneficiary), (Some(0), Address::repeat_byte(9)));
    let permit2 = "0x000000000022d473030f116ddee9f6b43ac78ba3".parse().unwrap();
    assert_eq!((genesis.alloc[&permit2].code.len(), genesis.alloc[&permit2].nonce), (9_152, 1));
    for address in accounts.addresses() {
        assert_eq!(genesis.alloc[&address].balance, U256::from(u64::MAX) * U256::exp10(18));
    }
    // Three accounts, four system contracts, the deployer, and 15 contracts that tools expect.
    assert_eq!(genesis.alloc.len(), 23);
    let none = DevGenesis::default().build([]).unwrap();
    assert_eq!(none.alloc.len(), 5);
}

#[test]
fn activates_forks_up_to_the_chosen_one_and_no_others() {
    for name in Hardfork::names() {
        let hardfork: Hardfork = name.parse().unwrap();
        let fork = hardfork.fork();
        let Genesis { spec, header, .. } = of(name);
        assert_eq!(spec.fork(&header), fork, "{name}");
        assert_eq!(spec.fork_at(1_000_000, u64::MAX, fork >= Fork::Paris), fork, "{name}");
        let fields = [
            (header.base_fee_per_gas.is_some(), Fork::London),
            (header.withdrawals_root.is_some(), Fork::Shanghai),
            (header.blob_gas_used.is_some(), Fork::Cancun),
            (header.excess_blob_gas.is_some(), Fork::Cancun),
            (header.parent_beacon_block_root.is_some(), Fork::Cancun),
            (header.requests_hash.is_some(), Fork::Prague),
            (header.difficulty.is_zero(), Fork::Paris),
            (spec.terminal_total_difficulty.is_some(), Fork::Paris),
            (spec.blob_params(header.timestamp).is_some(), Fork::Cancun),
        ];
        for (index, (there, since)) in fields.into_iter().enumerate() {
            assert_eq!(there, fork >= since, "{name}: field {index}");
        }
        // The block's state root is that of its accounts.
        let block = of(name).block();
        let backend = MemoryBackend::new(block).unwrap();
        assert_eq!(backend.view().unwrap().head().number, 0);
    }
}

#[test]
fn blob_parameters_have_names() {
    let params = |name| of(name).spec.blob_params(u64::MAX).unwrap();
    assert_eq!(params("cancun"), BlobParams::CANCUN);
    assert_eq!((params("prague"), params("osaka")), (BlobParams::PRAGUE, BlobParams::PRAGUE));
    assert_eq!(["bpo1", "bpo2"].map(|name| params(name).max), [15, 21]);
    let newest = Hardfork::names().filter(|name| *name != "latest").last().unwrap();
    assert_eq!(of("latest").spec, of(newest).spec);
}

#[test]
fn rejects_values_out_of_range() {
    let good = DevGenesis::default();
    let cases = [
        (DevGenesis { chain_id: 0, ..good.clone() }, "the chain id must be from 1 to 9223372036854775771, not 0"),
        (
            DevGenesis { chain_id: u64::MAX / 2 - 35, ..good.clone() },
            "the chain id must be from 1 to 9223372036854775771, not 9223372036854775772",
        ),
        (
            DevGenesis { gas_limit: 4_999, ..good.clone() },
            "the gas limit must be from 5000 to 9223372036854775807, not 4999",
        ),
        (
            DevGenesis { gas_limit: 1 << 63, ..good.clone() },
            "the gas limit must be from 5000 to 9223372036854775807, not 9223372036854775808",
        ),
        (
            DevGenesis { base_fee: Some(1_000_000_000_000_000_001), ..good.clone() },
            "the base fee must be from 0 to 1000000000000000000, not 1000000000000000001",
        ),
        (
            DevGenesis { timestamp: Some(253_402_300_800), ..good.clone() },
            "the timestamp must be from 0 to 253402300799, not 253402300800",
        ),
        (
            DevGenesis { base_fee: Some(1), hardfork: "berlin".parse().unwrap(), ..good },
            "berlin has no base fee: the first fork with one is london",
        ),
    ];
    for (options, expected) in cases {
        assert_eq!(options.build([]).unwrap_err().to_string(), expected, "{options:?}");
    }
}
