//! Blocks, calls, traces and simulations on chains of every fork.

mod blocks;
mod calls;
mod collisions;
mod estimates;
mod extensions;
mod full_calls;
mod osaka;
mod precompiles;
mod recorded_chain;
mod refusals;
mod requests;
mod set_code;
mod simulations;
mod support;
mod traces;
