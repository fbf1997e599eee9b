//! Fuzzes decoders and interfaces with mutated input.
//!
//! `fuzz [--seconds N | --inputs N] [--seed N] [--server] [TARGET…]` runs each target for the given time or number of
//! inputs. `fuzz --input HEX TARGET` repeats one input. `fuzz --unpack FOLDER [TARGET…]` and `--pack FOLDER` convert the
//! committed inputs to a folder for each target, as libFuzzer needs them, and back.

use clap::Parser;
use node_tests::fuzz::{self, Finding, Target};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Fuzzes decoders and interfaces with mutated input
#[derive(Parser)]
struct Options {
    /// Seconds per target
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Inputs per target, in any time
    #[arg(long)]
    inputs: Option<u64>,
    /// Seed of the mutations [default: the time]
    #[arg(long)]
    seed: Option<u64>,
    /// Also run the targets that need a server process
    #[arg(long)]
    server: bool,
    /// Run this input only, in hexadecimal
    #[arg(long, requires = "targets")]
    input: Option<String>,
    /// Write each input to this file before it is tried, to find one that ends the process
    #[arg(long)]
    save: Option<PathBuf>,
    /// Write the committed inputs to FOLDER/TARGET, a file for each, and run nothing
    #[arg(long, value_name = "FOLDER")]
    unpack: Option<PathBuf>,
    /// Replace the committed inputs with the files in FOLDER/TARGET, and run nothing
    #[arg(long, value_name = "FOLDER", conflicts_with = "unpack")]
    pack: Option<PathBuf>,
    /// Names of targets [default: all]
    targets: Vec<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut targets = fuzz::targets();
    if options.server || !options.targets.is_empty() {
        targets.extend(fuzz::server_targets());
    }
    if let Some(unknown) = options.targets.iter().find(|name| targets.iter().all(|target| target.name != **name)) {
        eprintln!("unknown target {unknown}");
        return ExitCode::FAILURE;
    }
    let is_chosen =
        |target: &&Target| options.targets.is_empty() || options.targets.iter().any(|name| name == target.name);
    for target in targets.iter().filter(is_chosen) {
        let converted = match (&options.unpack, &options.pack) {
            (Some(folder), _) => target.unpack(&folder.join(target.name)),
            (_, Some(folder)) => {
                fuzz::pack(&folder.join(target.name)).and_then(|text| fs::write(target.corpus_file(), text))
            }
            (None, None) => break,
        };
        if let Err(error) = converted {
            eprintln!("{}: {error}", target.name);
            return ExitCode::FAILURE;
        }
    }
    if options.unpack.is_some() || options.pack.is_some() {
        return ExitCode::SUCCESS;
    }
    let since_epoch = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let seed = options.seed.unwrap_or(since_epoch.as_nanos() as u64);
    println!("seed {seed}");
    let mut status = ExitCode::SUCCESS;
    for target in targets.iter().filter(is_chosen) {
        if let Err(finding) = fuzz_one(target, seed, &options) {
            let Finding { target, input, fault } = finding;
            println!("{target:20} FAILED: {fault}\ninput 0x{}", const_hex::encode(input));
            status = ExitCode::FAILURE;
        }
    }
    status
}

fn fuzz_one(target: &Target, seed: u64, options: &Options) -> Result<(), Finding> {
    if let Some(input) = &options.input {
        let input = const_hex::decode(input).expect("the input is hexadecimal");
        let accepted = fuzz::replay(target, &input)?;
        println!("{:20} {}", target.name, if accepted { "accepted" } else { "refused" });
        return Ok(());
    }
    let began = Instant::now();
    let time = Duration::from_secs(options.seconds);
    let continues = |inputs| options.inputs.map_or_else(|| began.elapsed() < time, |count| inputs < count);
    let tally = fuzz::run(target, seed, continues, |input| {
        if let Some(path) = &options.save {
            fs::write(path, input).expect("the file can be written");
        }
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let share = 100.0 * tally.accepted as f64 / tally.inputs.max(1) as f64;
    println!("{:20} {:>10} inputs in {seconds:.0} s, {share:.0} % accepted", target.name, tally.inputs);
    Ok(())
}
