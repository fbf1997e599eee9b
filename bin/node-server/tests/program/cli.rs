//! Tests of the command line through the program.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ethnode")).args(arguments).output().expect("the server starts")
}

#[test]
fn help_says_what_run_does_not_do() {
    let help = run(&["run", "--help"]);
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(help.status.success());
    assert!(text.contains("without producing blocks"), "{text}");
}

#[test]
fn help_shows_the_default_command() {
    for help in ["-h", "--help"] {
        let text = String::from_utf8(run(&[help]).stdout).expect("UTF-8");
        assert!(text.contains("The default command is dev") && text.contains("ethnode [dev] [OPTIONS]"), "{text}");
    }
}

#[test]
fn the_long_version_lists_the_features() {
    let text = String::from_utf8(run(&["--version"]).stdout).expect("UTF-8");
    let features = text.lines().find_map(|line| line.strip_prefix("features: ")).unwrap_or_else(|| panic!("{text}"));
    for (name, enabled) in [
        ("compression", cfg!(feature = "compression")),
        ("fast-crypto", cfg!(feature = "fast-crypto")),
        ("object-store", cfg!(feature = "object-store")),
        ("tls", cfg!(feature = "tls")),
    ] {
        assert_eq!(features.split(", ").any(|known| known == name), enabled, "{text}");
    }
    assert_eq!(String::from_utf8_lossy(&run(&["-V"]).stdout).lines().count(), 1);
}

#[test]
fn errors_name_the_invalid_option() {
    let cases: [(&[&str], &str); 21] = [
        (&["run", "--port", "65536"], "--port"),
        (&["run", "--call-timeout", "5 days"], "--call-timeout"),
        (&["run", "--base-path", "/a b"], "--base-path"),
        (&["run", "--public-url", "node.example"], "--public-url"),
        (&["run", "--head", "0x12"], "--head"),
        (&["run", "--log", "=="], "--log"),
        (&["dev", "--accounts", "10001"], "10001 accounts, at most 10000"),
        (&["--accounts=-1"], "--accounts"),
        (&["dev", "--balance", "0.5"], "expected a whole number of ether, such as 10000"),
        (&["run", "--call-timeout", "0s"], "expected a duration above zero"),
        (&["run", "--max-filters", "0"], "'--max-filters <COUNT>': expected 1 or more"),
        (&["run", "--max-body", "0"], "'--max-body <BYTES>': expected 1 or more"),
        (&["run", "--host", "node.example"], "expected an IP address"),
        (&["dev", "--mnemonic", "test test"], "expected a mnemonic of 12, 15, 18, 21 or 24 words, got 2"),
        (&["dev", "--derivation-path", "44/60"], "derivation path \"44/60\""),
        (&["dev", "--chain-id", "0"], "the chain id must be from 1 to 9223372036854775771, not 0"),
        (&["dev", "--hardfork", "bpo0"], "expected one of frontier"),
        (&["dev", "--hardfork", "berlin", "--base-fee", "7"], "berlin has no base fee"),
        (&["dev", "--coinbase", "0x12"], "--coinbase"),
        (&["dev", "--order", "random"], "--order"),
        (&["dev", "--genesis", "genesis.json", "--accounts", "3"], "cannot be used with"),
    ];
    for (arguments, named) in cases {
        let output = run(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(text.contains(named), "{arguments:?}: {text}");
    }
}
