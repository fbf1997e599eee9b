use super::access::Access;
use super::anvil_options;
use super::options::{DevOptions, MiningOptions, Order};
use super::summary::{Summary, key};
use crate::cli::{Command, CommandLine};
use crate::dev::banner::{AnvilBanner, Banner};
use crate::server::reachable;
use crate::settings::{self, Request, UsageError};
use clap::error::ErrorKind;
use node_chain::dev_genesis;
use node_core::protocol::Fork;
use node_dev::{AccountOptions, Accounts, Checksummed, DevGenesis};
use node_http::HttpConfig;
use node_types::U256;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Returns the banner of a server with the default configuration.
fn banner(summary: &Summary) -> String {
    Banner { summary, access: &Access::new(&HttpConfig::default()) }.to_string()
}

fn read(arguments: &[&str]) -> Result<Box<DevOptions>, UsageError> {
    let arguments = ["ethnode", "dev"].iter().chain(arguments).map(OsString::from);
    match settings::read(arguments)? {
        Request::Execute(CommandLine { command: Command::Dev(options), .. }, _) => Ok(options),
        other => panic!("{other:?}"),
    }
}

#[test]
fn defaults_are_those_of_the_libraries() {
    let options = read(&[]).unwrap();
    assert_eq!(options.genesis(), DevGenesis { contracts: true, ..DevGenesis::default() });
    assert_eq!(read(&["--bare"]).unwrap().genesis(), DevGenesis::default());
    let (accounts, default) = (options.accounts(), AccountOptions::default());
    assert_eq!(
        (accounts.count, accounts.mnemonic, accounts.derivation_path),
        (default.count, default.mnemonic, default.derivation_path)
    );
    assert_eq!(
        options.mining,
        MiningOptions { block_time: None, no_mining: false, mixed_mining: false, order: Order::Fees }
    );
    assert_eq!(options.storage.data_dir, None);
    assert!(!options.force_control && options.output.config_out.is_none());
}

#[test]
fn options_reach_the_genesis() {
    let coinbase = "0x00000000000000000000000000000000000000aa";
    let options = read(&[
        "--balance",
        "5",
        "--chain-id",
        "7",
        "--gas-limit",
        "6000",
        "--base-fee",
        "0",
        "--hardfork",
        "Cancun",
        "--timestamp",
        "9",
        "--coinbase",
        coinbase,
    ])
    .unwrap();
    let expected = DevGenesis {
        chain_id: 7,
        balance: 5,
        gas_limit: 6_000,
        base_fee: Some(0),
        hardfork: "cancun".parse().unwrap(),
        timestamp: Some(9),
        coinbase: coinbase.parse().unwrap(),
        contracts: true,
    };
    assert_eq!(options.genesis(), expected);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let cases: [&[&str]; 9] = [
        &["--no-mining", "--block-time", "1"],
        &["--no-mining", "--mixed-mining", "--block-time", "1"],
        &["--genesis", "g.json", "--accounts", "10"],
        &["--genesis", "g.json", "--balance", "1"],
        &["--genesis", "g.json", "--gas-limit", "30000000"],
        &["--genesis", "g.json", "--base-fee", "1"],
        &["--genesis", "g.json", "--hardfork", "osaka"],
        &["--genesis", "g.json", "--timestamp", "1"],
        &["--genesis", "g.json", "--coinbase", "0x00000000000000000000000000000000000000aa"],
    ];
    for arguments in cases {
        assert_eq!(read(arguments).unwrap_err().kind(), Some(ErrorKind::ArgumentConflict), "{arguments:?}");
    }
    assert_eq!(read(&["--genesis", "g.json", "--chain-id", "7"]).unwrap().chain.chain_id, Some(7));
    assert_eq!(read(&["--chain-id", "0"]).unwrap_err().kind(), Some(ErrorKind::ValueValidation));
    assert_eq!(read(&["--mixed-mining"]).unwrap_err().kind(), Some(ErrorKind::MissingRequiredArgument));
    assert!(read(&["--mixed-mining", "--block-time", "1"]).unwrap().mining.mixed_mining);
    assert!(read(&["--genesis", "g.json", "--mnemonic", "a", "--derivation-path", "m"]).is_ok());
}

#[test]
fn names_are_accepted_in_any_case() {
    let options = read(&["--order", "FIFO", "--hardfork", "DAO"]).unwrap();
    assert_eq!(options.mining.order, Order::Fifo);
    assert_eq!(options.genesis().hardfork.fork(), Fork::Homestead);
}

#[test]
fn block_times_have_fractions_and_bounds() {
    let block_time = |text: &str| read(&["--block-time", text]).map(|options| options.mining.block_time);
    for (text, milliseconds) in
        [("12", 12_000), ("0.5", 500), ("0.001", 1), ("1.0004", 1_000), ("31536000", 31_536_000_000)]
    {
        assert_eq!(block_time(text).unwrap(), Some(Duration::from_millis(milliseconds)), "{text}");
    }
    for text in ["", "0", "0.0001", "-1", "1s", "NaN", "inf", "31536001", "1e300"] {
        assert!(block_time(text).is_err(), "{text:?}");
    }
}

