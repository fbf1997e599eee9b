//! Methods of development chains, under the names of anvil and hardhat.

mod accounts;
mod blocks;
mod chain;
mod dump;
mod pool;
mod state;

pub use dump::{Dump, InvalidDump, WriteDumpError, read_dump, write_dump};

use crate::error::RpcError;
use crate::method::Method;
use crate::methods::transactions::Waiting;
use crate::parameters::Parameters;
use crate::scope::Scope;
use serde::Serialize;

pub(super) fn methods(waiting: &Waiting) -> Vec<Method> {
    let families = [accounts::methods(waiting), blocks::methods(), chain::methods(), pool::methods(), state::methods()];
    families.into_iter().flatten().chain(dump::methods()).collect()
}

/// Returns a method under each of its names.
fn named<P: Parameters + 'static, R: Serialize + 'static>(
    names: &[&'static str],
    parameters: &'static [&'static str],
    about: &'static str,
    run: impl Fn(Scope<'_>, P) -> Result<R, RpcError> + Copy + Send + Sync + 'static,
) -> Vec<Method> {
    names.iter().map(|name| Method::new(name, parameters, about, run).controlling()).collect()
}
