//! Generates signed transactions: `transfers --count N`.

use clap::{Parser, ValueEnum};
use node_dev::{AccountOptions, Accounts};
use node_tests::wallet::{CHAIN_ID, hex, transfer};
use node_types::consensus::{DynamicFeeTransaction, LegacyTransaction, TransactionBody};
use node_types::{Address, U256};
use std::error::Error;
use std::io::{BufWriter, Write, stdout};
use std::process::ExitCode;

/// Gas price in wei: above any base fee that a few full blocks can cause.
const PRICE: u64 = 50_000_000_000;

/// Prints signed transactions of the accounts of the development chain, one per line: hash and encoding.
///
/// The accounts take turns; the nonces of each start at 0 and have no gaps.
#[derive(Parser)]
struct Arguments {
    /// Number of transactions.
    #[arg(long)]
    count: u64,
    /// Number of accounts.
    #[arg(long, default_value_t = 10)]
    accounts: u32,
    /// Receiver of one wei from each transaction [default: the second account].
    #[arg(long)]
    to: Option<Address>,
    /// Gas limit of each transaction.
    #[arg(long, default_value_t = 21_000)]
    gas: u64,
    /// Types of the transactions.
    #[arg(long, value_enum, default_value_t)]
    types: Types,
}

/// Types of the transactions.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Types {
    /// All of type 0.
    #[default]
    Legacy,
    /// Types 0 and 2 alternating, by nonce.
    Mixed,
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

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let accounts = Accounts::derive(&AccountOptions { count: arguments.accounts, ..AccountOptions::default() })?;
    let mut out = BufWriter::new(stdout().lock());
    for (made, account) in (0..arguments.count).zip(accounts.iter().cycle()) {
        let transaction = account.sign(arguments.body(made / accounts.len() as u64));
        writeln!(out, "{} {}", hex(transaction.hash().as_bytes()), hex(&transaction.encode()))?;
    }
    Ok(out.flush()?)
}

impl Arguments {
    fn body(&self, nonce: u64) -> TransactionBody {
        let plain = transfer(nonce);
        let (to, gas_limit) = (self.to.or(plain.to), self.gas);
        match self.types {
            Types::Mixed if nonce % 2 == 1 => TransactionBody::DynamicFee(DynamicFeeTransaction {
                chain_id: CHAIN_ID,
                nonce,
                max_priority_fee_per_gas: U256::from(1_000_000_000),
                max_fee_per_gas: PRICE.into(),
                gas_limit,
                to,
                value: plain.value,
                ..DynamicFeeTransaction::default()
            }),
            Types::Legacy | Types::Mixed => {
                TransactionBody::Legacy(LegacyTransaction { gas_price: PRICE.into(), to, gas_limit, ..plain })
            }
        }
    }
}
