//! The table of methods, one file for each family.

mod blocks;
mod calls;
mod chain;
mod debug;
mod dev;
#[cfg(test)]
mod documented;
mod filters;
mod pool;
mod state;
mod subscriptions;
mod traces;
mod transactions;

use crate::method::Method;
use std::collections::BTreeMap;

pub use dev::{Dump, InvalidDump, WriteDumpError, read_dump, write_dump};

/// The name of the method that [`modules`] returns.
const MODULES: &str = "rpc_modules";

/// Returns all methods.
pub fn table() -> Vec<Method> {
    let waiting = transactions::Waiting::default();
    let families = [
        chain::methods(),
        blocks::methods(),
        transactions::methods(&waiting),
        state::methods(),
        calls::methods(),
        filters::methods(),
        subscriptions::methods(),
        pool::methods(),
        debug::methods(),
        traces::methods(),
        dev::methods(&waiting),
    ];
    with_modules(families.into_iter().flatten().collect())
}

/// Returns the methods of [`table`], with those switched off for whose names `is_on` returns false.
pub fn table_of(is_on: impl Fn(&str) -> bool) -> Vec<Method> {
    let (on, off): (Vec<_>, Vec<_>) = table().into_iter().partition(|method| is_on(method.name()));
    let on = with_modules(on.into_iter().filter(|method| method.name() != MODULES).collect());
    on.into_iter().chain(off.into_iter().map(Method::switched_off)).collect()
}

/// Adds rpc_modules, which lists the families of `methods`.
fn with_modules(mut methods: Vec<Method>) -> Vec<Method> {
    let modules = modules(&methods);
    methods.push(modules);
    methods
}

/// Returns rpc_modules, which lists the families of all other methods.
fn modules(methods: &[Method]) -> Method {
    let families = |methods: &mut dyn Iterator<Item = &Method>| -> BTreeMap<&'static str, &'static str> {
        let families = methods.filter_map(|method| method.name().split_once('_')).map(|(family, _)| family);
        families.chain(["rpc"]).map(|family| (family, "1.0")).collect()
    };
    let all = families(&mut methods.iter());
    let without_control = families(&mut methods.iter().filter(|method| !method.controls()));
    Method::new(MODULES, &[], "The families of methods with their versions.", move |scope, ()| {
        Ok(if scope.node.producer().is_some() { all.clone() } else { without_control.clone() })
    })
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
            // Optional parameters come last.
            assert!(method.parameters().is_sorted_by_key(|parameter| parameter.ends_with('?')), "{name}");
        }
    }
}
