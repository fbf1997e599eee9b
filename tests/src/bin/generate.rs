//! Generates a chain: `generate --blocks N --output FILE`.

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use node_core::backend::BackendError;
use node_tests::generator::{GenerateError, Generator, MAX_TRANSACTIONS_PER_BLOCK, Shape};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes a chain on the built-in development genesis, with transfers, contract storage and logs.
///
/// The same arguments produce the same bytes.
#[derive(Parser)]
struct Arguments {
    /// Number of blocks after genesis.
    #[arg(long)]
    blocks: u64,

    /// Transactions per block.
    #[arg(long, default_value_t = Shape::default().transactions_per_block,
          value_parser = RangedU64ValueParser::<usize>::new().range(0..=MAX_TRANSACTIONS_PER_BLOCK as u64))]
    transactions_per_block: usize,

    /// Number of senders.
    #[arg(long, default_value_t = Shape::default().accounts,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=10))]
    accounts: usize,

    /// Number of storage slots of the contract that are written.
    #[arg(long, default_value_t = Shape::default().slots, value_parser = clap::value_parser!(u64).range(1..))]
    slots: u64,

    /// Number of accounts with a storage slot, not counting the contract. A block of n transactions deploys n - 1 of
    /// them.
    #[arg(long, default_value_t = Shape::default().holders)]
    holders: u64,

    /// Number of receivers of transfers [default: a different one each time].
    #[arg(long, default_value_t = Shape::default().recipients, hide_default_value = true,
          value_parser = clap::value_parser!(u64).range(1..))]
    recipients: u64,

    /// Number of accounts in the genesis besides those of the development chain. One in ten is a holder with four
    /// slots. Most transactions are about a few of them, some about any.
    #[arg(
        long, default_value_t = Shape::default().genesis_accounts, requires = "genesis_output",
        value_parser = clap::value_parser!(u64).range(..=16_000_000)
    )]
    genesis_accounts: u64,

    /// Selects one of the chains with otherwise equal arguments.
    #[arg(long, default_value_t = Shape::default().seed)]
    seed: u64,

    /// Output file for the blocks: concatenated RLP, from block 1 on.
    #[arg(long)]
    output: PathBuf,

    /// Output file for the genesis, in geth's JSON format.
    #[arg(long)]
    genesis_output: Option<PathBuf>,

    /// Output file for a list of what can be queried, one per line: `holder ADDRESS`, `tag TOPIC`. A holder has slot 0;
    /// a tag is the third topic of one log.
    #[arg(long)]
    names_output: Option<PathBuf>,
}

/// Maximum number of holders of the genesis that are named.
const MAX_NAMED: u64 = 100_000;

/// Why no chain was written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{}: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error(transparent)]
    Read(#[from] BackendError),
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

fn run(arguments: &Arguments) -> Result<(), Error> {
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    let mut file = BufWriter::new(File::create(&arguments.output).map_err(unwritable(&arguments.output))?);
    let Arguments { accounts, slots, holders, recipients, genesis_accounts, transactions_per_block, seed, .. } =
        *arguments;
    let shape = Shape { accounts, slots, holders, recipients, genesis_accounts, transactions_per_block, seed };
    if let Some(path) = &arguments.genesis_output {
        let mut genesis = BufWriter::new(File::create(path).map_err(unwritable(path))?);
        shape.write_genesis(&mut genesis).and_then(|()| genesis.flush()).map_err(unwritable(path))?;
    }
    let mut generator = match &arguments.genesis_output {
        Some(path) => Generator::on_genesis(shape, File::open(path).map_err(unwritable(path))?)?,
        None => Generator::new(shape),
    };
    generator.write(arguments.blocks, &mut file)?;
    file.flush().map_err(unwritable(&arguments.output))?;
    if let Some(path) = &arguments.names_output {
        fs::write(path, names(&shape, &generator)?).map_err(unwritable(path))?;
    }
    Ok(())
}

fn names(shape: &Shape, generator: &Generator) -> Result<String, BackendError> {
    let holders = generator.holders().iter().copied().chain(shape.genesis_holders(MAX_NAMED));
    let mut names: String = holders.map(|holder| format!("holder {holder:#x}\n")).collect();
    let view = generator.backend().view()?;
    for number in 0..=view.head().number {
        let receipts = view.receipts(number.into())?.ok_or(BackendError::UnknownBlock(number))?;
        let tags = receipts.iter().flat_map(|receipt| &receipt.logs).filter_map(|log| log.topics.get(2));
        names.extend(tags.map(|tag| format!("tag {tag:#x}\n")));
    }
    Ok(names)
}
