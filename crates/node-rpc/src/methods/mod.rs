//! The table of methods, a file a family.

mod blocks;
mod calls;
mod chain;
mod config;
mod debug;
mod dev;
#[cfg(test)]
mod documented;
mod elsewhere;
mod filters;
mod modules;
mod pool;
mod state;
mod subscriptions;
mod testing;
mod traces;
mod transactions;

use crate::method::Method;

pub use elsewhere::elsewhere;

/// All methods that there are.
pub fn table() -> Vec<Method> {
    let families = [
        chain::methods(),
        blocks::methods(),
        transactions::methods(),
        state::methods(),
        calls::methods(),
        config::methods(),
        filters::methods(),
        subscriptions::methods(),
        pool::methods(),
        debug::methods(),
        testing::methods(),
        traces::methods(),
        dev::methods(),
    ];
    let mut methods: Vec<_> = families.into_iter().flatten().collect();
    let modules = modules::modules(&methods);
    methods.push(modules);
    methods
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_method_is_described_once() {
        let mut names = HashSet::new();
        for method in table() {
            let name = method.name();
            assert!(names.insert(name), "{name}");
            assert!(name.split_once('_').is_some(), "{name}");
            assert!(method.about().ends_with('.'), "{name}");
            // Of the families of development chains, and of geth's for debugging, some are there, and some are not.
            let of_some = method.controls() || name.starts_with("debug_");
            assert!(of_some || elsewhere(name).is_none(), "{name} is here");
            // What may be left out stands last.
            assert!(method.parameters().is_sorted_by_key(|parameter| parameter.ends_with('?')), "{name}");
        }
    }
}
