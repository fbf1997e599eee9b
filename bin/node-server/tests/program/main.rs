//! Tests of the command line, the settings and the service through the program.
//!
//! Tests of other packages need the program, too, and this target makes cargo build it with them.

#![allow(clippy::unwrap_used)]

mod cli;
mod dev;
mod service;
mod settings;

use std::process::Command;

fn output(argument: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ethnode")).arg(argument).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn prints_its_version_and_commands() {
    assert!(output("--version").starts_with(&format!("ethnode {} (commit ", env!("CARGO_PKG_VERSION"))));
    assert_eq!(output("-V"), format!("ethnode {}\n", env!("CARGO_PKG_VERSION")));
    let help = output("--help");
    for command in ["dev", "run", "import", "export", "verify", "backup"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(command)), "{command}: {help}");
    }
}