#[test]
fn the_banner_shows_accounts_chain_and_a_first_request() {
    let accounts = Accounts::derive(&AccountOptions { count: 2, ..AccountOptions::default() }).unwrap();
    let mut genesis = DevGenesis::default().build(accounts.addresses()).unwrap();
    genesis.alloc.get_mut(&accounts[1].address()).unwrap().balance = U256::exp10(17) + 1;
    let hash = format!("{:#x}", genesis.block().header.hash);
    let summary = |folder| {
        let address = "0.0.0.0:8545".parse().unwrap();
        Summary::new(
            &accounts,
            &genesis,
            None,
            None,
            U256::one(),
            folder,
            format!("http://{}/node", reachable(address)),
        )
    };
    let text = banner(&summary(None));
    for expected in [
        "(0) 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266  \
         0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80  10000 ether\n",
        "(1) 0x70997970C51812dc3A010C7d01b50e0d17dc79C8  \
         0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d  0.100000000000000001 ether\n",
        "These keys are public",
        "mnemonic         test test test test test test test test test test test junk\n",
        "derivation path  m/44'/60'/0'/0/\n",
        "chain id         31337\n",
        &format!("genesis          {hash}\n"),
        "the chain is in memory",
        "\ncurl -s http://127.0.0.1:8545/node/getBlockByNumber/latest/\n",
    ] {
        assert!(text.contains(expected), "no {expected:?} in:\n{text}");
    }
    let text = banner(&summary(Some(Path::new("/data"))));
    assert!(text.contains("data folder      /data\n"), "{text}");
}

#[test]
fn the_banner_shows_no_other_mnemonic_and_no_key_of_it() {
    let mnemonic = format!("{}art", "abandon ".repeat(23));
    let accounts = Accounts::derive(&AccountOptions { count: 1, mnemonic, ..AccountOptions::default() }).unwrap();
    let genesis = DevGenesis::default().build(accounts.addresses()).unwrap();
    let text = banner(&Summary::new(&accounts, &genesis, None, None, U256::one(), None, String::new()));
    assert!(!text.contains("abandon") && !text.contains(&key(&accounts[0])[2..]), "{text}");
    assert!(text.contains("--config-out") && text.contains(&Checksummed(accounts[0].address()).to_string()), "{text}");
}

#[test]
fn only_funded_accounts_are_shown() {
    let mnemonic = format!("{}art", "abandon ".repeat(23));
    let accounts = Accounts::derive(&AccountOptions { mnemonic, ..AccountOptions::default() }).unwrap();
    let address = "[::]:1".parse().unwrap();
    let summary = Summary::new(
        &accounts,
        &dev_genesis(),
        None,
        None,
        U256::one(),
        None,
        format!("http://{}", reachable(address)),
    );
    assert!(summary.accounts.is_empty());
    assert_eq!(summary.url, "http://[::1]:1");
    let text = banner(&summary);
    assert!(text.contains("funds no account") && !text.contains("keys are public"), "{text}");
}

/// The options of anvil 1.7.1 as `anvil --help` lists them, with short forms and aliases.
const ANVIL: &str = "a accounts b block-time blockTime balance config-out derivation-path dump-state hardfork init ipc ipcpath \
    j threads jobs load-state m mnemonic max-persisted-states max-transactions mixed-mining mnemonic-random \
    mnemonic-seed-unsafe no-mining no-mine number order p port preserve-historical-states prune-history s state-interval \
    slots-in-an-epoch state timestamp transaction-block-keeper color json md q quiet v allow-origin cache-path host no-cors \
    no-request-size-limit compute-units-per-second f fork-url rpc-url fork-block-number fork-chain-id fork-header \
    fork-retry-backoff fork-transaction-hash no-rate-limit no-rpc-rate-limit no-storage-caching retries timeout \
    block-base-fee-per-gas base-fee chain-id code-size-limit disable-block-gas-limit disable-code-size-limit \
    disable-min-priority-fee no-priority-fee enable-tx-gas-limit tx-gas-limit gas-limit gas-price auto-impersonate auto-unlock \
    disable-console-log no-console-log disable-default-create2-deployer no-create2 disable-pool-balance-checks memory-limit \
    print-traces enable-trace-printing steps-tracing tracing celo n network";

/// Returns the names of the options of a command, without dashes.
fn options_of(command: &str) -> HashSet<String> {
    let root = settings::commands();
    let arguments = root.find_subcommand(command).unwrap().get_arguments().cloned().collect::<Vec<_>>();
    let names = |argument: &clap::Arg| {
        let long = argument.get_long().into_iter().chain(argument.get_all_aliases().into_iter().flatten());
        long.map(str::to_owned).chain(argument.get_short().map(String::from)).collect::<Vec<_>>()
    };
    arguments.iter().flat_map(names).collect()
}

