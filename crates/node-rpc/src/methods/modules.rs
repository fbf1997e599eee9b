//! Which families of methods there are.

use crate::method::Method;
use std::collections::BTreeMap;

/// rpc_modules, over all other methods.
pub(super) fn modules(methods: &[Method]) -> Method {
    let families = methods.iter().filter_map(|method| method.name().split_once('_')).map(|(family, _)| family);
    let modules: BTreeMap<&'static str, &'static str> = families.chain(["rpc"]).map(|family| (family, "1.0")).collect();
    Method::new("rpc_modules", &[], "The families of methods with their versions.", move |_, ()| Ok(modules.clone()))
}
