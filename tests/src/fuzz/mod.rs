//! Decoders and interfaces against mutated input: nothing panics or hangs, what is accepted survives another encoding,
//! and where alloy decodes the same object, both accept the same bytes.
//!
//! Inputs are mutations of valid ones, which are made in code. Accepted inputs are mutated further. The same seed
//! yields the same inputs, so a finding can be reproduced from its seed or from its bytes.

mod consensus;
mod corpus;
mod frames;
mod mutate;
mod requests;
mod stored;
mod structure;

pub use corpus::{CORPORA, pack};
pub use mutate::{Format, Mutator};

use rustix::time::{ClockId, clock_gettime};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Maximum time for one input: wall time, or processor time of this process if that is less, because it does not pass
/// while other programs run or the process is stopped.
const PATIENCE: Duration = Duration::from_secs(10);

/// Checks one input. Returns whether it was accepted, or a description of the fault.
pub type Check = Box<dyn FnMut(&[u8]) -> Result<bool, String>>;

/// A decoder or interface, with inputs from which mutations start.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    format: Format,
    seeds: fn() -> Vec<Vec<u8>>,
    check: fn() -> Check,
}

/// An input that a target does not handle.
#[derive(Debug)]
pub struct Finding {
    /// Name of the target.
    pub target: &'static str,
    /// The input.
    pub input: Vec<u8>,
    /// Description of the fault.
    pub fault: String,
}

/// Counts of the inputs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Number of inputs.
    pub inputs: u64,
    /// Number of inputs that were accepted.
    pub accepted: u64,
}

/// Returns all targets that run in this process.
pub fn targets() -> Vec<Target> {
    [consensus::targets(), stored::targets(), requests::targets()].into_iter().flatten().collect()
}

/// Returns the targets that need a server process, which they start.
pub fn server_targets() -> Vec<Target> {
    frames::targets()
}

/// Runs `target` on mutated inputs for as long as `continues` returns true. `inspect` is called with each input before
/// it is tried.
///
/// # Errors
/// The first input for which the target panics, takes too long or finds a fault.
pub fn run(
    target: &Target,
    seed: u64,
    mut continues: impl FnMut(u64) -> bool,
    mut inspect: impl FnMut(&[u8]),
) -> Result<Tally, Finding> {
    let mut mutator = target.mutator(seed);
    let mut runner = Runner::new(target);
    let mut tally = Tally::default();
    // The seeds come first, without a change.
    let mut seeds = target.seeds().into_iter();
    while continues(tally.inputs) {
        let input = seeds.next().unwrap_or_else(|| mutator.next_input());
        inspect(&input);
        let accepted = runner.attempt(&input)?;
        tally.inputs += 1;
        tally.accepted += u64::from(accepted);
        if accepted {
            mutator.learn(input);
        }
    }
    Ok(tally)
}

/// Runs `target` on one input.
///
/// # Errors
/// If the target panics, takes too long or finds a fault.
pub fn replay(target: &Target, input: &[u8]) -> Result<bool, Finding> {
    Runner::new(target).attempt(input)
}

impl Target {
    /// Returns the inputs from which mutations start.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        (self.seeds)()
    }

    /// Creates a mutator of the inputs.
    pub fn mutator(&self, seed: u64) -> Mutator {
        Mutator::new(seed, self.format, self.seeds())
    }
}

/// A target that is ready to run on any number of inputs.
pub struct Runner {
    target: &'static str,
    check: Check,
}

impl Runner {
    /// Prepares what the target needs, such as a development chain.
    pub fn new(target: &Target) -> Self {
        Self { target: target.name, check: (target.check)() }
    }

    /// Runs the target on one input. Returns whether it was accepted.
    ///
    /// # Errors
    /// If the target panics, takes too long or finds a fault.
    pub fn attempt(&mut self, input: &[u8]) -> Result<bool, Finding> {
        let (began, clock) = (processor_time(), Instant::now());
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.check)(input)));
        // Other threads, such as those of other tests, also use processor time.
        let spent = (processor_time() - began).min(clock.elapsed());
        let fault = match outcome {
            Ok(Ok(_)) if spent > PATIENCE => format!("it takes {spent:?}"),
            Ok(Ok(accepted)) => return Ok(accepted),
            Ok(Err(fault)) => fault,
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                format!("a panic: {}", text.unwrap_or_default())
            }
        };
        Err(Finding { target: self.target, input: input.to_vec(), fault })
    }
}

/// Returns the processor time that this process has used.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
