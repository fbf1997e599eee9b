//! Random histories of two writers, which stall anywhere and come back, and two readers, on a medium with faults.
//!
//! Every actor runs the real code on a thread of its own, but only one of them at a time: before and after each
//! operation of the medium, the schedule determines who continues. The same seed yields the same history.

mod actors;
mod oracle;
mod world;

use actors::{read, write};
use std::sync::Arc;
use std::thread;
use world::{Medium, Sabotage, World};

/// The number of histories; `MODEL_HISTORIES` overrides it.
const HISTORIES: u64 = 1_000;

const ACTORS: usize = 4;

/// Runs one history. Returns what was wrong.
fn history(seed: u64, sabotage: Sabotage) -> Result<oracle::Counts, String> {
    let world = Arc::new(World::new(seed, ACTORS, sabotage));
    let actors: Vec<_> = (0..ACTORS)
        .map(|actor| {
            let medium = Arc::new(Medium::new(Arc::clone(&world), actor));
            thread::spawn(move || {
                medium.begin();
                // A panic is a failed assertion of the actor.
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match actor {
                    0 | 1 => write(&medium),
                    _ => read(&medium),
                }));
                medium.end(done.is_err());
            })
        })
        .collect();
    actors.into_iter().for_each(|actor| actor.join().unwrap());
    world.finish()
}

#[test]
fn random_histories_hold() {
    let histories = std::env::var("MODEL_HISTORIES").map_or(HISTORIES, |number| number.parse().unwrap());
    let mut total = oracle::Counts::default();
    for seed in 0..histories {
        match history(seed, Sabotage::None) {
            Ok(counts) => total += counts,
            Err(failure) => panic!("seed {seed}: {failure}"),
        }
    }
    println!("{histories} histories: {total:?}");
    // The histories reach what they should test.
    let oracle::Counts { acknowledged, fenced, deleted_log, deleted_runs, ghosts, .. } = total;
    assert!(acknowledged > 10 * histories && fenced > histories && deleted_log > histories);
    assert!(deleted_runs > histories / 2 && ghosts > histories / 100);
}

/// The histories find the defects that the rules of the protocol prevent.
#[test]
fn histories_without_a_rule_fail() {
    for sabotage in [Sabotage::DeletedFences, Sabotage::NoWitness, Sabotage::LogBeforeManifests, Sabotage::NoKeeping] {
        let failed = (0..2_000).find_map(|seed| Some((seed, history(seed, sabotage).err()?)));
        let (seed, failure) = failed.unwrap_or_else(|| panic!("{sabotage:?} was not noticed"));
        println!("{sabotage:?}: seed {seed}: {failure}");
    }
}