#[test]
fn every_option_of_anvil_works_or_is_explained() {
    let known = options_of("dev");
    for name in ANVIL.split_whitespace() {
        assert_ne!(known.contains(name), anvil_options::instead(name).is_some(), "{name}");
    }
    let of_anvil = options_of("anvil");
    for name in ANVIL.split_whitespace() {
        assert!(of_anvil.contains(name) || anvil_options::instead(name).is_some(), "{name}");
    }
    for sentence in anvil_options::sentences() {
        let words = sentence.split(|c: char| c != '-' && !c.is_ascii_alphanumeric());
        for name in words.filter_map(|word| word.strip_prefix("--")) {
            assert!(known.contains(name), "{name} in {sentence:?}");
        }
    }
    let error = read(&["--disable-block-gas-limit"]).unwrap_err();
    let message = error.message();
    // clap would propose another option that begins with --disable.
    let rendered = matches!(error, UsageError::Options { error, .. } if error.render().to_string() == format!("error: {message}\n"));
    assert!(
        rendered && message.starts_with("--disable-block-gas-limit is not an option here: every block has a gas limit"),
        "{message}"
    );
    let options = read(&["-a", "3", "-m", "x", "-b", "2", "-p", "0", "-q", "--init", "g.json"]);
    assert_eq!(options.unwrap_err().kind(), Some(ErrorKind::ArgumentConflict), "accounts and genesis");
    assert!(read(&["-a", "3", "-b", "2", "-p", "0", "-q", "-vvv", "--base-fee", "1", "--state", "s.json"]).is_ok());
}

#[test]
fn messages_mention_options_that_exist() {
    let known: HashSet<_> = options_of("dev").into_iter().chain(options_of("run")).chain(options_of("serve")).collect();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates")];
    let mut mentioned = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                for mention in code.flat_map(|line| line.split("(`").skip(1)) {
                    let name = mention.split('`').next().unwrap();
                    // Some code inserts the name.
                    assert!(name.starts_with('{') || known.contains(name), "{name} in {}", path.display());
                    mentioned += 1;
                }
            }
        }
    }
    assert!(mentioned > 20, "{mentioned}");
}

/// Reads the options of `arguments`, of which the first is the name of the program.
fn read_all(arguments: &[&str]) -> Result<Box<DevOptions>, UsageError> {
    match settings::read(arguments.iter().map(OsString::from))? {
        Request::Execute(CommandLine { command: Command::Dev(options), .. }, _) => Ok(options),
        other => panic!("{other:?}"),
    }
}

#[test]
fn anvil_has_the_defaults_of_anvil() {
    for program in [&["ethnode", "anvil"][..], &["anvil"], &["/usr/local/bin/anvil"]] {
        let options = read_all(program).unwrap();
        let rules = options.rules.relaxations(None).unwrap();
        assert!(rules.no_transaction_gas_cap && rules.equal_timestamps && rules.code_size_limit.is_none());
        let access = &options.server.http.access;
        assert_eq!(access.cors_origins.iter().map(ToString::to_string).collect::<Vec<_>>(), ["*=control"]);
        assert!(options.is_anvil && options.force_control && options.genesis() == DevGenesis::default());
    }
    let given = ["anvil", "--gas-price", "0", "--enable-tx-gas-limit", "--no-cors", "--steps-tracing", "-j", "2"];
    let options = read_all(&given).unwrap();
    assert!(!options.rules.relaxations(None).unwrap().no_transaction_gas_cap);
    assert_eq!(options.server.http.access.cors_origins[0].to_string(), "none");
    let options = read_all(&["anvil", "--allow-origin", "https://a.example", "--code-size-limit", "50000"]).unwrap();
    assert_eq!(options.server.http.access.cors_origins[0].to_string(), "https://a.example=control");
    assert_eq!(options.rules.relaxations(None).unwrap().code_size_limit, Some(50_000));
    let version = settings::read(["anvil", "--version"].map(OsString::from)).unwrap();
    assert!(
        matches!(&version, Request::Show(text) if text.starts_with("anvil Version: 1.7.1 (ethnode ")),
        "{version:?}"
    );
    // Without the name, the rules are the protocol's.
    let options = read(&[]).unwrap();
    assert!(options.rules.relaxations(None).unwrap().is_empty() && !options.is_anvil && !options.force_control);
}

#[test]
fn the_output_of_anvil_is_what_programs_that_start_it_read() {
    let mnemonic = format!("{}art", "abandon ".repeat(23));
    let options = AccountOptions { count: 1, mnemonic: mnemonic.clone(), ..AccountOptions::default() };
    let accounts = Accounts::derive(&options).unwrap();
    let genesis = DevGenesis::default().build(accounts.addresses()).unwrap();
    let text =
        AnvilBanner(&Summary::new(&accounts, &genesis, None, None, U256::one(), None, String::new())).to_string();
    let address = Checksummed(accounts[0].address());
    for expected in [
        format!("\nAvailable Accounts\n==================\n\n(0) {address} (10000.000000000000000000 ETH)\n"),
        format!("\nPrivate Keys\n==================\n\n(0) {}\n", key(&accounts[0])),
        format!("\nWallet\n==================\nMnemonic:          {mnemonic}\nDerivation path:   m/44'/60'/0'/0/\n"),
        "\nChain ID\n==================\n\n31337\n".to_owned(),
    ] {
        assert!(text.contains(&expected), "no {expected:?} in:\n{text}");
    }
}
