use super::*;
use crate::test_support::{chained, shared};
use node_core::context::Context;
use node_core::protocol::{BlobParams, DaoFork, Fork};
use node_types::consensus::EMPTY_ROOT;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Returns the development genesis file after `change`.
fn file(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut file: Value = serde_json::from_str(DEV_GENESIS).unwrap();
    change(&mut file);
    file.to_string().into_bytes()
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn parses_the_conformance_genesis() {
    let genesis = Genesis::parse(&shared("conformance/chain/genesis.json")).unwrap();
    let expected = "0x44fd89d504659cd58f48f4796b77a7e7012cf296a2409afa2f6c3cb99b5b3d99";
    assert_eq!(format!("{:#x}", genesis.block().header.hash), expected);

    let spec = genesis.spec;
    assert_eq!(spec.chain_id, 3_503_995_874_084_926);
    assert_eq!(spec.terminal_total_difficulty, Some(4_732_352.into()));
    // First block of a fork, and the forks before and from it on.
    for (number, before, fork) in [(3, Fork::Homestead, Fork::TangerineWhistle), (27, Fork::Berlin, Fork::London)] {
        assert_eq!(spec.fork_at(number - 1, 0, false), before);
        assert_eq!(spec.fork_at(number, 0, false), fork);
    }
    assert_eq!(spec.fork_at(50, 479, true), Fork::Prague);
    assert_eq!(spec.fork_at(50, 480, true), Fork::Osaka);
    assert_eq!(spec.blob_params(540).unwrap().max, 21);
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn the_benchmark_genesis_is_the_parent_of_its_chain() {
    let (json, chain) = (shared("bench/dev20k.genesis.json"), shared("bench/dev20k.rlp"));
    let first = crate::BlockStream::new(&chain[..]).next().unwrap().unwrap();
    let first = Block::decode(&first.bytes).unwrap();
    assert_eq!(Genesis::parse(&json).unwrap().block().header.hash, first.header.parent_hash);
}

#[test]
fn the_development_genesis_is_complete() {
    let genesis = dev_genesis();
    assert_eq!(genesis.spec.chain_id, 31337);
    assert_eq!(genesis.spec.terminal_total_difficulty, Some(0.into()));
    assert_eq!(genesis.spec.fork(&genesis.header), Fork::Osaka);
    assert_eq!(genesis.spec.blob_params(genesis.header.timestamp).unwrap().max, 21);
    assert_eq!(genesis.spec.blob_schedule[0].params, BlobParams::CANCUN);
    assert_eq!((genesis.header.gas_limit, genesis.header.base_fee_per_gas), (30_000_000, Some(1_000_000_000)));
    let rich = genesis.alloc.values().filter(|account| account.balance == U256::exp10(22));
    assert_eq!(rich.count(), 10);
    // Lengths of the code of EIP-4788, 2935, 7002, 7251 and of the CREATE2 deployer.
    let mut code: Vec<usize> = genesis.alloc.values().map(|account| account.code.len()).filter(|n| *n > 0).collect();
    code.sort();
    assert_eq!(code, [69, 83, 97, 414, 504]);
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn the_development_genesis_matches_the_public_chains() {
    let parse = |path| Genesis::parse(&shared(path)).unwrap();
    let (conformance, bench) = (parse("conformance/chain/genesis.json"), parse("bench/dev20k.genesis.json"));
    let dev = dev_genesis();
    for (address, account) in &bench.alloc {
        assert_eq!(dev.alloc.get(address).map(|dev| dev.balance), Some(account.balance), "{address:#x}");
    }
    for end in ["4788", "2935", "7002", "7251"] {
        let contract = |genesis: &Genesis| {
            let of_protocol = |address: &Address| address.as_bytes()[0] == 0 && format!("{address:x}").ends_with(end);
            // The address of the contract of EIP-4788 does not end in the number.
            let by_code = |code: &Bytes| end == "4788" && code.len() == 97;
            let found = genesis.alloc.iter().find(|(address, account)| of_protocol(address) || by_code(&account.code));
            found.map(|(address, account)| (*address, account.code.clone()))
        };
        assert!(contract(&dev).is_some(), "EIP-{end}");
        assert_eq!(contract(&dev), contract(&conformance), "EIP-{end}");
    }
    assert_eq!(
        dev.spec.blob_schedule.last().map(|last| last.params),
        conformance.spec.blob_schedule.last().map(|last| last.params)
    );
}

#[test]
fn a_genesis_that_is_written_reads_back() {
    let blobs = json!({"target": 5, "max": 7, "baseFeeUpdateFraction": 99});
    let cases: [fn(&mut Value, Value); 6] = [
        |_, _| {},
        |file, _| {
            let config = file["config"].as_object_mut().unwrap();
            config.retain(|key, _| !key.ends_with("Time") && key != "blobSchedule");
            file.as_object_mut().unwrap().retain(|key, _| !key.contains("lob"));
            file["config"]["daoForkBlock"] = json!(7);
            file["config"]["mergeNetsplitBlock"] = json!(9);
        },
        |file, _| {
            file["config"]["daoForkBlock"] = json!(7);
            file["config"]["daoForkSupport"] = json!(true);
            file["config"]["terminalTotalDifficulty"] = json!("58750000000000000000000");
            file["config"]["depositContractAddress"] = json!("0x00000000000000000000000000000000000000aa");
        },
        |file, _| file["config"] = json!({"chainId": 5, "homesteadBlock": 3}),
        // Osaka has its own parameters.
        |file, blobs| {
            file["config"]["blobSchedule"]["osaka"] = blobs;
        },
        |file, blobs| {
            file["config"]["bpo2Time"] = json!(1_900_000_000);
            file["config"]["bpo4Time"] = json!(1_900_000_001);
            file["config"]["blobSchedule"]["bpo4"] = blobs;
            file["alloc"]["00000000000000000000000000000000000000aa"] = json!({
                "balance": "7", "nonce": "3", "code": "0x6001",
                "storage": {format!("{:#x}", H256::repeat_byte(1)): format!("{:#x}", H256::repeat_byte(2))},
            });
            file["extraData"] = json!("0x0102");
        },
    ];
    for (index, change) in cases.into_iter().enumerate() {
        let mut file: Value = serde_json::from_str(DEV_GENESIS).unwrap();
        change(&mut file, blobs.clone());
        if file["config"].get("cancunTime").is_none() {
            let keep = ["config", "difficulty", "gasLimit", "alloc", "timestamp"];
            file.as_object_mut().unwrap().retain(|key, _| keep.contains(&key.as_str()));
        }
        let genesis = Genesis::parse(file.to_string().as_bytes());
        let genesis = genesis.unwrap_or_else(|error| panic!("case {index}: {}", chained(&error)));
        let written = genesis.to_json();
        let read = Genesis::parse(&written);
        let read = read.unwrap_or_else(|error| panic!("case {index}: {}", chained(&error)));
        assert_eq!(read, genesis, "case {index}: {}", String::from_utf8_lossy(&written));
        assert_eq!(read.block().header, genesis.block().header, "case {index}");
    }
}

#[test]
fn a_chain_continues_if_the_schedules_agree_up_to_its_head() {
    let merged = |change: fn(&mut Value)| {
        Genesis::parse(&file(|file| {
            file["timestamp"] = json!(50);
            for (key, time) in [("pragueTime", 100), ("osakaTime", 200), ("bpo1Time", 300), ("bpo2Time", 300)] {
                file["config"][key] = json!(time);
            }
            change(file);
        }))
        .unwrap_or_else(|error| panic!("{}", chained(&error)))
    };
    let recorded = merged(|_| {});
    let head = |timestamp| {
        let block = recorded.block().header;
        SealedHeader { header: Header { number: 7, timestamp, ..block.header.clone() }, ..(*block).clone() }
    };
    let unrecorded = recorded.continue_from(None, &head(1_000)).unwrap();
    assert_eq!(unrecorded, Continued { is_new: true, changes: Vec::new() });
    let unchanged = recorded.continue_from(Some(&recorded.to_json()), &head(1_000)).unwrap();
    assert_eq!(unchanged, Continued { is_new: false, changes: Vec::new() });

    // A change to the genesis file, the first timestamp of the head at which it is refused, and the description of the
    // change.
    type Case = (fn(&mut Value), u64, &'static str);
    let cases: [Case; 11] = [
        (
            |file| file["config"]["osakaTime"] = json!(250),
            200,
            "osaka is active from time 200 in the folder, is active from time 250 in the given genesis",
        ),
        (
            |file| file["config"]["osakaTime"] = json!(150),
            150,
            "osaka is active from time 200 in the folder, is active from time 150 in the given genesis",
        ),
        (
            |file| {
                for key in ["osakaTime", "bpo1Time", "bpo2Time"] {
                    file["config"][key] = Value::Null;
                }
            },
            200,
            "osaka is active from time 200 in the folder, is never active in the given genesis",
        ),
        (
            |file| file["config"]["blobSchedule"]["bpo1"]["target"] = json!(9),
            300,
            "the blob schedule entry bpo1 is active from time 300 with 10/15/8346193 in the folder, is active from time 300 with \
             9/15/8346193 in the given genesis",
        ),
        (
            |file| file["config"]["bpo1Time"] = json!(250),
            250,
            "the blob schedule entry bpo1 is active from time 300 with 10/15/8346193 in the folder, is active from time 250 with \
             10/15/8346193 in the given genesis",
        ),
        (
            |file| file["config"]["bpo2Time"] = json!(350),
            300,
            "the blob schedule entry bpo2 is active from time 300 with 14/21/11684671 in the folder, is active from time 350 with \
             14/21/11684671 in the given genesis",
        ),
        (
            |file| {
                file["config"]["bpo2Time"] = json!(350);
                file["config"]["blobSchedule"]["bpo2"]["max"] = json!(22);
            },
            300,
            "the blob schedule entry bpo2 is active from time 300 with 14/21/11684671 in the folder, is active from time 350 with \
             14/22/11684671 in the given genesis",
        ),
        (
            |file| file["config"]["bpo2Time"] = Value::Null,
            300,
            "the blob schedule entry bpo2 is active from time 300 with 14/21/11684671 in the folder, is never active in the given \
             genesis",
        ),
        (
            |file| file["config"]["bpo1Time"] = Value::Null,
            300,
            "the blob schedule entry bpo1 is active from time 300 with 10/15/8346193 in the folder, is never active in the given \
             genesis",
        ),
        (
            |file| {
                file["config"]["bpo4Time"] = json!(400);
                file["config"]["blobSchedule"]["bpo4"] = json!({"target": 5, "max": 7, "baseFeeUpdateFraction": 99});
            },
            400,
            "the blob schedule entry bpo4 is never active in the folder, is active from time 400 with 5/7/99 in the given genesis",
        ),
        (
            |file| {
                file["config"]["blobSchedule"]["prague"] = json!({"target": 5, "max": 7, "baseFeeUpdateFraction": 99})
            },
            100,
            "the blob schedule entry prague is active from time 100 with 6/9/5007716 in the folder, is active from time 100 with \
             5/7/99 in the given genesis",
        ),
    ];
    for (change, first, text) in cases {
        let given = merged(change);
        let adopted = given.continue_from(Some(&recorded.to_json()), &head(first - 1)).unwrap();
        assert!(adopted.is_new && adopted.changes.iter().any(|change| change.to_string() == text), "{adopted:?}");
        let refused = given.continue_from(Some(&recorded.to_json()), &head(first)).unwrap_err();
        let expected = format!("the fork schedules differ at or below the head, block 7 at time {first}: {text}");
        assert_eq!(refused.to_string(), expected);
    }
    let other_id = merged(|file| file["config"]["chainId"] = json!(5));
    let refused = other_id.continue_from(Some(&recorded.to_json()), &head(60)).unwrap_err();
    assert!(matches!(refused, ContinueError::ChainId { recorded: 31337, given: 5 }), "{refused}");
}

#[test]
fn parses_numbers_in_every_format() {
    let huge = "58750000000000000000000";
    // Balance as JSON; the number.
    let cases = [
        ("0", "0"),
        ("\"\"", "0"),
        ("\"0x\"", "0"),
        ("\"0x0a\"", "10"),
        ("\"0XfF\"", "255"),
        ("\"010\"", "10"),
        ("18446744073709551616", "18446744073709551616"),
        (huge, huge),
        ("\"58750000000000000000000\"", huge),
        ("\"0xc70d808a128d7380000\"", huge),
    ];
    for (text, expected) in cases {
        let json = format!(
            r#"{{"config": {{"terminalTotalDifficulty": {text}}}, "difficulty": 1, "gasLimit": "5000",
                "alloc": {{"00000000000000000000000000000000000000aA": {{"balance": {text}}}}}}}"#
        );
        let genesis = Genesis::parse(json.as_bytes()).unwrap_or_else(|error| panic!("{text}: {}", chained(&error)));
        let expected = U256::from_dec_str(expected).unwrap();
        assert_eq!(genesis.alloc[&Address::from_low_u64_be(0xaa)].balance, expected, "{text}");
        assert_eq!(genesis.spec.terminal_total_difficulty, Some(expected), "{text}");
    }
}

#[test]
fn pads_storage_words() {
    let json = file(|file| {
        file["alloc"] = json!({"0x00000000000000000000000000000000000000aa":
            {"balance": 1, "nonce": 7, "code": "0x6000", "storage": {"0x1": "0x0203", "00ff": "04"}}});
    });
    let genesis = Genesis::parse(&json).unwrap();
    let account = &genesis.alloc[&Address::from_low_u64_be(0xaa)];
    let expected = [(H256::from_low_u64_be(1), 0x203.into()), (H256::from_low_u64_be(0xff), 4.into())];
    assert_eq!(account.storage, BTreeMap::from(expected));
    assert_eq!((account.nonce, &*account.code), (7, &[0x60, 0x00][..]));
}

#[test]
fn header_fields_follow_the_forks() {
    let header = |forks: Value| {
        let json = json!({"config": forks, "alloc": {}, "difficulty": "1", "gasLimit": "0x1388"});
        Genesis::parse(json.to_string().as_bytes()).unwrap().header
    };
    let old = header(json!({"homesteadBlock": 0}));
    assert_eq!((old.base_fee_per_gas, old.withdrawals_root, old.requests_hash), (None, None, None));
    let mut config: Value = serde_json::from_str::<Value>(DEV_GENESIS).unwrap()["config"].clone();
    for later in ["osakaTime", "bpo1Time", "bpo2Time", "pragueTime"] {
        config[later] = Value::Null;
    }
    let cancun = header(config.clone());
    assert_eq!(cancun.base_fee_per_gas, Some(1_000_000_000));
    assert_eq!(cancun.withdrawals_root, Some(EMPTY_ROOT));
    assert_eq!((cancun.blob_gas_used, cancun.excess_blob_gas), (Some(0), Some(0)));
    assert_eq!(cancun.parent_beacon_block_root, Some(H256::zero()));
    assert_eq!(cancun.requests_hash, None);
    config["londonBlock"] = json!(5);
    config["arrowGlacierBlock"] = json!(5);
    config["grayGlacierBlock"] = json!(5);
    let early = header(config.clone());
    assert_eq!((early.base_fee_per_gas, early.withdrawals_root, early.blob_gas_used), (None, None, None));
    for fork in ["londonBlock", "arrowGlacierBlock", "grayGlacierBlock", "pragueTime"] {
        config[fork] = json!(0);
    }
    assert_eq!(header(config).requests_hash, Some(node_types::consensus::EMPTY_REQUESTS_HASH));
}

/// Returns a genesis file with `count` accounts besides those of the development chain.
fn large_file(count: u64) -> Vec<u8> {
    file(|file| {
        for index in 0..count {
            let address = Address::from_slice(&keccak256(index.to_be_bytes()).as_bytes()[12..]);
            let mut account = json!({"balance": index.to_string(), "nonce": index % 7});
            if index % 5 == 0 {
                account["code"] = json!(format!("0x60{:02x}", index % 256));
                let slots = (0..index % 4).map(|slot| (format!("{slot:#x}"), json!(format!("{:#x}", slot * index))));
                account["storage"] = slots.collect::<serde_json::Map<_, _>>().into();
            }
            file["alloc"][format!("{address:#x}")] = account;
        }
    })
}

#[test]
fn a_large_genesis_is_the_same_chain() {
    for count in [0, 1, 3_000] {
        let json = large_file(count);
        let (whole, large) = (
            Genesis::parse(&json).unwrap(),
            LargeGenesis::read(&json[..], &Context::unbounded(), tempfile::tempfile).unwrap(),
        );
        let (block, expected) = (large.genesis().block(), whole.block());
        assert_eq!(block.header, expected.header);
        let (mut state, mut last) = (StateChanges::default(), H256::zero());
        for part in large.state() {
            let part = part.unwrap();
            let hashes = part.accounts.keys().map(keccak256);
            let (first, end) = (hashes.clone().min().unwrap(), hashes.max().unwrap());
            assert!(last < first, "parts are in order");
            last = end;
            state.merge(&part);
        }
        assert_eq!(state, *expected.changes);
        // The recorded genesis yields the same block.
        let recorded = Genesis::parse(&large.genesis().to_json()).unwrap();
        assert_eq!((&recorded, recorded.block().header), (large.genesis(), expected.header));
    }
}

#[test]
fn a_large_genesis_is_refused_for_the_same_reasons() {
    let twice = String::from_utf8(large_file(3)).unwrap().replace(
        "\"alloc\":{",
        "\"alloc\":{\"0xAa00000000000000000000000000000000000000\":{},\"aa00000000000000000000000000000000000000\":{},",
    );
    let cut = &twice.as_bytes()[..twice.len() - 2];
    let wrong = file(|file| file["alloc"]["0xaa00000000000000000000000000000000000000"] = json!({"balance": "x"}));
    let none = file(|file| file["alloc"] = Value::Null);
    let other_root = file(|file| file["stateRoot"] = json!("0x01"));
    let misspelled = file(|file| file["alloc"]["0xaa00000000000000000000000000000000000000"] = json!({"Balance": "1"}));
    let misspelled_fork = file(|file| file["config"]["londonblock"] = json!(5));
    for json in [twice.as_bytes(), cut, &wrong, &none, &other_root, &misspelled, &misspelled_fork] {
        let [whole, large] = [
            Genesis::parse(json).map(drop),
            LargeGenesis::read(json, &Context::unbounded(), tempfile::tempfile).map(drop),
        ];
        let (whole, large) = (whole.unwrap_err(), large.unwrap_err());
        // A file that is cut has the duplicate before its end, where a large genesis does not look for it.
        assert!(whole.to_string() == large.to_string() || json == cut, "{whole}, {large}");
    }
}

#[test]
fn a_slot_may_have_one_entry_only() {
    const ACCOUNT: &str = "00000000000000000000000000000000000000aa";
    for storage in [r#"{"0x1":"0x1","0x1":"0x2"}"#, r#"{"0x1":"0x1","0x01":"0x1"}"#] {
        let alloc = format!(r#""alloc":{{"{ACCOUNT}":{{"storage":{storage}}},"#);
        let json = String::from_utf8(large_file(1)).unwrap().replace("\"alloc\":{", &alloc);
        let whole = Genesis::parse(json.as_bytes()).expect_err(storage);
        let large = LargeGenesis::read(json.as_bytes(), &Context::unbounded(), tempfile::tempfile).expect_err(storage);
        let expected = format!("alloc.{ACCOUNT} has two entries for the slot {:#x}", H256::from_low_u64_be(1));
        assert_eq!([whole, large].map(|error| error.to_string()), [expected.clone(), expected]);
    }
}

#[test]
fn ignores_other_properties() {
    let json = file(|file| {
        file["comment"] = json!("x");
        file["config"]["ethash"] = json!({});
        file["config"]["eip150Hash"] = json!("0x00");
        file["config"]["amsterdamTime"] = Value::Null;
        // Merged from the start, so nothing was sealed that way.
        file["config"]["clique"] = json!({"period": 0});
        file["config"]["enableVerkleAtGenesis"] = json!(false);
    });
    assert_eq!(Genesis::parse(&json).unwrap(), dev_genesis());
}

/// Every key that a genesis is written with, in another case.
#[test]
fn refuses_keys_that_differ_only_in_case() {
    const ACCOUNT: &str = "0x00000000000000000000000000000000000000aa";
    let mut genesis = dev_genesis();
    genesis.spec.dao_fork = Some(DaoFork { block: 0, supported: true });
    genesis.spec.merge_netsplit = Some(0);
    genesis.spec.deposit_contract = Some(Address::zero());
    let full = GenesisAccount {
        balance: 1.into(),
        nonce: 1,
        code: Bytes::from(vec![0]),
        storage: [(H256::zero(), 1.into())].into(),
    };
    genesis.alloc.insert(ACCOUNT.parse().unwrap(), full);
    let mut whole: Value = serde_json::from_slice(&genesis.to_json()).unwrap();
    whole["stateRoot"] = json!(format!("{:#x}", genesis.block().header.header.state_root));
    assert_eq!(Genesis::parse(whole.to_string().as_bytes()).unwrap(), genesis);
    for path in ["", "/config", "/config/blobSchedule", &format!("/alloc/{ACCOUNT}")] {
        for key in whole.pointer(path).unwrap().as_object().unwrap().keys() {
            let other = if key.bytes().all(|byte| !byte.is_ascii_uppercase()) {
                key.to_uppercase()
            } else {
                key.to_lowercase()
            };
            let mut changed = whole.clone();
            let object = changed.pointer_mut(path).unwrap();
            object[&other] = object[key].clone();
            let got = chained(&Genesis::parse(changed.to_string().as_bytes()).expect_err(&other));
            assert!(got.contains(&format!("{other} must be spelled {key}")), "{path}/{key}: {got}");
        }
    }
}

#[test]
fn reports_faults() {
    // A change to a good file; the error with its sources, up to what the JSON parser says.
    let cases: [(&str, Value, &str); 32] = [
        ("/config/amsterdamTime", json!(0), "unknown fork amsterdamTime"),
        ("/config/verkleTime", json!(99), "unknown fork verkleTime"),
        ("/config/futureBlock", json!("0x1"), "unknown fork futureBlock"),
        ("/config/bpo6Time", json!(0), "unknown fork bpo6Time"),
        ("/config/enableVerkleAtGenesis", json!(true), "unknown fork enableVerkleAtGenesis"),
        ("/config/homesteadBlock", json!(1), "eip150Block at 0 comes before homesteadBlock at 1"),
        (
            "/config/byzantiumBlock",
            Value::Null,
            "constantinopleBlock is set, but byzantiumBlock, which it requires, is not",
        ),
        ("/config/shanghaiTime", json!(5), "cancunTime at 0 comes before shanghaiTime at 5"),
        ("/config/bpo1Time", json!(5), "bpo2Time at 0 comes before bpo1Time at 5"),
        ("/config/pragueTime", Value::Null, "osakaTime is set, but pragueTime, which it requires, is not"),
        ("/config/londonBlock", Value::Null, "arrowGlacierBlock is set, but londonBlock, which it requires, is not"),
        ("/config/eip155Block", json!(1), "eip155Block is 1 and eip158Block is 0, but they must be equal"),
        ("/config/eip158Block", Value::Null, "eip155Block is 0 and eip158Block is not set, but they must be equal"),
        ("/config/londonblock", json!(5), "config.londonblock must be spelled londonBlock"),
        ("/config/bpo3Time", json!(0), "blobSchedule has no entry bpo3"),
        (
            "/config/blobSchedule/bpo1/target",
            json!(16),
            "blobSchedule.bpo1: target 16, max 15, update fraction 8346193; \
             expected 0 < target <= max <= 2^32 and a fraction above 0",
        ),
        (
            "/config/chainId",
            json!(-1),
            "config.chainId is malformed: expected an unsigned integer, or a string with one",
        ),
        ("/config/chainId", json!("0x10000000000000000"), "config.chainId is malformed: more than 64 bits"),
        (
            "/config/chainId",
            json!(1.5),
            "config.chainId is malformed: expected an unsigned integer, or a string with one",
        ),
        ("/config/daoForkSupport", json!(1), "config.daoForkSupport has the wrong type"),
        ("/gasLimit", Value::Null, "gasLimit is missing"),
        ("/gasLimit", json!("12z"), "gasLimit is malformed: expected decimal digits, or hex digits after 0x"),
        ("/extraData", json!("0x1"), "extraData is malformed: an odd number of hex digits: 1"),
        ("/extraData", json!("0x0xab"), "extraData is malformed: expected decimal digits, or hex digits after 0x"),
        ("/extraData", json!("0x1z"), "extraData is malformed: expected decimal digits, or hex digits after 0x"),
        ("/coinbase", json!("0x01"), "coinbase is malformed: 1 bytes, expected 20"),
        ("/number", json!(5), "number is 5, expected 0"),
        ("/alloc", json!({"0xzz": {}}), "alloc.0xzz is malformed: expected decimal digits, or hex digits after 0x"),
        (
            "/alloc",
            json!({"0x00000000000000000000000000000000000000aa": {}, "00000000000000000000000000000000000000AA": {}}),
            "alloc has two entries for 0x00000000000000000000000000000000000000aa",
        ),
        (
            "/alloc",
            json!({"0x00000000000000000000000000000000000000aa": ["0x1", "0x2", "0x", {}]}),
            "not a genesis file: invalid type: sequence, expected an object with the fields of an account",
        ),
        (
            "/alloc",
            json!({"0x00000000000000000000000000000000000000aa": {"storage": {"00".repeat(33): "0x1"}}}),
            "alloc.0x00000000000000000000000000000000000000aa.storage.000000000000000000000000000000000000000000000000000\
             000000000000000 is malformed: more than 256 bits",
        ),
        (
            "/stateRoot",
            json!("0x01"),
            "stateRoot is 0x0000000000000000000000000000000000000000000000000000000000000001, but the root of the \
             accounts in alloc is 0x",
        ),
    ];
    for (path, value, expected) in cases {
        let json = file(|file| {
            let (parent, key) = path.rsplit_once('/').unwrap();
            file.pointer_mut(parent).unwrap()[key] = value.clone();
        });
        let got = chained(&Genesis::parse(&json).expect_err(path));
        assert!(got.starts_with(expected), "{path} = {value}\n got: {got}\nwant: {expected}");
    }
}

#[test]
fn rejects_forks_without_those_they_require() {
    let cases = [
        (json!({"clique": {}}), "consensus by clique is not supported"),
        (json!({"shanghaiTime": 0}), "shanghaiTime is set, but londonBlock, which it requires, is not"),
    ];
    for (config, expected) in cases {
        let json = json!({"config": config, "alloc": {}, "difficulty": 1, "gasLimit": 5000});
        assert_eq!(Genesis::parse(json.to_string().as_bytes()).unwrap_err().to_string(), expected);
    }
}

proptest! {
    #[test]
    fn rejects_random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        prop_assert!(Genesis::parse(&bytes).is_err());
    }

    #[test]
    fn a_damaged_file_never_panics(position in 0usize..8000, byte in any::<u8>()) {
        let mut json = DEV_GENESIS.as_bytes().to_vec();
        let position = position % json.len();
        json[position] = byte;
        if let Ok(genesis) = Genesis::parse(&json) {
            genesis.block();
        }
    }
}
