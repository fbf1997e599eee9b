//! Signed transactions to send: `transfers --count N`.

use clap::Parser;
use node_tests::wallet::{accounts, hex, transfer};
use node_types::consensus::TransactionBody;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// Prints transactions of the accounts of the development chain, each as its hash and its encoding.
///
/// The ten accounts take turns; the nonces of each begin with 0 and have no gaps.
#[derive(Parser)]
struct Arguments {
    /// How many.
    #[arg(long)]
    count: u64,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<()> {
    let accounts = accounts();
    let mut out = BufWriter::new(io::stdout().lock());
    for (made, account) in (0..arguments.count).zip(accounts.iter().cycle()) {
        let transaction = account.sign(TransactionBody::Legacy(transfer(made / accounts.len() as u64)));
        writeln!(out, "{} {}", hex(transaction.hash().as_bytes()), hex(&transaction.encode()))?;
    }
    out.flush()
}
